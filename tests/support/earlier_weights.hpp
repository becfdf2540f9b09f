// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <memory>
#include <vector>

#include <heed/heed.hpp>
#include <support/scalar_memory.hpp>

/// Scores that read the weights of earlier steps, and the positions of source and target, over additive scores; their
/// equations as plain loops; their contracts.
namespace support::earlier_weights {

using namespace heed;

constexpr support::mechanism_sizes sizes{};  // query 3, width 5, alignment 4, word 2
inline const support::plain_query describe{sizes.query};
inline const verification_sizes verified{.query = sizes.query, .width = sizes.width};
inline const support::additive_parameters parameters{sizes};

inline auto location_over(const auto& base, std::size_t width = 3)
{
    return score::with_location{base, random({2, width}, 51), random({2, sizes.alignment}, 52)};
}
inline auto positions_over(const auto& base) { return score::with_positions{base, random({3, sizes.alignment}, 53)}; }
template <class Which>
auto neighbors_over(const auto& base, Which which)
{
    return score::with_neighbors{base, random({5, sizes.alignment}, 54), which};
}

/// The weights of the last step, or of all steps, and the index of the step and the length of the sentence.
struct seen {
    scalar::numbers last, all;
    std::size_t step = 0;

    double of(const scalar::numbers& weights, std::ptrdiff_t j) const
    {
        return j < 0 || j >= static_cast<std::ptrdiff_t>(weights.size()) ? 0 : weights[static_cast<std::size_t>(j)];
    }
};

/// features(seen, j) times `matrix`, as a state.
template <class Features>
scalar::remembering scalar_memory(const array<double, 2>& matrix, Features features)
{
    const auto now = std::make_shared<seen>();
    const auto M = scalar::matrix_of(matrix);
    return {[=](const scalar::matrix& sentence) {
                now->last.assign(sentence.size(), 0.0);
                now->all.assign(sentence.size(), 0.0);
            },
            [=](std::size_t step, const std::vector<scalar::numbers>&) { now->step = step; },
            [=](std::size_t j) { return scalar::times(features(*now, static_cast<std::ptrdiff_t>(j)), M); },
            [=](const scalar::numbers& weights) {
                now->last = weights;
                for (std::size_t j = 0; j < weights.size(); ++j) now->all[j] += weights[j];
            }};
}

scalar::remembering scalar_location(const auto& score)
{
    return scalar_memory(score.U_f, [F = scalar::matrix_of(score.F)](const seen& now, std::ptrdiff_t j) {
        scalar::numbers f;
        for (const scalar::numbers& filter : F) {
            f.push_back(0);
            const auto reach = static_cast<std::ptrdiff_t>(filter.size() / 2);
            for (std::ptrdiff_t i = -reach; i <= reach; ++i) {
                f.back() += filter[static_cast<std::size_t>(i + reach)] * now.of(now.last, j + i);
            }
        }
        return f;
    });
}
scalar::remembering scalar_positions(const auto& score)
{
    return scalar_memory(score.P, [](const seen& now, std::ptrdiff_t j) {
        return scalar::numbers{std::log(1.0 + static_cast<double>(now.step + 1)),
                               std::log(1.0 + static_cast<double>(j + 1)),
                               std::log(1.0 + static_cast<double>(now.last.size()))};
    });
}
scalar::remembering scalar_neighbors(const auto& score, bool all)
{
    return scalar_memory(score.M, [all](const seen& now, std::ptrdiff_t j) {
        scalar::numbers xi;
        for (std::ptrdiff_t i = -2; i <= 2; ++i) xi.push_back(now.of(all ? now.all : now.last, j + i));
        return xi;
    });
}

/// Compares with the equation under softmax and under temporal modulation; checks the contracts under one normalizer,
/// and extremes and the gradients of every form under the other.
void check_promises(const auto& score, const scalar::remembering& equation)
{
    const attention soft{score, normalize::softmax{}, combine::weighted_sum{}};
    check_memory(soft, parameters, equation, false, describe, sizes.width);
    check_verified(soft, verified, describe);
    const attention temporal{score, normalize::temporal{}, combine::weighted_sum{}};
    check_memory(temporal, parameters, equation, true, describe, sizes.width);
    check_extremes(temporal, describe, sizes.width);
    check_gradients(temporal, describe, sizes.width);
}

/// Checks that the scores of positions in a window equal those of the whole sentence: a score reads earlier weights
/// beyond the window's edges, and positions by their index in the sentence.
void check_window(const auto& score)
{
    const attention whole{score, normalize::softmax{}, combine::weighted_sum{}};
    const attention local{score, normalize::local_m{1}, combine::weighted_sum{}};
    const auto memory = whole.on(random({2, 7, sizes.width}, 1), lengths{7, 5});
    auto state = whole.start(memory);  // two steps that see all positions
    for (std::size_t t = 0; t < 2; ++t) state = whole.step(memory, random({2, sizes.query}, 5 + t), state).state;
    auto there = local.start(memory, state.score);
    there.step = state.step;
    const auto q = random({2, sizes.query}, 9);
    const auto everywhere = whole.step(memory, q, state).weights, within = local.step(memory, q, there).weights;
    for (std::size_t b = 0; b < 2; ++b) {  // step 2 sees 1, 2, 3
        const double sum = everywhere(b, 1) + everywhere(b, 2) + everywhere(b, 3);
        for (std::size_t j = 0; j < 7; ++j) {
            const double must = j >= 1 && j <= 3 ? everywhere(b, j) / sum : 0;
            CHECK(within(b, j) == doctest::Approx(must).epsilon(1e-12));
        }
    }
}

}  // namespace support::earlier_weights
