// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include <heed/core/dual_number.hpp>
#include <heed/core/errors.hpp>
#include <heed/core/workspace.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/operation.hpp>
#include <heed/ops/rows.hpp>

/// Numbers that each query has for distances, looked up for its keys. `count` says how many keys there are up to the
/// query's own, for each row, and `first` the number of the first key of each row, if that is not 0 (score/
/// keys_up_to_query.hpp).
namespace heed::ops {

namespace detail {

/// Throws shape_error unless there is a count for each row, and a first key or none at all.
inline void require_places(const char* where, const lengths_view& count, const lengths_view& first, std::size_t rows)
{
    if (count.batch() != rows || (first.batch() != rows && first.batch() != 0)) {
        throw shape_error(std::string(where) + ": " + std::to_string(count.batch()) + " counts of keys and " +
                          std::to_string(first.batch()) + " first keys for " + std::to_string(rows) +
                          " rows; each row has a count, and a first key or none of them");
    }
}

/// How many of the `positions` keys of row r are no later than the query.
inline std::size_t keys_of_row(const lengths_view& count, const lengths_view& first, std::size_t r,
                               std::size_t positions)
{
    const std::size_t begin = first.batch() == 0 ? 0 : first[r];
    return count[r] > begin ? std::min(count[r] - begin, positions) : 0;
}

}  // namespace detail

/// y[r,j] = w[r, j − i + c] where that is a column of w, and else 0; i is where the query stands: w [R,K] -> [R,T].
///
///     ∂w[r, j − i + c] += ∂y[r,j]
struct at_distances_op : operation<at_distances_op> {
    static shape_of_rank<2> shape(const auto& w, std::size_t, std::size_t positions, const lengths_view& count,
                                  const lengths_view& first)
    {
        detail::require_places("at_distances", count, first, w.shape[0]);
        return {w.shape[0], positions};
    }

    template <class T>
    static void forward(in<T, 2> w, std::size_t center, std::size_t, const lengths_view& count,
                        const lengths_view& first, out<T, 2> y)
    {
        std::fill_n(y.data, y.size(), T(0));
        each(w.shape, y.shape, center, count, first,
             [&](std::size_t to, std::size_t from) { y.data[to] = w.data[from]; });
    }

    template <class T>
    static void backward(in<T, 2> w, std::size_t center, std::size_t, const lengths_view& count,
                         const lengths_view& first, in<T, 2> y, in<T, 2> d_y, adjoint<T, 2> d_w)
    {
        each(w.shape, y.shape, center, count, first,
             [&](std::size_t to, std::size_t from) { d_w.data[from] += d_y.data[to]; });
    }

private:
    /// f(a number of y, its number of w)
    static void each(const shape_of_rank<2>& w, const shape_of_rank<2>& y, std::size_t center,
                     const lengths_view& count, const lengths_view& first, const auto& f)
    {
        for (std::size_t r = 0; r < y[0]; ++r) {
            if (count[r] == 0) continue;
            // Column k belongs to the key begin + j = i + k − center.
            const auto shift = static_cast<std::ptrdiff_t>(count[r] - 1) - static_cast<std::ptrdiff_t>(center) -
                               static_cast<std::ptrdiff_t>(first.batch() == 0 ? 0 : first[r]);
            for (std::size_t k = 0; k < w[1]; ++k) {
                const std::ptrdiff_t j = static_cast<std::ptrdiff_t>(k) + shift;
                if (j >= 0 && j < static_cast<std::ptrdiff_t>(y[1]))
                    f(r * y[1] + static_cast<std::size_t>(j), r * w[1] + k);
            }
        }
    }
};
inline constexpr at_distances_op at_distances{};

/// y[r,j] = e[r,j] + z[r,p], p = min(P − 1, Σ_{l=j..i} σ(e[r,l])): e [R,T], z [R,P] -> [R,T]. i is where the query
/// stands; between whole p, z is a line; p of a key behind the query is 0.
///
///     with f = ⌊p⌋ and ∂p = (z[r,f+1] − z[r,f]) ∂y, or 0 where p = P − 1:
///     ∂z[r,f] += (1 + f − p) ∂y,  ∂z[r,f+1] += (p − f) ∂y
///     ∂e[r,l] += ∂y[r,l] + σ(e[r,l]) (1 − σ(e[r,l])) Σ_{j≤l} ∂p_j
struct add_contextual_positions_op : operation<add_contextual_positions_op> {
    static shape_of_rank<2> shape(const auto& e, const auto& z, const lengths_view& count, const lengths_view& first)
    {
        require_shape("add_contextual_positions", "the scores of positions", z.shape, {e.shape[0], z.shape[1]},
                      "one row for each row of scores ", e.shape);
        if (z.shape[1] == 0) {
            throw shape_error("add_contextual_positions: no positions, " + shape_text(z.shape) +
                              "; there must be a column for position 0 at least");
        }
        detail::require_places("add_contextual_positions", count, first, e.shape[0]);
        return e.shape;
    }

    template <class T>
    static void forward(in<T, 2> e, in<T, 2> z, const lengths_view& count, const lengths_view& first, out<T, 2> y)
    {
        const std::size_t positions = e.shape[1], P = z.shape[1];
        detail::each_row(e.shape[0], 64 * positions, [=, &count, &first](std::size_t r) {
            scratch here;
            T* const p = here.take<T>(positions);
            const T *const scores = e.data + r * positions, *const table = z.data + r * P;
            sum_gates(scores, positions, detail::keys_of_row(count, first, r, positions), p);
            for (std::size_t j = 0; j < positions; ++j) {
                const auto [f, part] = between(p[j], P);
                const T added = f + 1 < P ? table[f] + part * (table[f + 1] - table[f]) : table[f];
                y.data[r * positions + j] = scores[j] + added;
            }
        });
    }

    template <class T>
    static void backward(in<T, 2> e, in<T, 2> z, const lengths_view& count, const lengths_view& first, in<T, 2>,
                         in<T, 2> d_y, adjoint<T, 2> d_e, adjoint<T, 2> d_z)
    {
        const std::size_t positions = e.shape[1], P = z.shape[1];
        detail::each_row(e.shape[0], 64 * positions, [=, &count, &first](std::size_t r) {
            scratch here;
            T* const p = here.take<T>(positions);
            const T *const scores = e.data + r * positions, *const table = z.data + r * P;
            const T* const d = d_y.data + r * positions;
            const std::size_t n = detail::keys_of_row(count, first, r, positions);
            sum_gates(scores, positions, n, p);
            in_double<T> before = 0;  // Σ_{j≤l} ∂p_j
            for (std::size_t j = 0; j < positions; ++j) {
                const auto [f, part] = between(p[j], P);
                const bool inside = f + 1 < P;
                if (d_z) d_z.data[r * P + f] += inside ? (1 - part) * d[j] : d[j];
                if (d_z && inside) d_z.data[r * P + f + 1] += part * d[j];
                if (!d_e) continue;
                if (j < n && inside && d[j] != T(0))
                    before += static_cast<in_double<T>>((table[f + 1] - table[f]) * d[j]);
                d_e.data[r * positions + j] += d[j];
                if (j < n) {
                    const T gate = sigmoid(scores[j]);
                    d_e.data[r * positions + j] += gate * (1 - gate) * static_cast<T>(before);
                }
            }
        });
    }

private:
    template <class T>
    static T sigmoid(T x)
    {
        using std::exp;
        const T power = exp(x < 0 ? x : -x);
        return x < 0 ? power / (1 + power) : 1 / (1 + power);
    }
    /// p of each key, not yet cut off at the last position; 0 behind the n keys up to the query. Summed in double.
    template <class T>
    static void sum_gates(const T* e, std::size_t positions, std::size_t n, T* p)
    {
        std::fill(p + n, p + positions, T(0));
        in_double<T> sum = 0;
        for (std::size_t j = n; j-- > 0;) p[j] = static_cast<T>(sum += static_cast<in_double<T>>(sigmoid(e[j])));
    }
    /// The whole position below p, and how far p is above it; the last one, P − 1, from there on.
    template <class T>
    static std::pair<std::size_t, T> between(T p, std::size_t P)
    {
        const double value = static_cast<double>(value_of(p));
        if (!(value < static_cast<double>(P - 1))) return {P - 1, T(0)};
        const auto f = static_cast<std::size_t>(value);
        return {f, p - static_cast<T>(static_cast<plain_number<T>>(f))};
    }
};
inline constexpr add_contextual_positions_op add_contextual_positions{};

/// y[r,d] = Σ of the weights w[r,j] whose distance j − s, cut off at −R and R, is d − R; s is the number of the query
/// of row r, `first` + r mod S, and S the queries of a sentence: w [B·S,T] -> [B·S,2R+1].
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

}  // namespace heed::ops
