// SPDX-License-Identifier: BSD-3-Clause
#include "convs2s.hpp"

#include <fmt/format.h>

#include <heed/seq2seq/systems/gehring2017.hpp>

#include "../system_of.hpp"

namespace translation {

std::unique_ptr<system> make_convs2s(const options& how, std::size_t source_words, std::size_t target_words)
{
    heed::seq2seq::convolutional_sizes n;
    n.source_vocabulary = source_words;
    n.target_vocabulary = target_words;
    n.embedding = how.embedding;
    n.hidden = how.hidden;
    n.encoder_layers = n.decoder_layers = how.layers;
    n.width = how.width;
    n.longest = how.longest;
    n.dropout = how.dropout;
    return make_system_of(heed::papers::gehring2017::translator<float>(how.seed, n), how);
}

std::vector<claim> convs2s_claims(const options& how, std::size_t source_words, std::size_t target_words)
{
    const std::size_t E = how.embedding, H = how.hidden;
    if (how.layers == 0) throw heed::error("a ConvS2S without layers");
    std::vector<claim> all{{"encoder.embedding", source_words, E}, {"decoder.embedding", target_words, E}};
    for (const char* side : {"encoder", "decoder"})
        all.push_back({fmt::format("{}.positions.table", side), how.longest, E});
    all.push_back({"encoder.W_in", E, H});
    all.push_back({fmt::format("encoder.blocks.{}.W", how.layers - 1), how.width * H, 2 * H});
    all.push_back({fmt::format("decoder.layers.{}.convolution.W", how.layers - 1), how.width * H, 2 * H});
    return all;
}

}  // namespace translation
