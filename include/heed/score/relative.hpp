// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <heed/core/errors.hpp>
#include <heed/kernels/tiles/relative_comparison.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/shape.hpp>
#include <heed/policy/step_kernel.hpp>
#include <heed/score/modified.hpp>
#include <heed/simd/score_index.hpp>

namespace heed::inline HEED_TARGET::score {

/// e + t[sentence, query, distance] for all queries at once, or e + t[sentence, distance] for one.
template <bool of_one>
struct add_by_distance {
    std::int32_t query = 0, reach = 0;      // the first query, and the distance of the last column
    std::int32_t first_row = 0, heads = 1;  // first row of the batch, and rows per sentence

    auto operator()(const auto& e, const score_index& p, const auto& t) const
    {
        const std::int32_t row = p.batch * heads + (heads > 1 ? p.head : 0) - first_row;
        if constexpr (of_one) {
            return e + t(row, p.key - p.query + reach);
        } else {
            return e + t(row, p.query - query, p.key - p.query + reach);
        }
    }
};

/// An inner product that also compares the query with its distance to the key.
///
///     e_{s,j} = a(q_s) · (k_j + d_r),  r = clip(j − s, −R, R)         Shaw, Uszkoreit, Vaswani 2018, eq. 2, 4 and 5
///
///     score::relative near{score::scaled_dot{}, distances};           // [A, 2R + 1]
///
/// a(q) is the base's projection: q / √A for scaled_dot. `distances` has a column for each distance from −R to R;
/// longer distances share the outermost columns. Products with all columns are computed first, Q Dᵀ, so no vector is
/// added to a key: [B,S,2R+1] for single steps and temporal normalizers, one block of queries at a time in tiles. The
/// paper's vectors for values (eq. 3), which it finds unnecessary, are combine::relative. Queries and keys count from
/// 0. Throws shape_error if the number of columns is even.
template <class Base, class Matrix>
struct relative : by_place<relative<Base, Matrix>, Base> {
    Matrix distances;

    static_assert(detail::placeholder<Base> || known_to_kernels_as<Base, kernels::inner_product_score>,
                  "heed: score::relative compares the query with both keys and distances, by inner products: its "
                  "base must be dot, scaled_dot or general");

    relative(Base one, Matrix columns) : by_place<relative, Base>(std::move(one)), distances(std::move(columns)) {}

    /// Scores [B·S,T] plus the distance terms.
    template <tensor Queries>
    auto changed(const tensor auto& scores, const Queries& queries, const ops::rows_of_places& where) const
    {
        constexpr bool of_one = rank_of<Queries> == 2;
        return ops::modify_op{change<of_one>(where.first_query, where.heads, where.first_row)}(
            scores, looked_up(this->base.asking(queries)), where);
    }

    /// The function that changes scores.
    template <bool of_one = false>
    add_by_distance<of_one> change(std::size_t first_query, std::size_t heads, std::size_t first_row = 0) const
    {
        return {static_cast<std::int32_t>(first_query), static_cast<std::int32_t>(reach()),
                static_cast<std::int32_t>(first_row), static_cast<std::int32_t>(heads)};
    }
    static constexpr bool looks_up = true;

    /// How tiles compare: with both keys and distances.
    using compares_in_tiles = kernels::tiles::inner_product_with_distances;
    /// The vectors that tiles compare with in addition to keys: the distances, [A·(2R+1)].
    auto factors_in_tiles() const
    {
        (void)reach();  // throws if the shape of `distances` is invalid
        return ops::reshaped(distances, -1);
    }
    /// The table that the function reads: q · a_d for each query and distance d. `asking` is a(Q).
    auto looked_up(const tensor auto& asking) const { return ops::linear(asking, distances); }

    /// R
    std::size_t reach() const
    {
        const std::size_t columns = shape_of(distances)[1];
        if (columns % 2 == 0)
            throw shape_error("score::relative: the matrix of distances, " + shape_text(shape_of(distances)) +
                              ", has " + std::to_string(columns) +
                              " columns; it must have 2 R + 1, for the distances "
                              "from -R to R");
        return columns / 2;
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::relative{visit("base", self.base), visit("distances", self.distances)};
    }
};

}  // namespace heed::inline HEED_TARGET::score
