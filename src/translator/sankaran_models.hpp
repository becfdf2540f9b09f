// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/seq2seq/systems/sankaran2016.hpp>

#include "recurrent.hpp"

/// Templates, so that a file with one model instantiates only that model.
namespace heed::translator {

/// `attention`: a function of the options that returns the arguments of the paper's translator.
template <auto attention>
struct sankaran_of {
    static auto make(const options& how, std::size_t source_words, std::size_t target_words)
    {
        return heed::papers::sankaran2016::translator<float>(how.seed, recurrent_sizes(how, source_words, target_words),
                                                             attention(how));
    }
};

namespace sankaran_attentions {

namespace paper = heed::papers::sankaran2016;
namespace normalize = heed::normalize;
namespace combine = heed::combine;

inline auto additive(const options&) { return heed::seq2seq::attentions::additive_factory{}; }
inline auto temporal(const options&) { return heed::seq2seq::attentions::temporal_factory{}; }
inline auto coverage(const options& how) { return paper::coverage_factory{how.coverage}; }

/// The score of Bahdanau et al. with another normalizer.
inline auto with(auto normalizer, auto combiner)
{
    return heed::seq2seq::attention_factory{heed::seq2seq::attentions::additive_score_factory{}, normalizer, combiner};
}
inline auto local_m(const options& how) { return with(normalize::local_m{how.window}, combine::weighted_sum{}); }
inline auto recent_temporal(const options& how)
{
    return with(normalize::recent_temporal{how.last}, combine::direction_split{});
}
struct learned_temporal_factory {
    template <class T>
    auto operator()(const heed::nn::initializers<T>& init, const heed::seq2seq::sizes&) const
    {
        return normalize::learned_temporal{init.zeros(1)};
    }
};
inline auto learned_temporal(const options&) { return with(learned_temporal_factory{}, combine::direction_split{}); }
inline auto local_temporal(const options& how)
{
    return with(normalize::local_m{how.window, normalize::temporal{}}, combine::weighted_sum{});
}

}  // namespace sankaran_attentions

namespace makers {

using sankaran_additive = sankaran_of<sankaran_attentions::additive>;
using sankaran_temporal = sankaran_of<sankaran_attentions::temporal>;
using sankaran_coverage = sankaran_of<sankaran_attentions::coverage>;
using sankaran_local_m = sankaran_of<sankaran_attentions::local_m>;
using sankaran_recent_temporal = sankaran_of<sankaran_attentions::recent_temporal>;
using sankaran_learned_temporal = sankaran_of<sankaran_attentions::learned_temporal>;
using sankaran_local_temporal = sankaran_of<sankaran_attentions::local_temporal>;

}  // namespace makers

}  // namespace heed::translator
