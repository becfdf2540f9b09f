// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <functional>
#include <vector>

#include <heed/core/tensor.hpp>

/// Attention from the papers' equations: plain scalar loops over plain vectors. Slow, without heed's operations, and
/// without guards against overflow.
namespace support::scalar {

using numbers = std::vector<double>;
using matrix = std::vector<numbers>;

inline numbers vector_of(const heed::array<double, 1>& v) { return {v.data(), v.data() + v.size()}; }

inline matrix matrix_of(const heed::array<double, 2>& m)
{
    matrix rows;
    for (std::size_t i = 0; i < m.shape()[0]; ++i) {
        rows.push_back(numbers(m.data() + i * m.shape()[1], m.data() + (i + 1) * m.shape()[1]));
    }
    return rows;
}

/// y_n = Σ_k x_k W_kn
inline numbers times(const numbers& x, const matrix& W)
{
    numbers y(W.front().size(), 0.0);
    for (std::size_t n = 0; n < y.size(); ++n) {
        for (std::size_t k = 0; k < x.size(); ++k) y[n] += x[k] * W[k][n];
    }
    return y;
}

inline double inner(const numbers& a, const numbers& b)
{
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

/// tanh(a + b + ...), elementwise
inline numbers hidden(const std::vector<numbers>& terms)
{
    numbers y(terms.front().size());
    for (std::size_t i = 0; i < y.size(); ++i) {
        double sum = 0;
        for (const numbers& term : terms) sum += term[i];
        y[i] = std::tanh(sum);
    }
    return y;
}

/// The scores of annotation h for a query: one, or one per dimension. The query's parts are concatenated.
using score = std::function<numbers(const std::vector<numbers>& query, const numbers& h)>;

/// e = vᵀ tanh(W s + U h)                                              Bahdanau et al. 2015
inline score additive(matrix W, matrix U, numbers v)
{
    return [=](const std::vector<numbers>& q, const numbers& h) {
        return numbers{inner(v, hidden({times(q[0], W), times(h, U)}))};
    };
}
/// e = vᵀ tanh(W s + U h + Y y)                                        Choi et al. 2018, eq. 6
inline score additive_with_word(matrix W, matrix U, numbers v, matrix Y)
{
    return [=](const std::vector<numbers>& q, const numbers& h) {
        return numbers{inner(v, hidden({times(q[0], W), times(h, U), times(q[1], Y)}))};
    };
}
/// e^d = V_dᵀ tanh(W s + U h)                                          Choi et al. 2018, eq. 7
inline score additive_per_dimension(matrix W, matrix U, matrix V)
{
    return [=](const std::vector<numbers>& q, const numbers& h) {
        return times(hidden({times(q[0], W), times(h, U)}), V);
    };
}
inline score additive_per_dimension_with_word(matrix W, matrix U, matrix V, matrix Y)
{
    return [=](const std::vector<numbers>& q, const numbers& h) {
        return times(hidden({times(q[0], W), times(h, U), times(q[1], Y)}), V);
    };
}
/// e = sᵀ h                                                            Luong et al. 2015, section 3.1
inline score dot()
{
    return [](const std::vector<numbers>& q, const numbers& h) { return numbers{inner(q[0], h)}; };
}
/// e = sᵀ W h
inline score general(matrix W)
{
    return [=](const std::vector<numbers>& q, const numbers& h) { return numbers{inner(times(q[0], W), h)}; };
}

/// The result of one sentence at one step.
struct answer {
    numbers context;  // [D]
    matrix weights;   // [T][1] or [T][D]
};

/// All steps of one sentence h_1 … h_T.
///
///     b_tj = exp(e_tj), and with `temporal` from the second step on exp(e_tj) / Σ_{k<t} exp(e_kj)
///     α_tj = b_tj / Σ_i b_ti                           Sankaran et al. 2016, eq. 6-8
///     c_t  = Σ_j α_tj h_j, or Σ_j α_tj ⊙ h_j with one weight per dimension
inline std::vector<answer> attend(const score& e, bool temporal, const matrix& sentence,
                                  const std::vector<std::vector<numbers>>& queries, std::size_t width)
{
    std::vector<answer> answers;
    matrix state;  // Σ_{k<t} exp(e_kj)
    for (std::size_t t = 0; t < queries.size(); ++t) {
        matrix b;
        for (const numbers& h : sentence) {
            b.push_back(e(queries[t], h));
            for (double& x : b.back()) x = std::exp(x);
        }
        const matrix now = b;
        if (temporal && t > 0) {
            for (std::size_t j = 0; j < b.size(); ++j) {
                for (std::size_t d = 0; d < b[j].size(); ++d) b[j][d] /= state[j][d];
            }
        }
        if (state.empty()) {
            state = now;
        } else {
            for (std::size_t j = 0; j < b.size(); ++j) {
                for (std::size_t d = 0; d < b[j].size(); ++d) state[j][d] += now[j][d];
            }
        }
        answer a{numbers(width, 0.0), b};
        for (std::size_t d = 0; !b.empty() && d < b[0].size(); ++d) {
            double sum = 0;
            for (const numbers& row : b) sum += row[d];
            for (numbers& row : a.weights) row[d] /= sum;
        }
        for (std::size_t j = 0; j < sentence.size(); ++j) {
            for (std::size_t d = 0; d < width; ++d) {
                a.context[d] += a.weights[j][a.weights[j].size() == 1 ? 0 : d] * sentence[j][d];
            }
        }
        answers.push_back(a);
    }
    return answers;
}

}  // namespace support::scalar
