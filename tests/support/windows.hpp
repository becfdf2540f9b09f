// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <heed/heed.hpp>
#include <support/mechanism_tests.hpp>
#include <support/scalar_weights.hpp>
#include <support/temporal_family.hpp>
#include <support/tensors.hpp>

/// Windows as plain loops: Luong's local-m and local-p, over normalizers with a history.
namespace support::windows {

using namespace heed;
using namespace support::temporal_family;
using normalize::history::in_window, normalize::local_m, normalize::local_p;
using support::message_of, support::plain_query, support::query_with_word, support::random;
namespace scalar = support::scalar;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
inline auto additive_with(const auto& normalize) { return attention{additive(), normalize, combine::weighted_sum{}}; }

/// Parameters of local_p for a query of width 3, or 5 for dot.
auto W_p(std::size_t query = 3) { return random({query, 4}, 41); }
inline auto v_p() { return random({4}, 42, 1.5); }

/// Verifies with sentences longer than most windows.
inline void check_verified_windows(const auto& attend, const auto& describe)
{
    const auto report = verify(attend, {.query = 3, .width = 5, .positions = 7, .steps = 5}, describe);
    CHECK_MESSAGE(bool(report), report.text());
}

enum class remembered { nothing, everywhere, in_window };

/// Weights of scores in a window, with the given kind of history; `sees(length)` returns the visible positions of a
/// sentence's steps.
template <class Sees>
scalar::tables in_a_window(const scalar::tables& e, const Sees& sees, remembered what, double decay = 0,
                           std::size_t n = all_steps)
{
    return scalar::temporal(what == remembered::nothing ? 0 : 1, decay, n, sees,
                            what == remembered::in_window ? scalar::visible(sees) : scalar::all_of_them)(e, {});
}

/// p_t = t, at most the last position.
inline scalar::weigher luong_m(std::size_t D, remembered what = remembered::nothing, double decay = 0,
                               std::size_t n = all_steps)
{
    return [=](const scalar::tables& e, const auto&) {
        const std::size_t length = e[0].size();
        const auto sees = [=](std::size_t t, std::size_t j) {
            const std::size_t p = std::min(t, length - 1);
            return (j > p ? j - p : p - j) <= D;
        };
        return in_a_window(e, sees, what, decay, n);
    };
}

/// p_t = S sigmoid(v_p · tanh(W_p h_t)), and a Gaussian after normalizing.
inline scalar::weigher luong_p(const array<double, 2>& W, const array<double, 1>& v, std::size_t D,
                               remembered what = remembered::nothing, bool renormalize = false,
                               std::size_t n = all_steps)
{
    return [=](const scalar::tables& e, const std::vector<std::vector<scalar::numbers>>& queries) {
        const double length = static_cast<double>(e[0].size());
        std::vector<double> p;
        for (const auto& query : queries) {
            const double a =
                scalar::inner(scalar::vector_of(v), scalar::hidden({scalar::times(query[0], scalar::matrix_of(W))}));
            p.push_back(length / (1 + std::exp(-a)));
        }
        const auto off = [&p](std::size_t t, std::size_t j) { return static_cast<double>(j) - p[t]; };
        const auto sees = [&](std::size_t t, std::size_t j) { return std::abs(off(t, j)) <= static_cast<double>(D); };
        auto weights = in_a_window(e, sees, what, 0, n);
        const double sigma = static_cast<double>(D) / 2;
        for (std::size_t t = 0; t < weights.size(); ++t) {
            for (std::size_t d = 0; !weights[t].empty() && d < weights[t][0].size(); ++d) {
                scalar::tall sum = 0;
                for (std::size_t j = 0; j < weights[t].size(); ++j) {
                    weights[t][j][d] *= std::exp(-off(t, j) * off(t, j) / (2 * sigma * sigma));
                    sum += weights[t][j][d];
                }
                for (auto& row : weights[t]) row[d] /= renormalize && sum > 0 ? sum : 1;
            }
        }
        return weights;
    };
}

/// Weights at every step, with queries [B,S,Q].
inline auto weights_of(const auto& attend, const auto& memory, const array<double, 3>& queries)
{
    auto state = attend.start(memory);
    std::vector<std::remove_cvref_t<decltype(attend.step(memory, ops::step_of(queries, 0u), state).weights)>> all;
    for (std::size_t t = 0; t < queries.shape()[1]; ++t) {
        auto now = attend.step(memory, ops::step_of(queries, t), state);
        all.push_back(std::move(now.weights));
        state = std::move(now.state);
    }
    return all;
}

}  // namespace support::windows
