// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>

#include <heed/ops/products.hpp>
#include <heed/seq2seq/embeds.hpp>

/// Sequences of features instead of words: frames of speech, points of a pen, measurements. Every encoder of words
/// takes them with embeds::projected or embeds::as_given in the table's place.
///
///     auto model = make_translator<float>(seed, {.source_vocabulary = F, .target_vocabulary = V}, attention,
///                                         parts{}.with_embeddings(embeds::new_projected{}));     // F features
///     feature_batch speech{frames, lengths{90, 71}};                                              // frames [B,T,F]
///     auto loss = model.loss(speech, make_training_batch<float>(speech, targets));
///     const reading at_work{model, speech};
///     auto found = greedy<float>(at_work, source_of(speech));
namespace heed::seq2seq {

/// A batch of sequences of features. The padding changes nothing.
template <class Features>
struct feature_batch {
    Features features;  // [B,T,F]
    lengths real;
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

/// A training batch with targets[b] for row b of the features. Its source has no words.
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

/// A model with its source, for searches: `open` begins with these features. It refers to both, and takes no temporary.
template <class Model, class Features>
struct reading {
    const Model& model;
    const feature_batch<Features>& from;

    reading(const Model& reads, const feature_batch<Features>& source) : model(reads), from(source) {}
    reading(const Model&&, const feature_batch<Features>&) = delete;
    reading(const Model&, const feature_batch<Features>&&) = delete;
    reading(const Model&&, const feature_batch<Features>&&) = delete;

    auto open(const source_batch&) const { return model.open(from); }
    auto advance(const auto& memory, const auto& state, const word_ids& previous) const
    {
        return model.advance(memory, state, previous);
    }
    auto output() const { return model.output(); }
};
template <class Model, class Features>
reading(const Model&, const feature_batch<Features>&) -> reading<Model, Features>;

}  // namespace heed::seq2seq

namespace heed::seq2seq::embeds {

/// Features through a linear layer: x_t = f_t W + b.
template <class Matrix, class Vector>
struct projected {
    Matrix W;  // [F,E]
    Vector b;  // [E]

    /// Row by row: [B,T,E]. In the padding it is b.
    template <class Features>
    auto of(const feature_batch<Features>& from) const
    {
        return ops::linear(ops::clear_padding(from.features, from.real), W, b);
    }
    static auto parameters(auto& self, auto&& visit)
    {
        return embeds::projected{visit("W", self.W), visit("b", self.b)};
    }
};
template <class Matrix, class Vector>
projected(Matrix, Vector) -> projected<Matrix, Vector>;

/// Features as they are: E = F. No parameters.
struct as_given {
    /// Row by row: [B,T,F], zeros in the padding.
    template <class Features>
    auto of(const feature_batch<Features>& from) const
    {
        return ops::clear_padding(from.features, from.real);
    }
    static auto parameters(auto&, auto&&) { return as_given{}; }
};

/// Makes `projected` for the source, whose "vocabulary" is the number of features, and a table of target words.
struct new_projected : new_plain {
    template <class T>
    auto source(random_source& random, std::size_t features, std::size_t embedding) const
    {
        return projected{nn::glorot<T>(random, features, embedding), nn::zeros<T>(embedding)};
    }
};
/// Makes `as_given` for the source, whose embedding has the size of the features, and a table of target words.
struct new_as_given : new_plain {
    template <class T>
    auto source(random_source&, std::size_t features, std::size_t embedding) const
    {
        require_shape<1>("embeds::new_as_given", "the embedding", {embedding}, {features},
                         "features that are not projected are their own embedding");
        return as_given{};
    }
};

}  // namespace heed::seq2seq::embeds
