// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/kernels/cross_entropy.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/embedding.hpp>
#include <heed/ops/operation.hpp>
#include <heed/ops/products.hpp>

/// Losses of a model's predictions against expected words.
namespace heed::inline HEED_TARGET::ops {

/// A view of expected words: the losses' argument.
template <class T>
struct expected_words_view {
    std::size_t steps = 0, batch = 0;
    std::span<const std::uint32_t> ids;  // [S,B]
    std::span<const T> weights;          // [S,B]

    /// A copy in memory that the tape `where` keeps.
    expected_words_view kept(auto& where) const
    {
        return {steps,
                batch,
                {where.keep(ids.data(), ids.size()), ids.size()},
                {where.keep(weights.data(), weights.size()), weights.size()}};
    }
};

/// The words that a model should predict, and the weight of each; 0 for padding. A word of weight 0 is not read: it may
/// be any number, such as PyTorch's ignore_index -100 (as std::uint32_t).
template <class T>
struct expected_words {
    word_ids words;          // [S,B]
    std::vector<T> weights;  // [S,B]

    /// The view that operations take.
    expected_words_view<T> view() const { return {words.steps, words.batch, words.ids, weights}; }

    /// A copy with weights of another element type, as constants of a tape of that type.
    template <class U>
        requires(!std::is_same_v<U, T>)
    expected_words_view<U> as(auto& tape)
    const
    {
        U* const same = tape.memory().template array_of<U>(weights.size());
        std::copy(weights.begin(), weights.end(), same);
        return {words.steps, words.batch, words.ids, {same, weights.size()}};
    }
};

/// The weights of targets in a loss.
template <class T>
struct target_weights {
    std::optional<std::uint32_t> ignored{};  // a target of weight 0, F.cross_entropy's `ignore_index`
    std::vector<T> of_classes{};             // [V], F.cross_entropy's `weight`; empty: 1 for each class
    bool mean = false;                       // the weights sum to 1: the loss is a mean over targets
};

/// Targets with a weight for each: the weight of its class, or 0 if it is ignored; divided by their sum for a mean.
///
///     auto targets = ops::expect<float>(ids, {.ignored = 0, .of_classes = {1, 2, 2}, .mean = true});    // ids [S,B]
///     auto loss = ops::cross_entropy(logits, targets);
///
/// A mean over no target is 0. Throws heed::error if a target that is not ignored has no class weight.
template <class T>
expected_words<T> expect(word_ids words, const target_weights<T>& how = {})
{
    expected_words<T> targets{std::move(words), {}};
    T sum = 0;
    targets.weights.reserve(targets.words.ids.size());
    for (const std::uint32_t id : targets.words.ids) {
        const bool counts = id != how.ignored;
        if (counts && !how.of_classes.empty() && id >= how.of_classes.size()) {
            throw error("expect: target " + std::to_string(id) + " has no weight: there are " +
                        counted(how.of_classes.size(), "class weight") + "; ids count from 0");
        }
        targets.weights.push_back(!counts ? T(0) : how.of_classes.empty() ? T(1) : how.of_classes[id]);
        sum += targets.weights.back();
    }
    if (how.mean && sum != T(0)) {
        for (T& weight : targets.weights) weight /= sum;
    }
    return targets;
}

namespace detail {

/// Throws shape_error unless there is a target and a weight for each row of `rows`, [S,B], and heed::error unless each
/// target with a nonzero weight is in the vocabulary.
template <class T>
void require_targets(const shape_of_rank<2>& rows, std::size_t vocabulary, const expected_words_view<T>& targets,
                     const char* where, const char* of)
{
    require_shape<2>(where, "the targets", {targets.steps, targets.batch}, rows, "one word for each row of ", of);
    require_shape<1>(where, "the list of targets", {targets.ids.size()}, {rows[0] * rows[1]},
                     "one word for each row of ", of);
    require_shape<1>(where, "the weights", {targets.weights.size()}, {rows[0] * rows[1]}, "one for each target");
    for (std::size_t r = 0; r < targets.ids.size(); ++r) {
        const std::uint32_t id = targets.ids[r];
        if (id >= vocabulary && targets.weights[r] != T(0)) {
            throw error(std::string(where) + ": target word " + std::to_string(id) + " of a vocabulary of " +
                        counted(vocabulary, "word") + "; ids count from 0");
        }
    }
}

/// require_targets for logits [S,B,V] or [B,V].
template <class T, std::size_t R>
void require_targets_of_logits(const shape_of_rank<R>& logits, const expected_words_view<T>& targets, const char* where)
{
    static_assert(R == 2 || R == 3, "heed: cross-entropy takes logits [S,B,V], or [B,V] for one step");
    require_targets({R == 3 ? logits[0] : 1, logits[R - 2]}, logits[R - 1], targets, where, "the logits");
}

/// A loss of logits with label smoothing as an optional last argument, 0 by default.
template <class Self>
struct smoothed_operation : operation<Self> {
    using operation<Self>::operator();
    auto operator()(const tensor auto& logits, const auto& targets) const { return (*this)(logits, targets, 0.0); }
};

/// ∂logits_r += factor(r) weight_r (softmax − q) for each row r. The softmax is recomputed: storing it would take
/// another [S,B,V].
template <class T, std::size_t R>
void cross_entropy_back(in<T, R> logits, const expected_words_view<T>& targets, T smoothing, adjoint<T, R> d_logits,
                        const auto& factor)
{
    const std::size_t V = logits.shape[R - 1];
    each_row(targets.ids.size(), V, [&](std::size_t r) {
        if (targets.weights[r] == T(0)) return;  // padding is not read
        scratch here;
        T* const gradient = here.take<T>(V);
        kernels::detail::cross_entropy_row(V, logits.data + r * V, std::size_t{targets.ids[r]},
                                           factor(r) * targets.weights[r], smoothing, gradient);
        kernels::add(V, d_logits.data + r * V, static_cast<const T*>(gradient));
    });
}

}  // namespace detail

/// ℓ_r = weight_r (−log p_r[target_r]), p = softmax(logits), the term of each row in cross_entropy(logits, targets, ε):
/// logits [S,B,V] -> [S,B], or [B,V] -> [B]. Rows of weight 0 (padding) are not read and get 0.
/// Throws heed::error for a target beyond V with another weight.
///
///     ∂logits_r += ∂ℓ_r weight_r (p_r − q_r), q_r the expected distribution: see kernels/cross_entropy.hpp
struct cross_entropy_per_word_op : detail::smoothed_operation<cross_entropy_per_word_op> {
    static constexpr ranks takes{2, 3};

    template <class T>
    static auto shape(const auto& logits, const expected_words_view<T>& targets, double)
    {
        constexpr std::size_t R = rank_of<decltype(logits)>;
        detail::require_targets_of_logits<T, R>(logits.shape, targets, "cross_entropy_per_word");
        shape_of_rank<R - 1> rows;
        std::copy_n(logits.shape.begin(), R - 1, rows.begin());
        return rows;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> logits, const expected_words_view<T>& targets, double smoothing, out<T, R - 1> losses)
    {
        kernels::cross_entropy(losses.size(), logits.shape[R - 1], logits.data, targets.ids.data(),
                               targets.weights.data(), static_cast<T>(smoothing), losses.data);
        for (std::size_t r = 0; r < losses.size(); ++r) losses.data[r] *= targets.weights[r];
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> logits, const expected_words_view<T>& targets, double smoothing, in<T, R - 1>,
                         in<T, R - 1> d_losses, adjoint<T, R> d_logits)
    {
        detail::cross_entropy_back(logits, targets, static_cast<T>(smoothing), d_logits,
                                   [=](std::size_t r) { return d_losses.data[r]; });
    }
};
inline constexpr cross_entropy_per_word_op cross_entropy_per_word{};

/// ℓ = Σ_r weight_r (−log p_r[target_r]), in nats: logits [S,B,V] or [B,V], or x [S,B,N], W [N,V], b [V] -> []. Rows of
/// weight 0 (padding) are not read. Throws heed::error for a target beyond V with another weight.
///
///     cross_entropy(logits, targets, ε)      p = softmax(logits): logits [S,B,V], or [B,V] for one step
///     cross_entropy(x, W, b, targets, ε)     p = softmax(x W + b): x [S,B,N], W [N,V], b [V]
///
///     ∂logits_r += ∂ℓ weight_r (p_r − q_r)   for the second form on the tape: ad/products.hpp
///
/// In the second form the logits [S,B,V] are stored once, for their gradient.
/// Label smoothing ε (Szegedy et al. 2016): the target has probability 1 − ε, and ε is spread over the vocabulary.
struct cross_entropy_op : detail::smoothed_operation<cross_entropy_op> {
    static constexpr ranks takes{2, 3};

    template <class T>
    static shape_of_rank<0> shape(const auto& logits, const expected_words_view<T>& targets, double)
    {
        detail::require_targets_of_logits<T, rank_of<decltype(logits)>>(logits.shape, targets, "cross_entropy");
        return {};
    }
    template <class T>
    static shape_of_rank<0> shape(const auto& x, const auto& W, const auto& b, const expected_words_view<T>& targets,
                                  double)
    {
        require_shape("cross_entropy", "W", W.shape, {x.shape[2], b.shape[0]}, "one row for each column of x ", x.shape,
                      ", one column for each bias");
        detail::require_targets({x.shape[0], x.shape[1]}, W.shape[1], targets, "cross_entropy", "x");
        return {};
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> logits, const expected_words_view<T>& targets, double smoothing, out<T, 0> loss)
    {
        const std::size_t rows = targets.ids.size();
        scratch here;
        *loss.data = static_cast<T>(kernels::cross_entropy(rows, logits.shape[R - 1], logits.data, targets.ids.data(),
                                                           targets.weights.data(), static_cast<T>(smoothing),
                                                           here.take<T>(rows)));
    }
    template <class T>
    static void forward(in<T, 3> x, in<T, 2> W, in<T, 1> b, const expected_words_view<T>& targets, double smoothing,
                        out<T, 0> loss)
    {
        const shape_of_rank<3> shape{x.shape[0], x.shape[1], W.shape[1]};
        scratch here;
        T* const logits = here.take<T>(targets.ids.size() * W.shape[1]);
        linear_op::forward(x, W, b, out<T, 3>{logits, shape});
        forward(in<T, 3>{logits, shape}, targets, smoothing, loss);
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> logits, const expected_words_view<T>& targets, double smoothing, in<T, 0>,
                         in<T, 0> d_loss, adjoint<T, R> d_logits)
    {
        detail::cross_entropy_back(logits, targets, static_cast<T>(smoothing), d_logits,
                                   [=](std::size_t) { return *d_loss.data; });
    }
};
inline constexpr cross_entropy_op cross_entropy{};

}  // namespace heed::inline HEED_TARGET::ops
