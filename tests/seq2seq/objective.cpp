// SPDX-License-Identifier: BSD-3-Clause

#include <heed/seq2seq/objective.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/seq2seq/forced.hpp>
#include <heed/seq2seq/systems/luong2015.hpp>
#include <heed/seq2seq/translator.hpp>
#include <support/approx.hpp>
#include <support/sentences.hpp>
#include <support/tensors.hpp>

// Losses that read attention weights: their values, and their gradients through a complete system.

using namespace heed;
using namespace heed::seq2seq;
using support::pointers;

namespace {

const std::vector<id_sentence> sources{{4, 5, 6}, {4, 1}, {6, 5, 4, 4}, {}};
const std::vector<id_sentence> targets{{4, 5}, {7, 6, 5, 4}, {5}, {4}};
const auto examples = make_training_batch<double>(pointers(sources), pointers(targets));

constexpr sizes small{8, 8, 4, 3, 5};

/// Large weights, so that attention is far from uniform.
auto sharpened(auto model)
{
    for_each_parameter(model, [](const std::string&, auto& x) {
        for (double& w : x) w *= 3;
    });
    return model;
}

const auto model = sharpened(make_translator<double>(3, small, attentions::additive_factory{}));

/// The value of a loss equals the penalty on the weights of forced decoding, and its gradient is correct.
void check(const auto& objective, double penalty_of_forced)
{
    const double alone = model.loss(examples, 0.1).data()[0];
    CHECK(loss_with(model, examples, objective, 0.1).data()[0] == support::approx(alone + penalty_of_forced));
    CHECK(std::abs(penalty_of_forced) > 1e-2);
    auto changed = model;
    const auto result =
        ad::grad_check(changed, [&](auto&, const auto& lifted) { return loss_with(lifted, examples, objective); });
    CHECK_MESSAGE(result, result.text());
}

/// Two models of opposite directions, trained together.
template <class Model>
struct both_directions {
    Model there, back;

    static auto parameters(auto& self, auto&& visit)
    {
        auto first = visit("there", self.there);
        return of(std::move(first), visit("back", self.back));
    }

    template <class Other>
    static both_directions<Other> of(Other there, Other back)
    {
        return {std::move(there), std::move(back)};
    }
};

}  // namespace

TEST_CASE("penalties apply to the weights of forced decoding")
{
    const auto led = force<double>(model, examples.source, pointers(targets), {.with_weights = true});
    double once = 0, again = 0, backwards = 0, told = 0;
    const std::vector<penalty::links> links{{{0, 0}, {1, 2}}, {{1, 3}}, {}, {{0, 0}, {0, 1}}};
    for (std::size_t b = 0; b < 4; ++b) {
        const auto& a = led[b].weights;  // the last step is that of the end word
        REQUIRE(a.size() == targets[b].size() + 1);
        std::vector<double> seen(sources[b].size() + 1, 0.0);
        double before = 0;
        for (std::size_t t = 0; t < a.size(); ++t) {
            double mean = 0;
            for (std::size_t i = 0; i < seen.size(); ++i) {
                again += std::min(a[t][i], seen[i]);
                seen[i] += a[t][i];
                mean += static_cast<double>(i) * a[t][i];
            }
            if (t > 0) backwards += std::max(0.0, before - mean);
            before = mean;
        }
        for (const double all : seen) once += (1 - all) * (1 - all);
        for (const auto& [i, j] : links[b])
            told -= std::log(a[static_cast<std::size_t>(j)][static_cast<std::size_t>(i)]);
    }
    check(objective::sum{objective::doubly_stochastic{0.5}, objective::coverage{0.25}}, 0.5 * once + 0.25 * again);
    check(objective::sum{objective::monotone{2}, objective::guided_alignment{links, 0.125}},
          2 * backwards + 0.125 * told);
}

TEST_CASE("weights per dimension enter by their mean; models of other kinds support objectives as well")
{
    const auto fine = sharpened(make_translator<double>(3, small, attentions::per_dimension_factory{}));
    const auto seen = fine.follow(examples);
    const auto led = force<double>(fine, examples.source, pointers(targets), {.with_weights = true});
    for (std::size_t b = 0; b < 4; ++b) {
        for (std::size_t t = 0; t < led[b].weights.size(); ++t) {
            for (std::size_t i = 0; i < led[b].weights[t].size(); ++i) {
                CHECK(seen.weights[t](b, i) == doctest::Approx(led[b].weights[t][i]).epsilon(1e-12));
            }
        }
    }
    namespace luong = papers::luong2015;
    const auto input_feeding = luong::translator<double>(
        3, small, attention_factory{luong::general_factory{}, normalize::local_m{1}}, luong::parts(2));
    ad::tape<double> on;
    const auto lifted = ad::lift(on, input_feeding);
    on.backward(loss_with(lifted, examples, objective::coverage{}));
    CHECK(support::all_finite(on.gradient(lifted.decoder.attention.score.W)));
}

TEST_CASE("bilingual symmetry compares the links of two directions, and trains both")
{
    auto both = both_directions<std::remove_cvref_t<decltype(model)>>::of(
        model, sharpened(make_translator<double>(4, small, attentions::additive_factory{})));
    const auto opposite = make_training_batch<double>(pointers(targets), pointers(sources));
    const auto agreement = [&](const auto& models) {
        const auto there = models.there.follow(examples);
        const auto back = models.back.follow(opposite);
        return penalty::symmetry(there.weights, back.weights, examples.source.real, examples.target_lengths());
    };
    const auto there = force<double>(both.there, examples.source, pointers(targets), {.with_weights = true});
    const auto back = force<double>(both.back, opposite.source, pointers(sources), {.with_weights = true});
    double must = 0;
    for (std::size_t b = 0; b < 4; ++b) {
        for (std::size_t j = 0; j <= targets[b].size(); ++j) {
            for (std::size_t i = 0; i <= sources[b].size(); ++i) must -= there[b].weights[j][i] * back[b].weights[i][j];
        }
    }
    CHECK(agreement(both).data()[0] == doctest::Approx(must).epsilon(1e-12));
    const auto result = ad::grad_check(both, [&](auto&, const auto& lifted) { return agreement(lifted); });
    CHECK_MESSAGE(result, result.text());
}

TEST_CASE("the score-function term has the gradient of the expected cost of hard attention")
{
    // Three positions and one step, so that every draw can be enumerated: these seeds draw each position.
    const std::vector<id_sentence> source{{4, 5}}, target{{}};
    const auto batch = make_training_batch<double>(pointers(source), pointers(target));
    const auto hard = sharpened(
        make_translator<double>(5, small, attention_factory{attentions::additive_score_factory{}, normalize::hard{1}}));
    std::vector<std::uint64_t> seeds(3, 0);
    auto drawing = hard;
    for (std::uint64_t seed = 1; seeds[0] * seeds[1] * seeds[2] == 0; ++seed) {
        REQUIRE(seed < 10000);
        drawing.decoder.attention.normalize.seed = seed;
        const auto weights = drawing.follow(batch).weights[0];
        for (std::size_t j = 0; j < 3; ++j) {
            if (weights(0, j) == 1) seeds[j] = seed;
        }
    }
    const auto costs = [&] {
        std::vector<double> of_draws;
        for (const std::uint64_t seed : seeds) {
            drawing.decoder.attention.normalize.seed = seed;
            of_draws.push_back(drawing.loss(batch)());
        }
        return of_draws;
    }();
    const auto probabilities = [&](const array<double, 1>& v) {
        attention soft{hard.decoder.attention.score, normalize::softmax{}, combine::weighted_sum{}};
        soft.score.v = v;
        const auto encoded = hard.encoder.encode(batch.source);
        const auto memory = soft.on(encoded.annotations, batch.source.real);
        const auto opened = hard.decoder.open(encoded, batch.source.real);
        return soft.step(memory, opened.state.cell, soft.start(memory)).weights;
    };
    const array<double, 1>& v = hard.decoder.attention.score.v;
    const auto p = probabilities(v);
    std::vector<double> mean(v.size(), 0.0);
    for (std::size_t j = 0; j < 3; ++j) {
        drawing.decoder.attention.normalize.seed = seeds[j];
        objective::moving_baseline baseline;
        baseline.add(1.5);
        ad::tape<double> on;
        const auto lifted = ad::lift(on, drawing);
        on.backward(loss_with(lifted, batch, objective::score_function{baseline}));
        CHECK(baseline.value == support::approx(0.9 * 1.5 + 0.1 * costs[j]));
        const auto g = on.gradient(lifted.decoder.attention.score.v);
        for (std::size_t k = 0; k < mean.size(); ++k) mean[k] += p(0, j) * g.data[k];
    }
    for (std::size_t k = 0; k < mean.size(); ++k) {
        array<double, 1> up = v, down = v;
        up(k) += 1e-5;
        down(k) -= 1e-5;
        double must = 0;
        for (std::size_t j = 0; j < 3; ++j) {
            must += costs[j] * (probabilities(up)(0, j) - probabilities(down)(0, j)) / 2e-5;
        }
        CHECK(mean[k] == support::approx(must, support::gradient_tolerance<double>));
        CHECK(std::abs(must) > 1e-4);
    }
}
