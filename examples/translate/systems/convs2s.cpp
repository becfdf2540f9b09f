// SPDX-License-Identifier: BSD-3-Clause
#include "convs2s.hpp"

#include <fmt/format.h>

#include <heed/papers/gehring2017_translator.hpp>

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
    return make_system_of(heed::papers::gehring2017::make_translator<float>(how.seed, n), how);
}

std::vector<claim> convs2s_claims(const options& how, std::size_t source_words, std::size_t target_words)
{
    const std::size_t E = how.embedding, H = how.hidden;
    std::vector<claim> all{{"encoder.words", source_words, E}, {"decoder.words", target_words, E}};
    (void)H;
    return all;
}

}  // namespace translation
