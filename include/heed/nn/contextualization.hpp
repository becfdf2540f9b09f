// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>

#include <heed/core/mask.hpp>
#include <heed/core/parameters.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/masks.hpp>
#include <heed/ops/products.hpp>

namespace heed::inline HEED_TARGET::nn {

/// Masks word embeddings, dimension by dimension, by the context of their sentence.
///
///     x' = x ⊙ σ(M c + m)                     Choi, Cho, Bengio 2017
template <class Matrix, class Vector>
struct context_gate {
    Matrix M;  // [H,E]
    Vector m;  // [E]

    /// σ(M c + m) [B,E] of contexts [B,H]: the same for every word of a sentence.
    auto of(const tensor auto& context) const { return ops::sigmoid(ops::linear(context, M, m)); }

    auto operator()(const tensor auto& words, const tensor auto& context) const  // [B,T,E] or [B,E], with [B,H]
    {
        const auto gate = of(context);
        if constexpr (rank_of<decltype(words)> == 3) {
            return ops::multiply_per_position(words, gate);
        } else {
            return ops::multiply(words, gate);
        }
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return nn::context_gate{visit("M", self.M), visit("m", self.m)};
    }
};
template <class Matrix, class Vector>
context_gate(Matrix, Vector) -> context_gate<Matrix, Vector>;

/// A sentence as one vector, a nonlinear bag of words: x [B,T,E] -> [B,H]. Padding is ignored and may be NaN. Throws
/// shape_error unless the lengths fit.
///
///     c = (1/T) Σ_t tanh(W x_t + b)           Choi, Cho, Bengio 2018, §4.3; 0 for a sentence without words
auto sentence_context(const tensor auto& x, const lengths& real, const tensor auto& W, const tensor auto& b)
{
    static_assert(rank_of<decltype(x)> == 3, "heed: contextualization takes embeddings [B,T,E]");
    using T = element_of<decltype(x)>;
    const auto [B, positions, E] = shape_of(x);
    real.require("contextualization", B, positions);
    auto share = filled<T, 2>({B, positions}, T(0));
    for (std::size_t row = 0; row < B; ++row) {
        const T one = static_cast<T>(1.0 / static_cast<double>(real[row]));
        std::fill_n(share.data() + row * positions, real[row], one);
    }
    return ops::weighted_sum(share, ops::tanh(ops::linear(ops::clear_padding(x, real), W, b)));
}

/// Word embeddings that depend on their sentence, through a nonlinear bag of its words.
///
///     c = (1/T) Σ_t NN(x_t),  NN(x) = tanh(W x + b)            Choi, Cho, Bengio 2018, §4.3
///     x_t' = x_t ⊙ σ(M c + m), and target words likewise       Choi, Cho, Bengio 2017
///
/// The 2018 paper prints only c and otherwise "closely follow[s]" the earlier one. heed's choices: NN is one tanh
/// layer, and the mask is this gate (docs/explanation/decisions.md).
///
///     const auto c = contextualize.context(x, real);           // x [B,T,E]
///     const auto annotations = encode(contextualize.source(x, c, real));
///     const auto y_in = contextualize.target(y, c);            // y [B,E'] of a step, or [B,S,E'] of all
template <class Matrix, class Vector, class Gate>
struct contextualization {
    Matrix W;  // [E,H]
    Vector b;  // [H]
    Gate source_gate;
    Gate target_gate;

    /// The context c [B,H] of embeddings x [B,T,E]: see sentence_context.
    auto context(const tensor auto& x, const lengths& real) const { return nn::sentence_context(x, real, W, b); }

    /// The source words for the encoder, with zeros beyond each row's length.
    auto source(const tensor auto& x, const tensor auto& context, const lengths& real) const
    {
        return source_gate(ops::clear_padding(x, real), context);
    }

    /// Target words y [B,E'] or [B,S,E'] for the decoder.
    auto target(const tensor auto& y, const tensor auto& context) const { return target_gate(y, context); }

    static auto parameters(auto& self, auto&& visit)
    {
        return nn::contextualization{visit("W", self.W), visit("b", self.b), visit("source_gate", self.source_gate),
                                     visit("target_gate", self.target_gate)};
    }
};
template <class Matrix, class Vector, class Gate>
contextualization(Matrix, Vector, Gate, Gate) -> contextualization<Matrix, Vector, Gate>;

}  // namespace heed::inline HEED_TARGET::nn
