// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>
#include <utility>

#include <heed/attention/answers.hpp>
#include <heed/attention/concepts.hpp>
#include <heed/attention/state.hpp>
#include <heed/core/family.hpp>
#include <heed/core/mask.hpp>
#include <heed/score/hooks.hpp>

/// Score, normalize, combine: the three lines that attention is, and a kernel for all three where there is one.
///
///     e = match(query, keys)
///     α = normalize(e, state, at)
///     c = combine(α, values)
namespace heed {

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

/// Scores become weights: how attention calls a normalizer, and a normalizer one inside it. One that takes no state,
/// `normalize(scores, at)`, is given scores that are hidden already.
template <class Normalize>
auto weigh(const Normalize& normalize, const tensor auto& scores, const auto& state, const auto& at)
{
    if constexpr (requires { normalize(scores, state, at); }) {
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

/// What the combiner is given: the weights, or what the normalizer leaves of them (dropout on weights).
template <class Normalize>
auto thinned(const Normalize& normalize, const tensor auto& weights, const auto& at)
{
    if constexpr (requires { normalize.thin(weights, at); }) {
        return normalize.thin(weights, at);
    } else {
        return weights;
    }
}

/// Weights and values become a context, whether or not the combiner wants to know the moment.
template <class Combine>
auto combined(const Combine& combine, const tensor auto& weights, const tensor auto& values, const auto& at)
{
    if constexpr (requires { combine(weights, values, at); }) {
        return combine(weights, values, at);
    } else {
        return combine(weights, values);
    }
}

/// Is this policy what kernels know by one of these names? A policy says so by `using in_kernels = kernels::…;`.
template <class Policy, class... Names>
concept known_to_kernels_as = requires
{
    typename Policy::in_kernels;
}
&&(std::is_same_v<typename Policy::in_kernels, Names> || ...);

/// A kernel for the three lines. A score's header specialises this for its score and the normalizers and combiners that
/// the kernel knows, and so may a user's:
///
///     template <class M, class N, class C>
///         requires(heed::known_to_kernels_as<N, heed::kernels::softmax_of_row> &&
///                  heed::known_to_kernels_as<C, heed::kernels::weighted_sum_of_row>)
///     struct heed::step_kernel<mine::score<M>, N, C> {
///         using operation = mine::step_op;
///         static auto answer(const auto& score, const N&, const C&, const auto& operands, auto with) { … }
///     };
///
/// `answer` gets operands{query, keys, values, history, real} as they are after windows were cut, words projected and
/// what is remembered was added, and returns an `outcome` of tensors of the same family, made by the operation, which
/// has its own derivative.
template <class Score, class Normalize, class Combine>
struct step_kernel {};

/// Is there a kernel for this score, this normalizer and this combiner?
template <class Score, class Normalize, class Combine>
concept has_kernel = requires
{
    typename step_kernel<Score, Normalize, Combine>::operation;
};

/// What the three lines, or a kernel, find.
template <class Context, class Weights, class History>
struct outcome {
    Context context;
    Weights weights;
    History history;  // the normalizer's next state

    /// The same with f applied to every tensor (and to those of others beside it).
    auto map(auto&& f, const auto&... others) const
    {
        auto c = f(context, others.context...);
        auto w = f(weights, others.weights...);
        auto h = history.map(f, others.history...);
        return heed::outcome<decltype(c), decltype(w), decltype(h)>{std::move(c), std::move(w), std::move(h)};
    }
};
template <class Context, class Weights, class History>
outcome(Context, Weights, History) -> outcome<Context, Weights, History>;

/// What is compared and summed: the operands of the three lines.
template <class Query, class Keys, class Values, class History>
struct operands {
    const Query& query;      // [B,A], projected
    const Keys& keys;        // [B,T,A]
    const Values& values;    // [B,T,D]
    const History& history;  // the normalizer's state
    lengths_view real;       // of each row
};
template <class Query, class Keys, class Values, class History>
operands(const Query&, const Keys&, const Values&, const History&, lengths_view)
    -> operands<Query, Keys, Values, History>;

namespace detail {

/// Ways to compute the three lines: by a kernel where there is one; one line after the other, a sentence at a time; one
/// line after the other for the whole batch, which is the specification.
struct by_kernel {};
struct by_lines {};
struct line_by_line {};

/// The three lines. `past` is what the innermost score remembers.
template <class Score, class Normalize, class Combine>
auto three_lines(const Score& score, const Normalize& normalize, const Combine& combine, const auto& in,
                 const auto& past, const auto& at)
{
    const auto scores = heed::score::over::compare(score, in.query, in.keys, past);
    static_assert(rank_of<decltype(scores)> == (Score::weights == weight_kind::per_position ? 2 : 3),
                  "heed: the score's result has the wrong rank: a score per position gives [B,T], a score per "
                  "dimension gives [B,T,D], a score per group [B,T,G]");
    auto weights = weigh(normalize, scores, in.history, at);
    auto next = next_of(normalize, scores, weights, in.history, at);
    auto context = combined(combine, thinned(normalize, weights, at), in.values, at);
    return outcome{std::move(context), std::move(weights), std::move(next)};
}

}  // namespace detail

}  // namespace heed
