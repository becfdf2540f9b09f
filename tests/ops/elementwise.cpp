// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/elementwise.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <cmath>
#include <limits>
#include <tuple>
#include <type_traits>

using namespace heed;
using support::random;

// Values compared with the scalar functions of the C library; gradients at ordinary sizes, at size 1 and of empty
// tensors.

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Checks that f(tensor) equals one(number) everywhere, in float and in double, plain, through a view, and taped.
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

TEST_CASE("elementwise operations equal the C library's functions")
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
    check_binary(ops::subtract_history, [](double a, double b) { return a - b; });
}

TEST_CASE("values: the second argument is broadcast over positions")
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
    check(ops::add_per_position, [](double a, double b) { return a + b; });
    check(ops::subtract_per_position, [](double a, double b) { return a - b; });
    check(ops::multiply_per_position, [](double a, double b) { return a * b; });
    const auto in_two = ops::tanh(ops::add_per_position(h, s));
    CHECK(support::same_bits(ops::tanh_of_sum_per_position(h, s), in_two));
    ad::tape<double> on;
    CHECK(support::same_bits(ops::tanh_of_sum_per_position(h, on.parameter(s)), in_two));
}

TEST_CASE("scores of 1e4 and NaN")
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

TEST_CASE("threads share large tensors, and the result is the same")
{
    const auto a = random<float>({300, 1000}, 1), b = random<float>({300, 1000}, 2);
    const auto h = random<float>({8, 100, 300}, 3);
    const auto s = random<float>({8, 300}, 4);
    const auto run = [&] {
        return std::tuple{ops::tanh(a), ops::logaddexp(a, b), ops::add_per_position(h, s),
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
    const auto v = on.parameter(x);
    on.backward(ops::dot(f(v), filled<double, 1>({7}, 1.0)));
    const double must[] = {0, 0, 0, 0.5, 1, 1, 1};
    for (std::size_t i = 0; i < 7; ++i) CHECK(on.gradient(v).data[i] == must[i]);
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
        support::check_empty(f, random({2, 0}, 4));
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

TEST_CASE("tanh and sigmoid far from zero have a gradient of 0, not NaN")
{
    array<double, 1> x{-1e4, -800, -40, 40, 800, 1e4};
    ad::tape<double> on;
    const auto v = on.parameter(x);
    on.backward(ops::dot(ops::add(ops::tanh(v), ops::sigmoid(v)), support::uneven(x.shape())));
    for (std::size_t i = 0; i < 6; ++i) CHECK(std::abs(on.gradient(v).data[i]) < 1e-15);
}

TEST_CASE("elementwise operations of two arguments")
{
    const auto check = [](const auto& operation) {
        const auto f = [&](const auto& a, const auto& b) { return operation(a, b); };
        CHECK_GRADIENT(f, random({1}, 1), random({1}, 2));
        CHECK_GRADIENT(f, random({3, 5}, 3), random({3, 5}, 4));
        CHECK_GRADIENT(f, random({2, 3, 9}, 5), random({2, 3, 9}, 6));
        support::check_empty(f, random({0, 3}, 7), random({0, 3}, 8));
    };
    check(ops::add);
    check(ops::subtract);
    check(ops::multiply);
    check(ops::logaddexp);
    check(ops::subtract_history);
}

TEST_CASE("an operation with the same tensor twice adds both gradients")
{
    CHECK_GRADIENT([](const auto& x) { return ops::multiply(x, x); }, random({4, 3}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::logaddexp(x, x); }, random({4, 3}, 2));
    CHECK_GRADIENT([](const auto& x) { return ops::concat(x, x); }, random({4, 3}, 3));
    CHECK_GRADIENT([](const auto& x) { return ops::linear(x, x); }, random({3, 3}, 4));
    CHECK_GRADIENT([](const auto& x) { return ops::linear(ops::tanh(x), ops::linear(x, x)); }, random({3, 3}, 5));
}

TEST_CASE("logaddexp and discount without history")
{
    constexpr double none = -std::numeric_limits<double>::infinity();
    const array<double, 1> e{0.3, -2.0, 5.0}, L{none, 1.0, none};
    ad::tape<double> on;
    const auto scores = on.parameter(e), history = on.parameter(L);

    const auto joined = ops::logaddexp(history, scores);
    CHECK(joined.data()[0] == 0.3);
    CHECK(joined.data()[2] == 5.0);
    const auto modulated = ops::subtract_history(scores, history);
    CHECK(modulated.data()[0] == 0.3);
    CHECK(modulated.data()[1] == -3.0);
    CHECK(modulated.data()[2] == 5.0);

    // ∂ log(e^L + e^e)/∂e = e^(e - y), which is 1 where L = -inf; a history of -inf gets no gradient, nor NaN.
    on.backward(ops::dot(ops::add(joined, modulated), array<double, 1>{2.0, 3.0, 5.0}));
    const double share = 1 / (1 + std::exp(3.0));
    CHECK(on.gradient(scores).data[0] == support::approx(4.0));
    CHECK(on.gradient(scores).data[1] == support::approx(3 * share + 3));
    CHECK(on.gradient(scores).data[2] == support::approx(10.0));
    CHECK(on.gradient(history).data[0] == 0);
    CHECK(on.gradient(history).data[1] == support::approx(3 * (1 - share) - 3));
    CHECK(on.gradient(history).data[2] == 0);

    // -inf and -inf give -inf, with a gradient of 0, not that of -inf minus -inf.
    on.clear();
    const array<double, 1> nothing{none};
    const auto a = on.parameter(nothing), b = on.parameter(nothing);
    const auto still = ops::logaddexp(a, b);
    CHECK(still.data()[0] == none);
    on.backward(ops::dot(still, array<double, 1>{1.0}));
    CHECK(on.gradient(a).data[0] == 0);
    CHECK(on.gradient(b).data[0] == 0);
}

TEST_CASE("the second argument is broadcast over positions")
{
    const auto check = [](const auto& operation) {
        const auto f = [&](const auto& a, const auto& b) { return operation(a, b); };
        CHECK_GRADIENT(f, random({1, 1, 1}, 1), random({1, 1}, 2));
        CHECK_GRADIENT(f, random({2, 3, 5}, 3), random({2, 5}, 4));
        CHECK_GRADIENT(f, random({3, 2, 17}, 5), random({3, 17}, 6));
        CHECK_GRADIENT(f, random({2, 140, 1}, 5), random({2, 1}, 6));  // more than one block of a sum
        support::check_empty(f, random({2, 0, 3}, 7), random({2, 3}, 8));
        support::check_empty(f, random({2, 3, 0}, 7), random({2, 0}, 8));
        support::check_empty(f, random({0, 3, 2}, 7), random({0, 2}, 8));
    };
    check(ops::add_per_position);
    check(ops::tanh_of_sum_per_position);
    check(ops::subtract_per_position);
    check(ops::multiply_per_position);
}

TEST_CASE("scale")
{
    CHECK_GRADIENT([](const auto& x) { return ops::scale(x, -0.7); }, random({2, 3}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::scale(x, 0.0); }, random({1}, 2));
}

TEST_CASE("sums of scaled tensors")
{
    const auto a = random({2, 3}, 1), b = random({2, 3}, 2);
    const auto sum = [](const auto& u, const auto& v) { return ops::scaled_sum(u, v, 0.25, -3.0); };
    for (std::size_t i = 0; i < a.size(); ++i) {
        CHECK(sum(a, b).data()[i] == doctest::Approx(0.25 * a.data()[i] - 3 * b.data()[i]).epsilon(1e-14));
    }
    const auto found = support::gradient_of<0b11>(sum, a, b);
    CHECK_MESSAGE(bool(found), found.text());
}
