// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/papers/positions.hpp>
#include <support/approx.hpp>
#include <support/drawn_masks.hpp>
#include <support/gradients.hpp>
#include <support/tensors.hpp>

#include <cmath>
#include <utility>
#include <vector>

using namespace heed;
using support::distance;
using support::random;

namespace {

constexpr std::size_t B = 3, T = 9, S = 4, N = 4;

const auto far = random({B, std::size_t{13}}, 3);
const auto f = [](auto e, score_index p, const auto& bias) {
    return e * bias(p.batch, p.key) + bias(0, p.key - p.query + 4);
};
const lengths real({T, 5, 1});

auto by(const auto& normalize)
{
    return attention{score::modified{score::dot{}, far, f}, normalize, combine::weighted_sum{}};
}

/// Contexts of softmax over keys begin … end − 1 of each query and sentence, in scalar loops.
array<double, 3> within(const array<double, 3>& h, const array<double, 3>& q, const auto& window)
{
    array<double, 3> contexts({B, S, N});
    for (std::size_t b = 0; b < B; ++b) {
        for (std::size_t s = 0; s < S; ++s) {
            const auto [begin, end] = window(b, s);
            double sum = 0;
            std::vector<double> context(N, 0.0);
            for (std::size_t t = begin; t < end; ++t) {
                double e = 0;
                for (std::size_t i = 0; i < N; ++i) e += q(b, s, i) * h(b, t, i);
                const double p = std::exp(e * far(b, t) + far(0, t + 4 - s));
                sum += p;
                for (std::size_t i = 0; i < N; ++i) context[i] += p * h(b, t, i);
            }
            for (std::size_t i = 0; i < N; ++i) contexts(b, s, i) = sum == 0 ? 0 : context[i] / sum;
        }
    }
    return contexts;
}

}  // namespace

TEST_CASE("a function of indices, one query after another, with and without a window")
{
    const auto h = random({B, T, N}, 1), q = random({B, S, N}, 2);
    const std::size_t reach = 2;
    const auto near = by(normalize::local_m{reach});
    const auto centerd = [&](std::size_t b, std::size_t s) {
        const auto found = near.normalize.range_at(s, real[b]);
        return std::pair(found.first, found.first + found.count);
    };
    CHECK(distance(near(near.on(h, real), q), within(h, q, centerd)) < 1e-12);
    const auto all = by(normalize::softmax{});
    const auto everywhere = [&](std::size_t b, std::size_t) { return std::pair(std::size_t{0}, real[b]); };
    const auto memory = all.on(h, real);
    auto state = all.start(memory);
    const auto contexts = within(h, q, everywhere);
    for (std::size_t s = 0; s < S; ++s) {
        auto next = all.step(memory, ops::step_of(q, s), state);
        CHECK(distance(next.context, ops::step_of(contexts, s)) < 1e-12);
        state = next.state;
    }
}

TEST_CASE("gradients through a window")
{
    const auto h = random({B, T, N}, 1), q = random({B, S, N}, 2);
    CHECK_GRADIENT(
        [](const auto& table, const auto& queries, const auto& annotations) {
            const attention near{score::modified{score::dot{}, table, f}, normalize::local_m{2},
                                 combine::weighted_sum{}};
            return near(near.on(annotations, real), queries);
        },
        far, q, h);
}

namespace {

/// Contexts of 64 queries over 80 keys, followed by the gradients of their inputs. In tiles, or `composed`, as with a
/// boolean mask.
std::vector<double> by_function(const auto& function, bool composed)
{
    constexpr std::size_t queries = 64, keys = 80, width = 5;
    const attention attend{score::modified{score::scaled_dot{}, function}, normalize::softmax{},
                           combine::weighted_sum{}};
    ad::tape<double> on;
    const auto Q = random({1, queries, width}, 1), K = random({1, keys, width}, 2), V = random({1, keys, 3}, 4);
    const auto q = on.parameter(Q), k = on.parameter(K), v = on.parameter(V);
    const auto memory = attend.on(k, v);
    const auto contexts = [&]() -> ad::var<double, 3> {
        if (composed)
            return support::without_tiles(attend, memory, q, boolean_mask{array<bool, 3>({1, queries, keys}, true)});
        return attend(memory, q);
    }();
    on.backward(ops::dot(contexts, random({1, queries, 3}, 5)));
    std::vector<double> all;
    const auto add = [&](const auto& x) { all.insert(all.end(), x.data, x.data + x.size()); };
    add(contexts.value());
    add(on.gradient(q));
    add(on.gradient(k));
    add(on.gradient(v));
    return all;
}

/// The same contexts in scalar loops.
std::vector<double> by_number(const auto& function)
{
    constexpr std::size_t queries = 64, keys = 80, width = 5;
    const auto q = random({1, queries, width}, 1), k = random({1, keys, width}, 2), v = random({1, keys, 3}, 4);
    std::vector<double> all;
    for (std::size_t s = 0; s < queries; ++s) {
        double sum = 0, context[3] = {};
        for (std::size_t t = 0; t < keys; ++t) {
            double e = 0;
            for (std::size_t i = 0; i < width; ++i) e += q(0, s, i) * k(0, t, i) / std::sqrt(double{width});
            const double w = std::exp(function(e, static_cast<double>(s), static_cast<double>(t)));
            sum += w;
            for (std::size_t i = 0; i < 3; ++i) context[i] += w * v(0, t, i);
        }
        for (const double c : context) all.push_back(c / sum);
    }
    return all;
}

}  // namespace

TEST_CASE("a float constant does not reduce the precision of double scores: in tiles, composed, and in their gradients")
{
    const std::vector<float> floats{0.3F, 0.7F};
    const std::vector<double> same(floats.begin(), floats.end());
    const auto in_float = looked_up(floats);
    const auto in_double = looked_up(same);
    const double third = double{0.3F}, seventh = double{0.7F};
    const auto check = [](const auto& with_floats, const auto& with_doubles, const auto& plain) {
        const auto must = by_function(with_doubles, true), contexts = by_number(plain);
        for (const bool composed : {false, true}) {
            CAPTURE(composed);
            const auto is = by_function(with_floats, composed);
            REQUIRE(is.size() == must.size());
            for (std::size_t i = 0; i < contexts.size(); ++i) CHECK(is[i] == support::approx(contexts[i]));
            for (std::size_t i = contexts.size(); i < is.size(); ++i)
                CHECK(is[i] == support::approx(must[i], support::gradient_tolerance<double>));
        }
    };
    // A product, a quotient and a table of constants, each in a score; a single constant term would not change the
    // weights.
    check(
        [=](auto e, score_index p) {
            const auto apart = abs(p.query - p.key);
            return e * (1 + p.key / 0.7F / 100) - 0.3F * apart - in_float(p.key % 2) * apart - tanh(e - 0.3F);
        },
        [=](auto e, score_index p) {
            const auto apart = abs(p.query - p.key);
            return e * (1 + p.key / seventh / 100) - third * apart - in_double(p.key % 2) * apart - tanh(e - third);
        },
        [=](double e, double s, double t) {
            const double apart = std::abs(s - t), some = std::fmod(t, 2) == 0 ? third : seventh;
            return e * (1 + t / seventh / 100) - third * apart - some * apart - std::tanh(e - third);
        });
    const auto alibi = heed::papers::press2022::linear_bias{3};
    const double slope = std::exp2(-8.0 / 3);
    check(
        alibi, [=](auto e, score_index p) { return e - slope * (p.query - p.key); },
        [=](double e, double s, double t) { return e - slope * (s - t); });
}

TEST_CASE("a function of the score reads the sentence index, also in a step by rows")
{
    const auto by_sentence = [](auto e, score_index p) { return e * (1 + p.batch) - 0.1 * p.key * p.batch; };
    const auto each = [&](const auto& base, const auto& normalize) {
        const attention attend{score::modified{base, by_sentence}, normalize, combine::weighted_sum{}};
        const auto h = random({5, 30, 4}, 1);
        const auto q = random({5, 4}, 2);
        const auto memory = attend.on(h, lengths({30, 17, 0, 5, 30}));
        auto state = attend.start(memory);
        for (int s = 0; s < 3; ++s) {
            const auto is = attend.step(memory, q, state), must = attend.compose(memory, q, state);
            CHECK(support::distance(is.context, must.context) < 1e-12);
            CHECK(support::distance(is.weights, must.weights) < 1e-12);
            ad::tape<double> on;
            const auto lifted = ad::lift(on, attend);
            const auto Q = on.parameter(q);
            const auto taped = lifted.read(lifted.on(on.parameter(h), lengths({30, 17, 0, 5, 30})), Q, state);
            CHECK(support::distance(taped.context.value(), must.context) < 1e-12);
            state = is.state;
        }
    };
    each(score::forgetting{score::dot{}, random({4, 1}, 3), random({1}, 4)}, normalize::decayed_temporal{0.7, 0.2});
    each(score::cosine{}, normalize::decayed_temporal{0.7, 0.2});
    each(score::match{}, normalize::entmax15{});
}

#if defined(HEED_SIMD_HAS_MXCSR)
TEST_CASE("distant scores produce no subnormal numbers, which are slow")
{
    const attention attend{score::modified{score::scaled_dot{}, heed::papers::press2022::linear_bias{4}},
                           normalize::softmax{}, combine::weighted_sum{}};
    const auto subnormal = [](const tensor auto& x) {
        std::size_t count = 0;
        for (std::size_t i = 0, n = view_of(x).size(); i < n; ++i)
            count += std::fpclassify(view_of(x).data[i]) == FP_SUBNORMAL ? 1U : 0U;
        return count;
    };
    const auto queries = support::random<float>({1, 64, 8}, 1), keys = support::random<float>({1, 512, 8}, 2),
               values = support::random<float>({1, 512, 8}, 3);
    const auto memory = attend.on(keys, values);
    CHECK(subnormal(attend.step(memory, ops::step_of(queries, 63), attend.start(memory)).weights) == 0);
    ad::tape<float> tape;
    const auto k = tape.parameter(keys), v = tape.parameter(values);
    const auto contexts = attend(attend.on(k, v), queries, causal{});
    tape.backward(ops::dot(contexts, contexts));
    CHECK(subnormal(tape.gradient(k)) == 0);
    CHECK(subnormal(tape.gradient(v)) == 0);
}
#endif
