// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include <heed/core/family.hpp>
#include <heed/ops/operation.hpp>
#include <heed/ops/products.hpp>
#include <heed/policy/concepts.hpp>

namespace heed::inline HEED_TARGET::ops {

/// y[b,t] = x[b, at[b,t,0]]: x [B,N] and integers at [B,T,1] (constants) -> [B,T].
///
///     ∂x[b, at[b,t,0]] += ∂y[b,t]
struct gather_op : operation<gather_op> {
    static shape_of_rank<2> shape(const auto& x, const auto& at)
    {
        require_shape("gather", "the table", x.shape, {at.shape[0], x.shape[1]},
                      "one row for each row of the positions");
        require_shape("gather", "the positions", at.shape, {at.shape[0], at.shape[1], 1},
                      "one number for each position");
        for (std::size_t i = 0, n = at.size(); i < n; ++i) {
            const auto place = value_of(at.data[i]);
            if (place >= 0 && place < static_cast<decltype(place)>(x.shape[1])) continue;
            throw shape_error("gather: position " + std::to_string(place) + " of " + shape_text(x.shape) +
                              ", which has " + counted(x.shape[1], "column"));
        }
        return {at.shape[0], at.shape[1]};
    }

    template <class T>
    static void forward(in<T, 2> x, in<T, 3> at, out<T, 2> y)
    {
        each(x.shape, at, [&](std::size_t from, std::size_t to) { y.data[to] = x.data[from]; });
    }

    template <class T>
    static void backward(in<T, 2> x, in<T, 3> at, in<T, 2>, in<T, 2> d_y, adjoint<T, 2> d_x, adjoint<T, 3>)
    {
        if (d_x) each(x.shape, at, [&](std::size_t from, std::size_t to) { d_x.data[from] += d_y.data[to]; });
    }

private:
    /// f(element of x, the matching element of y)
    template <class T>
    static void each(const shape_of_rank<2>& x, in<T, 3> at, const auto& f)
    {
        for (std::size_t i = 0, n = at.size(); i < n; ++i) {
            f(i / at.shape[1] * x[1] + static_cast<std::size_t>(value_of(at.data[i])), i);
        }
    }
};
inline constexpr gather_op gather{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::score {

/// Position numbers, starting at `first`, as keys of annotations [B,T,D]: [B,T,1], in the tensor family of both
/// arguments.
auto position_numbers(const tensor auto& parameter, const tensor auto& annotations, std::size_t first)
{
    using T = element_of<decltype(parameter)>;
    const std::size_t batch = shape_of(annotations)[0], positions = shape_of(annotations)[1];
    array<T, 3> numbers(shape_of_rank<3>{batch, positions, 1});
    for (std::size_t i = 0; i < batch * positions; ++i) numbers.data()[i] = static_cast<T>(first + i % positions);
    return same_family(parameter, same_family(annotations, std::move(numbers)));
}

/// Scores positions from the query alone: the annotations are not read.
///
///     e = W h,  a = softmax(e)                Luong et al. 2015, eq. 8 ("location")
///
/// W has one column for each position up to the longest sentence, S_max. The keys are position numbers, so that each
/// position keeps its own score inside a window; `attention::extend` continues them. Deviation: the paper ignores words
/// beyond S_max; here a longer sentence throws shape_error (docs/explanation/decisions.md).
template <class Matrix>
struct location {
    Matrix W;  // [Q,S_max]

    static constexpr score_traits traits{.weights = weight_kind::per_position};

    auto prepare(const tensor auto& annotations, std::size_t first = 0) const  // [B,T,D] -> [B,T,1]
    {
        const std::size_t positions = shape_of(annotations)[1];
        if (first + positions > shape_of(W)[1]) {
            throw shape_error("score::location: " + counted(first + positions, "position") + " but W is " +
                              shape_text(shape_of(W)) + ", with columns for at most " + std::to_string(shape_of(W)[1]) +
                              "; make W as wide as the longest sentence, or truncate the annotations");
        }
        return score::position_numbers(W, annotations, first);
    }

    auto project(const tensor auto& query) const  // [B,Q] -> [B,S_max]
    {
        return ops::linear(query, W);
    }

    auto match(const tensor auto& projected, const tensor auto& keys) const  // [B,S_max], [B,T,1] -> [B,T]
    {
        return ops::gather(projected, keys);
    }

    auto operator()(const tensor auto& query, const tensor auto& keys) const  // [B,Q], [B,T,1] -> [B,T]
    {
        return match(project(query), keys);
    }

    static auto parameters(auto& self, auto&& visit) { return score::location{visit("W", self.W)}; }
};

template <class Matrix>
location(Matrix) -> location<Matrix>;

}  // namespace heed::inline HEED_TARGET::score
