// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <limits>
#include <vector>

using namespace heed;
using support::random;

// The operations of recurrent layers and of training, one by one.

namespace {

const ops::sentence_ends no_end{};

/// One step written number by number, from the equations at the head of kernels/gru.hpp (Bahdanau et al. 2015).
array<double, 2> scalar_gru(const array<double, 2>& x, const array<double, 2>& h, const array<double, 2>& U,
                            const array<double, 2>& U_h)
{
    const std::size_t B = h.shape()[0], H = h.shape()[1];
    array<double, 2> next(h.shape());
    const auto sigmoid = [](double a) { return 1 / (1 + std::exp(-a)); };
    for (std::size_t b = 0; b < B; ++b) {
        std::vector<double> z(H), r(H);
        for (std::size_t i = 0; i < H; ++i) {
            double sum_z = x(b, i), sum_r = x(b, H + i);
            for (std::size_t k = 0; k < H; ++k) sum_z += h(b, k) * U(k, i), sum_r += h(b, k) * U(k, H + i);
            z[i] = sigmoid(sum_z);
            r[i] = sigmoid(sum_r);
        }
        for (std::size_t i = 0; i < H; ++i) {
            double sum = x(b, 2 * H + i);
            for (std::size_t k = 0; k < H; ++k) sum += r[k] * h(b, k) * U_h(k, i);
            next(b, i) = (1 - z[i]) * h(b, i) + z[i] * std::tanh(sum);
        }
    }
    return next;
}

}  // namespace

TEST_CASE("linear_onto")
{
    const auto f = [](const auto& base, const auto& x, const auto& W) { return ops::linear_onto(base, x, W); };
    CHECK_GRADIENT(f, random({3, 5}, 1), random({3, 4}, 2), random({4, 5}, 3));
    CHECK_GRADIENT(f, random({1, 1}, 1), random({1, 1}, 2), random({1, 1}, 3));
    CHECK_GRADIENT(f, random({2, 3, 5}, 1), random({2, 3, 4}, 2), random({4, 5}, 3));
    CHECK(support::same_bits(f(random({2, 3}, 1), array<double, 2>({2, 0}), array<double, 2>({0, 3})),
                             random({2, 3}, 1)));
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                f(random({3, 6}, 1), random({3, 4}, 2), random({4, 5}, 3));
                            }),
                            "the base is [3,6] but must be [3,5]"));
}

TEST_CASE("repeat and maxout")
{
    CHECK_GRADIENT([](const auto& x) { return ops::repeat(x, std::size_t{3}); }, random({4}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::repeat(x, std::size_t{1}); }, random({1}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::maxout(x); }, random({3, 6}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::maxout(x); }, random({2, 1, 2}, 1));
    CHECK(support::contains(support::message_of<shape_error>([] { ops::maxout(random({2, 3}, 1)); }), "must be even"));
}

TEST_CASE("a GRU step is its equations, and has their gradient")
{
    for (const std::size_t H : {std::size_t{1}, std::size_t{5}, std::size_t{19}}) {
        const auto x = random({3, 3 * H}, 1), h = random({3, H}, 2), U = random({H, 2 * H}, 3), U_h = random({H, H}, 4);
        const auto f = [](const auto& inputs, const auto& hidden, const auto& recurrent, const auto& of_candidate) {
            return ops::gru(inputs, hidden, recurrent, of_candidate, no_end);
        };
        CHECK(support::distance(f(x, h, U, U_h), scalar_gru(x, h, U, U_h)) < 1e-13);
        const auto check = [](const ad::grad_check_result& found) { CHECK_MESSAGE(bool(found), found.text()); };
        check(support::gradient_of<0b1111>(f, x, h, U, U_h));
        check(support::gradient_of<0b0001>(f, x, h, U, U_h));
        check(support::gradient_of<0b0010>(f, x, h, U, U_h));
        check(support::gradient_of<0b1100>(f, x, h, U, U_h));
    }
}

TEST_CASE("a GRU step of states with further axes is that of their rows")
{
    const std::size_t H = 3;
    const auto U = random({H, 2 * H}, 3), U_h = random({H, H}, 4);
    const auto x = random({2, 4, 3 * H}, 1), h = random({2, 4, H}, 2);
    array<double, 2> x_rows(shape_of_rank<2>{8, 3 * H}), h_rows(shape_of_rank<2>{8, H});
    std::copy(x.begin(), x.end(), x_rows.begin());
    std::copy(h.begin(), h.end(), h_rows.begin());
    const auto next = ops::gru(x, h, U, U_h, no_end);
    const auto must = scalar_gru(x_rows, h_rows, U, U_h);
    REQUIRE(shape_of(next) == shape_of(h));
    for (std::size_t i = 0; i < next.size(); ++i)
        CHECK(next.data()[i] == doctest::Approx(must.data()[i]).epsilon(1e-13));
    const auto f = [](const auto& inputs, const auto& hidden, const auto& recurrent, const auto& of_candidate) {
        return ops::gru(inputs, hidden, recurrent, of_candidate, no_end);
    };
    const auto check = [](const ad::grad_check_result& found) { CHECK_MESSAGE(bool(found), found.text()); };
    check(support::gradient_of<0b1111>(f, x, h, U, U_h));
    check(support::gradient_of<0b0010>(f, x, h, U, U_h));
    check(support::gradient_of<0b1100>(f, x, h, U, U_h));
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                ops::gru(random({2, 4, H}, 1), h, U, U_h, no_end);
                            }),
                            "gru: the input is [2,4,3] but must be [2,4,9]"));
}

TEST_CASE("a sentence that is over keeps its state, and its gradient passes")
{
    const lengths real{3, 1, 0, 2};
    const auto x = random({4, 9}, 1), h = random({4, 3}, 2), U = random({3, 6}, 3), U_h = random({3, 3}, 4);
    for (std::size_t step = 0; step < 3; ++step) {
        const ops::sentence_ends ends{&real, step};
        const auto next = ops::gru(x, h, U, U_h, ends);
        const auto free = ops::gru(x, h, U, U_h, no_end);
        for (std::size_t b = 0; b < 4; ++b) {
            for (std::size_t i = 0; i < 3; ++i) CHECK(next(b, i) == (step < real[b] ? free(b, i) : h(b, i)));
        }
        const auto f = [&](const auto& inputs, const auto& hidden, const auto& a, const auto& b) {
            return ops::gru(inputs, hidden, a, b, ends);
        };
        const auto found = support::gradient_of<0b1111>(f, x, h, U, U_h);
        CHECK_MESSAGE(bool(found), found.text());
    }
}

TEST_CASE("inputs of a GRU that somebody else uses, too: before it, after it, or another GRU")
{
    const auto x = random({2, 9}, 1), h = random({2, 3}, 2), U = random({3, 6}, 3), U_h = random({3, 3}, 4),
               V = random({3, 6}, 5), V_h = random({3, 3}, 6);
    const auto check = [](const ad::grad_check_result& found) { CHECK_MESSAGE(bool(found), found.text()); };
    check(support::gradient_of<0b111111>(
        [](const auto& inputs, const auto& hidden, const auto& a, const auto& b, const auto& c, const auto& d) {
            return ops::concat(ops::gru(inputs, hidden, a, b, no_end), ops::gru(inputs, hidden, c, d, no_end));
        },
        x, h, U, U_h, V, V_h));
    const auto with = [&](bool before) {
        return support::gradient_of<0b1111>(
            [before](const auto& inputs, const auto& hidden, const auto& a, const auto& b) {
                auto other = inputs;
                if (before) other = ops::multiply(inputs, inputs);
                const auto next = ops::gru(inputs, hidden, a, b, no_end);
                if (!before) other = ops::multiply(inputs, inputs);
                return ops::concat(next, other);
            },
            x, h, U, U_h);
    };
    check(with(true));
    check(with(false));
}

TEST_CASE("a recurrent layer over several steps")
{
    const auto x = random({4, 2, 9}, 1);
    const auto U = random({3, 6}, 2), U_h = random({3, 3}, 3);
    const auto h = random({3}, 4);
    const lengths real{4, 2};
    const auto found = support::gradient_of<0b1111>(
        [&](const auto& inputs, const auto& start, const auto& a, const auto& b) {
            auto state = ops::repeat(start, std::size_t{2});
            std::vector<decltype(state)> states;
            for (std::size_t s = 0; s < 4; ++s) {
                state = ops::gru(ops::block(inputs, s), state, a, b, ops::sentence_ends{&real, s});
                states.push_back(state);
            }
            return ops::stack(states);
        },
        x, h, U, U_h);
    CHECK_MESSAGE(bool(found), found.text());
}

TEST_CASE("lookup: repeated words, unused words, a table that was computed, and no word")
{
    word_ids words(3, 2);
    words.ids = {1, 4, 1, 0, 4, 1};
    CHECK_GRADIENT([&](const auto& E) { return ops::lookup(E, words); }, random({6, 3}, 1));
    CHECK_GRADIENT([&](const auto& E) { return ops::lookup(ops::tanh(E), words); }, random({6, 3}, 1));
    CHECK_GRADIENT([&](const auto& E) { return ops::add(ops::lookup(E, words), ops::lookup(E, words)); },
                   random({6, 3}, 1));
    CHECK_GRADIENT([&](const auto& E) { return ops::linear(ops::lookup(E, words), E); }, random({6, 6}, 1));
    ad::tape<double> on;
    const auto table = random({6, 3}, 1);
    const auto E = on.parameter(table);
    on.backward(ops::inner(ops::lookup(E, word_ids(0, 2)), array<double, 3>({0, 2, 3})));
    CHECK(on.gradient(E).data[0] == 0);
    words.ids[3] = 6;
    CHECK(support::message_of<error>([&] { ops::lookup(table, words); }) ==
          "lookup: word 6 of a table of 6 embeddings; ids count from 0");
}

TEST_CASE("cross entropy: value and gradient, with weights, smoothing, and as a part of a larger loss")
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

TEST_CASE("cross entropy of logits: of all words together and word by word, with and without smoothing")
{
    const std::size_t S = 2, B = 3, V = 5;
    const auto logits = random({S, B, V}, 1, 2.0);
    ops::expected_words<double> targets{word_ids(S, B), {1.0, 0.5, 0.0, 2.0, 0.25, 1.0}};
    targets.words.ids = {0, 4, 2, 1, 1, 3};
    for (const double smoothing : {0.0, 0.1}) {
        double total = 0;
        const auto each = ops::cross_entropy_each(logits, targets, smoothing);
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
        CHECK_GRADIENT([&](const auto& x) { return ops::cross_entropy_each(x, targets, smoothing); }, logits);
        CHECK_GRADIENT([&](const auto& x) { return ops::scale(ops::cross_entropy(x, targets, smoothing), 0.7); },
                       logits);
        // Logits that something else reads before and after.
        CHECK_GRADIENT(
            [&](const auto& x) {
                const auto both =
                    ops::add(ops::sum_last(ops::square(x)), ops::cross_entropy_each(x, targets, smoothing));
                return ops::add(both, ops::sum_last(x));
            },
            logits);
    }

    // Without smoothing it may be left out. One step's logits have no axis for it.
    CHECK(ops::cross_entropy(logits, targets)() == ops::cross_entropy(logits, targets, 0.0)());
    const auto one = random({B, V}, 2);
    ops::expected_words<double> of_step{word_ids(1, B, 3), {1.0, 0.0, 2.0}};
    const auto single = ops::cross_entropy_each(one, of_step);
    REQUIRE(shape_of(single) == shape_of_rank<1>{B});
    CHECK(single(1) == 0);
    CHECK(ops::cross_entropy(one, of_step)() == doctest::Approx(single(0) + single(2)).epsilon(1e-14));
    CHECK_GRADIENT([&](const auto& x) { return ops::cross_entropy_each(x, of_step); }, one);
    CHECK_GRADIENT([&](const auto& x) { return ops::cross_entropy(x, of_step); }, one);

    // The fused form is the same of x W + b.
    const auto x = random({S, B, 4}, 3);
    const auto W = random({4, V}, 4);
    const auto b = random({V}, 5);
    CHECK(ops::cross_entropy(ops::linear(x, W, b), targets, 0.1)() ==
          doctest::Approx(ops::cross_entropy(x, W, b, targets, 0.1)()).epsilon(1e-14));
}

TEST_CASE("cross entropy of logits: what stands in the padding changes nothing, NaN included")
{
    ops::expected_words<double> targets{word_ids(2, 2, 1), {1.0, 1.0, 0.0, 1.0}};
    const auto clean = random({2, 2, 3}, 1);
    auto rubbish = clean;
    for (std::size_t v = 0; v < 3; ++v) rubbish(1, 0, v) = std::numeric_limits<double>::quiet_NaN();
    const auto results = [&](const array<double, 3>& logits, bool by_word) {
        ad::tape<double> on;
        const auto x = on.parameter(logits);
        if (by_word) {
            const auto each = ops::cross_entropy_each(x, targets, 0.1);
            CHECK(each.data()[2] == 0);
            on.backward(ops::inner(each, support::uneven(each.shape())));
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
    CHECK(support::same_bits(ops::cross_entropy_each(rubbish, targets), ops::cross_entropy_each(clean, targets)));
    CHECK(ops::cross_entropy(rubbish, targets)() == ops::cross_entropy(clean, targets)());
}

TEST_CASE("cross entropy of logits: what does not fit is refused")
{
    ops::expected_words<double> targets{word_ids(2, 2, 1), {1.0, 1.0, 0.0, 1.0}};
    const auto logits = random({2, 2, 3}, 1);
    CHECK(support::message_of<shape_error>([&] {
              ops::cross_entropy_each(random({2, 3, 3}, 1), targets);
          }) == "cross_entropy_each: the targets is [2,2] but must be [2,3] (one word for each row of the logits)");
    CHECK(support::message_of<shape_error>([&] {
              ops::cross_entropy(random({2, 3}, 1), targets);
          }) == "cross_entropy: the targets is [2,2] but must be [1,2] (one word for each row of the logits)");
    targets.weights.pop_back();
    CHECK(support::message_of<shape_error>([&] { ops::cross_entropy(logits, targets); }) ==
          "cross_entropy: the weights is [3] but must be [4] (one for each target)");
    targets.weights.push_back(1);
    targets.words.ids[2] = 3;
    CHECK(support::message_of<error>([&] { ops::cross_entropy_each(logits, targets); }) ==
          "cross_entropy_each: target word 3 of a vocabulary of 3 words; ids count from 0");
}

TEST_CASE("dropout: about the rate is dropped, the rest is lifted, and the gradient goes the same way")
{
    const auto x = filled<double, 2>({100, 103}, 1.0);
    ad::tape<double> on;
    const auto v = on.parameter(x);
    const auto y = ops::dropout(v, 0.3, std::uint64_t{5});
    std::size_t dropped = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
        dropped += y.data()[i] == 0;
        CHECK_MESSAGE((y.data()[i] == 0 || y.data()[i] == doctest::Approx(1 / 0.7)), y.data()[i]);
    }
    CHECK(std::abs(static_cast<double>(dropped) / 10300 - 0.3) < 0.02);
    on.backward(ops::inner(y, filled<double, 2>({100, 103}, 1.0)));
    CHECK(support::same_bits(on.gradient(v), y));
    CHECK(support::same_bits(ops::dropout(v, 0.3, std::uint64_t{5}), y));
    CHECK_FALSE(support::same_bits(ops::dropout(v, 0.3, std::uint64_t{6}), y));
    CHECK(ops::dropout(v, 0.0, std::uint64_t{5}).data() == v.data());
    CHECK(support::same_bits(ops::dropout(x, 0.3, std::uint64_t{5}), x));  // inference drops nothing
    CHECK_THROWS_AS(ops::dropout(v, 1.0, std::uint64_t{5}), error);
}
