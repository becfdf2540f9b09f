// SPDX-License-Identifier: BSD-3-Clause
#include <heed/nn/gru_reset_after.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <cmath>
#include <vector>

using namespace heed;
using support::random;

namespace {

const ops::sentence_ends no_end{};

/// One step written number by number, from the equations at the head of kernels/recurrent.hpp.
array<double, 2> scalar_step(const array<double, 2>& x, const array<double, 2>& h, const array<double, 2>& U,
                             const array<double, 1>& c)
{
    const std::size_t B = h.shape()[0], H = h.shape()[1];
    array<double, 2> next(h.shape());
    const auto sigmoid = [](double a) { return 1 / (1 + std::exp(-a)); };
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

TEST_CASE("a step is its equations, and has their gradient")
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

TEST_CASE("it is not the unit whose reset gate acts before the product")
{
    const auto x = random({2, 9}, 1), h = random({2, 3}, 2), U = random({3, 9}, 3);
    const auto before = ops::gru(x, h, ops::columns_between(U, 0, 6), ops::columns_between(U, 6, 9), no_end);
    CHECK(support::distance(ops::gru_reset_after(x, h, U, nn::zeros<double>(3), no_end), before) > 0.01);
}

TEST_CASE("states with further axes, and shapes that do not fit")
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

TEST_CASE("a sentence that is over keeps its state, and its gradient passes")
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

TEST_CASE("a layer over several steps, with inputs that something else uses, too")
{
    const auto x = random({4, 2, 9}, 1);
    const auto U = random({3, 9}, 2);
    const auto c = random({3}, 3), h = random({3}, 4);
    const lengths real{4, 2};
    check(support::gradient_of<0b1111>(
        [&](const auto& inputs, const auto& recurrent, const auto& bias, const auto& start) {
            auto now = ops::repeat(start, std::size_t{2});
            std::vector<decltype(now)> shown;
            for (std::size_t s = 0; s < 4; ++s) {
                const auto in = ops::block(inputs, s);
                now = ops::gru_reset_after(in, now, recurrent, bias, ops::sentence_ends{&real, s});
                shown.push_back(now);
                now = ops::gru_reset_after(in, now, recurrent, bias, no_end);
            }
            return ops::stack(shown);
        },
        x, U, c, h));
}

TEST_CASE("the cell: its share of the input, its step, and a new one")
{
    random_source source{3};
    const auto cell = nn::make_gru_reset_after<double>(source, 4, 3);
    CHECK(shape_of(cell.W) == shape_of_rank<2>{4, 9});
    CHECK(shape_of(cell.U) == shape_of_rank<2>{3, 9});
    CHECK(parameter_count(cell) == 4 * 9 + 9 + 3 * 9 + 3);
    const auto x = random({2, 4}, 1), h = random({2, 3}, 2);
    CHECK(support::distance(cell.step(cell.project(x), cell.begin(h)),
                            scalar_step(ops::linear(x, cell.W, cell.b), h, cell.U, cell.c_h)) < 1e-13);
    const auto drawn = nn::new_gru_reset_after{}.make<double>(source, 4, 3, nn::glorot<double>);
    CHECK(shape_of(drawn.U) == shape_of_rank<2>{3, 9});
}
