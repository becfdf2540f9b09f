// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <cmath>
#include <vector>

using namespace heed;
using support::random;

namespace {

const ops::sentence_ends no_end{};

using state = ops::lstm_state<array<double, 2>>;

/// One step written number by number, from the equations at the head of kernels/lstm.hpp.
state scalar_lstm(const array<double, 2>& x, const array<double, 2>& h, const array<double, 2>& c,
                  const array<double, 2>& U)
{
    const std::size_t B = h.shape()[0], H = h.shape()[1];
    state next{array<double, 2>(h.shape()), array<double, 2>(h.shape())};
    const auto sigmoid = [](double a) { return 1 / (1 + std::exp(-a)); };
    for (std::size_t b = 0; b < B; ++b) {
        for (std::size_t j = 0; j < H; ++j) {
            double a[4];
            for (std::size_t gate = 0; gate < 4; ++gate) {
                a[gate] = x(b, gate * H + j);
                for (std::size_t k = 0; k < H; ++k) a[gate] += h(b, k) * U(k, gate * H + j);
            }
            next.cell(b, j) = sigmoid(a[1]) * c(b, j) + sigmoid(a[0]) * std::tanh(a[3]);
            next.hidden(b, j) = sigmoid(a[2]) * std::tanh(next.cell(b, j));
        }
    }
    return next;
}

/// Both parts of the next state side by side, so that each is in the loss.
constexpr auto both = [](const auto& next) { return ops::concat(next.hidden, next.cell); };

void check(const ad::grad_check_result& found) { CHECK_MESSAGE(bool(found), found.text()); }

}  // namespace

TEST_CASE("an LSTM step is its equations, and has their gradient")
{
    for (const std::size_t H : {std::size_t{1}, std::size_t{5}, std::size_t{19}}) {
        const auto x = random({3, 4 * H}, 1), h = random({3, H}, 2), c = random({3, H}, 3), U = random({H, 4 * H}, 4);
        const auto next = ops::lstm(x, h, c, U, no_end);
        const auto must = scalar_lstm(x, h, c, U);
        CHECK(support::distance(next.hidden, must.hidden) < 1e-13);
        CHECK(support::distance(next.cell, must.cell) < 1e-13);
        const auto f = [](const auto& inputs, const auto& hidden, const auto& cell, const auto& recurrent) {
            return both(ops::lstm(inputs, hidden, cell, recurrent, no_end));
        };
        check(support::gradient_of<0b1111>(f, x, h, c, U));
        check(support::gradient_of<0b0001>(f, x, h, c, U));
        check(support::gradient_of<0b0010>(f, x, h, c, U));
        check(support::gradient_of<0b0100>(f, x, h, c, U));
        check(support::gradient_of<0b1000>(f, x, h, c, U));
    }
}

TEST_CASE("the hidden state alone, and the cell alone")
{
    const auto x = random({2, 12}, 1), h = random({2, 3}, 2), c = random({2, 3}, 3), U = random({3, 12}, 4);
    const auto hidden = [](const auto&... all) { return ops::lstm(all..., no_end).hidden; };
    const auto cell = [](const auto&... all) { return ops::lstm(all..., no_end).cell; };
    check(support::gradient_of<0b1111>(hidden, x, h, c, U));
    check(support::gradient_of<0b1111>(cell, x, h, c, U));
}

TEST_CASE("states with further axes, and shapes that do not fit")
{
    const auto x = random({2, 4, 12}, 1), h = random({2, 4, 3}, 2), c = random({2, 4, 3}, 3);
    const auto U = random({3, 12}, 4);
    const auto rows = [](const auto& of) {
        array<double, 2> all(shape_of_rank<2>{8, of.shape()[2]});
        std::copy(of.begin(), of.end(), all.begin());
        return all;
    };
    const auto next = ops::lstm(x, h, c, U, no_end);
    const auto must = scalar_lstm(rows(x), rows(h), rows(c), U);
    CHECK(support::distance(rows(next.hidden), must.hidden) < 1e-13);
    CHECK(support::distance(rows(next.cell), must.cell) < 1e-13);
    const auto f = [](const auto&... all) { return ops::lstm(all..., no_end).hidden; };
    check(support::gradient_of<0b1111>(f, x, h, c, U));
    const auto message = [&](const auto&... all) {
        return support::message_of<shape_error>([&] { ops::lstm(all..., no_end); });
    };
    CHECK(support::contains(message(random({2, 4, 9}, 1), h, c, U), "lstm: the input is [2,4,9] but must be [2,4,12]"));
    CHECK(support::contains(message(x, h, random({2, 3, 3}, 1), U), "lstm: the cell is [2,3,3] but must be [2,4,3]"));
    CHECK(support::contains(message(x, h, c, random({3, 9}, 1)), "lstm: U is [3,9] but must be [3,12]"));
    const lengths few{1, 2};
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                ops::lstm(x, h, c, U, ops::sentence_ends{&few, 0});
                            }),
                            "lstm: 2 lengths for 8 sentences"));
}

TEST_CASE("a sentence that is over keeps both parts of its state, and their gradient passes")
{
    const lengths real{3, 1, 0, 2};
    const auto x = random({4, 12}, 1), h = random({4, 3}, 2), c = random({4, 3}, 3), U = random({3, 12}, 4);
    for (std::size_t step = 0; step < 3; ++step) {
        const ops::sentence_ends ends{&real, step};
        const auto next = ops::lstm(x, h, c, U, ends);
        const auto free = ops::lstm(x, h, c, U, no_end);
        for (std::size_t b = 0; b < 4; ++b) {
            for (std::size_t i = 0; i < 3; ++i) {
                CHECK(next.hidden(b, i) == (step < real[b] ? free.hidden(b, i) : h(b, i)));
                CHECK(next.cell(b, i) == (step < real[b] ? free.cell(b, i) : c(b, i)));
            }
        }
        check(support::gradient_of<0b1111>([&](const auto&... all) { return both(ops::lstm(all..., ends)); }, x, h, c,
                                           U));
    }
}

TEST_CASE("inputs of an LSTM that somebody else uses, too: before it, after it, or another LSTM")
{
    const auto x = random({2, 12}, 1), h = random({2, 3}, 2), c = random({2, 3}, 3), U = random({3, 12}, 4),
               V = random({3, 12}, 5);
    check(support::gradient_of<0b11111>(
        [](const auto& inputs, const auto& hidden, const auto& cell, const auto& a, const auto& b) {
            return ops::concat(both(ops::lstm(inputs, hidden, cell, a, no_end)),
                               both(ops::lstm(inputs, hidden, cell, b, no_end)));
        },
        x, h, c, U, V));
    for (const bool before : {true, false}) {
        check(support::gradient_of<0b1111>(
            [before](const auto& inputs, const auto& hidden, const auto& cell, const auto& a) {
                auto other = inputs;
                if (before) other = ops::multiply(inputs, inputs);
                const auto next = both(ops::lstm(inputs, hidden, cell, a, no_end));
                if (!before) other = ops::multiply(inputs, inputs);
                return ops::concat(next, other);
            },
            x, h, c, U));
    }
}

TEST_CASE("an LSTM layer over several steps of sentences of different lengths")
{
    const auto x = random({4, 2, 12}, 1);
    const auto U = random({3, 12}, 2);
    const auto h = random({3}, 3), c = random({3}, 4);
    const lengths real{4, 2};
    check(support::gradient_of<0b1111>(
        [&](const auto& inputs, const auto& hidden, const auto& cell, const auto& recurrent) {
            ops::lstm_state now{ops::repeat(hidden, std::size_t{2}), ops::repeat(cell, std::size_t{2})};
            std::vector<decltype(now.hidden)> shown;
            for (std::size_t s = 0; s < 4; ++s) {
                now = ops::lstm(ops::block(inputs, s), now.hidden, now.cell, recurrent, ops::sentence_ends{&real, s});
                shown.push_back(now.hidden);
            }
            shown.push_back(now.cell);
            return ops::stack(shown);
        },
        x, h, c, U));
}
