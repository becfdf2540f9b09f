// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Alternatives to the softmax over all scores: sparse, capped, with a sink, with gates, with sigmoids, stick-breaking:
/// correia2019, gupta2021, gemma2024, xiao2024, openai2025, lin2025, ramapuram2025, tan2025.

#include <cmath>
#include <cstddef>
#include <utility>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/core/tensor.hpp>
#include <heed/normalize/entmax.hpp>
#include <heed/normalize/sigmoid.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/normalize/softmax_with_sink.hpp>
#include <heed/normalize/stick_breaking.hpp>
#include <heed/normalize/top_k.hpp>
#include <heed/score/forgetting.hpp>
#include <heed/score/modified.hpp>
#include <heed/score/scaled_dot.hpp>
#include <heed/simd/score_index.hpp>

/// Correia, Niculae and Martins 2019, "Adaptively Sparse Transformers".
namespace heed::inline HEED_TARGET::papers::correia2019 {

/// A head with learned sparsity, parameter a [1]. With a = 0, α is 1.5: Peters, Niculae, Martins 2019.
///
///     α-entmax(Q Kᵀ / √d) V,  α = 1 + σ(a)           section 3.2
auto adaptive(auto a)
{
    return attention{score::scaled_dot{}, normalize::entmax{std::move(a)}, combine::weighted_sum{}};
}

}  // namespace heed::inline HEED_TARGET::papers::correia2019

/// Gupta, Dar, Goodman, Ciprut and Berant 2021, "Memory-efficient Transformers via Top-k Attention".
namespace heed::inline HEED_TARGET::papers::gupta2021 {

/// Attention to the k keys with the largest scores.
///
///     C = softmax(top_k(Q Kᵀ / √d)) V               the weights of Zhao et al. 2019, "Explicit Sparse Transformer"
///
/// Deviation: all scores equal to the k-th largest get a weight.
inline auto top_k(std::size_t k)
{
    return attention{score::scaled_dot{}, normalize::top_k{k}, combine::weighted_sum{}};
}

}  // namespace heed::inline HEED_TARGET::papers::gupta2021

/// Gemma Team 2024, "Gemma 2: Improving Open Language Models at a Practical Size".
namespace heed::inline HEED_TARGET::papers::gemma2024 {

/// Caps scores between −cap and cap: cap · tanh(e / cap).
struct soft_cap {
    double cap = 50;

    auto operator()(const auto& e, const score_index&) const { return cap * tanh(e / cap); }
};

/// Attention with softly capped scores; c is 50 in the paper's models.
///
///     C = softmax(c · tanh(Q Kᵀ / √d / c)) V
inline auto capped(double cap = 50)
{
    return attention{score::modified{score::scaled_dot{}, soft_cap{cap}}, normalize::softmax{},
                     combine::weighted_sum{}};
}

}  // namespace heed::inline HEED_TARGET::papers::gemma2024

/// Xiao, Tian, Chen, Han and Lewis 2024, "Efficient Streaming Language Models with Attention Sinks".
namespace heed::inline HEED_TARGET::papers::xiao2024 {

/// Attention with a sink of score 0 ("zero sink", or softmax off by one: Miller 2023). ad::lift makes the sink
/// trainable.
///
///     α_j = exp(e_j) / (1 + Σ_k exp(e_k))           "SoftMax₁"
template <class T>
auto zero_sink()
{
    return attention{score::scaled_dot{}, normalize::softmax_with_sink{array<T, 1>{T(0)}}, combine::weighted_sum{}};
}

}  // namespace heed::inline HEED_TARGET::papers::xiao2024

/// OpenAI 2025, "gpt-oss-120b & gpt-oss-20b Model Card".
namespace heed::inline HEED_TARGET::papers::openai2025 {

/// Attention with a learned sink s [1], one for each head.
///
///     α_j = exp(e_j) / (exp(s) + Σ_k exp(e_k))           in words: a bias in the divisor of softmax
auto with_sink(auto s)
{
    return attention{score::scaled_dot{}, normalize::softmax_with_sink{std::move(s)}, combine::weighted_sum{}};
}

}  // namespace heed::inline HEED_TARGET::papers::openai2025

/// Lin, Nikishin, He and Courville 2025, "Forgetting Transformer: Softmax Attention with a Forget Gate".
namespace heed::inline HEED_TARGET::papers::lin2025 {

/// Forgetting attention of one head: `attend(memory, queries, causal{})`. w [D,1] and b [1] are applied to the head's
/// annotations x; no position encodings.
///
///     O = softmax(Q Kᵀ / √d + D) V,  D_ij = Σ_{l=j+1..i} log σ(w · x_l + b)          section 3
auto forgetting(auto w, auto b)
{
    return attention{score::forgetting{score::scaled_dot{}, std::move(w), std::move(b)}, normalize::softmax{},
                     combine::weighted_sum{}};
}

}  // namespace heed::inline HEED_TARGET::papers::lin2025

/// Ramapuram et al. 2025, "Theory, Analysis, and Best Practices for Sigmoid Self-Attention".
namespace heed::inline HEED_TARGET::papers::ramapuram2025 {

/// Attention by sigmoids, for sequences of about `length` positions: σ(Q Kᵀ / √d + b) V, b = −log n; section 2.
/// Deviation: the bias is one number for the whole model, even if the sentences of a batch differ in length.
inline auto sigmoid(std::size_t length)
{
    return attention{score::scaled_dot{}, normalize::sigmoid{-std::log(static_cast<double>(length))},
                     combine::weighted_sum{}};
}

}  // namespace heed::inline HEED_TARGET::papers::ramapuram2025

/// Tan, Yang, Courville, Panda and Shen 2025, "Scaling Stick-Breaking Attention: An Efficient Implementation and
/// In-depth Study".
namespace heed::inline HEED_TARGET::papers::tan2025 {

/// Stick-breaking attention: `attend(memory, queries, causal{})`. Deviation: the query attends to its own position,
/// too; in the paper, only to earlier ones.
///
///     α_j = σ(e_j) Π_{j<k} (1 − σ(e_k)),  e = Q Kᵀ / √d
inline auto stick_breaking()
{
    return attention{score::scaled_dot{}, normalize::stick_breaking{}, combine::weighted_sum{}};
}

}  // namespace heed::inline HEED_TARGET::papers::tan2025
