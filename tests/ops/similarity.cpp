// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/similarity.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <cmath>
#include <limits>

using namespace heed;
using support::random;

// normalize_l2, match_matrix, match_per_position and grouped_sum: values compared with scalar loops, and gradients.

namespace {

double distance_of(const double* a, const double* b, std::size_t n)
{
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return std::sqrt(sum);
}

}  // namespace

TEST_CASE("normalize_l2: length 1, the same direction")
{
    for (const std::size_t n : {1u, 3u, 8u, 37u}) {
        const auto x = random({3, 2, n}, n);
        auto must = x;
        for (std::size_t r = 0; r < 6; ++r) {
            double square = 0;
            for (std::size_t i = 0; i < n; ++i) square += x.data()[r * n + i] * x.data()[r * n + i];
            for (std::size_t i = 0; i < n; ++i) must.data()[r * n + i] /= std::sqrt(square);
        }
        CHECK(support::distance(ops::normalize_l2(x), must) < 1e-15);
        ad::tape<double> on;
        CHECK(support::same_bits(ops::normalize_l2(on.parameter(x)), ops::normalize_l2(x)));
    }
    const auto f = [](const auto& x) { return ops::normalize_l2(x); };
    CHECK_GRADIENT(f, random({4, 1}, 1));
    CHECK_GRADIENT(f, random({2, 19}, 2));
    CHECK_GRADIENT(f, random({2, 3, 4}, 3));
    CHECK(ops::normalize_l2(array<double, 2>(shape_of_rank<2>{3, 0})).size() == 0);
}

TEST_CASE("normalize_l2: zero, tiny and huge vectors")
{
    const auto check = [](auto type) {
        using T = decltype(type);
        const T tiny = std::numeric_limits<T>::min() * 8, huge = std::numeric_limits<T>::max() / 8;
        const array<T, 2> x{
            {0, 0}, {3 * tiny, 4 * tiny}, {-3 * huge, 4 * huge}, {std::numeric_limits<T>::denorm_min(), 0}};
        ad::tape<T> on;
        const auto v = on.parameter(x);
        const auto y = ops::normalize_l2(v);
        CHECK(y.data()[0] == 0);
        CHECK(y.data()[1] == 0);
        CHECK(y.data()[2] == support::approx(T(0.6)));
        CHECK(y.data()[3] == support::approx(T(0.8)));
        CHECK(y.data()[4] == support::approx(T(-0.6)));
        CHECK(y.data()[5] == support::approx(T(0.8)));
        CHECK(y.data()[6] == 0);  // 1/|x| is infinite: no direction
        on.backward(ops::dot(y, array<T, 2>{{1, 2}, {0, 0}, {1, 2}, {3, 4}}));
        const auto gradient = on.gradient(v);
        CHECK(support::all_finite(gradient));
        for (const std::size_t i : {0u, 1u, 6u, 7u}) CHECK(gradient.data[i] == 0);
    };
    check(0.0);
    check(0.0f);
}

TEST_CASE("match_matrix and match_per_position: values")
{
    for (const std::size_t D : {1u, 5u, 8u, 37u}) {
        const auto x = random({2, 3, D}, D), y = random({2, 4, D}, D + 1);
        const auto A = ops::match_matrix(x, y);
        const auto part = ops::match_matrix(x, y, lengths{3, 1}, lengths{0, 2});
        for (std::size_t b = 0; b < 2; ++b) {
            for (std::size_t s = 0; s < 3; ++s) {
                for (std::size_t t = 0; t < 4; ++t) {
                    const double must = 1 / (1 + distance_of(&x(b, s, 0), &y(b, t, 0), D));
                    CHECK(A(b, s, t) == doctest::Approx(must).epsilon(1e-14));
                    CHECK(part(b, s, t) == (b == 1 && s < 1 && t < 2 ? A(b, s, t) : 0.0));
                }
            }
            const auto e = ops::match_per_position(ops::step_of(x, 1u), y);
            for (std::size_t t = 0; t < 4; ++t) CHECK(e(b, t) == A(b, 1, t));
        }
        ad::tape<double> on;
        CHECK(support::same_bits(ops::match_matrix(on.parameter(x), y), A));
        CHECK(support::same_bits(ops::match_matrix(x, on.parameter(y), lengths{3, 1}, lengths{0, 2}), part));
    }
    // Values beyond the lengths are not read.
    auto x = random({1, 2, 3}, 1);
    const auto y = random({1, 2, 3}, 2);
    x(0, 1, 1) = std::numeric_limits<double>::quiet_NaN();
    CHECK(support::all_finite(ops::match_matrix(x, y, lengths{1}, lengths{2})));
    CHECK(ops::match_matrix(random({2, 0, 3}, 1), random({2, 4, 3}, 2)).size() == 0);
    // Close to each other: |x|² + |y|² - 2xy would cancel.
    const array<double, 3> far{{{1e8, 1e8}}}, near{{{1e8 + 0.25, 1e8}}};
    CHECK(ops::match_matrix(far, near)(0, 0, 0) == 0.8);
}

TEST_CASE("match_matrix and match_per_position: gradients")
{
    const auto all = [](const auto& x, const auto& y) { return ops::match_matrix(x, y); };
    const auto some = [](const auto& x, const auto& y) {
        return ops::match_matrix(x, y, lengths{3, 1}, lengths{0, 2});
    };
    const auto each = [](const auto& q, const auto& k) { return ops::match_per_position(q, k); };
    CHECK_GRADIENT(all, random({1, 1, 1}, 1), random({1, 1, 1}, 2));
    CHECK_GRADIENT(all, random({2, 3, 5}, 3), random({2, 4, 5}, 4));
    CHECK_GRADIENT(some, random({2, 3, 9}, 5), random({2, 4, 9}, 6));
    CHECK_GRADIENT(each, random({2, 5}, 7), random({2, 4, 5}, 8));
    CHECK_GRADIENT(each, random({3, 19}, 9), random({3, 2, 19}, 10));

    // At the same point: 1, with a zero gradient. Far away: 0, with a negligible gradient.
    const array<double, 2> q{{1, 2}, {1e200, 0}};
    const array<double, 3> k{{{1, 2}, {1, 3}}, {{-1e200, 0}, {1e200, 0}}};
    ad::tape<double> on;
    const auto query = on.parameter(q);
    const auto keys = on.parameter(k);
    const auto e = ops::match_per_position(query, keys);
    CHECK(e.data()[0] == 1);
    CHECK(e.data()[1] == 0.5);
    CHECK(e.data()[2] == 0);
    CHECK(e.data()[3] == 1);
    on.backward(ops::dot(e, array<double, 2>{{7, 1}, {1, 1}}));
    CHECK(on.gradient(query).data[0] == 0);
    CHECK(on.gradient(query).data[1] == 0.25);  // only from (1, 3)
    CHECK(on.gradient(query).data[2] == 0);
    CHECK(on.gradient(keys).data[0] == 0);
    CHECK(on.gradient(keys).data[1] == 0);
    CHECK(support::all_finite(on.gradient(keys)));

    // A sentence with itself: the diagonal is 1, and one memory gets the gradients of both sides.
    CHECK(support::distance(ops::match_matrix(k, k), ops::match_matrix(k, k)) == 0);
    const auto x = random({2, 3, 4}, 11);
    ad::tape<double> two;
    const auto v = two.parameter(x), left = two.parameter(x), right = two.parameter(x);
    const auto c = support::uneven<double, 3>({2, 3, 3});
    two.backward(ops::add(ops::dot(ops::match_matrix(v, v), c), ops::dot(ops::match_matrix(left, right), c)));
    for (std::size_t i = 0; i < x.size(); ++i) {
        CHECK(two.gradient(v).data[i] ==
              doctest::Approx(two.gradient(left).data[i] + two.gradient(right).data[i]).epsilon(1e-13));
    }
}
