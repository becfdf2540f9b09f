// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/heed.hpp>
#include <heed/verify.hpp>
#include <support/approx.hpp>
#include <support/scalar_attention.hpp>
#include <support/tensors.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

// Hard attention: what is drawn, how often, and that its score function's gradient is that of the expected cost.
// Argmax, and the Gumbel trick.

using namespace heed;
using support::random;
namespace scalar = support::scalar;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The same scores in every row.
array<double, 2> repeated(const std::vector<double>& e, std::size_t rows)
{
    array<double, 2> scores(shape_of_rank<2>{rows, e.size()});
    for (std::size_t b = 0; b < rows; ++b) std::copy(e.begin(), e.end(), scores.data() + b * e.size());
    return scores;
}

std::vector<double> softmax_of(const std::vector<double>& e)
{
    double sum = 0;
    for (const double x : e) sum += std::exp(x);
    std::vector<double> p;
    for (const double x : e) p.push_back(std::exp(x) / sum);
    return p;
}

/// Where the 1 of a one-hot row is; throws if it is not one.
std::size_t place_of(const double* row, std::size_t n, std::size_t stride = 1)
{
    std::size_t place = n;
    for (std::size_t j = 0; j < n; ++j) {
        const double w = row[j * stride];
        if (w == 1 && place == n) {
            place = j;
        } else if (w != 0) {
            throw error("not one-hot");
        }
    }
    if (place == n) throw error("nothing drawn");
    return place;
}

/// Pearson's Σ (seen − expected)² / expected; an impossible outcome that was seen counts as infinite.
double chi_square(const std::vector<std::size_t>& seen, const std::vector<double>& p)
{
    std::size_t all = 0;
    for (const std::size_t n : seen) all += n;
    double sum = 0;
    for (std::size_t j = 0; j < p.size(); ++j) {
        const double expected = static_cast<double>(all) * p[j], off = static_cast<double>(seen[j]) - expected;
        if (expected > 0) {
            sum += off * off / expected;
        } else if (seen[j] > 0) {
            return infinity;
        }
    }
    return sum;
}

/// One-hot weights, set by hand, state included.
template <class Normalize, class Scores>
auto weights_of(const Normalize& policy, const Scores& scores, const lengths& real, std::size_t step = 0)
{
    const plain_moment at{real, step};
    const auto state = start_of(policy, [&](double x) { return constant_like(scores, shape_of(scores), x); });
    return weigh(policy, scores, state, at);
}

/// The number of rows in which each position is drawn.
template <class Normalize>
std::vector<std::size_t> counts(const Normalize& policy, const std::vector<double>& e, std::size_t rows,
                                std::size_t step = 0)
{
    const auto weights = weights_of(policy, repeated(e, rows), lengths::full(rows, e.size()), step);
    std::vector<std::size_t> seen(e.size(), 0);
    for (std::size_t b = 0; b < rows; ++b) ++seen[place_of(weights.data() + b * e.size(), e.size())];
    return seen;
}

void check_contracts(const auto& attend, const verification_sizes& sizes)
{
    const verification report = verify(attend, sizes);
    CHECK_MESSAGE(bool(report), report.text());
}

void check_contracts_of(const auto& normalizer)
{
    const auto W = random({3, 4}, 11), U = random({5, 4}, 12), V = random({4, 5}, 13);
    const auto v = random({4}, 14, 2.0);
    check_contracts(attention{score::additive{W, U, v}, normalizer, combine::weighted_sum{}}, {.query = 3, .width = 5});
    check_contracts(attention{score::additive_per_dimension{W, U, V}, normalizer, combine::elementwise_sum{}},
                    {.query = 3, .width = 5});
}

/// One sentence, its queries, and a mechanism: the variables of the expected cost.
template <class Attention, class Tensor>
struct small_problem {
    Attention attend;
    Tensor annotations;  // [1,T,D]
    Tensor queries;      // [1,S,Q]

    static auto parameters(auto& self, auto&& visit)
    {
        auto attend = visit("attention", self.attend);
        auto annotations = visit("annotations", self.annotations);
        auto queries = visit("queries", self.queries);
        return small_problem<decltype(attend), decltype(annotations)>{attend, annotations, queries};
    }
};

/// A cost that is not linear in the context: (Σ_s Σ_d k_sd c_sd)².
double factor_of(std::size_t s, std::size_t d)
{
    return 0.7 + 0.9 * static_cast<double>(s) - 0.4 * static_cast<double>(d);
}
double cost_of(const std::vector<scalar::numbers>& contexts)
{
    double sum = 0;
    for (std::size_t s = 0; s < contexts.size(); ++s) {
        for (std::size_t d = 0; d < contexts[s].size(); ++d) sum += factor_of(s, d) * contexts[s][d];
    }
    return sum * sum;
}

/// E[cost]: every outcome's cost times its probability, with plain loops. `columns` = 1, or D for a draw per dimension.
double expected_cost(const scalar::score& equation, const array<double, 3>& annotations,
                     const array<double, 3>& queries, std::size_t columns)
{
    const std::size_t T = annotations.shape()[1], D = annotations.shape()[2], S = queries.shape()[1];
    std::vector<std::vector<double>> p;  // of each draw, S · columns of them
    for (std::size_t s = 0; s < S; ++s) {
        std::vector<scalar::numbers> e;
        for (std::size_t j = 0; j < T; ++j) {
            scalar::numbers h, q;
            for (std::size_t d = 0; d < D; ++d) h.push_back(annotations(0, j, d));
            for (std::size_t k = 0; k < queries.shape()[2]; ++k) q.push_back(queries(0, s, k));
            e.push_back(equation({q}, h));
        }
        for (std::size_t c = 0; c < columns; ++c) {
            std::vector<double> of_column;
            for (std::size_t j = 0; j < T; ++j) of_column.push_back(e[j][c]);
            p.push_back(softmax_of(of_column));
        }
    }
    std::size_t outcomes = 1;
    for (std::size_t i = 0; i < p.size(); ++i) outcomes *= T;
    double sum = 0;
    for (std::size_t outcome = 0; outcome < outcomes; ++outcome) {
        double probability = 1;
        std::vector<std::size_t> drawn;
        for (std::size_t i = 0, rest = outcome; i < p.size(); ++i, rest /= T) {
            drawn.push_back(rest % T);
            probability *= p[i][rest % T];
        }
        std::vector<scalar::numbers> contexts(S, scalar::numbers(D));
        for (std::size_t s = 0; s < S; ++s) {
            for (std::size_t d = 0; d < D; ++d) {
                contexts[s][d] = annotations(0, drawn[s * columns + (columns == 1 ? 0 : d)], d);
            }
        }
        sum += probability * cost_of(contexts);
    }
    return sum;
}

/// Every outcome's estimate of the gradient, weighted with the outcome's probability, against the gradient of E[cost].
/// Outcomes are found by trying seeds; none may be missing.
template <class Attention>
void check_unbiased(Attention attend, const auto& equation_of, std::size_t T, std::size_t S, std::size_t columns,
                    double baseline)
{
    small_problem<Attention, array<double, 3>> p{attend, random({1, T, 2}, 41), random({1, S, 3}, 42)};
    std::vector<double> exact;
    for_each_parameter(p, [&](const std::string&, auto& x) {
        for (double& entry : x) {
            const double before = entry, h = 1e-5;
            entry = before + h;
            const double above = expected_cost(equation_of(p.attend.score), p.annotations, p.queries, columns);
            entry = before - h;
            const double below = expected_cost(equation_of(p.attend.score), p.annotations, p.queries, columns);
            entry = before;
            exact.push_back((above - below) / (2 * h));
        }
    });
    const double expectation = expected_cost(equation_of(p.attend.score), p.annotations, p.queries, columns);

    std::size_t outcomes = 1;
    for (std::size_t i = 0; i < S * columns; ++i) outcomes *= T;
    std::map<std::string, double> met;  // with its probability
    std::vector<double> estimated(exact.size(), 0.0);
    double estimated_cost = 0;
    ad::tape<double> on;
    for (std::uint64_t seed = 1; met.size() < outcomes && seed < 100000; ++seed) {
        p.attend.normalize.seed = seed;
        on.clear();
        const auto lifted = ad::lift(on, p);
        const auto memory = lifted.attend.on(lifted.annotations);
        auto state = lifted.attend.start(memory);
        std::string outcome;
        ad::var<double, 0> total;
        for (std::size_t s = 0; s < S; ++s) {
            const auto now = lifted.attend.step(memory, ops::step_of(lifted.queries, s), state);
            for (std::size_t c = 0; c < columns; ++c) {
                outcome += static_cast<char>('0' + place_of(now.weights.data() + c, T, columns));
            }
            array<double, 2> factors(shape_of_rank<2>{1, 2});
            for (std::size_t d = 0; d < 2; ++d) factors(0, d) = factor_of(s, d);
            const auto part = ops::inner(now.context, factors);
            total = s == 0 ? part : ops::add(total, part);
            state = now.state;
        }
        const auto log_probability = state.normalize.of_row();
        if (!met.emplace(outcome, std::exp(log_probability.data()[0])).second) continue;
        const double probability = met[outcome];
        const auto cost = ops::square(total);
        const array<double, 1> excess{cost.data()[0] - baseline};
        on.backward(ops::add(cost, normalize::score_function_term(state.normalize, excess)));
        estimated_cost += probability * cost.data()[0];
        std::size_t i = 0;
        for_each_parameter(lifted, [&](const std::string&, const auto& x) {
            const auto gradient = on.gradient(x);
            for (std::size_t k = 0; k < gradient.size(); ++k) estimated[i++] += probability * gradient.data[k];
        });
    }
    REQUIRE(met.size() == outcomes);
    double all = 0;
    for (const auto& [outcome, probability] : met) all += probability;
    CHECK(all == doctest::Approx(1).epsilon(1e-12));
    CHECK(estimated_cost == doctest::Approx(expectation).epsilon(1e-12));
    double worst = 0, greatest = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
        worst = std::max(worst, std::abs(estimated[i] - exact[i]) / (1 + std::abs(exact[i])));
        greatest = std::max(greatest, std::abs(exact[i]));
    }
    CHECK(worst < 1e-8);
    CHECK(greatest > 0.1);
}

}  // namespace

TEST_CASE("the score function's gradient is unbiased: all outcomes, weighted with their probabilities")
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

TEST_CASE("without the score function's term the scores learn nothing")
{
    const auto annotations = random({2, 4, 3}, 1);
    const auto query = random({2, 3}, 2);
    ad::tape<double> on;
    const auto q = on.parameter(query);
    const auto h = on.parameter(annotations);
    const attention attend{score::dot{}, normalize::hard{}, combine::weighted_sum{}};
    const auto memory = attend.on(h);
    const auto now = attend.step(memory, q, attend.start(memory));
    on.backward(ops::inner(now.context, support::uneven(now.context.shape())));
    for (std::size_t i = 0; i < 6; ++i) CHECK(on.gradient(q).data[i] == 0);
    double values = 0;
    for (std::size_t i = 0; i < 24; ++i) values += std::abs(on.gradient(h).data[i]);
    CHECK(values > 0);  // but the values do
}

TEST_CASE("positions are drawn as often as softmax says")
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
        ++seen[place_of(weights_of(normalize::hard{}, repeated(e, 1), {7}, step).data(), 7)];
        ++seen_noisy[place_of(weights_of(normalize::gumbel{}, repeated(e, 1), {7}, step).data(), 7)];
    }
    CHECK(chi_square(seen, p) < 20.5);
    CHECK(chi_square(seen_noisy, p) < 20.5);
}

TEST_CASE("draws of steps, rows, dimensions and policies do not depend on each other")
{
    const std::size_t rows = 20000;
    const auto scores = repeated({0, 0, 0, 0}, rows);
    const lengths real = lengths::full(rows, 4);
    const auto agree = [&](const auto& a, const auto& b, std::size_t shift) {  // in a quarter of all cases
        std::size_t same = 0;
        for (std::size_t b_ = 0; b_ + shift < rows; ++b_) {
            same += place_of(a.data() + 4 * b_, 4) == place_of(b.data() + 4 * (b_ + shift), 4);
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
        same += place_of(each.data() + 8 * b, 4, 2) == place_of(each.data() + 8 * b + 1, 4, 2);
    }
    CHECK(std::abs(static_cast<double>(same) / static_cast<double>(rows) - 0.25) < 0.012);
}

TEST_CASE("what is drawn depends on seed, step and row: not on padding, not on threads, not on the other rows' scores")
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

TEST_CASE("masked positions are never drawn, and do not count in log p")
{
    const std::size_t rows = 500;
    const auto annotations = random({rows, 5, 3}, 1);
    const auto query = random({rows, 3}, 2);
    boolean_mask<2> mask(shape_of_rank<2>{rows, 5});
    array<double, 2> bias(shape_of_rank<2>{rows, 5}, 0.0);
    for (std::size_t b = 0; b < rows; ++b) {
        mask[b * 5 + 1] = mask[b * 5 + 3] = mask[b * 5 + 4] = b != 7;  // row 7 sees nothing
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
        const std::size_t place = place_of(now.weights.data() + b * 5, 5);
        CHECK((place == 1 || place == 4));
        double e[5] = {};
        for (std::size_t j = 0; j < 5; ++j) {
            for (std::size_t d = 0; d < 3; ++d) e[j] += annotations(b, j, d) * query(b, d);
        }
        CHECK(log_p(b) == doctest::Approx(e[place] - std::log(std::exp(e[1]) + std::exp(e[4]))).epsilon(1e-12));
    }
}

TEST_CASE_TEMPLATE("log p adds up over the steps, and is finite for scores of 1e4", T, float, double)
{
    const lengths real{4, 0};
    const auto scores = random<T>({2, 4}, 1);
    const normalize::hard policy;
    auto state = policy.start([&](double x) { return constant_like(scores, shape_of(scores), x); });
    double must = 0;
    for (std::size_t step = 0; step < 5; ++step) {
        const plain_moment at{real, step};
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

TEST_CASE("argmax, hard and gumbel without chance: the first of the greatest")
{
    const array<double, 2> scores{{1, 3, 3, 2}, {-infinity, -infinity, -5, 9}, {-infinity, -infinity, 1, 1}};
    const lengths real{4, 3, 2};
    const array<double, 2> expected{{0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 0}};
    CHECK(support::same_bits(weights_of(normalize::argmax{}, scores, real), expected));
    CHECK(support::same_bits(weights_of(normalize::hard{.greedy = true}, scores, real), expected));
    CHECK(support::same_bits(weights_of(normalize::gumbel{.greedy = true}, scores, real), expected));
    const auto soft =
        weights_of(normalize::gumbel{.tau = 0.5, .straight_through = false, .greedy = true}, scores, real);
    CHECK(support::distance(soft, normalize::softmax{}(ops::scale(scores, 2), no_state{}, plain_moment{real})) < 1e-15);

    array<double, 3> each(shape_of_rank<3>{1, 3, 2});
    each(0, 0, 0) = 2, each(0, 1, 0) = 5, each(0, 2, 0) = 5;
    each(0, 0, 1) = -1, each(0, 1, 1) = -2, each(0, 2, 1) = -3;
    const auto of_each = weights_of(normalize::argmax{}, each, {3});
    CHECK(place_of(of_each.data(), 3, 2) == 1);
    CHECK(place_of(of_each.data() + 1, 3, 2) == 0);
}

TEST_CASE("gumbel: hard forward, and back the gradient of the soft weights")
{
    const auto scores = random({3, 5}, 1), upstream = random({3, 5}, 2);
    const lengths real{5, 2, 0};
    const auto run = [&](bool straight_through) {
        ad::tape<double> on;
        const auto e = on.parameter(scores);
        const normalize::gumbel policy{.seed = 4, .tau = 0.6, .straight_through = straight_through};
        const auto weights = policy(e, no_state{}, plain_moment{real, 2});
        on.backward(ops::inner(weights, upstream));
        return std::pair{copy_of(weights.value()), copy_of(on.gradient(e))};
    };
    const auto [hard, through] = run(true);
    const auto [soft, own] = run(false);
    CHECK(support::same_bits(through, own));
    CHECK(place_of(hard.data(), 5) ==
          static_cast<std::size_t>(std::max_element(soft.data(), soft.data() + 5) - soft.data()));
    CHECK(std::abs(through(0, 0)) > 1e-3);
    // As τ falls, the soft weights become the hard ones.
    const auto nearly =
        normalize::gumbel{.seed = 4, .tau = 1e-3, .straight_through = false}(scores, no_state{}, plain_moment{real, 2});
    CHECK(support::distance(nearly, hard) < 1e-12);
    CHECK(support::contains(
        support::message_of<error>([&] { normalize::gumbel{.tau = 0}(scores, no_state{}, plain_moment{real}); }),
        "normalize::gumbel: tau is 0.000000 but must be a finite number above 0"));
}

TEST_CASE("the score function's term takes one number for each row")
{
    const auto policy = normalize::hard{};
    const auto state = policy.start([](double x) { return array<double, 2>(shape_of_rank<2>{3, 4}, x); });
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                normalize::score_function_term(state, array<double, 1>{1, 2});
                            }),
                            "score_function_term"));
    CHECK(normalize::score_function_term(state, array<double, 1>{1, 2, 3})() == 0);
}

TEST_CASE_TEMPLATE("hard attention in a window draws from the window, and says with what probability", History,
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
        const std::size_t place = place_of(now.weights.data() + b * 9, 9);
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

TEST_CASE("hard attention keeps the contracts") { check_contracts_of(normalize::hard{}); }
TEST_CASE("argmax keeps the contracts") { check_contracts_of(normalize::argmax{}); }
TEST_CASE("gumbel keeps the contracts") { check_contracts_of(normalize::gumbel{}); }
TEST_CASE("hard attention inside others keeps the contracts")
{
    check_contracts(
        attention{score::dot{}, normalize::fading_temporal{0.5, 0.0, normalize::hard{}}, combine::weighted_sum{}}, {});
    check_contracts(attention{score::dot{}, normalize::temperature{0.7, normalize::hard{}}, combine::weighted_sum{}},
                    {});
}
