// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/tape.hpp>
#include <heed/ops/penalty.hpp>

/// The taped twins of ops/penalty.hpp.
namespace heed::ad {

/// loss = Σ_b rule(α_b)  ->  as the rule says
template <class Rule, class T>
var<T, 0> twin(const ops::penalty_op<Rule>& operation, const var<T, 3>& weights, const lengths& source,
               const lengths& target)
{
    tape<T>& on = weights.tape();
    const auto shape = weights.shape();
    operation.check(shape, source, target);
    auto [loss, out] = on.template make<0>({}, weights.wanted());
    const std::size_t* in_source = on.keep(source.data(), shape[1]);
    const std::size_t* in_target = on.keep(target.data(), shape[1]);
    T* scratch = on.memory().template array_of<T>(Rule::scratch(shape[0], shape[2]));
    *out = operation.compute(shape, weights.data(), in_source, in_target, scratch);
    on.record(loss, [&on, weights, in_source, in_target, scratch](const T* d_y) {
        T* d_a = on.adjoint(weights);
        const auto [S, B, positions] = weights.shape();
        for (std::size_t b = 0; b < B; ++b) {
            Rule::back(ops::penalty_op<Rule>::path(weights.shape(), weights.data(), b, in_source, in_target), scratch,
                       *d_y, d_a + b * positions);
        }
    });
    return loss;
}

/// loss = -Σ A_ti log α_ti  ->  ∂α_ti -= ∂loss A_ti / max(α_ti, floor)
template <class T, plain_tensor L>
var<T, 0> twin(const ops::guided_op& operation, const var<T, 3>& weights, const L& links_, const lengths& source,
               const lengths& target, double least)
{
    tape<T>& on = weights.tape();
    const auto shape = weights.shape();
    operation.check(shape, shape_of(links_), source, target);
    const T floor = static_cast<T>(least);
    auto [loss, out] = on.template make<0>({}, weights.wanted());
    const T* links = on.keep(static_cast<const T*>(view_of(links_).data), view_of(links_).size());
    const std::size_t* in_source = on.keep(source.data(), shape[1]);
    const std::size_t* in_target = on.keep(target.data(), shape[1]);
    *out = operation.compute(shape, weights.data(), links, in_source, in_target, floor);
    on.record(loss, [&on, weights, links, in_source, in_target, floor](const T* d_y) {
        T* d_a = on.adjoint(weights);
        ops::guided_op::each_link(weights.shape(), links, in_source, in_target, [&](std::size_t at, T link) {
            d_a[at] -= *d_y * link / std::max(weights.data()[at], floor);
        });
    });
    return loss;
}

}  // namespace heed::ad
