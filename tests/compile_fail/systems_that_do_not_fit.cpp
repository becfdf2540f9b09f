// SPDX-License-Identifier: BSD-3-Clause
// expect: initial_state::last_state needs an encoder that returns its last state
// expect: embedding::contextual_target needs the context of an encoder whose embedding is an
// expect: this attention has no weights, so a loss cannot read them

#include <heed/seq2seq/translator.hpp>

using namespace heed;
using namespace heed::seq2seq;

void asked_for_what_is_not_there(const training_batch<float>& batch)
{
    random_source random{1, 0};
    const nn::initializers<float> init{random};
    constexpr decoder_sizes n{9, 3, 4, 8, 3};
    const auto encoder =
        bidirectional_encoder_factory{}(init, encoder_parts{{9, 3, 4}, nn::gru_factory{}, embedding::table_factory{}});
    const auto source = encoder.encode(batch.source);
    make_decoder(init, fixed_context{}, n, parts{}.with_start(initial_state::last_state{}))
        .open(source, batch.source.real);
    make_decoder(init, fixed_context{}, n,
                 parts{}.with_embeddings(embedding::table_factory{}, embedding::contextual_target_factory{}))
        .open(source, batch.source.real);
    make_decoder(init, fixed_context{}, n, parts{}).follow(source, batch);
}
