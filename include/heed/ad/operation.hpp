// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <heed/ad/tape.hpp>
#include <heed/ops/operation.hpp>

/// Any operation on a tape: it computes, and its `backward` is recorded. Written once for all of them.
///
/// A few operations write their own `ad::twin(operation, arguments...)`, because they do something else than compute
/// and add: products with a parameter and lookups in one, whose gradients wait (ad/products.hpp, ad/lookup.hpp), lists
/// of tensors (ad/lists.hpp), and the loss that writes its gradient over its logits (ad/cross_entropy.hpp).
namespace heed::ad {

/// The tape that the first taped argument is on.
template <class First, class... Rest>
auto& tape_of(const First& first, const Rest&... rest)
{
    if constexpr (requires { first.tape(); }) {
        return first.tape();
    } else {
        return tape_of(rest...);
    }
}

/// A plain argument among taped ones is a constant.
template <class T, std::size_t N>
const var<T, N>& on_tape(tape<T>&, const var<T, N>& x)
{
    return x;
}
template <class T, plain_tensor X>
var<T, rank_of<X>> on_tape(tape<T>& to, const X& x)
{
    static_assert(std::is_same_v<element_of<X>, T>,
                  "heed: an operation takes tensors of one element type; a plain tensor among taped ones has another");
    return to.constant(tensor_view<const T, rank_of<X>>(view_of(x)));
}

namespace detail {

/// An argument as long as it is recorded: a tensor as a variable, a setting in memory of the tape.
template <class T, tensor X>
decltype(auto) recorded(tape<T>& on, const X& x)
{
    return on_tape(on, x);
}
template <class T, class X>
    requires(!tensor<X>)
auto recorded(tape<T>&, const X& x) { return ops::detail::argument(x); }

template <class T>
lengths_view kept(tape<T>& on, const lengths_view& x)
{
    return {on.keep(x.data(), x.batch()), x.batch(), x.first_row()};
}
template <class T>
window_view kept(tape<T>& on, const window_view& x)
{
    return {on.keep(x.begin, x.count.batch()), kept(on, x.count), x.width};
}
template <class T, std::size_t N>
boolean_mask_view<N> kept(tape<T>& on, const boolean_mask_view<N>& x)
{
    return {on.keep(x.data(), tensor_view<const bool, N>{nullptr, x.shape()}.size()), x.shape()};
}
template <class T, class U>
std::span<const U> kept(tape<T>& on, const std::span<const U>& x)
{
    return {on.keep(x.data(), x.size()), x.size()};
}
template <class T, class X>
decltype(auto) kept([[maybe_unused]] tape<T>& on, const X& x)
{
    if constexpr (requires { x.kept(on); }) {
        return x.kept(on);
    } else {
        return (x);
    }
}

template <class X>
inline constexpr bool is_var = false;
template <class T, std::size_t N>
inline constexpr bool is_var<var<T, N>> = true;

/// Does the derivative by any of these matter?
bool any_wanted(const auto&... x)
{
    const auto wanted = [](const auto& each) {
        if constexpr (is_var<std::remove_cvref_t<decltype(each)>>) {
            return each.wanted();
        } else {
            return false;
        }
    };
    return (wanted(x) || ...);
}

/// Which of some types are variables.
template <class... X>
struct variables {
    static constexpr std::size_t count = (std::size_t{is_var<X>} + ... + 0);
    static constexpr std::array<std::size_t, count> at = [] {
        std::array<std::size_t, count> places{};
        std::size_t found = 0, place = 0;
        ((is_var<X> ? void(places[found++] = place++) : void(++place)), ...);
        return places;
    }();
};

template <class T, std::size_t N>
ops::adjoint<T, N> adjoint_of(tape<T>& on, const var<T, N>& x)
{
    return {{on.wanted_adjoint(x), x.shape()}};
}

/// What goes back to the arguments: backward(arguments..., results, derivatives [, saved], adjoints...).
template <class T, class Operation, class... X, class Results, class Derivatives>
void run_backward(tape<T>& on, const Operation& operation, const std::tuple<X...>& arguments, const Results& results,
                  const Derivatives& derivatives, [[maybe_unused]] const T* saved)
{
    using places = variables<X...>;
    [&]<std::size_t... x, std::size_t... v>(std::index_sequence<x...>, std::index_sequence<v...>)
    {
        if constexpr (ops::detail::saves<Operation, X...>) {
            operation.backward(ops::detail::argument(std::get<x>(arguments))..., results, derivatives, saved,
                               adjoint_of(on, std::get<places::at[v]>(arguments))...);
        } else {
            operation.backward(ops::detail::argument(std::get<x>(arguments))..., results, derivatives,
                               adjoint_of(on, std::get<places::at[v]>(arguments))...);
        }
    }
    (std::index_sequence_for<X...>{}, std::make_index_sequence<places::count>{});
}

template <class T, std::size_t N>
ops::in<T, N> reached_of(tape<T>& on, const var<T, N>& y)
{
    return {on.reached(y), y.shape()};
}

template <class Operation>
consteval bool goes_back()
{
    if constexpr (requires { Operation::differentiable; }) {
        return Operation::differentiable;
    } else {
        return true;
    }
}

/// Computes on the tape and records the way back; `x` are variables and settings.
template <class T, class Operation, class... X>
auto run(tape<T>& on, const Operation& operation, const X&... x)
{
    const auto shape = operation.shape(ops::detail::argument(x)...);
    const bool wanted = goes_back<Operation>() && any_wanted(x...);
    const auto forward = [&](auto... results) -> T* {
        if constexpr (ops::detail::saves<Operation, X...>) {
            T* const saved = on.memory().template array_of<T>(operation.saved(ops::detail::argument(x)...));
            operation.forward(ops::detail::argument(x)..., results..., saved);
            return saved;
        } else {
            operation.forward(ops::detail::argument(x)..., results...);
            return nullptr;
        }
    };
    if constexpr (ops::detail::is_tuple<std::remove_cvref_t<decltype(shape)>>) {
        auto made = std::apply([&](const auto&... each) { return std::tuple{on.make(each, wanted)...}; }, shape);
        const auto results = std::apply([](const auto&... y) { return std::tuple{y.result...}; }, made);
        const auto saved = std::apply(
            [&](const auto&... y) {
                return forward(tensor_view<T, rank_of<decltype(y.result)>>{y.data, y.result.shape()}...);
            },
            made);
        if (wanted) {
            on.record([&on, operation, results, saved, kept = std::tuple{detail::kept(on, x)...}] {
                const auto derivatives =
                    std::apply([&](const auto&... y) { return std::tuple{reached_of(on, y)...}; }, results);
                const bool any = std::apply([](const auto&... d) { return ((d.data != nullptr) || ...); }, derivatives);
                if (!any) return;
                const auto values = std::apply([](const auto&... y) { return std::tuple{y.value()...}; }, results);
                run_backward<T>(on, operation, kept, values, derivatives, saved);
            });
        }
        return std::apply([&](const auto&... y) { return operation.results(y...); }, results);
    } else {
        auto [y, data] = on.make(shape, wanted);
        const auto saved =
            forward(tensor_view<T, std::tuple_size_v<std::remove_cvref_t<decltype(shape)>>>{data, shape});
        if constexpr (goes_back<Operation>()) {
            if (wanted) {
                on.record(y, [&on, operation, y = y, saved, kept = std::tuple{detail::kept(on, x)...}](const T* d_y) {
                    const ops::in<T, std::tuple_size_v<std::remove_cvref_t<decltype(shape)>>> derivative{d_y,
                                                                                                         y.shape()};
                    run_backward<T>(on, operation, kept, y.value(), derivative, saved);
                });
            }
        }
        return y;
    }
}

}  // namespace detail

/// Tensors on a tape: an operation computes, and records how to go back.
struct taped_family {
    static constexpr family_rank rank = family_rank::taped;

    template <class T, std::size_t N>
    using tensor_type = var<T, N>;

    /// By the operation's own twin if it has one (found by the variable's namespace), else as all of them.
    template <class Operation, class... X>
    static auto call(const Operation& operation, const X&... x)
    {
        if constexpr (requires { twin(operation, x...); }) {
            return twin(operation, x...);
        } else if constexpr (ops::detail::pieces<Operation, X...>) {
            return piece(operation, x...);
        } else {
            auto& on = tape_of(x...);
            return detail::run(on, operation, detail::recorded(on, x)...);
        }
    }

    /// A constant on the tape that `beside` is on.
    template <class T, std::size_t N, plain_tensor X>
    static auto constant(const var<T, N>& beside, const X& x)
    {
        return on_tape(beside.tape(), x);
    }

private:
    template <class Operation, class First, class... X>
    static auto piece(const Operation& operation, const First& first, const X&... x)
    {
        const auto part = operation.piece(ops::detail::argument(first), ops::detail::argument(x)...);
        return first.tape().piece(first, part.offset, part.shape);
    }
};

}  // namespace heed::ad

namespace heed::detail {

template <class On>
    requires(std::is_same_v<On, std::true_type>)
struct recording<On> {
    using family = ad::taped_family;
};

}  // namespace heed::detail

// A step of attention on the tape.
#include <heed/ad/by_rows.hpp>
