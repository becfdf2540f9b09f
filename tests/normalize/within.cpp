// SPDX-License-Identifier: BSD-3-Clause
#include <heed/normalize/within.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <heed/heed.hpp>
#include <support/mechanism_tests.hpp>
#include <support/scalar_weights.hpp>
#include <support/tensors.hpp>
#include <support/windows.hpp>

using namespace heed;
using normalize::history::in_window, normalize::local_m, normalize::local_p;
using support::message_of, support::plain_query, support::query_with_word, support::random;
namespace scalar = support::scalar;
using namespace support::temporal_family;
using namespace support::windows;

TEST_CASE("local and temporal combined match their equations, with either history")
{
    const normalize::temporal temporal;
    for (const std::size_t D : {0u, 1u, 2u, 100u}) {
        check_values_per_position(local_m{D, temporal}, luong_m(D, remembered::everywhere));
        check_values_per_position(local_m{D, temporal, in_window{}}, luong_m(D, remembered::in_window));
        check_values_per_dimension(local_m{D, temporal}, luong_m(D, remembered::everywhere));
        if (D == 0) continue;
        check_values_per_position(local_p{W_p(5), v_p(), D, temporal},
                                  luong_p(W_p(5), v_p(), D, remembered::everywhere));
        for (const bool renormalize : {false, true}) {
            const auto weigh = [&](std::size_t query) {
                return luong_p(W_p(query), v_p(), D, remembered::in_window, renormalize);
            };
            check_values_per_position(local_p{W_p(5), v_p(), D, temporal, in_window{}, {.renormalize = renormalize}},
                                      weigh(5));
            check_values_per_dimension(local_p{W_p(), v_p(), D, temporal, in_window{}, {.renormalize = renormalize}},
                                       weigh(3));
        }
    }
}

TEST_CASE("a state that decays or forgets also does so outside the window")
{
    check_values_per_position(local_m{1, normalize::decayed_temporal{1, 0.6}, in_window{}},
                              luong_m(1, remembered::in_window, 0.6));
    for (const std::size_t n : {std::size_t{2}, all_steps}) {
        check_values_per_position(local_m{1, normalize::recent_temporal{n}, in_window{}},
                                  luong_m(1, remembered::in_window, 0, n));
        check_values_per_position(local_p{W_p(5), v_p(), 1, normalize::recent_temporal{n}, in_window{}},
                                  luong_p(W_p(5), v_p(), 1, remembered::in_window, false, n));
    }
}

TEST_CASE("local and temporal combined: gradients and contracts")
{
    const normalize::temporal temporal;
    support::check_gradients(dot_with(local_m{1, temporal}), plain_query{5}, 5);
    check_verified_windows(dot_with(local_m{1, temporal}), plain_query{5});
    support::check_gradients(dot_with(local_m{1, temporal, in_window{}}), plain_query{5}, 5);
    check_verified_windows(dot_with(local_m{1, temporal, in_window{}}), plain_query{5});
    check_verified_windows(dot_with(local_p{W_p(5), v_p(), 1, normalize::recent_temporal{2}, in_window{}}),
                           plain_query{5});
    check_verified_windows(attention{per_dimension(),
                                     local_p{W_p(), v_p(), 2, temporal, in_window{}, {.renormalize = true}},
                                     combine::elementwise_sum{}},
                           plain_query{3});
}

TEST_CASE("normalizers that cut windows, and normalizers that mask")
{
    using normalize::temporal, normalize::recent_temporal, normalize::temperature;
    CHECK(cuts_windows<local_m<>>);
    CHECK(cuts_windows<local_m<temporal, in_window>>);
    CHECK(cuts_windows<decltype(local_m{1, temperature{2.0}})>);
    CHECK(cuts_windows<decltype(local_m{1, normalize::learned_temporal{array<double, 1>{1.0}}, in_window{}})>);
    CHECK_FALSE(cuts_windows<local_m<temporal>>);
    CHECK_FALSE(cuts_windows<local_m<recent_temporal<>, in_window>>);
    CHECK_FALSE(cuts_windows<decltype(
                    local_m{1, normalize::learned_temporal{array<double, 1>{1.0}, recent_temporal{}}, in_window{}})>);
}

TEST_CASE("a window equals a mask, in weights and gradients")
{
    const std::size_t D = 1, S = 8;
    const auto sentences = random({3, 6, 5}, 1);
    const lengths real{6, 4, 0};
    const auto queries = random({3, S, 5}, 2);
    const auto seen = [&](std::size_t t) {
        boolean_mask<2> mask(shape_of_rank<2>{3, 6});
        for (std::size_t b = 0; b < 2; ++b) {
            const std::size_t p = std::min(t, real[b] - 1);
            for (std::size_t j = 0; j < 6; ++j) mask[b * 6 + j] = (j > p ? j - p : p - j) <= D;
        }
        return mask;
    };
    const auto run = [&](const auto& attend, const auto& annotations, auto&& answer) {
        const auto memory = attend.on(annotations, real);
        auto now = answer(attend, memory, attend.start(memory), std::size_t{0});
        std::vector<decltype(now.weights)> weights{now.weights};
        for (std::size_t t = 1; t < S; ++t) {
            now = answer(attend, memory, now.state, t);
            weights.push_back(now.weights);
        }
        return weights;
    };
    const auto by_window = [&](const auto& attend, const auto& memory, const auto& state, std::size_t t) {
        return attend.step(memory, ops::step_of(queries, t), state);
    };
    const auto by_mask = [&](const auto& attend, const auto& memory, const auto& state, std::size_t t) {
        return attend.step(memory, ops::step_of(queries, t), state, seen(t));
    };
    const auto gradient = [&](const auto& attend, auto&& answer) {
        ad::tape<double> on;
        const auto annotations = on.parameter(sentences);
        const auto weights = run(attend, annotations, answer);
        auto sum = ops::dot(weights[0], support::uneven(shape_of_rank<2>{3, 6}));
        for (std::size_t t = 1; t < S; ++t) {
            sum = ops::add(sum, ops::dot(weights[t], support::random({3, 6}, 70 + t)));
        }
        on.backward(sum);
        return copy_of(on.gradient(annotations));
    };
    const auto check = [&](const auto& windowed, const auto& inner) {
        CHECK(distance(run(dot_with(windowed), sentences, by_window), run(dot_with(inner), sentences, by_mask)) <
              1e-15);
        CHECK(support::distance(gradient(dot_with(windowed), by_window), gradient(dot_with(inner), by_mask)) < 1e-14);
    };
    check(local_m{D}, normalize::softmax{});
    check(local_m{D, normalize::recent_temporal{2}}, normalize::recent_temporal{2});
}

TEST_CASE("values outside the window are not read: they change no bit")
{
    const std::size_t T = 12, S = 3;
    const auto sentences = random({2, T, 5}, 1);
    const lengths real{T, T - 2};
    const auto queries = random({2, S, 5}, 2);
    const auto with = [&](double rubbish) {
        auto other = sentences;
        for (std::size_t b = 0; b < 2; ++b) {
            for (std::size_t j = S + 1; j < T; ++j) {  // no step reaches further than S - 1 + D
                for (std::size_t d = 0; d < 5; ++d) other(b, j, d) = rubbish;
            }
        }
        return other;
    };
    const auto check = [&](const auto& attend, const auto& asked) {
        const auto contexts = [&](const array<double, 3>& from) { return attend(attend.on(from, real), asked); };
        const auto weights = [&](const array<double, 3>& from) {
            return weights_of(attend, attend.on(from, real), asked);
        };
        const auto gradients = [&](const array<double, 3>& from) {
            ad::tape<double> on;
            const auto annotations = on.parameter(from);
            const auto seen = attend(attend.on(annotations, real), asked);
            on.backward(ops::dot(seen, support::uneven(seen.shape())));
            return copy_of(on.gradient(annotations));
        };
        for (const double rubbish : {not_a_number, std::numeric_limits<double>::infinity(), 1e30, -3.0}) {
            CHECK(support::same_bits(contexts(with(rubbish)), contexts(sentences)));
            CHECK(same_bits(weights(with(rubbish)), weights(sentences)));
            CHECK(support::same_bits(gradients(with(rubbish)), gradients(sentences)));
        }
        CHECK_FALSE(support::same_bits(contexts(random({2, T, 5}, 9)), contexts(sentences)));
    };
    check(dot_with(local_m{1}), queries);
    check(dot_with(local_m{1, normalize::temporal{}, in_window{}}), queries);
    check(additive_with(local_m{1}), random({2, S, 3}, 3));
    // A window of local_p at the front: every query predicts a position below 1.
    const array<double, 2> W{{20.0}, {0.0}, {0.0}, {0.0}, {0.0}};
    auto to_the_front = queries;
    for (std::size_t b = 0; b < 2; ++b) {
        for (std::size_t s = 0; s < S; ++s) to_the_front(b, s, 0) = -1;
    }
    check(dot_with(local_p{W, array<double, 1>{4.0}, 2, normalize::temporal{}, in_window{}}), to_the_front);
}

TEST_CASE("a window that covers the sentence equals its inner normalizer")
{
    const auto sentences = random({3, 6, 5}, 1);
    const auto queries = random({3, 8, 5}, 2);
    const auto check = [&](const auto& windowed, const auto& inner) {
        const auto a = dot_with(windowed);
        const auto b = dot_with(inner);
        const lengths real{6, 0, 3};
        CHECK(same_bits(weights_of(a, a.on(sentences, real), queries), weights_of(b, b.on(sentences, real), queries)));
        // All queries at once: without state this is one matrix product, which sums in a different order.
        CHECK(support::distance(a(a.on(sentences, real), queries), b(b.on(sentences, real), queries)) < 1e-15);
    };
    const normalize::temporal temporal;
    const std::size_t furthest = std::numeric_limits<std::size_t>::max();
    for (const std::size_t D : {std::size_t{6}, std::size_t{100}, furthest}) {
        check(local_m{D}, normalize::softmax{});
        check(local_m{D, temporal}, temporal);
        check(local_m{D, temporal, in_window{}}, temporal);
        check(local_m{D, normalize::recent_temporal{2}, in_window{}}, normalize::recent_temporal{2});
        check(local_m{D, normalize::sparsemax{}}, normalize::sparsemax{});
    }
    // The Gaussian is flat for very large D.
    const auto flat = dot_with(local_p{W_p(5), v_p(), furthest, temporal});
    const auto plain = dot_with(temporal);
    CHECK(distance(weights_of(flat, flat.on(sentences), queries), weights_of(plain, plain.on(sentences), queries)) <
          1e-15);
}

TEST_CASE("history: of all positions, or of the positions that were in the window")
{
    // One sentence, with scores from its keys: the same at every step.
    const array<double, 3> sentence{{{2.0}, {1.0}, {0.0}, {-1.0}, {3.0}}};
    const array<double, 3> queries(shape_of_rank<3>{1, 3, 1}, 1.0);
    const auto weights = [&](const auto& normalize) {
        const attention attend{score::dot{}, normalize, combine::weighted_sum{}};
        return weights_of(attend, attend.on(sentence), queries);
    };
    const auto all = weights(local_m{1, normalize::temporal{}});
    const auto seen = weights(local_m{1, normalize::temporal{}, in_window{}});
    CHECK(support::same_bits(all[0], seen[0]));
    // Step 1 sees 0, 1, 2. With the full history, each was scored once before, and the weights are equal.
    for (std::size_t j = 0; j < 3; ++j) CHECK(all[1](0, j) == doctest::Approx(1.0 / 3).epsilon(1e-14));
    // In the window: 2 was never seen, so its divisor is 1 and b = exp(0); the others are exp(e) / exp(e).
    for (std::size_t j = 0; j < 3; ++j) CHECK(seen[1](0, j) == doctest::Approx(1.0 / 3).epsilon(1e-14));
    // Step 2 sees 1, 2, 3: 1 was seen twice, 2 once, 3 never.
    const double b[] = {0.5, 1.0, std::exp(-1.0)};
    for (std::size_t j = 0; j < 3; ++j) {
        CHECK(all[2](0, j + 1) == doctest::Approx(1.0 / 3).epsilon(1e-14));
        CHECK(seen[2](0, j + 1) == doctest::Approx(b[j] / (1.5 + std::exp(-1.0))).epsilon(1e-14));
    }
    CHECK(seen[2](0, 0) == 0);
    CHECK(seen[2](0, 4) == 0);
}

TEST_CASE("a constant per position cancels under temporal from the second step on; local_p's Gaussian does not")
{
    const std::size_t T = 6;
    const auto offset = random({1, T, 1}, 3, 2);  // as scores: dot with a query of 1
    const local_p there{array<double, 2>{{0.7}}, array<double, 1>{-0.4}, 4, normalize::temporal{}};
    const attention attend{score::dot{}, there, combine::weighted_sum{}};
    const array<double, 3> queries(shape_of_rank<3>{1, 4, 1}, 1.0);
    const double p = static_cast<double>(T) / (1 + std::exp(0.4 * std::tanh(0.7)));
    const auto weights = weights_of(attend, attend.on(offset), queries);
    std::size_t visible = 0;
    for (std::size_t j = 0; j < T; ++j) visible += std::abs(static_cast<double>(j) - p) <= 4;
    CHECK(visible > 3);
    for (std::size_t t = 0; t < 4; ++t) {
        for (std::size_t j = 0; j < T; ++j) {
            const double off = static_cast<double>(j) - p;
            const double must = std::abs(off) <= 4 ? std::exp(-off * off / 8) / static_cast<double>(visible) : 0;
            if (t > 0) CHECK(weights[t](0, j) == doctest::Approx(must).epsilon(1e-13));
        }
    }
    CHECK(std::abs(weights[0](0, 2) - weights[1](0, 2)) > 1e-3);
}

TEST_CASE("masks and windows")
{
    const auto sentences = random({2, 6, 5}, 1);
    const auto queries = random({2, 6, 5}, 2);
    array<double, 2> bias = random({2, 6}, 3);
    bias(0, 2) = -std::numeric_limits<double>::infinity();
    boolean_mask<2> mask(shape_of_rank<2>{2, 6});
    for (std::size_t i = 0; i < 12; ++i) mask[i] = i % 4 != 1;
    const auto check = [&](const auto& cutting, const auto& hiding) {
        // The same window, cut or masked, inside a normalizer that does not support windows.
        const auto a = dot_with(cutting);
        const auto b = dot_with(hiding);
        const auto close = [&](const auto& x, const auto& y) { CHECK(support::distance(x, y) < 1e-14); };
        const auto memory_a = a.on(sentences, lengths{6, 3});
        const auto memory_b = b.on(sentences, lengths{6, 3});
        close(a(memory_a, queries), b(memory_b, queries));
        const present shown(mask);
        const additive_mask added{ops::reshaped(bias, 2, 1, 6)};
        close(a(memory_a, queries, shown), b(memory_b, queries, shown));
        close(a(memory_a, queries, added), b(memory_b, queries, added));
        const auto shorter = [&](const auto& attend, const auto& memory) {
            const auto first = attend.step(memory, ops::step_of(queries, 0u), attend.start(memory), lengths{4, 3});
            return attend.step(memory, ops::step_of(queries, 4u), first.state, lengths{4, 3}).weights;
        };
        close(shorter(a, memory_a), shorter(b, memory_b));
        close(a(memory_a, queries, causal{}), b(memory_b, queries, causal{}));
        close(a(a.on(sentences, mask), queries), b(b.on(sentences, mask), queries));
        close(a(a.on(sentences, mask), queries, added), b(b.on(sentences, mask), queries, added));
        const auto one = a.step(a.on(sentences, mask), ops::step_of(queries, 1u), a.start(memory_a));
        for (std::size_t i = 0; i < 12; ++i) CHECK((mask[i] || one.weights.data()[i] == 0));
    };
    const auto hidden = [](const auto& normalize) { return normalize::decayed_temporal{0, 0, normalize}; };
    check(local_m{1}, hidden(local_m{1}));
    check(local_m{1, normalize::temporal{}, in_window{}}, hidden(local_m{1, normalize::temporal{}, in_window{}}));
    for (const bool renormalize : {false, true}) {
        const local_p predicted{W_p(5), v_p(), 2, normalize::temporal{}, in_window{}, {.renormalize = renormalize}};
        check(predicted, hidden(predicted));
    }
    // Causal: a row of 6 positions and 6 queries, so that query s sees s + 1 positions, and the window ends there.
    const auto attend = dot_with(local_m{2});
    const auto memory = attend.on(sentences);
    const auto now = attend.step(memory, ops::step_of(queries, 0u), attend.start(memory), lengths{1, 1});
    CHECK(now.weights(0, 0) == 1);
}

TEST_CASE("any normalizer inside a window, a window inside any normalizer")
{
    const auto sentences = random({2, 9, 5}, 1);
    const auto queries = random({2, 6, 5}, 2);
    const auto contexts = [&](const auto& normalize) {
        const auto attend = dot_with(normalize);
        return attend(attend.on(sentences, lengths{9, 5}), queries);
    };
    const auto cooled = contexts(local_m{2, normalize::temperature{0.5}});
    CHECK(support::distance(cooled, contexts(normalize::temperature{0.5, local_m{2}})) < 1e-14);
    CHECK(support::distance(cooled, contexts(local_m{2})) > 1e-3);
    // Modulated by the full history, then seen through the window: equals local_m{2, temporal{}}.
    CHECK(support::distance(contexts(normalize::decayed_temporal{1, 0, local_m{2}}),
                            contexts(local_m{2, normalize::temporal{}})) < 1e-14);
    CHECK(support::distance(contexts(normalize::recent_temporal{2, local_p{W_p(5), v_p(), 2}}),
                            contexts(local_p{W_p(5), v_p(), 2, normalize::recent_temporal{2}})) < 1e-14);
}

TEST_CASE("arguments that do not fit are rejected")
{
    const auto run = [](const auto& normalize) {
        return message_of<error>([&] {
            const auto attend = dot_with(normalize);
            const auto memory = attend.on(random({2, 6, 5}, 1));
            (void)attend.step(memory, random({2, 5}, 2), attend.start(memory));
        });
    };
    CHECK(run(local_p{W_p(5), v_p(), 0}) ==
          "local_p: the reach D is 0 but must be at least 1: the Gaussian's width is D/2");
    CHECK(run(local_p{W_p(4), v_p(), 2}) ==
          "normalize::local_p: the query [2,5] does not fit W_p [4,4], v_p [4] (linear: x is [2,5] and the matrix is "
          "[4,4], but the matrix must have 5 rows, one for each column of x)");
    CHECK(run(local_p{W_p(5), random({3}, 1), 2}) ==
          "normalize::local_p: the query [2,5] does not fit W_p [5,4], v_p [3] (place_in_row: v is [3] but must be [4] "
          "(the width of z [2,4]))");
    CHECK(run(local_m{2}) == "");

    const auto attend = dot_with(local_m{1, normalize::temporal{}, in_window{}});
    const auto memory = attend.on(random({2, 6, 5}, 1));
    const auto alien = attend.start(attend.on(random({2, 7, 5}, 1)));
    CHECK(message_of<shape_error>([&] {
              (void)attend.step(memory, random({2, 5}, 2), alien);
          }) ==
          "attention: the state is [2,7] but must be [2,6]: it remembers position 6 of row 0, but the memory has 6; "
          "give a state that start() or step() returned for this memory");

    std::string names;
    const auto learned = dot_with(local_p{W_p(5), v_p(), 2, normalize::learned_temporal{array<double, 1>{1.0}}});
    for_each_parameter(learned, [&](const std::string& name, const auto&) { names += name + " "; });
    CHECK(names == "normalize.W_p normalize.v_p normalize.inner.w ");
}
