// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

/// Subtracting the same number from every score divides numerator and denominator by the same factor, so the weights do
/// not change. Subtract the maximum: then no exponent is above 0, and no exp above 1. heed does this as well.
inline std::vector<double> softmax(const std::vector<double>& scores)
{
    const double greatest = *std::max_element(scores.begin(), scores.end());
    std::vector<double> weights;
    double sum = 0;
    for (const double e : scores) sum += std::exp(e - greatest);
    for (const double e : scores) weights.push_back(std::exp(e - greatest) / sum);
    return weights;
}

/// Score, normalize, combine: the query is compared with the keys only, and the weights multiply the values only.
inline std::vector<double> context(const std::vector<double>& query, const std::vector<std::vector<double>>& keys,
                                   const std::vector<std::vector<double>>& values)
{
    std::vector<double> scores;
    for (const auto& key : keys) {
        double dot = 0;
        for (std::size_t i = 0; i < key.size(); ++i) dot += query[i] * key[i];
        scores.push_back(dot / std::sqrt(static_cast<double>(key.size())));
    }
    const std::vector<double> weights = softmax(scores);
    std::vector<double> sum(values[0].size());
    for (std::size_t j = 0; j < values.size(); ++j) {
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weights[j] * values[j][i];
    }
    return sum;
}
