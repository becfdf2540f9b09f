// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
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

namespace detail {

/// Throws unless there is a target and a weight for each row of `rows`, [S,B], and each target is in the vocabulary.
template <class T>
void require_targets(const shape_of_rank<2>& rows, std::size_t vocabulary, const expected_words<T>& targets,
                     const char* where, const char* of)
{
    require_shape<2>(where, "the targets", {targets.words.steps, targets.words.batch}, rows,
                     "one word for each row of ", of);
    require_shape<1>(where, "the weights", {targets.weights.size()}, {rows[0] * rows[1]}, "one for each target");
    for (const std::uint32_t id : targets.words.ids) {
        if (id >= vocabulary) {
            throw error(std::string(where) + ": target word " + std::to_string(id) + " of a vocabulary of " +
                        std::to_string(vocabulary) + " words; ids count from 0");
        }
    }
}

}  // namespace detail

/// Each row's part of the cross-entropy, weight_r (−log p_r[target_r]): logits [S,B,V] -> [S,B], or [B,V] -> [B]. 0 in
/// the padding, where the weight is 0 and nothing is read. Their sum is cross_entropy(logits, targets, ε).
struct cross_entropy_each_op : operation<cross_entropy_each_op> {
    template <std::size_t R, class T>
    static void check(const shape_of_rank<R>& logits, const expected_words<T>& targets,
                      const char* where = "cross_entropy_each")
    {
        static_assert(R == 2 || R == 3, "heed: cross-entropy takes logits [S,B,V], or [B,V] for one step");
        if constexpr (R == 3) {
            detail::require_targets({logits[0], logits[1]}, logits[2], targets, where, "the logits");
        } else {
            detail::require_targets({1, logits[0]}, logits[1], targets, where, "the logits");
        }
    }

    template <std::size_t R>
    static shape_of_rank<R - 1> result_shape(const shape_of_rank<R>& logits)
    {
        shape_of_rank<R - 1> shape;
        std::copy_n(logits.begin(), R - 1, shape.begin());
        return shape;
    }

    /// losses [R]; returns their sum.
    template <class T>
    static double compute(std::size_t vocabulary, const T* logits, const expected_words<T>& targets, T smoothing,
                          T* losses)
    {
        const std::size_t rows = targets.words.ids.size();
        const double total = kernels::cross_entropy(rows, vocabulary, logits, targets.words.ids.data(),
                                                    targets.weights.data(), smoothing, losses);
        for (std::size_t r = 0; r < rows; ++r) losses[r] *= targets.weights[r];
        return total;
    }

    template <plain_tensor L>
    auto plain(const L& logits, const expected_words<element_of<L>>& targets, element_of<L> smoothing = 0) const
    {
        const auto shape = shape_of(logits);
        check(shape, targets);
        auto losses = storage_for<element_of<L>, rank_of<L> - 1>(result_shape(shape));
        compute<element_of<L>>(shape.back(), view_of(logits).data, targets, smoothing, losses.data());
        return losses;
    }
};
inline constexpr cross_entropy_each_op cross_entropy_each{};

/// Σ_r weight_r (−log p_r[target_r]), one number, in nats. Rows of weight 0 (padding) are not read.
///
///     cross_entropy(logits, targets, ε)      p = softmax(logits): logits [S,B,V], or [B,V] for one step
///     cross_entropy(x, W, b, targets, ε)     p = softmax(x W + b): x [S,B,N], W [N,V], b [V]
///
/// In the second form the product and the softmax are one operation, so that the logits [S,B,V] are stored once, for
/// their gradient.
/// Label smoothing ε (Szegedy et al. 2016): the target has 1 − ε, and ε is spread over the vocabulary.    SPEC T1
struct cross_entropy_op : operation<cross_entropy_op> {
    template <class T>
    static void check(const shape_of_rank<3>& x, const shape_of_rank<2>& W, const shape_of_rank<1>& b,
                      const expected_words<T>& targets)
    {
        require_shape("cross_entropy", "W", W, {x[2], b[0]}, "from x ", x, " to a bias for each word");
        detail::require_targets({x[0], x[1]}, W[1], targets, "cross_entropy", "x");
    }

    template <plain_tensor X, plain_tensor M, plain_tensor V>
    auto plain(const X& x, const M& W, const V& b, const expected_words<element_of<X>>& targets,
               element_of<X> smoothing) const
    {
        check(shape_of(x), shape_of(W), shape_of(b), targets);
        return plain(linear(x, W, b), targets, smoothing);
    }

    template <plain_tensor L>
    auto plain(const L& logits, const expected_words<element_of<L>>& targets, element_of<L> smoothing = 0) const
    {
        using T = element_of<L>;
        const auto shape = shape_of(logits);
        cross_entropy_each_op::check(shape, targets, "cross_entropy");
        std::vector<T> losses(targets.words.ids.size());
        array<T, 0> total(shape_of_rank<0>{});
        total.data()[0] = static_cast<T>(
            cross_entropy_each_op::compute<T>(shape.back(), view_of(logits).data, targets, smoothing, losses.data()));
        return total;
    }
};
inline constexpr cross_entropy_op cross_entropy{};

}  // namespace heed::ops
