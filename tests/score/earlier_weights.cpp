// SPDX-License-Identifier: BSD-3-Clause
#include <heed/score/with_location.hpp>
#include <support/scalar_memory.hpp>

#include <memory>

// Scores that read the weights of earlier steps, and the positions of source and target.

using namespace heed;
using support::check_memory;
using support::random;
namespace scalar = support::scalar;

namespace {

constexpr support::mechanism_sizes sizes{};  // query 3, width 5, alignment 4, word 2
const support::plain_query describe{sizes.query};
const verification_sizes verified{.query = sizes.query, .width = sizes.width};
const support::additive_parameters parameters{sizes};

auto location_over(const auto& base, std::size_t width = 3)
{
    return score::with_location{base, random({2, width}, 51), random({2, sizes.alignment}, 52)};
}
auto positions_over(const auto& base) { return score::with_positions{base, random({3, sizes.alignment}, 53)}; }
template <class Which>
auto neighbours_over(const auto& base, Which which)
{
    return score::with_neighbours{base, random({5, sizes.alignment}, 54), which};
}

/// The weights of the last step, or of all steps, and the number of the step and the length of the sentence.
struct seen {
    scalar::numbers last, all;
    std::size_t step = 0;

    double of(const scalar::numbers& weights, std::ptrdiff_t j) const
    {
        return j < 0 || j >= static_cast<std::ptrdiff_t>(weights.size()) ? 0 : weights[static_cast<std::size_t>(j)];
    }
};

/// features(seen, j) times `matrix`, as a memory.
template <class Features>
scalar::remembering scalar_memory(const array<double, 2>& matrix, Features features)
{
    const auto now = std::make_shared<seen>();
    const auto M = scalar::matrix_of(matrix);
    return {[=](const scalar::matrix& sentence) {
                now->last.assign(sentence.size(), 0.0);
                now->all.assign(sentence.size(), 0.0);
            },
            [=](std::size_t step, const std::vector<scalar::numbers>&) { now->step = step; },
            [=](std::size_t j) { return scalar::times(features(*now, static_cast<std::ptrdiff_t>(j)), M); },
            [=](const scalar::numbers& weights) {
                now->last = weights;
                for (std::size_t j = 0; j < weights.size(); ++j) now->all[j] += weights[j];
            }};
}

scalar::remembering scalar_location(const auto& score)
{
    return scalar_memory(score.U_f, [F = scalar::matrix_of(score.F)](const seen& now, std::ptrdiff_t j) {
        scalar::numbers f;
        for (const scalar::numbers& filter : F) {
            f.push_back(0);
            const auto reach = static_cast<std::ptrdiff_t>(filter.size() / 2);
            for (std::ptrdiff_t i = -reach; i <= reach; ++i) {
                f.back() += filter[static_cast<std::size_t>(i + reach)] * now.of(now.last, j + i);
            }
        }
        return f;
    });
}
scalar::remembering scalar_positions(const auto& score)
{
    return scalar_memory(score.P, [](const seen& now, std::ptrdiff_t j) {
        return scalar::numbers{std::log(1.0 + static_cast<double>(now.step + 1)),
                               std::log(1.0 + static_cast<double>(j + 1)),
                               std::log(1.0 + static_cast<double>(now.last.size()))};
    });
}
scalar::remembering scalar_neighbours(const auto& score, bool all)
{
    return scalar_memory(score.M, [all](const seen& now, std::ptrdiff_t j) {
        scalar::numbers xi;
        for (std::ptrdiff_t i = -2; i <= 2; ++i) xi.push_back(now.of(all ? now.all : now.last, j + i));
        return xi;
    });
}

/// f(score, its equation) for each.
template <class F>
void each_score(F&& f)
{
    const auto base = parameters.score();
    const auto location = location_over(base), wide = location_over(base, 13);
    const auto positions = positions_over(base);
    const auto markov = neighbours_over(base, score::last_weights{});
    const auto fertility = neighbours_over(base, score::all_weights{});
    f("location", location, scalar_location(location));
    f("location, filters wider than the sentence", wide, scalar_location(wide));
    f("positions", positions, scalar_positions(positions));
    f("neighbours of the last weights", markov, scalar_neighbours(markov, false));
    f("neighbours of all weights", fertility, scalar_neighbours(fertility, true));
}

}  // namespace

TEST_CASE("scores that read earlier weights are their equations")
{
    each_score([](const std::string& name, const auto& score, const scalar::remembering& equation) {
        support::about(name, [&] {
            const attention softmax{score, normalize::softmax{}, combine::weighted_sum{}};
            const attention temporal{score, normalize::temporal{}, combine::weighted_sum{}};
            check_memory(softmax, parameters, equation, false, describe, sizes.width);
            check_memory(temporal, parameters, equation, true, describe, sizes.width);
            support::check_selection(softmax, describe, sizes.width);
            support::check_selection(temporal, describe, sizes.width);
            support::check_extremes(softmax, describe, sizes.width);
            support::check_extremes(temporal, describe, sizes.width);
        });
    });
}

TEST_CASE("their gradient is that of finite differences, through the weights of earlier steps")
{
    each_score([](const std::string& name, const auto& score, const scalar::remembering&) {
        support::about(name, [&] {
            support::check_gradients(attention{score, normalize::softmax{}, combine::weighted_sum{}}, describe,
                                     sizes.width);
            support::check_gradients(attention{score, normalize::temporal{}, combine::weighted_sum{}}, describe,
                                     sizes.width);
        });
    });
}

TEST_CASE("they keep the contracts")
{
    each_score([](const std::string& name, const auto& score, const scalar::remembering&) {
        support::about(name, [&] {
            support::check_verified(attention{score, normalize::softmax{}, combine::weighted_sum{}}, verified,
                                    describe);
            support::check_verified(attention{score, normalize::temporal{}, combine::weighted_sum{}}, verified,
                                    describe);
        });
    });
}

TEST_CASE("one laid over the other: the biases of one model")
{
    // Cohn et al.'s model has all three; any order gives the same scores.
    const auto base = parameters.score();
    const attention one{
        positions_over(neighbours_over(neighbours_over(base, score::last_weights{}), score::all_weights{})),
        normalize::softmax{}, combine::weighted_sum{}};
    const attention other{
        neighbours_over(positions_over(neighbours_over(base, score::all_weights{})), score::last_weights{}),
        normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = one.on(random({2, 4, sizes.width}, 1), lengths{4, 2});
    auto a = one.start(memory);
    auto b = other.start(memory);
    for (std::size_t t = 0; t < 4; ++t) {
        const auto s = random({2, sizes.query}, 10 + t);
        auto first = one.step(memory, s, a);
        auto second = other.step(memory, s, b);
        CHECK(support::distance(first.weights, second.weights) < 1e-14);
        a = first.state;
        b = second.state;
    }
    support::check_selection(one, describe, sizes.width);
    support::check_gradients(one, describe, sizes.width);
}

TEST_CASE("a weight for each dimension: their mean is what is remembered")
{
    const auto V = random({sizes.alignment, sizes.width}, 71);
    const attention attend{location_over(score::additive_per_dimension{parameters.W, parameters.U, V}),
                           normalize::temporal{}, combine::elementwise_sum{}};
    support::check_gradients(attend, describe, sizes.width);
    const auto memory = attend.on(random({2, 4, sizes.width}, 1), lengths{4, 2});
    const auto now = attend.step(memory, random({2, sizes.query}, 2), attend.start(memory));
    array<double, 2> mean(shape_of_rank<2>{2, 4}, 0.0);
    for (std::size_t i = 0; i < now.weights.size(); ++i) {
        mean.data()[i / sizes.width] += now.weights.data()[i] / static_cast<double>(sizes.width);
    }
    CHECK(support::distance(now.state.score.features, ops::convolve(mean, attend.score.F)) < 1e-15);
}

TEST_CASE("a first look can be given; what does not fit is refused")
{
    const attention attend{location_over(parameters.score()), normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(random({2, 4, sizes.width}, 1), lengths{4, 2});
    array<double, 2> at_the_start(shape_of_rank<2>{2, 4}, 0.0);
    at_the_start(0, 0) = at_the_start(1, 0) = 1;
    const auto past = attend.score.start_from(memory, at_the_start);
    for (std::size_t k = 0; k < 2; ++k) {
        CHECK(past.features(0, 0, k) == attend.score.F(k, 1));
        CHECK(past.features(0, 1, k) == attend.score.F(k, 0));
        CHECK(past.features(0, 2, k) == 0);
    }
    const auto q = random({2, sizes.query}, 2);
    CHECK(support::distance(attend.step(memory, q, attend.start(memory, past)).weights,
                            attend.step(memory, q, attend.start(memory)).weights) > 1e-3);

    const auto message = [](auto&& act) { return support::message_of<shape_error>(act); };
    CHECK(support::contains(message([&] {
                                attend.score.start_from(memory, random({2, 3}, 1));
                            }),
                            "with_location::start_from: the weights is [2,3] but must be [2,4]"));
    const attention even{location_over(parameters.score(), 4), normalize::softmax{}, combine::weighted_sum{}};
    CHECK(support::contains(message([&] { even.start(memory); }), "their width must be odd"));
    const attention pairs{score::with_neighbours{parameters.score(), random({4, sizes.alignment}, 1)},
                          normalize::softmax{}, combine::weighted_sum{}};
    CHECK(
        support::contains(message([&] { pairs.start(memory); }), "with_neighbours: M is [4,4], but must have an odd"));
    const auto alien = attend.start(attend.on(random({2, 5, sizes.width}, 1)));
    CHECK(support::contains(message([&] { attend.step(memory, q, alien); }), "the state is [2,5"));
}

TEST_CASE("a window sees what was looked at beyond its edges, and positions by their place in the sentence")
{
    // Within a window the scores of its positions are those of the whole sentence.
    const auto check = [](const auto& score) {
        const attention whole{score, normalize::softmax{}, combine::weighted_sum{}};
        const attention local{score, normalize::local_m{1}, combine::weighted_sum{}};
        const auto memory = whole.on(random({2, 7, sizes.width}, 1), lengths{7, 5});
        auto past = whole.start(memory);  // two steps that look everywhere
        for (std::size_t t = 0; t < 2; ++t) past = whole.step(memory, random({2, sizes.query}, 5 + t), past).state;
        auto there = local.start(memory, past.score);
        there.step = past.step;
        const auto q = random({2, sizes.query}, 9);
        const auto everywhere = whole.step(memory, q, past).weights, within = local.step(memory, q, there).weights;
        for (std::size_t b = 0; b < 2; ++b) {  // step 2 looks at 1, 2, 3
            const double sum = everywhere(b, 1) + everywhere(b, 2) + everywhere(b, 3);
            for (std::size_t j = 0; j < 7; ++j) {
                const double must = j >= 1 && j <= 3 ? everywhere(b, j) / sum : 0;
                CHECK(within(b, j) == doctest::Approx(must).epsilon(1e-12));
            }
        }
    };
    check(location_over(parameters.score(), 5));
    check(positions_over(parameters.score()));
    check(neighbours_over(parameters.score(), score::all_weights{}));
}
