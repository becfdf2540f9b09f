// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heed/combine/weighted_sum.hpp>
#include <heed/nn/init.hpp>
#include <heed/nn/lstm.hpp>
#include <heed/score/additive.hpp>
#include <heed/seq2seq/captioner.hpp>
#include <heed/seq2seq/translator.hpp>

namespace heed::inline HEED_TARGET::papers::xu2015 {

/// The sizes of a complete system. The paper has 196 regions of 512 maps; the defaults are small enough to train on one
/// core.
struct sizes {
    grid picture{32, 96};
    std::size_t vocabulary = 0;
    std::vector<std::size_t> maps{16, 32, 48, 64};  // of each convolution; the first two halve the image
    std::size_t embedding = 32, hidden = 128, alignment = 64;
};

/// A complete system: convolutions, and a decoder with normalize::softmax{} (soft attention) or normalize::hard{seed}.
/// Throws heed::error if there are no maps.
///
///     auto model = papers::xu2015::reader<float>(seed, sizes, normalize::softmax{});
///     auto told = model.decoder.follow(model.encoder.encode(images), words);
template <class T, class Normalize>
auto reader(std::uint64_t seed, const sizes& n, Normalize normalize)
{
    if (n.maps.empty())
        throw error("xu2015::reader: there are no convolutions; give the number of maps for at least one");
    random_source random{seed, 0};
    seq2seq::picture_encoder<array<T, 2>, array<T, 1>> encoder{n.picture, {}, {}, {}};
    for (std::size_t k = 0; k < n.maps.size(); ++k) {
        encoder.layers.push_back(
            nn::make_convolution<T>(random, k == 0 ? 1 : n.maps[k - 1], n.maps[k], 3, k < 2 ? 2 : 1));
    }
    const std::size_t D = n.maps.back(), H = n.hidden, E = n.embedding, V = n.vocabulary, A = n.alignment;
    const grid regions = encoder.regions();
    encoder.rows = nn::gaussian<T>(random, regions.height, D, 0.1);
    encoder.columns = nn::gaussian<T>(random, regions.width, D, 0.1);
    auto W = nn::glorot<T>(random, H, A), U = nn::glorot<T>(random, D, A);
    attention attend{score::additive{std::move(W), std::move(U), nn::small_vector<T>(random, A)}, std::move(normalize),
                     combine::weighted_sum{}};
    auto embedding = nn::gaussian<T>(random, V, E, 0.1);
    auto cell = nn::make_lstm<T>(random, E, H);
    auto C = nn::glorot<T>(random, D, 4 * H), W_h = nn::glorot<T>(random, D, H), W_c = nn::glorot<T>(random, D, H),
         L_h = nn::glorot<T>(random, H, E), L_z = nn::glorot<T>(random, D, E), L_o = nn::glorot<T>(random, E, V);
    seq2seq::captioner decoder{std::move(attend), std::move(embedding), std::move(cell), std::move(C),
                               std::move(W_h),    nn::zeros<T>(H),      std::move(W_c),  nn::zeros<T>(H),
                               std::move(L_h),    std::move(L_z),       std::move(L_o),  nn::zeros<T>(V)};
    return seq2seq::translator{std::move(encoder), std::move(decoder)};
}

}  // namespace heed::inline HEED_TARGET::papers::xu2015
