// SPDX-License-Identifier: BSD-3-Clause
#include <heed/seq2seq/systems/gehring2017.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>

#include <support/translators.hpp>

using namespace heed;
using namespace heed::seq2seq;

namespace paper = papers::gehring2017;

TEST_CASE("a new system has attention in every decoder layer, and an initial W with the factor √½ of the code")
{
    convolutional_sizes n{.source_vocabulary = 8, .target_vocabulary = 8, .embedding = 48, .hidden = 64};
    const auto model = paper::translator<float>(1, n);
    REQUIRE(model.decoder.layers.size() == 3);
    CHECK(model.encoder.blocks.size() == 4);
    CHECK(model.encoder.gradient_scale == doctest::Approx(1.0 / 6).epsilon(1e-15));  // 1 / (2 · 3 layers)
    for (const auto& layer : model.decoder.layers) {
        const auto& W = layer.attention.score.W;
        REQUIRE(shape_of(W) == shape_of_rank<2>{64, 48});
        double squares = 0;
        for (const float w : W) squares += static_cast<double>(w) * static_cast<double>(w);
        CHECK(std::sqrt(squares / static_cast<double>(W.size())) == doctest::Approx(std::sqrt(0.5 / 64)).epsilon(0.05));
        for (const float b : layer.attention.score.b) CHECK(b == 0);
    }
    CHECK(paper::translator<float>(1, n).decoder.W_o == model.decoder.W_o);
}

TEST_CASE("sinusoidal positions need no table")
{
    const convolutional_sizes n{.source_vocabulary = 7,
                                .target_vocabulary = 8,
                                .embedding = 4,
                                .hidden = 3,
                                .encoder_layers = 1,
                                .decoder_layers = 2};
    auto model = paper::translator<double>(3, n, paper::layer_factory{}, nn::sinusoidal_positions{});
    model.encoder.gradient_scale = 1;  // so that its gradient is the derivative
    support::check_system(model);
}
