// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/errors.hpp>
#include <heed/core/utf8.hpp>
#include <heed/io/dtype.hpp>
#include <heed/io/mapped_file.hpp>

/// The contents of a tensor file, independent of its format.
namespace heed::inline HEED_TARGET::io {

namespace detail {

inline constexpr std::size_t largest_rank = 32;

/// Π shape · value_size, or nullopt if that overflows std::size_t. If an extent is 0, the product of the other extents
/// must still fit std::ptrdiff_t, since strides are such products.
constexpr std::optional<std::size_t> bytes_of(std::span<const std::size_t> shape, std::size_t value_size)
{
    const bool empty = std::find(shape.begin(), shape.end(), std::size_t{0}) != shape.end();
    const std::size_t most = std::numeric_limits<std::size_t>::max() / (empty ? 2 : 1);
    std::size_t bytes = value_size;
    for (const std::size_t extent : shape) {
        if (extent == 0) continue;
        if (bytes > most / extent) return std::nullopt;
        bytes *= extent;
    }
    return empty ? 0 : bytes;
}

}  // namespace detail

/// One tensor of a file. The shape is row-major; the empty shape is a scalar.
struct tensor_entry {
    std::string name;
    std::string dtype;  ///< "F32", "I64", …: see dtype.hpp. For a type that heed cannot read, the file's own name.
    std::vector<std::size_t> shape;
    shared_bytes bytes;

    /// Copies values in, converted to another type if one is given: `of<io::bfloat16>(name, shape, floats)` rounds each
    /// to nearest. Throws shape_error unless the number of values matches the shape.
    template <class To = void>
    static tensor_entry of(std::string name, std::vector<std::size_t> shape, const auto& values)
    {
        const std::span view(values);
        using value_type = std::remove_const_t<typename decltype(view)::element_type>;
        using As = std::conditional_t<std::is_void_v<To>, value_type, To>;
        static_assert(storable<value_type> && storable<As>,
                      "heed: a tensor_entry holds the number types of heed/io/dtype.hpp");
        static_assert(detail::holds_every<value_type, As>() ||
                          (detail::is_fraction<value_type> && detail::is_fraction<As>),
                      "heed: the stored type must represent every value exactly, or both types must be floating-point");
        if (detail::bytes_of(shape, sizeof(value_type)) != view.size_bytes())
            throw shape_error("tensor \"" + name + "\" is " + shape_text(shape) + " but " +
                              counted(view.size(), "value") + " were given");
        std::vector<std::byte> bytes(view.size() * sizeof(As));
        if constexpr (std::same_as<As, value_type>) {
            if (!bytes.empty()) std::memcpy(bytes.data(), view.data(), bytes.size());
        } else {
            for (std::size_t i = 0; i < view.size(); ++i) {
                const As value = detail::as_number<As>(view[i]);
                std::memcpy(bytes.data() + i * sizeof(As), &value, sizeof(As));
            }
        }
        return {std::move(name), std::string(dtype_name<As>), std::move(shape), std::move(bytes)};
    }

    /// The number of values.
    std::size_t size() const
    {
        const std::optional<std::size_t> value_size = dtype_size(dtype);
        return value_size ? bytes.size() / *value_size : detail::bytes_of(shape, 1).value_or(0);
    }

    /// Copies the values to storage of size() elements. Throws heed::error unless T can represent every value of the
    /// dtype, and shape_error for storage of a different size.
    template <storable T>
    void copy_to(std::span<T> values) const
    {
        require_reads_as(dtype_name<T>);
        if (values.size() != size())
            throw shape_error("tensor \"" + name + "\" is " + shape_text(shape) + " but was read into storage for " +
                              counted(values.size(), "value") + "; give storage for " + std::to_string(size()));
        detail::with_type(dtype, [&](auto type) {
            using stored = typename decltype(type)::type;
            if constexpr (std::same_as<stored, T> && !std::same_as<T, bool>) {
                if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
            } else if constexpr (detail::holds_every<stored, T>()) {
                // In C++ a bool must be 0 or 1; a byte in a file may have any value.
                using raw = std::conditional_t<std::same_as<stored, bool>, unsigned char, stored>;
                for (std::size_t i = 0; i < values.size(); ++i) {
                    raw value;
                    std::memcpy(&value, bytes.data() + i * sizeof(raw), sizeof(raw));
                    if constexpr (std::same_as<stored, bool>) {
                        values[i] = detail::as_number<T>(value != 0);
                    } else {
                        values[i] = detail::as_number<T>(value);
                    }
                }
            }
        });
    }

    /// A copy of the values. Throws heed::error unless T can represent every value of the dtype; see copy_to.
    template <storable T>
    std::vector<T> values() const
    {
        static_assert(!std::same_as<T, bool>, "heed: read BOOL as std::uint8_t, or copy_to an array of bool");
        require_reads_as(dtype_name<T>);
        std::vector<T> result(size());
        copy_to(std::span<T>(result));
        return result;
    }

    friend bool operator==(const tensor_entry&, const tensor_entry&) = default;

    /// Throws heed::error unless every value of this tensor's dtype is also a value of dtype `as` (see reads_as).
    void require_reads_as(std::string_view as) const
    {
        if (!dtype_size(dtype))
            throw error("tensor \"" + text::printable(name) + "\" holds " + text::printable(dtype) +
                        ", which heed cannot read; convert it in the program that wrote it, for example to F32");
        if (!reads_as(dtype, as))
            throw error("tensor \"" + text::printable(name) + "\" holds " + dtype + " but was read as " +
                        std::string(as) + ", which cannot represent every " + dtype);
    }
};

/// The contents of a file of tensors.
struct archive {
    std::vector<tensor_entry> tensors;
    std::map<std::string, std::string> metadata;
    std::string path{};  ///< the file that it was read from, for messages

    /// The tensor of this name, or null.
    const tensor_entry* find(std::string_view name) const
    {
        const auto found =
            std::find_if(tensors.begin(), tensors.end(), [&](const tensor_entry& each) { return each.name == name; });
        return found == tensors.end() ? nullptr : &*found;
    }

    /// The tensor of this name. Throws heed::error, which lists the available tensors, if it does not exist.
    const tensor_entry& at(std::string_view name) const
    {
        if (const tensor_entry* entry = find(name)) return *entry;
        throw error((path.empty() ? std::string("archive") : path) + ": there is no tensor \"" + text::printable(name) +
                    "\"; " + held_text(name));
    }

    /// The names, types and shapes of up to `most` tensors, those most like `wanted` first.
    std::string held_text(std::string_view wanted = {}, std::size_t most = 10) const
    {
        if (tensors.empty()) return "it has no tensors";
        const auto alike = [&](const tensor_entry& entry) {
            const std::string_view name = entry.name;
            const auto front = std::mismatch(name.begin(), name.end(), wanted.begin(), wanted.end()).first;
            const auto back = std::mismatch(name.rbegin(), name.rend(), wanted.rbegin(), wanted.rend()).first;
            return (front - name.begin()) + (back - name.rbegin());
        };
        std::vector<std::pair<std::ptrdiff_t, const tensor_entry*>> order;
        for (const tensor_entry& each : tensors) order.emplace_back(-alike(each), &each);
        std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        std::string text = "it holds ";
        for (std::size_t i = 0; i < order.size() && i < most; ++i) {
            const tensor_entry& each = *order[i].second;
            const std::string name = each.name.size() <= 100 ? each.name : each.name.substr(0, 97) + "…";
            text += (i == 0 ? "\"" : ", \"") + text::printable(name) + "\" " + text::printable(each.dtype) + " " +
                    shape_text(each.shape);
        }
        return order.size() <= most ? text : text + " and " + std::to_string(order.size() - most) + " more";
    }
};

}  // namespace heed::inline HEED_TARGET::io
