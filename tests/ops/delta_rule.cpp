// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/delta_rule.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

using namespace heed;
using support::random;

namespace {

/// Keys [B,T,F] of unit length.
array<double, 3> unit_keys(const shape_of_rank<3>& shape, unsigned seed)
{
    auto k = random(shape, seed);
    for (std::size_t row = 0; row < shape[0] * shape[1]; ++row) {
        double square = 0;
        for (std::size_t i = 0; i < shape[2]; ++i) square += std::pow(k.data()[row * shape[2] + i], 2);
        for (std::size_t i = 0; i < shape[2]; ++i) k.data()[row * shape[2] + i] /= std::sqrt(square);
    }
    return k;
}

/// Rates [B,T,1] between 0 and 1.
array<double, 3> rates_of(std::size_t B, std::size_t T, unsigned seed)
{
    auto rates = random({B, T, 1}, seed);
    for (double& each : rates) each = 1 / (1 + std::exp(-3 * each));
    return rates;
}

/// The largest difference between u and the recurrence S_i = a_i S_{i−1} + u_i k_iᵀ, u_i = β_i (v_i − a_i S_{i−1} k_i).
double off(const array<double, 3>& u, const array<double, 3>& k, const array<double, 3>& v,
           const array<double, 3>& rates, const lengths& real, const auto& gate)
{
    const std::size_t T = k.shape()[1], F = k.shape()[2], D = v.shape()[2];
    double most = 0;
    for (std::size_t b = 0; b < k.shape()[0]; ++b) {
        std::vector<double> S(D * F, 0.0);
        for (std::size_t i = 0; i < T; ++i) {
            const bool here = i < real[b];
            for (double& s : S) s *= gate(b, i);
            for (std::size_t d = 0; d < D; ++d) {
                double error = v(b, i, d);
                for (std::size_t f = 0; f < F; ++f) error -= S[d * F + f] * k(b, i, f);
                const double must = here ? rates(b, i, 0) * error : 0;
                for (std::size_t f = 0; f < F && here; ++f) S[d * F + f] += must * k(b, i, f);
                most = std::max(most, std::abs(u(b, i, d) - must));
            }
        }
    }
    return most;
}

/// Keys after the columns of gates with these logarithms, [B,T,1].
auto with_gates(const auto& keys, const auto& log_gates) { return ops::concat(ops::carried_sums(log_gates), keys); }

}  // namespace

TEST_CASE("corrected values match the recurrence, and their gradients match finite differences")
{
    const lengths real{5, 3, 0};
    const auto k = unit_keys({3, 5, 4}, 1), v = random({3, 5, 2}, 2), rates = rates_of(3, 5, 3);
    for (const double decay : {1.0, 0.8}) {
        CHECK(off(ops::correct_values(k, v, rates, real, decay), k, v, rates, real,
                  [decay = decay](std::size_t, std::size_t) { return decay; }) < 1e-14);
        CHECK_GRADIENT([&](const auto&... x) { return ops::correct_values(x..., real, decay); }, k, v, rates);
    }
    const auto log_gates = random({3, 5, 1}, 4);
    auto negative = log_gates;
    for (double& each : negative) each = -std::abs(each);
    CHECK(off(ops::correct_values_by_gates(with_gates(k, negative), v, rates, real), k, v, rates, real,
              [&](std::size_t b, std::size_t i) { return std::exp(negative(b, i, 0)); }) < 1e-14);
    CHECK_GRADIENT(
        [&](const auto& keys, const auto& values, const auto& by, const auto& gates) {
            return ops::correct_values_by_gates(with_gates(keys, gates), values, by, real);
        },
        k, v, rates, negative);
}

TEST_CASE("corrected values of several chunks: with gradients, and equal in segments")
{
    constexpr std::size_t T = 130, cut = 70, F = 4, D = 3;
    const lengths real{T, 67};
    const auto k = unit_keys({2, T, F}, 1), v = random({2, T, D}, 2), rates = rates_of(2, T, 3);
    const auto u = ops::correct_values(k, v, rates, real, 0.99);
    CHECK(off(u, k, v, rates, real, [](std::size_t, std::size_t) { return 0.99; }) < 1e-13);
    CHECK_GRADIENT([&](const auto&... x) { return ops::correct_values(x..., real, 0.99); }, k, v, rates);
    // The values of a later segment, less the prediction of the state before it.
    const auto part = [&](const auto& x, std::size_t begin, std::size_t end) {
        const std::size_t N = x.shape()[2];
        array<double, 3> y({1, end - begin, N});
        for (std::size_t i = begin; i < end; ++i)
            for (std::size_t n = 0; n < N; ++n) y(0, i - begin, n) = x(0, i, n);
        return y;
    };
    const auto k0 = part(k, 0, cut),
               u0 = ops::correct_values(k0, part(v, 0, cut), part(rates, 0, cut), lengths{cut}, 0.99);
    auto k1 = part(k, cut, T), v1 = part(v, cut, T);
    for (std::size_t i = 0; i < T - cut; ++i)
        for (std::size_t d = 0; d < D; ++d)
            for (std::size_t j = 0; j < cut; ++j) {
                double along = 0;
                for (std::size_t f = 0; f < F; ++f) along += k0(0, j, f) * k1(0, i, f);
                v1(0, i, d) -= std::pow(0.99, static_cast<double>(cut + i - j)) * along * u0(0, j, d);
            }
    const auto u1 = ops::correct_values(k1, v1, part(rates, cut, T), lengths{T - cut}, 0.99);
    double apart = 0;
    for (std::size_t i = 0; i < T - cut; ++i)
        for (std::size_t d = 0; d < D; ++d) apart = std::max(apart, std::abs(u1(0, i, d) - u(0, cut + i, d)));
    CHECK(apart < 1e-12);
}

TEST_CASE("corrected values: padding is inert, a rate of 0 skips a position")
{
    const auto k = unit_keys({1, 4, 3}, 1), v = random({1, 4, 2}, 2);
    auto rates = rates_of(1, 4, 3);
    const auto u = ops::correct_values(k, v, rates, lengths{3}, 1.0);
    auto bad_k = k, bad_v = v, bad_rates = rates;
    bad_k(0, 3, 0) = bad_v(0, 3, 1) = bad_rates(0, 3, 0) = std::numeric_limits<double>::quiet_NaN();
    CHECK(support::same_bits(ops::correct_values(bad_k, bad_v, bad_rates, lengths{3}, 1.0), u));
    rates(0, 1, 0) = 0;
    const auto skipped = ops::correct_values(k, v, rates, lengths{3}, 1.0);
    CHECK(skipped(0, 1, 0) == 0);
    CHECK(off(skipped, k, v, rates, lengths{3}, [](std::size_t, std::size_t) { return 1.0; }) < 1e-15);
}

TEST_CASE("corrected values: wrong shapes")
{
    const auto k = random({2, 3, 4}, 1), v = random({2, 3, 5}, 2), rates = random({2, 3, 1}, 3);
    CHECK_THROWS_WITH_AS(ops::correct_values(k, random({2, 2, 5}, 1), rates, lengths{3, 3}, 1.0),
                         "correct_values: the values are [2,2,5] but must be [2,3,5] (one for each key of [2,3,4])",
                         shape_error);
    CHECK_THROWS_WITH_AS(ops::correct_values_by_gates(k, v, random({2, 3, 2}, 1), lengths{3, 3}),
                         "correct_values_by_gates: the rates are [2,3,2] but must be [2,3,1] (one for each key of "
                         "[2,3,4])",
                         shape_error);
}
