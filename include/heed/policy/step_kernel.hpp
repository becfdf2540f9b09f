// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>
#include <utility>

#include <heed/core/mask.hpp>
#include <heed/core/tensor.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/kernels/tiles/comparisons.hpp>
#include <heed/kernels/weighted_sum.hpp>
#include <heed/ops/fused_steps.hpp>
#include <heed/policy/state.hpp>

/// Fused kernels for the three steps of attention:
///
///     e = match(query, keys)
///     α = normalize(e, state, at)
///     c = combine(α, values)
namespace heed::inline HEED_TARGET {

/// Tags: return the weights as well, or only the context. In the second case, a kernel per dimension does not compute
/// weights [B,T,D].
struct weights_too {};
/// The context without the weights.
struct context_only {};

/// Do kernels know this policy by one of these names? A policy declares its name as `using kernel_tag = kernels::…;`.
template <class Policy, class... Names>
concept known_to_kernels_as = requires
{
    typename Policy::kernel_tag;
}
&&(std::is_same_v<typename Policy::kernel_tag, Names> || ...);

/// A fused kernel for the three steps. The header of a score specializes this for its score and the normalizers and
/// combiners that the kernel supports. You can do the same for your score:
///
///     template <class M, class N, class C>
///         requires(heed::known_to_kernels_as<N, heed::kernels::softmax_of_row> &&
///                  heed::known_to_kernels_as<C, heed::kernels::weighted_sum_of_row>)
///     struct heed::step_kernel<mine::score<M>, N, C> {
///         using operation = mine::step_op;
///         static auto answer(const auto& score, const N&, const C&, const auto& operands, auto with) { … }
///     };
///
/// `answer` gets operands{query, keys, values, history, real}, after windows are cut, words are projected and wrapping
/// scores have added their terms to query and keys. It returns an `outcome` of tensors of the same family, computed by
/// the operation, which has its own derivative.
template <class Score, class Normalize, class Combine>
struct step_kernel {};

/// The results of the three steps, or of a kernel.
template <class Context, class Weights, class History>
struct outcome {
    Context context;
    Weights weights;
    History history;  // the normalizer's next state

    /// Applies f to every tensor of the outcome, together with the matching tensors of `others`.
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

/// The operands of the three steps.
template <class Query, class Keys, class Values, class History>
struct operands {
    const Query& query;      // [B,A], projected
    const Keys& keys;        // [B,T,A]
    const Values& values;    // [B,T,D]
    const History& history;  // the normalizer's state
    lengths_view real;       // the real positions of each row
};
template <class Query, class Keys, class Values, class History>
operands(const Query&, const Keys&, const Values&, const History&, lengths_view)
    -> operands<Query, Keys, Values, History>;

/// The kernel of scores that are inner products, e_j = a(q) · k_j. Such a score declares `using kernel_tag =
/// kernels::inner_product_score;` and has `asking(query)`, which returns a(q).
namespace kernels {

struct inner_product_score {
    using in_tiles = tiles::inner_product;
};

/// A score that wraps another and decays its scores by gates: score::gated_decay.
struct gated_decay_score {};

}  // namespace kernels

template <class Score, class Normalize, class Combine>
    requires(known_to_kernels_as<Score, kernels::inner_product_score>&& known_to_kernels_as<
             Normalize, kernels::softmax_of_row>&& known_to_kernels_as<Combine, kernels::weighted_sum_of_row>)
struct step_kernel<Score, Normalize, Combine> {
    using operation = ops::dot_step_op;

    static auto answer(const auto& score, const Normalize&, const Combine&, const auto& in, const auto&)
    {
        auto seen = operation{}(score.asking(in.query), in.keys, in.values, in.real);
        return outcome{std::move(seen.context), std::move(seen.weights), no_state{}};
    }
};

}  // namespace heed::inline HEED_TARGET
