// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <heed/core/errors.hpp>
#include <heed/io/archive.hpp>

/// Quantized weights: converts archives of floats to archives of 8 or 16 bits, and back.
///
///     "W" F32 [M,N]   as   "W" I8 [M,N] and "W.scale" F32 [1,N] or [M,1]:   W ≈ W.scale · W, broadcast
///     W.scale[0,n] = max_m |W[m,n]| / 127,   or W.scale[m,0] = max_n |W[m,n]| / 127
///
/// The error is at most half a scale. Only matrices are quantized to 8 bits. In NumPy, `file["W"] * file["W.scale"]`
/// restores a matrix.
namespace heed::inline HEED_TARGET::io {

/// The suffix of the name of a tensor with the scales of an I8 tensor.
inline constexpr std::string_view scale_suffix = ".scale";

/// Whether a tensor's name is that of a lookup table, which has a scale for each row.
inline bool is_named_as_table(std::string_view name)
{
    const std::string_view last = name.substr(name.find_last_of('.') + 1);
    return last == "embedding" || last == "words" || last == "table" || last == "source" || last == "target";
}

namespace detail {

/// Tensors by name, from an archive that must outlive the map: archive::find takes linear time.
using by_name = std::unordered_map<std::string_view, const tensor_entry*>;
inline by_name names_of(const archive& from)
{
    by_name names;
    for (const tensor_entry& each : from.tensors) names.emplace(each.name, &each);
    return names;
}

/// Calls each(row, column, index) for each element of a matrix.
inline void each_number(const tensor_entry& matrix, auto&& each)
{
    if (matrix.size() == 0) return;  // any number of empty rows
    for (std::size_t m = 0, i = 0; m < matrix.shape[0]; ++m)
        for (std::size_t n = 0; n < matrix.shape[1]; ++n, ++i) each(m, n, i);
}

/// A matrix in 8 bits, and its scales.
inline std::pair<tensor_entry, tensor_entry> entry_in_int8(const tensor_entry& matrix, bool by_row)
{
    const std::vector<float> values = matrix.values<float>();
    std::vector<float> scale(matrix.shape[by_row ? 0 : 1], 0.0f);
    each_number(matrix, [&](std::size_t m, std::size_t n, std::size_t i) {
        if (!std::isfinite(values[i]))
            throw error("tensor \"" + text::printable(matrix.name) + "\" has a number that is not finite, at [" +
                        std::to_string(m) + "," + std::to_string(n) + "]; it cannot be stored in 8 bits");
        float& s = scale[by_row ? m : n];
        s = std::max(s, std::abs(values[i]));
    });
    for (float& s : scale) s = s > 1e-30f ? s / 127.0f : 0.0f;
    std::vector<std::int8_t> bytes(values.size());
    each_number(matrix, [&](std::size_t m, std::size_t n, std::size_t i) {
        const float s = scale[by_row ? m : n];
        const float steps = s > 0 ? std::nearbyint(values[i] / s) : 0.0f;
        bytes[i] = static_cast<std::int8_t>(std::clamp(steps, -127.0f, 127.0f));
    });
    const std::vector<std::size_t> shape =
        by_row ? std::vector<std::size_t>{matrix.shape[0], 1} : std::vector<std::size_t>{1, matrix.shape[1]};
    return {tensor_entry::of(matrix.name, matrix.shape, bytes),
            tensor_entry::of(matrix.name + std::string(scale_suffix), shape, scale)};
}

/// An I8 matrix, multiplied by its scales.
inline tensor_entry entry_in_floats(const by_name& from, const tensor_entry& stored)
{
    const std::string name = "tensor \"" + text::printable(stored.name) + "\"",
                      of_scales = stored.name + std::string(scale_suffix);
    const auto found = from.find(of_scales);
    if (found == from.end())
        throw error(name + " holds I8 " + shape_text(stored.shape) + ", but its scales are missing: there is no \"" +
                    text::printable(of_scales) + "\"");
    const tensor_entry* const scales = found->second;
    if (stored.shape.size() != 2)
        throw error(name + " holds I8 " + shape_text(stored.shape) + ", but 8-bit weights must be matrices");
    const std::size_t M = stored.shape[0], N = stored.shape[1];
    const bool by_row = scales->shape == std::vector<std::size_t>{M, 1};
    if (scales->dtype != "F32" || (!by_row && scales->shape != std::vector<std::size_t>{1, N}))
        throw error(name + " is I8 " + shape_text(stored.shape) + ", but its scales are " + scales->dtype + " " +
                    shape_text(scales->shape) + "; they must be F32, either one per column, [1," + std::to_string(N) +
                    "], or one per row, [" + std::to_string(M) + ",1]");
    const auto bytes = stored.values<std::int8_t>();
    const auto scale = scales->values<float>();
    for (std::size_t i = 0; i < scale.size(); ++i) {
        if (!(scale[i] >= 0) || std::isinf(scale[i]))
            throw error("tensor \"" + text::printable(scales->name) + "\"[" + std::to_string(i) + "] is " +
                        (std::isnan(scale[i]) ? "NaN"
                         : scale[i] < 0       ? "negative"
                                              : "infinite") +
                        "; a scale must be finite and not negative; the file is damaged");
    }
    std::vector<float> values(bytes.size());
    each_number(stored, [&](std::size_t m, std::size_t n, std::size_t i) {
        values[i] = static_cast<float>(bytes[i]) * scale[by_row ? m : n];
    });
    return tensor_entry::of(stored.name, stored.shape, values);
}

}  // namespace detail

/// The archive with its F32 matrices in 8 bits. `by_row(name)`: whether a matrix has a scale for each row, as lookup
/// tables do, or for each column. Throws heed::error if a number is not finite, or if a tensor already has the name of
/// a matrix's scales.
archive in_int8(const archive& from, auto&& by_row)
{
    archive to{{}, from.metadata, from.path};
    const auto named = detail::names_of(from);
    for (const tensor_entry& each : from.tensors) {
        if (each.dtype != dtype_name<float> || each.shape.size() != 2 || each.size() == 0) {
            to.tensors.push_back(each);
            continue;
        }
        const std::string scale = each.name + std::string(scale_suffix);
        if (named.contains(scale))
            throw error("there is a tensor \"" + text::printable(scale) + "\" already, the name that the scales of \"" +
                        text::printable(each.name) + "\" need; rename one of the two");
        auto [bytes, scales] = detail::entry_in_int8(each, by_row(each.name));
        to.tensors.push_back(std::move(bytes));
        to.tensors.push_back(std::move(scales));
    }
    return to;
}
/// As above; lookup tables are recognized by their names.
inline archive in_int8(const archive& from) { return in_int8(from, is_named_as_table); }

/// The archive with its F32 tensors rounded to BF16. Throws heed::error if a finite number overflows BF16.
inline archive in_bfloat16(const archive& from)
{
    archive to = from;
    for (tensor_entry& each : to.tensors) {
        if (each.dtype != dtype_name<float>) continue;
        const std::vector<float> values = each.values<float>();
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (std::isfinite(values[i]) && !std::isfinite(static_cast<float>(bfloat16(values[i]))))
                throw error("tensor \"" + text::printable(each.name) + "\"[" + std::to_string(i) +
                            "] is too large for BF16");
        }
        each = tensor_entry::of<bfloat16>(each.name, each.shape, values);
    }
    return to;
}

/// Whether the archive has 8-bit weights.
inline bool has_int8(const archive& from)
{
    return std::any_of(from.tensors.begin(), from.tensors.end(),
                       [](const tensor_entry& each) { return each.dtype == dtype_name<std::int8_t>; });
}

/// The archive with 8-bit weights converted to F32 and their scales removed; other tensors are unchanged. Throws
/// heed::error if scales are missing, have a wrong shape, or are negative or not finite.
inline archive in_floats(const archive& from)
{
    archive to{{}, from.metadata, from.path};
    const auto named = detail::names_of(from);
    for (const tensor_entry& each : from.tensors) {
        if (each.dtype == dtype_name<std::int8_t>) {
            to.tensors.push_back(detail::entry_in_floats(named, each));
            continue;
        }
        const std::string_view name = each.name;
        if (name.ends_with(scale_suffix)) {
            const auto of = named.find(name.substr(0, name.size() - scale_suffix.size()));
            if (of != named.end() && of->second->dtype == dtype_name<std::int8_t>) continue;
        }
        to.tensors.push_back(each);
    }
    return to;
}

}  // namespace heed::inline HEED_TARGET::io
