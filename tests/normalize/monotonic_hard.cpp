// SPDX-License-Identifier: BSD-3-Clause
#include <heed/normalize/monotonic_hard.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/verify.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/monotonic.hpp>

using namespace heed;
using support::random;
using namespace support::monotonic;

TEST_CASE("hard monotonic weights equal the scan, at each step")
{
    const auto scan = [](const numbers& e, const numbers& before) {
        numbers alpha(e.size(), 0.0);
        const auto from = std::find(before.begin(), before.end(), 1.0) - before.begin();
        for (std::size_t j = static_cast<std::size_t>(from); j < e.size(); ++j) {
            if (!(sigmoid(e[j] + r(0)) >= 0.5)) continue;
            alpha[j] = 1;
            break;
        }
        return alpha;
    };
    check_everywhere(normalize::monotonic_hard{r}, scan, as_they_are);
    check_everywhere(normalize::chunkwise{3, s, normalize::monotonic_hard{r}}, scan,
                     [](const numbers& e, const numbers& alpha) { return in_chunks(alpha, e, s(0), 3); });
}

TEST_CASE("the hard scan is the limit of the soft scan, and stays past the end")
{
    std::vector<array<double, 2>> e;
    for (std::size_t step = 0; step < 6; ++step) {
        e.push_back(random({8, 9}, 30 + step));
        for (double& x : e.back()) x *= 1e4;
    }
    const lengths real{9, 8, 7, 6, 5, 4, 1, 0};
    const auto at = [&real](std::size_t step) { return plain_step_context{real, step}; };
    const auto soft = weights_of(normalize::monotonic{array<double, 1>{0.0}}, e, at);
    const auto hard = weights_of(normalize::monotonic_hard{array<double, 1>{0.0}}, e, at);
    double sums = 0;
    for (std::size_t step = 0; step < 6; ++step) {
        CHECK(support::distance(soft[step], hard[step]) < 1e-15);
        sums = 0;
        for (const double x : hard[step]) sums += x;
    }
    CHECK(sums < 8);  // some passed the end and keep weights of 0
    CHECK(sums > 0);

    const array<double, 2> just{{-0.5, 0.0}}, start{{1.0, 0.0}};
    CHECK(ops::first_stop(just, array<double, 1>{0.0}, start, lengths{2})(0, 1) == 1);  // p = 1/2 stops
    CHECK(ops::first_stop(just, array<double, 1>{0.5}, start, lengths{2})(0, 0) == 1);
    CHECK(ops::first_stop(just, array<double, 1>{-1e-9}, start, lengths{2})(0, 1) == 0);
}
