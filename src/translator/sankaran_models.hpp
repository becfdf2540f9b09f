// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/seq2seq/systems/sankaran2016.hpp>

#include "recurrent.hpp"

/// Templates, so that each file of one model instantiates that model alone.
namespace heed::translator {

/// `attention`: a function of the options that returns what the paper's translator takes.
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

inline auto additive(const options&) { return heed::seq2seq::attentions::additive<float>{}; }
inline auto temporal(const options&) { return heed::seq2seq::attentions::temporal<float>{}; }
inline auto coverage(const options& how) { return paper::new_coverage<float>{how.coverage}; }
inline auto local_m(const options& how) { return paper::new_local_m<float>{how.window}; }
inline auto recent_temporal(const options& how) { return paper::new_recent_temporal<float>{how.last}; }
inline auto local_temporal(const options& how) { return paper::new_local_temporal<float>{how.window}; }

}  // namespace sankaran_attentions

namespace makers {

using sankaran_additive = sankaran_of<sankaran_attentions::additive>;
using sankaran_temporal = sankaran_of<sankaran_attentions::temporal>;
using sankaran_coverage = sankaran_of<sankaran_attentions::coverage>;
using sankaran_local_m = sankaran_of<sankaran_attentions::local_m>;
using sankaran_recent_temporal = sankaran_of<sankaran_attentions::recent_temporal>;
using sankaran_local_temporal = sankaran_of<sankaran_attentions::local_temporal>;

}  // namespace makers

}  // namespace heed::translator
