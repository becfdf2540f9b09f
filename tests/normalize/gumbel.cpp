// SPDX-License-Identifier: BSD-3-Clause
#include <heed/normalize/gumbel.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include <heed/heed.hpp>
#include <heed/verify.hpp>
#include <support/approx.hpp>
#include <support/hard.hpp>
#include <support/scalar_attention.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::random;
namespace scalar = support::scalar;
using namespace support::hard;

TEST_CASE("gumbel: hard weights forward, the gradient of the soft weights backward")
{
    const auto scores = random({3, 5}, 1), upstream = random({3, 5}, 2);
    const lengths real{5, 2, 0};
    const auto run = [&](bool straight_through) {
        ad::tape<double> on;
        const auto e = on.parameter(scores);
        const normalize::gumbel policy{.seed = 4, .tau = 0.6, .straight_through = straight_through};
        const auto weights = policy(e, no_state{}, plain_step_context{real, 2});
        on.backward(ops::dot(weights, upstream));
        return std::pair{copy_of(weights.value()), copy_of(on.gradient(e))};
    };
    const auto [hard, through] = run(true);
    const auto [soft, own] = run(false);
    CHECK(support::same_bits(through, own));
    CHECK(diagonal_of(hard.data(), 5) ==
          static_cast<std::size_t>(std::max_element(soft.data(), soft.data() + 5) - soft.data()));
    CHECK(std::abs(through(0, 0)) > 1e-3);
    // As τ falls, the soft weights approach the hard weights.
    const auto nearly = normalize::gumbel{.seed = 4, .tau = 1e-3, .straight_through = false}(
        scores, no_state{}, plain_step_context{real, 2});
    CHECK(support::distance(nearly, hard) < 1e-12);
    CHECK(support::contains(
        support::message_of<error>([&] { normalize::gumbel{.tau = 0}(scores, no_state{}, plain_step_context{real}); }),
        "normalize::gumbel: tau is 0.000000 but must be a finite number above 0"));
}

TEST_CASE("gumbel: every dimension has its own noise")
{
    const array<double, 3> scores(shape_of_rank<3>{2, 4, 3}, 0.0);
    const auto weights =
        normalize::gumbel{.seed = 4, .straight_through = false}(scores, no_state{}, plain_step_context{lengths{4, 2}});
    for (std::size_t b = 0; b < 2; ++b) {
        for (std::size_t d = 0; d < 3; ++d) {
            double sum = 0;
            for (std::size_t j = 0; j < 4; ++j) sum += weights(b, j, d);
            CHECK(sum == support::approx(1));
        }
        CHECK(weights(b, 0, 0) != weights(b, 0, 1));
    }
}

TEST_CASE("gumbel noise: a hidden score has no gradient; the maximum score takes away the sum of the others")
{
    auto scores = random({2, 5}, 1);
    scores(0, 2) = scores(1, 0) = -std::numeric_limits<double>::infinity();
    const auto upstream = random({2, 5}, 2);
    const lengths real{5, 3};
    ad::tape<double> on;
    const auto e = on.parameter(scores);
    on.backward(ops::dot(ops::add_gumbel(e, real, 7u, 1.0), upstream));
    const auto gradient = copy_of(on.gradient(e));
    for (std::size_t b = 0; b < 2; ++b) {
        const double* const row = scores.data() + 5 * b;
        const std::size_t n = b == 0 ? 5 : 3;
        const auto top = static_cast<std::size_t>(std::max_element(row, row + n) - row);
        double sum = 0;
        for (std::size_t j = 0; j < 5; ++j) {
            CAPTURE(j);
            const bool hidden = j >= n || std::isinf(row[j]);
            if (j != top) CHECK(gradient(b, j) == (hidden ? 0 : upstream(b, j)));
            sum += gradient(b, j);
        }
        CHECK(std::abs(sum) < 1e-15);
    }
}

TEST_CASE("gumbel satisfies the contracts") { check_contracts_of(normalize::gumbel{}); }
