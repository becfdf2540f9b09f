// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/recurrent.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <cmath>
#include <vector>

using namespace heed;
using support::random;

// The operations of recurrent layers, one by one.

namespace {

const ops::sentence_ends no_end{};

/// One step in scalar loops, from the equations in kernels/recurrent.hpp (Bahdanau et al. 2015).
array<double, 2> scalar_gru(const array<double, 2>& x, const array<double, 2>& h, const array<double, 2>& U,
                            const array<double, 2>& U_h)
{
    const std::size_t B = h.shape()[0], H = h.shape()[1];
    array<double, 2> next(h.shape());
    const auto sigmoid = [](double a) { return 1 / (1 + std::exp(-a)); };
    for (std::size_t b = 0; b < B; ++b) {
        std::vector<double> z(H), r(H);
        for (std::size_t i = 0; i < H; ++i) {
            double sum_z = x(b, i), sum_r = x(b, H + i);
            for (std::size_t k = 0; k < H; ++k) sum_z += h(b, k) * U(k, i), sum_r += h(b, k) * U(k, H + i);
            z[i] = sigmoid(sum_z);
            r[i] = sigmoid(sum_r);
        }
        for (std::size_t i = 0; i < H; ++i) {
            double sum = x(b, 2 * H + i);
            for (std::size_t k = 0; k < H; ++k) sum += r[k] * h(b, k) * U_h(k, i);
            next(b, i) = (1 - z[i]) * h(b, i) + z[i] * std::tanh(sum);
        }
    }
    return next;
}

using state = ops::lstm_state<array<double, 2>>;

/// One step in scalar loops, from the equations in kernels/recurrent.hpp.
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

/// Both parts of the next state, concatenated so that the loss reads both.
constexpr auto both = [](const auto& next) { return ops::concat(next.hidden, next.cell); };

void check(const ad::grad_check_result& found) { CHECK_MESSAGE(bool(found), found.text()); }

}  // namespace

TEST_CASE("a GRU step matches its equations and their gradient")
{
    for (const std::size_t H : {std::size_t{1}, std::size_t{5}, std::size_t{19}}) {
        const auto x = random({3, 3 * H}, 1), h = random({3, H}, 2), U = random({H, 2 * H}, 3), U_h = random({H, H}, 4);
        const auto f = [](const auto& inputs, const auto& hidden, const auto& recurrent, const auto& of_candidate) {
            return ops::gru(inputs, hidden, recurrent, of_candidate, no_end);
        };
        CHECK(support::distance(f(x, h, U, U_h), scalar_gru(x, h, U, U_h)) < 1e-13);
        const auto check = [](const ad::grad_check_result& found) { CHECK_MESSAGE(bool(found), found.text()); };
        check(support::gradient_of<0b1111>(f, x, h, U, U_h));
        check(support::gradient_of<0b0001>(f, x, h, U, U_h));
        check(support::gradient_of<0b0010>(f, x, h, U, U_h));
        check(support::gradient_of<0b1100>(f, x, h, U, U_h));
    }
}

TEST_CASE("a GRU step of states with more axes equals that of their rows")
{
    const std::size_t H = 3;
    const auto U = random({H, 2 * H}, 3), U_h = random({H, H}, 4);
    const auto x = random({2, 4, 3 * H}, 1), h = random({2, 4, H}, 2);
    array<double, 2> x_rows(shape_of_rank<2>{8, 3 * H}), h_rows(shape_of_rank<2>{8, H});
    std::copy(x.begin(), x.end(), x_rows.begin());
    std::copy(h.begin(), h.end(), h_rows.begin());
    const auto next = ops::gru(x, h, U, U_h, no_end);
    const auto must = scalar_gru(x_rows, h_rows, U, U_h);
    REQUIRE(shape_of(next) == shape_of(h));
    for (std::size_t i = 0; i < next.size(); ++i)
        CHECK(next.data()[i] == doctest::Approx(must.data()[i]).epsilon(1e-13));
    const auto f = [](const auto& inputs, const auto& hidden, const auto& recurrent, const auto& of_candidate) {
        return ops::gru(inputs, hidden, recurrent, of_candidate, no_end);
    };
    const auto check = [](const ad::grad_check_result& found) { CHECK_MESSAGE(bool(found), found.text()); };
    check(support::gradient_of<0b1111>(f, x, h, U, U_h));
    check(support::gradient_of<0b0010>(f, x, h, U, U_h));
    check(support::gradient_of<0b1100>(f, x, h, U, U_h));
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                ops::gru(random({2, 4, H}, 1), h, U, U_h, no_end);
                            }),
                            "gru: the input is [2,4,3] but must be [2,4,9]"));
}

TEST_CASE("an ended sentence keeps its state, and its gradient passes through")
{
    const lengths real{3, 1, 0, 2};
    const auto x = random({4, 9}, 1), h = random({4, 3}, 2), U = random({3, 6}, 3), U_h = random({3, 3}, 4);
    for (std::size_t step = 0; step < 3; ++step) {
        const ops::sentence_ends ends{&real, step};
        const auto next = ops::gru(x, h, U, U_h, ends);
        const auto free = ops::gru(x, h, U, U_h, no_end);
        for (std::size_t b = 0; b < 4; ++b) {
            for (std::size_t i = 0; i < 3; ++i) CHECK(next(b, i) == (step < real[b] ? free(b, i) : h(b, i)));
        }
        const auto f = [&](const auto& inputs, const auto& hidden, const auto& a, const auto& b) {
            return ops::gru(inputs, hidden, a, b, ends);
        };
        const auto found = support::gradient_of<0b1111>(f, x, h, U, U_h);
        CHECK_MESSAGE(bool(found), found.text());
    }
}

TEST_CASE("inputs of a GRU that other operations also read: before it, after it, or another GRU")
{
    const auto x = random({2, 9}, 1), h = random({2, 3}, 2), U = random({3, 6}, 3), U_h = random({3, 3}, 4),
               V = random({3, 6}, 5), V_h = random({3, 3}, 6);
    const auto check = [](const ad::grad_check_result& found) { CHECK_MESSAGE(bool(found), found.text()); };
    check(support::gradient_of<0b111111>(
        [](const auto& inputs, const auto& hidden, const auto& a, const auto& b, const auto& c, const auto& d) {
            return ops::concat(ops::gru(inputs, hidden, a, b, no_end), ops::gru(inputs, hidden, c, d, no_end));
        },
        x, h, U, U_h, V, V_h));
    const auto with = [&](bool before) {
        return support::gradient_of<0b1111>(
            [before](const auto& inputs, const auto& hidden, const auto& a, const auto& b) {
                auto other = inputs;
                if (before) other = ops::multiply(inputs, inputs);
                const auto next = ops::gru(inputs, hidden, a, b, no_end);
                if (!before) other = ops::multiply(inputs, inputs);
                return ops::concat(next, other);
            },
            x, h, U, U_h);
    };
    check(with(true));
    check(with(false));
}

TEST_CASE("a recurrent layer over several steps")
{
    const auto x = random({4, 2, 9}, 1);
    const auto U = random({3, 6}, 2), U_h = random({3, 3}, 3);
    const auto h = random({3}, 4);
    const lengths real{4, 2};
    const auto found = support::gradient_of<0b1111>(
        [&](const auto& inputs, const auto& start, const auto& a, const auto& b) {
            auto state = ops::repeat(start, std::size_t{2});
            std::vector<decltype(state)> states;
            for (std::size_t s = 0; s < 4; ++s) {
                state = ops::gru(ops::block(inputs, s), state, a, b, ops::sentence_ends{&real, s});
                states.push_back(state);
            }
            return ops::stack(states);
        },
        x, h, U, U_h);
    CHECK_MESSAGE(bool(found), found.text());
}

TEST_CASE("an LSTM step matches its equations and their gradient")
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

TEST_CASE("gradients of only the hidden state, and of only the cell")
{
    const auto x = random({2, 12}, 1), h = random({2, 3}, 2), c = random({2, 3}, 3), U = random({3, 12}, 4);
    const auto hidden = [](const auto&... all) { return ops::lstm(all..., no_end).hidden; };
    const auto cell = [](const auto&... all) { return ops::lstm(all..., no_end).cell; };
    check(support::gradient_of<0b1111>(hidden, x, h, c, U));
    check(support::gradient_of<0b1111>(cell, x, h, c, U));
}

TEST_CASE("an LSTM step of states with more axes, and shapes that do not fit")
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

TEST_CASE("with an LSTM, an ended sentence keeps both parts of its state, and their gradient passes through")
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

TEST_CASE("inputs of an LSTM that other operations also read: before it, after it, or another LSTM")
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
