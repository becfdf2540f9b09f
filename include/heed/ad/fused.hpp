// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/tape.hpp>
#include <heed/ops/fused.hpp>

/// The taped twins of ops/fused.hpp. Each saves little and computes the rest again: no [B,T,A] or [B,T,D] a step.
namespace heed::ad {

/// Going back: kernels::additive_backward. Saved a step: scores and weights [B,T].
template <bool temporal, tensor Q, tensor K, tensor V, tensor H, class... L>
auto twin(const ops::additive_step_op<temporal>& operation, const Q& query_, const K& keys_, const V& v_,
          const H& values_, const lengths& real, const L&... history_)
{
    using T = element_of<K>;
    tape<T>& on = tape_of(query_, keys_, v_, values_, history_...);
    operation.check(shape_of(query_), shape_of(keys_), shape_of(v_), shape_of(values_), real);
    (operation.check_history(shape_of(history_), shape_of(keys_)), ...);
    const var<T, 2> query = on_tape(on, query_);
    const var<T, 3> keys = on_tape(on, keys_), values = on_tape(on, values_);
    const var<T, 1> v = on_tape(on, v_);
    var<T, 2> history;
    ((history = on_tape(on, history_)), ...);
    const T* past = nullptr;
    bool wanted = query.wanted() || keys.wanted() || v.wanted() || values.wanted();
    if constexpr (temporal) {
        past = history.data();
        wanted = wanted || history.wanted();
    }
    const std::size_t B = keys.shape()[0], positions = keys.shape()[1];
    auto [context, context_data] = on.template make<2>({B, values.shape()[2]}, wanted);
    auto [weights, weights_data] = on.template make<2>({B, positions}, wanted);
    auto [next, next_data] =
        on.template make<2>(temporal ? shape_of_rank<2>{B, positions} : shape_of_rank<2>{0, 0}, wanted);
    T* scores = on.memory().template array_of<T>(B * positions);
    const auto step = operation.template kernel<T>(keys.shape(), values.shape(), on.keep(real.data(), B), query.data(),
                                                   keys.data(), v.data(), values.data(), past);
    kernels::additive_forward(step, scores, weights_data, context_data, temporal ? next_data : nullptr);
    if (wanted) {
        on.record(
            [&on, step, scores, query, keys, v, values, history, context = context, weights = weights, next = next] {
                const T *d_context = on.reached(context), *d_weights = on.reached(weights);
                const T* d_next = temporal ? on.reached(next) : nullptr;
                if (d_context == nullptr && d_weights == nullptr && d_next == nullptr) return;
                T* d_history = temporal ? on.wanted_adjoint(history) : nullptr;
                T *d_query = on.wanted_adjoint(query), *d_keys = on.wanted_adjoint(keys), *d_v = on.wanted_adjoint(v),
                  *d_values = on.wanted_adjoint(values);
                const auto before = on.memory().mark();
                T* workspace = on.memory().template array_of<T>(kernels::additive_backward_scratch(step));
                kernels::additive_backward(step, static_cast<const T*>(scores), weights.data(), d_context, d_weights,
                                           d_next, d_query, d_keys, d_v, d_values, d_history, workspace);
                on.memory().release(before);
            });
    }
    return ops::fused_result<var<T, 2>, var<T, 2>, var<T, 2>>{context, weights, next};
}

/// Going back: kernels::per_dimension_backward. Saved a step: two numbers for each dimension of the context [B,D].
template <tensor Q, tensor K, tensor M, tensor H>
auto twin(const ops::per_dimension_step_op& operation, const Q& query_, const K& keys_, const M& V_, const H& values_,
          const lengths& real, bool with_weights)
{
    using T = element_of<K>;
    tape<T>& on = tape_of(query_, keys_, V_, values_);
    operation.check(shape_of(query_), shape_of(keys_), shape_of(V_), shape_of(values_), real);
    const var<T, 2> query = on_tape(on, query_), V = on_tape(on, V_);
    const var<T, 3> keys = on_tape(on, keys_), values = on_tape(on, values_);
    const bool wanted = query.wanted() || keys.wanted() || V.wanted() || values.wanted();
    const std::size_t B = keys.shape()[0], D = values.shape()[2];
    auto [context, context_data] = on.template make<2>({B, D}, wanted);
    auto [weights, weights_data] =
        on.template make<3>(with_weights ? values.shape() : shape_of_rank<3>{0, 0, 0}, wanted);
    T* normalizer = on.memory().template array_of<T>(2 * B * D);
    const auto step = operation.template kernel<T>(keys.shape(), values.shape(), on.keep(real.data(), B), query.data(),
                                                   keys.data(), V.data(), values.data());
    {
        const auto before = on.memory().mark();
        T* workspace = on.memory().template array_of<T>(kernels::per_dimension_scratch(step));
        kernels::per_dimension_forward(step, with_weights ? weights_data : nullptr, context_data, normalizer,
                                       workspace);
        on.memory().release(before);
    }
    if (wanted) {
        on.record([&on, step, normalizer, query, keys, V, values, context = context, weights = weights, with_weights] {
            const T* d_context = on.reached(context);
            const T* d_weights = with_weights ? on.reached(weights) : nullptr;
            if (d_context == nullptr && d_weights == nullptr) return;
            T *d_query = on.wanted_adjoint(query), *d_keys = on.wanted_adjoint(keys), *d_V = on.wanted_adjoint(V),
              *d_values = on.wanted_adjoint(values);
            const auto before = on.memory().mark();
            T* workspace = on.memory().template array_of<T>(kernels::per_dimension_backward_scratch(step));
            kernels::per_dimension_backward(step, static_cast<const T*>(normalizer), d_context, d_weights, d_query,
                                            d_keys, d_V, d_values, workspace);
            on.memory().release(before);
        });
    }
    return ops::fused_result<var<T, 2>, var<T, 3>, var<T, 2>>{context, weights, {}};
}

}  // namespace heed::ad
