// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <vector>

#include "course.hpp"

/// Exercise a: the softmax of any scores, those of 1000 and more too.
///
///     α_j = exp(e_j) / Σ_k exp(e_k)
inline std::vector<double> softmax(const std::vector<double>& scores)
{
    std::vector<double> weights;  // right, as long as the scores are small
    double sum = 0;
    for (const double e : scores) sum += std::exp(e);
    for (const double e : scores) weights.push_back(std::exp(e) / sum);
    return weights;
}

/// Exercise b: the context of a query, where word j has the key keys[j] and the value values[j].
///
///     α = softmax(q · k_j / √d),  c = Σ_j α_j v_j
inline std::vector<double> context(const std::vector<double>& query, const std::vector<std::vector<double>>& keys,
                                   const std::vector<std::vector<double>>& values)
{
    (void)query, (void)keys, (void)values;  // so that the compiler does not complain; remove it
    throw course::not_yet{};
}
