// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include <heed/nn/contextualization.hpp>
#include <heed/nn/dropout.hpp>
#include <heed/nn/factory.hpp>
#include <heed/ops/embedding.hpp>
#include <heed/ops/masks.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/shape.hpp>
#include <heed/seq2seq/batch.hpp>

namespace heed::inline HEED_TARGET::seq2seq {

/// A placeholder for a tensor that an encoding or a decoder's state does not have.
struct nothing {
    nothing map(auto&&, const auto&...) const { return {}; }
};

/// Sequences of features instead of words: frames of speech, points of a pen, measurements. Every encoder of words
/// accepts them with embedding::projected or embedding::as_given instead of the table:
///
///     auto model = make_translator<float>(seed, {.source_vocabulary = F, .target_vocabulary = V}, attention,
///                                         parts{}.with_embeddings(embedding::projected_factory{}));  // F features
///     feature_batch speech{frames, lengths{90, 71}};                                              // frames [B,T,F]
///     auto loss = model.loss(speech, make_training_batch<float>(speech, targets));
///     const reading at_work{model, speech};
///     auto found = greedy<float>(at_work, source_of(speech));
template <class Features>
struct feature_batch {
    Features features;  // [B,T,F]
    lengths real;
    word_ids words{};  // none
};
template <class Features>
feature_batch(Features, lengths) -> feature_batch<Features>;

/// A source batch without words for searches: the rows and their lengths.
template <class Features>
source_batch source_of(const feature_batch<Features>& from)
{
    const auto shape = shape_of(from.features);
    return {word_ids(shape[1], shape[0]), from.real};
}

/// A training batch with targets[b] for row b of the features. Its source has no words. Throws shape_error if the
/// numbers of targets and rows differ.
template <class T, class Features>
training_batch<T> make_training_batch(const feature_batch<Features>& from, std::span<const id_sentence* const> targets,
                                      const special_ids& special = {})
{
    auto batch = make_training_batch<T>(targets, targets, special);
    batch.source = source_of(from);
    require_shape<1>("make_training_batch", "the list of targets", {targets.size()}, {from.real.batch()},
                     "one for each row of features");
    return batch;
}

/// A model and its source, for searches: `open` encodes these features. It refers to both and does not accept
/// temporaries.
template <class Model, class Features>
struct encoded_source {
    const Model& model;
    const feature_batch<Features>& from;

    encoded_source(const Model& reads, const feature_batch<Features>& source) : model(reads), from(source) {}
    encoded_source(const Model&&, const feature_batch<Features>&) = delete;
    encoded_source(const Model&, const feature_batch<Features>&&) = delete;
    encoded_source(const Model&&, const feature_batch<Features>&&) = delete;

    auto open(const source_batch&) const { return model.open(from); }
    auto advance(const auto& memory, const auto& state, const word_ids& previous) const
    {
        return model.advance(memory, state, previous);
    }
    auto output() const { return model.output(); }  // of the model
};
template <class Model, class Features>
encoded_source(const Model&, const feature_batch<Features>&) -> encoded_source<Model, Features>;

/// Word embeddings of encoders and decoders: a policy with parameters "embedding.…". A matrix [V,E] is looked up.
namespace embedding {

/// Source words that depend on their sentence.
///
///     c = (1/T) Σ_t tanh(W E x_t + b),  x'_t = E x_t ⊙ σ(M c + m)
///                                             Choi, Cho, Bengio 2018, §4.3; the mask: Choi, Cho, Bengio 2017
///
/// Deviations: see nn::contextualization. Dropout acts on x'.
template <class Matrix, class Vector>
struct contextual_source {
    Matrix words;  // [V,E]
    Matrix W;      // [E,K]
    Vector b;      // [K]
    nn::context_gate<Matrix, Vector> gate;

    /// x' [T,B,E] with zeros in the padding, and c [B,K].
    auto look_up(const source_batch& source, const nn::dropout& drop) const
    {
        const auto x = ops::clear_padding(ops::swap_axes(ops::lookup(words, source.words)), source.real);
        auto c = nn::sentence_context(x, source.real, W, b);  // [B,K]
        return std::pair{ops::clear_ended(drop.time_major(ops::swap_axes(gate(x, c))), source.real), std::move(c)};
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return embedding::contextual_source{visit("words", self.words), visit("W", self.W), visit("b", self.b),
                                            visit("gate", self.gate)};
    }
};
template <class Matrix, class Vector>
contextual_source(Matrix, Matrix, Vector, nn::context_gate<Matrix, Vector>) -> contextual_source<Matrix, Vector>;

/// Target words that depend on the source sentence: y' = E y ⊙ σ(M c + m), with c from the encoder's contextual_source.
/// Choi, Cho, Bengio 2017.
template <class Matrix, class Vector>
struct contextual_target {
    Matrix words;                           // [V,E]
    nn::context_gate<Matrix, Vector> gate;  // from c [B,K]

    /// The embeddings y [S,B,E] of target words, multiplied by the mask σ(M c + m) [B,E] of their sentence.
    auto look_up(const word_ids& ids, const tensor auto& mask) const
    {
        return ops::swap_axes(ops::multiply_per_position(ops::swap_axes(ops::lookup(words, ids)), mask));
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return embedding::contextual_target{visit("words", self.words), visit("gate", self.gate)};
    }
};
template <class Matrix, class Vector>
contextual_target(Matrix, nn::context_gate<Matrix, Vector>) -> contextual_target<Matrix, Vector>;

/// Features through a linear layer: x_t = f_t W + b. No published source.
template <class Matrix, class Vector>
struct projected {
    Matrix W;  // [F,E]
    Vector b;  // [E]

    /// Row by row: [B,T,E]. Padding is b.
    auto of(const auto& from) const { return ops::linear(ops::clear_padding(from.features, from.real), W, b); }

    static auto parameters(auto& self, auto&& visit)
    {
        return embedding::projected{visit("W", self.W), visit("b", self.b)};
    }
};
template <class Matrix, class Vector>
projected(Matrix, Vector) -> projected<Matrix, Vector>;

/// Features without projection: E = F. No parameters.
struct as_given {
    /// Row by row: [B,T,F], zeros in the padding.
    auto of(const auto& from) const { return ops::clear_padding(from.features, from.real); }
    static auto parameters(auto&, auto&&) { return as_given{}; }
};

/// Throws shape_error unless a source of words or features has a length for each row.
void require_source(const char* where, const auto& source)
{
    if constexpr (requires { source.features; }) {
        const auto shape = shape_of(source.features);
        source.real.require(where, shape[0], shape[1]);
    } else {
        source.words.require(where);
        source.real.require(where, source.words.batch, source.words.steps);
    }
}

/// The rows [B,T,E] of words in a table, or of features.
auto rows_of(const auto& embedding, const auto& source)
{
    if constexpr (requires { source.features; }) {
        return embedding.of(source);
    } else {
        return ops::swap_axes(ops::lookup(embedding, source.words));
    }
}

/// The source words or features [T,B,E] for an encoder, with zeros in the padding, and the context of their mask.
auto words_of(const auto& embedding, const auto& source, const nn::dropout& drop)
{
    if constexpr (tensor<decltype(embedding)> && requires { source.features; }) {
        static_assert(
            !requires { source.features; },
            "heed: this encoder looks words up in a table, but features are not words: make it with "
            "embedding::projected or embedding::as_given instead of a table (heed/seq2seq/embedding.hpp)");
        return std::pair{ops::swap_axes(source.features), nothing{}};  // avoids further errors
    } else if constexpr (tensor<decltype(embedding)>) {
        return std::pair{ops::clear_ended(drop.time_major(ops::lookup(embedding, source.words)), source.real),
                         nothing{}};
    } else if constexpr (requires { embedding.of(source); }) {  // features
        return std::pair{ops::clear_ended(drop.time_major(ops::swap_axes(embedding.of(source))), source.real),
                         nothing{}};
    } else {
        return embedding.look_up(source, drop);
    }
}

/// The sizes of an embedding, for its factory.
struct embedding_sizes {
    std::size_t vocabulary = 0;  // V; for features, their number
    std::size_t embedding = 0;   // E
};

/// Makes a table of words.
struct table_factory {
    auto operator()(const auto& init, const embedding_sizes& n) const
    {
        return init.gaussian(n.vocabulary, n.embedding, 0.1);
    }
};
/// Makes contextual_source.
struct contextual_source_factory {
    std::size_t context = 0;  // K; 0: E

    auto operator()(const auto& init, const embedding_sizes& n) const
    {
        const std::size_t E = n.embedding, K = context == 0 ? E : context;
        return contextual_source{init.gaussian(n.vocabulary, E, 0.1), init.glorot(E, K), init.zeros(K),
                                 nn::context_gate{init.glorot(K, E), init.zeros(E)}};
    }
};
/// Makes contextual_target.
struct contextual_target_factory {
    std::size_t context = 0;  // K of the contextual_source; 0: E

    auto operator()(const auto& init, const embedding_sizes& n) const
    {
        const std::size_t E = n.embedding, K = context == 0 ? E : context;
        return contextual_target{init.gaussian(n.vocabulary, E, 0.1),
                                 nn::context_gate{init.glorot(K, E), init.zeros(E)}};
    }
};
/// Makes `projected`.
struct projected_factory {
    auto operator()(const auto& init, const embedding_sizes& n) const
    {
        return projected{init.glorot(n.vocabulary, n.embedding), init.zeros(n.embedding)};
    }
};
/// Makes `as_given`. Throws shape_error unless the embedding has the size of the features.
struct as_given_factory {
    auto operator()(const auto&, const embedding_sizes& n) const
    {
        require_shape<1>("embedding::as_given_factory", "the embedding", {n.embedding}, {n.vocabulary},
                         "the embedding of features that are not projected has their size");
        return as_given{};
    }
};

}  // namespace embedding

}  // namespace heed::inline HEED_TARGET::seq2seq
