// SPDX-License-Identifier: BSD-3-Clause
#include <heed/nn/peephole_lstm.hpp>

#include <heed/ad/ad.hpp>
#include <heed/nn/lstm.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>
#include <support/tensors.hpp>

#include <cmath>
#include <cstddef>

using namespace heed;
using support::random;

namespace {

constexpr std::size_t B = 2, X = 3, H = 4;

double sigmoid(double a) { return 1 / (1 + std::exp(-a)); }

}  // namespace

TEST_CASE("a step equals a scalar loop: the order of the gates, and the cell that each gate reads")
{
    const nn::peephole_lstm unit{random({X, 4 * H}, 1), random({4 * H}, 2), random({H, 4 * H}, 3),
                                 random({H}, 4),        random({H}, 5),     random({H}, 6)};
    const auto x = random({B, X}, 7);
    const ops::lstm_state state{random({B, H}, 8), random({B, H}, 9)};
    const auto next = unit.step(unit.project(x), state);
    const lengths longer{3, 2};
    const auto open = unit.step(unit.project(x), state, ops::sentence_ends{&longer, 1});
    CHECK(support::same_bits(open.hidden, next.hidden));
    CHECK(support::same_bits(open.cell, next.cell));
    for (std::size_t b = 0; b < B; ++b) {
        for (std::size_t j = 0; j < H; ++j) {
            const auto sum = [&](std::size_t gate) {
                double all = unit.b(gate * H + j);
                for (std::size_t k = 0; k < X; ++k) all += x(b, k) * unit.W(k, gate * H + j);
                for (std::size_t k = 0; k < H; ++k) all += state.hidden(b, k) * unit.U(k, gate * H + j);
                return all;
            };
            const double before = state.cell(b, j);
            const double cell = sigmoid(sum(1) + unit.p_f(j) * before) * before +
                                sigmoid(sum(0) + unit.p_i(j) * before) * std::tanh(sum(3));
            CHECK(next.cell(b, j) == doctest::Approx(cell).epsilon(1e-13));
            CHECK(next.hidden(b, j) ==
                  doctest::Approx(sigmoid(sum(2) + unit.p_o(j) * cell) * std::tanh(cell)).epsilon(1e-13));
        }
    }

    // Without peepholes it is nn::lstm.
    const auto none = zeros<double>(H);
    const nn::peephole_lstm closed{unit.W, unit.b, unit.U, none, none, none};
    const nn::lstm plain{unit.W, unit.b, unit.U};
    const auto is = closed.step(closed.project(x), state), must = plain.step(plain.project(x), state);
    CHECK(support::distance(is.hidden, must.hidden) < 1e-14);
    CHECK(support::distance(is.cell, must.cell) < 1e-14);
}

TEST_CASE("gradients are correct, and a finished sentence keeps its state for any further input")
{
    const lengths real{2, 1};
    nn::peephole_lstm unit{random({X, 4 * H}, 1), random({4 * H}, 2), random({H, 4 * H}, 3),
                           random({H}, 4),        random({H}, 5),     random({H}, 6)};
    const auto x = random({B, X}, 7), h_0 = random({B, H}, 8), c_0 = random({B, H}, 9);
    const auto twice = [&](const auto& cell, const auto& words, const auto& h, const auto& c) {
        const auto projected = cell.project(words);
        const auto after = cell.step(projected, ops::lstm_state{h, c});
        const auto last = cell.step(projected, after, ops::sentence_ends{&real, 1});
        return ops::concat(last.hidden, last.cell);
    };
    const auto f = [&](const auto& words, const auto& h, const auto& c) { return twice(unit, words, h, c); };
    CHECK_GRADIENT(f, x, h_0, c_0);
    const auto by_parts = ad::grad_check(unit, [&](auto&, const auto& lifted) {
        const auto y = twice(lifted, x, h_0, c_0);
        return ops::dot(y, support::uneven(y.shape()));
    });
    CHECK_MESSAGE(bool(by_parts), by_parts.text());

    auto projected = random({B, 4 * H}, 6);
    for (std::size_t j = 0; j < 4 * H; ++j) projected(1, j) = std::nan("");
    ad::tape<double> on;
    const auto lifted = ad::lift(on, unit);
    const auto h = on.parameter(h_0);
    const auto c = on.parameter(c_0);
    const auto next = lifted.step(on.constant(projected), ops::lstm_state{h, c}, ops::sentence_ends{&real, 1});
    for (std::size_t j = H; j < 2 * H; ++j) {
        CHECK(next.hidden.data()[j] == h.data()[j]);
        CHECK(next.cell.data()[j] == c.data()[j]);
    }
    on.backward(ops::dot(ops::add(next.hidden, next.cell), support::uneven(h.shape())));
    const auto finite = [&](const auto& v) {
        const auto d = on.gradient(v);
        for (std::size_t i = 0; i < d.size(); ++i) CHECK(std::isfinite(d.data[i]));
    };
    finite(lifted.U), finite(lifted.p_i), finite(lifted.p_f), finite(lifted.p_o), finite(h), finite(c);
}

TEST_CASE("a new layer has the forget bias 1 and peepholes of 0")
{
    random_source source{1};
    const auto unit = nn::peephole_lstm_factory{}(nn::initializers<double>{source, nullptr}, {X, H});
    for (std::size_t i = 0; i < 4 * H; ++i) CHECK(unit.b(i) == (i / H == 1 ? 1 : 0));
    CHECK(unit.p_o == zeros<double>(H));
    CHECK(parameter_count(unit) == X * 4 * H + 4 * H + H * 4 * H + 3 * H);
}
