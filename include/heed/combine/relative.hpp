// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include <heed/core/errors.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/normalize/within.hpp>
#include <heed/ops/all_pairs.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/operation.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/shape.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/score_hooks.hpp>

namespace heed::inline HEED_TARGET::ops {

/// y[r,d] = Σ of the weights w[r,j] with clip(j − s, −R, R) = d − R. s is the number of the query of row r, `first` + r
/// mod S, and S is the number of queries per sentence: w [B·S,T] -> [B·S,2R+1].
///
///     ∂w[r,j] += ∂y[r, clip(j − s, −R, R) + R]
struct sum_by_distance_op : operation<sum_by_distance_op> {
    static shape_of_rank<2> shape(const auto& w, std::size_t, std::size_t, std::size_t reach)
    {
        return {w.shape[0], 2 * reach + 1};
    }

    template <class T>
    static void forward(in<T, 2> w, std::size_t queries, std::size_t first, std::size_t reach, out<T, 2> y)
    {
        const std::size_t positions = w.shape[1], width = 2 * reach + 1;
        detail::each_row(w.shape[0], positions, [=](std::size_t r) {
            const parts of(first + r % queries, reach, positions);
            const T* const x = w.data + r * positions;
            T* const sums = y.data + r * width;
            std::fill_n(sums, width, T(0));
            sums[0] = kernels::sum_of(of.near, x);
            for (std::size_t j = of.near; j < of.far; ++j) sums[of.column(j)] += x[j];
            sums[width - 1] += kernels::sum_of(positions - of.far, x + of.far);
        });
    }

    template <class T>
    static void backward(in<T, 2> w, std::size_t queries, std::size_t first, std::size_t reach, in<T, 2>, in<T, 2> d_y,
                         adjoint<T, 2> d_w)
    {
        const std::size_t positions = w.shape[1], width = 2 * reach + 1;
        detail::each_row(w.shape[0], positions, [=](std::size_t r) {
            const parts of(first + r % queries, reach, positions);
            const T* const d = d_y.data + r * width;
            T* const to = d_w.data + r * positions;
            kernels::add_constant(of.near, to, d[0]);
            for (std::size_t j = of.near; j < of.far; ++j) to[j] += d[of.column(j)];
            kernels::add_constant(positions - of.far, to + of.far, d[width - 1]);
        });
    }

private:
    /// The positions of a row: those before `near` share the first column, those from `far` on the last one.
    struct parts {
        std::size_t query, reach, near, far;

        parts(std::size_t s, std::size_t R, std::size_t positions)
            : query(s), reach(R), near(std::min(s > R ? s - R : 0, positions)), far(std::min(s + R + 1, positions))
        {}
        std::size_t column(std::size_t j) const { return j + reach - query; }
    };
};
inline constexpr sum_by_distance_op sum_by_distance{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::combine {

/// A weighted sum of values plus a vector for their distance from the query.
///
///     c_s = Σ_j α_{s,j} (h_j + a_r),  r = clip(j − s, −R, R)       Shaw, Uszkoreit, Vaswani 2018, eq. 3
///
///     attention near{score::relative{score::scaled_dot{}, distances}, normalize::softmax{},
///                    combine::relative{vectors}};                  // [2R + 1, D]
///
/// `distances` has a row for each distance from −R to R; longer distances share the outermost rows. (score::relative,
/// eq. 4, has columns.) The weights of each distance are summed first, [B,2R+1], and multiplied by the vectors in one
/// product. In the heads of a multi_head h_j is the value after W_V, as in the paper. Queries and positions count from
/// 0.
///
/// Many queries are computed at once, but not in tiles: their weights [B,S,T] are stored. Does not work with
/// normalizers that cut out a window. Throws shape_error if the number of rows is even, or if their width differs from
/// the values'.
template <class Matrix>
struct relative {
    Matrix distances;  // [2R+1,D]

    static constexpr combiner_traits traits{.weights = weight_kind::per_position, .needs_all_positions = true};

    auto operator()(const tensor auto& weights_of_positions, const tensor auto& values,
                    const auto& at) const  // [B,T], [B,T,D] -> [B,D]
    {
        static_assert(!heed::detail::within_window<decltype(at)>,
                      "heed: combine::relative needs the distance of each position from the query, which a window "
                      "does not provide: use a normalizer without a window, such as normalize::softmax with the mask "
                      "sliding_window{n}");
        const auto by_distance = ops::sum_by_distance(weights_of_positions, std::size_t{1}, at.step, reach(values));
        return ops::add_same_shape(ops::weighted_sum(weights_of_positions, values),
                                   ops::linear(by_distance, distances));
    }

    /// For many queries at once: [B·S,T], [B,T,D] -> [B,S,D].
    auto combine_matrix(const tensor auto& weights_of_queries, const tensor auto& values,
                        const score::over::queries_from& from) const
    {
        const auto sums = ops::bmm(weights_of_queries, values);
        const std::size_t S = shape_of(sums)[1];
        const auto by_distance =
            ops::sum_by_distance(weights_of_queries, std::max(S, std::size_t{1}), from.first, reach(values));
        return ops::add_same_shape(sums, ops::reshaped(ops::linear(by_distance, distances), shape_of(sums)));
    }

    static auto parameters(auto& self, auto&& visit) { return combine::relative{visit("distances", self.distances)}; }

private:
    /// R
    std::size_t reach(const tensor auto& values) const
    {
        const auto is = shape_of(distances);
        if (is[0] % 2 == 0 || is[1] != shape_of(values)[2]) {
            throw shape_error("combine::relative: the matrix of distances is " + shape_text(is) +
                              "; it must have 2 R + 1 rows, for the distances from -R to R, and " +
                              counted(shape_of(values)[2], "column") + ", the width of the values");
        }
        return is[0] / 2;
    }
};

template <class Matrix>
relative(Matrix) -> relative<Matrix>;

}  // namespace heed::inline HEED_TARGET::combine
