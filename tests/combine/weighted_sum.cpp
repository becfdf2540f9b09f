// SPDX-License-Identifier: BSD-3-Clause
#include <heed/combine/weighted_sum.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <cstddef>

#include <support/approx.hpp>
#include <support/gradients.hpp>

using namespace heed;
using support::random;

TEST_CASE("the expected annotation, for one query and for many; misfits are rejected")
{
    const auto alpha = random({2 * 3, 4}, 1);  // [B·S,T]
    const auto h = random({2, 4, 5}, 2);
    const combine::weighted_sum combine;
    const auto all = combine.combine_matrix(alpha, h);
    for (std::size_t s = 0; s < 3; ++s) {
        array<double, 2> of_step(shape_of_rank<2>{2, 4});
        for (std::size_t b = 0; b < 2; ++b) {
            for (std::size_t j = 0; j < 4; ++j) of_step(b, j) = alpha(3 * b + s, j);
        }
        const auto one = combine(of_step, h);
        for (std::size_t b = 0; b < 2; ++b) {
            for (std::size_t d = 0; d < 5; ++d) {
                double sum = 0;
                for (std::size_t j = 0; j < 4; ++j) sum += of_step(b, j) * h(b, j, d);
                CHECK(one(b, d) == support::approx(sum));
                CHECK(all(b, s, d) == support::approx(sum));
            }
        }
    }
    CHECK_GRADIENT([&](const auto& a, const auto& x) { return combine(a, x); }, random({2, 4}, 3), h);
    CHECK(support::contains(support::message_of<shape_error>([&] { combine(random({2, 3}, 3), h); }), "[2,3]"));
}
