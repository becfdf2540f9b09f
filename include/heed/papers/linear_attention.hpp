// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Attention without a softmax, in time linear in the number of positions: wu2019, katharopoulos2020, choromanski2021,
/// schlag2021, sun2023, dao2024, yang2024, yang2025.

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <heed/attention.hpp>
#include <heed/attention/execute/linear.hpp>
#include <heed/combine/delta_rule.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/heads/multi_head.hpp>
#include <heed/normalize/ratio.hpp>
#include <heed/normalize/retention.hpp>
#include <heed/score/cosine.hpp>
#include <heed/score/dot.hpp>
#include <heed/score/dynamic_convolution.hpp>
#include <heed/score/gated_decay.hpp>
#include <heed/score/kernel.hpp>
#include <heed/score/rotary.hpp>
#include <heed/score/scaled_dot.hpp>

/// Wu, Fan, Baevski, Dauphin and Auli 2019, "Pay Less Attention with Lightweight and Dynamic Convolutions".
namespace heed::inline HEED_TARGET::papers::wu2019 {

/// Dynamic convolution of one head. Its kernels of width K are computed from the words at their centers; W is [Q,K].
/// For a decoder, `side` is score::kernel_over::past. Retention with a decay of 1 uses scores as weights.
///
///     DynamicConv(X, i) = Σ_k softmax(W x_i)_k x_{i+k−⌈(K+1)/2⌉}                                    sections 3 and 4
auto dynamic(auto W, score::kernel_over side = score::kernel_over::both_sides)
{
    return attention{score::dynamic_convolution{std::move(W), side}, normalize::retention{}, combine::weighted_sum{}};
}

/// Lightweight convolution of one head, with one kernel w [K] for all positions.
///
///     LightConv(X, i) = Σ_k softmax(w)_k x_{i+k−⌈(K+1)/2⌉}                                                section 3
auto lightweight(auto w, score::kernel_over side = score::kernel_over::both_sides)
{
    return attention{score::lightweight_convolution{std::move(w), side}, normalize::retention{},
                     combine::weighted_sum{}};
}

}  // namespace heed::inline HEED_TARGET::papers::wu2019

/// Katharopoulos et al. 2020, "Transformers are RNNs: Fast Autoregressive Transformers with Linear Attention".
namespace heed::inline HEED_TARGET::papers::katharopoulos2020 {

/// Linear attention.
///
///     V'_i = Σ_{j≤i} φ(Q_i) · φ(K_j) V_j / Σ_{j≤i} φ(Q_i) · φ(K_j),  φ(x) = elu(x) + 1        eq. 4, 7 and 8
///
/// `attend(memory, queries, causal{})` takes linear time; `streaming{attend}` is the recurrent network of eq. 16 to 20.
inline auto linear()
{
    return attention{score::kernel{score::elu_plus_one{}}, normalize::ratio{}, combine::weighted_sum{}};
}

}  // namespace heed::inline HEED_TARGET::papers::katharopoulos2020

/// Choromanski et al. 2021, "Rethinking Attention with Performers".
namespace heed::inline HEED_TARGET::papers::choromanski2021 {

/// Softmax attention by positive random features, in linear time (FAVOR+): Ω [D,m] is drawn from N(0, 1). Deviation:
/// its columns are independent unless the caller orthogonalizes them (section 2.4).
///
///     φ(x) = exp(Ωᵀx' − ‖x'‖² / 2) / √m,  x' = x / D^¼           lemma 1
auto performer(auto Omega)
{
    return attention{score::kernel{score::positive_random{std::move(Omega)}}, normalize::ratio{},
                     combine::weighted_sum{}};
}

}  // namespace heed::inline HEED_TARGET::papers::choromanski2021

/// Schlag, Irie and Schmidhuber 2021, "Linear Transformers Are Secretly Fast Weight Programmers".
namespace heed::inline HEED_TARGET::papers::schlag2021 {

/// DeltaNet of one head: a key's value replaces the memory's answer there, at a learned rate.
///
///     W_t = W_{t−1} + β_t (v_t − v̄_t) ⊗ φ(k_t),  v̄_t = W_{t−1} φ(k_t),  β_t = σ(w · x_t + b)        section 4.2
///
/// Deviations: φ scales to length 1, as in Yang, Wang, Zhang, Shen and Kim 2024 ("Parallelizing Linear Transformers
/// with the Delta Rule over Sequence Length"); the paper's φ is DPFP, divided by its sum. w and b read the head's
/// annotations.
auto delta_net(auto w, auto b)  // [D,1], [1]
{
    return attention{score::cosine{}, normalize::retention{}, combine::delta_rule{std::move(w), std::move(b)}};
}

}  // namespace heed::inline HEED_TARGET::papers::schlag2021

/// Sun et al. 2023, "Retentive Network: A Successor to Transformer for Large Language Models".
namespace heed::inline HEED_TARGET::papers::sun2023 {

/// Retention of one head: keys decay by γ with each word.
///
///     Retention(X) = (Q Kᵀ ⊙ D) V,  D_nm = γ^(n−m) for n ≥ m        eq. 5; Q and K rotated by position, eq. 4
///
/// Keys are divided by √d, as in the paper's "retention score normalization". Deviations: the other factors there,
/// √(Σ_m D_nm) and max(|Σ_m R_nm|, 1), are omitted, since they only scale a row, which the norm after the heads
/// cancels; and R_p rotates pairs by Su et al.'s 10000^(−2m/d), where the authors' code has 10000^(−m/(d/2−1)).
inline auto retention(double gamma)
{
    return attention{score::rotary{score::scaled_dot{}}, normalize::retention{gamma}, combine::weighted_sum{}};
}

/// Several heads, γ = 1 − 2^(−5−h) of head h (eq. 8), without the subsequent norm and gate (nn/layer_norm.hpp).
auto multi_scale(std::size_t heads, auto W_Q, auto W_K, auto W_V, auto W_O)  // [Q,nK], [D,nK], [D,nV], [nV,O]
{
    std::vector<decltype(sun2023::retention(1))> all;
    for (std::size_t h = 0; h < heads; ++h)
        all.push_back(sun2023::retention(1 - std::exp2(-5.0 - static_cast<double>(h))));
    return multi_head{std::move(all), std::move(W_Q), std::move(W_K), std::move(W_V), std::move(W_O)};
}

}  // namespace heed::inline HEED_TARGET::papers::sun2023

/// Dao and Gu 2024, "Transformers are SSMs: Generalized Models and Efficient Algorithms Through Structured State Space
/// Duality".
namespace heed::inline HEED_TARGET::papers::dao2024 {

/// Structured masked attention (SSD) of one head, with the mask of a state-space model: queries are C, keys B, values
/// X.
///
///     Y = (L ∘ C Bᵀ) X,  L_ij = a_i ⋯ a_{j+1}                                            section 5.1
///
/// with a_t = σ(w · x_t + b) = exp(−softplus(−w · x_t − b)), which is exp(Δ A) of Mamba-2 with A = −1 and Δ the
/// softplus of a linear function; w [D,1] and b [1]. `attend(memory, queries, causal{})` takes linear time;
/// `streaming{attend}` is the recurrence h_t = a_t h_{t−1} + B_t x_tᵀ. Deviation: Δ does not also scale the input, the
/// values.
auto state_space(auto w, auto b)
{
    return attention{score::gated_decay{score::dot{}, std::move(w), std::move(b)}, normalize::retention{},
                     combine::weighted_sum{}};
}

}  // namespace heed::inline HEED_TARGET::papers::dao2024

/// Yang, Wang, Shen, Panda and Kim 2024, "Gated Linear Attention Transformers with Hardware-Efficient Training".
namespace heed::inline HEED_TARGET::papers::yang2024 {

/// Gated linear attention of one head, with a gate for each position: `attend(memory, queries, causal{})` takes linear
/// time; `streaming{attend}` is the recurrence.
///
///     S_t = α_t S_{t−1} + k_tᵀ v_t,  o_t = q_t S_t / √d,  α_t = σ(w · x_t + b)            section 4.1
///
/// w [D,1] and b [1] are applied to the head's annotations x. Deviation: the paper's α_t is a vector, σ(x W¹ W² +
/// b)^{1/16}, with a gate for each dimension of the keys. The factor 1/√d is taken from the authors' code. The norm and
/// the output gate are not included.
auto gated_linear(auto w, auto b)
{
    return attention{score::gated_decay{score::scaled_dot{}, std::move(w), std::move(b)}, normalize::retention{},
                     combine::weighted_sum{}};
}

}  // namespace heed::inline HEED_TARGET::papers::yang2024

/// Yang, Kautz and Hatamizadeh 2025, "Gated Delta Networks: Improving Mamba2 with Delta Rule".
namespace heed::inline HEED_TARGET::papers::yang2025 {

/// The gated delta rule of one head: the state forgets by a gate, and is corrected.
///
///     S_t = S_{t−1} α_t (I − β_t k_t k_tᵀ) + β_t v_t k_tᵀ,  o_t = S_t q_t                       section 3.1
///
/// with α_t = σ(w_a · x_t + b_a) and β_t = σ(w · x_t + b); keys and queries have length 1. Deviations: the paper's α_t
/// is Mamba-2's, exp(−A softplus(·)) with a learned A; its convolutions, norm and output gate are layers of a model.
auto gated_delta_net(auto w_a, auto b_a, auto w, auto b)  // [D,1], [1], [D,1], [1]
{
    return attention{score::gated_decay{score::cosine{}, std::move(w_a), std::move(b_a)}, normalize::retention{},
                     combine::delta_rule{std::move(w), std::move(b)}};
}

}  // namespace heed::inline HEED_TARGET::papers::yang2025
