// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/heed.hpp>
#include <heed/verify.hpp>
#include <support/tensors.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

// Dropout on weights: its effects, the values it does not change, and the rate.

using namespace heed;
using support::random;

namespace {

constexpr bool renormalized = true, classic = false;  // of ops::dropout_weights

/// One step of an attention on the tape: context, weights, and the gradient of an uneven loss with respect to the
/// query.
struct outcome {
    array<double, 2> context, weights, gradient;
};

template <class Attention>
outcome on_tape(const Attention& attend, const array<double, 3>& annotations, const array<double, 2>& query,
                const lengths& real)
{
    ad::tape<double> on;
    const auto q = on.parameter(query);
    const auto h = on.parameter(annotations);
    const auto memory = attend.on(h, real);
    const auto now = attend.step(memory, q, attend.start(memory));
    on.backward(ops::add(ops::dot(now.context, support::uneven(now.context.shape())),
                         ops::dot(now.weights, support::uneven(now.weights.shape()))));
    return {copy_of(now.context.value()), copy_of(now.weights.value()), copy_of(on.gradient(q))};
}

template <class Normalize>
auto over_dot(const Normalize& normalizer)
{
    return attention{score::dot{}, normalizer, combine::weighted_sum{}};
}

/// The report for additive scores with these options.
verification verified_with(const normalize::dropout_options& options)
{
    const attention attend{score::additive{random({3, 4}, 11), random({5, 4}, 12), random({4}, 14, 2.0)},
                           normalize::dropout{0.3, 5, normalize::softmax{}, options}, combine::weighted_sum{}};
    return verify(attend, {.query = 3, .width = 5});
}

/// The failed contracts, with their details.
std::vector<contract> broken_contracts(const verification& report)
{
    std::vector<contract> broken;
    for (const contract& c : report.contracts) {
        if (!c.passed) broken.push_back(c);
    }
    return broken;
}

}  // namespace

TEST_CASE("trap: dropout must not change the returned weights, which are those before dropout and sum to 1")
{
    const auto annotations = random({40, 6, 3}, 1);
    const auto query = random({40, 3}, 2);
    const auto real = lengths::full(40, 6);
    const auto without = on_tape(over_dot(normalize::softmax{}), annotations, query, real);
    for (const bool how : {classic, renormalized}) {
        const auto with = on_tape(over_dot(normalize::dropout{0.5, 3, normalize::softmax{}, {.renormalize = how}}),
                                  annotations, query, real);
        CHECK(support::same_bits(with.weights, without.weights));
        for (std::size_t b = 0; b < 40; ++b) {
            double sum = 0;
            for (std::size_t j = 0; j < 6; ++j) sum += with.weights(b, j);
            CHECK(sum == doctest::Approx(1).epsilon(1e-14));
        }
        CHECK(support::distance(with.context, without.context) > 0.1);
        CHECK(support::distance(with.gradient, without.gradient) > 0.1);
    }
}

TEST_CASE("trap: at inference nothing is dropped, unless requested")
{
    const auto annotations = random({4, 6, 3}, 1);
    const auto query = random({4, 3}, 2);
    const auto context = [&](const auto& normalizer) {
        const auto attend = over_dot(normalizer);
        const auto memory = attend.on(annotations);
        return attend.step(memory, query, attend.start(memory)).context;
    };
    const auto plain = context(normalize::softmax{});
    // Not bitwise equal: softmax's kernel divides a context by the sum of its weights once at the end.
    CHECK(support::distance(context(normalize::dropout{0.5, 3}), plain) < 1e-15);
    const auto dropped = context(normalize::dropout{0.5, 3, normalize::softmax{}, {.at_inference = true}});
    CHECK(support::distance(dropped, plain) > 0.1);
    const auto taped = on_tape(over_dot(normalize::dropout{0.5, 3}), annotations, query, lengths::full(4, 6));
    CHECK(support::distance(taped.context, dropped) < 1e-15);
}

TEST_CASE("p = 0 changes no bit")
{
    const auto annotations = random({3, 6, 3}, 1);
    const auto query = random({3, 3}, 2);
    const lengths real{6, 0, 2};
    const auto without = on_tape(over_dot(normalize::temporal{}), annotations, query, real);
    for (const bool how : {classic, renormalized}) {
        const normalize::dropout nothing{0, 3, normalize::temporal{}, {.renormalize = how, .at_inference = true}};
        const auto with = on_tape(over_dot(nothing), annotations, query, real);
        CHECK(support::same_bits(with.context, without.context));
        CHECK(support::same_bits(with.weights, without.weights));
        CHECK(support::same_bits(with.gradient, without.gradient));
    }
}

TEST_CASE_TEMPLATE("classic: each weight independently is 0 with probability p, or divided by 1 - p", T, float, double)
{
    const lengths real = lengths::full(400, 50);
    const auto weights = ops::softmax(random<T>({400, 50}, 1), real);
    for (const double p : {0.05, 0.5, 0.9}) {
        CAPTURE(p);
        const auto thinned = ops::dropout_weights(weights, real, p, 7u, classic);
        std::size_t dropped = 0, wrong = 0, pairs = 0;
        for (std::size_t i = 0; i < weights.size(); ++i) {
            const T is = thinned.data()[i];
            dropped += is == 0;
            if (i > 0) pairs += is == 0 && thinned.data()[i - 1] == 0;
            const T kept = static_cast<T>(static_cast<double>(weights.data()[i]) / (1 - p));
            wrong += is != 0 && std::abs(is - kept) > kept * T(1e-6);
        }
        CHECK(wrong == 0);
        const double n = static_cast<double>(weights.size());  // 20000: within 4 deviations
        CHECK(std::abs(static_cast<double>(dropped) / n - p) < 4 * std::sqrt(p * (1 - p) / n));
        CHECK(std::abs(static_cast<double>(pairs) / n - p * p) < 4 * std::sqrt(p * p * (1 - p * p) / n) * 2);
    }
}

TEST_CASE_TEMPLATE("renormalized: the remaining weights keep the sum of all, in every dimension", T, float, double)
{
    const double tolerance = sizeof(T) == 4 ? 1e-6 : 1e-14;
    const lengths real{9, 1, 0, 5};
    const auto weights = ops::sigmoid_weights(random<T>({4, 9, 3}, 1), real, 0.0);  // sums of anything
    const auto thinned = ops::dropout_weights(weights, real, 0.6, 7u, renormalized),
               cut = ops::dropout_weights(weights, real, 0.6, 7u, classic);
    std::size_t all_dropped = 0;
    for (std::size_t b = 0; b < 4; ++b) {
        for (std::size_t d = 0; d < 3; ++d) {
            double before = 0, after = 0, ratio = 0;
            for (std::size_t t = 0; t < 9; ++t) {
                before += static_cast<double>(weights(b, t, d));
                after += static_cast<double>(thinned(b, t, d));
                CHECK((thinned(b, t, d) == 0) == (cut(b, t, d) == 0));  // the same weights are dropped
                if (thinned(b, t, d) == 0) continue;
                const double here = static_cast<double>(thinned(b, t, d)) / static_cast<double>(weights(b, t, d));
                if (ratio != 0) CHECK(here == doctest::Approx(ratio).epsilon(tolerance * 10));
                ratio = here;
            }
            if (after == 0) {
                all_dropped += before != 0;
            } else {
                CHECK(after == doctest::Approx(before).epsilon(tolerance));
            }
        }
    }
    CHECK(all_dropped > 0);  // the row with one position: all weights are 0, without NaN
}

TEST_CASE("the dropped weights depend only on seed, step, row and position")
{
    const auto annotations = random({6, 5, 3}, 1);
    const auto query = random({6, 3}, 2);
    const auto context = [&](std::uint64_t seed, std::size_t step) {
        const auto attend = over_dot(normalize::dropout{0.5, seed, normalize::softmax{}, {.at_inference = true}});
        const auto memory = attend.on(annotations);
        auto state = attend.start(memory);
        state.step = step;
        return attend.step(memory, query, state).context;
    };
    CHECK(support::same_bits(context(1, 0), context(1, 0)));
    CHECK_FALSE(support::same_bits(context(1, 0), context(1, 1)));
    CHECK_FALSE(support::same_bits(context(1, 0), context(2, 0)));

    const lengths real = lengths::full(64, 8);
    const auto weights = ops::softmax(random({64, 8, 40}, 1), real);
    auto padded = array<double, 3>(shape_of_rank<3>{64, 11, 40}, 0.0);
    for (std::size_t b = 0; b < 64; ++b) {
        for (std::size_t i = 0; i < 320; ++i) padded.data()[b * 440 + i] = weights.data()[b * 320 + i];
    }
    const auto thinned = ops::dropout_weights(weights, real, 0.5, 9u, classic),
               longer = ops::dropout_weights(padded, real, 0.5, 9u, classic);
    std::size_t different = 0;
    for (std::size_t b = 0; b < 64; ++b) {
        for (std::size_t i = 0; i < 320; ++i) different += thinned.data()[b * 320 + i] != longer.data()[b * 440 + i];
    }
    CHECK(different == 0);
    set_threads(3);
    const auto threaded = ops::dropout_weights(weights, real, 0.5, 9u, classic);
    set_threads(1);
    CHECK(support::same_bits(threaded, thinned));
}

TEST_CASE("the inner normalizer and coverage use weights without dropout")
{
    const auto annotations = random({2, 5, 3}, 1), queries = random({2, 3, 3}, 2);
    const attention with = over_dot(normalize::dropout{0.5, 3, normalize::temporal{}, {.at_inference = true}});
    const attention without = over_dot(normalize::temporal{});
    const auto memory = with.on(annotations);
    auto a = with.start(memory);
    auto b = without.start(memory);
    for (std::size_t s = 0; s < 3; ++s) {
        auto dropped = with.step(memory, ops::step_of(queries, s), a);
        auto whole = without.step(memory, ops::step_of(queries, s), b);
        CHECK(support::same_bits(dropped.weights, whole.weights));
        CHECK(support::same_bits(dropped.state.normalize.history, whole.state.normalize.history));
        a = std::move(dropped.state);
        b = std::move(whole.state);
    }
}

TEST_CASE("dropout within a window, and of a window")
{
    const auto annotations = random({30, 9, 3}, 1);
    const auto query = random({30, 3}, 2);
    const auto check = [&](const auto& normalizer) {
        const auto attend = over_dot(normalizer);
        const auto memory = attend.on(annotations);
        auto state = attend.start(memory);
        state.step = 4;
        const auto now = attend.step(memory, query, state);
        std::size_t zeros = 0;
        for (std::size_t b = 0; b < 30; ++b) {
            double sum = 0, kept[3] = {};
            for (std::size_t j = 0; j < 9; ++j) {
                sum += now.weights(b, j);
                if (j < 3 || j > 5) CHECK(now.weights(b, j) == 0);
                for (std::size_t d = 0; d < 3; ++d) kept[d] += now.weights(b, j) * annotations(b, j, d);
            }
            CHECK(sum == doctest::Approx(1).epsilon(1e-14));
            CHECK(std::abs(kept[0] - now.context(b, 0)) + std::abs(kept[1] - now.context(b, 1)) > 1e-9);
            zeros += now.context(b, 0) == 0;
        }
        CHECK(zeros < 30);
    };
    check(normalize::dropout{0.4, 3, normalize::local_m{1}, {.at_inference = true}});
    check(normalize::local_m{1, normalize::dropout{0.4, 3, normalize::softmax{}, {.at_inference = true}}});
}

TEST_CASE("p must be a probability below 1")
{
    const auto annotations = random({2, 5, 3}, 1);
    const auto query = random({2, 3}, 2);
    for (const double p : {1.0, -0.1, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
        CAPTURE(p);
        const auto attend = over_dot(normalize::dropout{p, 1});
        const auto memory = attend.on(annotations);
        const std::string message =
            support::message_of<error>([&] { attend.step(memory, query, attend.start(memory)); });
        CHECK(support::contains(message, "normalize::dropout: p is " + std::to_string(p)));
        CHECK(support::contains(message, "at least 0 and below 1"));
    }
}

TEST_CASE("dropout satisfies the contracts")
{
    const auto W = random({3, 4}, 11), U = random({5, 4}, 12), V = random({4, 5}, 13);
    const auto check = [](const verification& report) { CHECK_MESSAGE(bool(report), report.text()); };
    check(verified_with({.at_inference = true}));
    check(
        verify(attention{score::additive_per_dimension{W, U, V},
                         normalize::dropout{0.3, 5, normalize::temporal{}, {.renormalize = true, .at_inference = true}},
                         combine::elementwise_sum{}},
               {.query = 3, .width = 5}));
}

TEST_CASE("by default training and inference differ: dropout violates this one contract on purpose")
{
    const auto broken = broken_contracts(verified_with({}));
    REQUIRE(broken.size() == 1);
    CHECK(broken[0].name == "training and inference give the same results");
}
