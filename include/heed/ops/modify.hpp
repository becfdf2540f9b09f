// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <heed/core/parallel.hpp>
#include <heed/ops/operation.hpp>
#include <heed/simd/lookup_table.hpp>
#include <heed/simd/score_index.hpp>

namespace heed::inline HEED_TARGET::ops {

/// The index of rows of scores: row i belongs to query first_query + i % queries of row first_row + i / queries of a
/// batch; its scores start at key first_keys[i / queries], or at key 0 if first_keys is empty. Each sentence has
/// `heads` rows of the batch, for the heads from `head` on.
struct rows_of_places {
    std::size_t queries = 1, first_query = 0, first_row = 0, head = 0;
    std::span<const std::size_t> first_keys{};
    std::size_t heads = 1;

    /// A copy with its list in memory that the tape `where` keeps.
    rows_of_places kept(auto& where) const
    {
        auto copy = *this;
        copy.first_keys = {where.keep(first_keys.data(), first_keys.size()), first_keys.size()};
        return copy;
    }
};

namespace detail {

/// Throws shape_error unless each row of the scores has a query and, if first_keys is not empty, a first key.
inline void require_rows_of_places(const shape_of_rank<2>& scores, const rows_of_places& where)
{
    const std::size_t rows = scores[0], queries = where.queries, first = where.first_keys.size();
    if (rows == 0 || (queries > 0 && (first == 0 || first > (rows - 1) / queries))) return;
    detail::refuse("score::modified: ", counted(first, "first key"), " for scores ", scores, " of ",
                   counted(queries, "query", "queries"),
                   " per sentence; there must be a query, and a first key for each sentence or for none");
}

template <class T>
pack<T> lanes_at(std::size_t count, const T* x)
{
    return heed::detail::each_lane<T>([&](std::size_t i) { return i < count ? x[i] : T(0); });
}
template <class T>
void put_lanes(std::size_t count, T* x, const pack<T>& v)
{
    for (std::size_t i = 0; i < count; ++i) x[i] = v[i];
}

/// f(offset, count, index, shard) for each register of the positions of all rows.
inline void each_index(const shape_of_rank<2>& shape, const rows_of_places& where, const auto& use)
{
    parallel_for(shape[0], (std::size_t{1} << 14) / (shape[1] + 1) + 1,
                 [&](std::size_t begin, std::size_t end, std::size_t shard) {
                     score_index p;
                     for (std::size_t row = begin; row < end; ++row) {
                         const std::size_t of_batch = row / where.queries, there = where.first_row + of_batch;
                         const std::size_t first = where.first_keys.empty() ? 0 : where.first_keys[of_batch];
                         p.batch = static_cast<std::int32_t>(there / where.heads);
                         p.head = static_cast<std::int32_t>(where.head + there % where.heads);
                         p.query = static_cast<std::int32_t>(where.first_query + row % where.queries);
                         for (std::size_t t = 0; t < shape[1]; t += lane_count) {
                             p.key.at = heed::detail::counted_from(first + t).at;
                             use(row * shape[1] + t, std::min(lane_count, shape[1] - t), p, shard);
                         }
                     }
                 });
}

/// d_x += f'(x) d_y for one register of scores.
template <class T>
void modify_backward(const auto& f, const score_index& p, std::size_t count, const T* x, const T* d_y, T* d_x)
{
    const dual<T> y(f(dual<T>(lanes_at(count, x), pack<T>(1)), heed::detail::for_score(p)));
    const pack<T> by = lanes_at(count, d_y);
    // Where dy is 0, for example at a masked position, the slope may be infinite or NaN; where the slope is 0, no
    // gradient flows, even if another score made the gradients of the whole row NaN. Tiles do the same.
    const auto nothing = (by == T(0)) | (y.slope == T(0));
    put_lanes(count, d_x, lanes_at<T>(count, d_x) + select(nothing, T(0), by * y.slope));
}

}  // namespace detail

/// y[i,t] = f(x[i,t], index of i and t)            ∂x += f'(x) ∂y, by dual numbers
/// y[i,t] = f(x[i,t], index of i and t, table)     ∂table[k] += Σ ∂f/∂table[k] ∂y over the reads of table[k]
///
/// `f` takes a SIMD pack of scores and their index: see simd/pack.hpp. The table has any rank: see
/// simd/lookup_table.hpp.
template <class Function>
struct modify_op : operation<modify_op<Function>> {
    Function f;

    explicit modify_op(Function function) : f(std::move(function)) {}

    static shape_of_rank<2> shape(const auto& x, const rows_of_places& where)
    {
        detail::require_rows_of_places(x.shape, where);
        return x.shape;
    }
    static shape_of_rank<2> shape(const auto& x, const auto& table, const rows_of_places& where)
    {
        if (table.size() == 0 && x.size() > 0)
            detail::refuse("score::modified: the table is empty, ", table.shape, "; give at least one number");
        return shape(x, where);
    }

    template <class T>
    void forward(in<T, 2> x, const rows_of_places& where, out<T, 2> y) const
    {
        write(x, where, y);
    }
    template <class T, std::size_t N>
    void forward(in<T, 2> x, in<T, N> table, const rows_of_places& where, out<T, 2> y) const
    {
        write(x, where, y, lane_table<T, N>{table.data, table.shape});
    }

    template <class T>
    void backward(in<T, 2> x, const rows_of_places& where, in<T, 2>, in<T, 2> d_y, adjoint<T, 2> d_x) const
    {
        detail::each_index(x.shape, where, [&](std::size_t at, std::size_t count, const score_index& p, std::size_t) {
            detail::modify_backward(f, p, count, x.data + at, d_y.data + at, d_x.data + at);
        });
    }
    template <class T, std::size_t N>
    void backward(in<T, 2> x, in<T, N> table, const rows_of_places& where, in<T, 2>, in<T, 2> d_y, adjoint<T, 2> d_x,
                  adjoint<T, N> d_table) const
    {
        const lane_table<T, N> known{table.data, table.shape};
        const auto of_table = [&](auto e, const score_index& p) { return f(e, p, known); };
        scratch here;
        const std::size_t shards = threads(), size = table.size();
        T* const parts = d_table ? here.take<T>(shards * size) : nullptr;
        if (d_table) std::fill_n(parts, shards * size, T(0));
        detail::each_index(
            x.shape, where, [&](std::size_t at, std::size_t count, const score_index& p, std::size_t shard) {
                if (d_x) detail::modify_backward(of_table, p, count, x.data + at, d_y.data + at, d_x.data + at);
                if (!d_table) return;
                const pack<T> by = detail::lanes_at(count, d_y.data + at);
                heed::detail::add_to_table(f, known, parts + shard * size, [&](const auto& come_back) {
                    come_back(detail::lanes_at(count, x.data + at), heed::detail::for_score(p), by);
                });
            });
        for (std::size_t shard = 0; d_table && shard < shards; ++shard)
            for (std::size_t i = 0; i < size; ++i) d_table.data[i] += parts[shard * size + i];
    }

private:
    template <class T>
    void write(in<T, 2> x, const rows_of_places& where, out<T, 2> y, const auto&... table) const
    {
        detail::each_index(x.shape, where, [&](std::size_t at, std::size_t count, const score_index& p, std::size_t) {
            const pack<T> changed(f(detail::lanes_at(count, x.data + at), heed::detail::for_score(p), table...));
            detail::put_lanes(count, y.data + at, changed);
        });
    }
};

}  // namespace heed::inline HEED_TARGET::ops
