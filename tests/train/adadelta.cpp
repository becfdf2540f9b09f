// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include <heed/train/adadelta.hpp>
#include <support/optimizers.hpp>

using namespace heed;

TEST_CASE("AdaDelta equals its formula")
{
    std::vector<double> G(21), D(21);
    support::check_rule(train::adadelta<double>({0.9, 1e-4, 0.7}), [&](double g, std::size_t i) {
        G[i] = 0.9 * G[i] + 0.1 * g * g;
        const double step = std::sqrt(D[i] + 1e-4) / std::sqrt(G[i] + 1e-4) * g;
        D[i] = 0.9 * D[i] + 0.1 * step * step;
        return -0.7 * step;
    });
}

TEST_CASE("table rows that a batch does not use keep their values and moments")
{
    const auto moments = support::moments_of_two_rows(train::adadelta<double>());
    for (std::size_t i = 0; i < 20; ++i) {
        CHECK((moments[0].first[i] == 0) == (i / 4 != 1 && i / 4 != 3));
        CHECK((moments[0].second[i] == 0) == (i / 4 != 1 && i / 4 != 3));
    }
}
