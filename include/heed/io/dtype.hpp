// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>

#include <heed/io/float16.hpp>

/// The number types of files, by the names that safetensors gives them.
///
///     F64 F32 F16 BF16    double, float, float16, bfloat16
///     I64 I32 I16 I8      std::int64_t, …
///     U64 U32 U16 U8      std::uint64_t, …
///     BOOL                bool, one byte
namespace heed::io {

static_assert(std::endian::native == std::endian::little, "heed reads and writes files of numbers on little-endian "
                                                          "machines");

namespace detail {

template <class... Each>
struct type_list {
    template <class T>
    static constexpr bool has = (std::same_as<T, Each> || ...);
};

using stored_types = type_list<double, float, float16, bfloat16, std::int64_t, std::int32_t, std::int16_t, std::int8_t,
                               std::uint64_t, std::uint32_t, std::uint16_t, std::uint8_t, bool>;

}  // namespace detail

/// A number type that files hold: see the table above.
template <class T>
concept storable = detail::stored_types::has<T>;

namespace detail {

template <storable T>
constexpr std::string_view name_of_dtype()
{
    if constexpr (std::same_as<T, bool>) return "BOOL";
    if constexpr (std::same_as<T, float16>) return "F16";
    if constexpr (std::same_as<T, bfloat16>) return "BF16";
    if constexpr (std::floating_point<T>) return sizeof(T) == 8 ? "F64" : "F32";
    if constexpr (std::is_signed_v<T>)
        return sizeof(T) == 8 ? "I64" : sizeof(T) == 4 ? "I32" : sizeof(T) == 2 ? "I16" : "I8";
    return sizeof(T) == 8 ? "U64" : sizeof(T) == 4 ? "U32" : sizeof(T) == 2 ? "U16" : "U8";
}

}  // namespace detail

/// The format's name for T.
template <storable T>
inline constexpr std::string_view dtype_name = detail::name_of_dtype<T>();

/// Every type, for messages.
inline constexpr std::string_view dtype_names = "F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8 and BOOL";

namespace detail {

/// f(std::type_identity<T>{}) for the type of this name; whether there is one.
template <class F, class... Each>
constexpr bool with_type(std::string_view dtype, type_list<Each...>, F&& f)
{
    return ((dtype == dtype_name<Each> ? (f(std::type_identity<Each>{}), true) : false) || ...);
}
constexpr bool with_type(std::string_view dtype, auto&& f) { return detail::with_type(dtype, stored_types{}, f); }

/// How many binary digits a type has in front of its exponent.
template <storable T>
constexpr int digits_of()
{
    if constexpr (std::same_as<T, float16>) return 11;
    if constexpr (std::same_as<T, bfloat16>) return 8;
    return std::numeric_limits<T>::digits;
}

template <class T>
inline constexpr bool is_fraction = std::floating_point<T> || std::same_as<T, float16> || std::same_as<T, bfloat16>;

/// Is every From also a To?
template <storable From, storable To>
constexpr bool holds_every()
{
    if (std::same_as<From, To>) return true;
    if (std::same_as<To, bool> || (is_fraction<From> && !is_fraction<To>)) return false;
    if (std::same_as<From, bool>) return true;
    // The 16 bits differ in both ways: neither holds the other's.
    if (digits_of<From>() > digits_of<To>() || (std::same_as<From, bfloat16> && std::same_as<To, float16>))
        return false;
    return is_fraction<To> || std::is_unsigned_v<From> || std::is_signed_v<To>;
}

/// A From as a To, exactly or rounded to the nearest.
template <storable To, storable From>
constexpr To as_number(From x)
{
    if constexpr (std::same_as<From, To>) {
        return x;
    } else if constexpr (std::same_as<From, float16> || std::same_as<From, bfloat16>) {
        return detail::as_number<To>(static_cast<float>(x));
    } else if constexpr (std::same_as<To, float16> || std::same_as<To, bfloat16>) {
        if constexpr (std::floating_point<From>) {
            return To(x);
        } else {
            return To(static_cast<double>(x));
        }
    } else {
        return static_cast<To>(x);
    }
}

}  // namespace detail

/// Bytes per value of this dtype; none for a dtype that heed does not read.
constexpr std::optional<std::size_t> dtype_size(std::string_view dtype)
{
    std::optional<std::size_t> size;
    detail::with_type(dtype, [&](auto type) { size = sizeof(typename decltype(type)::type); });
    return size;
}

/// Whether every value of the stored dtype is also one of dtype `as`: such values may be read as the latter. F16 and
/// BF16 are floats, F32 is a double, U8 is an I32, and so on; a dtype that heed does not read is only itself.
constexpr bool reads_as(std::string_view stored, std::string_view as)
{
    bool holds = stored == as;
    detail::with_type(stored, [&](auto from) {
        detail::with_type(as, [&](auto to) {
            holds = detail::holds_every<typename decltype(from)::type, typename decltype(to)::type>();
        });
    });
    return holds;
}

}  // namespace heed::io
