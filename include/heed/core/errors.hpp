// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <array>
#include <cstddef>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

// The same types for every target (core/target.hpp): an error that one file of a program throws, another may catch.
namespace heed {

/// Every error that heed throws. The message says what was wrong, where, and what would be right.
struct error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A tensor whose shape does not fit. Thrown before anything is written.
struct shape_error : error {
    using error::error;

    bool names_policy = false;  // does the message begin with the policy whose tensor does not fit?
};

}  // namespace heed

namespace heed::inline HEED_TARGET {

/// "[2,3,4]": a shape as messages print it.
template <class Shape>
std::string shape_text(const Shape& shape)
{
    std::string text = "[";
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (axis > 0) text += ',';
        text += std::to_string(shape[axis]);
    }
    return text + "]";
}

/// "1 sentence", "2 sentences". `several`: a plural that does not end in "s".
inline std::string counted(std::size_t number, std::string_view one, std::string_view several = {})
{
    std::string text = std::to_string(number) + ' ';
    text += number == 1 || several.empty() ? one : several;
    return number == 1 || !several.empty() ? text : text + 's';
}

namespace detail {

/// A piece of a message: a text, a number or a shape.
inline void append_text(std::string& message, std::string_view text) { message += text; }
inline void append_text(std::string& message, std::size_t number) { message += std::to_string(number); }
template <std::size_t N>
void append_text(std::string& message, const std::array<std::size_t, N>& shape)
{
    message += shape_text(shape);
}

/// Not inlined: checks run at every step, messages are put together only where something does not fit.
template <std::size_t N, class... Why>
[[noreturn, gnu::noinline, gnu::cold]] void throw_shape_error(std::string_view where, std::string_view name,
                                                              const std::array<std::size_t, N>& is,
                                                              const std::array<std::size_t, N>& must, const Why&... why)
{
    std::string message{where};
    message += ": ";
    message += name;
    message += " is " + shape_text(is) + " but must be " + shape_text(must) + " (";
    (append_text(message, why), ...);
    throw shape_error(message + ")");
}

/// A tensor by name, for a message.
struct named_shape {
    std::string_view name;
    std::array<std::size_t, 4> shape;
    std::size_t rank;  // 0: the name alone is shown

    named_shape() = default;
    named_shape(std::string_view what, const std::size_t* extents, std::size_t axes) : name(what), rank(axes)
    {
        for (std::size_t axis = 0; axis < rank && axis < shape.size(); ++axis) shape[axis] = extents[axis];
    }

    std::string text() const
    {
        std::string text{name};
        for (std::size_t axis = 0; axis < rank && axis < shape.size(); ++axis)
            text.append(axis == 0 ? " [" : ",").append(std::to_string(shape[axis]));
        return rank == 0 ? text : text + "]";
    }
};

/// Several of them. No templates and no strings: what fills it is compiled for every policy.
struct named_shapes {
    std::array<named_shape, 12> all;
    std::size_t count = 0;

    [[gnu::noinline, gnu::cold]] named_shapes(std::initializer_list<named_shape> first)
    {
        for (const named_shape& each : first) all[count++] = each;
    }

    /// One more, as long as there is room.
    [[gnu::noinline, gnu::cold]] void add(std::string_view name, const std::size_t* shape, std::size_t rank)
    {
        if (count < all.size()) all[count++] = {name, shape, rank};
    }
};

/// Does this message begin with a policy's name? A policy that has looked itself says best what it found.
inline bool begins_with_policy(std::string_view message)
{
    for (const std::string_view room : {"score::", "normalize::", "combine::"})
        if (message.starts_with(room)) return true;
    return false;
}

/// Throws "<policy>: <first> does not fit <others> (<what was found>)" unless `found` names a policy already. `caller`:
/// the signature of a template, "… Policy = heed::score::additive<…>; …".
[[noreturn, gnu::noinline, gnu::cold]] inline void
throw_named_shape_error(const shape_error& found, std::string_view caller, const named_shapes& tensors)
{
    if (found.names_policy || begins_with_policy(found.what())) throw;
    std::string_view policy = caller.substr(caller.find("Policy = ") + 9);
    policy = policy.substr(0, policy.find_first_of("<;]"));
    for (const std::string_view room : {"heed::", HEED_TARGET_NAME "::"})
        if (policy.starts_with(room)) policy.remove_prefix(room.size());
    std::string message{policy};
    message.append(": ").append(tensors.all[0].text());
    message.append(tensors.all[0].name.ends_with('s') ? " do not fit" : " does not fit");
    for (std::size_t i = 1; i < tensors.count; ++i) message.append(i == 1 ? " " : ", ").append(tensors.all[i].text());
    shape_error named(message + " (" + found.what() + ")");
    named.names_policy = true;
    throw named;
}

}  // namespace detail

/// a == b, without the call of memcmp that g++ makes of comparing arrays.
template <std::size_t N>
constexpr bool same_shape(const std::array<std::size_t, N>& a, const std::array<std::size_t, N>& b)
{
    bool same = true;
    for (std::size_t axis = 0; axis < N; ++axis) same = same && a[axis] == b[axis];
    return same;
}

/// Throws shape_error "<where>: <name> is [2,3] but must be [2,5] (<why>)" unless the shapes are equal. `why`: texts,
/// numbers and shapes, put together only then.
template <std::size_t N, class... Why>
void require_shape(std::string_view where, std::string_view name, const std::array<std::size_t, N>& is,
                   const std::type_identity_t<std::array<std::size_t, N>>& must, const Why&... why)
{
    if (same_shape(is, must)) [[likely]]
        return;
    detail::throw_shape_error(where, name, is, must, why...);
}

}  // namespace heed::inline HEED_TARGET
