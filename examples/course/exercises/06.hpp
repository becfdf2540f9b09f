// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include "course.hpp"

// a) The cross-entropy of one letter: minus the logarithm of its probability. The probabilities are the softmax of the
// scores.
//
//     −log p_k,   p_k = exp(e_k) / Σ_i exp(e_i)
//
// exp(1000) overflows to infinity, and infinity / infinity is NaN. The softmax does not change if you subtract the same
// number from all scores. Which number is best?
inline double cross_entropy(const std::vector<double>& scores, std::size_t right)
{
    (void)scores, (void)right;
    throw course::not_yet{};
}

// b) One step of gradient descent, with clipping. ‖g‖ is the square root of the sum of the squares of all numbers in g.
//
//     g ← g · min(1, clip / ‖g‖)
//     θ ← θ − rate · g
//
// A gradient of zeros must leave θ unchanged.
inline void descend(std::vector<double>& theta, std::vector<double> gradient, double rate, double clip)
{
    (void)theta, (void)gradient, (void)rate, (void)clip;
    throw course::not_yet{};
}
