// SPDX-License-Identifier: BSD-3-Clause
#include <heed/nn/gru.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>
#include <support/tensors.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <vector>

using namespace heed;
using support::random;

namespace {

constexpr std::size_t batch = 2, inputs = 3, hidden = 4;

double sigmoid(double a) { return 1 / (1 + std::exp(-a)); }

/// One step, by a scalar loop, of a unit whose reset gate acts before the product. `mix` computes the new state from z,
/// the old state and the candidate.
array<double, 2> one_step(const auto& unit, const array<double, 2>& x, const array<double, 2>& h,
                          const std::function<double(double, double, double)>& mix)
{
    array<double, 2> next(h.shape());
    for (std::size_t b = 0; b < batch; ++b) {
        const auto from_input = [&](std::size_t column) {
            double sum = unit.b(column);
            for (std::size_t k = 0; k < inputs; ++k) sum += x(b, k) * unit.W(k, column);
            return sum;
        };
        const auto gate = [&](std::size_t column) {
            double sum = from_input(column);
            for (std::size_t k = 0; k < hidden; ++k) sum += h(b, k) * unit.U(k, column);
            return sigmoid(sum);
        };
        for (std::size_t i = 0; i < hidden; ++i) {
            double sum = from_input(2 * hidden + i);
            for (std::size_t k = 0; k < hidden; ++k) sum += gate(hidden + k) * h(b, k) * unit.U_h(k, i);
            next(b, i) = mix(gate(i), h(b, i), std::tanh(sum));
        }
    }
    return next;
}

const ops::sentence_ends no_end{};

/// One step of a unit whose reset gate acts after the product, by a scalar loop, from the equations at the head of
/// kernels/recurrent.hpp.
array<double, 2> scalar_step(const array<double, 2>& x, const array<double, 2>& h, const array<double, 2>& U,
                             const array<double, 1>& c)
{
    const std::size_t B = h.shape()[0], H = h.shape()[1];
    array<double, 2> next(h.shape());
    for (std::size_t b = 0; b < B; ++b) {
        for (std::size_t j = 0; j < H; ++j) {
            double u[3] = {0, 0, c(j)};
            for (std::size_t gate = 0; gate < 3; ++gate)
                for (std::size_t k = 0; k < H; ++k) u[gate] += h(b, k) * U(k, gate * H + j);
            const double z = sigmoid(x(b, j) + u[0]), r = sigmoid(x(b, H + j) + u[1]);
            next(b, j) = (1 - z) * h(b, j) + z * std::tanh(x(b, 2 * H + j) + r * u[2]);
        }
    }
    return next;
}

void check(const ad::grad_check_result& found) { CHECK_MESSAGE(bool(found), found.text()); }

}  // namespace

TEST_CASE("the update gate weights the candidate; negated, it weights the state")
{
    const array<double, 2> x = random<double, 2>({batch, inputs}, 1), h = random<double, 2>({batch, hidden}, 2);
    nn::gru unit{random<double, 2>({inputs, 3 * hidden}, 3), random<double, 1>({3 * hidden}, 4),
                 random<double, 2>({hidden, 2 * hidden}, 5), random<double, 2>({hidden, hidden}, 6)};
    const auto renews = [](double z, double old, double fresh) { return (1 - z) * old + z * fresh; };
    const auto keeps = [](double z, double old, double fresh) { return z * old + (1 - z) * fresh; };
    const auto difference = [&](const array<double, 2>& expected) {
        const array<double, 2> found = unit.step(unit.project(x), h);
        double largest = 0;
        for (std::size_t i = 0; i < found.size(); ++i)
            largest = std::max(largest, std::abs(found.data()[i] - expected.data()[i]));
        return largest;
    };
    CHECK(difference(one_step(unit, x, h, renews)) < 1e-14);
    CHECK(difference(one_step(unit, x, h, keeps)) > 0.1);

    // Weights of a unit whose z keeps the state, as in Cho et al. 2014: negating the columns of z gives heed's weights.
    const array<double, 2> theirs = one_step(unit, x, h, keeps);
    for (std::size_t i = 0; i < hidden; ++i) {
        for (std::size_t k = 0; k < inputs; ++k) unit.W(k, i) *= -1;
        for (std::size_t k = 0; k < hidden; ++k) unit.U(k, i) *= -1;
        unit.b(i) *= -1;
    }
    CHECK(difference(theirs) < 1e-14);
}

TEST_CASE("a zero start has no parameters, a trained one has the state's size")
{
    CHECK(parameter_count(nn::zero_start{5}) == 0);
    CHECK(parameter_count(nn::trained_start{nn::zeros<float>(5)}) == 5);
    const auto beside = filled<double, 1>({1}, 0.0);
    const auto zero = nn::zero_start{5}.state(2, beside);
    CHECK(shape_of(zero) == shape_of_rank<2>{2, 5});
    for (const double x : zero) CHECK(x == 0);
}

TEST_CASE("gru_reset_after: a step equals its equations and has the correct gradient")
{
    for (const std::size_t H : {std::size_t{1}, std::size_t{5}, std::size_t{19}}) {
        const auto x = random({3, 3 * H}, 1), h = random({3, H}, 2), U = random({H, 3 * H}, 3);
        const auto c = random({H}, 4);
        CHECK(support::distance(ops::gru_reset_after(x, h, U, c, no_end), scalar_step(x, h, U, c)) < 1e-13);
        const auto f = [](const auto&... all) { return ops::gru_reset_after(all..., no_end); };
        check(support::gradient_of<0b1111>(f, x, h, U, c));
        check(support::gradient_of<0b0001>(f, x, h, U, c));
        check(support::gradient_of<0b0010>(f, x, h, U, c));
        check(support::gradient_of<0b0100>(f, x, h, U, c));
        check(support::gradient_of<0b1000>(f, x, h, U, c));
    }
    support::check_empty([](const auto&... all) { return ops::gru_reset_after(all..., no_end); }, random({0, 6}, 1),
                         random({0, 2}, 2), random({2, 6}, 3), random({2}, 4));
}

TEST_CASE("gru_reset_after differs from the unit whose reset gate acts before the product")
{
    const auto x = random({2, 9}, 1), h = random({2, 3}, 2), U = random({3, 9}, 3);
    const auto before = ops::gru(x, h, ops::slice_columns(U, 0, 6), ops::slice_columns(U, 6, 9), no_end);
    CHECK(support::distance(ops::gru_reset_after(x, h, U, nn::zeros<double>(3), no_end), before) > 0.01);
}

TEST_CASE("gru_reset_after: states with further axes work, mismatched shapes are rejected")
{
    const auto x = random({2, 4, 9}, 1), h = random({2, 4, 3}, 2);
    const auto U = random({3, 9}, 3);
    const auto c = random({3}, 4);
    const auto next = ops::gru_reset_after(x, h, U, c, no_end);
    array<double, 2> x_rows({8, 9}), h_rows({8, 3}), next_rows({8, 3});
    std::copy(x.begin(), x.end(), x_rows.begin());
    std::copy(h.begin(), h.end(), h_rows.begin());
    std::copy(next.begin(), next.end(), next_rows.begin());
    CHECK(support::distance(next_rows, scalar_step(x_rows, h_rows, U, c)) < 1e-13);
    check(support::gradient_of<0b1111>([](const auto&... all) { return ops::gru_reset_after(all..., no_end); }, x, h, U,
                                       c));
    const auto message = [&](const auto&... all) {
        return support::message_of<shape_error>([&] { ops::gru_reset_after(all..., no_end); });
    };
    CHECK(support::contains(message(random({2, 4, 12}, 1), h, U, c),
                            "gru_reset_after: the input is [2,4,12] but must be [2,4,9]"));
    CHECK(support::contains(message(x, h, random({3, 6}, 1), c), "gru_reset_after: U is [3,6] but must be [3,9]"));
    CHECK(support::contains(message(x, h, U, random({9}, 1)), "the bias of the product is [9] but must be [3]"));
}

TEST_CASE("gru_reset_after: a finished sentence keeps its state and passes its gradient")
{
    const lengths real{3, 1, 0, 2};
    const auto x = random({4, 9}, 1), h = random({4, 3}, 2), U = random({3, 9}, 3);
    const auto c = random({3}, 4);
    for (std::size_t step = 0; step < 3; ++step) {
        const ops::sentence_ends ends{&real, step};
        const auto next = ops::gru_reset_after(x, h, U, c, ends), free = ops::gru_reset_after(x, h, U, c, no_end);
        for (std::size_t b = 0; b < 4; ++b) {
            for (std::size_t i = 0; i < 3; ++i) CHECK(next(b, i) == (step < real[b] ? free(b, i) : h(b, i)));
        }
        check(support::gradient_of<0b1111>([&](const auto&... all) { return ops::gru_reset_after(all..., ends); }, x, h,
                                           U, c));
    }
}

TEST_CASE("gru_reset_after: a layer over several steps, whose inputs are also used elsewhere")
{
    const auto x = random({4, 2, 9}, 1);
    const auto U = random({3, 9}, 2);
    const auto c = random({3}, 3), h = random({3}, 4);
    const lengths real{4, 2};
    check(support::gradient_of<0b1111>(
        [&](const auto& of_steps, const auto& recurrent, const auto& bias, const auto& start) {
            auto now = ops::repeat(start, std::size_t{2});
            std::vector<decltype(now)> shown;
            for (std::size_t s = 0; s < 4; ++s) {
                const auto in = ops::block(of_steps, s);
                now = ops::gru_reset_after(in, now, recurrent, bias, ops::sentence_ends{&real, s});
                shown.push_back(now);
                now = ops::gru_reset_after(in, now, recurrent, bias, no_end);
            }
            return ops::stack(shown);
        },
        x, U, c, h));
}

TEST_CASE("gru_reset_after: the cell's projection and step, and a new cell")
{
    random_source source{3};
    const auto cell = nn::make_gru_reset_after<double>(source, 4, 3);
    CHECK(shape_of(cell.W) == shape_of_rank<2>{4, 9});
    CHECK(shape_of(cell.U) == shape_of_rank<2>{3, 9});
    CHECK(parameter_count(cell) == 4 * 9 + 9 + 3 * 9 + 3);
    const auto x = random({2, 4}, 1), h = random({2, 3}, 2);
    CHECK(support::distance(cell.step(cell.project(x), cell.begin(h)),
                            scalar_step(ops::linear(x, cell.W, cell.b), h, cell.U, cell.c_h)) < 1e-13);
    const auto drawn = nn::make_gru_reset_after<double>(source, 4, 3, nn::glorot<double>);
    CHECK(shape_of(drawn.U) == shape_of_rank<2>{3, 9});
}
