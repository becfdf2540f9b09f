// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <exception>
#include <tuple>
#include <type_traits>
#include <vector>

#include <heed/core/dual_number.hpp>
#include <heed/core/tensor.hpp>

/// Compile-time messages for arguments that are not tensors, and for tensors of different element types: one sentence,
/// with no further errors. Later code uses the tensor that was meant, `as_meant(x)`.
namespace heed::inline HEED_TARGET::detail {

/// An xtensor expression that is not a heed tensor: a lazy expression, a view, or an xarray.
template <class X>
concept lazy_expression = !tensor<X> && std::is_class_v<X> && std::is_base_of_v<xt::xexpression<X>, X>;

template <class X>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;

/// Numbers in a std::vector: not a tensor.
template <class X>
inline constexpr bool vector_of_numbers = false;
template <std::floating_point T>
inline constexpr bool vector_of_numbers<std::vector<T>> = true;

// Macros, since a static assertion takes a literal.
#define HEED_SAYS_LAZY                                                                                                 \
    "heed: this is a lazy xtensor expression (or a view, or an xarray), and heed takes tensors: store it first, as "   \
    "in "                                                                                                              \
    "`heed::array<float, 2> x = a + b;`, or in a policy use heed's operations, such as `ops::add(a, b)`"
#define HEED_SAYS_VECTOR                                                                                               \
    "heed: a std::vector is not a tensor: store its numbers in a `heed::array<float, 1>`, or view them in place "      \
    "with `heed::view_of(x)`, or as a matrix with `heed::view_of(x, rows, columns)`"
#define HEED_SAYS_TAPE_OF_OTHERS                                                                                       \
    "heed: this tape and these tensors have different element types, such as double and float: record a "              \
    "float model on an `ad::tape<float>`, a double model on an `ad::tape<double>`"
#define HEED_SAYS_NUMBERS                                                                                              \
    "heed: these tensors have different element types, such as float and double: use one type; "                       \
    "`heed::array<float, 2> x = y;` converts"

/// The element type for comparisons: for dual numbers, the type of their parts; void if X is not a tensor.
template <class X>
struct numbers_in {
    using type = void;
};
template <tensor X>
struct numbers_in<X> {
    using type = plain_number<element_of<X>>;
};

/// The element type of the first tensor among these.
template <class... X>
struct first_numbers {
    using type = void;
};
template <class First, class... Rest>
struct first_numbers<First, Rest...> : first_numbers<Rest...> {};
template <tensor First, class... Rest>
struct first_numbers<First, Rest...> : numbers_in<First> {};

/// Do all tensors among these have elements of type T?
template <class T, class... X>
inline constexpr bool numbers_are = ((std::is_void_v<typename numbers_in<X>::type> ||
                                      std::is_same_v<typename numbers_in<X>::type, T>)&&...);
template <class... X>
inline constexpr bool one_number_type = numbers_are<typename first_numbers<X...>::type, X...>;

/// Can heed use these arguments? True if none is a lazy expression or a vector, and the element types agree.
template <class... X>
inline constexpr bool all_taken = one_number_type<X...> && !((lazy_expression<X> || vector_of_numbers<X>) || ...);

/// The tensor of elements T that x should have been stored in. Declared only.
template <class T, class X>
struct meant_by {
    using type = const X&;
};
template <class T, lazy_expression X>
struct meant_by<T, X> {
    using type = array<T, std::tuple_size_v<typename X::shape_type>>;
};
template <class T, std::floating_point U>
struct meant_by<T, std::vector<U>> {
    using type = array<T, 1>;
};
template <class T, tensor X>
    requires(!std::is_same_v<typename numbers_in<X>::type, T>)
struct meant_by<T, X> {
    using type = array<T, rank_of<X>>;
};
template <class T, class X>
typename meant_by<T, X>::type as_meant(const X& x);

/// x if it is right; otherwise the tensor that was meant, so that the static assertion remains the only error.
template <bool right, class Meant, class X>
    requires(right)
const X& meant_unless(const X& x) { return x; }
template <bool right, class Meant, class X>
    requires(!right)
Meant meant_unless(const X&)
{
    std::terminate();  // never compiled: the caller has rejected x
}

}  // namespace heed::inline HEED_TARGET::detail

/// xtensor functions and operators on workspace and taped tensors, which xtensor does not know: a policy uses heed's
/// operations. (On owning tensors they make a lazy expression, which the next operation rejects.)
namespace heed::inline HEED_TARGET::detail::not_of_xtensor {

/// Base of workspace and taped tensors, so that argument-dependent lookup finds these functions.
struct words {};

#define HEED_SAYS_OPS                                                                                                  \
    "heed: xtensor's functions and operators do not support workspace or taped tensors: in a policy use heed's "       \
    "operations, `ops::tanh(x)`, `ops::add(a, b)`, `ops::multiply(a, b)`, `ops::scale(x, 2)`, which are "              \
    "differentiable"

template <class X>
concept word = std::derived_from<X, words>;

#define HEED_NOT_OF_XTENSOR(sign)                                                                                      \
    template <class X, class Y>                                                                                        \
        requires(word<X> || word<Y>)                                                                                   \
    auto operator sign(const X& x, const Y& y)                                                                         \
    {                                                                                                                  \
        static_assert(!word<X> && !word<Y>, HEED_SAYS_OPS);                                                            \
        if constexpr (word<X>) {                                                                                       \
            return x;                                                                                                  \
        } else {                                                                                                       \
            return y;                                                                                                  \
        }                                                                                                              \
    }
HEED_NOT_OF_XTENSOR(+)
HEED_NOT_OF_XTENSOR(-)
HEED_NOT_OF_XTENSOR(*)
HEED_NOT_OF_XTENSOR(/)
#undef HEED_NOT_OF_XTENSOR

}  // namespace heed::inline HEED_TARGET::detail::not_of_xtensor

// The second name is for `xt::tanh(x)`.
#define HEED_NOT_OF_XTENSOR(name)                                                                                      \
    namespace heed::inline HEED_TARGET::detail::not_of_xtensor {                                                       \
    template <word X>                                                                                                  \
    X name(const X& x, const auto&...)                                                                                 \
    {                                                                                                                  \
        static_assert(!word<X>, HEED_SAYS_OPS);                                                                        \
        return x;                                                                                                      \
    }                                                                                                                  \
    }                                                                                                                  \
    namespace xt {                                                                                                     \
    using heed::detail::not_of_xtensor::name;                                                                          \
    }
HEED_NOT_OF_XTENSOR(abs)
HEED_NOT_OF_XTENSOR(exp)
HEED_NOT_OF_XTENSOR(log)
HEED_NOT_OF_XTENSOR(maximum)
HEED_NOT_OF_XTENSOR(mean)
HEED_NOT_OF_XTENSOR(minimum)
HEED_NOT_OF_XTENSOR(pow)
HEED_NOT_OF_XTENSOR(sqrt)
HEED_NOT_OF_XTENSOR(square)
HEED_NOT_OF_XTENSOR(sum)
HEED_NOT_OF_XTENSOR(tanh)
HEED_NOT_OF_XTENSOR(transpose)
#undef HEED_NOT_OF_XTENSOR
#undef HEED_SAYS_OPS
