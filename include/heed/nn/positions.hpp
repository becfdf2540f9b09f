// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/core/parameters.hpp>
#include <heed/nn/init.hpp>
#include <heed/ops/embedding.hpp>

namespace heed::nn {

/// A learned vector for each position of a sentence, added to its words' embeddings.
///
///     y_t = x_t + P_{first+t}                 Gehring et al. 2017, section 3.1
///
/// Throws shape_error for a sentence longer than the table.
template <class Matrix>
struct learned_positions {
    Matrix table;  // [M,E], for at most M positions

    auto operator()(const tensor auto& x, std::size_t first = 0) const  // [S,B,E]
    {
        return ops::add_positions(x, table, first);
    }

    static auto parameters(auto& self, auto&& visit) { return nn::learned_positions{visit("table", self.table)}; }
};

template <class Matrix>
learned_positions(Matrix) -> learned_positions<Matrix>;

}  // namespace heed::nn
