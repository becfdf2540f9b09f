// SPDX-License-Identifier: BSD-3-Clause
#include <heed/nn/rnn.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>
#include <support/tensors.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>

using namespace heed;
using support::random;

namespace {

constexpr std::size_t B = 2, X = 3, H = 4;

void check(const auto& unit, const auto& f)
{
    const auto x = random({B, X}, 4), h = random({B, H}, 5);
    const auto next = unit.step(unit.project(x), unit.begin(h));
    const lengths longer{3, 2};
    const auto open = unit.step(unit.project(x), h, ops::sentence_ends{&longer, 1});
    CHECK(support::same_bits(open, next));
    for (std::size_t b = 0; b < B; ++b) {
        for (std::size_t j = 0; j < H; ++j) {
            double sum = unit.b(j);
            for (std::size_t k = 0; k < X; ++k) sum += x(b, k) * unit.W(k, j);
            for (std::size_t k = 0; k < H; ++k) sum += h(b, k) * unit.U(k, j);
            CHECK(next(b, j) == doctest::Approx(f(sum)).epsilon(1e-13));
        }
    }
}

}  // namespace

TEST_CASE("a step equals a scalar loop, with tanh or another function")
{
    const auto W = random({X, H}, 1), U = random({H, H}, 3);
    const auto b = random({H}, 2);
    check(nn::rnn{W, b, U}, [](double a) { return std::tanh(a); });
    check(nn::rnn{W, b, U, ops::relu}, [](double a) { return std::max(a, 0.0); });
}

TEST_CASE("gradients are correct, and a finished sentence keeps its state for any further input")
{
    const lengths real{2, 1};
    nn::rnn unit{random({X, H}, 1), random({H}, 2), random({H, H}, 3)};
    const auto h_0 = random({B, H}, 5);
    const auto twice = [&](const auto& cell, const auto& x, const auto& h) {
        return cell.step(cell.project(x), cell.step(cell.project(x), h), ops::sentence_ends{&real, 1});
    };
    const auto f = [&](const auto& x, const auto& h) { return twice(unit, x, h); };
    CHECK_GRADIENT(f, random({B, X}, 4), h_0);
    const auto by_parts = ad::grad_check(unit, [&](auto&, const auto& lifted) {
        const auto y = twice(lifted, random({B, X}, 4), h_0);
        return ops::dot(y, support::uneven(y.shape()));
    });
    CHECK_MESSAGE(bool(by_parts), by_parts.text());

    auto projected = random({B, H}, 6);
    for (std::size_t j = 0; j < H; ++j) projected(1, j) = std::nan("");
    ad::tape<double> on;
    const auto lifted = ad::lift(on, unit);
    const auto h = on.parameter(h_0);
    const auto next = lifted.step(on.constant(projected), h, ops::sentence_ends{&real, 1});
    for (std::size_t j = 0; j < H; ++j) CHECK(next.data()[H + j] == h.data()[H + j]);
    on.backward(ops::dot(next, support::uneven(next.shape())));
    const auto d_U = on.gradient(lifted.U), d_h = on.gradient(h);
    for (std::size_t i = 0; i < H * H; ++i) CHECK(std::isfinite(d_U.data[i]));
    for (std::size_t i = 0; i < B * H; ++i) CHECK(std::isfinite(d_h.data[i]));
}

TEST_CASE("a new layer has the documented parameters")
{
    random_source source{1};
    const auto unit = nn::rnn_factory{ops::relu}(nn::initializers<double>{source, nullptr}, {X, H});
    CHECK(shape_of(unit.W) == shape_of_rank<2>{X, H});
    CHECK(shape_of(unit.U) == shape_of_rank<2>{H, H});
    CHECK(unit.b == zeros<double>(H));
    CHECK(parameter_count(unit) == X * H + H + H * H);
}
