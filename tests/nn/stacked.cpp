// SPDX-License-Identifier: BSD-3-Clause
#include <heed/nn/stacked.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/nn/gru.hpp>
#include <heed/nn/lstm.hpp>
#include <support/tensors.hpp>

// Stacked cells in encoders and decoders against loops: tests/seq2seq/parts.cpp.

using namespace heed;
using support::random;

namespace {

constexpr std::size_t E = 3, H = 4;

/// Parameters that all differ, the biases included.
auto gru_from(std::size_t input, std::uint64_t stream)
{
    return nn::gru{random({input, 3 * H}, stream), random({3 * H}, stream + 1), random({H, 2 * H}, stream + 2),
                   random({H, H}, stream + 3)};
}
auto lstm_from(std::size_t input, std::uint64_t stream)
{
    return nn::lstm{random({input, 4 * H}, stream), random({4 * H}, stream + 1), random({H, 4 * H}, stream + 2)};
}

}  // namespace

TEST_CASE("dropout of stacked cells acts between layers, not between steps")
{
    const nn::stacked cell{std::vector{lstm_from(E, 80), lstm_from(H, 84)}, nn::shortcut::residual};
    ad::tape<double> on;
    const auto lifted = ad::lift(on, cell);
    const auto x = random({5, E}, 90), h = random({5, H}, 91);
    random_source mine{5, 0}, theirs{5, 0};
    const auto before = lifted.begin(on.parameter(h));
    const auto next = lifted.step(lifted.project(x), before, {}, nn::dropout{0.5, &mine});
    const auto lower = lifted.layers[0].step(lifted.layers[0].project(x), before.layers[0]);
    const auto z = ops::dropout(lower.hidden, 0.5, theirs.next_stream());
    const auto upper = lifted.layers[1].step(lifted.layers[1].project(z), before.layers[1]);
    CHECK(support::same_bits(next.layers[0].hidden, lower.hidden));
    CHECK(support::same_bits(next.layers[1].cell, upper.cell));
    CHECK(support::same_bits(next.hidden, ops::add(upper.hidden, lower.hidden)));
    CHECK(mine.next_stream() == theirs.next_stream());
}

TEST_CASE("stacked cells without a layer, or with a state of a different number of layers, are rejected")
{
    random_source random{1, 0};
    CHECK_THROWS_WITH_AS((void)nn::stacked_factory{0}(nn::initializers<double>{random}, {E, H}),
                         "stacked: 0 layers; make at least one", error);
    const nn::stacked two{std::vector{gru_from(E, 1), gru_from(H, 5)}};
    const nn::stacked one{std::vector{gru_from(E, 1)}};
    CHECK_THROWS_WITH_AS(one.step(support::random({2, 3 * H}, 2), two.begin(support::random({2, H}, 3))),
                         "stacked: the state has 2 layers, but the cell has 1", shape_error);
}
