// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/verify.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>

/// Monotonic alignments as the printed sums.
namespace support::monotonic {

using namespace heed;
using support::random;

constexpr double none = -std::numeric_limits<double>::infinity();
constexpr double infinity = std::numeric_limits<double>::infinity();
using numbers = std::vector<double>;

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// α_j = p_j Σ_{k≤j} α'_k Π_{l=k}^{j−1} (1 − p_l): Raffel et al. 2017, eq. 9, without any recurrence.
inline numbers expected(const numbers& e, double r, const numbers& before)
{
    numbers alpha(e.size());
    for (std::size_t j = 0; j < e.size(); ++j) {
        double sum = 0;
        for (std::size_t k = 0; k <= j; ++k) {
            double passed = before[k];
            for (std::size_t l = k; l < j; ++l) passed *= 1 - sigmoid(e[l] + r);
            sum += passed;
        }
        alpha[j] = sigmoid(e[j] + r) * sum;
    }
    return alpha;
}

/// β_j = Σ_{k=j}^{j+w−1} α_k exp(u_j) / Σ_{l=k−w+1}^{k} exp(u_l): Chiu & Raffel 2018, as printed, u = s e.
inline numbers in_chunks(const numbers& alpha, const numbers& e, double s, std::size_t w)
{
    const std::size_t n = e.size();
    numbers beta(n, 0.0);
    for (std::size_t j = 0; j < n; ++j) {
        if (e[j] == none) continue;
        for (std::size_t k = j; k < std::min(n, j + w); ++k) {
            double sum = 0;
            for (std::size_t l = k + 1 < w ? 0 : k + 1 - w; l <= k; ++l) {
                if (e[l] != none) sum += std::exp(s * (e[l] - e[j]));
            }
            beta[j] += alpha[k] / sum;
        }
    }
    return beta;
}

/// The scores of dimension d of row b, -inf where a mask hides them.
inline numbers row_of(const auto& e, const boolean_mask<2>* seen, const lengths& real, std::size_t b, std::size_t d)
{
    const auto shape = shape_of(e);
    const std::size_t T = shape[1], N = e.size() / (shape[0] * T);
    numbers row;
    for (std::size_t j = 0; j < real[b]; ++j) {
        row.push_back(seen != nullptr && !(*seen)[b * T + j] ? none : e.data()[(b * T + j) * N + d]);
    }
    return row;
}

/// A step context that applies a mask.
struct masked_moment {
    lengths_view real;
    std::size_t step;
    const boolean_mask<2>& seen;

    auto visible(const tensor auto& scores) const { return ops::masked_fill(scores, seen); }
};

/// The weights of a policy at every step, computed only by its hooks.
template <class Scores>
std::vector<Scores> weights_of(const auto& policy, const std::vector<Scores>& e, const auto& moment_of)
{
    auto state = start_of(policy, [&](double x) { return constant_like(e[0], shape_of(e[0]), x); });
    std::vector<Scores> all;
    for (std::size_t s = 0; s < e.size(); ++s) {
        const auto at = moment_of(s);
        all.push_back(weigh(policy, e[s], state, at));
        state = next_of(policy, e[s], all.back(), state, at);
    }
    return all;
}

/// Checks that a policy's steps equal those of a scalar loop: alpha(scores, previous α) -> α, beta(scores, α) ->
/// weights.
inline void check_steps(const auto& policy, const auto& e, const lengths& real, const boolean_mask<2>* seen,
                        const auto& alpha, const auto& beta)
{
    const boolean_mask<2> nothing;
    const auto weights = [&] {
        if (seen == nullptr) return weights_of(policy, e, [&](std::size_t s) { return plain_step_context{real, s}; });
        return weights_of(policy, e, [&](std::size_t s) { return masked_moment{real, s, *seen}; });
    }();
    const auto shape = shape_of(e[0]);
    const std::size_t T = shape[1], N = e[0].size() / (shape[0] * T);
    double worst = 0, most = 0;
    for (std::size_t b = 0; b < shape[0]; ++b) {
        for (std::size_t d = 0; d < N; ++d) {
            numbers before(real[b], 0.0);
            if (real[b] > 0) before[0] = 1;
            for (std::size_t s = 0; s < e.size(); ++s) {
                const numbers scores = row_of(e[s], seen, real, b, d);
                before = alpha(scores, before);
                const numbers must = beta(scores, before);
                for (std::size_t j = 0; j < T; ++j) {
                    const double is = weights[s].data()[(b * T + j) * N + d];
                    const double off = std::abs(is - (j < real[b] ? must[j] : 0));
                    worst = off >= 0 ? std::max(worst, off) : infinity;
                    most = std::max(most, is);
                }
            }
        }
    }
    CHECK(worst < 1e-14);
    CHECK(most > 0.01);
}

const array<double, 1> r{-0.4}, s{1.3};

inline std::vector<array<double, 2>> some_scores(std::size_t B, std::size_t T, std::size_t steps)
{
    std::vector<array<double, 2>> e;
    for (std::size_t i = 0; i < steps; ++i) e.push_back(random({B, T}, 10 + i, 2.0));
    return e;
}
inline std::vector<array<double, 3>> some_scores(std::size_t B, std::size_t T, std::size_t N, std::size_t steps)
{
    std::vector<array<double, 3>> e;
    for (std::size_t i = 0; i < steps; ++i) e.push_back(random({B, T, N}, 20 + i, 2.0));
    return e;
}

inline boolean_mask<2> every_third_hidden(std::size_t B, std::size_t T)
{
    boolean_mask<2> seen(shape_of_rank<2>{B, T});
    for (std::size_t i = 0; i < B * T; ++i) seen[i] = i % 3 != 1 && i / T != B - 1;  // the last row sees no position
    return seen;
}

/// Checks batches, lengths, dimensions and masks.
inline void check_everywhere(const auto& policy, const auto& alpha, const auto& beta)
{
    check_steps(policy, some_scores(4, 7, 5), lengths{7, 0, 1, 4}, nullptr, alpha, beta);
    check_steps(policy, some_scores(1, 40, 12), lengths{40}, nullptr, alpha, beta);
    check_steps(policy, some_scores(3, 6, 5, 4), lengths{6, 2, 0}, nullptr, alpha, beta);
    const auto seen = every_third_hidden(4, 7);
    check_steps(policy, some_scores(4, 7, 5), lengths{7, 3, 1, 4}, &seen, alpha, beta);
}

const auto as_they_are = [](const numbers&, const numbers& alpha) { return alpha; };

}  // namespace support::monotonic
