// SPDX-License-Identifier: BSD-3-Clause
#include <heed/papers/linear_attention.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include <support/causal_presets.hpp>
#include <support/tensors.hpp>

using namespace heed;
namespace paper = heed::papers;
using support::random;
using namespace support::causal_presets;

TEST_CASE("Katharopoulos et al. 2020")
{
    const auto phi = [](double x) { return x > 0 ? x + 1 : std::exp(x); };
    check(paper::katharopoulos2020::linear(), [&](std::size_t s, std::size_t j) {
        double sum = 0;
        for (std::size_t i = 0; i < D; ++i) sum += phi(q(0, s, i)) * phi(k(0, j, i));
        return sum;
    });
}

TEST_CASE("Choromanski et al. 2021")
{
    const auto Omega = random({D, 3}, 3);
    const auto phi = [&](const auto& x, std::size_t at, std::size_t f) {
        double product = 0, norm = 0;
        for (std::size_t i = 0; i < D; ++i) {
            const double part = x(0, at, i) / std::pow(double{D}, 0.25);
            product += Omega(i, f) * part;
            norm += part * part;
        }
        return std::exp(product - norm / 2) / std::sqrt(3.0);
    };
    check(paper::choromanski2021::performer(Omega), [&](std::size_t s, std::size_t j) {
        double sum = 0;
        for (std::size_t f = 0; f < 3; ++f) sum += phi(q, s, f) * phi(k, j, f);
        return sum;
    });
}

TEST_CASE("Wu et al. 2019")
{
    const auto W = random({D, std::size_t{3}}, 5);
    const auto w = random({3}, 6);
    // The last kernel weight is that of the word itself; x_{i+k−3} with k from 1.
    const auto share = [](std::size_t s, std::size_t j, const auto& e) {
        return j + 2 < s ? 0.0 : std::exp(e(j + 2 - s)) / (std::exp(e(0)) + std::exp(e(1)) + std::exp(e(2)));
    };
    check(
        paper::wu2019::dynamic(W, score::kernel_over::past),
        [&](std::size_t s, std::size_t j) {
            return share(s, j, [&](std::size_t c) {
                double sum = 0;
                for (std::size_t i = 0; i < D; ++i) sum += q(0, s, i) * W(i, c);
                return sum;
            });
        },
        false);
    check(
        paper::wu2019::lightweight(w, score::kernel_over::past),
        [&](std::size_t s, std::size_t j) { return share(s, j, [&](std::size_t c) { return w(c); }); }, false);
}

TEST_CASE("Yang et al. 2024; Dao and Gu 2024")
{
    const auto w = random({D, 1}, 5);
    const auto b = random({1}, 6);
    const auto left = [&](std::size_t s, std::size_t j) {
        double product = 1;
        for (std::size_t l = j + 1; l <= s; ++l) {
            double x = b(0);
            for (std::size_t i = 0; i < D; ++i) x += w(i, 0) * k(0, l, i);
            product *= std::exp(-std::log1p(std::exp(-x)));  // exp(−softplus(−x)), which is σ(x)
        }
        return product;
    };
    check(
        paper::yang2024::gated_linear(w, b),
        [&](std::size_t s, std::size_t j) { return left(s, j) * dot(s, j) / std::sqrt(double{D}); }, false);
    check(
        paper::dao2024::state_space(w, b), [&](std::size_t s, std::size_t j) { return left(s, j) * dot(s, j); }, false);
}

TEST_CASE("Schlag et al. 2021; Yang et al. 2025")
{
    const auto w = random({D, 1}, 5), w_a = random({D, 1}, 7);
    const auto b = random({1}, 6), b_a = random({1}, 8);
    const auto share = [&](const auto& W, const auto& bias, std::size_t t) {
        double x = bias(0);
        for (std::size_t i = 0; i < D; ++i) x += W(i, 0) * k(0, t, i);
        return 1 / (1 + std::exp(-x));
    };
    const auto length = [](const auto& x, std::size_t t) {
        double square = 0;
        for (std::size_t i = 0; i < D; ++i) square += x(0, t, i) * x(0, t, i);
        return std::sqrt(square);
    };
    const auto check_state = [&](const auto& attend, bool forgets) {
        const array<double, 3> is = attend(attend.on(k), q, causal{});
        std::vector<double> S(D * D, 0.0);
        for (std::size_t t = 0; t < L; ++t) {
            for (double& s : S) s *= forgets ? share(w_a, b_a, t) : 1;
            for (std::size_t d = 0; d < D; ++d) {
                double known = 0, must = 0;
                for (std::size_t i = 0; i < D; ++i) known += S[d * D + i] * k(0, t, i) / length(k, t);
                for (std::size_t i = 0; i < D; ++i)
                    S[d * D + i] += share(w, b, t) * (k(0, t, d) - known) * k(0, t, i) / length(k, t);
                for (std::size_t i = 0; i < D; ++i) must += S[d * D + i] * q(0, t, i) / length(q, t);
                CHECK(is(0, t, d) == support::approx(must));
            }
        }
    };
    check_state(paper::schlag2021::delta_net(w, b), false);
    check_state(paper::yang2025::gated_delta_net(w_a, b_a, w, b), true);
}

TEST_CASE("Sun et al. 2023")
{
    const auto weight = [](double gamma) {
        return [=](std::size_t s, std::size_t j) {
            return std::pow(gamma, static_cast<double>(s - j)) * turned(s, j) / std::sqrt(double{D});
        };
    };
    check(paper::sun2023::retention(0.9), weight(0.9), false);
    array<double, 2> both(shape_of_rank<2>{D, 2 * D}, 0.0), second(shape_of_rank<2>{2 * D, D}, 0.0);
    for (std::size_t i = 0; i < D; ++i) both(i, i) = both(i, D + i) = second(D + i, i) = 1;
    check(paper::sun2023::multi_scale(2, both, both, both, second), weight(1 - std::exp2(-6.0)), false);
}
