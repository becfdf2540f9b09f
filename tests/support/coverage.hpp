// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <heed/heed.hpp>
#include <support/scalar_memory.hpp>
#include <support/scalar_translation.hpp>

/// The three forms of coverage over additive scores, and their equations as plain loops.
namespace support::coverages {

using namespace heed;

constexpr support::mechanism_sizes sizes{};  // query 3, width 5, alignment 4, word 2
constexpr std::size_t N = 3;                 // width of the coverage per position
inline const support::query_with_word describe{sizes.query, sizes.word};
inline const support::plain_query describe_state{sizes.query};
inline const support::additive_parameters parameters{sizes};
inline const verification_sizes verified{.query = sizes.query, .width = sizes.width};

inline auto cell_of(std::size_t coverage, std::uint64_t stream = 50)
{
    return nn::coverage_gru{random({sizes.word, 3 * coverage}, stream), random({3 * coverage}, stream + 1, 2.0),
                            random({coverage, 3 * coverage}, stream + 2)};
}
inline auto coverage_over(const auto& base)
{
    return score::with_coverage{base, random({N, sizes.alignment}, 53), cell_of(N)};
}

/// nn::coverage_gru at each position, with scalar z, r and c̃ (Sankaran et al. 2016, §4.1).
scalar::remembering scalar_coverage(const auto& score)
{
    struct state {
        scalar::matrix c;
        scalar::numbers alpha;
    };
    const auto now = std::make_shared<state>();
    const auto C = scalar::matrix_of(score.C), W = scalar::matrix_of(score.cell.W), U = scalar::matrix_of(score.cell.U);
    const auto a = scalar::vector_of(score.cell.a);
    return {[=](const scalar::matrix& sentence) {
                now->c.assign(sentence.size(), scalar::numbers(C.size(), 0.0));
                now->alpha.assign(sentence.size(), 0.0);
            },
            [=](std::size_t step, const std::vector<scalar::numbers>& query) {
                if (step == 0) return;
                const scalar::numbers y = scalar::times(query[1], W);
                for (std::size_t j = 0; j < now->c.size(); ++j) {
                    scalar::numbers& c = now->c[j];
                    const scalar::numbers u = scalar::times(c, U);
                    const std::size_t n = c.size();
                    for (std::size_t i = 0; i < n; ++i) {
                        const double z = scalar::sigmoid(y[i] + now->alpha[j] * a[i] + u[i]);
                        const double r = scalar::sigmoid(y[n + i] + now->alpha[j] * a[n + i] + u[n + i]);
                        const double fresh = std::tanh(y[2 * n + i] + now->alpha[j] * a[2 * n + i] + r * u[2 * n + i]);
                        c[i] = z * c[i] + (1 - z) * fresh;
                    }
                }
            },
            [=](std::size_t j) { return scalar::times(now->c[j], C); },
            [=](const scalar::numbers& weights) { now->alpha = weights; }};
}

inline auto fertility_over(const auto& base)
{
    return score::with_fertility{base, random({sizes.alignment}, 61), random({sizes.width}, 62), 3.0};
}

/// Tu et al. 2016, eq. 7-9.
scalar::remembering scalar_fertility(const auto& score)
{
    struct state {
        scalar::numbers C, fertility;
    };
    const auto now = std::make_shared<state>();
    const auto v = scalar::vector_of(score.v_c), U_f = scalar::vector_of(score.U_f);
    return {[=, most = score.N](const scalar::matrix& sentence) {
                now->C.assign(sentence.size(), 0.0);
                now->fertility.clear();
                for (const scalar::numbers& h : sentence)
                    now->fertility.push_back(most * scalar::sigmoid(scalar::inner(U_f, h)));
            },
            [](std::size_t, const std::vector<scalar::numbers>&) {},
            [=](std::size_t j) {
                scalar::numbers joins = v;
                for (double& x : joins) x *= now->C[j];
                return joins;
            },
            [=](const scalar::numbers& weights) {
                for (std::size_t j = 0; j < weights.size(); ++j) now->C[j] += weights[j] / now->fertility[j];
            }};
}

inline auto gated_over(const auto& base)
{
    return score::with_gated_coverage{base, random({N, sizes.alignment}, 63),
                                      nn::gated_coverage{random({sizes.width, 3 * N}, 64),
                                                         random({sizes.query, 3 * N}, 65), random({3 * N}, 66, 2.0),
                                                         random({N, 2 * N}, 67), random({N, N}, 68)}};
}

/// Tu et al. 2016, §3.1.2: a recurrent unit at each position that reads [h_j; s_t; α_{t,j}].
scalar::remembering scalar_gated_coverage(const auto& score)
{
    struct state {
        scalar::matrix sentence, C;
        scalar::numbers s;
    };
    const auto now = std::make_shared<state>();
    const auto V = scalar::matrix_of(score.V);
    scalar::matrix W = scalar::matrix_of(score.cell.W);
    for (const auto& row : scalar::matrix_of(score.cell.S)) W.push_back(row);
    W.push_back(scalar::vector_of(score.cell.a));
    const auto U = scalar::matrix_of(score.cell.U);
    const scalar::numbers none(N, 0.0);
    const scalar::gated_unit unit{scalar::columns(W, 0, N),
                                  scalar::columns(W, N, N),
                                  scalar::columns(W, 2 * N, N),
                                  scalar::columns(U, 0, N),
                                  scalar::columns(U, N, N),
                                  scalar::matrix_of(score.cell.U_c),
                                  none,
                                  none,
                                  none};
    return {[=](const scalar::matrix& sentence) {
                now->sentence = sentence;
                now->C.assign(sentence.size(), none);
            },
            [=](std::size_t, const std::vector<scalar::numbers>& query) { now->s = query[0]; },
            [=](std::size_t j) { return scalar::times(now->C[j], V); },
            [=](const scalar::numbers& weights) {
                for (std::size_t j = 0; j < weights.size(); ++j) {
                    const auto read = scalar::joined(scalar::joined(now->sentence[j], now->s), {weights[j]});
                    now->C[j] = scalar::next_state(unit, read, now->C[j]);
                }
            }};
}

/// Compares with the equation under softmax and under temporal modulation; checks the contracts under one normalizer,
/// and extremes and the gradients of every form under the other.
void check_promises(const auto& score, const scalar::remembering& equation, const auto& how)
{
    const attention soft{score, normalize::softmax{}, combine::weighted_sum{}};
    check_memory(soft, parameters, equation, false, how, sizes.width);
    check_verified(soft, verified, how);
    const attention temporal{score, normalize::temporal{}, combine::weighted_sum{}};
    check_memory(temporal, parameters, equation, true, how, sizes.width);
    check_extremes(temporal, how, sizes.width);
    check_gradients(temporal, how, sizes.width);
}

/// The initial coverage C_0 of gated coverage.
inline auto cell_start(const auto& memory) { return filled<double, 3>({memory.batch(), memory.positions(), N}, 0.0); }

}  // namespace support::coverages
