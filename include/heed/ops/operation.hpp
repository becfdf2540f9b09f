// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/diagnostics.hpp>
#include <heed/core/mask.hpp>
#include <heed/core/shared_tensor.hpp>
#include <heed/core/tensor.hpp>
#include <heed/core/workspace.hpp>
#include <heed/core/workspace_tensor.hpp>
#include <heed/ops/arguments.hpp>

/// The operations that policies are written in, and how to add your own.
///
/// An operation is a constant function object, `ops::tanh(x)`, never an overload set: an unqualified `tanh(x)` would
/// find xtensor's lazy function, or the C library's. It is one struct: the shape of its result, its computation and its
/// backward. The code that runs it, on owning tensors, in a thread's workspace or on a tape, is shared by all
/// operations, here and in ad/.
///
///     /// y[b,t] = x[b,t,:] · v                      ∂x[b,t,:] += ∂y[b,t] v,  ∂v += Σ ∂y[b,t] x[b,t,:]
///     struct my_matvec_op : heed::ops::operation<my_matvec_op> {
///         static shape_of_rank<2> shape(const auto& x, const auto& v)        // throws shape_error
///         {
///             require_shape("my_matvec", "v", v.shape, {x.shape[2]}, "the size of the last axis of x ", x.shape);
///             return {x.shape[0], x.shape[1]};
///         }
///         template <class T>
///         static void forward(in<T, 3> x, in<T, 1> v, out<T, 2> y);          // writes all of y
///         template <class T>
///         static void backward(in<T, 3> x, in<T, 1> v, in<T, 2> y, in<T, 2> d_y, adjoint<T, 3> d_x,
///                              adjoint<T, 1> d_v);
///     };
///     inline constexpr my_matvec_op my_matvec{};
///
/// All three get the arguments in the order of the call: tensors as views, settings (numbers, lengths, masks, windows,
/// lists) as values or views. `backward` then gets the result, its derivative, and an adjoint for each tensor argument:
/// it *adds* to them, and skips empty ones. At least one is not empty.
///
/// A tensor of a different rank than `forward` declares is rejected at compile time (ops/arguments.hpp). If `forward`
/// is a template over ranks but only some ranks of the first tensor are valid, the operation declares `static constexpr
/// ranks takes{2, 3};`. A setting of a custom type that owns memory has a `view()`, which is passed to the operation,
/// and the view a `kept(tape)`: the same view, of memory that the tape keeps. See ops::expected_words.
///
/// If backward needs more than arguments and result, `saved(arguments...)` returns the number of elements it needs:
/// `forward` gets a pointer to them as its last argument, `backward` after d_y. An operation with several results
/// returns a std::tuple of shapes, takes one `out` for each, and combines the tensors in `results(...)`; `backward`
/// gets tuples of the results and of their derivatives, which are empty for results without a gradient. An operation
/// without a derivative declares `static constexpr bool differentiable = false;` and has no `backward`.
///
/// Families: unary and binary functions (ops/elementwise.hpp), permutations of elements and operations on the rows of
/// scores (ops/rows.hpp).
namespace heed::inline HEED_TARGET::ops {

/// An argument: plain memory with a shape.
template <class T, std::size_t N>
using in = tensor_view<const T, N>;

/// A result to be written.
template <class T, std::size_t N>
using out = tensor_view<T, N>;

/// The adjoint of an argument, to which a derivative is added; empty if it is not required.
template <class T, std::size_t N>
struct adjoint : tensor_view<T, N> {
    explicit operator bool() const { return this->data != nullptr; }
};

namespace detail {

/// Throws shape_error with a message of texts, numbers and shapes; by value: texts of all lengths share one function.
template <class... Pieces>
[[noreturn, gnu::noinline, gnu::cold]] void refuse(Pieces... pieces)
{
    heed::detail::throw_shape_error({pieces...});
}

/// An argument as it is passed to an operation: a tensor, or a setting that owns memory, becomes a view.
template <tensor X>
auto argument(const X& x)
{
    return in<element_of<X>, rank_of<X>>(view_of(x));
}
inline lengths_view argument(const lengths& x) { return x; }
inline window_view argument(const window& x) { return x; }
template <std::size_t N>
boolean_mask_view<N> argument(const boolean_mask<N>& x)
{
    return x;
}
template <class T>
std::span<const T> argument(const std::vector<T>& x)
{
    return {x.data(), x.size()};
}
/// A number of the type that the operation takes: `ops::scale(x, 2)` and `ops::block(x, 0)` need no suffix.
template <class X>
struct number {
    X value;

    template <class U>
        requires(std::is_arithmetic_v<U>)
    constexpr operator U() const { return static_cast<U>(value); }
};
template <class X>
    requires(std::is_arithmetic_v<X>)
number<X> argument(const X& x) { return {x}; }
template <class X>
    requires(!tensor<X> && !std::is_arithmetic_v<X>)
decltype(auto) argument(const X& x)
{
    if constexpr (requires { x.view(); }) {
        return x.view();
    } else {
        return (x);
    }
}

/// The number of elements of a tensor of this shape.
template <std::size_t N>
std::size_t numbers_in(const shape_of_rank<N>& shape)
{
    return tensor_view<const char, N>{nullptr, shape}.size();
}

/// The number of elements at each position: 1 for [B,T], N for [B,T,N].
template <std::size_t R>
constexpr std::size_t width_of(const shape_of_rank<R>& x)
{
    static_assert(R == 2 || R == 3, "heed: an operation on the positions of a batch takes [B,T] or [B,T,N]");
    return R == 3 ? x[R - 1] : 1;
}

/// [B,T] as [B,T,1], and [B,T,N] unchanged: for operations that treat all elements of a position in the same way.
template <std::size_t R>
constexpr shape_of_rank<3> by_position(const shape_of_rank<R>& x)
{
    return {x[0], x[1], width_of(x)};
}

template <class T>
inline constexpr bool is_tuple = false;
template <class... T>
inline constexpr bool is_tuple<std::tuple<T...>> = true;

/// Does the backward pass need intermediate results of the forward pass?
template <class Operation, class... X>
concept saves = requires(const Operation& operation, const X&... x)
{
    operation.saved(argument(x)...);
};

/// Is the result a slice of the first argument, so that no computation is needed?
template <class Operation, class... X>
concept pieces = requires(const Operation& operation, const X&... x)
{
    operation.piece(argument(x)...);
};

/// An uninitialized result of the family, and the view that writes it.
template <class Family, class T>
struct results_of {
    template <std::size_t N>
    static auto make(const shape_of_rank<N>& shape)
    {
        if constexpr (std::is_same_v<Family, plain_family>) {
            return uninitialized<T>(shape);
        } else {
            return workspace_tensor<T, N>(Family::template take<T>(numbers_in(shape)), shape);
        }
    }
    static auto writable(const auto& y)  // allocated above, by this call
    {
        return out<T, rank_of<decltype(y)>>{const_cast<T*>(view_of(y).data), shape_of(y)};
    }
};

/// Computes with elements T, without recording. `a` are the arguments as passed to the operation, so that tensors of
/// several kinds share one instantiation.
template <class Family, class T, class Operation, class... A>
auto compute(const Operation& operation, const A&... a)
{
    using make = results_of<Family, T>;
    constexpr bool saves_numbers = requires { operation.saved(a...); };
    const auto forward = [&](const auto&... y) {
        if constexpr (saves_numbers) {
            scratch here;
            operation.forward(a..., make::writable(y)..., here.take<T>(operation.saved(a...)));
        } else {
            operation.forward(a..., make::writable(y)...);
        }
    };
    const auto shape = operation.shape(a...);
    if constexpr (is_tuple<std::remove_cvref_t<decltype(shape)>>) {
        return [&]<std::size_t... i>(std::index_sequence<i...>)
        {
            return [&](auto... y) {
                forward(y...);
                return operation.results(std::move(y)...);
            }(make::make(std::get<i>(shape))...);
        }
        (std::make_index_sequence<std::tuple_size_v<std::remove_cvref_t<decltype(shape)>>>{});
    } else {
        auto y = make::make(shape);
        forward(y);
        return y;
    }
}

/// A slice of the first argument: shares memory if that is a workspace tensor, otherwise a copy.
template <class Family, class Operation, class First, class... X>
auto copy_piece(const Operation& operation, const First& first, const X&... x)
{
    using T = element_of<First>;
    const auto piece = operation.piece(argument(first), argument(x)...);
    const in<T, std::tuple_size_v<decltype(piece.shape)>> view{view_of(first).data + piece.offset, piece.shape};
    if constexpr (std::is_same_v<Family, plain_family>) {
        return copy_of(view);
    } else {
        return workspace_tensor(view);
    }
}

/// The type of an argument as it is passed to the operation in a family: see arguments.hpp.
template <class Family, class T, class X>
struct argument_type : std::type_identity<std::remove_cvref_t<decltype(argument(std::declval<const X&>()))>> {};
template <class Family, class T, tensor X>
struct argument_type<Family, T, X> : std::type_identity<in<T, rank_of<X>>> {};
template <class Family, class T, class X>
    requires(!tensor<X> && Family::rank == family_rank::taped &&
             requires(const X& x, int& tape) { x.template as<T>(tape); })
struct argument_type<Family, T, X>
    : std::type_identity<decltype(std::declval<const X&>().template as<T>(std::declval<int&>()))> {};

/// The element type that the family computes with.
template <class Family, class... X>
struct element_in_family : std::type_identity<void> {};
template <class Family, class First, class... Rest>
struct element_in_family<Family, First, Rest...> : element_in_family<Family, Rest...> {};
template <class Family, tensor First, class... Rest>
    requires(std::is_same_v<family_of<First>, Family>)
struct element_in_family<Family, First, Rest...> : std::type_identity<element_of<First>> {};

/// The type that x should have had where a tensor of rank N was expected. Declared only.
template <class Family, class T, std::size_t N, class X>
auto of_rank_meant(const X& x) -> std::conditional_t<tensor<X>, typename Family::template tensor_type<T, N>, const X&>;

/// The type that x should have had where a tensor of floating-point numbers was expected. Declared only.
template <class X>
const X& of_floats_meant(const X& x);
template <tensor X>
array<float, rank_of<X>> of_floats_meant(const X& x);

/// Continues with tensors of the expected ranks, after a static_assert has reported the actual ones.
template <class Family, class T, class Meant, class... X, std::size_t... i>
auto call_as_meant(const auto& operation, std::index_sequence<i...>, const X&... x)
{
    constexpr auto meant = Meant::said();
    if constexpr (meant.at == sizeof...(X)) {
        return of_rank_meant<Family, T, 2>(array<T, 2>{});  // any rank: the expected rank is unknown
    } else {
        return operation(of_rank_meant<Family, T, meant.rank[i]>(x)...);
    }
}

}  // namespace detail

/// Contiguous elements of a tensor. Returned by `piece(arguments...)` of an operation that computes nothing: on the
/// tape and in the workspace its result shares the argument's memory.
template <std::size_t N>
struct piece_of {
    std::size_t offset;
    shape_of_rank<N> shape;
};

/// The base class of every operation. The family of the arguments decides how it runs.
template <class Self>
struct operation {
    template <class... X>
    auto operator()(const X&... x) const
    {
        using family = common_family_of<X...>;
        using numbers = typename detail::element_in_family<family, X...>::type;
        const Self& self = static_cast<const Self&>(*this);
        if constexpr (!heed::detail::all_taken<X...>) {
            static_assert(!(heed::detail::lazy_expression<X> || ...), HEED_SAYS_LAZY);
            static_assert(!(heed::detail::vector_of_numbers<X> || ...), HEED_SAYS_VECTOR);
            static_assert((heed::detail::lazy_expression<X> || ...) || (heed::detail::vector_of_numbers<X> || ...) ||
                              heed::detail::one_number_type<X...>,
                          HEED_SAYS_NUMBERS);
            return (*this)(heed::detail::as_meant<typename heed::detail::first_numbers<X...>::type>(x)...);
        } else if constexpr (std::is_void_v<numbers>) {
            static_assert(!std::is_void_v<numbers>, "heed: an operation takes tensors, and none of these is a tensor");
            return 0;
        } else if constexpr (!std::is_floating_point_v<plain_number<numbers>>) {
            static_assert(
                std::is_floating_point_v<plain_number<numbers>>,
                "heed: operations compute with float and double, and these tensors have another element type: convert "
                "them, as in `heed::array<float, 2> x = y;`");
            return (*this)(detail::of_floats_meant(x)...);
        } else if constexpr (!detail::takes<Self, numbers,
                                            typename detail::argument_type<family, numbers, X>::type...>()) {
            using meant =
                detail::what_is_wrong<Self, numbers, typename detail::argument_type<family, numbers, X>::type...>;
            return detail::call_as_meant<family, numbers, meant>(*this, std::index_sequence_for<X...>{}, x...);
        } else if constexpr (family::rank == family_rank::taped) {
            return family::call(self, x...);
        } else if constexpr (detail::pieces<Self, X...>) {
            return detail::copy_piece<family>(self, x...);
        } else {
            return detail::compute<family, numbers>(self, detail::argument(x)...);
        }
    }
};

}  // namespace heed::inline HEED_TARGET::ops
