// SPDX-License-Identifier: BSD-3-Clause
#include <heed/nn/gated_coverage.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <string>

#include <support/gradients.hpp>

using namespace heed;
using support::random;

namespace {

constexpr std::size_t B = 2, T = 3, D = 4, Q = 5, N = 2;

auto some_unit()
{
    return nn::gated_coverage{random({D, 3 * N}, 1), random({Q, 3 * N}, 2), random({3 * N}, 3), random({N, 2 * N}, 4),
                              random({N, N}, 5)};
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

TEST_CASE("gated coverage equals its equations at each position")
{
    const auto unit = some_unit();
    const auto h = random({B, T, D}, 6), C = random({B, T, N}, 7);
    const auto s = random({B, Q}, 8), alpha = random({B, T}, 9);
    CHECK(unit.size() == N);
    const auto next = unit.step(unit.project(h), s, alpha, C);
    REQUIRE(shape_of(next) == shape_of_rank<3>{B, T, N});
    for (std::size_t b = 0; b < B; ++b) {
        for (std::size_t j = 0; j < T; ++j) {
            const auto inputs = [&](std::size_t gate) {  // W h + S s + α a
                double sum = alpha(b, j) * unit.a(gate);
                for (std::size_t d = 0; d < D; ++d) sum += h(b, j, d) * unit.W(d, gate);
                for (std::size_t q = 0; q < Q; ++q) sum += s(b, q) * unit.S(q, gate);
                return sum;
            };
            const auto gate = [&](std::size_t which) {
                double sum = inputs(which);
                for (std::size_t k = 0; k < N; ++k) sum += C(b, j, k) * unit.U(k, which);
                return sigmoid(sum);
            };
            for (std::size_t n = 0; n < N; ++n) {
                double candidate = inputs(2 * N + n);  // r is applied before the product
                for (std::size_t k = 0; k < N; ++k) candidate += gate(N + k) * C(b, j, k) * unit.U_c(k, n);
                const double z = gate(n), must = (1 - z) * C(b, j, n) + z * std::tanh(candidate);
                CHECK(next(b, j, n) == doctest::Approx(must).epsilon(1e-13));
            }
        }
    }
}

TEST_CASE("gated coverage: a closed gate keeps the coverage, and positions are independent")
{
    auto unit = some_unit();
    const auto h = random({B, T, D}, 6), C = random({B, T, N}, 7);
    const auto s = random({B, Q}, 8), alpha = random({B, T}, 9);
    const auto before = unit.step(unit.project(h), s, alpha, C);
    auto other = C;
    other(0, 1, 0) += 1;
    const auto after = unit.step(unit.project(h), s, alpha, other);
    for (std::size_t i = 0; i < B * T * N; ++i) {
        const bool there = i / N == 1;  // whether it is position 1 of row 0
        CHECK((after.data()[i] != before.data()[i]) == there);
    }
    // z = 0 where the weight's contribution to it is -1e4.
    for (std::size_t n = 0; n < N; ++n) unit.a(n) = -1e4;
    const array<double, 2> ones(shape_of_rank<2>{B, T}, 1.0);
    CHECK(support::same_bits(unit.step(unit.project(h), s, ones, C), C));
}

TEST_CASE("gated coverage: gradients of all inputs and parameters are correct")
{
    const auto f = [](const auto& h, const auto& s, const auto& alpha, const auto& C) {
        const auto unit = some_unit();
        return unit.step(unit.project(h), s, alpha, C);
    };
    CHECK_GRADIENT(f, random({B, T, D}, 6), random({B, Q}, 7), random({B, T}, 8), random({B, T, N}, 9));
    auto unit = some_unit();
    const auto h = random({B, T, D}, 6), C = random({B, T, N}, 7);
    const auto s = random({B, Q}, 8), alpha = random({B, T}, 9);
    const auto found = ad::grad_check(unit, [&](auto&, const auto& lifted) {
        return ops::dot(lifted.step(lifted.project(h), s, alpha, C), support::uneven(shape_of_rank<3>{B, T, N}));
    });
    CHECK_MESSAGE(bool(found), found.text());
}

TEST_CASE("a new gated coverage has the given sizes, by default 10")
{
    random_source source{1};
    const auto unit = nn::make_gated_coverage<float>(source, D, Q, N);
    CHECK(shape_of(unit.W) == shape_of_rank<2>{D, 3 * N});
    CHECK(shape_of(unit.S) == shape_of_rank<2>{Q, 3 * N});
    CHECK(shape_of(unit.a) == shape_of_rank<1>{3 * N});
    CHECK(shape_of(unit.U) == shape_of_rank<2>{N, 2 * N});
    CHECK(shape_of(unit.U_c) == shape_of_rank<2>{N, N});
    CHECK(nn::make_gated_coverage<float>(source, D, Q).size() == 10);
    std::string names;
    for_each_parameter(unit, [&](const std::string& name, const auto&) { names += name + " "; });
    CHECK(names == "W S a U U_c ");
}
