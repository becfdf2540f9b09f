// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include <heed/core/workspace_tensor.hpp>
#include <heed/ops/all_pairs.hpp>
#include <heed/ops/by_rows.hpp>
#include <heed/ops/carried_sums.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/shape.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/query_numbers.hpp>
#include <heed/policy/score_hooks.hpp>
#include <heed/policy/step_kernel.hpp>
#include <heed/score/over.hpp>

namespace heed::inline HEED_TARGET::score {

/// Base class of a score that changes its `base`'s scores by the gates f_l = σ(w · x_l + b) between key and query:
///
///     changed(scores, sums)      scores [B·S,T], sums Σ_{l=j+1..i} log f_l [B·S,T]
///
/// Two columns (1, −F_j), F_j = Σ_{l≤j} log f_l, are put before the base's keys: their inner product with (F_i, 1) is
/// that sum. Throws shape_error for a KV cache in which a query would come before the first key of its sentence.
template <class Self, class Base, class Matrix, class Vector>
struct over_gates : over::around<Self, Base> {
    Matrix w;  // [D,1]
    Vector b;  // [1]

    using over::around<Self, Base>::base;
    static constexpr score_traits traits = traits_around_score<Base>([](score_traits& own) {
        own.reads_length = own.reads_query_position = true;  // a query after the last position is placed there
        own.extends_keys = own.needs_all_positions = true;
    });

    auto prepare(const tensor auto& annotations, std::size_t first = 0) const  // -> [B,T,2+A]
    {
        static_assert(
            score_traits_of<Base>().weights == weight_kind::per_position,
            "heed: score::forgetting and score::gated_decay change one score for each position: their base must have "
            "weights per position");
        static_assert(!score_traits_of<Base>().extends_keys,
                      "heed: score::forgetting and score::gated_decay do not wrap each other: use one");
        return ops::concat(ops::carried_sums(ops::log_sigmoid(ops::linear(annotations, w, b))),
                           over::prepare(base, annotations, first));
    }
    auto continue_keys(const tensor auto& keys, const tensor auto& before) const
    {
        return ops::carry_sums(keys, before);
    }

    auto init_state(const auto& memory) const
    {
        return score::row_state{constant_like(memory.keys, shape_of_rank<2>{memory.batch(), 2}, 0.0)};
    }
    auto observe_query(const auto&, const auto& at, const auto& memory) const  // the sums (F_i, 1), [B,2]
    {
        if constexpr (detail::keys_grow<std::remove_cvref_t<decltype(memory.keys)>>) {
            return score::row_state{sums_in_rows(memory, at.step)};
        } else {
            return score::row_state{ops::step_of(sums_at_queries(memory.keys, memory.real, at.step, 1), 0)};
        }
    }
    auto update_state(const auto& state, const tensor auto&, const tensor auto&, const auto&) const
    {
        return state.own();
    }

    auto match(const tensor auto& projected, const tensor auto& keys, const auto& now) const  // [B,T]
    {
        const std::size_t N = shape_of(keys)[2];
        return this->self().changed(over::match(base, projected, ops::slice_columns(keys, 2, N), now.base),
                                    ops::dot_per_position(now.state, ops::slice_columns(keys, 0, 2)));
    }

    template <tensor Queries, tensor Keys>
        requires(over::scores_a_matrix<Base, Queries, Keys>)
    auto score_matrix(const Queries& queries, const Keys& keys, const over::queries_from& from) const  // [B·S,T]
    {
        const std::size_t N = shape_of(keys)[2];
        const auto sums = sums_at_queries(keys, from.real, from.first, shape_of(queries)[1]);
        return this->self().changed(over::score_matrix(base, queries, ops::slice_columns(keys, 2, N), from),
                                    ops::bmm_nt(sums, ops::slice_columns(keys, 0, 2)));
    }

protected:
    over_gates(Base one, Matrix matrix, Vector vector)
        : over::around<Self, Base>(std::move(one)), w(std::move(matrix)), b(std::move(vector))
    {}

    /// The sums (F_i, 1), [B,S,2], at `queries` queries from number `first` on.
    template <class Keys>
    static auto sums_at_queries(const Keys& keys, const lengths_view& real, std::size_t first, std::size_t queries)
    {
        if constexpr (detail::shares_rows<Keys>) {
            return ops::carried_to(detail::as_workspace_tensor{}(keys.of),
                                   std::span<const std::size_t>(keys.sentence, real.batch()), real, first, queries);
        } else {
            return ops::carried_to(keys, std::span<const std::size_t>{}, real, first, queries);
        }
    }

private:
    /// The sums [B,2] at one query of a KV cache (noncontiguous rows).
    static auto sums_in_rows(const auto& memory, std::size_t step)
    {
        using keys = std::remove_cvref_t<decltype(memory.keys)>;
        using T = detail::element_of_rows<keys>;
        const std::size_t B = memory.batch, N = shape_of(memory.keys.of)[2];
        ops::carry_sums_op::require_columns(shape_of(memory.keys.of));
        T* const sums = workspace_family::take<T>(2 * B);
        for (std::size_t b = 0; b < B; ++b) {
            const std::size_t n = memory.real[b], at = detail::number_in_sentence(step, n, memory.positions);
            const T* const row = memory.keys.of.row(detail::row_asked(memory.keys, b));
            sums[2 * b] = n == 0 ? T(0) : -row[std::min(at, n - 1) * N + 1];
            sums[2 * b + 1] = 1;
        }
        return workspace_tensor<T, 2>(sums, {B, 2});
    }
};

/// A score with forgetting: each position has a gate, and the score of a key falls by the gates of all later positions
/// up to the query's own (forgetting attention, FoX).
///
///     e'_{i,j} = e_{i,j} + D_{i,j},  D_{i,j} = Σ_{l=j+1..i} log f_l,  f_l = σ(w · x_l + b)
///                                             Lin, Nikishin, He and Courville 2025, section 3
///
///     attention attend{score::forgetting{score::scaled_dot{}, w, b}, normalize::softmax{}, combine::weighted_sum{}};
///
/// D_{i,j} = F_i − F_j with F_j = Σ_{l≤j} log f_l. Over an inner product, queries (F_i, 1, q) and keys (1, −F_j, k)
/// give e + D, also within tiles; for other bases D is added to the scores. `attention::extend` continues the sum. x_l
/// are the annotations.
///
/// Deviation: in a multi_head the annotations are those of the head, x W_K; in the paper and the authors' program each
/// head's gate reads all of x. They initialize w like other matrices, and b to 0. The rest of their "Pro" block (norms,
/// an output gate, shifted keys) is not included.
///
/// For self-attention: the i-th query is at the i-th position of the memory, or at the last one if there are fewer. F_i
/// shifts all scores of a query by the same amount: softmax is unaffected; sigmoid, sinks and temporal normalizers are
/// affected. Intended for causal{}: without it, the scores of later keys would rise. Neither words nor scores need
/// position encodings. Wraps any score except `modified`, with weights per position. F is rounded to the tensors' type,
/// an error of 1e-4 at F = −1000 in float.
template <class Base, class Matrix, class Vector>
struct forgetting : over_gates<forgetting<Base, Matrix, Vector>, Base, Matrix, Vector> {
    using gates = over_gates<forgetting, Base, Matrix, Vector>;
    using gates::base;

    forgetting(Base one, Matrix matrix, Vector vector) : gates(std::move(one), std::move(matrix), std::move(vector)) {}

    auto match(const tensor auto& projected, const tensor auto& keys, const auto& now) const  // [B,T]
    {
        using state = std::remove_cvref_t<decltype(now.base)>;
        using comparing = std::remove_cvref_t<decltype(over::innermost(base))>;
        if constexpr (known_to_kernels_as<comparing, kernels::inner_product_score> &&
                      !over::changes_keys<Base, std::remove_cvref_t<decltype(keys)>, state>()) {
            const auto asked = over::innermost(base).asking(over::query(base, projected, now.base));
            return ops::dot_per_position(ops::concat(now.state, asked), keys);
        } else {
            return gates::match(projected, keys, now);
        }
    }

    /// Scores [B·S,T] plus the sums of their gates.
    auto changed(const tensor auto& scores, const tensor auto& sums) const { return ops::add_same_shape(scores, sums); }

    /// Queries [B,S,A] extended to match the keys: (F_i, 1, q).
    auto asked_all(const tensor auto& asked, const auto& memory, std::size_t first) const
    {
        std::span<const std::size_t> sentence;  // sentence of each row, where rows share keys
        if constexpr (shared_by_rows<std::remove_cvref_t<decltype(memory)>>) sentence = memory.sentence;
        return ops::concat(ops::carried_to(memory.keys, sentence, memory.real, first, shape_of(asked)[1]), asked);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::forgetting{visit("base", self.base), visit("w", self.w), visit("b", self.b)};
    }
};

}  // namespace heed::inline HEED_TARGET::score
