// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/seq2seq/systems/gehring2017.hpp>

#include <heed_translator/options.hpp>

namespace heed::translator {

/// Gehring et al. 2017. A template, so that naming it does not instantiate a model.
template <class T>
struct convs2s_of {
    static auto make(const options& how, std::size_t source_words, std::size_t target_words)
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
        return heed::papers::gehring2017::translator<T>(how.seed, n);
    }
};

namespace makers {

using convs2s = convs2s_of<float>;

}  // namespace makers

}  // namespace heed::translator
