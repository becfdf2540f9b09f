// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/heads/mechanism.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/shape.hpp>
#include <heed/policy/query.hpp>

namespace heed::inline HEED_TARGET {

/// The next hop's query is this hop's query plus its context, both [B,Q]: q_{k+1} = q_k + c_k (Gehring et al. 2017,
/// section 3.3). Throws shape_error if their shapes differ.
struct add_context {
    auto operator()(const tensor auto& query, const tensor auto& context, std::size_t) const
    {
        require_shape("multi_hop", "the context", shape_of(context), shape_of(query),
                      "the shape of the query that it is added to; or give multi_hop a custom update");
        return ops::add_same_shape(query, context);
    }
    auto operator()(const auto& query, const tensor auto& context, std::size_t hop) const
    {
        return detail::with_state(query, (*this)(query.state, context, hop));
    }

    static auto parameters(auto&, auto&&) { return add_context{}; }
};

/// The result of one query over several hops.
template <class Context, class Weights, class State, class Query>
struct hopped {
    Context context;                // [B,D], of the last hop
    Weights weights;                // [B,K,T], of every hop
    State state;                    // for the next step
    Query query;                    // the query of a next hop: h + c_1 + … + c_K with add_context
    std::vector<Context> contexts;  // [B,D] c_1 … c_K, of every hop
};
template <class Context, class Weights, class State, class Query>
hopped(Context, Weights, State, Query, std::vector<Context>) -> hopped<Context, Weights, State, Query>;

/// The result of all queries over several hops, [B,S,.] each.
template <class Contexts, class State, class Queries>
struct hopped_all {
    Contexts contexts;  // of the last hop
    State state;        // after the last query
    Queries queries;
};
template <class Contexts, class State, class Queries>
hopped_all(Contexts, State, Queries) -> hopped_all<Contexts, State, Queries>;

/// Attention in several hops: each hop's query includes the context of the hop before.
///
///     c_k = attention_k(q_k, memory),  q_{k+1} = q_k + c_k     Gehring et al. 2017, section 3.3
///
///     multi_hop attend{std::vector{first, second}};            // attentions with separate parameters
///     multi_hop attend{std::tuple{first, second}, update};     // of different types; q_{k+1} = update(q_k, c_k, k)
///
/// The paper's update is a convolution layer of the decoder: any struct with `operator()(query, context, hop)` and
/// `parameters`. `step` and `read` call it with [B,.], many queries at once with [B,S,.]; it returns a query of its
/// argument's type. In a state_and_word, add_context adds to the state.
///
/// The calls are those of `attention`. `context` is the context of the last hop. The paper continues with `query`.
/// Throws heed::error if there is no hop, and shape_error unless the memory and the state have one part for each hop.
template <class Hops, class Update = add_context>
struct multi_hop : mechanism<multi_hop<Hops, Update>> {
    Hops hops;
    Update update{};

    multi_hop() = default;
    explicit multi_hop(Hops all, Update updates = {}) : hops(std::move(all)), update(std::move(updates)) {}

    /// The memory of each hop.
    auto memory_of(const tensor auto& annotations, const auto&... rest) const
    {
        detail::require_some("multi_hop: hops", detail::count_of(hops));
        return memory_list{
            detail::each_with_index(hops, [&](const auto& hop, auto) { return hop.on(annotations, rest...); })};
    }

    /// The state before the first step of a batch: one per hop.
    auto start(const auto& memory) const
    {
        check(memory);
        auto states = detail::each_with_index(
            hops, [&](const auto& hop, auto i) { return hop.start(detail::nth(memory.of, i)); });
        return several_states{std::move(states), 0};
    }

    /// One query [B,Q]: the last hop's context, the weights of each hop [B,K,T], and the next state.
    template <class Mask = no_mask>
    auto step(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        return answer_with_weights(detail::call_step, memory, query, state, mask);
    }

    /// `step` without fused kernels: its specification.
    template <class Mask = no_mask>
    auto compose(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        return answer_with_weights(detail::call_compose, memory, query, state, mask);
    }

    /// Many queries at once, hop after hop: contexts [B,S,D] of the last hop, the state after the last query, and the
    /// queries of a next hop, [B,S,Q].
    template <class Mask = no_mask>
    auto read_all(const auto& memory, const auto& queries, const auto& state, const Mask& mask = {}) const
    {
        auto [answers, last] =
            answers_of_hops(detail::call_read_all, detail::contexts_of, memory, queries, state, mask);
        auto contexts = std::move(detail::collect(answers, detail::contexts_of).back());
        auto next = detail::states_of(answers, state.step + shape_of(contexts)[1]);
        return hopped_all{std::move(contexts), std::move(next), std::move(last)};
    }

    /// `step` into results that the caller owns. `state` may be `result.state`.
    template <class Result, class Mask = no_mask>
    void step_into(Result& result, const auto& memory, const auto& query, const auto& state,
                   const Mask& mask = {}) const
    {
        result = step(memory, query, state, mask);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return heed::multi_hop{visit("hops", self.hops), visit("update", self.update)};
    }

private:
    void check(const auto& memory, const auto&... state) const
    {
        detail::require_one_per_mechanism("multi_hop", "the memory", memory, hops);
        (detail::require_one_per_mechanism("multi_hop", "the state", state, hops), ...);
    }

    /// The query in the memory's family, so that it has one type from the first hop to the last.
    static auto in_family(const auto& beside, const tensor auto& query) { return same_family(beside, query); }
    static auto in_family(const auto& beside, const auto& query)
    {
        return detail::with_state(query, same_family(beside, query.state));
    }

    /// answer(hop, i, q) for each hop, and the query of a next hop. The first query may be plain even if contexts, and
    /// so later queries, are taped.
    auto hop_by_hop(const auto& first, const auto& answer, const auto& context_of) const
    {
        using zero = decltype(detail::first_index(hops));
        using answer_type = decltype(answer(detail::first_of(hops), zero{}, first));
        using later_query = decltype(update(first, context_of(std::declval<const answer_type&>()), zero{}));
        static_assert(std::is_same_v<decltype(update(std::declval<const later_query&>(),
                                                     context_of(std::declval<const answer_type&>()), zero{})),
                                     later_query>,
                      "heed: multi_hop's update must return a query of its argument's type, for the next hop");
        std::optional<later_query> later;
        auto answers = detail::each_with_index(hops, [&](const auto& hop, auto i) {
            const auto go = [&](const auto& q) {
                auto result = answer(hop, i, q);
                later.emplace(update(q, context_of(result), i));
                return result;
            };
            if constexpr (requires { requires decltype(i)::value == 0; }) {
                return go(first);
            } else {
                if constexpr (std::is_same_v<decltype(i), std::size_t>) {
                    if (i == 0) return go(first);
                }
                const later_query q = *std::move(later);
                return go(q);
            }
        });
        return std::pair{std::move(answers), *std::move(later)};
    }

    /// The result of each hop's `call`, and the query of a next hop.
    auto answers_of_hops(const auto& call, const auto& context_of, const auto& memory, const auto& query,
                         const auto& state, const auto& mask) const
    {
        check(memory, state);
        const auto answer = [&](const auto& hop, auto i, const auto& q) {
            return call(hop, detail::nth(memory.of, i), q, detail::nth(state.of, i), mask);
        };
        const auto& values = detail::tensor_beside(memory.of, detail::values_of_memory);
        return hop_by_hop(in_family(values, query), answer, context_of);
    }

    auto answer_with_weights(const auto& call, const auto& memory, const auto& query, const auto& state,
                             const auto& mask) const
    {
        auto [answers, last] = answers_of_hops(call, detail::context_of, memory, query, state, mask);
        auto contexts = detail::collect(answers, detail::context_of);
        const auto of_hops = detail::collect(answers, detail::weights_of);
        static_assert(
            rank_of<decltype(of_hops.front())> == 2,
            "heed: multi_hop returns one weight for each hop and position, [B,K,T]: its hops need a score per "
            "position");
        auto context = contexts.back();
        return hopped{std::move(context), detail::side_by_side(of_hops), detail::states_of(answers, state.step + 1),
                      std::move(last), std::move(contexts)};
    }
};

template <class Hops, class Update = add_context>
multi_hop(Hops, Update = {}) -> multi_hop<Hops, Update>;

}  // namespace heed::inline HEED_TARGET
