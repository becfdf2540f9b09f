// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/core/tensor.hpp>
#include <heed/ops/embedding.hpp>
#include <heed/ops/parts.hpp>

namespace heed::seq2seq {

/// An attention with coverage embeddings whose first ones are looked up for each source word: its fertility, learned.
///
///     c_{0,j} = table[x_j]                    Mi et al. 2016; Sankaran et al. 2016, §4.1
///
/// For an attention over score::with_coverage, which says how they change. Everything else is the attention's own.
template <class Attention, class Matrix>
struct coverage_of_words : Attention {
    Matrix table;  // [V,N] of the source vocabulary

    /// The state before the first step, for the source words [T,B].
    auto start_for(const auto& memory, const word_ids& words) const
    {
        return this->start(memory, this->score.start_from(memory, ops::swap_axes(ops::lookup(table, words))));
    }

    static auto parameters(auto& self, auto&& visit)
    {
        auto attention = Attention::parameters(self, visit);
        return seq2seq::coverage_of_words{std::move(attention), visit("table", self.table)};
    }
};
template <class Attention, class Matrix>
coverage_of_words(Attention, Matrix) -> coverage_of_words<Attention, Matrix>;

}  // namespace heed::seq2seq
