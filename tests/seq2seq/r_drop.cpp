// SPDX-License-Identifier: BSD-3-Clause
#include <heed/seq2seq/r_drop.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/seq2seq/systems/gehring2017.hpp>
#include <heed/seq2seq/systems/vaswani2017.hpp>
#include <heed/seq2seq/translator.hpp>
#include <support/approx.hpp>
#include <support/sentences.hpp>

using namespace heed;
using namespace heed::seq2seq;
using support::pointers;

namespace {

const std::vector<id_sentence> sources{{4, 5, 6}, {4, 1}, {6, 5, 4, 4}, {}};
const std::vector<id_sentence> targets{{4, 5}, {7, 6, 5, 4}, {5}, {4}};
const auto examples = make_training_batch<double>(pointers(sources), pointers(targets));

/// Both terms, composed of two losses with the dropout of each pass, and the gradient of their sum.
void check(auto model)
{
    constexpr double alpha = 5, smoothing = 0.1;
    CHECK(r_drop(model, examples, alpha, smoothing, {}).loss() ==
          support::approx(model.loss(examples, smoothing).data()[0]));

    ad::tape<double> on;
    const auto lifted_model = ad::lift(on, model);  // dropout applies only in training
    random_source same{3, 0}, again{3, 0};
    const auto result = r_drop(lifted_model, examples, alpha, smoothing, nn::dropout{0.3, &same});
    const nn::dropout drop{0.3, &again};
    const auto logits = [&] {
        return ops::linear(lifted_model.readouts(examples, drop), lifted_model.output().W, lifted_model.output().b);
    };
    const auto one = logits(), other = logits();
    const double first = ops::cross_entropy(one, examples.targets, smoothing).data()[0];
    const double second = ops::cross_entropy(other, examples.targets, smoothing).data()[0];
    CHECK(first != second);
    CHECK(result.cross_entropy.data()[0] == support::approx((first + second) / 2));
    const double apart = ops::symmetric_kl(one, other, examples.targets).data()[0];
    CHECK(apart > 1e-3);
    CHECK(result.loss.data()[0] == support::approx((first + second) / 2 + alpha / 4 * apart));

    const auto gradient = ad::grad_check(model, [&](auto&, const auto& lifted) {
        random_source random{3, 0};
        return r_drop(lifted, examples, alpha, smoothing, nn::dropout{0.3, &random}).loss;
    });
    CHECK_MESSAGE(gradient, gradient.text());
}

}  // namespace

TEST_CASE("R-Drop: both passes, their divergence, and gradients")
{
    constexpr sizes small{8, 8, 4, 3, 5};
    SUBCASE("recurrent") { check(make_translator<double>(3, small, attentions::additive_factory{})); }
    SUBCASE("Transformer")
    {
        auto model = papers::vaswani2017::translator<double>(3, {8, 8, 4, 5, 2, 2, 2, 30});
        for_each_parameter(model, [](const std::string&, auto& x) {  // at 0, where new biases are, relu has a kink
            for (double& each : x) each += 0.05;
        });
        check(model);
    }
    SUBCASE("convolutional")
    {
        auto model = papers::gehring2017::translator<double>(3, {.source_vocabulary = 8,
                                                                 .target_vocabulary = 8,
                                                                 .embedding = 4,
                                                                 .hidden = 3,
                                                                 .encoder_layers = 1,
                                                                 .decoder_layers = 1,
                                                                 .width = 3,
                                                                 .longest = 30});
        model.encoder.gradient_scale = 1;
        check(model);
    }
}

TEST_CASE("R-Drop: only some words")
{
    constexpr sizes small{8, 8, 4, 3, 5};
    const auto model = make_translator<double>(3, small, attentions::additive_factory{});
    const std::vector<std::uint32_t> all{0, 1, 2, 3, 4, 5, 6, 7};
    ad::tape<double> on;
    const auto lifted = ad::lift(on, model);
    random_source same{3, 0}, again{3, 0};
    CHECK(r_drop(lifted, examples, 5.0, 0.1, nn::dropout{0.3, &same}, &all).loss.data()[0] ==
          support::approx(r_drop(lifted, examples, 5.0, 0.1, nn::dropout{0.3, &again}).loss.data()[0]));
}
