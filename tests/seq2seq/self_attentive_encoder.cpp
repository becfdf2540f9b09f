// SPDX-License-Identifier: BSD-3-Clause
#include <heed/seq2seq/self_attentive_encoder.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>

#include <heed/seq2seq/translator.hpp>
#include <support/tensors.hpp>
#include <support/translators.hpp>

// Over features: tests/seq2seq/embedding.cpp.

using namespace heed;
using namespace heed::seq2seq;
using support::examples;

TEST_CASE("annotations are those of a Transformer with these layers; start and whole are their mean")
{
    constexpr std::size_t D = 4, V = 7;
    random_source random{3, 0};
    const self_attentive_encoder_factory make{.layers = 2, .heads = 2, .feed_forward = 5};
    auto encoder =
        make(nn::initializers<double>{random}, encoder_parts{{V, D, D}, nn::gru_factory{}, embedding::table_factory{}});
    REQUIRE(encoder.layers.size() == 2);
    CHECK(shape_of(encoder.layers[0].feed_forward.W_1) == shape_of_rank<2>{D, 5});
    std::uint64_t stream = 50;
    for_each_parameter(encoder, [&](const std::string&, auto& x) {
        const auto to = view_of(x);
        const auto noise = support::random({to.size()}, stream++);
        for (std::size_t i = 0; i < to.size(); ++i) to.data[i] += 0.2 * noise(i);
    });
    const transformer_decoder_layer unused{encoder.layers[0].attention,        encoder.layers[0].attention,
                                           encoder.layers[0].around_attention, encoder.layers[0].around_attention,
                                           encoder.layers[0].feed_forward,     encoder.layers[0].around_attention};
    const transformer whole{shared_table{encoder.embedding},
                            encoder.positions,
                            encoder.layers,
                            encoder.last,
                            std::vector{unused},
                            encoder.last,
                            nn::zeros<double>(V)};
    const auto is = encoder.encode(examples.source);
    const auto must = whole.encode(examples.source);
    const std::size_t T = examples.source.words.steps;
    REQUIRE(shape_of(is.annotations) == shape_of_rank<3>{4, T, D});
    for (std::size_t b = 0; b < 4; ++b) {
        const std::size_t n = examples.source.real[b];
        for (std::size_t d = 0; d < D; ++d) {
            double mean = 0;
            for (std::size_t t = 0; t < n; ++t) {
                CHECK(is.annotations(b, t, d) == support::approx(must(b, t, d)));
                mean += must(b, t, d) / static_cast<double>(n);
            }
            CHECK(is.start(b, d) == support::approx(mean));
            CHECK(is.whole(b, d) == is.start(b, d));
        }
    }
}

TEST_CASE("a recurrent decoder attends to it as to any encoder")
{
    support::check_searches(support::sharpened(make_translator<double>(
        3, sizes{.source_vocabulary = 7, .target_vocabulary = 8, .embedding = 4, .hidden = 4, .alignment = 5},
        attentions::additive_factory{},
        parts{}.with_encoder(self_attentive_encoder_factory{.layers = 1, .heads = 2}))));
}

TEST_CASE("the embedding must be as wide as the decoder's state")
{
    random_source random{3, 0};
    CHECK_THROWS_AS(
        (void)self_attentive_encoder_factory{}(nn::initializers<double>{random},
                                               encoder_parts{{7, 4, 8}, nn::gru_factory{}, embedding::table_factory{}}),
        shape_error);
    CHECK(self_attentive_encoder_factory::width(8) == 8);
}
