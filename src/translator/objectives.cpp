// SPDX-License-Identifier: BSD-3-Clause

#include "objectives.hpp"

#include <cstddef>
#include <utility>

#include <heed/penalty/coverage.hpp>
#include <heed/penalty/doubly_stochastic.hpp>
#include <heed/penalty/guided_alignment.hpp>
#include <heed/penalty/monotone.hpp>

#include "kernels.hpp"

namespace heed::translator {

bool reads_weights(const training_step_input& one, const options& how)
{
    return !how.penalty.empty() || !one.links.empty();
}

heed::ad::var<float, 0> add_objectives(heed::ad::var<float, 0> loss,
                                       const std::vector<heed::ad::var<float, 2>>& weights,
                                       const training_step_input& one, const options& how)
{
    namespace penalty = heed::penalty;
    const heed::lengths &source = one.examples.source.real, target = one.examples.target_lengths();
    const auto of_token = static_cast<double>(one.examples.targets.weights.at(0));  // 1 / tokens of the step
    const auto add = [&](const heed::ad::var<float, 0>& term, double weight) {
        loss = heed::ops::add(loss, heed::ops::scale(term, weight * of_token));
    };
    for (const weighted_penalty& each : parse_penalties(how.penalty)) {
        if (each.name == "coverage") {
            add(penalty::coverage(weights, source, target), each.weight);
        } else if (each.name == "monotone") {
            add(penalty::monotone(weights, source, target), each.weight);
        } else {
            add(penalty::doubly_stochastic(weights, source, target), each.weight);
        }
    }
    if (!one.links.empty()) {
        std::vector<penalty::links> of_steps = one.links;
        for (penalty::links& sentence : of_steps) {
            for (auto& link : sentence) link.second += static_cast<int>(how.guided_shift);
        }
        add(penalty::guided_alignment(weights, of_steps, source, target), how.guided_weight);
    }
    return loss;
}

}  // namespace heed::translator
