// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <heed/core/arena.hpp>
#include <heed/core/mask.hpp>
#include <heed/kernels/additive.hpp>
#include <heed/kernels/per_dimension.hpp>
#include <heed/ops/operation.hpp>

/// Whole steps of attention as one operation each. The kernels say what they compute; here they meet tensors.
namespace heed::ops {

/// What a fused step gives. `weights` is empty storage where nobody asked for them, `history` where there is none.
template <class Context, class Weights, class History>
struct fused_result {
    Context context;  // [B,D]
    Weights weights;  // [B,T] or [B,T,D]
    History history;  // [B,T]
};

namespace detail {

inline void check_fused(const char* name, const shape_of_rank<2>& query, const shape_of_rank<3>& keys,
                        const shape_of_rank<3>& values, const lengths& real)
{
    require_shape(name, "the projected query", query, {keys[0], keys[2]}, "one row for each row of the keys ", keys);
    require_shape(name, "the values", values, {keys[0], keys[1], values[2]}, "positions as the keys ", keys);
    real.require(name, keys[0], keys[1]);
}

}  // namespace detail

/// e_j = vᵀ tanh(q + k_j), α = softmax(e) (temporal: of e − L), c = Σ_j α_j h_j: see kernels/additive.hpp.
/// query [B,A] projected, keys [B,T,A], v [A], values [B,T,D]; temporal: history [B,T].
template <bool temporal>
struct additive_step_op : operation<additive_step_op<temporal>> {
    static constexpr const char* name = temporal ? "additive temporal attention" : "additive attention";

    static void check(const shape_of_rank<2>& query, const shape_of_rank<3>& keys, const shape_of_rank<1>& v,
                      const shape_of_rank<3>& values, const lengths& real)
    {
        detail::check_fused(name, query, keys, values, real);
        require_shape(name, "v", v, {keys[2]}, "one number for each dimension of the keys");
    }
    static void check_history(const shape_of_rank<2>& history, const shape_of_rank<3>& keys)
    {
        require_shape(name, "the state's history", history, {keys[0], keys[1]},
                      "one number a position; a state belongs to one memory");
    }

    static void check_sentences(const std::vector<std::size_t>& sentence, std::size_t batch)
    {
        for (const std::size_t s : sentence) {
            if (s >= batch) {
                throw shape_error(std::string(name) + ": a row asks about sentence " + std::to_string(s) + " of " +
                                  std::to_string(batch) + "; sentences count from 0");
            }
        }
    }

    /// Shapes [R,T,.]: the first extent is that of the rows, of which several may have the same `sentence`.
    template <class T>
    static kernels::additive_step<T> kernel(const shape_of_rank<3>& keys, const shape_of_rank<3>& values,
                                            const std::size_t* real, const T* q, const T* k, const T* v, const T* h,
                                            const T* history, const std::size_t* sentence = nullptr)
    {
        return {keys[0], keys[1], keys[2], values[2], real, q, k, v, h, history, temporal, sentence};
    }

    /// `history` is [B,T] where temporal, else nothing. Scores [B,T] are scratch.
    template <plain_tensor Q, plain_tensor K, plain_tensor V, plain_tensor H, class... L>
    auto plain(const Q& query, const K& keys, const V& v, const H& values, const lengths& real,
               const L&... history) const
    {
        return of_rows(shape_of(keys)[0], nullptr, query, keys, v, values, real, history...);
    }

    /// The same where several queries ask about one sentence: query [R,A], row r about keys and values of sentence[r].
    template <plain_tensor Q, plain_tensor K, plain_tensor V, plain_tensor H, class... L>
    auto shared(const std::vector<std::size_t>& sentence, const Q& query, const K& keys, const V& v, const H& values,
                const lengths& real, const L&... history) const
    {
        check_sentences(sentence, shape_of(keys)[0]);
        return of_rows(sentence.size(), sentence.data(), query, keys, v, values, real, history...);
    }

private:
    auto of_rows(std::size_t rows, const std::size_t* sentence, const auto& query, const auto& keys, const auto& v,
                 const auto& values, const lengths& real, const auto&... history) const
    {
        using T = element_of<decltype(keys)>;
        static_assert(sizeof...(history) == (temporal ? 1 : 0));
        const auto all_values = shape_of(values);
        require_shape(name, "the values", all_values, {shape_of(keys)[0], shape_of(keys)[1], all_values[2]},
                      "positions as the keys ", shape_of(keys));
        const shape_of_rank<3> at{rows, shape_of(keys)[1], shape_of(keys)[2]}, of{rows, all_values[1], all_values[2]};
        check(shape_of(query), at, shape_of(v), of, real);
        (check_history(shape_of(history), at), ...);
        const T* past = nullptr;
        ((past = view_of(history).data), ...);
        auto context = storage_for<T, 2>({of[0], of[2]});
        auto weights = storage_for<T, 2>({at[0], at[1]});
        auto next = storage_for<T, 2>(temporal ? shape_of_rank<2>{at[0], at[1]} : shape_of_rank<2>{0, 0});
        scratch memory;
        T* scores = memory.take<T>(at[0] * at[1]);
        kernels::additive_forward(kernel<T>(at, of, real.data(), view_of(query).data, view_of(keys).data,
                                            view_of(v).data, view_of(values).data, past, sentence),
                                  scores, weights.data(), context.data(), temporal ? next.data() : nullptr);
        return fused_result<array<T, 2>, array<T, 2>, array<T, 2>>{std::move(context), std::move(weights),
                                                                   std::move(next)};
    }
};

/// e_j = tanh(q + k_j) V, α^d = softmax over j of e^d, c = Σ_j α_j ⊙ h_j: see kernels/per_dimension.hpp.
/// query [B,A] projected, keys [B,T,A], V [A,D], values [B,T,D].
struct per_dimension_step_op : operation<per_dimension_step_op> {
    static constexpr const char* name = "per-dimension attention";

    static void check(const shape_of_rank<2>& query, const shape_of_rank<3>& keys, const shape_of_rank<2>& V,
                      const shape_of_rank<3>& values, const lengths& real)
    {
        detail::check_fused(name, query, keys, values, real);
        require_shape(name, "V", V, {keys[2], values[2]}, "from the keys' dimensions to the values'");
    }

    template <class T>
    static kernels::per_dimension_step<T> kernel(const shape_of_rank<3>& keys, const shape_of_rank<3>& values,
                                                 const std::size_t* real, const T* q, const T* k, const T* V,
                                                 const T* h)
    {
        return {keys[0], keys[1], keys[2], values[2], real, q, k, V, h};
    }

    template <plain_tensor Q, plain_tensor K, plain_tensor M, plain_tensor H>
    auto plain(const Q& query, const K& keys, const M& V, const H& values, const lengths& real, bool with_weights) const
    {
        using T = element_of<K>;
        const auto at = shape_of(keys), of = shape_of(values);
        check(shape_of(query), at, shape_of(V), of, real);
        auto context = storage_for<T, 2>(shape_of_rank<2>{of[0], of[2]});
        auto weights = storage_for<T, 3>(with_weights ? of : shape_of_rank<3>{0, 0, 0});
        compute<T>(at, of, real, view_of(query).data, view_of(keys).data, view_of(V).data, view_of(values).data,
                   with_weights ? weights.data() : nullptr, context.data());
        return fused_result<array<T, 2>, array<T, 3>, array<T, 2>>{std::move(context), std::move(weights),
                                                                   array<T, 2>(shape_of_rank<2>{0, 0})};
    }

    template <class T>
    static void compute(const shape_of_rank<3>& keys, const shape_of_rank<3>& values, const lengths& real, const T* q,
                        const T* k, const T* V, const T* h, T* weights, T* context)
    {
        const auto step = kernel<T>(keys, values, real.data(), q, k, V, h);
        scratch memory;
        T* normalizer = memory.take<T>(2 * step.batch * step.width);
        T* workspace = memory.take<T>(kernels::per_dimension_scratch(step));
        kernels::per_dimension_forward(step, weights, context, normalizer, workspace);
    }
};

template <bool temporal>
inline constexpr additive_step_op<temporal> additive_step{};
inline constexpr per_dimension_step_op per_dimension_step{};

}  // namespace heed::ops
