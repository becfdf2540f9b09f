// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/products.hpp>
#include <heed/core/random.hpp>
#include <heed/ops/embedding.hpp>
#include <heed/ops/training.hpp>

/// The taped twins of ops/embedding.hpp and ops/training.hpp.
namespace heed::ad {

using ops::expected_words;

/// y[s,b] = E[ids[s,b]]  ->  ∂E[ids[s,b]] += ∂y[s,b]
/// For a parameter E the touched rows are gathered into a sparse gradient, see tape::gradient_rows.
template <class T>
var<T, 3> twin(const ops::lookup_op& operation, const var<T, 2>& table, const word_ids& words)
{
    tape<T>& on = table.tape();
    auto [y, out] = on.template make<3>(operation.result_shape(table.shape(), words), table.wanted());
    const std::size_t width = table.shape()[1];
    operation.compute(words, width, table.data(), out);
    if (table.wanted()) {
        const std::uint32_t* ids = on.keep(words.ids.data(), words.ids.size());
        on.record(y, [&on, table, ids, count = words.ids.size(), width](const T* d_y) {
            slot<T>& s = table.slot();
            if (s.leaf) {
                auto* use = on.memory().template array_of<waiting_rows<T>>(1);
                *use = {ids, d_y, count, s.lookups};
                s.lookups = use;
            } else {
                T* d_table = on.adjoint(table);
                for (std::size_t i = 0; i < count; ++i) kernels::add(width, d_table + ids[i] * width, d_y + i * width);
            }
        });
    }
    return y;
}

/// y_i = x_i keep_i / (1 − rate)  ->  ∂x_i += ∂y_i keep_i / (1 − rate)
template <class T, std::size_t R>
var<T, R> twin(const ops::dropout_op&, const var<T, R>& x, double rate, std::uint64_t stream)
{
    if (rate <= 0) return x;
    if (rate >= 1) throw error("dropout: the rate is " + std::to_string(rate) + " but must be below 1");
    tape<T>& on = x.tape();
    auto [y, out] = on.template make<R>(x.shape(), x.wanted());
    T* mask = on.memory().template array_of<T>(x.size());
    const T kept = static_cast<T>(1 / (1 - rate));
    // One 64-bit number decides over four elements, 16 bits each: finer than any rate that is used.
    const auto bound = static_cast<std::uint64_t>(rate * 65536.0 + 0.5);
    const std::size_t n = x.size();
    parallel_for(
        n, std::size_t{1} << 15,
        [&, out = out](std::size_t begin, std::size_t end, std::size_t) {
            for (std::size_t i = begin; i < end; i += 4) {
                const std::uint64_t bits = mix(stream + i / 4);
                for (std::size_t k = 0; k < 4 && i + k < end; ++k) {
                    mask[i + k] = ((bits >> (16 * k)) & 0xffff) < bound ? T(0) : kept;
                    out[i + k] = x.data()[i + k] * mask[i + k];
                }
            }
        },
        64);
    on.record(y, [&on, x, mask](const T* d_y) {
        T* d_x = on.adjoint(x);
        simd::parallel_transform(
            x.size(), d_x, [](auto sum, auto m, auto d) { return sum + m * d; }, static_cast<const T*>(d_x),
            static_cast<const T*>(mask), d_y);
    });
    return y;
}

/// loss = Σ_r weight_r (−log softmax(x_r W + b)[target_r])
///   ->  ∂logits = weight (softmax − q) ∂loss,  ∂x += ∂logits Wᵀ,  ∂W += xᵀ ∂logits,  ∂b += Σ_r ∂logits
/// The gradient of the logits takes their place in memory as soon as the loss is known.
template <class T>
var<T, 0> twin(const ops::cross_entropy_op& operation, const var<T, 3>& x, const var<T, 2>& W, const var<T, 1>& b,
               const expected_words<T>& targets, std::type_identity_t<T> smoothing)
{
    tape<T>& on = x.tape();
    operation.check(x.shape(), W.shape(), b.shape(), targets);
    auto [loss, out] = on.template make<0>({}, x.wanted() || W.wanted() || b.wanted());
    const std::size_t rows = targets.words.ids.size(), N = W.shape()[0], V = W.shape()[1];
    T* logits = on.memory().template array_of<T>(rows * V);
    T* losses = on.memory().template array_of<T>(rows);
    const T* weights = targets.weights.data();
    if (!loss.wanted()) {
        ops::linear_op::compute(rows, N, V, x.data(), W.data(), b.data(), logits);
        *out = static_cast<T>(kernels::cross_entropy(rows, V, static_cast<const T*>(logits), targets.words.ids.data(),
                                                     weights, smoothing, losses));
        return loss;
    }
    ops::linear_op::compute<T>(rows, N, V, x.data(), W.data(), nullptr, logits);
    *out = static_cast<T>(kernels::cross_entropy_in_place(rows, V, logits, targets.words.ids.data(), weights, smoothing,
                                                          losses, b.data()));
    on.record(loss, [&on, x, W, b, logits, rows, N, V](const T* d_loss) {
        if (*d_loss != T(1)) {
            const T factor = *d_loss;
            simd::parallel_transform(
                rows * V, logits, [factor](auto g) { return g * factor; }, static_cast<const T*>(logits));
        }
        product_back<T>(on, rows, N, V, x.slot(), W.slot(), logits);
        if (T* d_b = on.wanted_adjoint(b)) {
            parallel_for(
                V, std::size_t{1} << 10,
                [&](std::size_t first, std::size_t last, std::size_t) {
                    for (std::size_t r = 0; r < rows; ++r)
                        kernels::add(last - first, d_b + first, logits + r * V + first);
                },
                16);
        }
    });
    return loss;
}

namespace detail {

/// ∂logits += weight_r (softmax − q) of each row r. What the softmax was is worked out again: saving it would cost
/// another [S,B,V].
template <class T, std::size_t R>
void cross_entropy_back(tape<T>& on, const var<T, R>& logits, const std::uint32_t* ids, const T* weights, T smoothing)
{
    const std::size_t vocabulary = logits.shape()[R - 1], rows = vocabulary == 0 ? 0 : logits.size() / vocabulary;
    const auto into = on.accumulate(logits.slot());
    const auto before = on.memory().mark();
    T* const losses = on.memory().template array_of<T>(rows);
    T* const gradient = into.beta == 0 ? into.data : on.memory().template array_of<T>(logits.size());
    kernels::cross_entropy_gradient(rows, vocabulary, logits.data(), ids, weights, smoothing, losses, gradient);
    if (gradient != into.data) kernels::add(logits.size(), into.data, static_cast<const T*>(gradient));
    on.memory().release(before);
}

}  // namespace detail

/// ℓ_r = weight_r (−log softmax(logits_r)[target_r])  ->  ∂logits_r += ∂ℓ_r weight_r (softmax − q)
template <class T, std::size_t R>
auto twin(const ops::cross_entropy_each_op& operation, const var<T, R>& logits, const expected_words<T>& targets,
          std::type_identity_t<T> smoothing = 0)
{
    tape<T>& on = logits.tape();
    operation.check(logits.shape(), targets);
    auto [losses, out] = on.template make<R - 1>(operation.result_shape(logits.shape()), logits.wanted());
    operation.compute(logits.shape()[R - 1], logits.data(), targets, smoothing, out);
    if (!logits.wanted()) return losses;
    const std::uint32_t* ids = on.keep(targets.words.ids.data(), targets.words.ids.size());
    const T* weights = on.keep(targets.weights.data(), targets.weights.size());
    on.record(losses, [&on, logits, ids, weights, smoothing, rows = losses.size()](const T* d_losses) {
        T* const each = on.memory().template array_of<T>(rows);
        for (std::size_t r = 0; r < rows; ++r) each[r] = weights[r] == T(0) ? T(0) : weights[r] * d_losses[r];
        detail::cross_entropy_back(on, logits, ids, each, smoothing);
    });
    return losses;
}

/// loss = Σ_r ℓ_r  ->  ∂logits_r += ∂loss weight_r (softmax − q)
template <class T, std::size_t R>
var<T, 0> twin(const ops::cross_entropy_op&, const var<T, R>& logits, const expected_words<T>& targets,
               std::type_identity_t<T> smoothing = 0)
{
    using each = ops::cross_entropy_each_op;
    tape<T>& on = logits.tape();
    each::check(logits.shape(), targets, "cross_entropy");
    auto [loss, out] = on.template make<0>({}, logits.wanted());
    const std::size_t rows = targets.words.ids.size();
    T* const losses = on.memory().template array_of<T>(rows);
    *out = static_cast<T>(each::compute(logits.shape()[R - 1], logits.data(), targets, smoothing, losses));
    if (!logits.wanted()) return loss;
    const std::uint32_t* ids = on.keep(targets.words.ids.data(), rows);
    const T* weights = on.keep(targets.weights.data(), rows);
    on.record(loss, [&on, logits, ids, weights, smoothing, rows](const T* d_loss) {
        T* const scaled = on.memory().template array_of<T>(rows);
        for (std::size_t r = 0; r < rows; ++r) scaled[r] = *d_loss * weights[r];
        detail::cross_entropy_back(on, logits, ids, scaled, smoothing);
    });
    return loss;
}

}  // namespace heed::ad
