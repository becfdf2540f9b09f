// SPDX-License-Identifier: BSD-3-Clause
#include <heed/normalize/local_p.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <cmath>
#include <vector>

using namespace heed;
using support::check_empty, support::message_of, support::random;

TEST_CASE("place_in_row")
{
    const auto z = random({4, 5}, 1);
    const auto v = random({5}, 2);
    const lengths real{7, 0, 1, 30};
    const auto p = ops::place_in_row(z, v, real);
    for (std::size_t b = 0; b < 4; ++b) {
        double a = 0;
        for (std::size_t k = 0; k < 5; ++k) a += z(b, k) * v(k);
        CHECK(p(b) == doctest::Approx(static_cast<double>(real[b]) / (1 + std::exp(-a))).epsilon(1e-14));
    }
    const auto f = [](const lengths& n) {
        return [n](const auto& x, const auto& w) { return ops::place_in_row(x, w, n); };
    };
    CHECK_GRADIENT(f({3}), random({1, 1}, 3), random({1}, 4));
    CHECK_GRADIENT(f(real), z, v);
    check_empty(f(lengths{}), random({0, 3}, 1), random({3}, 2));
    check_empty(f({2, 3}), random({2, 0}, 1), random({0}, 2));
    CHECK(message_of<shape_error>([&] { (void)f(real)(z, random({4}, 1)); }) ==
          "place_in_row: v is [4] but must be [5] (as long as the rows of z [4,5])");
    ad::tape<double> on;
    CHECK(message_of<shape_error>([&] {
              (void)f({1, 2})(on.parameter(z), v);
          }) == "place_in_row: z is [4,5] but there are 2 sentences; give one row for each sentence");
}

TEST_CASE("gaussian")
{
    const std::vector<std::size_t> begin{2, 0};
    const auto x = random({2, 3, 2}, 1);
    const array<double, 1> p{3.2, 0.0};
    const auto y = ops::gaussian(x, p, begin, 1.5);
    for (std::size_t b = 0; b < 2; ++b) {
        for (std::size_t j = 0; j < 3; ++j) {
            const double off = static_cast<double>(begin[b] + j) - p(b), factor = std::exp(-off * off / 4.5);
            for (std::size_t n = 0; n < 2; ++n)
                CHECK(y(b, j, n) == doctest::Approx(x(b, j, n) * factor).epsilon(1e-14));
        }
    }
    const auto f = [&begin](const auto& w, const auto& c) { return ops::gaussian(w, c, begin, 0.8); };
    CHECK_GRADIENT(f, random({2, 5}, 2), random({2}, 3));
    CHECK_GRADIENT(f, random({2, 3, 4}, 4), random({2}, 5));
    CHECK_GRADIENT([](const auto& w, const auto& c) { return ops::gaussian(w, c, std::vector<std::size_t>{1}, 2.0); },
                   random({1, 1}, 6), random({1}, 7));
    check_empty(f, random({2, 0}, 1), random({2}, 2));
    check_empty(f, random({2, 0, 3}, 1), random({2}, 2));
    CHECK(message_of<shape_error>([&] {
              (void)f(random({2, 5}, 2), random({3}, 1));
          }) == "gaussian: the centre is [3] but must be [2] (one for each row of the weights [2,5])");
    ad::tape<double> on;
    const auto three = random({3, 5}, 2);
    CHECK(message_of<shape_error>([&] { (void)f(on.parameter(three), random({3}, 1)); }) ==
          "gaussian: the list of first positions is [2] but must be [3] (one for each row)");
}

TEST_CASE("divide_by_sum")
{
    const array<double, 2> x{{1.0, 3.0, 0.0}, {0.0, 0.0, 0.0}};
    CHECK(support::same_bits(ops::divide_by_sum(x), array<double, 2>{{0.25, 0.75, 0.0}, {0.0, 0.0, 0.0}}));
    const array<double, 3> each{{{1.0, 0.0}, {3.0, 0.0}}};
    CHECK(support::same_bits(ops::divide_by_sum(each), array<double, 3>{{{0.25, 0.0}, {0.75, 0.0}}}));
    const auto f = [](const auto& v) { return ops::divide_by_sum(v); };
    CHECK_GRADIENT(f, ops::square(random({1, 1}, 1)));
    CHECK_GRADIENT(f, ops::square(random({3, 5}, 2)));
    CHECK_GRADIENT(f, ops::square(random({2, 4, 3}, 3)));
    check_empty(f, random({2, 0}, 1));
    check_empty(f, random({2, 0, 3}, 1));
    ad::tape<double> on;  // nothing to divide has no gradient
    const auto nothing = on.parameter(x);
    on.backward(ops::inner(f(nothing), support::uneven(x.shape())));
    for (std::size_t i = 3; i < 6; ++i) CHECK(on.gradient(nothing).data[i] == 0);
}
