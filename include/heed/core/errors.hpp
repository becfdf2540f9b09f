// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/compiled.hpp>

#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

// The same types for every target (core/target.hpp): one file of a program can catch an error that another file throws.
namespace heed {

/// Every error that heed throws. The message states the mistake, its place, and the expected value.
struct error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A tensor with the wrong shape. Thrown before anything is written.
struct shape_error : error {
    using error::error;

    bool names_policy = false;  // does the message begin with the name of a policy?
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
inline std::string counted(std::uint64_t number, std::string_view one, std::string_view several = {})
{
    std::string text = std::to_string(number) + ' ';
    text += number == 1 || several.empty() ? one : several;
    return number == 1 || !several.empty() ? text : text + 's';
}

namespace detail {

/// A count with its noun: "1 row", "2 rows".
struct number_of {
    std::size_t number;
    const char* one;
};

/// A part of a message: a text, a number, a counted noun or a shape. Not a template: the code that composes messages is
/// compiled once.
class message_piece {
public:
    message_piece(std::string_view text) : data_(text.data()), size_(text.size()) {}
    message_piece(const char* text) : message_piece(std::string_view(text)) {}
    message_piece(const std::string& text) : message_piece(std::string_view(text)) {}
    message_piece(std::size_t number) : kind_(number_alone), size_(number) {}
    message_piece(const number_of& those) : kind_(number_alone), data_(those.one), size_(those.number) {}
    template <std::size_t N>
    message_piece(const std::array<std::size_t, N>& shape) : message_piece(shape.data(), N)
    {}
    message_piece(const std::size_t* shape, std::size_t rank) : kind_(shape_of_tensor), data_(shape), size_(rank) {}

private:
    friend struct message_text;
    enum { text_alone, number_alone, shape_of_tensor } kind_ = text_alone;
    const void* data_ = nullptr;  // of a text or a shape; the counted noun, or null
    std::size_t size_;            // of a text, or the number, or the number of axes
};

[[noreturn, gnu::cold]] HEED_COMPILED_FUNCTION void throw_error(std::initializer_list<message_piece> pieces);

[[noreturn, gnu::cold]] HEED_COMPILED_FUNCTION void throw_shape_error(std::initializer_list<message_piece> pieces);

/// "<where>: <name> is [2,3] but must be [2,5] (<why>)". `rank`: of both shapes.
[[noreturn, gnu::cold]] HEED_COMPILED_FUNCTION void throw_wrong_shape(std::string_view where, std::string_view name,
                                                                      const std::size_t* is, const std::size_t* must,
                                                                      std::size_t rank,
                                                                      std::initializer_list<message_piece> why);

/// Not inlined: checks run at every step, but messages are composed only when a check fails. `why` by value: texts of
/// all lengths share one function.
template <class... Why>
[[noreturn, gnu::noinline, gnu::cold]] void throw_wrong_shape(std::string_view where, std::string_view name,
                                                              const std::size_t* is, const std::size_t* must,
                                                              std::size_t rank, Why... why)
{
    throw_wrong_shape(where, name, is, must, rank, std::initializer_list<message_piece>{message_piece(why)...});
}

/// A tensor by name, for a message.
struct named_shape {
    std::string_view name;
    std::array<std::size_t, 4> shape;
    std::size_t rank;  // 0: the name alone is shown

    named_shape() = default;
    named_shape(std::string_view what, const std::size_t* extents, std::size_t axes) : name(what), rank(axes)
    {
        if (rank > shape.size()) rank = shape.size();
        for (std::size_t axis = 0; axis < rank; ++axis) shape[axis] = extents[axis];
    }
};

/// Several named shapes. No templates and no strings: the code that fills it is compiled for every policy.
struct named_shapes {
    std::array<named_shape, 12> all;
    std::size_t count = 0;

    /// Adds one more, if there is room.
    [[gnu::cold]] HEED_COMPILED_FUNCTION void add(std::string_view name, const std::size_t* shape, std::size_t rank);
};

/// Throws "<policy>: <first> does not fit <others> (<found.what()>)" unless `found` names a policy already. The first
/// and some others are `tensors`, the rest `parameters`. `caller`: the signature of a template, "… Policy =
/// heed::score::additive<…>; …".
[[noreturn, gnu::cold]] HEED_COMPILED_FUNCTION void throw_named_shape_error(const shape_error& found,
                                                                            const char* caller,
                                                                            std::initializer_list<named_shape> tensors,
                                                                            const named_shapes& parameters);

#if !defined(HEED_CALLS_COMPILED) || defined(HEED_DEFINES_COMPILED)
/// Parts joined into one text, cut where it is too long. Neither a std::string nor a std::string_view composes it: each
/// file would compile their functions.
struct message_text {
    char text[4096];
    std::size_t size = 0;

    [[gnu::cold]] HEED_COMPILED_FUNCTION void add(std::initializer_list<message_piece> pieces);
    [[gnu::cold, gnu::format(printf, 2, 3)]] HEED_COMPILED_FUNCTION void print(const char* format, ...);
};

HEED_COMPILED_FUNCTION void message_text::print(const char* format, ...)
{
    std::va_list values;
    va_start(values, format);
    size += static_cast<std::size_t>(std::vsnprintf(text + size, sizeof text - size, format, values));
    va_end(values);
    if (size >= sizeof text) size = sizeof text - 1;
}

HEED_COMPILED_FUNCTION void message_text::add(std::initializer_list<message_piece> pieces)
{
    for (const message_piece& piece : pieces) {
        const auto* const words = static_cast<const char*>(piece.data_);
        if (piece.kind_ == message_piece::text_alone) {
            print("%.*s", static_cast<int>(piece.size_), words);
        } else if (piece.kind_ == message_piece::number_alone) {
            print("%zu", piece.size_);
            if (words != nullptr) print(" %s%s", words, piece.size_ == 1 ? "" : "s");
        } else {
            const auto* const shape = static_cast<const std::size_t*>(piece.data_);
            print("[");
            for (std::size_t i = 0; i < piece.size_; ++i) print(i == 0 ? "%zu" : ",%zu", shape[i]);
            print("]");
        }
    }
}

HEED_COMPILED_FUNCTION void throw_error(std::initializer_list<message_piece> pieces)
{
    message_text message;
    message.add(pieces);
    throw error(message.text);
}

HEED_COMPILED_FUNCTION void throw_shape_error(std::initializer_list<message_piece> pieces)
{
    message_text message;
    message.add(pieces);
    throw shape_error(message.text);
}

HEED_COMPILED_FUNCTION void throw_wrong_shape(std::string_view where, std::string_view name, const std::size_t* is,
                                              const std::size_t* must, std::size_t rank,
                                              std::initializer_list<message_piece> why)
{
    // Is this the name of several things? "the weights", but not "the list of weights".
    std::size_t end = 0;
    const auto is_next = [&](const char* text, std::size_t size) {
        return name.size() - end >= size && std::memcmp(name.data() + end, text, size) == 0;
    };
    while (end < name.size() && !is_next(" of ", 4) && !is_next(" for ", 5)) ++end;
    const char* const last = name.data() + end;
    const bool plural = end > 0 && last[-1] == 's' && (end < 2 || last[-2] != 's') &&
                        (end < 4 || std::memcmp(last - 4, "bias", 4) != 0);
    message_text text;
    text.add(why);
    throw_shape_error({where, ": ", name, plural ? " are " : " is ", message_piece(is, rank), " but must be ",
                       message_piece(must, rank), " (", text.text, ")"});
}

HEED_COMPILED_FUNCTION void named_shapes::add(std::string_view name, const std::size_t* shape, std::size_t rank)
{
    if (count < all.size()) all[count++] = {name, shape, rank};
}

HEED_COMPILED_FUNCTION void throw_named_shape_error(const shape_error& found, const char* caller,
                                                    std::initializer_list<named_shape> tensors,
                                                    const named_shapes& parameters)
{
    // A policy's own check gives the more specific message.
    const char* const why = found.what();
    if (found.names_policy || std::strncmp(why, "score::", 7) == 0 || std::strncmp(why, "normalize::", 11) == 0 ||
        std::strncmp(why, "combine::", 9) == 0)
        throw;
    constexpr std::string_view rooms[] = {"Policy = ", "heed::", HEED_TARGET_NAME "::"};
    const char* policy = std::strstr(caller, rooms[0].data());
    for (const std::string_view room : rooms)
        if (std::strncmp(policy, room.data(), room.size()) == 0) policy += room.size();
    message_text message;
    message.print("%.*s: ", static_cast<int>(std::strcspn(policy, "<;]")), policy);
    const char* const fits = tensors.begin()->name.ends_with('s') ? " do not fit" : " does not fit";
    const std::size_t first = tensors.size(), count = first + parameters.count;
    for (std::size_t i = 0; i < count; ++i) {
        const named_shape& each = i < first ? tensors.begin()[i] : parameters.all[i - first];
        message.add({each.name, each.rank == 0 ? "" : " ",
                     each.rank == 0 ? message_piece("") : message_piece(each.shape.data(), each.rank),
                     i == 0 ? fits : "",
                     i + 1 == count ? ""
                     : i == 0       ? " "
                                    : ", "});
    }
    message.add({" (", why, ")"});
    shape_error named(message.text);
    named.names_policy = true;
    throw named;
}
#endif

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
/// numbers and shapes, composed only on failure.
template <std::size_t N, class... Why>
void require_shape(std::string_view where, std::string_view name, const std::array<std::size_t, N>& is,
                   const std::type_identity_t<std::array<std::size_t, N>>& must, const Why&... why)
{
    if (same_shape(is, must)) [[likely]]
        return;
    detail::throw_wrong_shape(where, name, is.data(), must.data(), N, why...);
}

}  // namespace heed::inline HEED_TARGET
