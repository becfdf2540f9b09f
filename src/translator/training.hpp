// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/core/errors.hpp>
#include <heed/gemm/products_in_bfloat16.hpp>
#include <heed/seq2seq/r_drop.hpp>

#include "objectives.hpp"
#include "system_of.hpp"

namespace heed::translator {

template <class Model>
float record_step(heed::ad::tape<float>& on, const Model& of, const training_step_input& one, const options& how,
                  const heed::nn::dropout& drop, system::variables& lifted, system::gradient_exchange* others)
{
    const heed::products_in_bfloat16 guard{how.bfloat16};
    const auto model = heed::ad::lift(on, of, lifted);
    const auto smoothing = static_cast<float>(how.label_smoothing);
    const std::vector<std::uint32_t>* const only = one.only ? &*one.only : nullptr;
    const auto backward_from = [&](const heed::ad::var<float, 0>& loss, const heed::ad::var<float, 0>& cross_entropy) {
        if (others != nullptr) others->before_backward(on, lifted);
        if (one.part && !one.part->learns) {  // this process has no sentence of this batch: its gradients are 0
            on.gradients_given();
            return 0.0f;
        }
        const float result = cross_entropy.data()[0];
        on.backward(loss);
        return result;
    };
    if (reads_weights(one, how)) {
        if constexpr (weighs_positions<Model>) {
            const auto seen = model.follow(one.examples, smoothing, drop, only);
            const heed::ad::var<float, 0> cross_entropy = seen.loss();
            return backward_from(add_objectives(cross_entropy, seen.weights, one, how), cross_entropy);
        } else {
            throw heed::error("penalties and guided alignment require one attention weight per source position, which "
                              "this model does not have");
        }
    }
    if (how.r_drop > 0) {
        const auto both = heed::seq2seq::r_drop(model, one.examples, how.r_drop, smoothing, drop, only);
        return backward_from(both.loss, both.cross_entropy);
    }
    const heed::ad::var<float, 0> loss = model.loss(one.examples, smoothing, drop, only);  // faster than follow
    return backward_from(loss, loss);
}

}  // namespace heed::translator
