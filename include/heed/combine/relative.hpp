// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include <heed/attention/concepts.hpp>
#include <heed/attention/score_hooks.hpp>
#include <heed/core/errors.hpp>
#include <heed/normalize/within.hpp>
#include <heed/ops/all_pairs.hpp>
#include <heed/ops/distances.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/parts.hpp>
#include <heed/ops/products.hpp>

namespace heed::combine {

/// A weighted sum of values that know how far away they are.
///
///     c_s = Σ_j α_{s,j} (h_j + a_r),  r = clip(j − s, −R, R)       Shaw, Uszkoreit, Vaswani 2018, eq. 3
///
///     attention near{score::relative{score::scaled_dot{}, distances}, normalize::softmax{},
///                    combine::relative{vectors}};                  // [2R + 1, D]
///
/// A row of `distances` for each distance from −R to R; positions farther away share the last ones. (score::relative,
/// eq. 4, has columns.) No vector is added to a value: the weights of each distance are summed first, [B,2R+1], and
/// meet the vectors in one product. In the heads of a multi_head h_j is the value after W_V, as in the paper. Queries
/// and positions count from 0.
///
/// Many queries are answered at once, but not in tiles: their weights [B,S,T] are stored. Not within a window that a
/// normalizer cuts out. Throws shape_error if the number of rows is even, or if they are not as wide as the values.
template <class Matrix>
struct relative {
    Matrix distances;  // [2R+1,D]

    static constexpr weight_kind weights = weight_kind::per_position;

    auto operator()(const tensor auto& weights_of_positions, const tensor auto& values,
                    const auto& at) const  // [B,T], [B,T,D] -> [B,D]
    {
        static_assert(!heed::detail::within_window<decltype(at)>,
                      "heed: combine::relative needs the distance of each position from the query, which a window does "
                      "not tell: take a normalizer that cuts no window, such as normalize::softmax with the mask "
                      "sliding_window{n}");
        const auto by_distance = ops::sum_by_distance(weights_of_positions, std::size_t{1}, at.step, reach(values));
        return ops::add_alike(ops::weighted_sum(weights_of_positions, values), ops::linear(by_distance, distances));
    }

    /// The same for many queries at once: [B·S,T], [B,T,D] -> [B,S,D].
    auto combine_all(const tensor auto& weights_of_queries, const tensor auto& values,
                     const score::over::queries_from& from) const
    {
        const auto sums = ops::weighted_sums(weights_of_queries, values);
        const std::size_t B = shape_of(sums)[0], S = shape_of(sums)[1];
        const auto by_distance =
            ops::sum_by_distance(weights_of_queries, std::max(S, std::size_t{1}), from.first, reach(values));
        return ops::add_alike(sums, ops::by_sentence(ops::linear(by_distance, distances), B, S));
    }

    static auto parameters(auto& self, auto&& visit) { return combine::relative{visit("distances", self.distances)}; }

private:
    /// R
    std::size_t reach(const tensor auto& values) const
    {
        const auto is = shape_of(distances);
        if (is[0] % 2 == 0 || is[1] != shape_of(values)[2]) {
            throw shape_error("combine::relative: the matrix of distances is " + shape_text(is) +
                              "; it must have 2 R + 1 "
                              "rows, for the distances from -R to R, and " +
                              std::to_string(shape_of(values)[2]) + " columns, as the values have");
        }
        return is[0] / 2;
    }
};

template <class Matrix>
relative(Matrix) -> relative<Matrix>;

}  // namespace heed::combine
