// SPDX-License-Identifier: BSD-3-Clause
#include <heed/seq2seq/embeds.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <heed/seq2seq/translator.hpp>
#include <support/scalar_translation.hpp>
#include <support/sentences.hpp>

using namespace heed;
using namespace heed::seq2seq;
using support::pointers;
namespace scalar = support::scalar;

namespace {

constexpr std::size_t V = 9, E = 3, H = 4, A = 5;

const std::vector<id_sentence> sources{{4, 5, 6}, {4, 1}, {6, 5, 4, 4}, {}};
const std::vector<id_sentence> targets{{4, 5}, {7, 6, 5, 4}, {5}, {4}};
const auto batch = make_training_batch<double>(pointers(sources), pointers(targets));

scalar::numbers row_of(const array<double, 2>& x, std::size_t b)
{
    return {x.data() + b * x.shape()[1], x.data() + (b + 1) * x.shape()[1]};
}

}  // namespace

TEST_CASE("contextual embeddings: each sentence is translated as with embeddings masked by its own words")
{
    const auto model = [&] {
        auto made = make_translator<double>(7, sizes{V, V, E, H, A}, attentions::additive<double>{},
                                            parts{}.with_embeddings(embeds::new_contextual{2}));
        for_each_parameter(made, [](const std::string&, auto& x) {
            for (std::size_t i = 0; i < x.size(); ++i)
                x.data()[i] = 3 * x.data()[i] + 0.1 * std::sin(static_cast<double>(i));
        });
        return made;
    }();
    const auto& source = model.encoder.embedding;
    const auto& target = model.decoder.embedding;
    for (std::size_t b = 0; b < 4; ++b) {
        CAPTURE(b);
        const auto one = make_training_batch<double>(pointers({sources[b]}), pointers({targets[b]}));
        scalar::numbers c(2, 0.0);  // (1/T) Σ_t tanh(W x_t + b), the end word included
        const std::size_t T = one.source.real[0];
        for (std::size_t t = 0; t < T; ++t) {
            const scalar::numbers x = row_of(source.words, one.source.words(t, 0));
            const scalar::numbers each =
                scalar::tanh_layer(x, scalar::matrix_of(source.W), scalar::vector_of(source.b));
            for (std::size_t k = 0; k < 2; ++k) c[k] += each[k] / static_cast<double>(T);
        }
        const auto masked = [&](const auto& embedding) {  // E ⊙ σ(M c + m), for every word of the vocabulary
            const scalar::numbers a = scalar::times(c, scalar::matrix_of(embedding.gate.M));
            array<double, 2> table = embedding.words;
            for (std::size_t v = 0; v < V; ++v) {
                for (std::size_t k = 0; k < E; ++k) table(v, k) /= 1 + std::exp(-a[k] - embedding.gate.m(k));
            }
            return table;
        };
        const auto& e = model.encoder;
        const auto& d = model.decoder;
        const translator plain{
            bidirectional_encoder{masked(source), e.forward, e.backward, e.forward_start, e.backward_start},
            decoder{d.attention, masked(target), d.cell, d.asks, d.start, d.readout}};
        CHECK(model.loss(one)() == doctest::Approx(plain.loss(one)()).epsilon(1e-12));
        // The same in a batch, where the padding is full of words.
        auto all = batch;
        for (std::size_t t = T; t < all.source.words.steps; ++t) all.source.words(t, b) = 8;
        for (std::size_t i = 0; i < all.targets.weights.size(); ++i) {
            if (i % 4 != b) all.targets.weights[i] = 0;
        }
        CHECK(model.loss(all)() == doctest::Approx(plain.loss(one)()).epsilon(1e-12));
    }
}
