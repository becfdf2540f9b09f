// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: this encoder looks words up in a table, but features are not words: make it with
// embedding::projected
#include <heed/seq2seq/embedding.hpp>
#include <heed/seq2seq/encoder.hpp>

using namespace heed;

auto use(random_source& random, const array<float, 3>& frames)
{
    const auto encoder = seq2seq::forward_encoder_factory{}(
        nn::initializers<float>{random},
        seq2seq::encoder_parts{{10, 4, 5}, nn::gru_factory{}, seq2seq::embedding::table_factory{}});
    return encoder.encode(seq2seq::feature_batch{frames, lengths{3}}).annotations;
}
