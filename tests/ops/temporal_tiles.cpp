// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/temporal_tiles.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <cmath>
#include <vector>

using namespace heed;
using support::random;

TEST_CASE("queries in their order: the definition, one number at a time, and its gradient")
{
    const ops::modulated_by_past past{0.8, 0.1};
    const ops::attend_in_order_op attend{kernels::tiles::unmodified{}, kernels::tiles::unmasked{}, past};
    const lengths real{5, 3};
    const auto queries = random({2, 7, 3}, 1), keys = random({2, 5, 3}, 2), values = random({2, 5, 2}, 3);
    const auto history = random({2, 5}, 4);
    const array<double, 0> no_table;
    const ops::heads_of how{1, 1, 0.7};
    const auto [contexts, after] = attend(queries, keys, values, history, no_table, real, how);
    for (std::size_t b = 0; b < 2; ++b) {
        std::vector<double> L(5);
        for (std::size_t j = 0; j < 5; ++j) L[j] = history(b, j);
        for (std::size_t s = 0; s < 7; ++s) {
            double whole = 0, sums[2] = {};
            for (std::size_t j = 0; j < real[b]; ++j) {
                double e = 0;
                for (std::size_t i = 0; i < 3; ++i) e += 0.7 * queries(b, s, i) * keys(b, j, i);
                const double weight = std::exp(e - 0.8 * L[j]);
                whole += weight;
                for (std::size_t d = 0; d < 2; ++d) sums[d] += weight * values(b, j, d);
                L[j] = std::log(std::exp(L[j] - 0.1) + std::exp(e));
            }
            for (std::size_t d = 0; d < 2; ++d) CHECK(contexts(b, s, d) == support::approx(sums[d] / whole));
        }
        for (std::size_t j = 0; j < 5; ++j) CHECK(after(b, j) == support::approx(L[j]));
    }
    CHECK_GRADIENT(
        [&](const auto& q, const auto& k, const auto& v, const auto& h) {
            const auto [c, next] = attend(q, k, v, h, no_table, real, how);
            return ops::add(ops::sum_last(ops::sum_last(ops::square(c))), ops::sum_last(ops::square(next)));
        },
        queries, keys, values, history);
    CHECK(support::message_of<shape_error>([&] {
              (void)attend(queries, keys, values, random({2, 4}, 1), no_table, real, how);
          }) == "attend_in_order: the history is [2,4] but must be [2,5] (one number for each key)");
}
