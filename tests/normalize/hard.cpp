// SPDX-License-Identifier: BSD-3-Clause
#include <heed/normalize/hard.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include <heed/heed.hpp>
#include <heed/verify.hpp>
#include <support/approx.hpp>
#include <support/hard.hpp>
#include <support/scalar_attention.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::random;
namespace scalar = support::scalar;
using namespace support::hard;

TEST_CASE("the score-function gradient is unbiased: all outcomes, weighted by their probabilities")
{
    const auto W = random({3, 4}, 1), U = random({2, 4}, 2), V = random({4, 2}, 3);
    const auto v = random({4}, 4);
    const attention each_position{score::additive{W, U, v}, normalize::hard{}, combine::weighted_sum{}};
    const auto additive = [](const auto& s) {
        return scalar::additive(scalar::matrix_of(s.W), scalar::matrix_of(s.U), scalar::vector_of(s.v));
    };
    for (const double baseline : {0.0, 3.5}) {
        CAPTURE(baseline);
        check_unbiased(each_position, additive, 3, 1, 1, baseline);
        check_unbiased(each_position, additive, 3, 3, 1, baseline);
    }
    const attention each_dimension{score::additive_per_dimension{W, U, V}, normalize::hard{},
                                   combine::elementwise_sum{}};
    const auto per_dimension = [](const auto& s) {
        return scalar::additive_per_dimension(scalar::matrix_of(s.W), scalar::matrix_of(s.U), scalar::matrix_of(s.V));
    };
    check_unbiased(each_dimension, per_dimension, 3, 1, 2, 1.0);
    check_unbiased(each_dimension, per_dimension, 2, 2, 2, 1.0);
}

TEST_CASE("without the score-function term the scores have no gradient")
{
    const auto annotations = random({2, 4, 3}, 1);
    const auto query = random({2, 3}, 2);
    ad::tape<double> on;
    const auto q = on.parameter(query);
    const auto h = on.parameter(annotations);
    const attention attend{score::dot{}, normalize::hard{}, combine::weighted_sum{}};
    const auto memory = attend.on(h);
    const auto now = attend.step(memory, q, attend.start(memory));
    on.backward(ops::dot(now.context, support::uneven(now.context.shape())));
    for (std::size_t i = 0; i < 6; ++i) CHECK(on.gradient(q).data[i] == 0);
    double values = 0;
    for (std::size_t i = 0; i < 24; ++i) values += std::abs(on.gradient(h).data[i]);
    CHECK(values > 0);  // but the values have one
}

TEST_CASE("positions are drawn with the probabilities of softmax")
{
    const std::vector<double> e{2, 0, -1, 1, -infinity, 1, -4};
    const auto p = softmax_of(e);
    for (const std::uint64_t seed : {1u, 2u, 3u}) {
        for (const std::size_t step : {0u, 1u, 17u}) {
            CAPTURE(seed);
            CAPTURE(step);
            CHECK(chi_square(counts(normalize::hard{seed}, e, 20000, step), p) < 20.5);  // 5 degrees: 1 in 1000
            CHECK(chi_square(counts(normalize::gumbel{seed}, e, 20000, step), p) < 20.5);
        }
    }
    // The bound can be exceeded.
    CHECK(chi_square(counts(normalize::hard{1}, {2, 0.2, -1, 1, -infinity, 1, -4}, 20000), p) > 20.5);
    // Over steps instead of rows.
    std::vector<std::size_t> seen(e.size(), 0), seen_noisy(e.size(), 0);
    for (std::size_t step = 0; step < 5000; ++step) {
        ++seen[diagonal_of(weights_of(normalize::hard{}, repeated(e, 1), {7}, step).data(), 7)];
        ++seen_noisy[diagonal_of(weights_of(normalize::gumbel{}, repeated(e, 1), {7}, step).data(), 7)];
    }
    CHECK(chi_square(seen, p) < 20.5);
    CHECK(chi_square(seen_noisy, p) < 20.5);
}

TEST_CASE("draws of steps, rows, dimensions and policies are independent")
{
    const std::size_t rows = 20000;
    const auto scores = repeated({0, 0, 0, 0}, rows);
    const lengths real = lengths::full(rows, 4);
    const auto agree = [&](const auto& a, const auto& b, std::size_t shift) {  // for a quarter of the rows
        std::size_t same = 0;
        for (std::size_t b_ = 0; b_ + shift < rows; ++b_) {
            same += diagonal_of(a.data() + 4 * b_, 4) == diagonal_of(b.data() + 4 * (b_ + shift), 4);
        }
        return std::abs(static_cast<double>(same) / static_cast<double>(rows) - 0.25) < 0.012;  // 4 deviations
    };
    const auto first = weights_of(normalize::hard{7}, scores, real, 0);
    CHECK(agree(first, weights_of(normalize::hard{7}, scores, real, 1), 0));
    CHECK(agree(first, weights_of(normalize::hard{8}, scores, real, 0), 0));
    CHECK(agree(first, weights_of(normalize::gumbel{7}, scores, real, 0), 0));
    CHECK(agree(first, first, 1));
    CHECK_FALSE(agree(first, first, 0));
    const auto each = weights_of(normalize::hard{7}, array<double, 3>(shape_of_rank<3>{rows, 4, 2}, 0.0), real);
    std::size_t same = 0;
    for (std::size_t b = 0; b < rows; ++b) {
        same += diagonal_of(each.data() + 8 * b, 4, 2) == diagonal_of(each.data() + 8 * b + 1, 4, 2);
    }
    CHECK(std::abs(static_cast<double>(same) / static_cast<double>(rows) - 0.25) < 0.012);
}

TEST_CASE("a draw depends only on seed, step, row and the row's scores: not on padding, threads or other rows")
{
    const auto scores = random({40, 6, 300}, 5);
    const lengths real = lengths::full(40, 6);
    auto padded = random({40, 9, 300}, 6);
    for (std::size_t b = 0; b < 40; ++b) {
        for (std::size_t t = 0; t < 6; ++t) {
            for (std::size_t d = 0; d < 300; ++d) padded(b, t, d) = scores(b, t, d);
        }
    }
    const auto check = [&](const auto& policy) {
        const auto weights = weights_of(policy, scores, real, 3);
        const auto with_padding = weights_of(policy, padded, real, 3);
        std::size_t different = 0;
        for (std::size_t b = 0; b < 40; ++b) {
            for (std::size_t t = 0; t < 9; ++t) {
                for (std::size_t d = 0; d < 300; ++d) {
                    different += with_padding(b, t, d) != (t < 6 ? weights(b, t, d) : 0.0);
                }
            }
        }
        CHECK(different == 0);
        set_threads(3);
        const auto threaded = weights_of(policy, scores, real, 3);
        set_threads(1);
        CHECK(support::same_bits(threaded, weights));
        auto changed = scores;
        for (std::size_t t = 0; t < 6; ++t) changed(1, t, 0) += 5 * static_cast<double>(t);
        const auto beside = weights_of(policy, changed, real, 3);
        for (std::size_t t = 0; t < 6; ++t) CHECK(beside(0, t, 0) == weights(0, t, 0));
    };
    check(normalize::hard{9});
    check(normalize::gumbel{9});
    check(normalize::gumbel{9, 0.5, false});
}

TEST_CASE("masked positions are never drawn, and do not contribute to log p")
{
    const std::size_t rows = 500;
    const auto annotations = random({rows, 5, 3}, 1);
    const auto query = random({rows, 3}, 2);
    boolean_mask<2> mask(shape_of_rank<2>{rows, 5});
    array<double, 2> bias(shape_of_rank<2>{rows, 5}, 0.0);
    for (std::size_t b = 0; b < rows; ++b) {
        mask[b * 5 + 1] = mask[b * 5 + 3] = mask[b * 5 + 4] = b != 7;  // row 7 sees no position
        bias(b, 3) = -infinity;
    }
    const attention attend{score::dot{}, normalize::hard{}, combine::weighted_sum{}};
    const auto memory = attend.on(annotations, mask);
    const auto now = attend.step(memory, query, attend.start(memory), additive_mask{bias});
    const auto log_p = now.state.normalize.of_row();
    for (std::size_t b = 0; b < rows; ++b) {
        if (b == 7) {
            for (std::size_t j = 0; j < 5; ++j) CHECK(now.weights(b, j) == 0);
            CHECK(log_p(b) == 0);
            continue;
        }
        const std::size_t place = diagonal_of(now.weights.data() + b * 5, 5);
        CHECK((place == 1 || place == 4));
        double e[5] = {};
        for (std::size_t j = 0; j < 5; ++j) {
            for (std::size_t d = 0; d < 3; ++d) e[j] += annotations(b, j, d) * query(b, d);
        }
        CHECK(log_p(b) == doctest::Approx(e[place] - std::log(std::exp(e[1]) + std::exp(e[4]))).epsilon(1e-12));
    }
}

TEST_CASE_TEMPLATE("log p is summed over the steps, and is finite for scores of 1e4", T, float, double)
{
    const lengths real{4, 0};
    const auto scores = random<T>({2, 4}, 1);
    const normalize::hard policy;
    auto state = policy.start([&](double x) { return constant_like(scores, shape_of(scores), x); });
    double must = 0;
    for (std::size_t step = 0; step < 5; ++step) {
        const plain_step_context at{real, step};
        const auto weights = policy(scores, state, at);
        state = policy.advance(scores, weights, state, at);
        double sum = 0;
        for (std::size_t j = 0; j < 4; ++j) sum += std::exp(static_cast<double>(scores(0, j)));
        for (std::size_t j = 0; j < 4; ++j) {
            if (weights(0, j) != 0) must += static_cast<double>(scores(0, j)) - std::log(sum);
        }
    }
    CHECK(static_cast<double>(state.of_row()(0)) == doctest::Approx(must).epsilon(sizeof(T) == 4 ? 1e-6 : 1e-13));
    CHECK(state.of_row()(1) == 0);

    const array<T, 2> great{{T(1e4), T(-1e4), T(1e4), T(9999)}}, drawn{{0, 1, 1, 0}};
    const lengths four{4};
    const auto log_p = ops::log_probability(great, drawn, four);
    const double rest = std::log(2 + std::exp(-1.0));
    CHECK(static_cast<double>(log_p(0, 1)) == support::approx(-2e4 - rest, sizeof(T) == 4 ? 1e-6 : 1e-13));
    CHECK(static_cast<double>(log_p(0, 2)) == support::approx(-rest, sizeof(T) == 4 ? 1e-6 : 1e-13));
    CHECK(log_p(0, 0) == 0);
}

TEST_CASE("the score-function term requires one number per row")
{
    const auto policy = normalize::hard{};
    const auto state = policy.start([](double x) { return array<double, 2>(shape_of_rank<2>{3, 4}, x); });
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                normalize::score_function_term(state, array<double, 1>{1, 2});
                            }),
                            "score_function_term"));
    CHECK(normalize::score_function_term(state, array<double, 1>{1, 2, 3})() == 0);
}

TEST_CASE_TEMPLATE("hard attention in a window draws from the window, and returns the probability of the draw", History,
                   normalize::history::in_window, normalize::history::everywhere)
{
    const std::size_t rows = 300;
    const auto annotations = random({rows, 9, 3}, 1);
    const auto query = random({rows, 3}, 2);
    const attention attend{score::dot{}, normalize::local_m{1, normalize::hard{}, History{}}, combine::weighted_sum{}};
    const auto memory = attend.on(annotations);
    auto state = attend.start(memory);
    state.step = 4;
    const auto now = attend.step(memory, query, state);
    const auto log_p = now.state.normalize.of_row();
    for (std::size_t b = 0; b < rows; ++b) {
        const std::size_t place = diagonal_of(now.weights.data() + b * 9, 9);
        REQUIRE(place >= 3);
        REQUIRE(place <= 5);
        double sum = 0, of_drawn = 0;
        for (std::size_t j = 3; j <= 5; ++j) {
            double e = 0;
            for (std::size_t d = 0; d < 3; ++d) e += annotations(b, j, d) * query(b, d);
            sum += std::exp(e);
            if (j == place) of_drawn = e;
        }
        CHECK(log_p(b) == doctest::Approx(of_drawn - std::log(sum)).epsilon(1e-12));
    }
}

TEST_CASE("hard attention satisfies the contracts") { check_contracts_of(normalize::hard{}); }

TEST_CASE("hard attention inside other normalizers satisfies the contracts")
{
    check_contracts(attention{score::dot{},
                              normalize::decayed_temporal{0.5, 0.0, normalize::temperature{0.7, normalize::hard{}}},
                              combine::weighted_sum{}},
                    {});
}
