// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention.hpp>
#include <heed/core/several.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/score/with_word.hpp>

namespace heed {

/// The next hop asks with what was asked before plus what was found: query and context have the same size.
struct add_context {
    template <class Query>
    auto operator()(const Query& query, const tensor auto& context, std::size_t) const
    {
        if constexpr (tensor<Query>) {
            require_shape("multi_hop", "the context", shape_of(context), shape_of(query),
                          "as the query that it is added to; or give multi_hop an update of your own");
            return ops::add(query, context);
        } else {
            return state_and_word{(*this)(query.state, context, 0), query.word};
        }
    }

    static auto parameters(auto&, auto&&) { return add_context{}; }
};

/// What one query gets of several hops.
template <class Context, class Weights, class State, class Query>
struct hopped {
    Context context;  // [B,D], of the last hop
    Weights weights;  // [B,K,T], of every hop
    State state;      // for the next step
    Query query;      // what a next hop would ask with: h + c_1 + … + c_K with add_context
};

/// The same when nobody looks at the weights.
template <class Context, class State, class Query>
struct hopped_read_out {
    Context context;
    State state;
    Query query;
};

/// The same for all queries, [B,S,.] each.
template <class Contexts, class Queries>
struct hopped_all {
    Contexts contexts;
    Queries queries;
};

/// Attention that looks again, knowing what it saw.
///
///     c_k = attention_k(q_k, memory),  q_{k+1} = q_k + c_k     Gehring et al. 2017, section 3.3 · SPEC C6
///
///     multi_hop attend{std::vector{first, second}};            // attentions with parameters of their own
///     multi_hop attend{std::tuple{first, second}, update};     // of different kinds; q_{k+1} = update(q_k, c_k, k)
///
/// The paper has a convolution layer of the decoder between the hops: that is an update of yours, anything with
/// `operator()(query, context, hop)` and `parameters`; it is called with [B,.] by `step` and `read`, with [B,S,.] for
/// many queries at once, and must give a query of the type that it took. Of a state_and_word, add_context adds to the
/// state.
///
/// The same calls as `attention`. The context is the last hop's; what the paper goes on with, h + c, is `query`.
/// `ops::step_of(weights, k)` are hop k's [B,T].
template <class Hops, class Update = add_context>
struct multi_hop {
    Hops hops;
    Update update{};

    /// The query-independent part, once a batch; arguments as of attention::on.
    auto on(const tensor auto& annotations, const auto&... rest) const
    {
        detail::require_some("multi_hop: hops", detail::count_of(hops));
        auto memories = each([&](const auto& hop, auto) { return hop.on(annotations, rest...); });
        return several_memories<decltype(memories)>{std::move(memories)};
    }

    /// What is remembered before the first step of a batch: a state for each hop.
    auto start(const auto& memory) const
    {
        check(memory);
        auto states = each([&](const auto& hop, auto i) { return hop.start(detail::nth(memory.of, i)); });
        return several_states<decltype(states)>{std::move(states), 0};
    }

    /// One query [B,Q]: the last hop's context, the weights of every hop [B,K,T], the state for the next step.
    template <class Mask = no_mask>
    auto step(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        return with_weights(memory, query, state,
                            [&mask](const auto& hop, const auto& in, const auto& q, const auto& now) {
                                return hop.step(in, q, now, mask);
                            });
    }

    /// The same without fused kernels: the specification of `step`.
    template <class Mask = no_mask>
    auto compose(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        return with_weights(memory, query, state,
                            [&mask](const auto& hop, const auto& in, const auto& q, const auto& now) {
                                return hop.compose(in, q, now, mask);
                            });
    }

    /// The same context, state and query as `step` gives; the weights are not kept.
    template <class Mask = no_mask>
    auto read(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        auto [answers, last] =
            answered(memory, query, state, [&mask](const auto& hop, const auto& in, const auto& q, const auto& now) {
                return hop.read(in, q, now, mask);
            });
        auto context = last_of(detail::collect(
            answers, [](const auto& x) -> const auto& { return x.context; }));
        auto next = states_of(answers, state);
        return hopped_read_out<decltype(context), decltype(next), decltype(last)>{std::move(context), std::move(next),
                                                                                  std::move(last)};
    }

    /// Many queries at once, hop after hop: queries [B,S,Q] -> contexts [B,S,D] of the last hop.
    template <class Mask = no_mask>
    auto operator()(const auto& memory, const auto& queries, const Mask& mask = {}) const
    {
        return all(memory, queries, mask).contexts;
    }

    /// The same together with what a next hop would ask with, [B,S,Q].
    template <class Mask = no_mask>
    auto all(const auto& memory, const auto& queries, const Mask& mask = {}) const
    {
        check(memory);
        auto q = in_family(memory, queries);
        const auto contexts = each([&](const auto& hop, auto i) {
            auto context = hop(detail::nth(memory.of, i), q, mask);
            renew(q, context, i);
            return context;
        });
        auto last = last_of(detail::collect(
            contexts, [](const auto& x) -> const auto& { return x; }));
        return hopped_all<decltype(last), decltype(q)>{std::move(last), std::move(q)};
    }

    /// `step` into results that the caller keeps. `state` may be `result.state`.
    template <class Result, class Mask = no_mask>
    void step_into(Result& result, const auto& memory, const auto& query, const auto& state,
                   const Mask& mask = {}) const
    {
        result = step(memory, query, state, mask);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        auto hops = detail::parameters_of("hops", self.hops, visit);
        auto update = visit("update", self.update);
        return multi_hop<decltype(hops), decltype(update)>{std::move(hops), std::move(update)};
    }

private:
    auto each(auto&& f) const
    {
        return detail::each_of(hops, [&](auto i) { return f(detail::nth(hops, i), i); });
    }

    void check(const auto& memory) const
    {
        detail::require_as_many("multi_hop", "the memory", detail::count_of(memory.of), detail::count_of(hops));
    }

    /// The query on the tape that a memory is on: so that it has one type from the first hop to the last.
    template <class Query>
    static auto in_family(const auto& memory, const Query& query)
    {
        const auto beside = detail::collect(
            memory.of, [](const auto& m) -> const auto& { return m.values; });
        if constexpr (tensor<Query>) {
            return same_family(beside.front(), query);
        } else {
            return state_and_word{same_family(beside.front(), query.state), query.word};
        }
    }

    template <class Query>
    void renew(Query& query, const auto& context, std::size_t hop) const
    {
        static_assert(
            std::is_same_v<decltype(update(query, context, hop)), Query>,
            "heed: multi_hop's update must give a query of the type that it takes: the next hop asks with it");
        query = update(query, context, hop);
    }

    template <class Ask>
    auto answered(const auto& memory, const auto& query, const auto& state, Ask&& ask) const
    {
        check(memory);
        detail::require_as_many("multi_hop", "the state", detail::count_of(state.of), detail::count_of(hops));
        auto q = in_family(memory, query);
        auto answers = each([&](const auto& hop, auto i) {
            auto answer = ask(hop, detail::nth(memory.of, i), q, detail::nth(state.of, i));
            renew(q, answer.context, i);
            return answer;
        });
        return std::pair{std::move(answers), std::move(q)};
    }

    template <class Ask>
    auto with_weights(const auto& memory, const auto& query, const auto& state, Ask&& ask) const
    {
        auto [answers, last] = answered(memory, query, state, ask);
        auto context = last_of(detail::collect(
            answers, [](const auto& x) -> const auto& { return x.context; }));
        const auto of_hops = detail::collect(
            answers, [](const auto& x) -> const auto& { return x.weights; });
        static_assert(
            rank_of<decltype(of_hops.front())> == 2,
            "heed: multi_hop returns one weight for each hop and position, [B,K,T]: its hops need a score per "
            "position");
        auto weights = ops::swap_axes(ops::stack(of_hops));
        auto next = states_of(answers, state);
        return hopped<decltype(context), decltype(weights), decltype(next), decltype(last)>{
            std::move(context), std::move(weights), std::move(next), std::move(last)};
    }

    template <class Tensor>
    static Tensor last_of(std::vector<Tensor> all)
    {
        return std::move(all.back());
    }

    static auto states_of(const auto& answers, const auto& before)
    {
        auto states = detail::each_of(answers, [&](auto i) { return detail::nth(answers, i).state; });
        return several_states<decltype(states)>{std::move(states), before.step + 1};
    }
};

template <class Hops>
multi_hop(Hops) -> multi_hop<Hops>;
template <class Hops, class Update>
multi_hop(Hops, Update) -> multi_hop<Hops, Update>;

}  // namespace heed
