// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/regression_losses.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <cmath>
#include <limits>
#include <type_traits>

using namespace heed;
using support::message_of;
using support::random;

// Mean squared error, and binary cross-entropy of logits: compared with scalar loops, with derivatives.

namespace {

double squared(double x, double t) { return (x - t) * (x - t); }

/// By definition, not stable for large x.
double binary(double x, double t)
{
    const double p = 1 / (1 + std::exp(-x));
    return -t * std::log(p) - (1 - t) * std::log(1 - p);
}

/// Numbers between 0 and 1.
template <std::size_t N>
array<double, N> probabilities(const shape_of_rank<N>& shape, std::uint64_t stream)
{
    return ops::sigmoid(random(shape, stream));
}

}  // namespace

TEST_CASE("regression losses: of all numbers, of real positions, with a mask, weighted")
{
    const std::size_t B = 2, T = 3, N = 2;
    const auto x = random({B, T, N}, 1, 2.0), t = probabilities<3>({B, T, N}, 2);
    const lengths real{3, 1};
    const boolean_mask<2> mask(array<bool, 2>{{true, false, true}, {false, false, true}});
    const auto each = random({B, T, N}, 3);
    const auto by_position = ops::square(random({B, T}, 4));

    struct total {
        double squared = 0, binary = 0, weights = 0;

        void add(double w, double x, double t)
        {
            squared += w * ::squared(x, t);
            binary += w * ::binary(x, t);
            weights += w;
        }
    } all, of_real, of_mask, of_each, of_positions;
    for (std::size_t b = 0; b < B; ++b) {
        for (std::size_t i = 0; i < T; ++i) {
            for (std::size_t n = 0; n < N; ++n) {
                all.add(1, x(b, i, n), t(b, i, n));
                of_real.add(i < real[b] ? 1 : 0, x(b, i, n), t(b, i, n));
                of_mask.add(mask[b * T + i] ? 1 : 0, x(b, i, n), t(b, i, n));
                of_each.add(each(b, i, n), x(b, i, n), t(b, i, n));
                of_positions.add(by_position(b, i), x(b, i, n), t(b, i, n));
            }
        }
    }
    const auto near = [](double must) { return doctest::Approx(must).epsilon(1e-13); };
    CHECK(ops::mean_squared_error(x, t)() == near(all.squared / all.weights));
    CHECK(ops::mean_squared_error(x, t, real)() == near(of_real.squared / of_real.weights));
    CHECK(ops::mean_squared_error(x, t, mask)() == near(of_mask.squared / of_mask.weights));
    CHECK(ops::mean_squared_error(x, t, each)() == near(of_each.squared / of_each.weights));
    CHECK(ops::mean_squared_error(x, t, by_position)() == near(of_positions.squared / of_positions.weights));
    CHECK(ops::binary_cross_entropy(x, t)() == near(all.binary));
    CHECK(ops::binary_cross_entropy(x, t, real)() == near(of_real.binary));
    CHECK(ops::binary_cross_entropy(x, t, mask)() == near(of_mask.binary));
    CHECK(ops::binary_cross_entropy(x, t, each)() == near(of_each.binary));
    CHECK(ops::binary_cross_entropy(x, t, by_position)() == near(of_positions.binary));

    // Every subset of the arguments on the tape; with all on it, also products with the Hessian.
    const auto both = [&](const auto&... weights) {
        CHECK_GRADIENT([&](const auto& a, const auto& b) { return ops::mean_squared_error(a, b, weights...); }, x, t);
        CHECK_GRADIENT([&](const auto& a, const auto& b) { return ops::binary_cross_entropy(a, b, weights...); }, x, t);
    };
    both();
    both(real);
    both(mask);
    CHECK_GRADIENT([](const auto& a, const auto& b, const auto& w) { return ops::mean_squared_error(a, b, w); }, x, t,
                   by_position);
    CHECK_GRADIENT([](const auto& a, const auto& b, const auto& w) { return ops::binary_cross_entropy(a, b, w); }, x, t,
                   each);
}

TEST_CASE("ignored values are not read and have no gradient")
{
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const auto clean = random({2, 3}, 1);
    auto x = clean;
    auto t = probabilities<2>({2, 3}, 2);
    x(1, 1) = x(1, 2) = t(1, 1) = t(1, 2) = nan;
    const array<double, 2> weights{{1, 1, 1}, {1, 0, 0}};
    const boolean_mask<2> mask(array<bool, 2>{{true, true, true}, {true, false, false}});
    const auto check = [&](const auto& which) {
        const auto gradient = [&](const auto& loss) {
            ad::tape<double> on;
            const auto v = on.parameter(x);
            const auto value = loss(v, t, which);
            CHECK(std::isfinite(value.value().data[0]));
            on.backward(value);
            return copy_of(on.gradient(v));
        };
        for (const auto& g : {gradient(ops::mean_squared_error), gradient(ops::binary_cross_entropy)}) {
            CHECK(support::all_finite(g));
            CHECK(g(1, 1) == 0);
            CHECK(g(1, 2) == 0);
            CHECK(g(1, 0) != 0);
        }
    };
    check(lengths{3, 1});
    check(mask);
    check(weights);

    // All values are ignored: no loss, no gradient, no NaN.
    ad::tape<double> on;
    const auto v = on.parameter(x);
    const auto nothing = ops::mean_squared_error(v, t, lengths{0, 0});
    CHECK(nothing.value().data[0] == 0);
    on.backward(nothing);
    CHECK(support::same_bits(copy_of(on.gradient(v)), filled<double, 2>({2, 3}, 0.0)));
    CHECK(ops::mean_squared_error(zeros<double>(0, 3), zeros<double>(0, 3))() == 0);
}

TEST_CASE("binary cross-entropy is exact for large logits, and its slope at 0 is σ(0) − t")
{
    const array<float, 1> x{-1e4f, -100.0f, 0.0f, 100.0f, 1e4f}, t{1.0f, 0.0f, 0.25f, 1.0f, 0.0f};
    CHECK(ops::binary_cross_entropy(x, t)() == doctest::Approx(2e4 + std::log(2.0)).epsilon(1e-6));
    ad::tape<float> on;
    const auto v = on.parameter(x);
    on.backward(ops::binary_cross_entropy(v, t));
    const auto d = on.gradient(v);
    CHECK(d.data[0] == -1.0f);
    CHECK(d.data[1] == doctest::Approx(3.8e-44).epsilon(1e-1));
    CHECK(d.data[2] == 0.25f);
    CHECK(d.data[3] == 0.0f);
    CHECK(d.data[4] == 1.0f);

    // Also the second order at 0: σ'(0) = 1/4.
    const array<double, 1> zero{0.0}, one{1.0};
    const auto [value, gradient, product] =
        ad::hessian_vector([&](auto&, const auto& z) { return ops::binary_cross_entropy(z, one); }, zero, one);
    CHECK(gradient(0) == support::approx(-0.5));
    CHECK(product(0) == support::approx(0.25));
    CHECK(value == support::approx(std::log(2.0)));
}

TEST_CASE("regression losses in float are summed in double")
{
    const auto x = filled<float, 1>({1u << 20}, 0.1f);
    CHECK(ops::mean_squared_error(x, zeros<float>(1u << 20))() == doctest::Approx(0.01).epsilon(1e-6));
    CHECK(ops::binary_cross_entropy(x, zeros<float>(1u << 20))() ==
          doctest::Approx((1u << 20) * std::log1p(std::exp(0.1))).epsilon(1e-6));
}

TEST_CASE("regression losses report misfits")
{
    const auto x = random({2, 3}, 1);
    CHECK(message_of<shape_error>([&] { (void)ops::mean_squared_error(x, zeros<double>(2, 4)); }) ==
          "mean_squared_error: the target is [2,4] but must be [2,3] (one number for each prediction)");
    CHECK(message_of<shape_error>([&] { (void)ops::binary_cross_entropy(x, x, zeros<double>(3)); }) ==
          "binary_cross_entropy: the weights are [3] but must be [2] (one for each row of the prediction)");
    CHECK(message_of<shape_error>([&] { (void)ops::mean_squared_error(x, x, lengths{1}); }) != "");
    CHECK(message_of<shape_error>([&] { (void)ops::mean_squared_error(x, x, lengths{1, 4}); }) != "");
    CHECK(message_of<error>([&] {
              (void)ops::binary_cross_entropy(x, filled<double, 2>({2, 3}, 2.0));
          }) ==
          "binary_cross_entropy: a target is 2.000000; it is the probability of class 1 and must be between 0 and 1");
    CHECK(message_of<error>([&] {
              (void)ops::binary_cross_entropy(x, filled<double, 2>({2, 3}, std::nan("")));
          }) != "");
}
