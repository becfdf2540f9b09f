// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <heed/attention/place.hpp>
#include <heed/core/parallel.hpp>
#include <heed/ops/operation.hpp>

namespace heed::ops {

/// Where rows of scores stand: the row i belongs to query first_query + i % queries of sentence
/// first_sentence + i / queries.
struct rows_of_places {
    std::size_t queries = 1, first_query = 0, first_sentence = 0, head = 0;
};

/// y[i,t] = f(x[i,t], place of i and t)            ∂x += f'(x) ∂y, by dual numbers
///
/// `f` takes lanes of scores and their place: see core/lanes.hpp.
template <class Function>
struct modify_op : operation<modify_op<Function>> {
    Function f;

    explicit modify_op(Function function) : f(std::move(function)) {}

    static shape_of_rank<2> shape(const auto& x, const rows_of_places&) { return x.shape; }

    template <class T>
    void forward(in<T, 2> x, const rows_of_places& where, out<T, 2> y) const
    {
        each_place<T>(x.shape, where, [&](std::size_t at, std::size_t count, const place& p) {
            put(count, y.data + at, pack<T>(f(get(count, x.data + at), heed::detail::for_score(p))));
        });
    }

    template <class T>
    void backward(in<T, 2> x, const rows_of_places& where, in<T, 2>, in<T, 2> d_y, adjoint<T, 2> d_x) const
    {
        each_place<T>(x.shape, where, [&](std::size_t at, std::size_t count, const place& p) {
            const dual<T> y(f(dual<T>(get(count, x.data + at), pack<T>(1)), heed::detail::for_score(p)));
            const pack<T> by = get(count, d_y.data + at);
            // Where nothing comes back, as at a hidden position, the slope may be infinite or NaN.
            put(count, d_x.data + at, get(count, d_x.data + at) + select(by == T(0), T(0), by * y.slope));
        });
    }

private:
    template <class T>
    static pack<T> get(std::size_t count, const T* x)
    {
        pack<T> result(T(0));
        for (std::size_t i = 0; i < count; ++i) result.at[i] = x[i];
        return result;
    }
    template <class T>
    static void put(std::size_t count, T* x, const pack<T>& v)
    {
        for (std::size_t i = 0; i < count; ++i) x[i] = v.at[i];
    }

    /// f(offset, count, place) for each register of the positions of all rows.
    template <class T>
    static void each_place(const shape_of_rank<2>& shape, const rows_of_places& where, const auto& use)
    {
        parallel_for(shape[0], (std::size_t{1} << 14) / (shape[1] + 1) + 1,
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                         place p;
                         p.head = static_cast<std::int32_t>(where.head);
                         for (std::size_t row = begin; row < end; ++row) {
                             p.batch = static_cast<std::int32_t>(where.first_sentence + row / where.queries);
                             p.query = static_cast<std::int32_t>(where.first_query + row % where.queries);
                             for (std::size_t t = 0; t < shape[1]; t += lane_count) {
                                 for (std::size_t i = 0; i < lane_count; ++i)
                                     p.key.at[i] = static_cast<std::int32_t>(t + i);
                                 use(row * shape[1] + t, std::min(lane_count, shape[1] - t), p);
                             }
                         }
                     });
    }
};

}  // namespace heed::ops
