// SPDX-License-Identifier: BSD-3-Clause
#include <heed/normalize/decayed_temporal.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/mechanism_tests.hpp>
#include <support/scalar_weights.hpp>
#include <support/temporal_family.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::check_empty, support::message_of, support::random;
using support::plain_query, support::query_with_word;
namespace scalar = support::scalar;
using namespace support::temporal_family;

TEST_CASE("subtract_scaled_history and fade equal discount and logaddexp with a factor each")
{
    const auto e = random({3, 7}, 1), L = random({3, 7}, 2);
    CHECK(support::same_bits(ops::subtract_scaled_history(e, L, 1), ops::subtract_history(e, L)));
    CHECK(support::same_bits(ops::subtract_scaled_history(e, L, 0), e));
    CHECK(support::same_bits(ops::fade(L, e, 0), ops::logaddexp(L, e)));
    CHECK(support::same_bits(ops::fade(L, e, infinity), e));
    const auto by = ops::subtract_scaled_history(e, L, 0.3), faded = ops::fade(L, e, 0.7);
    for (std::size_t i = 0; i < e.size(); ++i) {
        CHECK(by.data()[i] == doctest::Approx(e.data()[i] - 0.3 * L.data()[i]).epsilon(1e-14));
        CHECK(faded.data()[i] ==
              doctest::Approx(std::log(std::exp(L.data()[i] - 0.7) + std::exp(e.data()[i]))).epsilon(1e-14));
    }
    for (const double number : {0.0, 0.6, 1.0, 3.0}) {
        for (const bool fades : {false, true}) {
            const auto f = [=](const auto& a, const auto& b) {
                return fades ? ops::fade(a, b, number) : ops::subtract_scaled_history(a, b, number);
            };
            CHECK_GRADIENT(f, random({1, 1, 1}, 3), random({1, 1, 1}, 4));
            CHECK_GRADIENT(f, random({2, 3, 9}, 5), random({2, 3, 9}, 6));
            check_empty(f, random({0, 3, 1}, 7), random({0, 3, 1}, 8));
        }
    }

    // An empty history (-inf) stays empty at any strength and has no gradient, and neither does a history that decays
    // at once.
    const array<double, 1> none{-infinity, -infinity}, scores{0.5, -infinity}, state{2.0, -infinity};
    ad::tape<double> on;
    const auto a = on.parameter(none), s = on.parameter(scores), p = on.parameter(state);
    for (const double strength : {0.0, 0.4, -1.0}) {
        CHECK(support::same_bits(ops::subtract_scaled_history(s, a, strength), scores));
        CHECK(support::same_bits(ops::subtract_scaled_history(scores, none, strength), scores));
    }
    CHECK(support::same_bits(ops::fade(a, s, 0.4), scores));
    const auto y = ops::add(ops::subtract_scaled_history(s, a, 0.4), ops::fade(p, s, infinity));
    on.backward(ops::dot(ops::exp(y), array<double, 1>{2.0, 3.0}));
    for (const auto& x : {a, p}) {
        for (std::size_t i = 0; i < 2; ++i) CHECK(on.gradient(x).data[i] == 0);
    }
    CHECK(on.gradient(s).data[0] == support::approx(4 * std::exp(1.0)));
    CHECK(on.gradient(s).data[1] == 0);

    CHECK(message_of<shape_error>([&] {
              (void)ops::subtract_scaled_history(e, random({3, 6}, 1), 1);
          }) == "subtract_scaled_history: the history is [3,6] but must be [3,7] (the shape of the scores)");
    CHECK(message_of<shape_error>([&] {
              (void)ops::fade(random({3, 6}, 1), on.parameter(e), 1);
          }) == "fade: the added term is [3,7] but must be [3,6] (the shape of the history)");
}

TEST_CASE("decayed_temporal matches its equation")
{
    for (const auto& [strength, decay] :
         {std::pair{1.0, 0.0}, {0.0, 0.0}, {0.6, 0.0}, {1.0, 0.8}, {1.7, 0.3}, {-0.5, 0.2}, {0.7, infinity}}) {
        check_values(normalize::decayed_temporal{strength, decay},
                     scalar::temporal(strength, decay, decay == infinity ? 1 : all_steps));
    }
}

TEST_CASE("decayed_temporal satisfies the contracts") { check_mechanism(normalize::decayed_temporal{0.7, 0.3}); }

TEST_CASE("nested normalizers with state")
{
    // u = e - β L(e), and the inner normalizer stores u, computed from the two equations.
    const double strength = 0.6, decay = 0.4;
    const scalar::weigher both = [=](const scalar::tables& e, const auto& queries) {
        scalar::tables u = e;
        for (std::size_t t = 1; t < e.size(); ++t) {
            for (std::size_t j = 0; j < e[t].size(); ++j) {
                for (std::size_t d = 0; d < e[t][j].size(); ++d) {
                    scalar::tall state = 0;
                    for (std::size_t k = 0; k < t; ++k) {
                        state += std::exp(e[k][j][d] - decay * static_cast<scalar::tall>(t - 1 - k));
                    }
                    u[t][j][d] -= strength * std::log(state);
                }
            }
        }
        return scalar::temporal(1, 0, 2)(u, queries);
    };
    const normalize::decayed_temporal nested{strength, decay, normalize::recent_temporal{2}};
    check_values_per_position(nested, both);

    const auto deeper = dot_with(normalize::recent_temporal{
        2, normalize::learned_temporal{array<double, 1>{0.8}, normalize::decayed_temporal{0.5, 0.1}}});
    check_verified(deeper, plain_query{5});
    std::string names;
    for_each_parameter(deeper, [&](const std::string& name, const auto&) { names += name; });
    CHECK(names == "normalize.inner.w");
}

TEST_CASE("special cases of the family equal its other members")
{
    const auto e = random_scores({3, 7}, 12, 2);
    const lengths real{7, 0, 4};
    const auto weights = [&](const auto& normalize) { return scalar::weights_of(normalize, e, real); };
    const auto by_softmax = weights(normalize::softmax{}), by_temporal = weights(normalize::temporal{});
    CHECK(distance(by_softmax, by_temporal) > 0.1);

    CHECK(same_bits(weights(normalize::decayed_temporal{0, 0}), by_softmax));
    CHECK(same_bits(weights(normalize::decayed_temporal{0, 1.5}), by_softmax));
    CHECK(same_bits(weights(normalize::decayed_temporal{1, 0}), by_temporal));
    CHECK(same_bits(weights(normalize::decayed_temporal{}), by_temporal));
    CHECK(same_bits(weights(normalize::decayed_temporal{0, 0.3, normalize::temporal{}}), by_temporal));
    CHECK(same_bits(weights(normalize::recent_temporal{0}), by_softmax));
    CHECK(same_bits(weights(normalize::recent_temporal{0, normalize::temporal{}}), by_temporal));
    CHECK(same_bits(weights(normalize::recent_temporal{11}), by_temporal));
    CHECK(same_bits(weights(normalize::recent_temporal{1000}), by_temporal));
    CHECK(distance(weights(normalize::recent_temporal{10}), by_temporal) > 1e-6);
    CHECK(same_bits(weights(normalize::recent_temporal{1}), weights(normalize::decayed_temporal{1, infinity})));
    CHECK(same_bits(weights(normalize::recent_temporal{}), weights(normalize::recent_temporal{1})));
    CHECK(same_bits(weights(normalize::learned_temporal{array<double, 1>{0.0}}), by_softmax));
}

TEST_CASE("scores of 1e4 of both signs")
{
    auto e = random_scores({2, 5}, 9, 1);
    for (std::size_t t = 0; t < 9; ++t) {
        for (std::size_t i = 0; i < 10; ++i) e[t].data()[i] += (t * 3 + i) % 4 == 0 ? -1e4 : 1e4;
    }
    const lengths real{5, 3};
    const auto check = [&](const auto& normalize, const scalar::weigher& weigh) {
        CHECK(distance(scalar::weights_of(normalize, e, real), scalar::weights_of(weigh, e, real)) < 1e-10);
    };
    check(normalize::decayed_temporal{0.7, 0.2}, scalar::temporal(0.7, 0.2, all_steps));
    check(normalize::recent_temporal{3}, scalar::temporal(1, 0, 3));
    check(normalize::learned_temporal{array<double, 1>{2.0}}, scalar::learned_temporal(2));
}

TEST_CASE("a state is a value: map selects rows, and copies are independent")
{
    const auto check = [](const auto& normalize) {
        const attention attend{score::dot{}, normalize, combine::weighted_sum{}};
        const auto sentences = random({3, 6, 5}, 1);
        const auto swapped = [](const auto& x) {  // rows 2, 0, 2
            auto y = x;
            const std::size_t row = x.size() / shape_of(x)[0];
            const std::size_t from[] = {2, 0, 2};
            for (std::size_t b = 0; b < 3; ++b) std::copy_n(x.data() + from[b] * row, row, y.data() + b * row);
            return y;
        };
        const auto memory = attend.on(sentences, lengths{6, 6, 6}),
                   other_memory = attend.on(swapped(sentences), lengths{6, 6, 6});
        auto state = attend.start(memory);
        for (std::size_t t = 0; t < 9; ++t) {
            const auto query = random({3, 5}, 50 + t);
            const auto hypotheses = state.map(swapped);
            const auto branch = state;
            auto next = attend.step(memory, query, state);
            const auto other = attend.step(other_memory, swapped(query), hypotheses);
            CHECK(support::same_bits(other.weights, swapped(next.weights)));
            (void)attend.step(memory, random({3, 5}, 90 + t), branch);
            CHECK(support::same_bits(attend.step(memory, query, branch).weights, next.weights));
            state = std::move(next.state);
        }
        CHECK(support::same_bits(attend.step(memory, random({3, 5}, 50), attend.start(memory)).weights,
                                 attend.step(memory, random({3, 5}, 50), attend.start(memory)).weights));
    };
    check(normalize::decayed_temporal{0.8, 0.2});
    check(normalize::recent_temporal{3});
}

TEST_CASE("masked positions get no weight, and the others are not affected by them")
{
    const array<bool, 2> attend_to{{true, false, true, true, false}, {true, true, true, true, true}};
    const auto check = [&](const auto& normalize) {
        const attention attend{score::dot{}, normalize, combine::weighted_sum{}};
        const auto sentences = random({2, 5, 4}, 1);
        array<double, 3> shorter(shape_of_rank<3>{1, 3, 4});
        for (std::size_t j = 0, to = 0; j < 5; ++j) {
            if (attend_to(0, j)) std::copy_n(sentences.data() + j * 4, 4, shorter.data() + 4 * to++);
        }
        const auto masked = attend.on(sentences, boolean_mask{attend_to});
        const auto whole = attend.on(sentences), alone = attend.on(shorter);
        auto by_memory = attend.start(masked), by_step = attend.start(whole), without = attend.start(alone);
        for (std::size_t t = 0; t < 7; ++t) {
            const auto query = random({2, 4}, 20 + t);
            array<double, 2> first(shape_of_rank<2>{1, 4});
            std::copy_n(query.data(), 4, first.data());
            const auto a = attend.step(masked, query, by_memory),
                       b = attend.step(whole, query, by_step, boolean_mask{attend_to});
            const auto c = attend.step(alone, first, without);
            for (std::size_t j = 0, k = 0; j < 5; ++j) {
                CHECK(a.weights(0, j) == doctest::Approx(attend_to(0, j) ? c.weights(0, k++) : 0).epsilon(1e-14));
            }
            CHECK(support::distance(b.weights, a.weights) < 1e-14);
            by_memory = a.state, by_step = b.state, without = c.state;
        }
        const auto contexts = attend(whole, random({2, 7, 4}, 3), causal{});
        CHECK(support::all_finite(contexts));
    };
    check(normalize::decayed_temporal{0.8, 0.2});
    check(normalize::recent_temporal{2});
    check(normalize::learned_temporal{array<double, 1>{0.5}});
}

TEST_CASE("the remaining effect of a term added to a position's score at every step")
{
    const auto e = random_scores({2, 6}, 6, 1);
    const auto offset = random({2, 6}, 7, 3);
    auto constant = e, moving = e, part = e;
    for (std::size_t t = 0; t < 6; ++t) {
        for (std::size_t i = 0; i < offset.size(); ++i) {
            constant[t].data()[i] += offset.data()[i];
            moving[t].data()[i] += offset.data()[(i + t) % offset.size()];
        }
    }
    const lengths real{6, 4};
    const auto difference = [&](const auto& normalize, const steps& other, std::size_t t) {
        return support::distance(scalar::weights_of(normalize, e, real)[t],
                                 scalar::weights_of(normalize, other, real)[t]);
    };
    const auto check = [&](const auto& normalize) {  // any modulation of strength 1
        CHECK(difference(normalize, constant, 0) > 0.05);
        for (std::size_t t = 1; t < 6; ++t) {
            CHECK(difference(normalize, constant, t) < 1e-14);
            CHECK(difference(normalize, moving, t) > 0.02);
        }
    };
    check(normalize::temporal{});
    check(normalize::recent_temporal{2});
    check(normalize::decayed_temporal{1, 0.4});
    // With another strength β, a share of 1 - β remains.
    const normalize::decayed_temporal weak{0.75, 0.4};
    for (std::size_t t = 0; t < 6; ++t) {
        for (std::size_t i = 0; i < offset.size(); ++i) part[t].data()[i] += 0.25 * offset.data()[i];
    }
    const auto with_all = scalar::weights_of(weak, constant, real);
    auto state = weak.start([&](double x) { return constant_like(e[0], shape_of(e[0]), x); });
    for (std::size_t t = 0; t < 6; ++t) {
        const plain_step_context at{real, t};
        // The history without the term, the scores with a quarter of it.
        if (t > 0) CHECK(support::distance(weak(part[t], state, at), with_all[t]) < 1e-14);
        state = weak.advance(e[t], e[t], state, at);
    }
}

TEST_CASE("trap: scores minus their maximum must not enter the history")
{
    const auto e = random_scores({1, 6}, 4, 3);
    auto shifted = e;
    for (auto& step : shifted) {
        const double top = *std::max_element(step.begin(), step.end());
        for (double& x : step) x -= top;
    }
    const auto check = [&](const auto& normalize, const scalar::weigher& weigh) {
        const auto right = scalar::weights_of(normalize, e, lengths{6}),
                   wrong = scalar::weights_of(normalize, shifted, lengths{6});
        CHECK(distance(right, scalar::weights_of(weigh, e, lengths{6})) < 1e-14);
        CHECK(support::distance(right[0], wrong[0]) < 1e-15);
        CHECK(distance(right, wrong) > 0.01);
    };
    check(normalize::decayed_temporal{0.9, 0.1}, scalar::temporal(0.9, 0.1, all_steps));
    check(normalize::recent_temporal{2}, scalar::temporal(1, 0, 2));
}

TEST_CASE("a plain memory and taped queries: the first state is plain, the next states are taped")
{
    const auto check = [](const auto& normalize) {
        const attention attend{score::dot{}, normalize, combine::weighted_sum{}};
        const auto memory = attend.on(random({2, 6, 4}, 1), lengths{6, 3});
        const auto loss = [&](auto&, const auto& queries) {
            auto first = attend.step(memory, ops::step_of(std::get<0>(queries.at), 0u), attend.start(memory));
            auto now = attend.step(memory, ops::step_of(std::get<0>(queries.at), 1u), first.state);
            auto sum = ops::dot(first.context, support::uneven(shape_of_rank<2>{2, 4}));
            for (std::size_t t = 2; t < 7; ++t) {
                sum = ops::add(sum, ops::dot(now.weights, support::uneven(shape_of_rank<2>{2, 6})));
                now = attend.step(memory, ops::step_of(std::get<0>(queries.at), t), now.state);
            }
            return ops::add(sum, ops::dot(now.context, support::uneven(shape_of_rank<2>{2, 4})));
        };
        support::inputs<array<double, 3>> queries{{random({2, 7, 4}, 2)}};
        const auto found = ad::grad_check(queries, loss);
        CHECK_MESSAGE(bool(found), found.text());
    };
    for (const std::size_t n : {0u, 2u}) check(normalize::recent_temporal{n, normalize::decayed_temporal{0.5, 0.1}});
}

TEST_CASE("arguments that do not fit are rejected")
{
    const auto sentences = random({2, 4, 3}, 1);
    const auto query = random({2, 3}, 2);
    const auto refused = [&](const auto& normalize) {
        const attention attend{score::dot{}, normalize, combine::weighted_sum{}};
        return message_of<error>([&] { (void)attend.start(attend.on(sentences)); });
    };
    CHECK(refused(normalize::decayed_temporal{std::nan(""), 0}) ==
          "decayed_temporal: the strength is nan but must be finite");
    CHECK(refused(normalize::decayed_temporal{infinity, 0}) ==
          "decayed_temporal: the strength is inf but must be finite");
    CHECK(refused(normalize::decayed_temporal{1, -0.5}) ==
          "decayed_temporal: the decay is -0.500000 but must be 0 or more");
    CHECK(refused(normalize::decayed_temporal{1, std::nan("")}) ==
          "decayed_temporal: the decay is nan but must be 0 or more");

    const attention learned{score::dot{}, normalize::learned_temporal{array<double, 1>{1.0, 2.0}},
                            combine::weighted_sum{}};
    const auto memory = learned.on(sentences);
    CHECK(message_of<shape_error>([&] { (void)learned.step(memory, query, learned.start(memory)); }) ==
          "normalize::learned_temporal: the scores [2,4] do not fit w [2] "
          "(learned_temporal: w is [2] but must be [1] (one number for all scores))");

    const attention fading{score::dot{}, normalize::decayed_temporal{}, combine::weighted_sum{}};
    const auto alien = fading.start(fading.on(random({2, 5, 3}, 1)));
    CHECK(message_of<shape_error>([&] { (void)fading.step(memory, query, alien); }) ==
          "attention: the state is [2,5] but must be [2,4]: it remembers position 4 of row 0, but the memory has 4; "
          "give a state that start() or step() returned for this memory");

    const attention recent{score::dot{}, normalize::recent_temporal{3}, combine::weighted_sum{}};
    const attention longer{score::dot{}, normalize::recent_temporal{4}, combine::weighted_sum{}};
    const auto other = longer.start(longer.on(sentences));
    CHECK(
        message_of<shape_error>([&] { (void)recent.step(memory, query, other); }) ==
        "normalize::recent_temporal: the scores [2,4] do not fit "
        "(recent_sums: the sums are [2,4,3] but must be [2,4,2] (one for each score and each of the last n - 1 steps; "
        "the scores are [2,4]))");
}
