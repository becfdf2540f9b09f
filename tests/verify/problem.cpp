// SPDX-License-Identifier: BSD-3-Clause
#include <heed/verify/problem.hpp>

#include <doctest/doctest.h>

#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/normalize/temporal.hpp>
#include <heed/score/general.hpp>
#include <support/tensors.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

using namespace heed;
using namespace heed::detail::verifying;
using run_numbers = heed::detail::verifying::outcome<double>;

namespace {

const auto of_one = [](auto part) { return part("query", std::size_t{3}); };
const auto of_two = [](auto part) {
    return state_and_word{part("state", std::size_t{3}), part("word", std::size_t{2})};
};

/// A mechanism with a history on four sentences of up to five positions.
struct temporal_run {
    attention<score::general<array<double, 2>>, normalize::temporal, combine::weighted_sum> attend{
        score::general{support::random({3, 4}, 1)}, {}, {}};
    made_up_sentences made = sentences(layout_of(of_one), 7, 4, 5, 3, 4);
    problem<decltype(attend), array<double, 3>> p{attend, made.annotations, made.parts};
    setting<decltype(of_one)> at{of_one, layout_of(of_one), made.real, 3};
};

}  // namespace

TEST_CASE("sentences with each kind of length, and queries as described")
{
    const auto layout = layout_of(of_two);
    REQUIRE(layout.size() == 2);
    CHECK(layout[0].name == "state");
    CHECK(layout[1].width == 2);
    const made_up_sentences made = sentences(layout, 7, 6, 5, 3, 4);
    CHECK(shape_of(made.annotations) == shape_of_rank<3>{6, 5, 4});
    CHECK(shape_of(made.parts[1]) == shape_of_rank<3>{6, 3, 2});
    const std::size_t real[] = {5, 0, 1, 3, 5, 0};
    for (std::size_t b = 0; b < 6; ++b) CHECK(made.real[b] == real[b]);
    CHECK(sentences(layout, 7, 3, 0, 1, 4).real[2] == 0);
    CHECK(support::same_bits(sentences(layout, 7, 6, 5, 3, 4).annotations, made.annotations));
    CHECK(!support::same_bits(sentences(layout, 8, 6, 5, 3, 4).annotations, made.annotations));

    const setting<decltype(of_two)> at{of_two, layout, made.real, 3};
    const auto query = at.query(made.parts, 2);
    CHECK(support::same_bits(query.state, ops::step_of(made.parts[0], 2)));
    CHECK(support::same_bits(query.word, ops::step_of(made.parts[1], 2)));
    CHECK(support::same_bits(at.queries(made.parts).word, made.parts[1]));
}

TEST_CASE("each form of a run equals that call, step by step")
{
    const temporal_run r;
    const auto memory = r.attend.on(r.made.annotations, r.made.real);
    auto state = r.attend.start(memory);
    run_numbers must, contexts;
    for (std::size_t s = 0; s < 3; ++s) {
        const auto now = r.attend.step(memory, ops::step_of(r.made.parts[0], s), state);
        append(must, "context of step " + std::to_string(s), now.context);
        contexts.push_back(must.back());
        append(must, "weights of step " + std::to_string(s), now.weights);
        state = now.state;
    }
    CHECK(differing_bits(results<form::step, double>(r.p, r.at), must) == "");
    CHECK(differing_bits(results<form::step_into, double>(r.p, r.at), must) == "");
    CHECK(differing_bits(results<form::read, double>(r.p, r.at), contexts) == "");
    CHECK(compare(results<form::compose, double>(r.p, r.at), must).worst < 1e-13);
    CHECK(compare(results<form::many_queries, double>(r.p, r.at), contexts).worst < 1e-13);
    CHECK(results<form::step, double>(r.p, r.at)[5].name == "weights of step 2");

    // Rows selected after the first step equal those rows of a run with all rows.
    const std::vector<std::size_t> rows{3, 0, 3};
    const auto chosen = results_of_rows(rows, r.p, r.at), all = results_of_rows({}, r.p, r.at);
    CHECK(differing_bits(all, must) == "");
    REQUIRE(chosen[4].values.size() == 3 * 4);
    for (std::size_t i = 0; i < 12; ++i)
        CHECK(std::abs(chosen[4].values[i] - all[4].values[rows[i / 4] * 4 + i % 4]) < 1e-13);
}

TEST_CASE("the gradient of a run equals that of its weighted sum, for every parameter, annotation and query")
{
    const temporal_run r;
    const auto loss_at = [&](double change) {
        auto p = r.p;
        p.attend.score.W(1, 2) += change;
        double sum = 0;
        const auto all = results<form::step, double>(p, r.at);
        for (std::size_t s = 0; s < 3; ++s) {
            const auto by_context = uneven<double, 2>({4, 4}, s), by_weights = uneven<double, 2>({4, 5}, s + 100);
            for (std::size_t i = 0; i < 16; ++i) sum += by_context.data()[i] * all[2 * s].values[i];
            for (std::size_t i = 0; i < 20; ++i) sum += by_weights.data()[i] * all[2 * s + 1].values[i];
        }
        return sum;
    };
    const auto slopes = gradients<form::step, true, double>(r.p, r.at);
    REQUIRE(slopes.size() == 3);
    CHECK(slopes[0].name == "gradient of attention.score.W");
    CHECK(slopes[1].name == "gradient of annotations");
    CHECK(slopes[2].name == "gradient of queries.0");
    const double by_differences = (loss_at(1e-5) - loss_at(-1e-5)) / 2e-5;
    CHECK(std::abs(slopes[0].values[1 * 4 + 2] - by_differences) < 1e-8);
    CHECK(slopes[2].values.size() == r.made.parts[0].size());
}

TEST_CASE("outcomes are compared by their largest difference, and its place")
{
    const run_numbers a{{"context", {1, 2}}, {"weights", {0, 3}}};
    auto b = a;
    CHECK(compare(a, b).worst == 0);
    CHECK(differing_bits(a, b) == "");
    b[1].values[1] = 1;
    CHECK(compare(a, b).worst == 1);  // 2 / (1 + 1)
    CHECK(compare(a, b).where == "weights[1]: 3.000000 against 1.000000");
    b[1].values[1] = std::nan("");
    CHECK(compare(a, b).worst == INFINITY);
    b = a;
    b[1].values[0] = -0.0;
    CHECK(compare(a, b).worst == 0);
    CHECK(differing_bits(a, b) == "weights[0]: 0.000000 against -0.000000");
    b[0].values.pop_back();
    CHECK(compare(a, b).where == "the size of the context");
    CHECK(differing_bits(a, b) == "the size of the context");
    b.pop_back();
    CHECK(compare(a, b).where == "the number of results");
    CHECK(compare(a, b).worst == std::numeric_limits<double>::infinity());
}

TEST_CASE("a score that returns its input")
{
    const auto scores = support::random({2, 3, 1}, 5), by_dimension = support::random({2, 3, 4}, 6);
    const given_scores<weight_kind::per_position, array<double, 3>> one{scores};
    const auto e = one(0, one.prepare(0));
    CHECK(shape_of(e) == shape_of_rank<2>{2, 3});
    for (std::size_t i = 0; i < 6; ++i) CHECK(e.data()[i] == scores.data()[i]);
    const given_scores<weight_kind::per_dimension, array<double, 3>> several{by_dimension};
    CHECK(support::same_bits(several(0, several.prepare(0)), by_dimension));
    CHECK(several.groups() == 4);
}
