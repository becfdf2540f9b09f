// SPDX-License-Identifier: BSD-3-Clause
#include <heed/penalty/guided_alignment.hpp>

#include <heed/ad/ad.hpp>
#include <support/gradients.hpp>
#include <support/tensors.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace heed;
using support::contains;
using support::message_of;

namespace {

using path = std::vector<array<double, 2>>;  // [B,T] of each step

const auto near = [](double x) { return doctest::Approx(x).epsilon(1e-13); };

}  // namespace

TEST_CASE("guided alignment: a word may have several links or none")
{
    const path a{{{0.5, 0.25, 0.25}, {0.5, 0.5, 0}}, {{0.1, 0.8, 0.1}, {0.25, 0.75, 0}}};
    const std::vector<penalty::links> links{{{0, 0}, {2, 0}, {0, 0}}, {{1, 1}}};  // (source, target); one twice
    const double must = -0.5 * std::log(0.5) - 0.5 * std::log(0.25) - std::log(0.75);
    CHECK(support::number(penalty::guided_alignment(a, links, lengths{3, 2})) == near(must));
    CHECK(support::number(penalty::guided_alignment(a, links, lengths{3, 2}, lengths{2, 1})) ==
          near(must + std::log(0.75)));
    const auto matrix = penalty::link_matrix<double>(links, 2, 3);
    CHECK(support::same_bits(matrix, array<double, 3>{{{0.5, 0, 0.5}, {0, 0, 0}}, {{0, 0, 0}, {0, 1, 0}}}));
    CHECK(support::number(penalty::guided_alignment(a, matrix, lengths{3, 2})) == near(must));
    // A link to a padding word does not count.
    CHECK(support::number(penalty::guided_alignment(a, matrix, lengths{2, 2})) == near(must + 0.5 * std::log(0.25)));
}

TEST_CASE("guided alignment: a weight of 0 at a link has a large but finite penalty")
{
    const path zero{{{0.0, 1.0}}};
    const std::vector<penalty::links> links{{{0, 0}}};
    CHECK(support::number(penalty::guided_alignment(zero, links, lengths{2})) == near(1 - std::log(1e-6)));
    CHECK(support::number(penalty::guided_alignment(zero, links, lengths{2}, 1e-3)) == near(1 - std::log(1e-3)));
    const path at_floor{{{1e-3, 0.999}}};
    CHECK(support::number(penalty::guided_alignment(at_floor, links, lengths{2}, 1e-3)) == near(-std::log(1e-3)));
    CHECK(contains(message_of<error>([&] { penalty::guided_alignment(zero, links, lengths{2}, 0.0); }),
                   "guided_alignment: floor is 0"));
}

TEST_CASE("guided alignment: the gradient of every weight within both lengths is correct")
{
    const auto weights = ops::square(support::random({4, 3, 5}, 1));
    const lengths source{5, 2, 0}, target{4, 2, 3};
    CHECK_GRADIENT(
        [&](const auto& w) {
            return ops::guided(w, ops::square(support::random({3, 4, 5}, 2)), source, target, 0.01);
        },
        weights);
}
