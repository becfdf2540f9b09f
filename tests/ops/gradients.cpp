// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

using namespace heed;
using support::random;

// Each operation at ordinary sizes, at size 1 and where there is nothing; each choice of taped and plain arguments.

namespace {

/// Runs f on a tape, on tensors of which some axis is 0: nothing to compare, but nothing may break.
template <class F, class... X>
void check_empty(F&& f, const X&... x)
{
    ad::tape<double> on;
    const auto y = f(on.parameter(x)...);
    CHECK(support::same_bits(y, f(x...)));
    on.backward(ops::inner(y, support::uneven(y.shape())));
    const auto plainly_zero = [&](const auto& v) {
        const auto gradient = on.gradient(v);
        for (std::size_t i = 0; i < gradient.size(); ++i) CHECK(gradient.data[i] == 0);
    };
    const std::tuple again{on.parameter(x)...};
    std::apply([&](const auto&... v) { (plainly_zero(v), ...); }, again);
}

}  // namespace

TEST_CASE("elementwise operations of one argument")
{
    const auto check = [](const auto& operation, double least) {
        const auto f = [&](const auto& x) { return operation(x); };
        // Within the domain, and away from 0, where relu has no derivative.
        const auto moved = [&](auto x) {
            for (double& value : x) {
                if (least > 0) value = least + std::abs(value);
                if (std::abs(value) < 1e-3) value = 0.1;
            }
            return x;
        };
        CHECK_GRADIENT(f, moved(random({1}, 1)));
        CHECK_GRADIENT(f, moved(random({2, 19}, 2)));
        CHECK_GRADIENT(f, moved(random({2, 3, 4}, 3)));
        check_empty(f, random({2, 0}, 4));
    };
    check(ops::tanh, 0);
    check(ops::sigmoid, 0);
    check(ops::exp, 0);
    check(ops::log, 0.5);
    check(ops::relu, 0);
    check(ops::gelu, 0);
    check(ops::gelu_erf, 0);
    check(ops::silu, 0);
    check(ops::square, 0);
}

TEST_CASE("tanh and sigmoid far from zero have the gradient 0, not NaN")
{
    array<double, 1> x{-1e4, -800, -40, 40, 800, 1e4};
    ad::tape<double> on;
    const auto v = on.parameter(x);
    on.backward(ops::inner(ops::add(ops::tanh(v), ops::sigmoid(v)), support::uneven(x.shape())));
    for (std::size_t i = 0; i < 6; ++i) CHECK(std::abs(on.gradient(v).data[i]) < 1e-15);
}

TEST_CASE("elementwise operations of two arguments")
{
    const auto check = [](const auto& operation) {
        const auto f = [&](const auto& a, const auto& b) { return operation(a, b); };
        CHECK_GRADIENT(f, random({1}, 1), random({1}, 2));
        CHECK_GRADIENT(f, random({3, 5}, 3), random({3, 5}, 4));
        CHECK_GRADIENT(f, random({2, 3, 9}, 5), random({2, 3, 9}, 6));
        check_empty(f, random({0, 3}, 7), random({0, 3}, 8));
    };
    check(ops::add);
    check(ops::subtract);
    check(ops::multiply);
    check(ops::logaddexp);
    check(ops::discount);
}

TEST_CASE("an operation of one tensor twice adds both ways")
{
    CHECK_GRADIENT([](const auto& x) { return ops::multiply(x, x); }, random({4, 3}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::logaddexp(x, x); }, random({4, 3}, 2));
    CHECK_GRADIENT([](const auto& x) { return ops::concat(x, x); }, random({4, 3}, 3));
    CHECK_GRADIENT([](const auto& x) { return ops::linear(x, x); }, random({3, 3}, 4));
    CHECK_GRADIENT([](const auto& x) { return ops::linear(ops::tanh(x), ops::linear(x, x)); }, random({3, 3}, 5));
}

TEST_CASE("logaddexp and discount with no history")
{
    constexpr double none = -std::numeric_limits<double>::infinity();
    const array<double, 1> e{0.3, -2.0, 5.0}, L{none, 1.0, none};
    ad::tape<double> on;
    const auto scores = on.parameter(e), history = on.parameter(L);

    const auto joined = ops::logaddexp(history, scores);
    CHECK(joined.data()[0] == 0.3);
    CHECK(joined.data()[2] == 5.0);
    const auto modulated = ops::discount(scores, history);
    CHECK(modulated.data()[0] == 0.3);
    CHECK(modulated.data()[1] == -3.0);
    CHECK(modulated.data()[2] == 5.0);

    // ∂ log(e^L + e^e)/∂e = e^(e - y), which is 1 where L = -inf; a history of -inf gets no gradient, nor NaN.
    on.backward(ops::inner(ops::add(joined, modulated), array<double, 1>{2.0, 3.0, 5.0}));
    const double share = 1 / (1 + std::exp(3.0));
    CHECK(on.gradient(scores).data[0] == support::approx(4.0));
    CHECK(on.gradient(scores).data[1] == support::approx(3 * share + 3));
    CHECK(on.gradient(scores).data[2] == support::approx(10.0));
    CHECK(on.gradient(history).data[0] == 0);
    CHECK(on.gradient(history).data[1] == support::approx(3 * (1 - share) - 3));
    CHECK(on.gradient(history).data[2] == 0);

    // Nothing and nothing is nothing, and has no gradient either: not that of -inf less -inf.
    on.clear();
    const array<double, 1> nothing{none};
    const auto a = on.parameter(nothing), b = on.parameter(nothing);
    const auto still = ops::logaddexp(a, b);
    CHECK(still.data()[0] == none);
    on.backward(ops::inner(still, array<double, 1>{1.0}));
    CHECK(on.gradient(a).data[0] == 0);
    CHECK(on.gradient(b).data[0] == 0);
}

TEST_CASE("the second argument meets every position of the first")
{
    const auto check = [](const auto& operation) {
        const auto f = [&](const auto& a, const auto& b) { return operation(a, b); };
        CHECK_GRADIENT(f, random({1, 1, 1}, 1), random({1, 1}, 2));
        CHECK_GRADIENT(f, random({2, 3, 5}, 3), random({2, 5}, 4));
        CHECK_GRADIENT(f, random({3, 2, 17}, 5), random({3, 17}, 6));
        check_empty(f, random({2, 0, 3}, 7), random({2, 3}, 8));
        check_empty(f, random({2, 3, 0}, 7), random({2, 0}, 8));
        check_empty(f, random({0, 3, 2}, 7), random({0, 2}, 8));
    };
    check(ops::add_each);
    check(ops::tanh_of_sum_each);
    check(ops::subtract_each);
    check(ops::multiply_each);
}

TEST_CASE("scale")
{
    CHECK_GRADIENT([](const auto& x) { return ops::scale(x, -0.7); }, random({2, 3}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::scale(x, 0.0); }, random({1}, 2));
}

TEST_CASE("linear")
{
    const auto f = [](const auto& x, const auto& W) { return ops::linear(x, W); };
    const auto with_bias = [](const auto& x, const auto& W, const auto& b) { return ops::linear(x, W, b); };
    CHECK_GRADIENT(f, random({1, 1}, 1), random({1, 1}, 2));
    CHECK_GRADIENT(f, random({3, 4}, 3), random({4, 5}, 4));
    CHECK_GRADIENT(f, random({1, 4}, 3), random({4, 5}, 4));  // one row goes through gemv
    CHECK_GRADIENT(f, random({4}, 3), random({4, 5}, 4));
    CHECK_GRADIENT(f, random({2, 3, 4}, 5), random({4, 2}, 6));
    CHECK_GRADIENT(with_bias, random({3, 4}, 7), random({4, 5}, 8), random({5}, 9));
    CHECK_GRADIENT(with_bias, random({2, 3, 1}, 7), random({1, 2}, 8), random({2}, 9));
    check_empty(f, random({0, 4}, 1), random({4, 5}, 2));
    check_empty(f, random({2, 0}, 1), random({0, 5}, 2));
    check_empty(f, random({2, 4}, 1), random({4, 0}, 2));
    check_empty(with_bias, random({0, 4}, 1), random({4, 5}, 2), random({5}, 3));
    // No column to multiply: the bias alone.
    CHECK(support::same_bits(ops::linear(random({2, 0}, 1), random({0, 1}, 2), array<double, 1>{7.0}),
                             array<double, 2>{{7.0}, {7.0}}));
}

TEST_CASE("a matrix that was computed, not given, gets its gradient as well")
{
    CHECK_GRADIENT([](const auto& x, const auto& W) { return ops::linear(x, ops::tanh(W)); }, random({3, 4}, 1),
                   random({4, 2}, 2));
}

TEST_CASE("matvec")
{
    const auto f = [](const auto& x, const auto& v) { return ops::matvec(x, v); };
    CHECK_GRADIENT(f, random({1, 1, 1}, 1), random({1}, 2));
    CHECK_GRADIENT(f, random({2, 3, 4}, 3), random({4}, 4));
    CHECK_GRADIENT(f, random({1, 2, 67}, 5), random({67}, 6));
    check_empty(f, random({2, 0, 4}, 1), random({4}, 2));
    check_empty(f, random({2, 3, 0}, 1), random({0}, 2));
}

TEST_CASE("dot_each")
{
    const auto f = [](const auto& q, const auto& k) { return ops::dot_each(q, k); };
    CHECK_GRADIENT(f, random({1, 1}, 1), random({1, 1, 1}, 2));
    CHECK_GRADIENT(f, random({2, 4}, 3), random({2, 3, 4}, 4));
    CHECK_GRADIENT(f, random({2, 67}, 5), random({2, 1, 67}, 6));
    check_empty(f, random({2, 4}, 1), random({2, 0, 4}, 2));
    check_empty(f, random({0, 4}, 1), random({0, 3, 4}, 2));
}

TEST_CASE("weighted_sum")
{
    const auto f = [](const auto& w, const auto& h) { return ops::weighted_sum(w, h); };
    CHECK_GRADIENT(f, random({1, 1}, 1), random({1, 1, 1}, 2));
    CHECK_GRADIENT(f, random({2, 3}, 3), random({2, 3, 4}, 4));
    CHECK_GRADIENT(f, random({2, 9}, 5), random({2, 9, 19}, 6));
    check_empty(f, random({2, 0}, 1), random({2, 0, 4}, 2));
}

TEST_CASE("elementwise_sum")
{
    const auto f = [](const auto& w, const auto& h) { return ops::elementwise_sum(w, h); };
    CHECK_GRADIENT(f, random({1, 1, 1}, 1), random({1, 1, 1}, 2));
    CHECK_GRADIENT(f, random({2, 3, 4}, 3), random({2, 3, 4}, 4));
    CHECK_GRADIENT(f, random({2, 9, 19}, 5), random({2, 9, 19}, 6));
    check_empty(f, random({2, 0, 4}, 1), random({2, 0, 4}, 2));
}

TEST_CASE("a weight of 0 selects its value away, even a NaN")
{
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const array<double, 2> w{{0.5, 0.0}};
    const array<double, 3> h{{{1.0, 2.0}, {nan, nan}}};
    CHECK(support::same_bits(ops::weighted_sum(w, h), array<double, 2>{{0.5, 1.0}}));
    const array<double, 3> per_dimension{{{0.5, 1.0}, {0.0, 0.0}}};
    CHECK(support::same_bits(ops::elementwise_sum(per_dimension, h), array<double, 2>{{0.5, 2.0}}));
}

TEST_CASE("softmax")
{
    for (const std::size_t positions : {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{20}}) {
        const lengths real{positions, 0, 1, (positions + 1) / 2};
        const auto f = [&](const auto& e) { return ops::softmax(e, real); };
        CHECK_GRADIENT(f, random({4, positions}, 1, 2));
        CHECK_GRADIENT(f, random({4, positions, 3}, 2, 2));
        CHECK_GRADIENT(f, random({4, positions, 1}, 3, 2));
    }
    // A score of -inf gets no weight and no gradient; nothing but -inf is a row without any position.
    const double none = -std::numeric_limits<double>::infinity();
    const array<double, 2> e{{none, 0.0, 1.0}, {none, none, none}};
    ad::tape<double> on;
    const auto scores = on.parameter(e);
    const auto weights = ops::softmax(scores, lengths{3, 3});
    CHECK(weights.data()[0] == 0);
    CHECK(weights.data()[2] == support::approx(1 / (1 + std::exp(-1.0))));
    for (std::size_t i = 3; i < 6; ++i) CHECK(weights.data()[i] == 0);
    on.backward(ops::inner(weights, support::uneven(e.shape())));
    CHECK(on.gradient(scores).data[0] == 0);
    CHECK(on.gradient(scores).data[1] != 0);
    for (std::size_t i = 3; i < 6; ++i) CHECK(on.gradient(scores).data[i] == 0);
    const auto each = ops::softmax(array<double, 3>{{{none, 1.0}, {none, none}}}, lengths{2});
    CHECK(support::same_bits(each, array<double, 3>{{{0.0, 1.0}, {0.0, 0.0}}}));

    const auto empty = [](const auto& x) { return ops::softmax(x, lengths{0, 0}); };
    check_empty(empty, random({2, 0}, 1));
    check_empty(empty, random({2, 0, 3}, 1));
}

TEST_CASE("softmax and log_softmax over an axis")
{
    const auto check = [](const auto& operation) {
        for (const int axis : {-1, 0}) {
            const auto f = [&](const auto& x) { return operation(x, axis); };
            CHECK_GRADIENT(f, random({1}, 1, 2));
            CHECK_GRADIENT(f, random({9}, 2, 2));
            CHECK_GRADIENT(f, random({3, 5}, 3, 2));
            CHECK_GRADIENT(f, random({2, 2, 3, 5}, 4, 2));
            check_empty(f, random({2, 0}, 5));
            check_empty(f, random({0, 2}, 6));
        }
        CHECK_GRADIENT([&](const auto& x) { return operation(x, 1); }, random({2, 4, 3}, 7, 2));
    };
    check(ops::softmax);
    check(ops::log_softmax);

    // Nothing goes back to -inf, whatever comes.
    const double none = -std::numeric_limits<double>::infinity();
    const array<double, 1> x{none, 0.0, 1.0};
    ad::tape<double> on;
    const auto v = on.parameter(x);
    on.backward(ops::inner(ops::exp(ops::log_softmax(v, 0)), array<double, 1>{2.0, 3.0, 5.0}));
    CHECK(on.gradient(v).data[0] == 0);
    const double first = 1 / (1 + std::exp(1.0));  // the weight of 0
    CHECK(std::abs(on.gradient(v).data[1] - first * (1 - first) * (3 - 5)) < 1e-14);
    CHECK(std::abs(on.gradient(v).data[2] - first * (1 - first) * (5 - 3)) < 1e-14);
}

TEST_CASE("moving numbers")
{
    CHECK_GRADIENT([](const auto& a, const auto& b) { return ops::concat(a, b); }, random({2, 3}, 1),
                   random({2, 1}, 2));
    CHECK_GRADIENT([](const auto& a, const auto& b) { return ops::concat(a, b); }, random({2, 2, 3}, 1),
                   random({2, 2, 17}, 2));
    check_empty([](const auto& a, const auto& b) { return ops::concat(a, b); }, random({2, 0}, 1), random({2, 0}, 2));

    CHECK_GRADIENT([](const auto& x) { return ops::step_of(x, std::size_t{1}); }, random({2, 3, 4}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::block(x, std::size_t{2}); }, random({3, 2, 4}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::block(ops::tanh(x), std::size_t{2}); }, random({3, 2, 4}, 1));
    // Some of a whole is used by itself, some of it through a piece, and a piece of a piece.
    CHECK_GRADIENT(
        [](const auto& x) {
            const auto y = ops::tanh(x);
            const auto piece = ops::block(y, std::size_t{1});
            return ops::add(
                ops::multiply(piece, ops::step_of(y, std::size_t{0})),
                ops::scale(ops::block(ops::block(ops::stack(std::vector{y, y}), std::size_t{1}), std::size_t{0}), 3.0));
        },
        random({2, 2, 4}, 1));

    CHECK_GRADIENT(
        [](const auto& a, const auto& b) {
            return ops::stack(std::vector{ops::multiply(a, b), ops::add(a, b)});
        },
        random({2, 3}, 1), random({2, 3}, 2));
    CHECK_GRADIENT([](const auto& x) { return ops::swap_axes(x); }, random({2, 3, 4}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::sum_last(x); }, random({2, 3, 4}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::sum_last(x); }, random({5}, 1));
    check_empty([](const auto& x) { return ops::sum_last(x); }, random({2, 0}, 1));
    check_empty([](const auto& x) { return ops::swap_axes(x); }, random({2, 0, 3}, 1));
    CHECK_GRADIENT(
        [](const auto& x) {
            return ops::inner(x, support::uneven(shape_of_rank<2>{2, 3}));
        },
        random({2, 3}, 1));
    CHECK_GRADIENT([](const auto& x, const auto& c) { return ops::inner(x, c); }, random({2, 3}, 1), random({2, 3}, 2));
}

TEST_CASE("clear_padding: nothing comes back from behind the length")
{
    const lengths real{2, 0, 3};
    const auto f = [&](const auto& x) { return ops::clear_padding(x, real); };
    CHECK_GRADIENT(f, random({3, 3, 2}, 1));
    auto x = random({3, 3, 2}, 1);
    x(0, 2, 1) = std::numeric_limits<double>::quiet_NaN();
    x(1, 0, 0) = std::numeric_limits<double>::infinity();
    ad::tape<double> on;
    const auto v = on.parameter(x);
    on.backward(ops::inner(ops::square(f(v)), support::uneven(x.shape())));
    const auto gradient = on.gradient(v);
    CHECK(support::all_finite(gradient));
    CHECK(gradient[0][2].data[1] == 0);
    CHECK(gradient[1][0].data[0] == 0);
    CHECK(gradient[0][0].data[0] != 0);
}

TEST_CASE("add_outer")
{
    const auto outer = [](const auto& k, const auto& x, const auto& v) { return ops::add_outer(k, x, v); };
    CHECK_GRADIENT(outer, random({2, 3, 5}, 1), random({2, 3}, 2), random({5}, 3));
    CHECK_GRADIENT(outer, random({1, 1, 1}, 1), random({1, 1}, 2), random({1}, 3));
    CHECK(support::distance(outer(random({1, 2, 2}, 1), array<double, 2>{{2.0, 3.0}}, array<double, 1>{10.0, 100.0}),
                            array<double, 3>(random({1, 2, 2}, 1) + array<double, 3>{{{20.0, 200.0}, {30.0, 300.0}}})) <
          1e-15);
    const auto message = [](auto&& act) { return support::message_of<shape_error>(act); };
    CHECK(support::contains(message([&] {
                                outer(random({2, 3, 5}, 1), random({2, 4}, 2), random({5}, 3));
                            }),
                            "add_outer: x is [2,4] but must be [2,3]"));
    CHECK(support::contains(message([&] {
                                outer(random({2, 3, 5}, 1), random({2, 3}, 2), random({4}, 3));
                            }),
                            "v is [4] but must be [5]"));
}

TEST_CASE("clear_ended: nothing comes back from behind the end")
{
    const lengths real{2, 0, 3};
    const auto f = [&](const auto& x) { return ops::clear_ended(x, real); };
    CHECK_GRADIENT(f, random({3, 3, 2}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::clear_ended(x, lengths{1}); }, random({1, 1, 1}, 2));
    auto x = random({3, 3, 2}, 1);
    x(2, 0, 1) = std::numeric_limits<double>::quiet_NaN();
    x(0, 1, 0) = std::numeric_limits<double>::infinity();
    ad::tape<double> on;
    const auto v = on.parameter(x);
    on.backward(ops::inner(ops::square(f(v)), support::uneven(x.shape())));
    CHECK(support::all_finite(on.gradient(v)));
    CHECK(on.gradient(v)[2][0].data[1] == 0);
    CHECK(on.gradient(v)[0][1].data[0] == 0);
    CHECK(on.gradient(v)[1][0].data[0] != 0);
    CHECK(support::message_of<shape_error>([&] {
              f(random({2, 3, 2}, 1));
          }) == "clear_ended: the length of row 2 is 3 but there are only 2 positions");
}
