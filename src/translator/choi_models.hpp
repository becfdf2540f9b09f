// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/seq2seq/systems/choi2018.hpp>

#include "recurrent.hpp"

/// Templates, so that a file with one model instantiates only that model.
namespace heed::translator {

/// Attention{} applied to the parts returned by `parts`.
template <class Attention, auto parts>
struct choi_of {
    static auto make(const options& how, std::size_t source_words, std::size_t target_words)
    {
        return heed::papers::choi2018::translator<float>(how.seed, recurrent_sizes(how, source_words, target_words),
                                                         Attention{}, parts());
    }
};

namespace makers {

namespace attentions = heed::seq2seq::attentions;
namespace choi2018 = heed::papers::choi2018;

using choi_additive = choi_of<attentions::additive_factory, choi2018::parts>;
using choi_additive_y = choi_of<attentions::additive_with_word_factory, choi2018::parts>;
using choi_per_dimension = choi_of<attentions::per_dimension_factory, choi2018::parts>;
using choi_additive_context = choi_of<attentions::additive_factory, choi2018::parts_with_context>;
using choi_additive_y_context = choi_of<attentions::additive_with_word_factory, choi2018::parts_with_context>;
using choi_per_dimension_context = choi_of<attentions::per_dimension_factory, choi2018::parts_with_context>;

}  // namespace makers

}  // namespace heed::translator
