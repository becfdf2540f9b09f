// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/losses.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

using namespace heed;
using support::random;

// Training operations: losses and dropout.

TEST_CASE("cross entropy: value and gradient, with weights, smoothing, and as one term of a loss")
{
    const auto x = random({2, 3, 4}, 1);
    const auto W = random({4, 5}, 2);
    const auto b = random({5}, 3);
    ops::expected_words<double> targets{word_ids(2, 3), {1.0, 0.5, 0.0, 2.0, 0.25, 1.0}};
    targets.words.ids = {0, 4, 2, 1, 1, 3};
    for (const double smoothing : {0.0, 0.1}) {
        double must = 0;
        for (std::size_t r = 0; r < 6; ++r) {
            std::vector<double> logits(5);
            double sum = 0;
            for (std::size_t v = 0; v < 5; ++v) {
                logits[v] = b(v);
                for (std::size_t k = 0; k < 4; ++k) logits[v] += x.data()[r * 4 + k] * W(k, v);
                sum += std::exp(logits[v]);
            }
            for (std::size_t v = 0; v < 5; ++v) {
                const double q = smoothing / 5 + (v == targets.words.ids[r] ? 1 - smoothing : 0);
                must -= targets.weights[r] * q * (logits[v] - std::log(sum));
            }
        }
        CHECK(ops::cross_entropy(x, W, b, targets, smoothing)() == doctest::Approx(must).epsilon(1e-13));
        const auto f = [&](const auto& s, const auto& M, const auto& v) {
            return ops::scale(ops::cross_entropy(s, M, v, targets, smoothing), 0.7);
        };
        const auto found = support::gradient_of<0b111>(f, x, W, b);
        CHECK_MESSAGE(bool(found), found.text());
    }
}

TEST_CASE("cross entropy of logits: summed and per word, with and without smoothing")
{
    const std::size_t S = 2, B = 3, V = 5;
    const auto logits = random({S, B, V}, 1, 2.0);
    ops::expected_words<double> targets{word_ids(S, B), {1.0, 0.5, 0.0, 2.0, 0.25, 1.0}};
    targets.words.ids = {0, 4, 2, 1, 1, 3};
    for (const double smoothing : {0.0, 0.1}) {
        double total = 0;
        const auto each = ops::cross_entropy_per_word(logits, targets, smoothing);
        REQUIRE(shape_of(each) == shape_of_rank<2>{S, B});
        for (std::size_t r = 0; r < S * B; ++r) {
            double sum = 0, loss = 0;
            for (std::size_t v = 0; v < V; ++v) sum += std::exp(logits.data()[r * V + v]);
            for (std::size_t v = 0; v < V; ++v) {
                const double q = smoothing / 5 + (v == targets.words.ids[r] ? 1 - smoothing : 0);
                loss -= targets.weights[r] * q * (logits.data()[r * V + v] - std::log(sum));
            }
            CHECK(each.data()[r] == doctest::Approx(loss).epsilon(1e-13));
            total += loss;
        }
        CHECK(ops::cross_entropy(logits, targets, smoothing)() == doctest::Approx(total).epsilon(1e-13));
        CHECK_GRADIENT([&](const auto& x) { return ops::cross_entropy_per_word(x, targets, smoothing); }, logits);
        CHECK_GRADIENT([&](const auto& x) { return ops::scale(ops::cross_entropy(x, targets, smoothing), 0.7); },
                       logits);
        // Logits that other operations read before and after.
        CHECK_GRADIENT(
            [&](const auto& x) {
                const auto both =
                    ops::add(ops::sum_last(ops::square(x)), ops::cross_entropy_per_word(x, targets, smoothing));
                return ops::add(both, ops::sum_last(x));
            },
            logits);
    }

    // Smoothing may be omitted. The logits of one step have no step axis.
    CHECK(ops::cross_entropy(logits, targets)() == ops::cross_entropy(logits, targets, 0.0)());
    const auto one = random({B, V}, 2);
    ops::expected_words<double> of_step{word_ids(1, B, 3), {1.0, 0.0, 2.0}};
    const auto single = ops::cross_entropy_per_word(one, of_step);
    REQUIRE(shape_of(single) == shape_of_rank<1>{B});
    CHECK(single(1) == 0);
    CHECK(ops::cross_entropy(one, of_step)() == doctest::Approx(single(0) + single(2)).epsilon(1e-14));
    CHECK_GRADIENT([&](const auto& x) { return ops::cross_entropy_per_word(x, of_step); }, one);
    CHECK_GRADIENT([&](const auto& x) { return ops::cross_entropy(x, of_step); }, one);

    // The fused form gives the same loss for x W + b.
    const auto x = random({S, B, 4}, 3);
    const auto W = random({4, V}, 4);
    const auto b = random({V}, 5);
    CHECK(ops::cross_entropy(ops::linear(x, W, b), targets, 0.1)() ==
          doctest::Approx(ops::cross_entropy(x, W, b, targets, 0.1)()).epsilon(1e-14));
}

TEST_CASE("cross entropy of logits: values in the padding change nothing, NaN included")
{
    ops::expected_words<double> targets{word_ids(2, 2, 1), {1.0, 1.0, 0.0, 1.0}};
    const auto clean = random({2, 2, 3}, 1);
    auto rubbish = clean;
    for (std::size_t v = 0; v < 3; ++v) rubbish(1, 0, v) = std::numeric_limits<double>::quiet_NaN();
    const auto results = [&](const array<double, 3>& logits, bool by_word) {
        ad::tape<double> on;
        const auto x = on.parameter(logits);
        if (by_word) {
            const auto each = ops::cross_entropy_per_word(x, targets, 0.1);
            CHECK(each.data()[2] == 0);
            on.backward(ops::dot(each, support::uneven(each.shape())));
        } else {
            on.backward(ops::cross_entropy(x, targets, 0.1));
        }
        return copy_of(on.gradient(x));
    };
    for (const bool by_word : {false, true}) {
        const auto gradient = results(rubbish, by_word);
        CHECK(support::same_bits(gradient, results(clean, by_word)));
        for (std::size_t v = 0; v < 3; ++v) CHECK(gradient(1, 0, v) == 0);
    }
    CHECK(
        support::same_bits(ops::cross_entropy_per_word(rubbish, targets), ops::cross_entropy_per_word(clean, targets)));
    CHECK(ops::cross_entropy(rubbish, targets)() == ops::cross_entropy(clean, targets)());
}

TEST_CASE("cross entropy: a word of weight 0 may have any id, such as -100")
{
    constexpr auto ignored = static_cast<std::uint32_t>(-100);
    const ops::expected_words<double> plain{word_ids(2, 2, 1), {1.0, 0.0, 0.0, 0.5}};
    ops::expected_words<double> other = plain;
    other.words.ids[1] = ignored;
    other.words.ids[2] = 3;  // the number of words
    const auto x = random({2, 2, 4}, 3);
    const auto W = random({4, 3}, 4);
    const auto b = random({3}, 5);
    const auto logits = ops::linear(x, W, b);
    for (const double smoothing : {0.0, 0.1}) {
        CHECK(ops::cross_entropy(logits, other, smoothing)() == ops::cross_entropy(logits, plain, smoothing)());
        CHECK(ops::cross_entropy(x, W, b, other, smoothing)() == ops::cross_entropy(x, W, b, plain, smoothing)());
        CHECK(support::same_bits(ops::cross_entropy_per_word(logits, other, smoothing),
                                 ops::cross_entropy_per_word(logits, plain, smoothing)));
        const auto gradient = [&](const ops::expected_words<double>& targets, int form) {
            ad::tape<double> on;
            const auto at = on.parameter(form == 2 ? x : logits);
            if (form == 0) on.backward(ops::cross_entropy(at, targets, smoothing));
            if (form == 1) {
                const auto each = ops::cross_entropy_per_word(at, targets, smoothing);
                on.backward(ops::dot(each, support::uneven(each.shape())));
            }
            if (form == 2) on.backward(ops::cross_entropy(at, on.constant(W), on.constant(b), targets, smoothing));
            return copy_of(on.gradient(at));
        };
        for (const int form : {0, 1, 2}) CHECK(support::same_bits(gradient(other, form), gradient(plain, form)));
    }
    // One step: [B,V].
    const ops::expected_words<double> step{word_ids(1, 2, ignored), {0.0, 0.0}};
    CHECK(ops::cross_entropy(random({2, 3}, 1), step)() == 0);
}

TEST_CASE("cross entropy of logits: shapes that do not fit are rejected")
{
    ops::expected_words<double> targets{word_ids(2, 2, 1), {1.0, 1.0, 0.0, 1.0}};
    const auto logits = random({2, 2, 3}, 1);
    CHECK(support::message_of<shape_error>([&] {
              ops::cross_entropy_per_word(random({2, 3, 3}, 1), targets);
          }) ==
          "cross_entropy_per_word: the targets are [2,2] but must be [2,3] (one word for each row of the logits)");
    CHECK(support::message_of<shape_error>([&] {
              ops::cross_entropy(random({2, 3}, 1), targets);
          }) == "cross_entropy: the targets are [2,2] but must be [1,2] (one word for each row of the logits)");
    targets.weights.pop_back();
    CHECK(support::message_of<shape_error>([&] { ops::cross_entropy(logits, targets); }) ==
          "cross_entropy: the weights are [3] but must be [4] (one for each target)");
    targets.weights.push_back(1);
    targets.words.ids[3] = 3;
    CHECK(support::message_of<error>([&] { ops::cross_entropy_per_word(logits, targets); }) ==
          "cross_entropy_per_word: target word 3 of a vocabulary of 3 words; ids count from 0");
}

TEST_CASE("expect: an ignored id, class weights and a mean, as in F.cross_entropy")
{
    const auto logits = random({2, 3, 4}, 5, 2.0);
    word_ids ids(2, 3);
    ids.ids = {3, 0, 1, 0, 2, 2};
    const std::vector<double> of_classes{7, 0.5, 2, 0.25};
    std::array<double, 6> loss{};  // −log p of each target
    for (std::size_t r = 0; r < 6; ++r) {
        double sum = 0;
        for (std::size_t v = 0; v < 4; ++v) sum += std::exp(logits.data()[r * 4 + v]);
        loss[r] = std::log(sum) - logits.data()[r * 4 + ids.ids[r]];
    }
    const auto cost = [&](const ops::target_weights<double>& how) {
        return ops::cross_entropy(logits, ops::expect<double>(ids, how))();
    };
    const auto close = [](double x) { return doctest::Approx(x).epsilon(1e-14); };
    CHECK(cost({}) == close(loss[0] + loss[1] + loss[2] + loss[3] + loss[4] + loss[5]));
    CHECK(cost({.mean = true}) == close((loss[0] + loss[1] + loss[2] + loss[3] + loss[4] + loss[5]) / 6));
    CHECK(cost({.ignored = 0}) == close(loss[0] + loss[2] + loss[4] + loss[5]));
    CHECK(cost({.ignored = 2, .mean = true}) == close((loss[0] + loss[1] + loss[2] + loss[3]) / 4));
    CHECK(cost({.of_classes = of_classes}) ==
          close(0.25 * loss[0] + 7 * loss[1] + 0.5 * loss[2] + 7 * loss[3] + 2 * loss[4] + 2 * loss[5]));
    CHECK(cost({.ignored = 0, .of_classes = of_classes, .mean = true}) ==
          close((0.25 * loss[0] + 0.5 * loss[2] + 2 * loss[4] + 2 * loss[5]) / 4.75));

    // All targets are ignored: 0, also as a mean.
    ids.ids.assign(6, static_cast<std::uint32_t>(-100));
    CHECK(cost({.ignored = static_cast<std::uint32_t>(-100), .of_classes = of_classes, .mean = true}) == 0);
    CHECK(support::message_of<error>([&] { ops::expect<double>(word_ids(1, 1, 4), {.of_classes = of_classes}); }) ==
          "expect: target 4 has no weight: there are 4 class weights; ids count from 0");
}

TEST_CASE("cross entropy: a list of targets that is longer or shorter than steps x batch is rejected")
{
    const auto logits = random({2, 2, 3}, 1), x = random({2, 2, 4}, 2);
    const auto W = random({4, 3}, 3);
    const auto b = random({3}, 4);
    ad::tape<double> on;
    for (const std::size_t count : {std::size_t{3}, std::size_t{5}, std::size_t{400}}) {
        ops::expected_words<double> targets{word_ids(2, 2, 1), {1.0, 1.0, 0.0, 1.0}};
        targets.words.ids.resize(count, 1);
        const auto reason = [&](const char* where, const char* of) {
            return std::string(where) + ": the list of targets is [" + std::to_string(count) +
                   "] but must be [4] (one word for each row of " + of + ")";
        };
        const auto said = [](const auto& f) { return support::message_of<shape_error>(f); };
        CHECK(said([&] { ops::cross_entropy(logits, targets); }) == reason("cross_entropy", "the logits"));
        CHECK(said([&] { ops::cross_entropy(on.parameter(logits), targets); }) ==
              reason("cross_entropy", "the logits"));
        CHECK(said([&] { ops::cross_entropy_per_word(logits, targets); }) ==
              reason("cross_entropy_per_word", "the logits"));
        CHECK(said([&] { ops::cross_entropy(x, W, b, targets, 0.0); }) == reason("cross_entropy", "x"));
        CHECK(said([&] { ops::cross_entropy(on.parameter(x), on.parameter(W), on.parameter(b), targets, 0.0); }) ==
              reason("cross_entropy", "x"));
    }
}
