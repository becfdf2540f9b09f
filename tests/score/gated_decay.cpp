// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/attention/execute/linear.hpp>
#include <heed/heed.hpp>
#include <heed/verify.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/many_queries.hpp>

#include <cmath>
#include <vector>

using namespace heed;
using support::random;
using support::words_of;

namespace {

constexpr std::size_t N = 4;

const auto w = random({N, 1}, 21);
const auto b = random({1}, 22);

auto shares(const auto& score) { return attention{score, normalize::ratio{}, combine::weighted_sum{}}; }
auto sums(const auto& score, double decay = 1)
{
    return attention{score, normalize::retention{decay}, combine::weighted_sum{}};
}
template <class Base>
auto fades(const Base& base)
{
    return score::gated_decay{base, w, b};
}
const score::kernel elu{score::elu_plus_one{}};

/// The gradient with all on the tape, with the gate alone (plain values, taped keys), and with the query alone.
void check_some_on_the_tape(const auto& f, const auto& h, const auto& q, const auto& W, const auto& bias)
{
    for (const auto& found :
         {support::gradient_of<0b1111>(f, h, q, W, bias), support::gradient_of<0b1100>(f, h, q, W, bias),
          support::gradient_of<0b0010>(f, h, q, W, bias)})
        CHECK_MESSAGE(bool(found), found.text());
}

/// Whether the linear-time form runs.
template <class Mask>
bool is_linear(const auto& attend, std::size_t T, const Mask&)
{
    const auto memory = attend.on(random({1, T, N}, 1));
    return detail::plan<std::remove_cvref_t<decltype(attend)>, decltype(attend.project(random({1, T, N}, 1))),
                        std::remove_cvref_t<decltype(memory)>, Mask>::linear &&
           detail::worth_sums({1, T, N}, T, N) &&
           detail::fits_sums(attend.score, attend.normalize.linear_rule(), lengths{T}, 0, T);
}

}  // namespace

TEST_CASE("each score is multiplied by the gates of the later positions")
{
    const auto phi = [](double x) { return x > 0 ? x + 1 : std::exp(x); };
    for (const std::size_t T : {std::size_t{3}, std::size_t{70}}) {  // pair by pair, and in linear time
        const auto h = random({1, T, N}, 1), q = random({1, T, N}, 2);
        const auto divided = shares(fades(elu));
        const auto plain = sums(fades(score::dot{}));
        CHECK(is_linear(divided, T, causal{}) == (T == 70));
        const auto a = divided(divided.on(h), q, causal{}), c = plain(plain.on(h), q, causal{});
        for (std::size_t s = 0; s < T; ++s) {
            std::vector<double> by_ratio(N, 0.0), by_sum(N, 0.0);
            double total = 0, left = 1;
            for (std::size_t j = s + 1; j-- > 0;) {
                double dot = 0, of_features = 0, gate = b(0);
                for (std::size_t i = 0; i < N; ++i) {
                    dot += q(0, s, i) * h(0, j, i);
                    of_features += phi(q(0, s, i)) * phi(h(0, j, i));
                    gate += w(i, 0) * h(0, j, i);
                }
                for (std::size_t i = 0; i < N; ++i) {
                    by_ratio[i] += left * of_features * h(0, j, i);
                    by_sum[i] += left * dot * h(0, j, i);
                }
                total += left * of_features;
                left /= 1 + std::exp(-gate);
            }
            for (std::size_t i = 0; i < N; ++i) {
                CHECK(a(0, s, i) == support::approx(by_ratio[i] / total));
                CHECK(c(0, s, i) == support::approx(by_sum[i]));
            }
        }
    }
}

TEST_CASE("linear time equals pair by pair, forward and backward, and other cases fall back to pairs")
{
    const lengths real({70, 33, 0});
    const auto off = [&](const auto& attend, const auto& mask, std::size_t S) {
        return support::distance_from_one_by_one(attend, mask, real, S, 70);
    };
    const auto shared = shares(fades(elu));
    CHECK(off(shared, causal{}, 70) < 1e-11);
    CHECK(off(sums(fades(score::rotary{score::scaled_dot{}})), causal{}, 75) < 1e-11);  // some queries are at the end
    // Queries before their visible keys, other masks, and a second decay.
    CHECK_FALSE(detail::fits_sums(shared.score, {}, lengths{70}, 0, 20));
    CHECK(detail::fits_sums(shared.score, {}, lengths{70}, 50, 20));
    CHECK_FALSE(is_linear(shared, 70, no_mask{}));
    CHECK_FALSE(is_linear(sums(fades(score::dot{}), 0.9), 70, causal{}));
    CHECK_FALSE(detail::fades<decltype(elu)>);
    CHECK(off(shared, causal{}, 20) < 1e-11);
    CHECK(off(sums(fades(score::dot{}), 0.9), causal{}, 70) < 1e-11);
}

TEST_CASE("a stream of words and a growing memory equal all at once, and a stream trains")
{
    const std::size_t T = 23;
    const auto h = random({2, T, N}, 1), q = random({2, T, N}, 2);
    const auto each = [&](const auto& attend) {
        const auto must = attend(attend.on(h), q, causal{});
        for (const std::size_t chunk : {std::size_t{1}, std::size_t{7}}) {
            CHECK(support::distance_where_it_grows(attend, h, q, must, chunk) < 1e-12);
            CHECK(support::distance_as_a_stream(attend, h, q, must, 0, chunk) < 1e-12);
        }
    };
    each(shares(fades(elu)));
    each(sums(fades(score::scaled_dot{})));
    const auto trained = [&](const auto& words, const auto& query, const auto& W, const auto& bias) {
        const auto attend = shares(score::gated_decay{elu, W, bias});
        const streaming generate{attend};
        const auto state = generate.start(attend.on(words, lengths{5, 3}));
        return generate.answer(generate.extend(state, attend.on(words)), query);
    };
    check_some_on_the_tape(trained, random({2, 5, N}, 1), random({2, N}, 2), w, b);
}

TEST_CASE("gradients with respect to annotations, queries, gate and bias, in linear time and pair by pair")
{
    for (const std::size_t T : {std::size_t{3}, std::size_t{66}}) {
        const auto f = [&](const auto& h, const auto& q, const auto& W, const auto& bias) {
            const auto attend = shares(score::gated_decay{elu, W, bias});
            return attend(attend.on(h), q, causal{});
        };
        check_some_on_the_tape(f, random({1, T, 2}, 1), random({1, T, 2}, 2), random({2, 1}, 3), random({1}, 4));
    }
}

TEST_CASE("in float, over a long memory: distant positions decay to 0, without overflow")
{
    const std::size_t T = 3000;
    array<float, 3> h(shape_of_rank<3>{1, T, 2}, 1.0f), q = h;
    const auto attend_with = [&](float bias) {
        return sums(
            score::gated_decay{score::dot{}, array<float, 2>(shape_of_rank<2>{2, 1}, 0.0f), array<float, 1>{bias}});
    };
    for (const float bias : {0.5f, -200.0f}) {  // F = −1,422 and −600,000 at the last word
        const auto attend = attend_with(bias);
        const auto all = attend(attend.on(h), q, causal{});
        const double gate = 1 / (1 + std::exp(-static_cast<double>(bias)));  // Σ_age gate^age · 2
        CHECK(all(0, T - 1, 0) == doctest::Approx(2 / (1 - gate)).epsilon(1e-3));
        const auto last = attend.step(attend.on(h), ops::step_of(q, T - 1), [&] {
            auto state = attend.start(attend.on(h));
            state.step = T - 1;
            return state;
        }());
        CHECK(last.weights(0, 0) == 0);
        CHECK(last.context(0, 0) == doctest::Approx(all(0, T - 1, 0)).epsilon(1e-3));
    }
}

TEST_CASE("heads have separate gates; the contracts; errors")
{
    const std::size_t T = 40;
    const auto h = random({2, T, N}, 1), q = random({2, T, N}, 2);
    const std::vector heads{shares(score::gated_decay{elu, random({3, 1}, 23), b}),
                            shares(score::gated_decay{elu, random({3, 1}, 24), b})};
    const multi_head attend{heads, random({N, 6}, 3), random({N, 6}, 4), random({N, 6}, 5), random({6, N}, 6)};
    const auto is = attend(attend.on(h), q, causal{});
    CHECK(support::distance_where_it_grows(attend, h, q, is, 5) < 1e-12);

    const auto W = random({5, 1}, 11);
    for (const auto& report :
         {verify(shares(score::gated_decay{elu, W, b}), {.query = 5, .width = 5}),
          verify(sums(score::gated_decay{score::scaled_dot{}, W, b}), {.query = 5, .width = 5}),
          verify(
              attention{score::gated_decay{score::additive{random({3, 4}, 5), random({5, 4}, 6), random({4}, 7)}, W, b},
                        normalize::softmax{}, combine::weighted_sum{}},
              {.query = 3, .width = 5})})
        CHECK_MESSAGE(bool(report), report.text());
    CHECK_THROWS_AS((void)sums(fades(score::dot{})).on(random({1, 3, N + 1}, 1)), shape_error);
}

TEST_CASE("operations")
{
    const auto e = random({3, 5}, 1), d = random({3, 5}, 2);
    CHECK_GRADIENT([](const auto& x, const auto& y) { return ops::decay_history(x, y); }, e, d);
    CHECK(ops::decay_history(e, d)(0, 0) == support::approx(e(0, 0) * std::exp(std::min(0.0, d(0, 0)))));
    CHECK(ops::decay_history(array<float, 1>{2}, array<float, 1>{1e4f})(0) == 2);
    CHECK(ops::decay_history(array<float, 1>{2}, array<float, 1>{-1e4f})(0) == 0);

    const lengths real{66, 2};
    const auto gates = ops::carried_sums(ops::log_sigmoid(random({2, 66, 1}, 3)));
    const auto q = random({2, 67, 2}, 4), v = random({2, 66, 3}, 6);
    const auto f = [&](const auto& queries, const auto& keys, const auto& values) {
        return ops::gated_linear_attention(queries, keys, values, real, 0, false);
    };
    CHECK_GRADIENT(f, q, ops::concat(gates, random({2, 66, 2}, 5)), v);
    CHECK_THROWS_WITH_AS(f(q, random({2, 66, 2}, 5), v), doctest::Contains("two columns wider"), shape_error);
    CHECK_THROWS_WITH_AS(f(q, random({2, 66, 1}, 5), v), doctest::Contains("no columns of sums"), shape_error);
}
