// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <array>
#include <cstddef>
#include <cstdio>
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
inline std::string counted(std::size_t number, std::string_view one, std::string_view several = {})
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
    friend class message_text;
    enum { text_alone, number_alone, shape_of_tensor } kind_ = text_alone;
    const void* data_ = nullptr;  // of a text or a shape; the counted noun, or null
    std::size_t size_;            // of a text, or the number, or the number of axes
};

/// Parts joined into one text, cut where it is too long. Not a std::string: each file would compile its functions.
class message_text {
public:
    [[gnu::noinline, gnu::cold]] explicit message_text(std::initializer_list<message_piece> pieces)
    {
        text_[0] = '\0';
        for (const message_piece& piece : pieces) {
            if (piece.kind_ == message_piece::text_alone) {
                add("%.*s", static_cast<int>(piece.size_), static_cast<const char*>(piece.data_));
            } else if (piece.kind_ == message_piece::number_alone) {
                add("%zu", piece.size_);
                if (piece.data_ == nullptr) continue;
                add(" %s%s", static_cast<const char*>(piece.data_), piece.size_ == 1 ? "" : "s");
            } else {
                const auto* const shape = static_cast<const std::size_t*>(piece.data_);
                for (std::size_t i = 0; i < piece.size_; ++i) add("%s%zu", i == 0 ? "[" : ",", shape[i]);
                add("%s", piece.size_ == 0 ? "[]" : "]");
            }
        }
    }

    const char* text() const { return text_; }
    operator message_piece() const { return text_; }

private:
    template <class... Values>
    void add(const char* format, Values... values)
    {
        size_ += static_cast<std::size_t>(std::snprintf(text_ + size_, sizeof text_ - size_, format, values...));
        if (size_ >= sizeof text_) size_ = sizeof text_ - 1;
    }

    char text_[4096];
    std::size_t size_ = 0;
};

[[noreturn, gnu::noinline, gnu::cold]] inline void throw_error(std::initializer_list<message_piece> pieces)
{
    throw error(message_text(pieces).text());
}

[[noreturn, gnu::noinline, gnu::cold]] inline void throw_shape_error(std::initializer_list<message_piece> pieces)
{
    throw shape_error(message_text(pieces).text());
}

/// Is this the name of several things? "the weights", but not "the list of weights".
inline bool is_plural(std::string_view name)
{
    name = name.substr(0, name.find(" of "));
    name = name.substr(0, name.find(" for "));
    return name.ends_with('s') && !name.ends_with("ss") && !name.ends_with("bias");
}

[[noreturn, gnu::noinline, gnu::cold]] inline void throw_wrong_shape(std::string_view where, std::string_view name,
                                                                     message_piece is, message_piece must,
                                                                     std::initializer_list<message_piece> why)
{
    throw_shape_error({where, ": ", name, is_plural(name) ? " are " : " is ", is, " but must be ", must, " (",
                       message_text(why), ")"});
}

/// Not inlined: checks run at every step, but messages are composed only when a check fails.
template <std::size_t N, class... Why>
[[noreturn, gnu::noinline, gnu::cold]] void throw_wrong_shape(std::string_view where, std::string_view name,
                                                              const std::array<std::size_t, N>& is,
                                                              const std::array<std::size_t, N>& must, const Why&... why)
{
    throw_wrong_shape(where, name, is, must, {message_piece(why)...});
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

    [[gnu::noinline, gnu::cold]] message_text text() const
    {
        if (rank == 0) return message_text({name});
        return message_text({name, " ", message_piece(shape.data(), rank < shape.size() ? rank : shape.size())});
    }
};

/// Several named shapes. No templates and no strings: the code that fills it is compiled for every policy.
struct named_shapes {
    std::array<named_shape, 12> all;
    std::size_t count = 0;

    [[gnu::noinline, gnu::cold]] named_shapes(std::initializer_list<named_shape> first)
    {
        for (const named_shape& each : first) all[count++] = each;
    }

    /// Adds one more, if there is room.
    [[gnu::noinline, gnu::cold]] void add(std::string_view name, const std::size_t* shape, std::size_t rank)
    {
        if (count < all.size()) all[count++] = {name, shape, rank};
    }
};

/// Does this message begin with a policy's name? A policy's own check gives the more specific message.
inline bool begins_with_policy(std::string_view message)
{
    for (const std::string_view room : {"score::", "normalize::", "combine::"})
        if (message.starts_with(room)) return true;
    return false;
}

/// Throws "<policy>: <first> does not fit <others> (<found.what()>)" unless `found` names a policy already. `caller`:
/// the signature of a template, "… Policy = heed::score::additive<…>; …".
[[noreturn, gnu::noinline, gnu::cold]] inline void
throw_named_shape_error(const shape_error& found, std::string_view caller, const named_shapes& tensors)
{
    if (found.names_policy || begins_with_policy(found.what())) throw;
    std::string_view policy = caller.substr(caller.find("Policy = ") + 9);
    policy = policy.substr(0, policy.find_first_of("<;]"));
    for (const std::string_view room : {"heed::", HEED_TARGET_NAME "::"})
        if (policy.starts_with(room)) policy.remove_prefix(room.size());
    const named_shape& first = tensors.all[0];
    message_text message({policy, ": ", first.text(), first.name.ends_with('s') ? " do not fit" : " does not fit"});
    for (std::size_t i = 1; i < tensors.count; ++i)
        message = message_text({message, i == 1 ? " " : ", ", tensors.all[i].text()});
    shape_error named(message_text({message, " (", found.what(), ")"}).text());
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
/// numbers and shapes, composed only on failure.
template <std::size_t N, class... Why>
void require_shape(std::string_view where, std::string_view name, const std::array<std::size_t, N>& is,
                   const std::type_identity_t<std::array<std::size_t, N>>& must, const Why&... why)
{
    if (same_shape(is, must)) [[likely]]
        return;
    detail::throw_wrong_shape(where, name, is, must, why...);
}

}  // namespace heed::inline HEED_TARGET
