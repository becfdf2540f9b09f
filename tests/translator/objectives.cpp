// SPDX-License-Identifier: BSD-3-Clause

// Penalties and guided alignment in the training of a system: gradients are those of heed::seq2seq::loss_with.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/seq2seq/objective.hpp>
#include <heed/seq2seq/translator.hpp>
#include <heed_translator/systems.hpp>

namespace {

using namespace heed;
namespace objective = heed::seq2seq::objective;
using translator::token_links;
using translator::training_step_input;

constexpr std::size_t words_known = 9;

training_step_input some_batch()
{
    const std::vector<seq2seq::id_sentence> sources{{4, 5, 6, 7}, {8, 4}, {5, 5, 8}}, targets{{6, 4}, {7, 8, 5}, {4}};
    std::vector<const seq2seq::id_sentence*> from, to;
    for (std::size_t b = 0; b < sources.size(); ++b) {
        from.push_back(&sources[b]);
        to.push_back(&targets[b]);
    }
    return {seq2seq::make_training_batch<float>(from, to), {}};
}

const std::vector<token_links> some_links{{{0, 0}, {3, 0}, {1, 1}}, {}, {{2, 0}}};

translator::options small()
{
    translator::options how;
    how.embedding = how.hidden = how.alignment = 5;
    how.dropout = 0;
    return how;
}

struct gradients_of_step final : translator::system::gradient_exchange {
    std::vector<float> all;

    double sum(ad::tape<float>& on, const translator::system::variables& lifted, double loss) override
    {
        for (const auto& [name, x] : lifted) {
            const auto g = on.gradient(x);
            all.insert(all.end(), g.data, g.data + x.size());
        }
        return loss;
    }
};

struct loss_and_gradients {
    double loss;
    std::vector<float> gradients;
};

loss_and_gradients of_system(const translator::options& how, training_step_input one)
{
    const auto system = translator::make_system(how, words_known, words_known);
    random_source random{5};
    gradients_of_step got;
    std::vector<training_step_input> together{std::move(one)};
    const double loss = system->train(together, how, random, 1e-3, &got).loss;
    return {loss, got.all};
}

/// `add`: the objective.
loss_and_gradients by_hand(const auto& add)
{
    const translator::options how = small();
    seq2seq::sizes n{words_known, words_known, how.embedding, how.hidden, how.alignment};
    const auto model = seq2seq::make_translator<float>(how.seed, n, seq2seq::attentions::additive_factory{});
    const auto batch = some_batch().examples;
    ad::tape<float> on;
    translator::system::variables lifted;
    const auto taped = ad::lift(on, model, lifted);
    const ad::var<float, 0> loss = seq2seq::loss_with(taped, batch, add);
    on.backward(ops::scale(loss, 1 / static_cast<double>(batch.target_words)));
    loss_and_gradients result{static_cast<double>(model.loss(batch).data()[0]), {}};
    for (const auto& [name, x] : lifted) {
        const auto g = on.gradient(x);
        result.gradients.insert(result.gradients.end(), g.data, g.data + x.size());
    }
    return result;
}

double distance(const std::vector<float>& one, const std::vector<float>& other)
{
    REQUIRE(one.size() == other.size());
    double sum = 0;
    for (std::size_t i = 0; i < one.size(); ++i) sum += std::pow(static_cast<double>(one[i] - other[i]), 2);
    return std::sqrt(sum);
}

/// Equal gradients, which differ from those without an objective; the loss is the cross-entropy alone.
void require_equal(const loss_and_gradients& got, const loss_and_gradients& expected)
{
    CHECK(got.loss == doctest::Approx(expected.loss).epsilon(1e-5));
    CHECK(distance(got.gradients, expected.gradients) < 1e-6);
    CHECK(distance(got.gradients, of_system(small(), some_batch()).gradients) > 1e-4);
}

TEST_CASE("each penalty has the gradient of its objective, and the loss remains the cross-entropy")
{
    translator::options how = small();
    how.penalty = "doubly-stochastic:0.75";
    require_equal(of_system(how, some_batch()), by_hand(objective::doubly_stochastic{0.75}));
    how.penalty = "coverage:0.5";
    require_equal(of_system(how, some_batch()), by_hand(objective::coverage{0.5}));
    how.penalty = "monotone:20";
    require_equal(of_system(how, some_batch()), by_hand(objective::monotone{20}));
    how.penalty = "monotone:20,coverage:0.5";
    require_equal(of_system(how, some_batch()),
                  by_hand(objective::sum{objective::coverage{0.5}, objective::monotone{20}}));
}

TEST_CASE("links guide the step that outputs a token, or the next one")
{
    translator::options how = small();
    training_step_input one = some_batch();
    one.links = some_links;
    require_equal(of_system(how, one), by_hand(objective::guided_alignment{some_links, 0.5}));

    how.guided_shift = 1;
    how.guided_weight = 0.125;
    how.penalty = "coverage:0.5";
    std::vector<token_links> later = some_links;
    for (token_links& each : later) {
        for (auto& link : each) ++link.second;
    }
    require_equal(of_system(how, one),
                  by_hand(objective::sum{objective::guided_alignment{later, 0.125}, objective::coverage{0.5}}));
}

TEST_CASE("systems without a weight per position are rejected")
{
    translator::options how = small();
    CHECK(translator::make_system(how, words_known, words_known)->has_position_weights());
    for (const char* const attention : {"none", "per-dimension"}) {
        how.attention = attention;
        CHECK(!translator::make_system(how, words_known, words_known)->has_position_weights());
        training_step_input one = some_batch();
        one.links = some_links;
        CHECK_THROWS_AS(of_system(how, one), error);
        how.penalty = "coverage:1";
        CHECK_THROWS_AS(of_system(how, some_batch()), error);
        how.penalty.clear();
    }
}

}  // namespace
