// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/ad.hpp>
#include <heed/gemm/products_in_bfloat16.hpp>

#include "system_of.hpp"

namespace heed::translator {

template <class Model>
float record_step(heed::ad::tape<float>& on, const Model& of, const training_step_input& one, const options& how,
                  const heed::nn::dropout& drop, system::variables& lifted, system::gradient_exchange* others)
{
    const heed::products_in_bfloat16 guard{how.bfloat16};
    const auto model = heed::ad::lift(on, of, lifted);
    const auto loss =
        model.loss(one.examples, static_cast<float>(how.label_smoothing), drop, one.only ? &*one.only : nullptr);
    if (others != nullptr) others->before_backward(on, lifted);
    if (one.part && !one.part->learns) {  // this process has no sentence of this batch: its gradients are 0
        on.gradients_given();
        return 0;
    }
    on.backward(loss);
    return loss.data()[0];
}

}  // namespace heed::translator
