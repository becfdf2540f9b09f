// SPDX-License-Identifier: BSD-3-Clause
#include <heed/nn/cells.hpp>
#include <heed/nn/peephole_lstm.hpp>
#include <heed/nn/rnn.hpp>

#include <doctest/doctest.h>

#include <heed/ops/elementwise.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::random;

TEST_CASE("every kind of cell has an output, an input projection, a state from an output, and a next state")
{
    random_source source{1};
    const auto check = [&](const auto& make) {
        const auto cell = make(nn::initializers<double>{source, nn::glorot<double>}, nn::cell_sizes{4, 3});
        const auto x = random({2, 4}, 1), h = random({2, 3}, 2);
        const auto state = nn::begin_of(cell, h);
        CHECK(support::same_bits(nn::output_of(state), h));
        const auto projected = nn::project_of(cell, x);
        const auto next = nn::next_of(cell, projected, state);
        CHECK(support::same_bits(nn::output_of(next), nn::output_of(cell.step(projected, state))));
        CHECK(
            support::same_bits(nn::output_of(nn::step_of(cell, projected, state, nn::dropout{})), nn::output_of(next)));
        const auto twice = nn::map_state(next, [](const auto& part) { return ops::scale(part, 2); });
        CHECK(support::same_bits(nn::output_of(twice), ops::scale(nn::output_of(next), 2)));
        CHECK(&nn::biases_of(cell) == &cell.b);
    };
    check(nn::gru_factory{});
    check(nn::lstm_factory{});
    check(nn::rnn_factory{});
    check(nn::peephole_lstm_factory{});
}
