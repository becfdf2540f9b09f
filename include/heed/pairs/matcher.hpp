// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include <heed/core/mechanism_list.hpp>
#include <heed/nn/dropout.hpp>
#include <heed/ops/embedding.hpp>
#include <heed/ops/losses.hpp>
#include <heed/ops/masks.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/shape.hpp>
#include <heed/ops/similarity.hpp>
#include <heed/pairs/abcnn.hpp>
#include <heed/pairs/batch.hpp>

namespace heed::inline HEED_TARGET::pairs {

/// The same blocks read both sentences; the model classifies the similarities of the two at each level.
///
///     F_0 = E x, G_0 = E' y,  (F_k, G_k) = block_k(F_{k-1}, G_{k-1})
///     f_k = mean of the columns of F_k,  g_k = mean of the columns of G_k
///     z = Σ_k W_k [cos(f_k, g_k); 1 / (1 + |f_k - g_k|)] + b,  p = softmax(z)
///
/// Yin et al. 2016, section 3: all pooling layers and the input are averaged and passed to the output layer, which is
/// logistic regression: with two classes, p(yes) = σ(z_1 - z_0). The paper uses one of the two similarities, depending
/// on the task. Here both are features, and each sentence has its own embedding table, so that the two sentences may be
/// of different languages.
///
/// `Blocks`: a std::vector of abcnn::block of one type, or a std::tuple of different types. K blocks give 2 (K + 1)
/// features.
template <class Matrix, class Blocks, class Vector>
struct matcher {
    Matrix first_words;   // [V,D] E
    Matrix second_words;  // [U,D] E'
    Blocks blocks;
    Matrix W;  // [2(K+1),2]
    Vector b;  // [2]

    /// z of each pair, one number per class: [B,2]. `drop` is applied to the embeddings.
    template <class T>
    auto logits(const batch<T>& pairs, const nn::dropout& drop = {}) const
    {
        const auto read = [&drop](const auto& table, const word_ids& words, const lengths& real) {
            return ops::swap_axes(ops::clear_ended(drop.time_major(ops::lookup(table, words)), real));  // [B,S,D]
        };
        abcnn::sentences level{read(first_words, pairs.first, pairs.first_real), pairs.first_real,
                               read(second_words, pairs.second, pairs.second_real), pairs.second_real};
        auto features = similarities(level);  // [B,2]
        (void)heed::detail::each_of(blocks, [&](auto i) {
            level = heed::detail::nth(blocks, i)(level);
            features = ops::concat(features, similarities(level));  // [B,2(k+1)]
            return i;
        });
        return ops::linear(features, W, b);
    }

    /// Σ −log p(class) over the pairs of the batch, in nats.
    template <class T>
    auto loss(const batch<T>& pairs, const nn::dropout& drop = {}) const
    {
        return ops::cross_entropy(logits(pairs, drop), pairs.expected);
    }

    /// p(yes) of each pair.
    template <class T>
    std::vector<T> probabilities(const batch<T>& pairs) const
    {
        const auto z = logits(pairs);
        std::vector<T> p(pairs.size());
        for (std::size_t i = 0; i < p.size(); ++i) p[i] = 1 / (1 + std::exp(z(i, no) - z(i, yes)));
        return p;
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return pairs::matcher{visit("first_words", self.first_words), visit("second_words", self.second_words),
                              visit("blocks", self.blocks), visit("W", self.W), visit("b", self.b)};
    }

private:
    /// [cos(f, g); 1 / (1 + |f - g|)] of the averages: [B,2].
    static auto similarities(const auto& level)
    {
        const auto [f, g] = abcnn::average(level);  // [B,N] each
        const auto one_position = [](const auto& x) { return ops::reshaped(x, shape_of(x)[0], 1, shape_of(x)[1]); };
        return ops::concat(ops::dot_per_position(ops::normalize_l2(f), one_position(ops::normalize_l2(g))),
                           ops::match_per_position(f, one_position(g)));
    }
};
template <class Matrix, class Blocks, class Vector>
matcher(Matrix, Matrix, Blocks, Matrix, Vector) -> matcher<Matrix, Blocks, Vector>;

}  // namespace heed::inline HEED_TARGET::pairs
