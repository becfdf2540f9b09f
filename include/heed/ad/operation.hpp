// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <heed/ad/saved_results.hpp>
#include <heed/ad/tape.hpp>
#include <heed/ops/operation.hpp>

/// Any operation on a tape: it computes, and its `backward` is recorded. Shared by all operations.
///
/// If the gradient of a parameter is deferred until all of its uses are known, `ad::go_back(operation, tape, d_y,
/// [saved,] arguments...)` replaces `backward`: products with a matrix (ad/products.hpp) and lookups in a table
/// (ad/lookup.hpp). With several results it is `ad::go_back(operation, tape, results, saved, arguments...)`.
/// `ad::twin(operation, arguments...)` replaces the whole mechanism: for lists of tensors (ad/lists.hpp), and for the
/// loss that overwrites its logits with their gradient (ad/products.hpp).
namespace heed::inline HEED_TARGET::ad {

/// The tape of the first taped argument.
auto& tape_of(const auto& first, const auto&... rest)
{
    if constexpr (requires { first.tape(); }) {
        return first.tape();
    } else {
        return tape_of(rest...);
    }
}

/// A plain argument among taped ones becomes a constant.
template <class T, std::size_t N>
const var<T, N>& on_tape(tape<T>& to, const var<T, N>& x)
{
    (void)to.mine(x);
    return x;
}
template <class T, plain_tensor X>
var<T, rank_of<X>> on_tape(tape<T>& to, const X& x)
{
    using U = element_of<X>;
    static_assert(
        std::is_same_v<U, T> || std::is_same_v<U, plain_number<T>>,
        "heed: an operation takes tensors of one element type; a plain tensor among taped ones has a different one");
    return to.constant(tensor_view<const U, rank_of<X>>(view_of(x)));
}

namespace detail {

using ops::detail::numbers_in;

/// An argument on the tape: a tensor as a variable, a setting as a view.
template <class T, class X>
decltype(auto) recorded([[maybe_unused]] tape<T>& on, const X& x)
{
    if constexpr (tensor<X>) {
        return on_tape(on, x);
    } else if constexpr (requires {
                             x.template as<T>(on);
                         }) {  // settings with elements of a different type than the tape's
        return x.template as<T>(on);
    } else {
        return ops::detail::argument(x);
    }
}

lengths_view kept(auto& on, const lengths_view& x)
{
    return {on.keep(x.data(), x.batch()), x.batch(), x.first_row(), x.heads()};
}
window_view kept(auto& on, const window_view& x)
{
    return {on.keep(x.begin, x.count.batch()), kept(on, x.count), x.width};
}
template <std::size_t N>
boolean_mask_view<N> kept(auto& on, const boolean_mask_view<N>& x)
{
    return {on.keep(x.data(), numbers_in(x.shape())), x.shape()};
}
template <class U>
std::span<const U> kept(auto& on, const std::span<const U>& x)
{
    return {on.keep(x.data(), x.size()), x.size()};
}
decltype(auto) kept([[maybe_unused]] auto& on, const auto& x)
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

/// Does any of these need a gradient?
bool any_wanted(const auto&... x)
{
    bool any = false;
    const auto look = [&](const auto& each) {
        if constexpr (is_var<std::remove_cvref_t<decltype(each)>>) any |= each.wanted();
    };
    (look(x), ...);  // called for each: see var::wanted
    return any;
}

/// The positions of variables in a list of types.
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

/// Arguments, accessed by position. Unlike the elements of a std::tuple, an argument_at is compiled once for all
/// operations.
template <std::size_t place, class X>
struct argument_at {
    const X& x;
};
template <class Places, class... X>
struct arguments_by_place;
template <std::size_t... place, class... X>
struct arguments_by_place<std::index_sequence<place...>, X...> : argument_at<place, X>... {};
template <std::size_t place, class X>
const X& at_place(const argument_at<place, X>& of)
{
    return of.x;
}

/// Adds to the adjoints of the arguments: backward(arguments..., results, derivatives [, saved], adjoints...).
template <class T, class Operation, class Results, class Derivatives, class... X>
void run_backward(tape<T>& on, const Operation& operation, const Results& results, const Derivatives& derivatives,
                  [[maybe_unused]] const T* saved, const X&... x)
{
    using places = variables<X...>;
    const arguments_by_place<std::index_sequence_for<X...>, X...> arguments{{x}...};
    [&]<std::size_t... v>(std::index_sequence<v...>)
    {
        if constexpr (ops::detail::saves<Operation, X...>) {
            operation.backward(ops::detail::argument(x)..., results, derivatives, saved,
                               adjoint_of(on, at_place<places::at[v]>(arguments))...);
        } else {
            operation.backward(ops::detail::argument(x)..., results, derivatives,
                               adjoint_of(on, at_place<places::at[v]>(arguments))...);
        }
    }
    (std::make_index_sequence<places::count>{});
}

/// Runs an operation with one result backward, by its `go_back` or its `backward`.
template <class T, class Operation, std::size_t N, class... X>
void run_back(tape<T>& on, const Operation& operation, const var<T, N>& y, const T* d_y, const T* saved, const X&... x)
{
    if constexpr (requires { go_back(operation, on, d_y, x...); }) {
        go_back(operation, on, d_y, x...);
    } else if constexpr (requires { go_back(operation, on, d_y, saved, x...); }) {
        go_back(operation, on, d_y, saved, x...);
    } else {
        run_backward<T>(on, operation, y.value(), ops::in<T, N>{d_y, y.shape()}, saved, x...);
    }
}

/// Runs an operation with several results backward.
template <class T, class Operation, class... Y, class... X>
void run_back(tape<T>& on, const Operation& operation, const std::tuple<Y...>& results, const T* saved, const X&... x)
{
    constexpr bool own_way = requires { go_back(operation, on, results, saved, x...); };
    [&]<std::size_t... i>(std::index_sequence<i...>)
    {
        const T* const reached[] = {on.reached(std::get<i>(results))...};
        if (((reached[i] == nullptr) && ...)) return;
        if constexpr (own_way) {
            go_back(operation, on, results, saved, x...);
        } else {
            using derivatives = std::tuple<ops::in<T, rank_of<Y>>...>;
            run_backward<T>(on, operation, std::tuple{std::get<i>(results).value()...},
                            derivatives{{reached[i], std::get<i>(results).shape()}...}, saved, x...);
        }
    }
    (std::index_sequence_for<Y...>{});
}

template <class Operation>
inline constexpr bool goes_back = !requires
{
    requires !Operation::differentiable;
};

/// A batch of zero rows as a batch of one row: the size of each row.
template <std::size_t N>
shape_of_rank<N> one_row(shape_of_rank<N> shape)
{
    if constexpr (N > 0) {
        if (shape[0] == 0) shape[0] = 1;
    }
    return shape;
}
template <class X>
auto one_row_of(const X& x)
{
    if constexpr (requires { x.value(); }) {
        return ops::in<element_of<X>, rank_of<X>>{nullptr, one_row(x.shape())};
    } else {
        return ops::detail::argument(x);
    }
}
std::size_t numbers_read(const auto&... x)
{
    std::size_t numbers = 0;
    const auto add = [&](const auto& each) {
        if constexpr (is_var<std::remove_cvref_t<decltype(each)>>) numbers += numbers_in(one_row(each.shape()));
    };
    (add(x), ...);
    return numbers;
}

/// Where a row-wise program stores an operation's results, of `numbers` elements each; null outside such a program.
template <class T, class Operation, std::size_t results, class... X>
auto places_of(tape<T>& on, [[maybe_unused]] const Operation& operation,
               const std::array<std::size_t, results>& numbers, const X&... x)
{
    constexpr bool saves = ops::detail::saves<Operation, X...>;
    constexpr std::size_t count = results + (saves ? 1 : 0);
    if (on.recompute_cache() == nullptr) return typename saved_results<T>::template places<count>{};
    std::array<std::size_t, count> makes{};
    std::copy(numbers.begin(), numbers.end(), makes.begin());
    if constexpr (saves) makes.back() = operation.saved(one_row_of(x)...);
    return on.recompute_cache()->next(numbers_read(x...), makes);
}

template <class T, std::size_t N>
tensor_view<T, N> view_to_write(T* data, const shape_of_rank<N>& shape)
{
    return {data, shape};
}

/// Computes on the tape and records the backward pass; `x` are variables and settings.
template <class T, class Operation, class... X>
auto run(tape<T>& on, const Operation& operation, const X&... x)
{
    const auto shape = operation.shape(ops::detail::argument(x)...);
    const bool wanted = goes_back<Operation> && any_wanted(x...);
    const auto forward = [&](const auto& places, auto... results) -> T* {
        if constexpr (ops::detail::saves<Operation, X...>) {
            T* saved = places.at.back();
            if (saved == nullptr) {
                saved = on.memory().template array_of<T>(operation.saved(ops::detail::argument(x)...));
            }
            if (!places.known) operation.forward(ops::detail::argument(x)..., results..., saved);
            return saved;
        } else {
            if (!places.known) operation.forward(ops::detail::argument(x)..., results...);
            return nullptr;
        }
    };
    if constexpr (ops::detail::is_tuple<std::remove_cvref_t<decltype(shape)>>) {
        return [&]<std::size_t... i>(std::index_sequence<i...>)
        {
            const std::array<std::size_t, sizeof...(i)> row_sizes{numbers_in(one_row(std::get<i>(shape)))...};
            const auto places = places_of(on, operation, row_sizes, x...);
            const auto made = std::tuple{on.make(std::get<i>(shape), wanted, places.at[i])...};
            const auto results = std::tuple{std::get<i>(made).result...};
            if (places.listed != 0) (on.recompute_cache()->made(places.listed, i, std::get<i>(results).slot()), ...);
            const auto saved = forward(places, view_to_write<T>(std::get<i>(made).data, std::get<i>(shape))...);
            if (wanted) {
                on.record([&on, operation, results, saved, ... arguments = kept(on, x)] {
                    run_back(on, operation, results, saved, arguments...);
                });
            }
            return operation.results(std::get<i>(results)...);
        }
        (std::make_index_sequence<std::tuple_size_v<std::remove_cvref_t<decltype(shape)>>>{});
    } else {
        const auto places = places_of(on, operation, std::array{numbers_in(one_row(shape))}, x...);
        auto [y, data] = on.make(shape, wanted, places.at[0]);
        if (places.listed != 0) on.recompute_cache()->made(places.listed, 0, y.slot());
        const auto saved = forward(places, view_to_write<T>(data, shape));
        if constexpr (goes_back<Operation>) {
            if (wanted) {
                on.record(y, [&on, operation, made = y, saved, ... arguments = kept(on, x)](const T* d_y) {
                    run_back(on, operation, made, d_y, saved, arguments...);
                });
            }
        }
        return y;
    }
}

}  // namespace detail

/// Tensors on a tape: an operation computes, and records its backward.
struct taped_family {
    static constexpr family_rank rank = family_rank::taped;

    template <class T, std::size_t N>
    using tensor_type = var<T, N>;

    /// By the operation's `twin` if it has one (found in the variable's namespace), otherwise in the general way.
    template <class Operation, class... X>
    static auto call(const Operation& operation, const X&... x)
    {
        if constexpr (requires { twin(operation, x...); }) {
            return twin(operation, x...);
        } else if constexpr (ops::detail::pieces<Operation, X...>) {
            const auto part = operation.piece(ops::detail::argument(x)...);
            return tape_of(x...).piece(std::get<0>(std::tie(x...)), part.offset, part.shape);
        } else {
            auto& on = tape_of(x...);
            return detail::run(on, operation, detail::recorded(on, x)...);
        }
    }

    /// A constant on the tape of `beside`.
    static auto constant(const auto& beside, const plain_tensor auto& x) { return on_tape(beside.tape(), x); }
};

}  // namespace heed::inline HEED_TARGET::ad

namespace heed::inline HEED_TARGET::detail {

template <class On>
    requires(std::is_same_v<On, std::true_type>)
struct recording<On> {
    using family = ad::taped_family;
};

}  // namespace heed::inline HEED_TARGET::detail
