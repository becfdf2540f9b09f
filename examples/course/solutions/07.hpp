// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "course.hpp"

using vector = std::vector<double>;
using matrix = std::vector<vector>;

// a) All three lines have the form x W + y U + b, written once. r multiplies the state before the product with U_h.
struct gru_weights {
    matrix W_z, W_r, W_h;
    vector b_z, b_r, b_h;
    matrix U_z, U_r, U_h;
};
inline vector gru_step(const gru_weights& of, const vector& x, const vector& h)
{
    const auto sum = [&](const matrix& W, const matrix& U, const vector& b, const vector& y) {
        vector a = b;
        for (std::size_t k = 0; k < a.size(); ++k) {
            for (std::size_t i = 0; i < x.size(); ++i) a[k] += x[i] * W[i][k];
            for (std::size_t i = 0; i < y.size(); ++i) a[k] += y[i] * U[i][k];
        }
        return a;
    };
    const auto sigmoid = [](double a) { return 1 / (1 + std::exp(-a)); };
    const vector z = sum(of.W_z, of.U_z, of.b_z, h), r = sum(of.W_r, of.U_r, of.b_r, h);
    vector used = h;
    for (std::size_t k = 0; k < h.size(); ++k) used[k] *= sigmoid(r[k]);
    vector next = sum(of.W_h, of.U_h, of.b_h, used);
    for (std::size_t k = 0; k < h.size(); ++k)
        next[k] = (1 - sigmoid(z[k])) * h[k] + sigmoid(z[k]) * std::tanh(next[k]);
    return next;
}

// b) A word without a counterpart, such as "und", spreads its weights and should remain without a link.
inline std::vector<std::pair<int, int>> links(const matrix& weights)
{
    std::vector<std::pair<int, int>> found;
    for (std::size_t s = 0; s < weights.size(); ++s) {
        const auto most = std::max_element(weights[s].begin(), weights[s].end());
        if (most != weights[s].end() && *most >= 0.5)
            found.emplace_back(static_cast<int>(most - weights[s].begin()), static_cast<int>(s));
    }
    return found;
}
