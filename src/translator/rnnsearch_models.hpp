// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include <heed/combine/gated.hpp>
#include <heed/combine/grouped_sum.hpp>
#include <heed/nn/cells.hpp>
#include <heed/nn/gated_coverage.hpp>
#include <heed/nn/gru.hpp>
#include <heed/normalize/chunkwise.hpp>
#include <heed/normalize/decayed_temporal.hpp>
#include <heed/normalize/entmax15.hpp>
#include <heed/normalize/monotonic.hpp>
#include <heed/normalize/sigmoid.hpp>
#include <heed/normalize/sparsemax.hpp>
#include <heed/score/additive_grouped.hpp>
#include <heed/score/with_fertility.hpp>
#include <heed/score/with_gated_coverage.hpp>
#include <heed/score/with_location.hpp>
#include <heed/score/with_neighbors.hpp>
#include <heed/score/with_positions.hpp>
#include <heed/score/with_recurrence.hpp>
#include <heed/seq2seq/translator.hpp>

#include "recurrent.hpp"

/// Templates, so that a file with one model instantiates only that model.
namespace heed::translator {

/// RNNsearch with the attention made by the factory Attention{}.
template <class Attention, class Cells = heed::nn::gru_factory>
struct rnnsearch_of {
    static auto make(const options& how, std::size_t source_words, std::size_t target_words)
    {
        return heed::seq2seq::make_translator<float>(how.seed, recurrent_sizes(how, source_words, target_words),
                                                     Attention{}, heed::nn::initializer<float>(nullptr), Cells{});
    }
};

/// The score of Bahdanau et al. with one more input: the weights of earlier steps. Each such score wraps the base
/// score; the rest of RNNsearch is unchanged.
namespace remembering {

namespace nn = heed::nn;
namespace score = heed::score;
using heed::seq2seq::sizes;

/// Score{}(init, sizes, base) makes the score that wraps the base.
template <class Score>
struct attention_with {
    auto operator()(const auto& init, const sizes& n) const
    {
        auto base = heed::seq2seq::attentions::additive_score_factory{}(init, n);
        return heed::attention{Score{}(init, n, std::move(base)), heed::normalize::softmax{},
                               heed::combine::weighted_sum{}};
    }
};

struct location {
    auto operator()(const auto& init, const sizes& n, auto base) const
    {
        auto filters = init.glorot(10, 5);
        return score::with_location{std::move(base), std::move(filters), init.glorot(10, n.alignment)};
    }
};

struct structural_biases {
    auto operator()(const auto& init, const sizes& n, auto base) const
    {
        auto last = init.glorot(3, n.alignment), all = init.glorot(3, n.alignment);
        score::with_neighbors markov{std::move(base), std::move(last), score::last_weights{}};
        score::with_neighbors fertile{std::move(markov), std::move(all), score::all_weights{}};
        return score::with_positions{std::move(fertile), init.glorot(3, n.alignment)};
    }
};

struct fertility {
    auto operator()(const auto& init, const sizes& n, auto base) const
    {
        auto v_c = init.small_vector(n.alignment);
        return score::with_fertility{std::move(base), std::move(v_c), init.small_vector(n.width())};
    }
};

struct gated_coverage {
    template <class T>
    auto operator()(const nn::initializers<T>& init, const sizes& n, auto base) const
    {
        auto cell = nn::make_gated_coverage<T>(init, n.width(), n.hidden);
        auto V = init.glorot(cell.size(), n.alignment);
        return score::with_gated_coverage{std::move(base), std::move(V), std::move(cell)};
    }
};

struct recurrence {
    template <class T>
    auto operator()(const nn::initializers<T>& init, const sizes& n, auto base) const
    {
        auto cell = nn::make_gru<T>(init, n.embedding + n.width(), n.hidden);
        auto W_r = init.glorot(n.hidden, n.alignment);
        return score::with_recurrence{std::move(base), std::move(W_r), std::move(cell)};
    }
};

}  // namespace remembering

/// The score of Bahdanau et al. with another normalizer or combiner.
namespace weighing {

namespace nn = heed::nn;
namespace normalize = heed::normalize;
using heed::seq2seq::sizes;

template <class Normalizer, class Combiner = heed::combine::weighted_sum>
using additive =
    heed::seq2seq::attention_factory<heed::seq2seq::attentions::additive_score_factory, Normalizer, Combiner>;

struct sigmoid {
    auto operator()(const auto&, const sizes&) const
    {
        return normalize::sigmoid{-std::log(12.0)};
    }  // for typical sentences of 12 words
};
struct decayed_temporal {
    auto operator()(const auto&, const sizes&) const { return normalize::decayed_temporal{0.5, 0.5}; }
};
struct monotonic {
    auto operator()(const auto& init, const sizes&) const
    {
        auto r = init.zeros(1);
        r(0) = -1;  // below 0: see normalize::monotonic
        return normalize::monotonic{std::move(r)};
    }
};
struct chunkwise {
    auto operator()(const auto& init, const sizes& n) const
    {
        auto s = init.zeros(1);
        s(0) = 1;
        return normalize::chunkwise{4, std::move(s), monotonic{}(init, n)};
    }
};
struct gate {
    auto operator()(const auto& init, const sizes& n) const
    {
        return heed::combine::gated{init.glorot(n.hidden, 1), init.zeros(1)};
    }
};

struct grouped {
    auto operator()(const auto& init, const sizes& n) const
    {
        auto W = init.glorot(n.hidden, n.alignment);
        auto U = init.glorot(n.width(), n.alignment);
        auto V = init.glorot(n.alignment, std::gcd(n.width(), std::size_t{8}));
        return heed::attention{heed::score::additive_grouped{std::move(W), std::move(U), std::move(V)},
                               normalize::softmax{}, heed::combine::grouped_sum{}};
    }
};

}  // namespace weighing

namespace makers {

namespace attentions = heed::seq2seq::attentions;
using heed::nn::gru_factory, heed::nn::lstm_factory;

using rnnsearch_none_gru = rnnsearch_of<heed::seq2seq::fixed_context, gru_factory>;
using rnnsearch_additive_gru = rnnsearch_of<attentions::additive_factory, gru_factory>;
using rnnsearch_additive_y_gru = rnnsearch_of<attentions::additive_with_word_factory, gru_factory>;
using rnnsearch_per_dimension_gru = rnnsearch_of<attentions::per_dimension_factory, gru_factory>;
using rnnsearch_temporal_gru = rnnsearch_of<attentions::temporal_factory, gru_factory>;
using rnnsearch_none_lstm = rnnsearch_of<heed::seq2seq::fixed_context, lstm_factory>;
using rnnsearch_additive_lstm = rnnsearch_of<attentions::additive_factory, lstm_factory>;
using rnnsearch_additive_y_lstm = rnnsearch_of<attentions::additive_with_word_factory, lstm_factory>;
using rnnsearch_per_dimension_lstm = rnnsearch_of<attentions::per_dimension_factory, lstm_factory>;
using rnnsearch_temporal_lstm = rnnsearch_of<attentions::temporal_factory, lstm_factory>;

using rnnsearch_location_aware = rnnsearch_of<remembering::attention_with<remembering::location>>;
using rnnsearch_structural_biases = rnnsearch_of<remembering::attention_with<remembering::structural_biases>>;
using rnnsearch_fertility = rnnsearch_of<remembering::attention_with<remembering::fertility>>;
using rnnsearch_gated_coverage = rnnsearch_of<remembering::attention_with<remembering::gated_coverage>>;
using rnnsearch_recurrent = rnnsearch_of<remembering::attention_with<remembering::recurrence>>;

using rnnsearch_sparsemax = rnnsearch_of<weighing::additive<heed::normalize::sparsemax>>;
using rnnsearch_entmax = rnnsearch_of<weighing::additive<heed::normalize::entmax15>>;
using rnnsearch_sigmoid = rnnsearch_of<weighing::additive<weighing::sigmoid>>;
using rnnsearch_decayed_temporal = rnnsearch_of<weighing::additive<weighing::decayed_temporal>>;
using rnnsearch_monotonic = rnnsearch_of<weighing::additive<weighing::monotonic>>;
using rnnsearch_chunkwise = rnnsearch_of<weighing::additive<weighing::chunkwise>>;
using rnnsearch_gated = rnnsearch_of<weighing::additive<heed::normalize::softmax, weighing::gate>>;
using rnnsearch_grouped = rnnsearch_of<weighing::grouped>;

}  // namespace makers

}  // namespace heed::translator
