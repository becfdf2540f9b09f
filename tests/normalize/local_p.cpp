// SPDX-License-Identifier: BSD-3-Clause
#include <heed/normalize/local_p.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <cmath>
#include <heed/heed.hpp>
#include <support/mechanism_tests.hpp>
#include <support/scalar_weights.hpp>
#include <support/tensors.hpp>
#include <support/windows.hpp>
#include <vector>

using namespace heed;
using normalize::history::in_window, normalize::local_m, normalize::local_p;
using support::check_empty, support::message_of, support::random;
using support::message_of, support::plain_query, support::query_with_word, support::random;
namespace scalar = support::scalar;
using namespace support::temporal_family;
using namespace support::windows;

namespace {

auto local(std::size_t D, bool renormalize)
{
    return local_p{
        W_p(), v_p(), D, normalize::softmax{}, normalize::history::everywhere{}, {.renormalize = renormalize}};
}
auto words() { return random({2, 4}, 13); }

/// The state of a query with several parts.
auto per_position(std::size_t D, bool renormalize)
{
    return attention{score::with_word{additive(), words()}, local(D, renormalize), combine::weighted_sum{}};
}
auto for_each_dimension(std::size_t D, bool renormalize)
{
    return attention{per_dimension(), local(D, renormalize), combine::elementwise_sum{}};
}

}  // namespace

TEST_CASE("place_in_row")
{
    const auto z = random({4, 5}, 1);
    const auto v = random({5}, 2);
    const lengths real{7, 0, 1, 30};
    const auto p = ops::place_in_row(z, v, real);
    for (std::size_t b = 0; b < 4; ++b) {
        double a = 0;
        for (std::size_t k = 0; k < 5; ++k) a += z(b, k) * v(k);
        CHECK(p(b) == doctest::Approx(static_cast<double>(real[b]) / (1 + std::exp(-a))).epsilon(1e-14));
    }
    const auto f = [](const lengths& n) {
        return [n](const auto& x, const auto& w) { return ops::place_in_row(x, w, n); };
    };
    CHECK_GRADIENT(f({3}), random({1, 1}, 3), random({1}, 4));
    CHECK_GRADIENT(f(real), z, v);
    check_empty(f(lengths{}), random({0, 3}, 1), random({3}, 2));
    check_empty(f({2, 3}), random({2, 0}, 1), random({0}, 2));
    CHECK(message_of<shape_error>([&] { (void)f(real)(z, random({4}, 1)); }) ==
          "place_in_row: v is [4] but must be [5] (the width of z [4,5])");
    ad::tape<double> on;
    CHECK(message_of<shape_error>([&] {
              (void)f({1, 2})(on.parameter(z), v);
          }) == "place_in_row: z is [4,5] but there are 2 sentences; give one row for each sentence");
}

TEST_CASE("gaussian")
{
    const std::vector<std::size_t> begin{2, 0};
    const auto x = random({2, 3, 2}, 1);
    const array<double, 1> p{3.2, 0.0};
    const auto y = ops::gaussian(x, p, begin, 1.5);
    for (std::size_t b = 0; b < 2; ++b) {
        for (std::size_t j = 0; j < 3; ++j) {
            const double off = static_cast<double>(begin[b] + j) - p(b), factor = std::exp(-off * off / 4.5);
            for (std::size_t n = 0; n < 2; ++n)
                CHECK(y(b, j, n) == doctest::Approx(x(b, j, n) * factor).epsilon(1e-14));
        }
    }
    const auto f = [&begin](const auto& w, const auto& c) { return ops::gaussian(w, c, begin, 0.8); };
    CHECK_GRADIENT(f, random({2, 5}, 2), random({2}, 3));
    CHECK_GRADIENT(f, random({2, 3, 4}, 4), random({2}, 5));
    CHECK_GRADIENT([](const auto& w, const auto& c) { return ops::gaussian(w, c, std::vector<std::size_t>{1}, 2.0); },
                   random({1, 1}, 6), random({1}, 7));
    check_empty(f, random({2, 0}, 1), random({2}, 2));
    check_empty(f, random({2, 0, 3}, 1), random({2}, 2));
    CHECK(message_of<shape_error>([&] {
              (void)f(random({2, 5}, 2), random({3}, 1));
          }) == "gaussian: the center is [3] but must be [2] (one for each row of the weights [2,5])");
    ad::tape<double> on;
    const auto three = random({3, 5}, 2);
    CHECK(message_of<shape_error>([&] { (void)f(on.parameter(three), random({3}, 1)); }) ==
          "gaussian: the list of first positions is [2] but must be [3] (one for each row)");
}

TEST_CASE("local_p matches its equation")
{
    const auto s = additive();
    const auto with_word = scalar::additive_with_word(scalar::matrix_of(s.W), scalar::matrix_of(s.U),
                                                      scalar::vector_of(s.v), scalar::matrix_of(words()));
    for (const std::size_t D : {1u, 2u, 3u, 100u}) {
        for (const bool renormalize : {false, true}) {
            const auto weigh = luong_p(W_p(), v_p(), D, remembered::nothing, renormalize);
            scalar::check_values(per_position(D, renormalize), with_word, weigh, query_with_word{3, 2}, 5);
            scalar::check_values(for_each_dimension(D, renormalize), per_dimension_equation(), weigh, plain_query{3},
                                 5);
        }
    }
}

TEST_CASE("local_p: gradients and contracts")
{
    // No p_t here is so close to an integer that a difference quotient would move the window past a position.
    support::check_gradients(per_position(1, false), query_with_word{3, 2}, 5);
    check_verified_windows(per_position(1, false), query_with_word{3, 2});
    check_verified_windows(per_position(2, true), query_with_word{3, 2});
    check_verified_windows(for_each_dimension(1, false), plain_query{3});
}

TEST_CASE("local_p's weights sum to less than 1, unless they are renormalized")
{
    const auto sums = [&](bool renormalize) {
        const auto attend = dot_with(local_p{
            W_p(5), v_p(), 2, normalize::softmax{}, normalize::history::everywhere{}, {.renormalize = renormalize}});
        std::vector<double> all;
        for (const auto& weights :
             weights_of(attend, attend.on(random({2, 9, 5}, 1), lengths{9, 4}), random({2, 6, 5}, 2))) {
            for (std::size_t b = 0; b < 2; ++b) {
                all.push_back(0);
                for (std::size_t j = 0; j < 9; ++j) all.back() += weights(b, j);
            }
        }
        return all;
    };
    for (const double sum : sums(false)) {
        CHECK(sum < 1);
        CHECK(sum > 0.1);
    }
    for (const double sum : sums(true)) CHECK(sum == doctest::Approx(1).epsilon(1e-14));
}

TEST_CASE("distant queries: the center stays in the sentence, and the window is not empty")
{
    const auto attend = dot_with(local_p{W_p(5), random({4}, 42, 1e3), 1});
    const auto memory = attend.on(random({2, 9, 5}, 1), lengths{9, 4});
    for (const double scale : {1e4, -1e4}) {
        const auto now = attend.step(memory, random({2, 5}, 3, scale), attend.start(memory));
        for (std::size_t b = 0; b < 2; ++b) {
            double sum = 0;
            for (std::size_t j = 0; j < 9; ++j) sum += now.weights(b, j);
            CHECK(sum > 0.05);
            CHECK(sum <= 1);
        }
    }
    // NaN affects only dependent results.
    auto query = random({2, 5}, 3);
    query(0, 0) = not_a_number;
    const auto now = attend.step(memory, query, attend.start(memory));
    CHECK(std::isnan(now.context(0, 0)));
    CHECK(std::isfinite(now.context(1, 0)));
}
