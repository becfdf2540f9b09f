// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>

#include <heed/kernels/additive.hpp>
#include <heed/kernels/dot.hpp>
#include <heed/kernels/per_dimension.hpp>
#include <heed/ops/operation.hpp>

/// Whole steps of attention as one operation each. Backward recomputes intermediate results: no [B,T,A] or [B,T,D] is
/// stored per step.
namespace heed::inline HEED_TARGET::ops {

/// The results of a step.
template <class Context, class Weights>
struct step_result {
    Context context;  // [B,D]
    Weights weights;  // [B,T] or [B,T,D]
};
/// The results of a step with state: also the history after it, as a logarithm.
template <class Context, class Weights, class History>
struct temporal_step_result {
    Context context;
    Weights weights;
    History history;  // [B,T]
};

namespace detail {

/// Base of these operations: Self has a `name`.
template <class Self>
struct step_operation : operation<Self> {
    template <class... Y>
    static auto results(Y... y)
    {
        if constexpr (sizeof...(Y) == 2) {
            return step_result<Y...>{std::move(y)...};
        } else {
            return temporal_step_result<Y...>{std::move(y)...};
        }
    }

protected:
    /// The shapes of context [B,D] and weights [B,T], and one [B,T] for each of `more`.
    static auto checked(const auto& query, const auto& keys, const auto& values, const lengths_view& real,
                        const auto&... more)
    {
        const auto [B, T, A] = keys.shape;
        const std::size_t D = values.shape[2];
        require_shape(Self::name, "the projected query", query.shape, {B, A}, "one row for each row of the keys ",
                      keys.shape);
        require_shape(Self::name, "the values", values.shape, {B, T, D}, "the rows and positions of the keys ",
                      keys.shape);
        real.require(Self::name, B, T);
        const shape_of_rank<2> positions{B, T};
        (require_shape(Self::name, "the state's history", more.shape, positions,
                       "one number per position; a state belongs to one memory"),
         ...);
        return std::tuple{shape_of_rank<2>{B, D}, positions, ((void)more, positions)...};
    }

    /// The step as kernels take it; `more` are its members after the keys.
    template <template <class> class Step, class T>
    static Step<T> kernel(in<T, 2> query, in<T, 3> keys, in<T, 3> values, const lengths_view& real, auto... more)
    {
        const auto [B, P, A] = keys.shape;
        return {B, P, A, values.shape[2], real.data(), query.data, keys.data, more...};
    }
};

}  // namespace detail

/// e_j = vᵀ tanh(q + k_j), α = softmax(e − L), c = Σ_j α_j h_j, L' = log(exp L + exp e), temporal modulation: query
/// [B,A] projected, keys [B,T,A], v [A], values [B,T,D], history L [B,T] -> c [B,D], α [B,T], L' [B,T]. See
/// kernels/additive.hpp.
struct additive_temporal_step_op : detail::step_operation<additive_temporal_step_op> {
    static constexpr const char* name = "additive temporal attention";

    static auto shape(const auto& query, const auto& keys, const auto& v, const auto& values, const auto& history,
                      const lengths_view& real)
    {
        require_shape(name, "v", v.shape, {keys.shape[2]}, "one number for each dimension of the keys");
        return checked(query, keys, values, real, history);
    }

    /// The scores [B,T].
    static std::size_t saved(const auto&, const auto& keys, const auto&...) { return keys.shape[0] * keys.shape[1]; }

    template <class T>
    static void forward(in<T, 2> query, in<T, 3> keys, in<T, 1> v, in<T, 3> values, in<T, 2> history,
                        const lengths_view& real, out<T, 2> context, out<T, 2> weights, out<T, 2> next, T* scores)
    {
        kernels::additive_forward(kernel<kernels::additive_step>(query, keys, values, real, v.data, values.data,
                                                                 history.data, history.data != nullptr),
                                  scores, weights.data, context.data, next.data);
    }

    template <class T>
    static void backward(in<T, 2> query, in<T, 3> keys, in<T, 1> v, in<T, 3> values, in<T, 2> history,
                         const lengths_view& real, const auto& results, const auto& d, const T* scores,
                         adjoint<T, 2> d_query, adjoint<T, 3> d_keys, adjoint<T, 1> d_v, adjoint<T, 3> d_values,
                         adjoint<T, 2> d_history)
    {
        const auto step = kernel<kernels::additive_step>(query, keys, values, real, v.data, values.data, history.data,
                                                         history.data != nullptr);
        kernels::additive_backward(step, scores, std::get<1>(results).data, std::get<0>(d).data, std::get<1>(d).data,
                                   std::get<2>(d).data, d_query.data, d_keys.data, d_v.data, d_values.data,
                                   d_history.data);
    }
};

/// e_j = vᵀ tanh(q + k_j), α = softmax(e), c = Σ_j α_j h_j: query [B,A] projected, keys [B,T,A], v [A], values [B,T,D]
/// -> c [B,D], α [B,T], without temporal modulation.
///
///     with g_j = α_j (∂α_j + ∂c · h_j − Σ_k α_k (∂α_k + ∂c · h_k)) and t_j = tanh(q + k_j):
///     ∂v += Σ_j g_j t_j,  ∂k_j += g_j v ⊙ (1 − t_j²),  ∂q += Σ_j g_j v ⊙ (1 − t_j²),  ∂h_j += α_j ∂c
struct additive_step_op : detail::step_operation<additive_step_op> {
    static constexpr const char* name = "additive attention";

    static auto shape(const auto& query, const auto& keys, const auto& v, const auto& values, const lengths_view& real)
    {
        require_shape(name, "v", v.shape, {keys.shape[2]}, "one number for each dimension of the keys");
        return checked(query, keys, values, real);
    }

    static std::size_t saved(const auto&, const auto& keys, const auto&...) { return keys.shape[0] * keys.shape[1]; }

    template <class T>
    static void forward(in<T, 2> query, in<T, 3> keys, in<T, 1> v, in<T, 3> values, const lengths_view& real,
                        out<T, 2> context, out<T, 2> weights, T* scores)
    {
        kernels::additive_softmax_forward(
            kernel<kernels::additive_step>(query, keys, values, real, v.data, values.data), scores, weights.data,
            context.data);
    }

    template <class T>
    static void backward(in<T, 2> query, in<T, 3> keys, in<T, 1> v, in<T, 3> values, const lengths_view& real,
                         const auto& results, const auto& d, const T* scores, adjoint<T, 2> d_query,
                         adjoint<T, 3> d_keys, adjoint<T, 1> d_v, adjoint<T, 3> d_values)
    {
        additive_temporal_step_op::backward(query, keys, v, values, {}, real, results,
                                            std::tuple{std::get<0>(d), std::get<1>(d), in<T, 2>{}}, scores, d_query,
                                            d_keys, d_v, d_values, {});
    }
};
inline constexpr additive_step_op additive_step{};

/// e_j = q · k_j, α = softmax(e), c = Σ_j α_j h_j: query [B,A], keys [B,T,A], values [B,T,D] -> c [B,D], α [B,T].
///
///     ∂h_j += α_j ∂c,  ∂α_j += ∂c · h_j
///     ∂e_j  = α_j (∂α_j − Σ_k α_k ∂α_k)
///     ∂q   += Σ_j ∂e_j k_j,  ∂k_j += ∂e_j q
struct dot_step_op : detail::step_operation<dot_step_op> {
    static constexpr const char* name = "attention by inner products";

    static auto shape(const auto& query, const auto& keys, const auto& values, const lengths_view& real)
    {
        return checked(query, keys, values, real);
    }

    template <class T>
    static void forward(in<T, 2> query, in<T, 3> keys, in<T, 3> values, const lengths_view& real, out<T, 2> context,
                        out<T, 2> weights)
    {
        kernels::dot_forward(kernel<kernels::dot_step>(query, keys, values, real, values.data), weights.data,
                             context.data);
    }

    template <class T>
    static void backward(in<T, 2> query, in<T, 3> keys, in<T, 3> values, const lengths_view& real, const auto& results,
                         const auto& d, adjoint<T, 2> d_query, adjoint<T, 3> d_keys, adjoint<T, 3> d_values)
    {
        kernels::dot_backward(kernel<kernels::dot_step>(query, keys, values, real, values.data),
                              std::get<1>(results).data, std::get<0>(d).data, std::get<1>(d).data, d_query.data,
                              d_keys.data, d_values.data);
    }
};
inline constexpr dot_step_op dot_step{};

/// Does a step per dimension return its weights, [B,T,D]? If not, they are [B,0,D].
enum class weights_of_step { returned, left_out };

/// e_j = tanh(q + k_j) V, α^d = softmax over j of e^d, c = Σ_j α_j ⊙ h_j: query [B,A] projected, keys [B,T,A], V [A,D],
/// values [B,T,D] -> c [B,D], α [B,T,D]. See kernels/per_dimension.hpp.
///
///     with g_j = α_j ⊙ (∂α_j + ∂c ⊙ h_j − Σ_k α_k ⊙ (∂α_k + ∂c ⊙ h_k)) and t_j = tanh(q + k_j):
///     ∂V += Σ_j t_jᵀ g_j,  ∂k_j += (V g_j) ⊙ (1 − t_j²),  ∂q += Σ_j (V g_j) ⊙ (1 − t_j²),  ∂h_j += α_j ⊙ ∂c
struct per_dimension_step_op : detail::step_operation<per_dimension_step_op> {
    static constexpr const char* name = "per-dimension attention";

    static auto shape(const auto& query, const auto& keys, const auto& V, const auto& values, const lengths_view& real,
                      weights_of_step weights)
    {
        require_shape(name, "V", V.shape, {keys.shape[2], values.shape[2]}, "keys' dimensions by values' dimensions");
        auto of_weights = values.shape;
        if (weights == weights_of_step::left_out) of_weights[1] = 0;
        return std::tuple{std::get<0>(checked(query, keys, values, real)), of_weights};
    }

    /// The maximum score and the sum of each dimension, [2,B,D].
    static std::size_t saved(const auto&, const auto&, const auto&, const auto& values, const auto&...)
    {
        return 2 * values.shape[0] * values.shape[2];
    }

    template <class T>
    static void forward(in<T, 2> query, in<T, 3> keys, in<T, 2> V, in<T, 3> values, const lengths_view& real,
                        weights_of_step which, out<T, 2> context, out<T, 3> weights, T* normalizer)
    {
        const auto step = kernel<kernels::per_dimension_step>(query, keys, values, real, V.data, values.data);
        kernels::per_dimension_forward(step, which == weights_of_step::returned ? weights.data : nullptr, context.data,
                                       normalizer);
    }

    template <class T>
    static void backward(in<T, 2> query, in<T, 3> keys, in<T, 2> V, in<T, 3> values, const lengths_view& real,
                         weights_of_step which, const auto&, const auto& d, const T* normalizer, adjoint<T, 2> d_query,
                         adjoint<T, 3> d_keys, adjoint<T, 2> d_V, adjoint<T, 3> d_values)
    {
        const auto step = kernel<kernels::per_dimension_step>(query, keys, values, real, V.data, values.data);
        kernels::per_dimension_backward(step, normalizer, std::get<0>(d).data,
                                        which == weights_of_step::returned ? std::get<1>(d).data : nullptr,
                                        d_query.data, d_keys.data, d_V.data, d_values.data);
    }
};
inline constexpr per_dimension_step_op per_dimension_step{};

}  // namespace heed::inline HEED_TARGET::ops
