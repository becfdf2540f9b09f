// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/modify.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <vector>

using namespace heed;
using support::random;

TEST_CASE("a function of scores gets their indices, and is differentiated with respect to the score and its table")
{
    const std::vector<std::size_t> first_keys{2, 0};
    ops::rows_of_places where{3, 5, 1, 2};
    where.first_keys = first_keys;
    const ops::modify_op places{
        [](auto e, score_index p) { return e + 1000 * p.batch + 100 * p.head + 10 * p.query + p.key; }};
    const auto x = random({6, 11}, 1);
    const auto y = places(x, where);
    for (std::size_t i = 0; i < 6; ++i) {
        for (std::size_t t = 0; t < 11; ++t) {
            const std::size_t place_of_it = 1000 * (1 + i / 3) + 200 + 10 * (5 + i % 3) + first_keys[i / 3] + t;
            CHECK(y(i, t) == support::approx(x(i, t) + static_cast<double>(place_of_it)));
        }
    }
    const ops::modify_op bent{[](auto e, score_index p) { return 3 * tanh((e - 0.1 * abs(p.query - p.key)) / 3); }};
    CHECK_GRADIENT([&](const auto& e) { return bent(e, where); }, x);
    const ops::modify_op looked_up{[](auto e, score_index p, const auto& t) { return e * t(p.key) + t(p.query); }};
    const auto table = random({13}, 2);
    const auto z = looked_up(x, table, where);
    for (std::size_t t = 0; t < 11; ++t) CHECK(z(0, t) == support::approx(x(0, t) * table(t + 2) + table(5)));
    CHECK_GRADIENT([&](const auto& e, const auto& t) { return looked_up(e, t, where); }, x, table);
}

TEST_CASE("a gradient of 0 stays 0, even with an infinite slope; misfits are rejected")
{
    const ops::modify_op root{[](auto e, score_index) { return sqrt(e); }};
    using taken = std::remove_const_t<decltype(root)>;
    static_assert(ops::detail::takes<taken, double, ops::in<double, 2>, ops::rows_of_places>());
    static_assert(!ops::detail::takes<taken, double, ops::in<double, 3>, ops::rows_of_places>());
    const array<double, 2> x{{0.0, 4.0}};
    ad::tape<double> on;
    const auto v = on.parameter(x);
    on.backward(ops::dot(root(v, ops::rows_of_places{}), array<double, 2>{{0.0, 1.0}}));
    CHECK(on.gradient(v).data[0] == 0);
    CHECK(on.gradient(v).data[1] == support::approx(0.25));
    CHECK(support::message_of<shape_error>([&] { (void)root(x, ops::rows_of_places{0}); }) ==
          "score::modified: 0 first keys for scores [1,2] of 0 queries per sentence; there must be a query, and a "
          "first key for each sentence or for none");
}
