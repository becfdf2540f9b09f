// SPDX-License-Identifier: BSD-3-Clause
#include <heed/nn/lstm.hpp>
#include <heed/ops/elementwise.hpp>

#include <support/tensors.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

using namespace heed;
using support::random;

namespace {

double sigmoid(double a) { return 1 / (1 + std::exp(-a)); }

}  // namespace

TEST_CASE("a layer equals a scalar loop: the order of gates and biases")
{
    constexpr std::size_t batch = 2, inputs = 3, hidden = 4;
    const nn::lstm unit{random({inputs, 4 * hidden}, 1), random({4 * hidden}, 2), random({hidden, 4 * hidden}, 3)};
    const auto x = random({batch, inputs}, 4);
    const ops::lstm_state state{random({batch, hidden}, 5), random({batch, hidden}, 6)};
    const auto next = unit.step(unit.project(x), state);
    for (std::size_t b = 0; b < batch; ++b) {
        for (std::size_t j = 0; j < hidden; ++j) {
            const auto sum = [&](std::size_t gate) {
                double all = unit.b(gate * hidden + j);
                for (std::size_t k = 0; k < inputs; ++k) all += x(b, k) * unit.W(k, gate * hidden + j);
                for (std::size_t k = 0; k < hidden; ++k) all += state.hidden(b, k) * unit.U(k, gate * hidden + j);
                return all;
            };
            const double cell = sigmoid(sum(1)) * state.cell(b, j) + sigmoid(sum(0)) * std::tanh(sum(3));
            CHECK(next.cell(b, j) == doctest::Approx(cell).epsilon(1e-13));
            CHECK(next.hidden(b, j) == doctest::Approx(sigmoid(sum(2)) * std::tanh(cell)).epsilon(1e-13));
        }
    }
    const auto doubled = next.map([](const auto& part) { return ops::scale(part, 2); });
    CHECK(doubled.cell(1, 2) == 2 * next.cell(1, 2));
    CHECK(doubled.hidden(0, 3) == 2 * next.hidden(0, 3));
}

TEST_CASE("a new layer has the forget bias 1 and other biases 0; parts of U are drawn separately")
{
    random_source source{1, 0};
    const auto unit = nn::make_lstm<double>(source, 3, 4);
    for (std::size_t i = 0; i < 16; ++i) CHECK(unit.b(i) == (i / 4 == 1 ? 1 : 0));
    CHECK(parameter_count(unit) == 3 * 16 + 16 + 4 * 16);

    static std::size_t calls = 0;
    const nn::initializer<double> constant = [](random_source&, std::size_t rows, std::size_t columns) {
        return filled<double, 2>({rows, columns}, static_cast<double>(++calls));
    };
    const auto drawn = nn::make_lstm<double>(source, 3, 4, constant, 2.5);
    CHECK(calls == 4);
    for (std::size_t i = 0; i < 16; ++i) {
        CHECK(drawn.U(2, i) == static_cast<double>(i / 4 + 1));
        CHECK(drawn.b(i) == (i / 4 == 1 ? 2.5 : 0));
    }
}
