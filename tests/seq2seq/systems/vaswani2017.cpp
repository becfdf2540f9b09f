// SPDX-License-Identifier: BSD-3-Clause
#include <heed/seq2seq/systems/vaswani2017.hpp>

#include <doctest/doctest.h>

#include <cstddef>

#include <support/translators.hpp>

using namespace heed;
using namespace heed::seq2seq;

namespace paper = papers::vaswani2017;

TEST_CASE("the base model has the paper's sizes and number of parameters")
{
    const paper::translator_sizes base;
    CHECK(base.model == 512);
    CHECK(base.hidden == 2048);
    CHECK(base.heads == 8);
    CHECK(base.encoder_layers == 6);
    CHECK(base.decoder_layers == 6);
    constexpr std::size_t V = 11, D = 6, F = 10;
    const auto model = paper::translator<double>(3, {V, V, D, F, 3, 2, 1, 30});
    CHECK(model.encoder.size() == 2);
    CHECK(model.decoder.size() == 1);
    constexpr std::size_t attention = 4 * D * D, network = 2 * D * F + F + D, norm = 2 * D;
    CHECK(parameter_count(model) ==
          V * D + V + 2 * (attention + network + 2 * norm) + (2 * attention + network + 3 * norm));
}

TEST_CASE("models with other parts than the paper's keep the guarantees of translators")
{
    support::check_system(paper::translator<double>(3, {7, 8, 4, 5, 2, 1, 1, 30}, tied_tables_factory{},
                                                    nn::learned_positions_factory{}, nn::pre_norm_factory{},
                                                    nn::feed_forward_factory{ops::gelu}));
}

TEST_CASE("a system without layers, and heads that do not divide the width, are rejected")
{
    CHECK_THROWS_WITH_AS((void)paper::translator<double>(1, {8, 8, 4, 5, 2, 0, 2, 30}),
                         "vaswani2017::translator: no layers; encoder and decoder need at least one each", error);
    CHECK_THROWS_AS((void)paper::translator<double>(1, {8, 8, 4, 5, 2, 2, 0, 30}), error);
    CHECK_THROWS_AS((void)paper::translator<double>(1, {8, 8, 4, 5, 3, 2, 2, 30}), error);
}
