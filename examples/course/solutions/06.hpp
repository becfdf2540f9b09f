// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "course.hpp"

// a) With the largest score subtracted, every exponential is at most 1, and one is exactly 1: nothing overflows, and
// the sum is not 0.
//
//     −log p_k = log Σ_i exp(e_i − m) − (e_k − m),   m = max e
inline double cross_entropy(const std::vector<double>& scores, std::size_t right)
{
    const double greatest = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (const double e : scores) sum += std::exp(e - greatest);
    return std::log(sum) - (scores[right] - greatest);
}

// b) A gradient that is longer than `clip` keeps its direction. The comparison also avoids a division by a length of 0.
inline void descend(std::vector<double>& theta, std::vector<double> gradient, double rate, double clip)
{
    double squares = 0;
    for (const double g : gradient) squares += g * g;
    const double length = std::sqrt(squares), factor = length > clip ? clip / length : 1;
    for (std::size_t i = 0; i < theta.size(); ++i) theta[i] -= rate * factor * gradient[i];
}
