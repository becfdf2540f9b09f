// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <type_traits>

#include <heed/attention/families.hpp>
#include <heed/attention/normalize_hooks.hpp>
#include <heed/attention/query.hpp>
#include <heed/attention/score_hooks.hpp>
#include <heed/attention/state.hpp>
#include <heed/core/family.hpp>
#include <heed/core/growing.hpp>
#include <heed/core/mask.hpp>
#include <heed/ops/rows.hpp>

namespace heed::ops {

/// y = x at the first known[b] positions of row b, z at the others: x [B,T',N], z [B,T,N] -> [B,T,N], or without N.
///
///     ∂x[b,t] += ∂y[b,t] for t < known[b],  ∂z[b,t] += ∂y[b,t] for the others
///
/// Throws shape_error if a row has more known positions than x or z.
struct join_positions_op : operation<join_positions_op> {
    static auto shape(const auto& x, const auto& z, const lengths_view& known)
    {
        auto must = z.shape;
        must[1] = x.shape[1];
        require_shape("join_positions", "the first argument", x.shape, must, "as the second but for its positions, ",
                      z.shape);
        known.require("join_positions", x.shape[0], std::min(x.shape[1], z.shape[1]));
        return z.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, in<T, R> z, const lengths_view& known, out<T, R> y)
    {
        each_row_of(x.shape, z.shape, known, [&](std::size_t b_x, std::size_t b_y, std::size_t first, std::size_t row) {
            std::copy_n(x.data + b_x, first, y.data + b_y);
            std::copy_n(z.data + b_y + first, row - first, y.data + b_y + first);
        });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> x, in<T, R> z, const lengths_view& known, in<T, R>, in<T, R> d_y, adjoint<T, R> d_x,
                         adjoint<T, R> d_z)
    {
        each_row_of(x.shape, z.shape, known, [&](std::size_t b_x, std::size_t b_y, std::size_t first, std::size_t row) {
            if (d_x) kernels::add(first, d_x.data + b_x, d_y.data + b_y);
            if (d_z) kernels::add(row - first, d_z.data + b_y + first, d_y.data + b_y + first);
        });
    }

private:
    /// f(begin of the row in x, in y, how many numbers of it are x's, how many there are) for each row.
    template <std::size_t R>
    static void each_row_of(const shape_of_rank<R>& x, const shape_of_rank<R>& y, const lengths_view& known,
                            const auto& f)
    {
        const std::size_t N = detail::width_of(y);
        for (std::size_t b = 0; b < y[0]; ++b) f(b * x[1] * N, b * y[1] * N, known[b] * N, y[1] * N);
    }
};
inline constexpr join_positions_op join_positions{};

}  // namespace heed::ops

/// States of a memory that has grown since they were made.
///
/// A position that a state does not remember begins as `start` begins it, with the query that sees it first: no scores
/// before, no coverage, the fertility of its own annotation. What a score makes of several positions, such as
/// the convolution of score::with_location, it makes anew (its hook `grow`).
///
///     past = recall(state.score, at)                       the positions that are remembered
///     past = grow(past, start(memory), at)                 and those that are new
///
/// Sentences that grow side by side differ in length, so a state knows how many positions of each one it remembers.
namespace heed::detail {

/// The tensors of a normalizer's state, or of a score's, that have one number for each position. A state without any
/// is the same for any memory.
template <class State>
inline constexpr bool may_have_positions = !std::is_empty_v<State> && !holds_no_tensors<State> && mappable_state<State>;

/// Tells whether any tensor of a state has another number of positions.
struct differs_in_positions {
    static constexpr bool spares_rows = true;

    std::size_t positions;
    bool& differs;

    template <tensor X>
    visited operator()(const X& x) const
    {
        if constexpr (rank_of < X >> 1) differs = differs || shape_of(x)[1] != positions;
        return {};
    }
};

/// A tensor of a state with the positions of a memory: those that are known from x, the others from what `start` makes.
struct with_begun_positions {
    static constexpr bool spares_rows = true;

    lengths_view known;  // of each row; none: as many as x has
    lengths_view real;   // of the memory
    std::size_t positions;

    template <tensor X, tensor Y>
    X operator()(const X& x, const Y& begun) const
    {
        if constexpr (rank_of<X> < 2 || rank_of<X> != rank_of<Y>) {
            return x;
        } else {
            const auto is = shape_of(x);
            if (shape_of(begun)[1] != positions || (is[1] == positions && known.batch() == 0)) return x;
            const std::size_t B = real.batch();
            auto* const counts = transient_family::take<std::size_t>(B);
            for (std::size_t b = 0; b < B; ++b) {
                counts[b] = known.batch() == 0 ? is[1] : known[b];
                if (counts[b] <= real[b]) continue;
                auto must = is;
                must[1] = positions;
                throw shape_error("attention: the state is " + shape_text(is) + " but must be " + shape_text(must) +
                                  ": it remembers position " + std::to_string(real[b]) + " of row " +
                                  std::to_string(b) + ", but the memory has " + std::to_string(real[b]) +
                                  "; give the state that start() or step() of this memory made");
            }
            return ops::join_positions(x, same_family(x, begun), lengths_view{counts, B});
        }
    }

    /// All positions from what `start` makes, in the family of x.
    template <tensor X, tensor Y>
    X all_of_second(const X& x, const Y& begun) const
    {
        auto* const none = transient_family::take<std::size_t>(real.batch());
        std::fill_n(none, real.batch(), std::size_t{0});
        return ops::join_positions(x, same_family(x, begun), lengths_view{none, real.batch()});
    }
};

/// Has a memory positions that a state does not remember, or the state others? Throws shape_error if they differ and
/// the lengths that the state knows are those of another number of rows.
bool has_grown(const auto& state, const lengths_view& known, const lengths_view& real, std::size_t positions)
{
    bool differs = false;
    for (std::size_t b = 0; b < known.batch(); ++b) differs = differs || b >= real.batch() || known[b] != real[b];
    if (!differs) (void)state.map(differs_in_positions{positions, differs});
    if (differs && known.batch() != 0 && known.batch() != real.batch()) {
        throw shape_error("attention: the state is for " + std::to_string(known.batch()) +
                          " sentences, but the memory has " + std::to_string(real.batch()) +
                          "; select the rows of both");
    }
    return differs;
}

/// A normalizer's state as `start` makes it for a memory.
template <class Score>
auto first_history(const Score& score, const auto& normalize, const auto& memory)
{
    constexpr std::size_t rank = Score::traits.weights == weight_kind::per_position ? 2 : 3;
    shape_of_rank<rank> shape{memory.batch(), memory.positions()};
    if constexpr (Score::traits.weights == weight_kind::per_dimension) shape[2] = memory.width();
    if constexpr (Score::traits.weights == weight_kind::per_group) shape[2] = score.groups();
    return start_of(normalize, [&memory, &shape](double value) { return constant_like(memory.keys, shape, value); });
}

/// A normalizer's state for all positions of a memory.
template <class State>
State grown_history(const auto& score, const auto& normalize, const State& state, const lengths_view& known,
                    const auto& memory)
{
    if constexpr (may_have_positions<State>) {
        if (has_grown(state, known, memory.real, memory.positions()))
            return state.map(with_begun_positions{known, memory.real, memory.positions()},
                             first_history(score, normalize, memory));
    }
    return state;
}

/// A score's state for all positions of a memory. It has been told of the query at `at`.
template <class State>
State grown_past(const auto& score, State state, const lengths_view& known, const auto& memory, const auto& at)
{
    if constexpr (may_have_positions<State>) {
        if (has_grown(state, known, memory.real, memory.positions()))
            return heed::score::over::grow(score, state, heed::score::over::start(score, memory),
                                           with_begun_positions{known, memory.real, memory.positions()}, at);
    }
    return state;
}

/// The lengths that a state knows.
template <class State>
lengths_view known_of(const State& state)
{
    if constexpr (State::has_tensors) {
        return {state.known.data(), state.known.size()};
    } else {
        return {};
    }
}

/// Notes how many positions of a memory a state remembers, where its sentences differ in length.
template <class State>
void know_lengths(State& state, const auto& memory)
{
    if constexpr (State::has_tensors) {
        state.known.clear();
        if constexpr (is_growing<std::remove_cvref_t<decltype(memory.keys)>>) {
            const lengths_view real = memory.real;
            if (differ_in_length(real)) state.known.assign(real.data(), real.data() + real.batch());
        }
    }
}

/// The same for the state in an answer.
template <class Answer>
Answer knowing_lengths(const auto& memory, Answer answer)
{
    know_lengths(answer.state, memory);
    return answer;
}

}  // namespace heed::detail
