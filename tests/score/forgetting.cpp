// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/score/modified.hpp>
#include <heed/verify.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/many_queries.hpp>

#include <cmath>
#include <vector>

using namespace heed;
using support::distance;
using support::random;
using support::words_of;

namespace {

constexpr std::size_t N = 4;

const auto w = random({N, 1}, 21);
const auto b = random({1}, 22);

template <class Base>
auto forgets(const Base& base)
{
    return score::forgetting{base, w, b};
}
auto with(const auto& score) { return attention{score, normalize::softmax{}, combine::weighted_sum{}}; }
auto additive() { return score::additive{random({N, 3}, 5), random({N, 3}, 6), random({3}, 7)}; }

/// Σ_{l=j+1..i} log σ(w · x_l + b), by a loop over positions; negated if i < j.
double between(const array<double, 3>& x, std::size_t batch, std::size_t i, std::size_t j)
{
    double sum = 0;
    for (std::size_t l = std::min(i, j) + 1; l <= std::max(i, j); ++l) {
        double gate = b(0);
        for (std::size_t n = 0; n < N; ++n) gate += w(n, 0) * x(batch, l, n);
        sum += std::log(1 / (1 + std::exp(-gate)));
    }
    return i < j ? -sum : sum;
}

/// Checks all at once, one by one, and a growing memory, by one word and by several.
void check(const auto& attend, std::size_t T)
{
    const auto h = random({2, T, N}, 1), q = random({2, T, N}, 2);
    const auto memory = attend.on(h);
    const auto all = attend(memory, q, causal{});
    for (const std::size_t chunk : {std::size_t{1}, std::size_t{5}})
        CHECK(support::distance_where_it_grows(attend, h, q, all, chunk) < 1e-12);
    auto state = attend.start(memory), composed = state;
    for (std::size_t t = 0; t < T; ++t) {
        const lengths seen({t + 1, t + 1});
        auto next = attend.step(memory, ops::step_of(q, t), state, seen);
        auto same = attend.compose(memory, ops::step_of(q, t), composed, seen);
        CHECK(distance(next.context, ops::step_of(all, t)) < 1e-12);
        CHECK(distance(same.context, ops::step_of(all, t)) < 1e-12);
        state = std::move(next.state);
        composed = std::move(same.state);
    }
}

}  // namespace

TEST_CASE("each score is reduced by the gates of the later positions")
{
    const std::size_t S = 80, T = 70;  // with tiles; the last queries are at the memory's last position
    const auto h = random({2, T, N}, 1), q = random({2, S, N}, 2);
    const lengths real{T, 40};
    constexpr double bias = 0.3;
    const auto must = [&](std::size_t batch, std::size_t s, bool divides) {
        const std::size_t n = real[batch], stands = std::min(s, n - 1);
        std::vector<double> c(N, 0.0);
        double sum = 0;
        for (std::size_t j = 0; j < n; ++j) {
            double e = between(h, batch, stands, j);
            for (std::size_t i = 0; i < N; ++i) e += q(batch, s, i) * h(batch, j, i);
            const double weight = divides ? std::exp(e) : 1 / (1 + std::exp(-e - bias));
            sum += weight;
            for (std::size_t i = 0; i < N; ++i) c[i] += weight * h(batch, j, i);
        }
        for (double& x : c) x /= divides ? sum : 1;
        return c;
    };
    const attention divides{forgets(score::dot{}), normalize::softmax{}, combine::weighted_sum{}};
    const attention sigmoid{forgets(score::dot{}), normalize::sigmoid{bias}, combine::weighted_sum{}};
    const auto a = divides(divides.on(h, real), q), c = sigmoid(sigmoid.on(h, real), q);
    const auto few = sigmoid(sigmoid.on(h, real), words_of(q, 0, 5));  // without tiles
    auto state = sigmoid.start(sigmoid.on(h, real));
    for (std::size_t s = 0; s < S; ++s) {
        auto next = sigmoid.step(sigmoid.on(h, real), ops::step_of(q, s), state);
        for (std::size_t batch = 0; batch < 2; ++batch) {
            const auto x = must(batch, s, true), y = must(batch, s, false);
            for (std::size_t i = 0; i < N; ++i) {
                CHECK(a(batch, s, i) == support::approx(x[i]));
                CHECK(c(batch, s, i) == support::approx(y[i]));
                CHECK(next.context(batch, i) == support::approx(y[i]));
                if (s < 5) CHECK(few(batch, s, i) == support::approx(y[i]));
            }
        }
        state = std::move(next.state);
    }
}

TEST_CASE("any base: the base's scores, and the difference of the sums")
{
    const std::size_t T = 6;
    const auto h = random({2, T, N}, 1);
    const auto q = random({2, N}, 2);
    const auto check_base = [&](const auto& base) {
        const attention plain{base, normalize::sigmoid{}, combine::weighted_sum{}};
        const attention attend{forgets(base), normalize::sigmoid{}, combine::weighted_sum{}};
        auto state = attend.start(attend.on(h));
        auto of_base = plain.start(plain.on(h));
        state.step = of_base.step = 3;
        const auto before = plain.step(plain.on(h), q, of_base).weights,
                   after = attend.step(attend.on(h), q, state).weights;
        for (std::size_t batch = 0; batch < 2; ++batch)
            for (std::size_t j = 0; j < T; ++j) {
                const double e = std::log(before(batch, j) / (1 - before(batch, j))) + between(h, batch, 3, j);
                CHECK(after(batch, j) == support::approx(1 / (1 + std::exp(-e))));
            }
    };
    check_base(score::scaled_dot{});
    check_base(score::rotary{score::scaled_dot{}});
    check_base(score::general{random({N, N}, 5)});
    check_base(additive());
    check_base(score::with_location{additive(), random({2, 3}, 71), random({2, 3}, 72)});
    check_base(score::modified{score::dot{}, [](auto e, score_index p) { return 2 * tanh(e / 2) - 0.1 * p.key; }});
}

TEST_CASE("all at once, one by one, and over a growing memory")
{
    const auto capped = [](auto e, score_index p) { return 2 * tanh(e / 2) - 0.01 * abs(p.query - p.key); };
    for (const std::size_t T : {std::size_t{7}, std::size_t{70}}) {  // without and with tiles
        check(attention{forgets(score::rotary{score::scaled_dot{}}), normalize::sigmoid{}, combine::weighted_sum{}}, T);
        check(with(score::modified{forgets(score::dot{}), capped}), T);
        check(with(forgets(score::modified{score::dot{}, capped})), T);
        check(attention{forgets(score::general{random({N, N}, 5)}), normalize::sparsemax{}, combine::weighted_sum{}},
              T);
        check(attention{forgets(score::dot{}), normalize::retention{0.9}, combine::weighted_sum{}}, T);
        const std::vector heads{with(score::forgetting{score::scaled_dot{}, random({N, 1}, 23), b}),
                                with(score::forgetting{score::scaled_dot{}, random({N, 1}, 24), b})};
        check(multi_head{heads, random({N, 8}, 3), random({N, 8}, 4), random({N, 8}, 5), random({8, N}, 6)}, T);
    }
    check(attention{forgets(additive()), normalize::stick_breaking{}, combine::weighted_sum{}}, 7);
}

TEST_CASE("temporal normalizers use the query's sum, and windows use the memory's sums")
{
    const auto h = random({2, 9, N}, 1), q = random({2, 6, N}, 2);
    const attention temporal{forgets(score::dot{}), normalize::temporal{}, combine::weighted_sum{}};
    const attention window{forgets(score::dot{}), normalize::local_m{2, normalize::sigmoid{}}, combine::weighted_sum{}};
    // e'_t / Σ_{k<t} e'_k with scores that include D, computed by a scalar loop.
    auto state = temporal.start(temporal.on(h));
    auto at = window.start(window.on(h));
    std::vector<double> past(9, 0.0);
    for (std::size_t s = 0; s < 6; ++s) {
        auto next = temporal.step(temporal.on(h), ops::step_of(q, s), state);
        auto near = window.step(window.on(h), ops::step_of(q, s), at);
        double sum = 0;
        std::vector<double> now;
        for (std::size_t j = 0; j < 9; ++j) {
            double e = between(h, 1, s, j);
            for (std::size_t i = 0; i < N; ++i) e += q(1, s, i) * h(1, j, i);
            now.push_back(s == 0 ? std::exp(e) : std::exp(e) / past[j]);
            sum += now.back();
            past[j] += std::exp(e);
            const bool inside = j + 2 >= s && j <= s + 2;
            CHECK(near.weights(1, j) == support::approx(inside ? 1 / (1 + std::exp(-e)) : 0));
        }
        for (std::size_t j = 0; j < 9; ++j) CHECK(next.weights(1, j) == support::approx(now[j] / sum));
        state = std::move(next.state);
        at = std::move(near.state);
    }
}

TEST_CASE("gradients with respect to annotations, queries, gate and bias, with and without tiles")
{
    for (const std::size_t T : {std::size_t{5}, std::size_t{65}}) {
        const auto f = [&](const auto& h, const auto& q, const auto& W, const auto& bias) {
            const attention attend{score::forgetting{score::scaled_dot{}, W, bias}, normalize::sigmoid{},
                                   combine::weighted_sum{}};
            return attend(attend.on(h), q, causal{});
        };
        // All on the tape; the gate alone, so that values are plain and keys are taped; the queries alone.
        const auto check_found = [&](const ad::grad_check_result& found) { CHECK_MESSAGE(bool(found), found.text()); };
        const auto h = random({1, T, 2}, 1), q = random({1, T, 2}, 2);
        const auto W = random({2, 1}, 3);
        const auto bias = random({1}, 4);
        check_found(support::gradient_of<0b1111>(f, h, q, W, bias));
        check_found(support::gradient_of<0b1100>(f, h, q, W, bias));
        check_found(support::gradient_of<0b0010>(f, h, q, W, bias));
    }
    const auto grows = [&](const auto& h, const auto& W, const auto& bias) {
        const auto attend = with(score::forgetting{score::dot{}, W, bias});
        const auto some = attend.on(ops::positions_between(h, 0, 3));
        return attend(attend.extend(some, ops::positions_between(h, 3, 2)), random({1, 4, 2}, 3), causal{});
    };
    for (const auto& found :
         {support::gradient_of<0b111>(grows, random({1, 5, 2}, 1), random({2, 1}, 4), random({1}, 5)),
          support::gradient_of<0b010>(grows, random({1, 5, 2}, 1), random({2, 1}, 4), random({1}, 5))})
        CHECK_MESSAGE(bool(found), found.text());
    const lengths real{70, 33};
    const auto off = [&](const auto& attend, const auto& mask) {
        return support::distance_from_one_by_one(attend, mask, real, 70, 70);
    };
    CHECK(off(with(forgets(score::dot{})), no_mask{}) < 1e-9);
    CHECK(off(with(forgets(score::dot{})), causal{} & sliding_window{9}) < 1e-9);
    CHECK(off(attention{forgets(score::dot{}), normalize::sigmoid{}, combine::weighted_sum{}}, causal{}) < 1e-9);
}

TEST_CASE("a sum over a long memory is accurate to the last digits")
{
    const std::size_t T = 4000;
    array<float, 3> h(shape_of_rank<3>{1, T, 2}, 1.0f);
    const array<float, 2> W(shape_of_rank<2>{2, 1}, 0.0f);
    const attention attend{score::forgetting{score::dot{}, W, array<float, 1>{0.5f}}, normalize::softmax{},
                           combine::weighted_sum{}};
    const auto memory = attend.on(h);
    auto state = attend.start(memory);
    state.step = T - 1;
    const auto weights = attend.step(memory, array<float, 2>{{0, 0}}, state).weights;
    const double gate = 1 / (1 + std::exp(-0.5));  // the factor of weights from one position to the next
    CHECK(weights(0, T - 1) == doctest::Approx(1 - gate).epsilon(1e-3));
    CHECK(weights(0, T - 2) == doctest::Approx(gate * (1 - gate)).epsilon(1e-3));
}

TEST_CASE("the contracts, and errors")
{
    const auto W = random({5, 1}, 11);
    for (const auto& report :
         {verify(with(score::forgetting{score::scaled_dot{}, W, b}), {.query = 5, .width = 5}),
          verify(
              attention{score::forgetting{score::additive{random({3, 4}, 5), random({5, 4}, 6), random({4}, 7)}, W, b},
                        normalize::temporal{}, combine::weighted_sum{}},
              {.query = 3, .width = 5})})
        CHECK_MESSAGE(bool(report), report.text());
    const auto attend = with(forgets(score::dot{}));
    CHECK_THROWS_AS((void)attend.on(random({1, 3, N + 1}, 1)), shape_error);
    CHECK_THROWS_WITH_AS(ops::carry_sums(random({1, 3, 1}, 1), random({1, 3, 1}, 1)),
                         doctest::Contains("no columns of sums"), shape_error);
}

TEST_CASE("operations")
{
    const auto x = random({2, 5, 1}, 1);
    const auto y = ops::carried_sums(x);
    CHECK(y(1, 2, 0) == 1);
    CHECK(y(1, 2, 1) == support::approx(-x(1, 0, 0) - x(1, 1, 0) - x(1, 2, 0)));
    CHECK_GRADIENT([](const auto& v) { return ops::carried_sums(v); }, x);
    CHECK_GRADIENT([](const auto& v) { return ops::log_sigmoid(v); }, random({3, 4}, 2, 3.0));
    CHECK(ops::log_sigmoid(array<float, 1>{-1e4f, 1e4f, 0})(0) == -1e4f);
    CHECK(ops::log_sigmoid(array<float, 1>{-1e4f, 1e4f, 0})(1) == 0);
    const auto k = random({2, 3, 4}, 3), before = random({2, 6, 4}, 4);
    CHECK_GRADIENT([](const auto& a, const auto& c) { return ops::carry_sums(a, c); }, k, before);
    CHECK_GRADIENT([](const auto& a) { return ops::slice_columns(a, 1, 3); }, k);
    CHECK(ops::slice_columns(k, 1, 3)(1, 2, 0) == k(1, 2, 1));
    CHECK_THROWS_WITH_AS(ops::slice_columns(k, 3, 5), doctest::Contains("columns 3 to 5"), shape_error);
    const lengths real{3, 2};
    const auto f = [&](const auto& keys) { return ops::carried_to(keys, std::span<const std::size_t>{}, real, 1, 3); };
    CHECK_GRADIENT(f, k);
    CHECK(f(k)(0, 0, 0) == -k(0, 1, 1));
    CHECK(f(k)(1, 2, 0) == -k(1, 1, 1));
    CHECK(ops::carried_to(k, std::span<const std::size_t>{}, lengths{0, 3}, 0, 1)(0, 0, 0) == 0);
    const std::vector<std::size_t> few{1}, beyond{1, 2};
    CHECK(support::message_of<shape_error>([&] {
              ops::carried_to(k, few, lengths{1, 3}, 0, 1);
          }) == "carried_to: the list of sentences is [1] but must be [2] (one for each row)");
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                ops::carried_to(k, beyond, lengths{1, 3}, 0, 1);
                            }),
                            "carried_to: sentence 2 of keys"));
}

TEST_CASE("a KV cache: queries after the last position are at that position, as in any other memory")
{
    const auto h = random({1, 3, N}, 1), q = random({1, 5, N}, 2);
    const auto attend = with(forgets(score::dot{}));
    const auto plain = attend.on(h);
    const auto cache = with_cache(plain);
    auto of_plain = attend.start(plain);
    auto of_cache = attend.start(cache);
    for (std::size_t s = 0; s < 5; ++s) {
        auto must = attend.step(plain, ops::step_of(q, s), of_plain);
        auto is = attend.step(cache, ops::step_of(q, s), of_cache);
        CHECK(distance(is.weights, must.weights) < 1e-15);
        of_plain = std::move(must.state);
        of_cache = std::move(is.state);
    }
}
