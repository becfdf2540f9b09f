// SPDX-License-Identifier: BSD-3-Clause
#include <heed/nn/coverage_gru.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <cmath>
#include <cstddef>
#include <tuple>

using namespace heed;
using support::random;

namespace {

constexpr auto coverage_gru = [](const auto& y, const auto& a, const auto& w, const auto& u, const auto& c) {
    return ops::coverage_gru(y, a, w, u, c);
};

/// A step computed by a scalar loop, from the equations at the head of kernels/coverage.hpp (Mi et al. 2016).
array<double, 3> scalar_coverage_gru(const array<double, 2>& y, const array<double, 2>& a, const array<double, 1>& w,
                                     const array<double, 3>& u, const array<double, 3>& c)
{
    const auto [B, T, N] = c.shape();
    array<double, 3> next(c.shape());
    const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
    for (std::size_t b = 0; b < B; ++b) {
        for (std::size_t t = 0; t < T; ++t) {
            for (std::size_t i = 0; i < N; ++i) {
                const double z = sigmoid(y(b, i) + a(b, t) * w(i) + u(b, t, i));
                const double r = sigmoid(y(b, N + i) + a(b, t) * w(N + i) + u(b, t, N + i));
                const double fresh = std::tanh(y(b, 2 * N + i) + a(b, t) * w(2 * N + i) + r * u(b, t, 2 * N + i));
                next(b, t, i) = z * c(b, t, i) + (1 - z) * fresh;
            }
        }
    }
    return next;
}

}  // namespace

TEST_CASE("a coverage step equals its equations and has the correct gradient")
{
    for (const std::size_t N : {std::size_t{1}, std::size_t{3}, std::size_t{19}}) {
        const auto y = random({2, 3 * N}, 1), a = random({2, 4}, 2);
        const auto w = random({3 * N}, 3);
        const auto u = random({2, 4, 3 * N}, 4), c = random({2, 4, N}, 5);
        CHECK(support::distance(coverage_gru(y, a, w, u, c), scalar_coverage_gru(y, a, w, u, c)) < 1e-14);
        const auto check = [](const ad::grad_check_result& found) { CHECK_MESSAGE(bool(found), found.text()); };
        check(support::gradient_of<0b11111>(coverage_gru, y, a, w, u, c));
        check(support::gradient_of<0b00001>(coverage_gru, y, a, w, u, c));
        check(support::gradient_of<0b00010>(coverage_gru, y, a, w, u, c));
        check(support::gradient_of<0b00100>(coverage_gru, y, a, w, u, c));
        check(support::gradient_of<0b01000>(coverage_gru, y, a, w, u, c));
        check(support::gradient_of<0b10000>(coverage_gru, y, a, w, u, c));
    }
    // No coverage, no position, no row.
    CHECK(coverage_gru(random({2, 3}, 1), random({2, 0}, 2), random({3}, 3), random({2, 0, 3}, 4), random({2, 0, 1}, 5))
              .size() == 0);
    CHECK(coverage_gru(random({0, 3}, 1), random({0, 2}, 2), random({3}, 3), random({0, 2, 3}, 4), random({0, 2, 1}, 5))
              .size() == 0);
    // For inputs from -1e4 to 1e4 the gates saturate, and float stays finite.
    const auto far = coverage_gru(random<float>({2, 9}, 1, 1e4), random<float>({2, 4}, 2), random<float>({9}, 3, 1e4),
                                  random<float>({2, 4, 9}, 4, 1e4), random<float>({2, 4, 3}, 5));
    CHECK(support::all_finite(far));
}

TEST_CASE("results and gradients of coverage do not depend on the number of threads")
{
    const std::size_t N = 64;
    const auto y = random({9, 3 * N}, 1), a = random({9, 40}, 2);
    const auto w = random({3 * N}, 3);
    const auto u = random({9, 40, 3 * N}, 4), c = random({9, 40, N}, 5);
    const auto all = [&] {
        ad::tape<double> on;
        const auto vy = on.parameter(y), va = on.parameter(a);
        const auto vw = on.parameter(w);
        const auto vu = on.parameter(u), vc = on.parameter(c);
        const auto next = coverage_gru(vy, va, vw, vu, vc);
        on.backward(ops::dot(next, support::uneven(next.shape())));
        return std::tuple{copy_of(next.value()),    copy_of(on.gradient(vy)), copy_of(on.gradient(va)),
                          copy_of(on.gradient(vw)), copy_of(on.gradient(vu)), copy_of(on.gradient(vc))};
    };
    const auto one = all();
    set_threads(3);
    const auto three = all();
    set_threads(1);
    CHECK(one == three);
}
