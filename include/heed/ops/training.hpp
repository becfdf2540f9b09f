// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <heed/kernels/cross_entropy.hpp>
#include <heed/ops/embedding.hpp>
#include <heed/ops/operation.hpp>
#include <heed/ops/products.hpp>

namespace heed::ops {

/// Dropout (Srivastava et al. 2014): each element is 0 with probability `rate`, else divided by 1 − rate.   SPEC T5
///
/// Which elements go is a function of the stream and the element's place alone, so that a run can be repeated. Plain
/// tensors pass unchanged: inference drops nothing.
struct dropout_op : operation<dropout_op> {
    template <plain_tensor X>
    X plain(const X& x, double, std::uint64_t) const
    {
        return x;
    }
};
inline constexpr dropout_op dropout{};

/// The next words that a model should have predicted, and how much each of them counts; 0 for padding.
template <class T>
struct expected_words {
    word_ids words;          // [S,B]
    std::vector<T> weights;  // [S,B]
};

/// Σ_r weight_r (−log p_r[target_r]) with p = softmax(x W + b): x [S,B,N], W [N,V], b [V] -> one number, in nats.
/// The product and the softmax are one operation, so that the logits [S,B,V] are stored once, for their gradient.
/// Label smoothing ε (Szegedy et al. 2016): the target has 1 − ε, and ε is spread over the vocabulary.    SPEC T1
struct cross_entropy_op : operation<cross_entropy_op> {
    template <class T>
    static void check(const shape_of_rank<3>& x, const shape_of_rank<2>& W, const shape_of_rank<1>& b,
                      const expected_words<T>& targets)
    {
        require_shape("cross_entropy", "W", W, {x[2], b[0]}, "from x ", x, " to a bias for each word");
        require_shape<2>("cross_entropy", "the targets", {targets.words.steps, targets.words.batch}, {x[0], x[1]},
                         "one word for each row of x");
        require_shape<1>("cross_entropy", "the weights", {targets.weights.size()}, {x[0] * x[1]},
                         "one for each target");
        for (const std::uint32_t id : targets.words.ids) {
            if (id >= W[1]) {
                throw error("cross_entropy: target word " + std::to_string(id) + " of a vocabulary of " +
                            std::to_string(W[1]) + " words; ids count from 0");
            }
        }
    }

    template <plain_tensor X, plain_tensor M, plain_tensor V>
    auto plain(const X& x, const M& W, const V& b, const expected_words<element_of<X>>& targets,
               element_of<X> smoothing) const
    {
        using T = element_of<X>;
        check(shape_of(x), shape_of(W), shape_of(b), targets);
        const std::size_t rows = targets.words.ids.size();
        auto logits = linear(x, W, b);
        std::vector<T> losses(rows);
        array<T, 0> total(shape_of_rank<0>{});
        total.data()[0] = static_cast<T>(
            kernels::cross_entropy(rows, shape_of(W)[1], static_cast<const T*>(logits.data()), targets.words.ids.data(),
                                   targets.weights.data(), smoothing, losses.data()));
        return total;
    }
};
inline constexpr cross_entropy_op cross_entropy{};

}  // namespace heed::ops
