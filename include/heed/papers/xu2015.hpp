// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heed/attention.hpp>
#include <heed/combine/gated.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/hard.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/penalty/doubly_stochastic.hpp>
#include <heed/score/additive.hpp>
#include <heed/seq2seq/captioner.hpp>

/// Xu et al. 2015, "Show, Attend and Tell". Its annotations are locations of an image; here they may be anything.
///
/// f_att, eq. 4, is a network with one hidden layer: Bahdanau's score, asked with the decoder's previous state.
namespace heed::papers::xu2015 {

/// Deterministic soft attention: α = softmax(e), ẑ = Σ_i α_i a_i; eq. 5 and 13. Without the gate.
template <class Matrix, class Vector>
auto soft(Matrix W, Matrix U, Vector v)  // [Q,A], [D,A], [A]
{
    return attention{score::additive{std::move(W), std::move(U), std::move(v)}, normalize::softmax{},
                     combine::weighted_sum{}};
}

/// The same with the gate that scales the whole context.
///
///     ẑ = β Σ_i α_i a_i,  β = σ(f_β(h_{t-1}))                 section 4.2.1
template <class Matrix, class Vector>
auto gated(Matrix W, Matrix U, Vector v, Matrix W_beta, Vector b_beta)  // …, [Q,1], [1]
{
    return attention{score::additive{std::move(W), std::move(U), std::move(v)}, normalize::softmax{},
                     combine::gated{std::move(W_beta), std::move(b_beta)}};
}

/// Stochastic hard attention: one location, drawn with the weights of `soft` as probabilities.
///
///     p(s_{t,i} = 1) = α_{t,i},  ẑ_t = Σ_i s_{t,i} a_i        eq. 8 and 9
///
/// normalize/hard.hpp explains how its scores learn (eq. 11); the entropy term of eq. 12 is not here. For a trained
/// model: `hard(W, U, v, {.greedy = true})`.
template <class Matrix, class Vector>
auto hard(Matrix W, Matrix U, Vector v, const normalize::hard& draw)
{
    return attention{score::additive{std::move(W), std::move(U), std::move(v)}, draw, combine::weighted_sum{}};
}
template <class Matrix, class Vector>
auto hard(Matrix W, Matrix U, Vector v, std::uint64_t seed)
{
    return xu2015::hard(std::move(W), std::move(U), std::move(v), normalize::hard{.seed = seed});
}

/// λ Σ_i (1 - Σ_t α_ti)²: every location should be attended to once, over all steps; eq. 14.
template <tensor Weights>
auto doubly_stochastic(const std::vector<Weights>& weights, const lengths& source, const lengths& target,
                       double lambda = 1)
{
    return ops::scale(penalty::doubly_stochastic(weights, source, target), lambda);
}

/// The sizes of a whole system. The paper has 196 regions of 512 maps; ours is small enough to train on one core.
struct sizes {
    grid picture{32, 96};
    std::size_t vocabulary = 0;
    std::vector<std::size_t> maps{16, 32, 48, 64};  // of each convolution; the first two halve the picture
    std::size_t embedding = 32, hidden = 128, alignment = 64;
};

/// A whole system that puts a picture into words: convolutions, and a decoder that attends to regions. `normalize`:
/// normalize::softmax{} for soft attention, normalize::hard{seed} for hard attention.
///
///     auto model = papers::xu2015::reader<float>(seed, sizes, normalize::softmax{});
///     auto told = model.decoder.follow(model.encoder.encode(pictures), words);
template <class T, class Normalize>
auto reader(std::uint64_t seed, const sizes& n, Normalize normalize)
{
    if (n.maps.empty()) throw error("xu2015::reader: there is no convolution; give the maps of at least one");
    random_source random{seed, 0};
    using matrix = array<T, 2>;
    using vector = array<T, 1>;
    seq2seq::picture_encoder<matrix, vector> encoder{n.picture, {}, {}, {}};
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
    return seq2seq::picture_reader{std::move(encoder), std::move(decoder)};
}

}  // namespace heed::papers::xu2015
