// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention/drawn.hpp>
#include <heed/attention/masks.hpp>
#include <heed/core/errors.hpp>
#include <heed/heads/multi_head.hpp>
#include <heed/kernels/dot.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/all_pairs.hpp>
#include <heed/ops/by_rows.hpp>
#include <heed/ops/rows.hpp>
#include <heed/simd/place.hpp>

namespace heed::ops {

/// y[g] = Σ_h P[h,g] x[h], heads mixed number by number: x [n,R,T], P [n,m] -> [m,R,T].
///
///     ∂x[h] += Σ_g P[h,g] ∂y[g],  ∂P[h,g] += x[h] · ∂y[g]
struct mix_heads_op : operation<mix_heads_op> {
    static shape_of_rank<3> shape(const auto& x, const auto& P)
    {
        require_shape("mix_heads", "the matrix", P.shape, shape_of_rank<2>{x.shape[0], P.shape[1]},
                      "a row for each head of ", x.shape);
        return {P.shape[1], x.shape[1], x.shape[2]};
    }

    template <class T>
    static void forward(in<T, 3> x, in<T, 2> P, out<T, 3> y)
    {
        const std::size_t n = P.shape[0], m = P.shape[1], size = x.shape[1] * x.shape[2];
        std::fill_n(y.data, y.size(), T(0));
        each_piece(size, [&](std::size_t at, std::size_t count) {
            for (std::size_t g = 0; g < m; ++g)
                for (std::size_t h = 0; h < n; ++h)
                    kernels::add_scaled(count, y.data + g * size + at, P.data[h * m + g], x.data + h * size + at);
        });
    }

    template <class T>
    static void backward(in<T, 3> x, in<T, 2> P, in<T, 3>, in<T, 3> d_y, adjoint<T, 3> d_x, adjoint<T, 2> d_P)
    {
        const std::size_t n = P.shape[0], m = P.shape[1], size = x.shape[1] * x.shape[2];
        each_piece(size, [&](std::size_t at, std::size_t count) {
            for (std::size_t h = 0; h < n; ++h) {
                for (std::size_t g = 0; g < m; ++g) {
                    const T* const d = d_y.data + g * size + at;
                    if (d_x) kernels::add_scaled(count, d_x.data + h * size + at, P.data[h * m + g], d);
                    if (d_P) d_P.data[h * m + g] += kernels::dot(count, x.data + h * size + at, d);
                }
            }
        });
    }

private:
    /// f(first, count): so few numbers of all heads that they stay in the cache.
    static void each_piece(std::size_t size, const auto& f)
    {
        constexpr std::size_t piece = 512;
        for (std::size_t at = 0; at < size; at += piece) f(at, std::min(piece, size - at));
    }
};
inline constexpr mix_heads_op mix_heads{};

/// y = x[:, first … last − 1, :], some steps of every row: x [B,S,N] -> [B,last − first,N].
///
///     ∂x[:, first + s, :] += ∂y[:, s, :]
struct steps_between_op : move_operation<steps_between_op, std::size_t, std::size_t> {
    static constexpr ranks takes{3, 3};

    static shape_of_rank<3> shape(const auto& x, std::size_t first, std::size_t last)
    {
        if (first > last || last > x.shape[1]) {
            throw shape_error("steps_between: steps " + std::to_string(first) + " to " + std::to_string(last) + " of " +
                              shape_text(x.shape) + ", which has " + std::to_string(x.shape[1]));
        }
        return {x.shape[0], last - first, x.shape[2]};
    }

    static void each_move(const auto& x, std::size_t first, std::size_t last, auto move)
    {
        const std::size_t S = x[1], N = x[2], n = last - first;
        for (std::size_t b = 0; b < x[0]; ++b) move((b * S + first) * N, b * n * N, n * N);
    }
};
inline constexpr steps_between_op steps_between{};

}  // namespace heed::ops

/// Heads that exchange scores and weights.
namespace heed {

namespace detail {

/// What all blocks of queries of talking heads share.
template <class Scores, class Normalize, class Keys, class Values, class Mixing>
struct talking_source {
    Scores scores;        // of each head
    Normalize normalize;  // of each head
    Keys keys;            // of each head [B,T,K]
    Values values;        // of each head [B,T,V]
    Mixing of_scores;     // P_l [n,n]
    Mixing of_weights;    // P_w [n,n]

    auto map(const auto& row, const auto& whole) const
    {
        auto e = detail::each_of(scores, [&](auto h) { return map_parameters(scores[h], whole); });
        auto n = detail::each_of(normalize, [&](auto h) { return map_parameters(normalize[h], whole); });
        auto k = detail::each_of(keys, [&](auto h) { return row(keys[h]); });
        auto v = detail::each_of(values, [&](auto h) { return row(values[h]); });
        auto l = whole(of_scores);
        auto w = whole(of_weights);
        return talking_source<decltype(e), decltype(n), decltype(k), decltype(v), decltype(l)>{
            std::move(e), std::move(n), std::move(k), std::move(v), std::move(l), std::move(w)};
    }
    void visit(const auto& row, const auto& whole) const
    {
        for (const auto& e : scores) (void)map_parameters(e, whole);
        for (const auto& n : normalize) (void)map_parameters(n, whole);
        for (const auto& x : keys) (void)row(x);
        for (const auto& x : values) (void)row(x);
        (void)whole(of_scores);
        (void)whole(of_weights);
    }
};
template <class Scores, class Normalize, class Keys, class Values, class Mixing>
talking_source(Scores, Normalize, Keys, Values, Mixing, Mixing)
    -> talking_source<Scores, Normalize, Keys, Values, Mixing>;

/// A block of queries: the input of a program by rows, see ops/by_rows.hpp.
template <class Source, class Queries, class Mask>
struct talking_input {
    using element = element_of<decltype(Source::of_scores)>;
    static constexpr bool shared = false;

    Source of;
    Queries queries;         // [B,s,n·K], projected
    lengths_view real;       // of each row
    Mask mask;               // what the block sees
    std::size_t first;       // number of the block's first query, counted by the state
    std::size_t first_here;  // and among the queries that are asked together
    std::size_t steps;       // how many these are

    auto map(const auto& row, const auto& whole) const
    {
        auto s = of.map(row, whole);
        auto q = row(queries);
        auto m = mask.map(row);
        return talking_input<decltype(s), decltype(q), decltype(m)>{
            std::move(s), std::move(q), row.part(real), std::move(m), first, first_here, steps};
    }
    void visit(const auto& row, const auto& whole) const
    {
        of.visit(row, whole);
        (void)row(queries);
    }
};
template <class Source, class Queries, class Mask>
talking_input(Source, Queries, lengths_view, Mask, std::size_t, std::size_t, std::size_t)
    -> talking_input<Source, Queries, Mask>;

/// A mask of lengths, or none.
template <class Mask>
auto if_lengths(const Mask& mask)
{
    if constexpr (std::is_convertible_v<const Mask&, lengths_view>) {
        return lengths_view(mask);
    } else {
        return no_mask{};
    }
}

/// Masks of a block. `hide(in, head, positions, seen)` writes 0 where a query of the block [B·s,positions] does not see
/// a key; `only_lengths`: there is nothing to hide but padding; `by_head`: each head has a mask of its own.
struct block_sees_all {
    static constexpr bool only_lengths = true, is_causal = false, by_head = false;
    block_sees_all map(const auto&) const { return {}; }
};
struct block_is_causal : block_sees_all {
    static constexpr bool is_causal = true;
    block_is_causal map(const auto&) const { return {}; }
};
/// Truth values [B,T] for all queries, or [B,s,T] with a row for each of the block's.
template <std::size_t N>
struct block_is_drawn {
    static constexpr bool only_lengths = false, is_causal = false, by_head = false;
    boolean_mask_view<N> drawn;

    block_is_drawn map(const auto& row) const { return {row.part(drawn)}; }
    void hide(const auto& in, std::size_t, std::size_t positions, std::uint8_t* seen) const
    {
        const auto [B, S, width] = shape_of(in.queries);
        for (std::size_t i = 0; i < B * S; ++i)
            for (std::size_t t = 0; t < positions; ++t)
                seen[i * positions + t] &= drawn[(N == 3 ? i : i / S) * drawn.shape()[N - 1] + t];
    }
};
/// A predicate over places.
template <class Mask>
struct block_of_places {
    static constexpr bool only_lengths = false, is_causal = false, by_head = true;
    Mask mask;

    block_of_places map(const auto&) const { return *this; }
    void hide(const auto& in, std::size_t head, std::size_t positions, std::uint8_t* seen) const
    {
        const scratch here;
        const auto [B, S, width] = shape_of(in.queries);
        const places_of_queries<const Mask&> all{mask, in.first - in.first_here, in.steps, positions, head};
        const auto rows = detail::drawn(all, in.real, in.first_here, S);
        for (std::size_t i = 0; i < B * S * positions; ++i) seen[i] &= rows[i];
    }
};
/// Both.
template <class A, class B>
struct block_sees_both {
    static constexpr bool only_lengths = A::only_lengths && B::only_lengths, is_causal = A::is_causal || B::is_causal,
                          by_head = A::by_head || B::by_head;
    A a;
    B b;

    auto map(const auto& row) const
    {
        auto x = a.map(row);
        auto y = b.map(row);
        return block_sees_both<decltype(x), decltype(y)>{std::move(x), std::move(y)};
    }
    void hide(const auto& in, std::size_t head, std::size_t positions, std::uint8_t* seen) const
    {
        if constexpr (!A::only_lengths) a.hide(in, head, positions, seen);
        if constexpr (!B::only_lengths) b.hide(in, head, positions, seen);
    }
};
template <class A, class B>
block_sees_both(A, B) -> block_sees_both<A, B>;

/// The contexts [B,s,n·V] of a block, and the mixed weights [B,n,s·T] if they are wanted.
template <class Context, class Weights>
struct talking_result {
    Context context;
    Weights weights;

    auto map(const auto& f, const auto&... others) const
    {
        auto c = f(context, others.context...);
        auto w = f(weights, others.weights...);
        return talking_result<decltype(c), decltype(w)>{std::move(c), std::move(w)};
    }
};
template <class Context, class Weights>
talking_result(Context, Weights) -> talking_result<Context, Weights>;

template <bool with_weights>
struct talk {
    auto operator()(const auto& in) const
    {
        using T = element_of<decltype(in.of.of_scores)>;
        using mask_type = std::remove_cvref_t<decltype(in.mask)>;
        const std::size_t n = in.of.scores.size(), B = shape_of(in.queries)[0], S = shape_of(in.queries)[1],
                          all_positions = shape_of(in.of.keys[0])[1], positions = reach(in, all_positions);
        const auto queries = ops::split(in.queries, n);
        std::vector<decltype(score_of(in, queries, 0, positions))> scores;
        for (std::size_t h = 0; h < n; ++h) scores.push_back(score_of(in, queries, h, positions));
        const auto mixed = ops::mix_heads(ops::stack(scores), in.of.of_scores);  // [n,B·s,T]

        auto* const rows = transient_family::take<std::size_t>(B * S);
        for (std::size_t i = 0; i < B * S; ++i) {
            const std::size_t s = in.first_here + i % S, real = in.real[i / S];
            rows[i] = !mask_type::is_causal ? real : real + s + 1 > in.steps ? real + s + 1 - in.steps : 0;
        }
        const lengths_view real{rows, B * S};
        using family = family_of<decltype(mixed)>;
        const auto weighed_by = [&](std::size_t g, const auto& masks) {
            const moment<std::remove_cvref_t<decltype(in.queries)>, std::remove_cvref_t<decltype(masks)>> at{
                real, 0, in.queries, masks, g};
            return weigh(in.of.normalize[g], ops::block(mixed, g), no_state{}, at);
        };
        const auto weighed = [&](const auto& masks_of_head) {
            std::vector<decltype(weighed_by(0, masks_of_head(0)))> all;
            for (std::size_t g = 0; g < n; ++g) all.push_back(weighed_by(g, masks_of_head(g)));
            return ops::mix_heads(ops::stack(all), in.of.of_weights);
        };
        const auto weights = [&] {
            if constexpr (mask_type::only_lengths) {
                return weighed([](std::size_t) { return no_masks{}; });
            } else {
                const auto drawn = [&](std::size_t g) {
                    auto* const seen = transient_family::take<std::uint8_t>(B * S * positions);
                    std::fill_n(seen, B * S * positions, std::uint8_t{1});
                    in.mask.hide(in, g, positions, seen);
                    return masks_of<family, T, false>(no_mask{}, boolean_mask_view<2>{seen, {B * S, positions}},
                                                      unchanged{});
                };
                if constexpr (mask_type::by_head) {
                    return weighed(drawn);
                } else {
                    return weighed([all = drawn(0)](std::size_t) { return all; });
                }
            }
        }();
        std::vector<decltype(ops::weighted_sums(ops::block(weights, 0), cut(in, in.of.values[0], 0)))> contexts;
        for (std::size_t h = 0; h < n; ++h)
            contexts.push_back(ops::weighted_sums(ops::block(weights, h), cut(in, in.of.values[h], positions)));
        auto all = ops::join(contexts);
        // No rows do not tell how many queries they would have had.
        if (B == 0) all = constant_like(all, shape_of_rank<3>{0, S, shape_of(all)[2]}, 0.0);
        if constexpr (with_weights) {
            auto by_row = ops::swap_axes(ops::reshaped(weights, shape_of_rank<3>{n, B, S * positions}));  // [B,n,S·T]
            return talking_result{std::move(all), std::move(by_row)};
        } else {
            auto none = constant_like(all, shape_of_rank<3>{B, 0, 0}, 0.0);
            return talking_result{std::move(all), std::move(none)};
        }
    }

private:
    static auto score_of(const auto& in, const auto& queries, std::size_t h, std::size_t positions)
    {
        return heed::score::over::match_all(in.of.scores[h], queries[h], cut(in, in.of.keys[h], positions),
                                            {in.first, h, in.real, in.real.first_row()});
    }

    /// Are keys left out that no query of a block sees? A score that carries sums reads the query's own position.
    template <class In>
    static consteval bool cuts()
    {
        using score = std::remove_cvref_t<decltype(std::declval<const In&>().of.scores[0])>;
        return std::remove_cvref_t<decltype(std::declval<const In&>().mask)>::is_causal && !with_weights &&
               !widens_keys_of<score>();
    }

    /// How many positions the last query of a block of one sentence sees, at least one.
    static std::size_t reach(const auto& in, std::size_t positions)
    {
        const auto [B, S, width] = shape_of(in.queries);
        if (!cuts<std::remove_cvref_t<decltype(in)>>() || B != 1) return positions;
        const std::size_t seen = in.real[0] + in.first_here + S;
        return std::min(positions, std::max(seen, in.steps + 1) - in.steps);
    }
    template <tensor X>
    static X cut(const auto& in, const X& x, std::size_t positions)
    {
        if constexpr (cuts<std::remove_cvref_t<decltype(in)>>()) {
            if (shape_of(x)[0] == 1) return ops::positions_between(x, 0, positions);
        }
        return x;  // of several sentences all positions
    }
};

}  // namespace detail

/// Heads that talk: the scores of all heads are mixed before softmax, and their weights after it.
///
///     J_h = Q_h K_hᵀ,  L_g = Σ_h P_l[h,g] J_h,  W_g = softmax(L_g),  U_v = Σ_g P_w[g,v] W_g,  O_v = U_v V_v
///                                             Shazeer, Lan, Cheng, Ding and Hou 2020, section 4
///
///     talking_heads attend{multi_head{heads, W_Q, W_K, W_V, W_O}, P_l, P_w};
///
/// P_l and P_w are [n,n]; as unit matrices they leave the multi_head as it is. Deviation: as many heads of scores, of
/// weights and of values; in the paper the numbers may differ. The heads are a std::vector of one kind, with a score
/// that compares all queries at once and does not remember, a normalizer that reads one row (`row_by_row`), and a
/// weighted sum. Masks hide positions after the scores are mixed: a mask's `place::head` is a head of softmax, and that
/// of score::modified a head of scores. Additive masks are not taken.
///
/// No kernel of one head can do this: many queries are answered in blocks of rows, of which the scores of all heads,
/// about 2^18 numbers, are stored for one sentence at a time; going back they are computed again. `step` returns the
/// mixed weights U, [B,n,T]: they need not be positive, nor sum to 1.
template <class Base, class Matrix>
struct talking_heads {
    Base base;   // a multi_head
    Matrix P_l;  // [n,n], from heads of scores to heads of softmax
    Matrix P_w;  // [n,n], from there to heads of values

    /// The query-independent part, once per batch; the arguments are those of attention::on.
    auto on(const tensor auto& annotations, const auto&... rest) const { return base.on(annotations, rest...); }
    auto on(const tensor auto& annotations, const lengths& real) const { return base.on(annotations, real); }
    auto on(const tensor auto& annotations, const tensor auto& values, const lengths& real) const
    {
        return base.on(annotations, values, real);
    }

    /// The memory with more annotations [B,t,D] behind its own: see attention::extend.
    auto extend(const auto& memory, const tensor auto& annotations) const { return base.extend(memory, annotations); }

    /// The state before the first step of a batch.
    auto start(const auto& memory) const { return base.start(memory); }

    /// One query [B,Q]: its context [B,O], the mixed weights of every head [B,n,T], and the state for the next.
    template <class Mask = no_mask>
    auto step(const auto& memory, const auto& given, const auto& given_state, const Mask& mask = {}) const
    {
        const auto& state = detail::states_of_several(*this, memory, given_state);
        const auto& query = detail::query_of_axes<2, typename detail::numbers_in<Matrix>::type>(given);
        const scratch here;
        const std::size_t B = shape_of(query)[0];
        const auto projected = ops::reshaped(detail::projection(base, "the query", query, base.W_Q, base.bias.query()),
                                             B, 1, shape_of(base.W_Q)[1]);  // [B,1,n·K]
        return with_source(memory, projected, [&](const auto& source) {
            auto seen = block<true>(source, projected, memory, state, mask, 0, 1, 1);
            auto context = base.from_heads(ops::step_of(seen.context, 0), query);
            return attended{std::move(context), std::move(seen.weights), after(state, 1)};
        });
    }
    /// As `step`, without the weights.
    template <class Mask = no_mask>
    auto read(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        auto answer = step(memory, query, state, mask);
        return read_out{std::move(answer.context), std::move(answer.state)};
    }

    /// Many queries: queries [B,S,Q] -> contexts [B,S,O]. `mask`: as for attention, but no additive one.
    template <class Mask = no_mask>
    auto operator()(const auto& memory, const auto& queries, const Mask& mask = {}) const
    {
        return read_all(memory, queries, start(memory), mask).contexts;
    }

    /// The same from a given state; also returns the state after the last query.
    template <class Mask = no_mask>
    auto read_all(const auto& memory, const auto& given, const auto& given_state, const Mask& mask = {}) const
    {
        const auto& state = detail::states_of_several(*this, memory, given_state);
        const auto& queries = detail::query_of_axes<3, typename detail::numbers_in<Matrix>::type>(given);
        const auto projected =
            detail::projection(base, "the queries", queries, base.W_Q, base.bias.query());  // [B,S,n·K]
        const std::size_t S = shape_of(queries)[1], n = detail::count_of(base.heads);
        const std::size_t rows = std::max<std::size_t>(1, numbers_of_a_block / (n * memory.positions() + 1));
        return with_source(memory, projected, [&](const auto& source) {
            const auto some = [&](std::size_t first, std::size_t last) {
                const scratch here;
                auto seen = block<false>(source, ops::steps_between(projected, first, last), memory, state, mask, first,
                                         last - first, S);
                const auto shape = shape_of(seen.context);
                return ops::reshaped(seen.context, shape_of_rank<2>{shape[0], shape[1] * shape[2]});
            };
            std::vector<decltype(some(0, 0))> blocks;  // [B,s·n·V]
            blocks.push_back(some(0, std::min(rows, S)));
            for (std::size_t s = rows; s < S; s += rows) blocks.push_back(some(s, std::min(s + rows, S)));
            const auto all = ops::join(blocks);
            const std::size_t B = memory.batch(), width = n * detail::first_of(memory.of).width();
            auto contexts = ops::reshaped(all, shape_of_rank<3>{B, S, width});
            return all_read{base.from_heads(std::move(contexts), queries), after(state, S)};
        });
    }

    /// The mixed weights U of many queries, of every head: [B,n,S,T]. `read_all` turns the weights into contexts and
    /// does not return them; for pictures and penalties. This call needs memory for all weights.
    template <class Mask = no_mask>
    auto weights_of(const auto& memory, const auto& queries, const Mask& mask = {}) const
    {
        return weights_of(memory, queries, start(memory), mask);
    }

    /// The same from a state of the caller's.
    template <class Mask = no_mask>
    auto weights_of(const auto& memory, const auto& given, const auto& given_state, const Mask& mask) const
    {
        const auto& state = detail::states_of_several(*this, memory, given_state);
        const auto& queries = detail::query_of_axes<3, typename detail::numbers_in<Matrix>::type>(given);
        const auto projected =
            detail::projection(base, "the queries", queries, base.W_Q, base.bias.query());  // [B,S,n·K]
        const std::size_t B = memory.batch(), S = shape_of(queries)[1];
        return with_source(memory, projected, [&](const auto& source) {
            const auto seen = block<true>(source, projected, memory, state, mask, 0, S, S);
            return ops::reshaped(seen.weights, shape_of_rank<4>{B, source.keys.size(), S, memory.positions()});
        });
    }

    /// `step` into results that the caller keeps. `state` may be `result.state`.
    template <class Result, class Mask = no_mask>
    void step_into(Result& result, const auto& memory, const auto& query, const auto& state,
                   const Mask& mask = {}) const
    {
        auto next = step(memory, query, state, mask);
        result.context = std::move(next.context);
        result.weights = std::move(next.weights);
        result.state = std::move(next.state);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        auto base = visit("base", self.base);
        auto P_l = visit("P_l", self.P_l);
        auto P_w = visit("P_w", self.P_w);
        return talking_heads<decltype(base), decltype(P_l)>{std::move(base), std::move(P_l), std::move(P_w)};
    }

private:
    static constexpr std::size_t numbers_of_a_block = std::size_t{1} << 18;

    /// The state after `count` more queries.
    template <class State>
    static State after(const State& state, std::size_t count)
    {
        return from_query(state, state.step + count);
    }

    /// What a block of queries, first … first + count − 1 of `steps`, sees.
    template <class Mask>
    static auto seen_by(const Mask& mask, const shape_of_rank<3>& all, std::size_t first, std::size_t count)
    {
        if constexpr (std::is_same_v<Mask, no_mask> || std::is_convertible_v<const Mask&, lengths_view>) {
            return detail::block_sees_all{};
        } else if constexpr (std::is_same_v<Mask, causal>) {
            return detail::block_is_causal{};
        } else if constexpr (std::is_same_v<Mask, boolean_mask<3>>) {
            mask.require("talking_heads", all);
            const auto [B, S, T] = all;
            auto* const rows = transient_family::take<std::uint8_t>(B * count * T);
            for (std::size_t b = 0; b < B; ++b)
                std::copy_n(mask.data() + (b * S + first) * T, count * T, rows + b * count * T);
            return detail::block_is_drawn<3>{{rows, {B, count, T}}};
        } else if constexpr (std::is_convertible_v<const Mask&, boolean_mask_view<2>>) {
            boolean_mask_view<2>(mask).require("talking_heads", {all[0], all[2]});
            return detail::block_is_drawn<2>{mask};
        } else {
            static_assert(detail::mask_of_any_place<Mask> || bare_mask<Mask>,
                          "heed: talking_heads takes causal{}, lengths, boolean masks and masks of places");
            return detail::block_of_places<Mask>{mask};
        }
    }

    /// use(source) of all that blocks share, brought onto the tape if anything is on it, and not copied otherwise.
    auto with_source(const auto& memory, const auto& projected, const auto& use) const
    {
        using head = std::remove_cvref_t<decltype(base.heads[0])>;
        using score = std::remove_cvref_t<decltype(base.heads[0].score)>;
        using normalizer = std::remove_cvref_t<decltype(base.heads[0].normalize)>;
        using memory_type = std::remove_cvref_t<decltype(memory.of[0])>;
        using T = element_of<decltype(detail::taped_among(memory.of[0].keys, P_l))>;
        static_assert(row_by_row<normalizer>,
                      "heed: talking_heads: the heads' normalizer must read one row of scores alone (row_by_row)");
        static_assert(heed::score::over::matches_all<score, std::remove_cvref_t<decltype(projected)>,
                                                     std::remove_cvref_t<decltype(memory.of[0].keys)>>,
                      "heed: talking_heads: the heads' score must compare all queries at once: it needs `match_all`");
        static_assert(known_to_kernels_as<std::remove_cvref_t<decltype(std::declval<const head&>().combine)>,
                                          kernels::weighted_sum_of_row>,
                      "heed: talking_heads: the heads' combiner must be combine::weighted_sum");
        constexpr bool taped = detail::taped_policy<score> || detail::taped_policy<normalizer> ||
                               !plain_tensor<Matrix> || !plain_tensor<decltype(projected)> ||
                               !plain_tensor<decltype(memory_type::keys)> ||
                               !plain_tensor<decltype(memory_type::values)>;
        const std::size_t n = detail::count_of(base.heads);
        require_shape("talking_heads", "P_l", shape_of(P_l), shape_of_rank<2>{n, n}, "heads by heads");
        require_shape("talking_heads", "P_w", shape_of(P_w), shape_of_rank<2>{n, n}, "heads by heads");
        const auto source = [&](const auto& bring) {
            const auto each = [&](const auto& get) {
                return detail::each_of(base.heads, [&](std::size_t h) { return get(h); });
            };
            return detail::talking_source{
                each([&](std::size_t h) { return map_parameters(base.heads[h].score, bring); }),
                each([&](std::size_t h) { return map_parameters(base.heads[h].normalize, bring); }),
                each([&](std::size_t h) { return bring(base.memory_of_head(memory, h).keys); }),
                each([&](std::size_t h) { return bring(base.memory_of_head(memory, h).values); }),
                bring(P_l),
                bring(P_w)};
        };
        if constexpr (taped) {
            using family = typename detail::recording<std::bool_constant<taped>>::family;
            const auto lift = variables_beside<T>(family{}, [&](const auto& look) {
                (void)source(look_at_all{look});
                (void)look(projected);
            });
            return use(source(lift));
        } else {
            return use(source(detail::as_transient{}));
        }
    }

    /// Looks at a tensor, and returns it.
    template <class Look>
    struct look_at_all {
        const Look& look;

        auto operator()(const auto& x) const
        {
            (void)look(x);
            return x;
        }
    };
    template <class Look>
    look_at_all(const Look&) -> look_at_all<Look>;

    /// The contexts [B,count,n·V] of a block of projected queries [B,count,n·K], and the weights if they are wanted.
    template <bool with_weights, class Mask>
    static auto block(const auto& source, const tensor auto& queries, const auto& memory, const auto& state,
                      const Mask& mask, std::size_t first, std::size_t count, std::size_t steps)
    {
        const auto& any = detail::first_of(memory.of);
        const std::size_t B = memory.batch(), positions = memory.positions();
        const auto seen = seen_by(mask, {B, steps, positions}, first, count);
        const auto of_source = seen_by(any.mask, {B, steps, positions}, first, count);
        const lengths_view real = detail::visible_lengths(detail::if_lengths(mask), any.real, positions);
        using family = family_of<decltype(source.of_scores)>;
        const detail::talking_input in{
            source, queries, real, detail::block_sees_both{seen, of_source}, first + state.step, first, steps};
        const std::size_t work = source.keys.size() * count * positions * 16;
        auto seen_in = [&] {
            if constexpr (family::rank == family_rank::taped) {
                return by_rows(family{}, detail::talk<with_weights>{}, in, B, work);
            } else {
                return detail::by_rows(transient_family{}, detail::talk<with_weights>{}, in, B, work)
                    .map(detail::owned{});
            }
        }();
        return seen_in;
    }
};

template <class Base, class Matrix, class Matrix2>
talking_heads(Base, Matrix, Matrix2) -> talking_heads<Base, joint_tensor<Matrix, Matrix2>>;

}  // namespace heed
