// SPDX-License-Identifier: BSD-3-Clause
//
// Cells over all words of a batch with sentences of different lengths.

#include <doctest/doctest.h>

#include <cstddef>
#include <limits>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/nn/peephole_lstm.hpp>
#include <heed/nn/rnn.hpp>
#include <heed/nn/run.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::random;
using support::same_bits;

namespace {

constexpr std::size_t T = 5, B = 4, X = 3, H = 2;
const lengths real{5, 2, 0, 4};

/// Sentence b alone, without padding: [n,1,X].
array<double, 3> alone(const array<double, 3>& x, std::size_t b)
{
    array<double, 3> one(shape_of_rank<3>{real[b], 1, X});
    for (std::size_t t = 0; t < real[b]; ++t)
        for (std::size_t i = 0; i < X; ++i) one(t, 0, i) = x(t, b, i);
    return one;
}

/// Each sentence of a padded batch against the sentence alone; equal bit for bit for any values in the padding.
void check(const auto& cell)
{
    const auto h = random({B, H}, 3);
    const auto clean = random({T, B, X}, 4);
    auto x = clean;
    for (std::size_t b = 0; b < B; ++b)
        for (std::size_t t = real[b]; t < T; ++t)
            for (std::size_t i = 0; i < X; ++i) x(t, b, i) = std::numeric_limits<double>::quiet_NaN();
    const auto each_part = [](const auto& is, const auto& must, const auto& compare) {
        (void)nn::map_state(
            is,
            [&](const auto& part, const auto& expected) {
                CHECK(compare(part, expected));
                return part;
            },
            must);
    };
    const auto bits = [](const auto& is, const auto& must) { return same_bits(is, must); };
    const auto near = [](const auto& is, const auto& must) { return support::distance(is, must) < 1e-13; };
    for (const auto reads : {nn::direction::forward, nn::direction::backward}) {
        const bool forward = reads == nn::direction::forward;
        const auto read = nn::run(cell, cell.begin(h), x, real, reads);
        const auto of_clean = nn::run(cell, cell.begin(h), clean, real, reads);
        REQUIRE(read.outputs.size() == T);
        each_part(read.last, of_clean.last, bits);
        for (std::size_t t = 0; t < T; ++t) CHECK(same_bits(read.outputs[t], of_clean.outputs[t]));
        for (std::size_t b = 0; b < B; ++b) {
            CAPTURE(b);
            const auto row = [b](const array<double, 2>& of) { return ops::rows_of(of, std::vector<std::size_t>{b}); };
            const auto first = cell.begin(row(h));
            if (real[b] == 0) {
                if (!requires { cell.layers; }) each_part(nn::map_state(read.last, row), first, bits);
                continue;
            }
            const auto must = nn::run(cell, first, alone(clean, b), lengths{real[b]}, reads);
            each_part(nn::map_state(read.last, row), must.last, near);
            CHECK(near(row(nn::output_of(read.last)), row(read.outputs[forward ? real[b] - 1 : 0])));
            for (std::size_t t = 0; t < real[b]; ++t) CHECK(near(row(read.outputs[t]), must.outputs[t]));
            for (std::size_t t = real[b]; forward && t < T; ++t)  // the last state again
                CHECK(same_bits(row(read.outputs[t]), row(read.outputs[real[b] - 1])));
        }
    }
    CHECK_THROWS_WITH_AS(nn::run(cell, cell.begin(h), random({0, B, X}, 1), lengths{0, 0, 0, 0}),
                         "nn::run: x is [0,4,3], which has no steps; give at least one", shape_error);
    CHECK_THROWS_WITH_AS(nn::run(cell, cell.begin(h), clean, lengths{5, 2}), doctest::Contains("nn::run: 2 lengths"),
                         shape_error);
}

}  // namespace

TEST_CASE("padding changes no bit, and the last state is that of the last word")
{
    random_source source{1};
    check(nn::make_gru<double>(source, X, H));
    check(nn::make_lstm<double>(source, X, H));
    const nn::initializers<double> init{source, nullptr};
    check(nn::rnn_factory{ops::relu}(init, {X, H}));
    check(nn::peephole_lstm_factory{}(init, {X, H}));
    check(nn::stacked_factory{2, nn::rnn_factory{}}(init, {X, H}));
    check(nn::stacked_factory{3, nn::lstm_factory{}, nn::shortcut::residual}(nn::initializers<double>{source}, {X, H}));
}

TEST_CASE("words are read in order, one by one")
{
    random_source source{2};
    const auto cell = nn::make_lstm<double>(source, X, H);
    const auto x = random({T, B, X}, 4);
    auto forward = cell.begin(nn::zero_start{H}.state(B, x)), backward = forward;
    const auto all = lengths::full(B, T);
    const auto there = nn::run(cell, forward, x, all);
    const auto back = nn::run(cell, forward, x, all, nn::direction::backward);
    for (std::size_t t = 0; t < T; ++t) {
        forward = cell.step(cell.project(ops::block(x, t)), forward);
        backward = cell.step(cell.project(ops::block(x, T - 1 - t)), backward);
        CHECK(support::distance(there.outputs[t], forward.hidden) < 1e-12);
        CHECK(support::distance(back.outputs[T - 1 - t], backward.hidden) < 1e-12);
    }
    CHECK(support::distance(there.last.cell, forward.cell) < 1e-12);
    CHECK(support::distance(back.last.cell, backward.cell) < 1e-12);
}
