// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <vector>

#include "course.hpp"

/// Exercise a: the softmax of any scores, including those of 1000 and more.
///
///     α_j = exp(e_j) / Σ_k exp(e_k)
inline std::vector<double> softmax(const std::vector<double>& scores)
{
    std::vector<double> weights;  // right for small scores only
    double sum = 0;
    for (const double e : scores) sum += std::exp(e);
    for (const double e : scores) weights.push_back(std::exp(e) / sum);
    return weights;
}

/// Exercise b: the context of a query, for words j with key keys[j] and value values[j].
///
///     α = softmax(q · k_j / √d),  c = Σ_j α_j v_j
inline std::vector<double> context(const std::vector<double>& query, const std::vector<std::vector<double>>& keys,
                                   const std::vector<std::vector<double>>& values)
{
    (void)query, (void)keys, (void)values;  // silences a warning; remove this line
    throw course::not_yet{};
}
