// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <support/approx.hpp>
#include <support/tensors.hpp>

#include <cmath>
#include <limits>

using namespace heed;
using support::random;

// What the operations compute, against one number at a time with the C library, with a tape and without.

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// f(tensor) is one(number) everywhere, in float and in double, plain, through a view, and taped.
template <class F, class One>
void check_unary(F&& f, One&& one, double least = -infinity)
{
    const auto check = [&]<class T>(T tolerance) {
        auto x = random<T>({3, 37}, 1, 3);
        if (least > -infinity) {
            for (T& v : x) v = static_cast<T>(least) + std::abs(v);
        }
        array<T, 2> must(x.shape());
        for (std::size_t i = 0; i < x.size(); ++i)
            must.data()[i] = static_cast<T>(one(static_cast<double>(x.data()[i])));
        CHECK(support::distance(f(x), must) <= static_cast<double>(tolerance));
        CHECK(support::same_bits(f(view_of(x)), f(x)));
        ad::tape<T> on;
        CHECK(support::same_bits(f(on.parameter(x)), f(x)));
    };
    check(1e-6f);
    check(2e-15);
}

template <class F, class One>
void check_binary(F&& f, One&& one)
{
    const auto check = [&]<class T>(T tolerance) {
        const auto a = random<T>({3, 37}, 1), b = random<T>({3, 37}, 2);
        array<T, 2> must(a.shape());
        for (std::size_t i = 0; i < a.size(); ++i) {
            must.data()[i] = static_cast<T>(one(static_cast<double>(a.data()[i]), static_cast<double>(b.data()[i])));
        }
        CHECK(support::distance(f(a, b), must) <= static_cast<double>(tolerance));
        ad::tape<T> on;
        CHECK(support::same_bits(f(on.parameter(a), b), f(a, b)));
        CHECK(support::same_bits(f(a, on.parameter(b)), f(a, b)));
    };
    check(1e-6f);
    check(2e-15);
}

}  // namespace

TEST_CASE("elementwise operations are the C library's functions")
{
    check_unary(ops::tanh, [](double x) { return std::tanh(x); });
    check_unary(ops::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); });
    check_unary(ops::exp, [](double x) { return std::exp(x); });
    check_unary(
        ops::log, [](double x) { return std::log(x); }, 0.001);
    check_unary(ops::relu, [](double x) { return x > 0 ? x : 0; });
    check_unary(ops::gelu, [](double x) {
        const double u = std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
        return x * (1 + std::tanh(u)) / 2;
    });
    check_unary(ops::gelu_erf, [](double x) { return x * (1 + std::erf(x / std::sqrt(2.0))) / 2; });
    check_unary(ops::silu, [](double x) { return x / (1 + std::exp(-x)); });
    check_unary(ops::square, [](double x) { return x * x; });
    check_unary([](const auto& x) { return ops::scale(x, -2.5); }, [](double x) { return -2.5 * x; });
    check_binary(ops::add, [](double a, double b) { return a + b; });
    check_binary(ops::subtract, [](double a, double b) { return a - b; });
    check_binary(ops::multiply, [](double a, double b) { return a * b; });
    check_binary(ops::logaddexp, [](double a, double b) { return std::log(std::exp(a) + std::exp(b)); });
    check_binary(ops::discount, [](double a, double b) { return a - b; });
}

TEST_CASE("the second argument meets every position")
{
    const auto h = random({2, 5, 19}, 1);
    const auto s = random({2, 19}, 2);
    const auto check = [&](const auto& operation, auto&& one) {
        array<double, 3> must(h.shape());
        for (std::size_t b = 0; b < 2; ++b) {
            for (std::size_t t = 0; t < 5; ++t) {
                for (std::size_t a = 0; a < 19; ++a) must(b, t, a) = one(h(b, t, a), s(b, a));
            }
        }
        CHECK(support::same_bits(operation(h, s), must));
        ad::tape<double> on;
        CHECK(support::same_bits(operation(h, on.parameter(s)), must));
    };
    check(ops::add_each, [](double a, double b) { return a + b; });
    check(ops::subtract_each, [](double a, double b) { return a - b; });
    check(ops::multiply_each, [](double a, double b) { return a * b; });
    const auto in_two = ops::tanh(ops::add_each(h, s));
    CHECK(support::same_bits(ops::tanh_of_sum_each(h, s), in_two));
    ad::tape<double> on;
    CHECK(support::same_bits(ops::tanh_of_sum_each(h, on.parameter(s)), in_two));
}

TEST_CASE("scores of 1e4 and what is no number")
{
    const array<double, 1> x{-infinity, -1e4, 1e4, infinity, std::nan("")};
    const auto t = ops::tanh(x), g = ops::sigmoid(x), e = ops::exp(x);
    CHECK(t(0) == -1);
    CHECK(t(1) == -1);
    CHECK(t(2) == 1);
    CHECK(t(3) == 1);
    CHECK(std::isnan(t(4)));
    CHECK(g(1) == 0);
    CHECK(g(2) == 1);
    CHECK(std::isnan(g(4)));
    CHECK(e(0) == 0);
    CHECK(e(3) == infinity);
    CHECK(std::isnan(e(4)));

    const array<float, 1> a{1e4f, -1e4f, 1e4f, 0.0f}, b{-1e4f, -1e4f, 1e4f, -1e4f};
    const auto sum = ops::logaddexp(a, b);
    CHECK(sum(0) == 1e4f);
    CHECK(sum(1) == doctest::Approx(-1e4 + std::log(2.0)).epsilon(1e-7));
    CHECK(sum(2) == doctest::Approx(1e4 + std::log(2.0)).epsilon(1e-7));
    CHECK(sum(3) == 0.0f);

    const double nan = std::numeric_limits<double>::quiet_NaN(), none = -std::numeric_limits<double>::infinity();
    const array<double, 1> c{nan, none, nan, none, 1}, d{none, nan, 1, none, none};
    const auto joined = ops::logaddexp(c, d);
    for (const std::size_t i : {0u, 1u, 2u}) CHECK(std::isnan(joined(i)));
    CHECK(joined(3) == none);
    CHECK(joined(4) == 1);
}

TEST_CASE("products are the sums that they say")
{
    const auto x = random({2, 3, 5}, 1), h = random({2, 3, 7}, 2), weights = random({2, 3, 7}, 3);
    const auto W = random({5, 7}, 4), q = random({2, 7}, 5), alpha = random({2, 3}, 6);
    const auto b = random({7}, 7), v = random({7}, 8);
    array<double, 3> linear({2, 3, 7}, 0.0), with_bias({2, 3, 7}, 0.0);
    array<double, 2> matvec({2, 3}, 0.0), dot_each({2, 3}, 0.0), weighted({2, 7}, 0.0), elementwise({2, 7}, 0.0);
    for (std::size_t i = 0; i < 2; ++i) {
        for (std::size_t t = 0; t < 3; ++t) {
            for (std::size_t n = 0; n < 7; ++n) {
                for (std::size_t k = 0; k < 5; ++k) linear(i, t, n) += x(i, t, k) * W(k, n);
                with_bias(i, t, n) = linear(i, t, n) + b(n);
                matvec(i, t) += h(i, t, n) * v(n);
                dot_each(i, t) += q(i, n) * h(i, t, n);
                weighted(i, n) += alpha(i, t) * h(i, t, n);
                elementwise(i, n) += weights(i, t, n) * h(i, t, n);
            }
        }
    }
    CHECK(support::distance(ops::linear(x, W), linear) < 1e-14);
    CHECK(support::distance(ops::linear(x, W, b), with_bias) < 1e-14);
    CHECK(support::distance(ops::matvec(h, v), matvec) < 1e-14);
    CHECK(support::distance(ops::dot_each(q, h), dot_each) < 1e-14);
    CHECK(support::distance(ops::weighted_sum(alpha, h), weighted) < 1e-14);
    CHECK(support::distance(ops::elementwise_sum(weights, h), elementwise) < 1e-14);
}

TEST_CASE("softmax: positive weights that sum to 1 over the real positions")
{
    const auto e = random({3, 5}, 1, 4);
    const lengths real{5, 2, 0};
    const auto weights = ops::softmax(e, real);
    for (std::size_t b = 0; b < 3; ++b) {
        double sum = 0;
        for (std::size_t t = 0; t < real[b]; ++t) sum += std::exp(e(b, t));
        for (std::size_t t = 0; t < 5; ++t) {
            CHECK(weights(b, t) == doctest::Approx(t < real[b] ? std::exp(e(b, t)) / sum : 0.0).epsilon(1e-13));
        }
    }
    for (std::size_t t = 2; t < 5; ++t) CHECK(weights(1, t) == 0);

    // A shift of all scores changes nothing, however large: in float, with neighbours a half apart, bit for bit.
    array<float, 2> low{{0.0f, 0.5f, -2.0f, 3.5f}}, high = low, negative = low;
    for (float& s : high) s += 1e4f;
    for (float& s : negative) s -= 1e4f;
    CHECK(support::same_bits(ops::softmax(high, lengths{4}), ops::softmax(low, lengths{4})));
    CHECK(support::same_bits(ops::softmax(negative, lengths{4}), ops::softmax(low, lengths{4})));
    CHECK(support::same_bits(ops::softmax(array<float, 2>{{1e4f, -1e4f}}, lengths{2}), array<float, 2>{{1.0f, 0.0f}}));

    // Per dimension: each column is a softmax of its own.
    const auto columns = random({2, 6, 3}, 2, 4);
    const auto each = ops::softmax(columns, lengths{6, 4});
    for (std::size_t d = 0; d < 3; ++d) {
        array<double, 2> column({2, 6});
        for (std::size_t b = 0; b < 2; ++b) {
            for (std::size_t t = 0; t < 6; ++t) column(b, t) = columns(b, t, d);
        }
        const auto must = ops::softmax(column, lengths{6, 4});
        for (std::size_t b = 0; b < 2; ++b) {
            for (std::size_t t = 0; t < 6; ++t) CHECK(each(b, t, d) == doctest::Approx(must(b, t)).epsilon(1e-13));
        }
    }

    // A score that is no number is no padding: it must be seen.
    array<double, 2> broken{{0.0, std::nan("")}};
    CHECK(std::isnan(ops::softmax(broken, lengths{2})(0, 0)));
    CHECK(ops::softmax(broken, lengths{1})(0, 0) == 1);
}

namespace {

/// softmax and log_softmax over an axis against loops over all elements.
template <std::size_t R>
void check_axes(const array<double, R>& x)
{
    for (std::size_t axis = 0; axis < R; ++axis) {
        std::size_t inner = 1;
        for (std::size_t i = axis + 1; i < R; ++i) inner *= x.shape()[i];
        const std::size_t n = x.shape()[axis];
        const auto weights = ops::softmax(x, static_cast<int>(axis)),
                   logs = ops::log_softmax(x, static_cast<int>(axis));
        REQUIRE(weights.shape() == x.shape());
        REQUIRE(logs.shape() == x.shape());
        double most = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            double sum = 0;
            for (std::size_t j = 0; j < n; ++j) sum += std::exp(x.data()[i - i / inner % n * inner + j * inner]);
            most = std::max(most, std::abs(weights.data()[i] - std::exp(x.data()[i]) / sum));
            most = std::max(most, std::abs(logs.data()[i] - (x.data()[i] - std::log(sum))));
        }
        CHECK(most < 1e-13);
        const int from_the_end = static_cast<int>(axis) - static_cast<int>(R);
        CHECK(support::same_bits(ops::softmax(x, from_the_end), weights));
        CHECK(support::same_bits(ops::log_softmax(x, from_the_end), logs));
    }
}

}  // namespace

TEST_CASE("softmax and log_softmax over an axis, of any rank")
{
    check_axes(random({23}, 1, 3));
    check_axes(random({3, 17}, 2, 3));
    check_axes(random({2, 5, 19}, 3, 3));
    check_axes(random({2, 3, 4, 5}, 4, 3));
    check_axes(random({3, 1}, 5, 3));

    // The last axis of [B,T] is softmax of all positions.
    const auto e = random({3, 5}, 6, 4);
    CHECK(support::same_bits(ops::softmax(e, -1), ops::softmax(e, lengths::full(3, 5))));
    const auto f = random<float>({2, 33}, 7);
    CHECK(support::distance(ops::exp(ops::log_softmax(f, -1)), ops::softmax(f, -1)) < 1e-6);

    // Far apart: the logarithm of what underflows. Hidden: -inf. Nothing at all, and what is no number.
    const array<double, 2> x{{1e4, -1e4, -infinity}, {-infinity, -infinity, -infinity}, {std::nan(""), 0, -infinity}};
    const auto logs = ops::log_softmax(x, 1);
    const array<double, 2> must{{0, -2e4, -infinity}, {-infinity, -infinity, -infinity}};
    for (std::size_t i = 0; i < 6; ++i) CHECK(logs.data()[i] == must.data()[i]);
    CHECK(std::isnan(logs(2, 0)));
    CHECK(std::isnan(logs(2, 1)));
    CHECK(logs(2, 2) == -infinity);
    for (std::size_t i = 3; i < 6; ++i) CHECK(ops::softmax(x, 1).data()[i] == 0);

    CHECK_THROWS_WITH_AS(ops::softmax(x, 2),
                         "softmax: axis 2 of a tensor [3,3]; it has axes 0 to 1, or -1 for the last", shape_error);
    CHECK_THROWS_WITH_AS(ops::log_softmax(x, -3),
                         "log_softmax: axis -3 of a tensor [3,3]; it has axes 0 to 1, or -1 for the last", shape_error);
}

TEST_CASE("a sum of many small numbers in float")
{
    // exp(-3.3) many times: added up one after the other in float, the sum is off by a thousandth.
    constexpr std::size_t n = 1 << 16;
    auto scores = filled<float, 2>({1, n}, -3.3f);
    scores(0, 17) = 0.0f;
    const auto weights = ops::softmax(scores, lengths{n});
    double sum = 0;
    for (const float w : weights) sum += static_cast<double>(w);
    CHECK(std::abs(sum - 1) < 1e-5);
}

TEST_CASE("moving numbers")
{
    const auto x = random({3, 2, 4}, 1);
    CHECK(ops::step_of(x, std::size_t{1})(2, 3) == x(2, 1, 3));
    CHECK(ops::block(x, std::size_t{2})(1, 3) == x(2, 1, 3));
    CHECK(ops::swap_axes(x)(1, 2, 3) == x(2, 1, 3));
    CHECK(support::same_bits(ops::swap_axes(ops::swap_axes(x)), x));
    const auto joined = ops::concat(x, random({3, 2, 1}, 2));
    CHECK(joined.shape() == shape_of_rank<3>{3, 2, 5});
    CHECK(joined(2, 1, 3) == x(2, 1, 3));
    CHECK(joined(2, 1, 4) == random({3, 2, 1}, 2)(2, 1, 0));
    CHECK(support::same_bits(ops::stack(std::vector{ops::block(x, std::size_t{0}), ops::block(x, std::size_t{1}),
                                                    ops::block(x, std::size_t{2})}),
                             x));
    CHECK(ops::sum_last(x)(2, 1) == support::approx(x(2, 1, 0) + x(2, 1, 1) + x(2, 1, 2) + x(2, 1, 3)));
    double sum = 0;
    const auto c = support::uneven(x.shape());
    for (std::size_t i = 0; i < x.size(); ++i) sum += x.data()[i] * c.data()[i];
    CHECK(ops::inner(x, c)() == support::approx(sum));
    const auto cleared = ops::clear_padding(x, lengths{2, 0, 1});
    CHECK(cleared(0, 1, 0) == x(0, 1, 0));
    CHECK(cleared(1, 0, 0) == 0);
    CHECK(cleared(2, 1, 0) == 0);
}

TEST_CASE("large tensors are shared out over threads, and the result is the same")
{
    const auto a = random<float>({300, 1000}, 1), b = random<float>({300, 1000}, 2);
    const auto h = random<float>({8, 100, 300}, 3);
    const auto s = random<float>({8, 300}, 4);
    const auto run = [&] {
        return std::tuple{ops::tanh(a), ops::logaddexp(a, b), ops::add_each(h, s),
                          ops::softmax(a, lengths::full(300, 1000)), ops::softmax(h, lengths::full(8, 100))};
    };
    const auto one = run();
    set_threads(2);
    const auto two = run();
    set_threads(1);
    CHECK(support::same_bits(std::get<0>(one), std::get<0>(two)));
    CHECK(support::same_bits(std::get<1>(one), std::get<1>(two)));
    CHECK(support::same_bits(std::get<2>(one), std::get<2>(two)));
    CHECK(support::same_bits(std::get<3>(one), std::get<3>(two)));
    CHECK(support::same_bits(std::get<4>(one), std::get<4>(two)));
}

TEST_CASE_TEMPLATE("gelu and silu far from zero are 0 or x, and their gradients are finite", F, decltype(ops::gelu),
                   decltype(ops::gelu_erf), decltype(ops::silu))
{
    constexpr std::remove_const_t<F> f{};
    const array<double, 1> x{-infinity, -1e200, -1e4, 0, 1e4, 1e200, infinity};
    const auto y = f(x);
    for (std::size_t i = 0; i < 4; ++i) CHECK(y(i) == 0);
    for (std::size_t i = 4; i < 7; ++i) CHECK(y(i) == x(i));
    ad::tape<double> on;
    const array<double, 1> finite{-1e200, -1e4, 0, 1e4, 1e200};
    const auto v = on.parameter(finite);
    on.backward(ops::inner(f(v), filled<double, 1>({5}, 1.0)));
    const double must[] = {0, 0, 0.5, 1, 1};
    for (std::size_t i = 0; i < 5; ++i) CHECK(on.gradient(v).data[i] == must[i]);
    CHECK(std::isnan(f(array<double, 1>{std::nan("")})(0)));
}

TEST_CASE("gelu by erf and silu at a few numbers, from tables")
{
    const array<double, 1> x{-2, -1, 1, 2};
    const double of_gelu[] = {-0.045500263896358, -0.158655253931457, 0.841344746068543, 1.954499736103642};
    const double of_silu[] = {-0.238405844044235, -0.268941421369995, 0.731058578630005, 1.761594155955765};
    const auto gelu = ops::gelu_erf(x), silu = ops::silu(x);
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK(std::abs(gelu(i) - of_gelu[i]) < 1e-14);
        CHECK(std::abs(silu(i) - of_silu[i]) < 1e-14);
    }
}
