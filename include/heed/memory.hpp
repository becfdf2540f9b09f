// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention/state.hpp>
#include <heed/core/family.hpp>
#include <heed/core/window.hpp>
#include <heed/ops/mask.hpp>
#include <heed/ops/shape.hpp>

/// What goes into attention and comes out of it: the memory of a batch, the moment of a query, and the answer.
namespace heed {

/// What one batch of source sentences offers to be attended to.
template <class Values, class Keys, class Mask = no_mask>
struct memory {
    Values values;                      // [B,T,D], zeros in the padding
    Keys keys;                          // what the score's prepare made of them; [B,T,A] for most
    lengths real;                       // the number of real positions of each row
    [[no_unique_address]] Mask mask{};  // boolean_mask<2>: which of them may be attended to

    std::size_t batch() const { return shape_of(values)[0]; }
    std::size_t positions() const { return shape_of(values)[1]; }
    std::size_t width() const { return shape_of(values)[2]; }
};

/// A memory that is asked about each of its sentences by several rows of queries, as a beam does: nothing is copied,
/// and a sentence's hypotheses find its keys in the cache. Attention whose `fused_form` has `shares_memory` answers
/// from it; the memory it is made of must stay where it is.
template <class Values, class Keys>
struct shared_memory {
    const Values& values;               // [B,T,D]
    const Keys& keys;                   // [B,T,A]
    std::vector<std::size_t> sentence;  // [R] below B: which one a row asks about
    lengths real;                       // of each row
    [[no_unique_address]] no_mask mask{};

    shared_memory(const memory<Values, Keys>& of, std::vector<std::size_t> rows)
        : values(of.values), keys(of.keys), sentence(std::move(rows)), real(of.real.rows(sentence))
    {}

    std::size_t batch() const { return sentence.size(); }
    std::size_t positions() const { return shape_of(values)[1]; }
    std::size_t width() const { return shape_of(values)[2]; }
};

/// Is it asked by several rows about each of its sentences?
template <class Memory>
concept shared_by_rows = requires(const Memory& memory)
{
    memory.sentence;
};

/// What one query gets.
template <class Context, class Weights, class State>
struct attended {
    Context context;  // [B,D]
    Weights weights;  // [B,T], or [B,T,D] per dimension, [B,T,G] per group
    State state;      // for the next step
};

/// What one query gets when nobody looks at the weights.
template <class Context, class State>
struct read_out {
    Context context;  // [B,D]
    State state;      // for the next step
};

/// What many queries get, nobody looking at the weights.
template <class Contexts, class State>
struct all_read {
    Contexts contexts;  // [B,S,D]
    State state;        // after the last query
};

namespace detail {

/// Can the parameters that made a memory's keys get a gradient from it? Not where the plain score made them and the
/// lifted one is asked.
template <class Score, class Memory>
consteval bool keys_train()
{
    using keys = std::remove_cvref_t<decltype(std::declval<const Memory&>().keys)>;
    using values = std::remove_cvref_t<decltype(std::declval<const Memory&>().values)>;
    if constexpr (plain_tensor<keys> && requires(const Score& score, const values& x) { score.prepare(x); }) {
        return plain_tensor<decltype(std::declval<const Score&>().prepare(std::declval<const values&>()))>;
    } else {
        return true;
    }
}

#define HEED_SAYS_KEYS_DO_NOT_TRAIN                                                                                    \
    "heed: this memory was made by the plain mechanism, so what made its keys (U of score::additive, W_K of "          \
    "multi_head) would get no gradient: make the memory with the lifted one, lifted.on(annotations, lengths)"

}  // namespace detail

/// Not within a window.
struct no_focus {};

namespace detail {

template <class E>
const E& shown(const E& scores, const no_mask&)
{
    return scores;
}
template <tensor E>
auto shown(const E& scores, const boolean_mask<2>& mask)
{
    return ops::hide(scores, mask);
}
template <tensor E, class Bias>
auto shown(const E& scores, const additive_mask<Bias>& mask)
{
    return ops::add_mask(scores, mask.bias);
}

}  // namespace detail

/// What a normalizer may know besides the scores.
template <class Ask, class SourceMask = no_mask, class StepMask = no_mask, class Focus = no_focus>
struct moment {
    const lengths& real;  // real positions of each row; within a window, those of the window
    std::size_t step;     // 0 for the first query
    const Ask& ask;
    const SourceMask& source;  // what the whole batch hides
    const StepMask& mask;      // what this query may not see
    const Focus& focus;        // what the normalizer's `focus` found

    /// The query as it was given, [B,Q] or its parts.
    decltype(auto) query() const { return ask(); }

    /// The scores, -inf where a mask says no. A normalizer without state gets them so; one with state modulates first,
    /// and then asks for this.
    template <tensor E>
    decltype(auto) visible(const E& scores) const
    {
        if constexpr (std::is_same_v<StepMask, no_mask>) {
            return detail::shown(scores, source);
        } else if constexpr (std::is_same_v<SourceMask, no_mask>) {
            return detail::shown(scores, mask);
        } else {
            const auto of_source = detail::shown(scores, source);
            return detail::shown(of_source, mask);
        }
    }

    /// The same moment for what lies within a window; the masks must be those of the window.
    template <class Source, class Step, class Found>
    auto within(const lengths& in_window, const Source& source_there, const Step& mask_there, const Found& found) const
    {
        return moment<Ask, Source, Step, Found>{in_window, step, ask, source_there, mask_there, found};
    }
};

/// A moment without query and masks: for calling a normalizer by hand.
struct plain_moment {
    const lengths& real;
    std::size_t step = 0;

    const auto& visible(const tensor auto& scores) const { return scores; }
};

namespace detail {

struct blank_probe {
    array<double, 2> operator()(double) const;
};

/// Does a normalizer remember anything?
template <class Normalize>
concept remembers = requires(const Normalize& normalize)
{
    normalize.start(blank_probe{});
};

}  // namespace detail

/// What a normalizer remembers before the first query. `blank(x)` gives a tensor of the scores' shape full of x.
template <class Normalize>
auto start_of(const Normalize& normalize, const auto& blank)
{
    if constexpr (detail::remembers<Normalize>) {
        return normalize.start(blank);
    } else {
        return no_state{};
    }
}

/// Scores become weights, whether the normalizer remembers anything or not: how a normalizer calls one inside it.
template <class Normalize>
auto weigh(const Normalize& normalize, const tensor auto& scores, const auto& state, const auto& at)
{
    if constexpr (detail::remembers<Normalize>) {
        return normalize(scores, state, at);
    } else {
        return normalize(at.visible(scores), at);
    }
}

/// What a normalizer remembers after a query.
template <class Normalize>
auto next_of(const Normalize& normalize, const tensor auto& scores, const tensor auto& weights, const auto& state,
             const auto& at)
{
    if constexpr (detail::remembers<Normalize>) {
        return normalize.advance(scores, weights, state, at);
    } else {
        return no_state{};
    }
}

namespace detail {

/// Of queries for all steps, in one tensor [B,S,.] or in parts: the one of step s. Zeros where there are no steps.
template <class Queries>
auto part_of_step(const Queries& queries, std::size_t s)
{
    if constexpr (tensor<Queries>) {
        const auto shape = shape_of(queries);
        if (shape[1] == 0) return constant_like(queries, shape_of_rank<2>{shape[0], shape[2]}, 0.0);
        return ops::step_of(queries, s);
    } else {
        return queries.step(s);
    }
}

/// How a policy gets at the query itself. Named types, not lambdas: what step, read and compose call, and what
/// attentions with other scores call, is then compiled once.
template <class Query>
struct given_query {
    const Query& query;

    const Query& operator()() const { return query; }
};
template <class Query>
given_query(const Query&) -> given_query<Query>;

template <class Queries>
struct given_query_of_step {
    const Queries& queries;
    std::size_t step;

    auto operator()() const { return part_of_step(queries, step); }
};
template <class Queries>
given_query_of_step(const Queries&, std::size_t) -> given_query_of_step<Queries>;

/// What of a mask for all queries concerns query s of S.
inline no_mask mask_of_step(const no_mask&, std::size_t, std::size_t, const lengths&) { return {}; }
inline const boolean_mask<2>& mask_of_step(const boolean_mask<2>& mask, std::size_t, std::size_t, const lengths&)
{
    return mask;
}
inline boolean_mask<2> mask_of_step(const boolean_mask<3>& mask, std::size_t s, std::size_t S, const lengths&)
{
    const auto [B, steps, T] = mask.shape();
    mask.require("attention of many queries", {B, S, T});
    boolean_mask<2> row(shape_of_rank<2>{B, T});
    for (std::size_t b = 0; b < B && s < S; ++b) {
        for (std::size_t t = 0; t < T; ++t) row[b * T + t] = mask[(b * steps + s) * T + t];
    }
    return row;
}
template <class Bias>
auto mask_of_step(const additive_mask<Bias>& mask, std::size_t s, std::size_t S, const lengths&)
{
    if constexpr (rank_of<Bias> == 2) {
        return mask;
    } else {
        auto shape = shape_of(mask.bias);
        shape[1] = S;
        require_shape("attention of many queries", "the additive mask", shape_of(mask.bias), shape,
                      "one row for each query");
        return additive_mask{part_of_step(mask.bias, s)};
    }
}
inline const lengths& mask_of_step(const lengths& mask, std::size_t, std::size_t, const lengths&) { return mask; }
inline lengths mask_of_step(const causal&, std::size_t s, std::size_t S, const lengths& real)
{
    std::vector<std::size_t> seen(real.batch());
    for (std::size_t b = 0; b < seen.size(); ++b) seen[b] = real[b] + s + 1 > S ? real[b] + s + 1 - S : 0;
    return lengths(std::move(seen));
}

/// A mask that is lengths shortens the rows.
inline lengths shortened(const lengths& mask, const lengths& real)
{
    if (mask.batch() != real.batch()) {
        throw shape_error("attention: the mask has " + std::to_string(mask.batch()) + " lengths but the batch has " +
                          std::to_string(real.batch()) + " rows; give one length a row");
    }
    std::vector<std::size_t> both(real.batch());
    for (std::size_t b = 0; b < both.size(); ++b) both[b] = std::min(mask[b], real[b]);
    return lengths(std::move(both));
}

/// What of a mask lies within a window.
inline no_mask mask_within(const no_mask&, const window&) { return {}; }
inline boolean_mask<2> mask_within(const boolean_mask<2>& mask, const window& where)
{
    const auto [B, T] = mask.shape();
    boolean_mask<2> part(shape_of_rank<2>{B, where.width});
    for (std::size_t b = 0; b < B; ++b) {
        for (std::size_t j = 0; j < where.count[b]; ++j) part[b * where.width + j] = mask[b * T + where.begin[b] + j];
    }
    return part;
}
template <class Bias>
auto mask_within(const additive_mask<Bias>& mask, const window& where)
{
    return additive_mask{ops::window_of(mask.bias, where)};
}

}  // namespace detail

}  // namespace heed
