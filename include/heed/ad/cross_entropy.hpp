// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/products.hpp>
#include <heed/ops/losses.hpp>

/// Cross-entropy of a product on the tape: the gradient of the logits is written over them.
namespace heed::ad {

/// loss = Σ_r weight_r (−log softmax(x_r W + b)[target_r])
///   ->  ∂logits = weight (softmax − q) ∂loss,  ∂x += ∂logits Wᵀ,  ∂W += xᵀ ∂logits,  ∂b += Σ_r ∂logits
/// The gradient of the logits takes their place in memory as soon as the loss is known.
template <class T>
var<T, 0> twin(const ops::cross_entropy_op& operation, const var<T, 3>& x, const var<T, 2>& W, const var<T, 1>& b,
               const ops::expected_words<T>& targets, double smoothing)
{
    tape<T>& on = x.tape();
    (void)on.mine(W);
    (void)on.mine(b);
    operation.shape(x.value(), W.value(), b.value(), targets.view(), smoothing);
    auto [loss, out] = on.template make<0>({}, detail::any_wanted(x, W, b));
    const std::size_t rows = targets.words.ids.size(), N = W.shape()[0], V = W.shape()[1];
    if (!loss.wanted()) {
        operation.forward(x.value(), W.value(), b.value(), targets.view(), smoothing, tensor_view<T, 0>{out, {}});
        return loss;
    }
    T* const logits = on.memory().template array_of<T>(rows * V);
    scratch here;
    T* const losses = here.take<T>(rows);
    ops::linear_op::forward(x.value(), W.value(), tensor_view<T, 3>{logits, {x.shape()[0], x.shape()[1], V}});
    *out = static_cast<T>(kernels::cross_entropy_in_place(rows, V, logits, targets.words.ids.data(),
                                                          targets.weights.data(), static_cast<T>(smoothing), losses,
                                                          b.data()));
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
                    kernels::add_in_blocks(rows, last - first, d_b + first,
                                           [=](std::size_t begin, std::size_t end, T* to) {
                                               for (std::size_t r = begin; r < end; ++r)
                                                   kernels::add(last - first, to, logits + r * V + first);
                                           });
                },
                16);
        }
    });
    return loss;
}

/// The same with weights that are plain numbers.
template <dual_element T>
var<T, 0> twin(const ops::cross_entropy_op& operation, const var<T, 3>& x, const var<T, 2>& W, const var<T, 1>& b,
               const ops::expected_words<plain_number<T>>& targets, double smoothing)
{
    return twin(operation, x, W, b,
                ops::expected_words<T>{targets.words, {targets.weights.begin(), targets.weights.end()}}, smoothing);
}

}  // namespace heed::ad
