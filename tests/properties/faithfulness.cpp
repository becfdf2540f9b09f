// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <heed/heed.hpp>
#include <heed/seq2seq/decoder.hpp>
#include <support/tensors.hpp>

// Known bugs of other implementations, and decisions that the papers leave open, if they concern several mechanisms.
// Tests of a single mechanism are in its file: search for "a peer" and "trap".

using namespace heed;
using support::random;

namespace {

constexpr std::size_t Q = 3, D = 5, A = 4, E = 2, N = 2;
using rows = std::vector<std::size_t>;

/// The given rows of x, as beam search selects them: some twice, others not at all.
template <class X>
X picked(const X& x, const rows& from)
{
    auto shape = shape_of(x);
    const std::size_t size = x.size() / shape[0];
    shape[0] = from.size();
    X y(shape);
    for (std::size_t i = 0; i < from.size(); ++i) std::copy_n(x.data() + from[i] * size, size, y.data() + i * size);
    return y;
}

array<double, 2> state_of(std::size_t step, const rows& which) { return picked(random({4, Q}, 20 + step), which); }
const auto plainly = [](std::size_t step, const rows& which) { return state_of(step, which); };
const auto with_word = [](std::size_t step, const rows& which) {
    return state_and_word{state_of(step, which), picked(random({4, E}, 30 + step), which)};
};

/// f(attention, query) for mechanisms with and without fused kernels, with every kind of state.
template <class F>
void each_mechanism(F&& f)
{
    const auto W = random({Q, A}, 1), U = random({D, A}, 2), V = random({A, D}, 3), C = random({N, A}, 4);
    const auto v = random({A}, 5);
    const score::additive additive{W, U, v};
    const nn::coverage_gru cell{random({E, 3 * N}, 6), random({3 * N}, 7, 2.0), random({N, 3 * N}, 8)};
    f(attention{additive, normalize::temporal{}, combine::weighted_sum{}}, plainly);
    f(attention{score::additive_per_dimension{W, U, V}, normalize::temporal{}, combine::elementwise_sum{}}, plainly);
    f(attention{score::with_coverage{additive, C, cell},
                normalize::local_m{1, normalize::recent_temporal{2}, normalize::history::in_window{}},
                combine::weighted_sum{}},
      with_word);
}

/// Names and shapes of all parameters.
std::string learned(const auto& policy)
{
    std::string names;
    for_each_parameter(policy, [&](const std::string& name, const auto& x) {
        names += (names.empty() ? "" : " ") + name + " " + shape_text(shape_of(x));
    });
    return names;
}

}  // namespace

TEST_CASE(
    "the returned weights are the ones that computed the context (two runtimes of a peer return different weights)")
{
    each_mechanism([](const auto& attend, const auto& query) {
        const auto h = random({3, 5, D}, 10);
        const auto memory = attend.on(h, lengths{5, 0, 2});
        auto state = attend.start(memory);
        for (std::size_t s = 0; s < 4; ++s) {
            const auto asked = query(s, {0, 1, 2});
            const auto now = attend.step(memory, asked, state);
            CHECK(support::distance(now.weights, attend.compose(memory, asked, state).weights) < 1e-13);
            const std::size_t width = now.weights.size() / 15;
            for (std::size_t b = 0; b < 3; ++b) {
                for (std::size_t d = 0; d < D; ++d) {
                    double c = 0;
                    for (std::size_t j = 0; j < 5; ++j) {
                        c += now.weights.data()[(b * 5 + j) * width + (width == 1 ? 0 : d)] * h(b, j, d);
                    }
                    CHECK(now.context(b, d) == doctest::Approx(c).epsilon(1e-13));
                }
            }
            state = now.state;
        }
    });
}

TEST_CASE("beams of several sentences (a peer's attention allowed one sentence, another's coverage failed in beams)")
{
    each_mechanism([](const auto& attend, const auto& query) {
        const auto h = random({2, 5, D}, 11);
        const std::vector<std::size_t> real{5, 3};
        const rows all{0, 1, 2, 3}, sentence{0, 0, 1, 1}, survivors{1, 1, 3, 2};  // the first hypothesis dies
        const auto two = attend.on(h, lengths(real)), four = attend.on(picked(h, sentence), lengths{5, 5, 3, 3});
        const auto pick = [](const rows& from) { return [from](const auto& x) { return picked(x, from); }; };
        const auto first = attend.step(two, query(0, {0, 1}), attend.start(two));
        const auto second = attend.step(four, query(1, all), first.state.map(pick(sentence)));
        const auto third = attend.step(four, query(2, all), second.state.map(pick(survivors)));
        for (const std::size_t r : all) {
            const std::size_t parent = survivors[r], s = sentence[parent];
            const auto alone = attend.on(picked(h, {s}), lengths{real[s]});
            auto now = attend.step(alone, query(0, {s}), attend.start(alone));
            now = attend.step(alone, query(1, {parent}), now.state);
            now = attend.step(alone, query(2, {r}), now.state);
            const auto context = picked(third.context, {r});
            CHECK(support::distance(context, now.context) < 1e-13);
            for (std::size_t j = 0, n = now.weights.size(); j < n; ++j) {
                CHECK(third.weights.data()[r * third.weights.size() / 4 + j] ==
                      doctest::Approx(now.weights.data()[j]).epsilon(1e-12));
            }
        }
        // The selection of states matters: without it the test fails.
        CHECK(support::distance(attend.step(four, query(2, all), second.state).weights, third.weights) > 1e-3);
    });
}

TEST_CASE("no mechanism has parameters that its paper does not have, in particular no bias (a peer's had one)")
{
    const auto W = random({Q, A}, 1), U = random({D, A}, 2), V = random({A, D}, 3), G = random({Q, D}, 4),
               Y = random({E, A}, 5);
    const auto v = random({A}, 6), b = random({D}, 7), one = random({1}, 8);
    const score::additive additive{W, U, v};
    CHECK(learned(score::dot{}) == "");
    CHECK(learned(score::scaled_dot{}) == "");
    CHECK(learned(score::match{}) == "");
    CHECK(learned(score::general{G}) == "W [3,5]");
    CHECK(learned(score::location{random({Q, 9}, 9)}) == "W [3,9]");
    CHECK(learned(additive) == "W [3,4] U [5,4] v [4]");
    CHECK(learned(score::additive_per_dimension{W, U, V}) == "W [3,4] U [5,4] V [4,5]");
    CHECK(learned(score::with_word{additive, Y}) == "base.W [3,4] base.U [5,4] base.v [4] Y [2,4]");
    CHECK(learned(score::conv_s2s{G, b}) == "W [3,5] b [5]");  // eq. 1 of the paper has this bias
    CHECK(learned(nn::coverage_gru{random({E, 6}, 9), random({6}, 9), random({N, 6}, 9)}) == "W [2,6] a [6] U [2,6]");
    CHECK(learned(normalize::temporal{}) == "");
    CHECK(learned(normalize::decayed_temporal{}) == "");
    CHECK(learned(normalize::local_m{}) == "");
    CHECK(learned(normalize::local_p{W, v, 2}) == "W_p [3,4] v_p [4]");
    CHECK(learned(normalize::learned_temporal{one}) == "w [1]");
    CHECK(learned(combine::attentional{random({D + Q, A}, 9)}) == "W_c [8,4]");
    // The last layer of fine-grained attention costs A·D, in groups A·G, of additive attention A.
    CHECK(parameter_count(score::additive_per_dimension{W, U, V}) - parameter_count(additive) == A * D - A);
    CHECK(parameter_count(score::additive_grouped{W, U, random({A, 2}, 9)}) - parameter_count(additive) == A * 2 - A);
}

TEST_CASE("local_p: the gradient flows only through the Gaussian, and the weights jump at the window's edge")
{
    // p = 4 σ(tanh q), σ = 1/2: at q = 0 it is 2, and 1 and 3 are just inside the window.
    const array<double, 3> h{{{0.3}, {-0.4}, {0.9}, {0.2}}};
    const array<double, 2> loss_of{{0.7, -1.1, 0.4, 1.3}};
    const auto number = [](double x) { return array<double, 2>{{x}}; };
    const attention attend{score::dot{}, normalize::local_p{number(1), array<double, 1>{1.0}, 1},
                           combine::weighted_sum{}};
    const auto memory = attend.on(h);
    const auto weights = [&](double q) { return attend.step(memory, number(q), attend.start(memory)).weights; };
    CHECK(weights(0)(0, 1) == doctest::Approx(std::exp(-2.0) / 3).epsilon(1e-14));
    CHECK(weights(0)(0, 3) == doctest::Approx(std::exp(-2.0) / 3).epsilon(1e-14));
    // p has moved by 2e-6; the relative change of the weights is twice that.
    CHECK(weights(1e-6)(0, 1) == 0);
    CHECK(weights(1e-6)(0, 3) == doctest::Approx(std::exp(-2.0) / 2).epsilon(1e-5));
    CHECK(weights(-1e-6)(0, 1) == doctest::Approx(std::exp(-2.0) / 2).epsilon(1e-5));
    CHECK(weights(-1e-6)(0, 3) == 0);

    for (const double q : {1e-6, 0.8}) {  // both windows cover 2 and 3; the first query is at the edge
        ad::tape<double> on;
        const auto lifted = ad::lift(on, attend);
        const auto there = lifted.on(h);
        const auto asked = number(q);
        const auto query = on.parameter(asked);
        on.backward(ops::dot(lifted.step(there, query, lifted.start(there)).weights, loss_of));

        const double t = std::tanh(q), s = 1 / (1 + std::exp(-t)), p = 4 * s, by_p = 4 * s * (1 - s);
        const double a[] = {1 / (1 + std::exp(q * (h(0, 3, 0) - h(0, 2, 0)))),
                            1 / (1 + std::exp(q * (h(0, 2, 0) - h(0, 3, 0))))};
        const double mean = a[0] * h(0, 2, 0) + a[1] * h(0, 3, 0);
        double through_scores = 0, through_place = 0;
        for (std::size_t i = 0; i < 2; ++i) {
            const double off = static_cast<double>(i + 2) - p, w = a[i] * std::exp(-2 * off * off);
            through_scores += loss_of(0, i + 2) * w * (h(0, i + 2, 0) - mean);
            through_place += loss_of(0, i + 2) * w * 4 * off;
        }
        const auto about = [](double x) { return doctest::Approx(x).epsilon(1e-12).scale(1e-9); };
        CHECK(on.gradient(query).data[0] == about(through_scores + through_place * by_p * (1 - t * t)));
        CHECK(on.gradient(lifted.normalize.W_p).data[0] == about(through_place * by_p * (1 - t * t) * q));
        CHECK(on.gradient(lifted.normalize.v_p).data[0] == about(through_place * by_p * t));
        CHECK(std::abs(through_place) > 0.1);
    }
}

TEST_CASE("the decoder selects the query state: RNNsearch uses the state before the word")
{
    random_source source{3};
    const attention attend{score::additive{random({Q, A}, 1), random({D, A}, 2), random({A}, 3)}, normalize::softmax{},
                           combine::weighted_sum{}};
    const auto decoder =
        seq2seq::make_decoder(nn::initializers<double>{source}, attend, {7, 4, Q, D, 4}, seq2seq::parts{});
    const auto memory = attend.on(random({2, 5, D}, 4), lengths{5, 3});
    const auto before = random({2, Q}, 5);
    const auto next = decoder.advance(memory, seq2seq::decoder_state{before, attend.start(memory)}, word_ids(1, 2, 6));
    const auto asked_with = [&](const auto& state) { return attend.step(memory, state, attend.start(memory)).weights; };
    CHECK(support::same_bits(next.seen.weights, asked_with(before)));
    CHECK(support::distance(next.seen.weights, asked_with(next.state.cell)) > 1e-3);
}
