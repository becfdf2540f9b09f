// SPDX-License-Identifier: BSD-3-Clause
#include <support/scalar_memory.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

// Scores that wrap scores: in any order, both keep their state, and each step updates both.

using namespace heed;
using support::random;

namespace {

constexpr support::mechanism_sizes sizes{};  // query 3, width 5, alignment 4, word 2
constexpr std::size_t N = 3;
const support::query_with_word describe{sizes.query, sizes.word};
const support::additive_parameters parameters{sizes};

auto word_over(const auto& base) { return score::with_word{base, random({sizes.word, sizes.alignment}, 50)}; }
auto recurrence_over(const auto& base)
{
    return score::with_recurrence{base, random({N, sizes.alignment}, 80),
                                  nn::gru{random({sizes.word + sizes.width, 3 * N}, 81), random({3 * N}, 82),
                                          random({N, 2 * N}, 83), random({N, N}, 84)}};
}

auto coverage_over(const auto& base)
{
    return score::with_coverage{
        base, random({N, sizes.alignment}, 63),
        nn::coverage_gru{random({sizes.word, 3 * N}, 64), random({3 * N}, 65, 2.0), random({N, 3 * N}, 66)}};
}
auto location_over(const auto& base)
{
    return score::with_location{base, random({2, 3}, 51), random({2, sizes.alignment}, 52)};
}

/// Calls f(name, over), where over(base) wraps a base in a score with a state.
template <class F>
void each_with_memory(F&& f)
{
    const auto to = sizes.alignment;
    f("location", [](const auto& base) { return location_over(base); });
    f("positions", [to](const auto& base) { return score::with_positions{base, random({3, to}, 53)}; });
    f("neighbors", [to](const auto& base) { return score::with_neighbors{base, random({5, to}, 54)}; });
    f("fertility", [to](const auto& base) {
        return score::with_fertility{base, random({to}, 61), random({sizes.width}, 62), 3.0};
    });
    f("gated coverage", [to](const auto& base) {
        return score::with_gated_coverage{base, random({N, to}, 71),
                                          nn::gated_coverage{random({sizes.width, 3 * N}, 72),
                                                             random({sizes.query, 3 * N}, 73), random({3 * N}, 74, 2.0),
                                                             random({N, 2 * N}, 75), random({N, N}, 76)}};
    });
    f("coverage", [](const auto& base) { return coverage_over(base); });
    f("recurrence", [](const auto& base) { return recurrence_over(base); });
}

auto attend_with(const auto& score) { return attention{score, normalize::temporal{}, combine::weighted_sum{}}; }

/// The weights of four steps, concatenated.
std::vector<double> weights_of(const auto& attend, const auto& query_of)
{
    const auto memory = attend.on(random({2, 5, sizes.width}, 1), lengths{5, 3});
    auto state = attend.start(memory);
    std::vector<double> all;
    for (std::size_t t = 0; t < 4; ++t) {
        auto now = attend.step(memory, query_of(t), state);
        all.insert(all.end(), now.weights.begin(), now.weights.end());
        state = now.state;
    }
    return all;
}
auto query_at(std::size_t t)
{
    return state_and_word{random({2, sizes.query}, 10 + t), random({2, sizes.word}, 20 + t)};
}

double apart(const std::vector<double>& a, const std::vector<double>& b)
{
    REQUIRE(a.size() == b.size());
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
    return most;
}

}  // namespace

TEST_CASE("a word, a score with a state and a recurrence: the order does not matter, and each gets its input")
{
    const auto word_and_recurrence = weights_of(attend_with(word_over(recurrence_over(parameters.score()))), query_at);
    each_with_memory([&](const std::string& name, const auto& over) {
        CAPTURE(name);
        const auto one = attend_with(word_over(over(recurrence_over(parameters.score()))));
        const auto other = attend_with(recurrence_over(over(word_over(parameters.score()))));
        const auto weights = weights_of(one, query_at);
        CHECK(apart(weights, weights_of(other, query_at)) < 1e-14);
        // Each component matters: without the score with a state, the word, or the recurrence, the weights differ.
        CHECK(apart(weights, word_and_recurrence) > 1e-3);
        auto no_word = one, no_recurrence = one;
        no_word.score.Y.fill(0.0);
        no_recurrence.score.base.base.W_r.fill(0.0);
        CHECK(apart(weights, weights_of(no_word, query_at)) > 1e-3);
        CHECK(apart(weights, weights_of(no_recurrence, query_at)) > 1e-3);
        support::check_selection(one, describe, sizes.width);
    });
}

TEST_CASE("a word over recurrence over coverage: gradients through both states, in every form")
{
    const auto attend = attend_with(word_over(recurrence_over(coverage_over(parameters.score()))));
    support::check_gradients(attend, describe, sizes.width);
    support::check_verified(attend, verification_sizes{.query = sizes.query, .width = sizes.width}, describe);
}

TEST_CASE("a word over a score with a state: an initial state can be given, and words can be projected in advance")
{
    const auto location = location_over(parameters.score());
    const auto attend = attend_with(word_over(location));
    const auto other = attend_with(location_over(word_over(parameters.score())));
    const auto projected = [&](std::size_t t) {
        const auto q = query_at(t);
        return state_and_projected_word{q.state, attend.score.project_words(q.word)};
    };
    CHECK(apart(weights_of(attend, projected), weights_of(attend, query_at)) < 1e-14);
    CHECK(apart(weights_of(other, projected), weights_of(attend, query_at)) < 1e-14);

    const auto memory = attend.on(random({2, 4, sizes.width}, 1), lengths{4, 2});
    const auto looked = random({2, 4}, 2);
    const auto first = attend.step(memory, query_at(0), attend.start(memory, location.start_from(memory, looked)));
    const auto must = other.step(memory, query_at(0), other.start(memory, other.score.start_from(memory, looked)));
    CHECK(support::distance(first.weights, must.weights) < 1e-15);
    CHECK(support::distance(first.weights, attend.step(memory, query_at(0), attend.start(memory)).weights) > 1e-3);
}
