// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/train/adam.hpp>
#include <heed/train/gradient_norm.hpp>
#include <support/approx.hpp>
#include <support/one_table.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::random;

namespace {

/// Parameters with every kind of gradient: a table that is looked up, one that is looked up and multiplied, a vector
/// that is only added, and a matrix that the loss does not depend on.
template <class Matrix, class Vector>
struct model {
    Matrix E, tied;
    Vector b;
    Matrix unused;

    auto loss(const word_ids& words, double scale = 1) const
    {
        const auto x = ops::linear(ops::add(ops::lookup(E, words), ops::lookup(tied, words)), tied, b);
        return ops::scale(ops::dot(x, support::uneven<element_of<Matrix>>(shape_of(x))), scale);
    }
    static auto parameters(auto& self, auto&& visit)
    {
        return std::apply(
            [](auto... x) { return of(std::move(x)...); },
            std::tuple{visit("E", self.E), visit("tied", self.tied), visit("b", self.b), visit("unused", self.unused)});
    }
    template <class M, class V>
    static model<M, V> of(M E, M tied, V b, M unused)
    {
        return {std::move(E), std::move(tied), std::move(b), std::move(unused)};
    }
};

template <class T>
auto some_model()
{
    return model<array<T, 2>, array<T, 1>>{random<T>({6, 4}, 1), random<T>({4, 4}, 2), random<T>({4}, 3),
                                           random<T>({2, 3}, 4)};
}

/// Words 0 and 3 twice each, and three rows of E unused.
word_ids some_words()
{
    word_ids words(2, 3);
    words.ids = {3, 0, 3, 1, 0, 2};
    return words;
}

/// All numbers of all gradients, to compute the norm without heed.
std::vector<double> gradient_of(const auto& lifted, auto& on)
{
    std::vector<double> all;
    for_each_parameter(lifted, [&](const std::string&, const auto& x) {
        const auto g = on.gradient(x);
        for (std::size_t i = 0; i < g.size(); ++i) all.push_back(static_cast<double>(g.data[i]));
    });
    return all;
}
double norm_of(const std::vector<double>& all)
{
    double squares = 0;
    for (const double g : all) squares += g * g;
    return std::sqrt(squares);
}

/// f(lifted model, tape) after backward.
template <class T>
auto after_backward(auto&& f, double scale = 1)
{
    const auto plain = some_model<T>();
    ad::tape<T> on;
    const auto lifted = ad::lift(on, plain);
    on.backward(lifted.loss(some_words(), scale));
    return f(lifted, on);
}

const auto whole = [](const auto& lifted, auto& on) { return gradient_of(lifted, on); };

}  // namespace

TEST_CASE_TEMPLATE("the norm covers each parameter once, including rows of a table", T, float, double)
{
    const std::vector<double> g = after_backward<T>(whole);
    REQUIRE(norm_of(g) > 1);
    const double norm = after_backward<T>([](const auto& lifted, auto& on) {
        REQUIRE(ad::gradient_rows(lifted.E).ids.size() == 4);     // sparse
        REQUIRE(ad::gradient_rows(lifted.tied).rows == nullptr);  // dense
        const double before = train::gradient_norm(lifted, on);
        on.gradient(lifted.E);  // reading it as a whole makes it dense
        CHECK(train::gradient_norm(lifted, on) == doctest::Approx(before).epsilon(1e-14));
        return before;
    });
    CHECK(norm == doctest::Approx(norm_of(g)).epsilon(1e-12));
}

TEST_CASE_TEMPLATE("clipping scales every gradient to the requested norm", T, float, double)
{
    const std::vector<double> g = after_backward<T>(whole);
    const double greatest = norm_of(g) / 3;
    for (const bool dense : {false, true}) {
        after_backward<T>([&](const auto& lifted, auto& on) {
            if (dense) on.gradient(lifted.E);
            CHECK(train::clip_gradient(lifted, on, greatest) == doctest::Approx(norm_of(g)).epsilon(1e-12));
            CHECK(train::gradient_norm(lifted, on) == support::approx(greatest, sizeof(T) == 4 ? 1e-6 : 1e-12));
            CHECK((ad::gradient_rows(lifted.E).rows == nullptr) == dense);
            const std::vector<double> clipped = gradient_of(lifted, on);
            REQUIRE(clipped.size() == g.size());
            for (std::size_t i = 0; i < g.size(); ++i)
                CHECK(clipped[i] == support::approx(g[i] / 3, sizeof(T) == 4 ? 1e-6 : 1e-12));
            return 0;
        });
    }
    // If the norm is small enough, no bit changes.
    after_backward<T>([&](const auto& lifted, auto& on) {
        for (const double enough : {1.001 * norm_of(g), std::numeric_limits<double>::infinity()}) {
            train::clip_gradient(lifted, on, enough);
        }
        CHECK(gradient_of(lifted, on) == g);
        return 0;
    });
}

TEST_CASE("a variable with two names counts once and is clipped once")
{
    const auto plain = some_model<double>();
    ad::tape<double> on;
    auto lifted = ad::lift(on, plain);
    lifted.unused = lifted.tied;
    on.backward(lifted.loss(some_words()));
    const std::vector<double> g = after_backward<double>(whole);
    CHECK(train::clip_gradient(lifted, on, 1) == doctest::Approx(norm_of(g)).epsilon(1e-12));
    CHECK(train::gradient_norm(lifted, on) == doctest::Approx(1).epsilon(1e-12));
}

TEST_CASE("a gradient that is not finite is reported by its norm and not changed")
{
    for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
        after_backward<double>(
            [](const auto& lifted, auto& on) {
                const std::vector<double> before = gradient_of(lifted, on);
                CHECK(!std::isfinite(train::clip_gradient(lifted, on, 1)));
                const std::vector<double> after = gradient_of(lifted, on);
                for (std::size_t i = 0; i < before.size(); ++i) {
                    CHECK((before[i] == after[i] || (std::isnan(before[i]) && std::isnan(after[i]))));
                }
                CHECK(after.back() == 0);  // `unused`
                return 0;
            },
            bad);
    }
}

TEST_CASE("train::adam clips as clip_gradient does")
{
    const auto train = [](bool by_hand) {
        auto plain = some_model<double>();
        train::adam<double> optimizer({0.1});
        ad::tape<double> on;
        std::vector<double> norms, numbers;
        for (int i = 0; i < 5; ++i) {
            on.clear();
            const auto lifted = ad::lift(on, plain);
            on.backward(lifted.loss(some_words()));
            if (by_hand) norms.push_back(train::clip_gradient(lifted, on, 0.5));
            const double norm = optimizer.step(plain, lifted, on, by_hand ? INFINITY : 0.5);
            if (!by_hand) norms.push_back(norm);
        }
        for (const auto& [name, values] : numbers_of<double>(plain)) {
            numbers.insert(numbers.end(), values.data, values.data + values.size());
        }
        return std::pair{norms, numbers};
    };
    const auto a = train(false), b = train(true);
    REQUIRE(a.second.size() == b.second.size());
    for (std::size_t i = 0; i < 5; ++i) CHECK(a.first[i] == doctest::Approx(b.first[i]).epsilon(1e-12));
    for (std::size_t i = 0; i < a.second.size(); ++i) {
        CHECK(a.second[i] == doctest::Approx(b.second[i]).epsilon(1e-12));
    }
}

TEST_CASE("the norm to clip to must not be negative")
{
    const auto expected =
        "a gradient cannot be clipped to a norm of -1.000000; give 0 or more, or infinity for no clipping";
    after_backward<double>([&](const auto& lifted, auto& on) {
        CHECK(support::message_of<error>([&] { train::clip_gradient(lifted, on, -1); }) == expected);
        CHECK_THROWS_AS(train::clip_gradient(lifted, on, std::nan("")), error);
        auto plain = some_model<double>();
        CHECK(support::message_of<error>([&] { train::adam<double>().step(plain, lifted, on, -1); }) == expected);
        CHECK(train::clip_gradient(lifted, on, 0) > 0);
        CHECK(norm_of(gradient_of(lifted, on)) == 0);
        return 0;
    });
}

TEST_CASE("norms, clipping and gradients require backward")
{
    const support::one_table<array<double, 2>> module{support::gaussian_numbers(1, 3, 7)};
    ad::tape<double> on;
    const auto lifted = ad::lift(on, module);
    const auto loss = ops::dot(lifted.E, support::gaussian_numbers(2, 3, 7));
    const auto says = doctest::Contains("there are no gradients on this tape yet");
    CHECK_THROWS_WITH_AS(train::gradient_norm(lifted, on), says, error);
    CHECK_THROWS_WITH_AS(train::clip_gradient(lifted, on, 1.0), says, error);
    CHECK_THROWS_WITH_AS(on.gradient(lifted.E), says, error);
    CHECK_THROWS_WITH_AS(ad::scale_gradient(lifted.E, 2.0), says, error);
    on.backward(loss);
    CHECK(train::gradient_norm(lifted, on) > 0);
}
