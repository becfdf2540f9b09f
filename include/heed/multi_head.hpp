// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <heed/attention.hpp>
#include <heed/core/several.hpp>
#include <heed/ops/masks.hpp>
#include <heed/ops/parts.hpp>
#include <heed/score/with_word.hpp>

namespace heed {

/// Several attentions at once, each in a space of its own, over any score and any normalizer.
///
///     head_i = Attention(Q W_Q^i, K W_K^i, V W_V^i)
///     MultiHead(Q, K, V) = Concat(head_1, …, head_n) W_O       Vaswani et al. 2017, section 3.2.2
///
///     multi_head attend{std::vector(8, attention{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}}),
///                       W_Q, W_K, W_V, W_O};
///
/// The heads' matrices stand side by side in one, W_Q = [W_Q^1, W_Q^2, …]: one product for all heads. The heads are a
/// std::vector of one kind (each with parameters of its own, for example an additive score's), or a std::tuple of
/// different kinds: one local, one temporal. Their queries and annotations are the projected ones.
///
/// The calls are those of `attention`. `step` returns the weights of every head, [B,n,T], never their mean;
/// `ops::step_of(weights, i)` returns head i's [B,T], for example for a penalty on one head. In a state_and_word the
/// state is projected, and every head gets the word. No bias, as in the paper.
template <class Heads, class Matrix>
struct multi_head {
    Heads heads;
    Matrix W_Q;  // [Q,n·K]
    Matrix W_K;  // [D,n·K]
    Matrix W_V;  // [D,n·V]
    Matrix W_O;  // [n·V,O]

    /// The query-independent part, once per batch, see attention::on.
    auto on(const tensor auto& annotations, const lengths& real) const
    {
        static_assert(rank_of<decltype(annotations)> == 3, "heed: multi_head::on takes annotations [B,T,D]");
        real.require("multi_head::on", shape_of(annotations)[0], shape_of(annotations)[1]);
        const auto cleared = ops::clear_padding(annotations, real);
        return prepared(cleared, cleared, real, no_mask{});
    }

    /// The same for a batch without padding.
    auto on(const tensor auto& annotations) const
    {
        return on(annotations, lengths::full(shape_of(annotations)[0], shape_of(annotations)[1]));
    }

    /// The same if any position may be missing, not only the last ones: mask [B,T], true = attend.
    auto on(const tensor auto& annotations, const boolean_mask<2>& mask) const
    {
        static_assert(rank_of<decltype(annotations)> == 3, "heed: multi_head::on takes annotations [B,T,D]");
        const auto cleared = ops::clear_hidden(annotations, mask);
        return prepared(cleared, cleared, lengths::full(mask.shape()[0], mask.shape()[1]), mask);
    }

    /// With keys and values from different annotations, both [B,T,.].
    auto on(const tensor auto& annotations, const tensor auto& values, const lengths& real) const
    {
        static_assert(rank_of<decltype(annotations)> == 3 && rank_of<decltype(values)> == 3,
                      "heed: multi_head::on takes annotations [B,T,D] and values [B,T,D]");
        const auto shape = shape_of(annotations);
        require_shape("multi_head::on", "the values", shape_of(values), {shape[0], shape[1], shape_of(values)[2]},
                      "one for each annotation");
        return prepared(ops::clear_padding(annotations, real), ops::clear_padding(values, real), real, no_mask{});
    }

    /// The same for a batch without padding.
    auto on(const tensor auto& annotations, const tensor auto& values) const
    {
        return on(annotations, values, lengths::full(shape_of(annotations)[0], shape_of(annotations)[1]));
    }

    /// The same if any position may be missing: mask [B,T], true = attend.
    auto on(const tensor auto& annotations, const tensor auto& values, const boolean_mask<2>& mask) const
    {
        static_assert(rank_of<decltype(annotations)> == 3 && rank_of<decltype(values)> == 3,
                      "heed: multi_head::on takes annotations [B,T,D] and values [B,T,D]");
        return prepared(ops::clear_hidden(annotations, mask), ops::clear_hidden(values, mask),
                        lengths::full(mask.shape()[0], mask.shape()[1]), mask);
    }

    /// The state before the first step of a batch: one per head.
    auto start(const auto& memory) const
    {
        check(memory);
        auto states = each([&](const auto& head, auto i) { return head.start(detail::nth(memory.of, i)); });
        return several_states<decltype(states)>{std::move(states), 0};
    }

    /// One query: its context [B,O], the weights of every head [B,n,T], and the state for the next.
    template <class Mask = no_mask>
    auto step(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        return with_weights(memory, state, asked(query),
                            [&](const auto& head, const auto& in, const auto& q, const auto& now) {
                                return head.step(in, q, now, mask);
                            });
    }

    /// The same without fused kernels: the specification of `step`.
    template <class Mask = no_mask>
    auto compose(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        return with_weights(memory, state, asked(query),
                            [&](const auto& head, const auto& in, const auto& q, const auto& now) {
                                return head.compose(in, q, now, mask);
                            });
    }

    /// The same context and state as `step` returns; the weights are not kept.
    template <class Mask = no_mask>
    auto read(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        const auto answers = answered(memory, state, asked(query),
                                      [&](const auto& head, const auto& in, const auto& q, const auto& now) {
                                          return head.read(in, q, now, mask);
                                      });
        auto context = joined(answers);
        auto next = states_of(answers, state.step + 1);
        return read_out<decltype(context), decltype(next)>{std::move(context), std::move(next)};
    }

    /// Many queries at once: queries [B,S,Q] -> contexts [B,S,O], each head's state running from the first to the last.
    /// One product projects all queries for all heads. `mask`: as for attention.
    template <class Mask = no_mask>
    auto operator()(const auto& memory, const auto& queries, const Mask& mask = {}) const
    {
        return read_all(memory, queries, start(memory), mask).contexts;
    }

    /// The same from a given state; also returns the state after the last query.
    template <class Mask = no_mask>
    auto read_all(const auto& memory, const auto& queries, const auto& state, const Mask& mask = {}) const
    {
        check(memory);
        check_state(state);
        const auto of_heads = asked(queries);
        const auto answers = each([&](const auto& head, auto i) {
            return head.read_all(detail::nth(memory.of, i), of_heads[i], detail::nth(state.of, i), mask);
        });
        auto contexts = ops::linear(ops::join(detail::collect(
                                        answers, [](const auto& x) -> const auto& { return x.contexts; })),
                                    W_O);
        auto next = states_of(answers, state.step + shape_of(contexts)[1]);
        return all_read<decltype(contexts), decltype(next)>{std::move(contexts), std::move(next)};
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
        auto heads = detail::parameters_of("heads", self.heads, visit);
        auto W_Q = visit("W_Q", self.W_Q);
        auto W_K = visit("W_K", self.W_K);
        auto W_V = visit("W_V", self.W_V);
        auto W_O = visit("W_O", self.W_O);
        return multi_head<decltype(heads), decltype(W_Q)>{std::move(heads), std::move(W_Q), std::move(W_K),
                                                          std::move(W_V), std::move(W_O)};
    }

private:
    auto each(auto&& f) const
    {
        return detail::each_of(heads, [&](auto i) { return f(detail::nth(heads, i), i); });
    }

    void check(const auto& memory) const
    {
        detail::require_as_many("multi_head", "the memory", detail::count_of(memory.of), detail::count_of(heads));
        using values = std::remove_cvref_t<decltype(detail::first_of(memory.of).values)>;
        static_assert(plain_tensor<Matrix> || !plain_tensor<values>, HEED_SAYS_KEYS_DO_NOT_TRAIN);
    }

    void check_state(const auto& state) const
    {
        detail::require_as_many("multi_head", "the state", detail::count_of(state.of), detail::count_of(heads));
    }

    /// The query of each head.
    template <class Query>
    auto asked(const Query& query) const
    {
        if constexpr (tensor<Query>) {
            return ops::split(ops::linear(query, W_Q), detail::count_of(heads));
        } else {
            auto states = ops::split(ops::linear(query.state, W_Q), detail::count_of(heads));
            std::vector<decltype(state_and_word{states[0], query.word})> queries;
            for (auto& state : states) queries.push_back(state_and_word{std::move(state), query.word});
            return queries;
        }
    }

    /// Keys and values of all heads; the arguments are already cleared.
    template <class Mask>
    auto prepared(const tensor auto& annotations, const tensor auto& values, const lengths& real,
                  const Mask& mask) const
    {
        const std::size_t n = detail::count_of(heads);
        detail::require_some("multi_head: heads", n);
        const auto K = ops::split(ops::linear(annotations, W_K), n), V = ops::split(ops::linear(values, W_V), n);
        auto memories = each([&](const auto& head, auto i) { return memory_of(head, K[i], V[i], real, mask); });
        return several_memories<decltype(memories)>{std::move(memories)};
    }

    // Does what attention::on_cleared does. Called through it from here, clang++ 14 finds no `prepare` in a score over
    // another one, and the keys would be the annotations.
    template <class Head, class Annotations, class Values, class Mask>
    static auto memory_of(const Head& head, const Annotations& annotations, const Values& values, const lengths& real,
                          const Mask& mask)
    {
        static_assert(decltype(head.score)::weights == weight_kind::per_position,
                      "heed: multi_head returns one weight for each head and position, [B,n,T]: its heads need a score "
                      "per position, and combine::weighted_sum");
        if constexpr (requires { head.score.prepare(annotations); }) {
            auto keys = head.score.prepare(annotations);
            auto in_family = same_family(keys, values);
            return memory<decltype(in_family), decltype(keys), Mask>{std::move(in_family), std::move(keys), real, mask};
        } else {
            return memory<Values, Annotations, Mask>{values, annotations, real, mask};
        }
    }

    template <class Ask>
    auto answered(const auto& memory, const auto& state, const auto& queries, Ask&& ask) const
    {
        check(memory);
        check_state(state);
        return each([&](const auto& head, auto i) {
            return ask(head, detail::nth(memory.of, i), queries[i], detail::nth(state.of, i));
        });
    }

    template <class Ask>
    auto with_weights(const auto& memory, const auto& state, const auto& queries, Ask&& ask) const
    {
        const auto answers = answered(memory, state, queries, ask);
        auto context = joined(answers);
        auto weights = ops::swap_axes(ops::stack(detail::collect(
            answers, [](const auto& x) -> const auto& { return x.weights; })));
        auto next = states_of(answers, state.step + 1);
        return attended<decltype(context), decltype(weights), decltype(next)>{std::move(context), std::move(weights),
                                                                              std::move(next)};
    }

    /// Concat(head_1, …, head_n) W_O
    auto joined(const auto& answers) const
    {
        return ops::linear(ops::join(detail::collect(
                               answers, [](const auto& x) -> const auto& { return x.context; })),
                           W_O);
    }

    static auto states_of(const auto& answers, std::size_t step)
    {
        auto states = detail::each_of(answers, [&](auto i) { return detail::nth(answers, i).state; });
        return several_states<decltype(states)>{std::move(states), step};
    }
};

template <class Heads, class Matrix>
multi_head(Heads, Matrix, Matrix, Matrix, Matrix) -> multi_head<Heads, Matrix>;

}  // namespace heed
