// SPDX-License-Identifier: BSD-3-Clause
#include <heed/combine/grouped_sum.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <cmath>
#include <limits>

using namespace heed;
using support::random;

TEST_CASE("grouped_sum: values and gradients")
{
    for (const std::size_t width : {1u, 2u, 5u, 8u, 19u}) {  // of a group
        for (const std::size_t groups : {1u, 2u, 3u}) {
            const std::size_t D = width * groups;
            const auto w = random({2, 4, groups}, 1), h = random({2, 4, D}, 2);
            const auto c = ops::grouped_sum(w, h);
            for (std::size_t b = 0; b < 2; ++b) {
                for (std::size_t d = 0; d < D; ++d) {
                    double must = 0;
                    for (std::size_t t = 0; t < 4; ++t) must += w(b, t, d * groups / D) * h(b, t, d);
                    CHECK(c(b, d) == doctest::Approx(must).epsilon(1e-13));
                }
            }
            ad::tape<double> on;
            CHECK(support::same_bits(ops::grouped_sum(w, on.parameter(h)), c));
            CHECK_GRADIENT([](const auto& a, const auto& v) { return ops::grouped_sum(a, v); }, w, h);
        }
    }
    auto h = random({1, 2, 4}, 3);
    h(0, 1, 2) = std::numeric_limits<double>::quiet_NaN();
    CHECK(support::all_finite(ops::grouped_sum(array<double, 3>{{{1, 1}, {1, 0}}}, h)));
    CHECK(ops::grouped_sum(random({2, 0, 2}, 1), random({2, 0, 4}, 2)) == array<double, 2>{{0, 0, 0, 0}, {0, 0, 0, 0}});
    const auto says = [](auto&& f, const std::string& part) {
        const std::string message = support::message_of<shape_error>(f);
        CHECK_MESSAGE(support::contains(message, part), message);
    };
    says(
        [&] {
            ops::grouped_sum(random({2, 3, 3}, 1), random({2, 3, 4}, 2));
        },
        "grouped_sum: 3 groups for values of width 4, but the number of groups must divide the width");
    says([&] { ops::grouped_sum(random({2, 3, 0}, 1), random({2, 3, 4}, 2)); }, "0 groups for values of width 4");
    says([&] { ops::grouped_sum(random({2, 2, 2}, 1), random({2, 3, 4}, 2)); }, "[2,2,2] but must be [2,3,2]");
}
