// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <heed/nn/dropout.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/losses.hpp>
#include <heed/ops/symmetric_kl.hpp>
#include <heed/seq2seq/model.hpp>

namespace heed::inline HEED_TARGET::seq2seq {

/// The loss of R-Drop, and its first term.
template <class Loss>
struct r_drop_loss {
    Loss loss;           // to minimize
    Loss cross_entropy;  // the mean of both passes
};
template <class Loss>
r_drop_loss(Loss, Loss) -> r_drop_loss<Loss>;

/// R-Drop: the batch passes through the model twice with different dropout, and both predictions should agree. Half of
/// the loss of Liang et al. 2021 (arXiv 2106.14448), eq. 4; they use α = 5 for translation.
///
///     L = ½ (H_1 + H_2) + α/4 Σ (KL(p_1 ‖ p_2) + KL(p_2 ‖ p_1)),    H_i = Σ −log p_i(target)
///
/// Requires a model with `readouts(batch, drop)` and `output()`, such as `translator`. A step takes about twice as long
/// as with the model's `loss`, and twice the memory. Without dropout, L = H.
template <class T>
auto r_drop(const auto& model, const training_batch<T>& batch, double alpha, T smoothing, const nn::dropout& drop,
            const std::vector<std::uint32_t>* only = nullptr)
{
    const auto first = model.readouts(batch, drop), second = model.readouts(batch, drop);
    return detail::of_words(model.output(), batch.targets, only, [&](const auto& W, const auto& b, const auto& words) {
        const auto epsilon = static_cast<double>(smoothing);
        const auto one = ops::linear(first, W, b), other = ops::linear(second, W, b);
        auto cross_entropy = ops::scale(
            ops::add(ops::cross_entropy(one, words, epsilon), ops::cross_entropy(other, words, epsilon)), 0.5);
        auto loss = ops::add(cross_entropy, ops::scale(ops::symmetric_kl(one, other, words), alpha / 4));
        return r_drop_loss{std::move(loss), std::move(cross_entropy)};
    });
}

}  // namespace heed::inline HEED_TARGET::seq2seq
