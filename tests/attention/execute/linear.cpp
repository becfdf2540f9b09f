// SPDX-License-Identifier: BSD-3-Clause
#include <heed/attention/execute/linear.hpp>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/many_queries.hpp>

using namespace heed;
using support::random;

// Linear time: equal to one query after another, forward and backward, all at once, in chunks and one by one.

namespace {

constexpr std::size_t D = 4;

template <class Score, class Normalize, class Mask>
void check(const Score& score, const Normalize& normalize, const Mask& mask, const lengths& real, std::size_t S,
           std::size_t T)
{
    CHECK(support::distance_from_one_by_one(attention{score, normalize, combine::weighted_sum{}}, mask, real, S, T) <
          1e-11);
}

/// Whether the linear form runs.
template <class Attention>
bool is_linear(const Attention& attend, std::size_t T)
{
    const auto memory = attend.on(random({1, T, D}, 1));
    return detail::plan<Attention, decltype(attend.project(random({1, T, D}, 1))),
                        std::remove_cvref_t<decltype(memory)>, causal>::linear &&
           detail::worth_sums({1, T, D}, T, D);
}

}  // namespace

TEST_CASE("one query after another, and all at once")
{
    const lengths real({70, 33, 0});
    const score::kernel elu{score::elu_plus_one{}};
    const score::kernel drawn{score::positive_random{random({D, 6}, 9)}};
    CHECK(is_linear(attention{elu, normalize::ratio{}, combine::weighted_sum{}}, 70));
    const auto each = [&](const auto& score, const auto& normalize) {
        check(score, normalize, no_mask{}, real, 60, 70);
        check(score, normalize, causal{}, real, 70, 70);
        check(score, normalize, causal{}, real, 20, 70);
        check(score, normalize, lengths({5, 70, 2}), real, 30, 70);
        check(score, normalize, causal{}, lengths({3, 2}), 3, 3);  // too short for linear time
    };
    each(elu, normalize::ratio{});
    each(elu, normalize::ratio{0.9});
    each(drawn, normalize::ratio{});
    each(score::scaled_dot{}, normalize::retention{0.9});
    each(score::general{random({D, D}, 5)}, normalize::retention{});
}

TEST_CASE("with other masks, and with softmax, scores of features are computed pair by pair")
{
    const lengths real({70, 33, 0});
    const score::kernel elu{score::elu_plus_one{}};
    present odd(shape_of_rank<2>{3, 70});
    for (std::size_t i = 1; i < 210; i += 2) odd[i] = 1;
    check(elu, normalize::ratio{}, odd, real, 60, 70);
    check(elu, normalize::softmax{}, causal{}, real, 70, 70);
}

TEST_CASE("heads")
{
    const std::size_t T = 40;
    const auto h = random({2, T, D}, 1), q = random({2, T, D}, 2);
    const multi_head attend{
        std::vector(2, attention{score::kernel{score::elu_plus_one{}}, normalize::ratio{0.9}, combine::weighted_sum{}}),
        random({D, 6}, 3), random({D, 6}, 4), random({D, 6}, 5), random({6, D}, 6)};
    const auto memory = attend.on(h);
    const auto is = attend(memory, q, causal{});
    auto state = attend.start(memory);
    for (std::size_t s = 0; s < T; ++s) {
        auto next = attend.step(memory, ops::step_of(q, s), state, lengths({s + 1, s + 1}));
        for (std::size_t i = 0; i < D; ++i) CHECK(is(1, s, i) == support::approx(next.context(1, i)));
        state = std::move(next.state);
    }
}

// The operation itself, by its definition in scalar loops.

namespace {

struct sized {
    std::size_t B, S, T, F, D;
    bool causal;
    ops::rule_of_sums rule;
};

array<double, 3> positive(array<double, 3> x)
{
    for (double& v : x) v = std::abs(v) + 0.1;
    return x;
}

/// The definition in scalar loops.
std::vector<double> by_hand(const array<double, 3>& q, const array<double, 3>& k, const array<double, 3>& v,
                            const lengths& real, const sized& z)
{
    std::vector<double> all(z.B * z.S * z.D, 0.0);
    for (std::size_t b = 0; b < z.B; ++b) {
        for (std::size_t s = 0; s < z.S; ++s) {
            std::size_t n = real[b];
            if (z.causal) n = n + s + 1 > z.S ? n + s + 1 - z.S : 0;
            std::vector<double> w;
            double total = 0;
            for (std::size_t t = 0; t < n; ++t) {
                double sum = 0;
                for (std::size_t i = 0; i < z.F; ++i) sum += q(b, s, i) * k(b, t, i);
                w.push_back(sum * std::pow(z.rule.decay, static_cast<double>(n - 1 - t)));
                total += w.back();
            }
            for (std::size_t t = 0; t < n; ++t) {
                for (std::size_t i = 0; i < z.D; ++i)
                    all[(b * z.S + s) * z.D + i] += w[t] / (z.rule.divides ? total : 1) * v(b, t, i);
            }
        }
    }
    return all;
}

const std::vector<sized> sizes{
    {2, 5, 7, 3, 4, false, {1, true}},      {2, 7, 7, 3, 4, true, {1, true}},
    {2, 5, 7, 3, 4, true, {0.9, true}},     {1, 70, 150, 4, 3, true, {0.95, true}},
    {2, 150, 70, 2, 5, true, {0.9, false}}, {2, 130, 129, 3, 1, true, {1, false}},
    {1, 64, 64, 1, 2, true, {0.8, true}},   {1, 70, 150, 4, 3, false, {0.98, true}},
    {1, 3, 200, 4, 3, true, {0.98, false}}, {1, 200, 3, 4, 3, true, {0.7, true}},
    {1, 1, 1, 1, 1, true, {0.5, true}},
};

lengths real_of(const sized& z)
{
    lengths real(std::vector<std::size_t>(z.B, z.T));
    if (z.B > 1) real = lengths({z.T, z.T - 2});
    return real;
}

}  // namespace

TEST_CASE("contexts match the definition")
{
    for (const sized& z : sizes) {
        CAPTURE(z.S);
        CAPTURE(z.T);
        const auto q = positive(random({z.B, z.S, z.F}, 1)), k = positive(random({z.B, z.T, z.F}, 2)),
                   v = random({z.B, z.T, z.D}, 3);
        const auto is = ops::linear_attention(q, k, v, real_of(z), z.causal, z.rule);
        const auto must = by_hand(q, k, v, real_of(z), z);
        double worst = 0;
        for (std::size_t i = 0; i < must.size(); ++i) worst = std::max(worst, std::abs(is.data()[i] - must[i]));
        CHECK(worst < 1e-12);
    }
}

TEST_CASE("gradients by finite differences")
{
    for (const sized& z : sizes) {
        if (z.S * z.T > 200 * 3 && z.S != 70) continue;  // finite differences of long inputs are slow
        CAPTURE(z.S);
        CAPTURE(z.T);
        const auto f = [&](const auto& q, const auto& k, const auto& v) {
            return ops::linear_attention(q, k, v, real_of(z), z.causal, z.rule);
        };
        CHECK_GRADIENT(f, positive(random({z.B, z.S, z.F}, 1)), positive(random({z.B, z.T, z.F}, 2)),
                       random({z.B, z.T, z.D}, 3));
    }
}

TEST_CASE("floats agree with doubles, forward and backward")
{
    // Contexts, and the gradients of queries, keys and values, for the same inputs.
    const auto answers = [](const sized& z, const auto& q, const auto& k, const auto& v) {
        using T = element_of<decltype(q)>;
        ad::tape<T> on;
        const auto Q = on.parameter(q), K = on.parameter(k), values = on.parameter(v);
        const auto contexts = ops::linear_attention(Q, K, values, real_of(z), z.causal, z.rule);
        on.backward(ops::dot(contexts, random<T>({z.B, z.S, z.D}, 4)));
        std::vector<std::vector<double>> all;
        const auto add = [&](const auto& x) { all.emplace_back(x.data, x.data + x.size()); };
        add(contexts.value());
        add(on.gradient(Q));
        add(on.gradient(K));
        add(on.gradient(values));
        return all;
    };
    const auto in_float = [](const array<double, 3>& x) {
        array<float, 3> y(shape_of(x));
        std::transform(x.begin(), x.end(), y.begin(), [](double each) { return static_cast<float>(each); });
        return y;
    };
    for (const sized& z : sizes) {
        CAPTURE(z.S);
        CAPTURE(z.T);
        const auto q = positive(random({z.B, z.S, z.F}, 1)), k = positive(random({z.B, z.T, z.F}, 2)),
                   v = random({z.B, z.T, z.D}, 3);
        const auto is = answers(z, in_float(q), in_float(k), in_float(v)), must = answers(z, q, k, v);
        for (std::size_t i = 0; i < must.size(); ++i) {
            double worst = 0, greatest = 0;
            for (std::size_t j = 0; j < must[i].size(); ++j) {
                const double off = std::abs(is[i][j] - must[i][j]);
                worst = off >= 0 ? std::max(worst, off) : std::numeric_limits<double>::infinity();
                greatest = std::max(greatest, std::abs(must[i][j]));
            }
            CHECK(worst < 1e-5 * (1 + greatest));
            if (z.F > 1) CHECK(greatest > 1e-3);  // a single feature cancels
        }
    }
}

TEST_CASE("values beyond the real positions are not read")
{
    const sized z{1, 4, 6, 2, 3, true, {}};
    auto q = positive(random({1, 4, 2}, 1)), k = positive(random({1, 6, 2}, 2));
    auto v = random({1, 6, 3}, 3);
    const auto must = ops::linear_attention(q, k, v, lengths{4}, true, z.rule);
    for (std::size_t t = 4; t < 6; ++t) k(0, t, 0) = v(0, t, 1) = std::numeric_limits<double>::quiet_NaN();
    CHECK(ops::linear_attention(q, k, v, lengths{4}, true, z.rule) == must);
}

TEST_CASE("sums that have no finite inverse divide contexts, and have no gradient without a loss")
{
    const float least = std::numeric_limits<float>::denorm_min();
    const array<float, 3> q{{{1.0f}, {least}}}, k{{{1.0f}, {3.0f}}}, v{{{4.0f}, {8.0f}}};  // [1,2,1]
    const auto plain = ops::linear_attention(q, k, v, lengths{2}, false, ops::rule_of_sums{});
    CHECK(plain(0, 0, 0) == 7);                           // (4 + 3 · 8) / 4
    CHECK((plain(0, 1, 0) == 7 || plain(0, 1, 0) == 0));  // with SSE, subnormal numbers are 0 here
    const array<float, 2> query{{least}};
    const array<float, 3> sums{{{28.0f, 4.0f}}};
    CHECK(ops::read_sums(query, sums, true)(0, 0) == 7);

    ad::tape<float> on;
    const auto lifted = [&](const auto& x) { return on.parameter(x); };
    const auto Q = lifted(q), K = lifted(k), V = lifted(v), sums_on_tape = lifted(sums);
    const auto read = ops::read_sums(lifted(query), sums_on_tape, true);
    const auto contexts = ops::linear_attention(Q, K, V, lengths{2}, false, ops::rule_of_sums{});
    const array<float, 3> first{{{1.0f}, {0.0f}}};
    on.backward(ops::add(ops::dot(contexts, first), ops::dot(read, array<float, 2>{{0.0f}})));
    for (const auto& x : {Q, K, V, sums_on_tape}) {
        const auto slopes = on.gradient(x);
        for (std::size_t i = 0; i < slopes.size(); ++i) CHECK(std::isfinite(slopes.data[i]));
    }
    CHECK(on.gradient(V).data[0] == 0.25f);
    CHECK(on.gradient(V).data[1] == 0.75f);
}

TEST_CASE("wrong shapes are reported by name")
{
    const auto q = random({2, 3, 4}, 1), k = random({2, 5, 4}, 2), v = random({2, 5, 3}, 3);
    CHECK_THROWS_WITH_AS(ops::linear_attention(q, random({2, 5, 3}, 2), v, lengths({5, 5}), false, ops::rule_of_sums{}),
                         doctest::Contains("the keys"), shape_error);
    CHECK_THROWS_WITH_AS(ops::linear_attention(q, k, random({2, 4, 3}, 2), lengths({5, 5}), false, ops::rule_of_sums{}),
                         doctest::Contains("the values"), shape_error);
}

namespace streams {

using support::random;
using support::words_of;

namespace {

constexpr std::size_t D = 4;

}  // namespace

TEST_CASE("a stream in chunks, one by one and all at once agrees, and trains")
{
    const std::size_t T = 23;
    const auto h = random({2, T, D}, 1), q = random({2, T, D}, 2);
    const auto each = [&](const auto& attend) {
        const auto must = attend(attend.on(h), q, causal{});
        for (const std::size_t chunk : {std::size_t{1}, std::size_t{7}})
            CHECK(support::distance_as_a_stream(attend, h, q, must, 0, chunk) < 1e-12);
        const auto trained = [&](const auto& words, const auto& query) {
            const streaming generate{attend};
            const auto sums = generate.start(attend.on(words, lengths{5, 3}));
            return generate.answer(generate.extend(sums, attend.on(words)), query);
        };
        CHECK_GRADIENT(trained, random({2, 5, D}, 1), random({2, D}, 2));
        // Positions that a mask hides are in no sum.
        boolean_mask<2> mask(shape_of_rank<2>{2, T});
        for (std::size_t i = 0; i < 2 * T; ++i) mask[i] = i % 3 != 1;
        const auto memory = attend.on(h, mask);
        const auto one = ops::step_of(q, 0);
        const streaming generate{attend};
        CHECK(support::distance(generate.answer(generate.start(memory), one),
                                attend.step(memory, one, attend.start(memory)).context) < 1e-12);
    };
    each(attention{score::kernel{score::elu_plus_one{}}, normalize::ratio{0.9}, combine::weighted_sum{}});
    each(attention{score::kernel{score::positive_random{random({D, 6}, 9)}}, normalize::ratio{},
                   combine::weighted_sum{}});
    each(attention{score::scaled_dot{}, normalize::retention{0.8}, combine::weighted_sum{}});
}

TEST_CASE("sums: values computed in scalar code, padding, and shapes that do not fit")
{
    const array<double, 3> none(shape_of_rank<3>{1, 2, 2}, 0.0);
    const array<double, 3> keys{{{1, 2}, {3, 0}, {9, 9}}}, values{{{5}, {7}, {9}}};
    const auto sums = ops::add_to_sums(none, keys, values, lengths{2}, 0.5);  // the first key is one word older
    CHECK(support::same_bits(sums, array<double, 3>{{{0.5 * 5 + 3 * 7, 0.5 + 3}, {0.5 * 10, 1}}}));
    CHECK(support::same_bits(ops::add_to_sums(sums, keys, values, lengths{0}, 0.5), sums));
    const array<double, 2> query{{1, 2}};
    CHECK(support::same_bits(ops::read_sums(query, sums, false), array<double, 2>{{33.5}}));
    CHECK(ops::read_sums(query, sums, true)(0, 0) == support::approx(33.5 / 5.5));
    CHECK(ops::read_sums(query, none, true)(0, 0) == 0);
    CHECK(support::message_of<shape_error>([&] {
              (void)ops::add_to_sums(none, random({1, 3, 5}, 1), values, lengths{2}, 1.0);
          }).find("the sums") != std::string::npos);
    CHECK(support::message_of<shape_error>([&] {
              (void)ops::read_sums(random({1, 3}, 1), sums, true);
          }).find("the query") != std::string::npos);
}

}  // namespace streams
