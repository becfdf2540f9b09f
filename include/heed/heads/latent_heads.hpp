// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/combine/weighted_sum.hpp>
#include <heed/core/cache_tensor.hpp>
#include <heed/core/errors.hpp>
#include <heed/core/shared_tensor.hpp>
#include <heed/heads/mechanism.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/rms_norm.hpp>
#include <heed/ops/rotate.hpp>
#include <heed/ops/shape.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/state.hpp>
#include <heed/score/scaled_dot.hpp>

namespace heed::inline HEED_TARGET {

/// The memory of latent heads for a batch.
template <class Latent, class Mask = no_mask>
struct latent_memory {
    Latent latent;  // [B,T,C+R]: c_j, and the rotated part of the key
    lengths real;
    HEED_NO_UNIQUE_ADDRESS Mask mask{};
    std::size_t dropped = 0;  // the number of older positions that were dropped

    std::size_t batch() const { return shape_of(latent)[0]; }
    std::size_t positions() const { return shape_of(latent)[1]; }  // T

    /// The number of the next position: see heed::memory.
    std::size_t next_position() const { return dropped + positions(); }

    /// The memory of these rows, in this order; rows may repeat. Copies the latent vectors, except in a KV cache.
    latent_memory rows(std::span<const std::size_t> which) const
    {
        static_assert(std::is_same_v<Mask, no_mask>, "heed: latent_memory::rows: not for a memory with a mask");
        return {ops::rows_of(latent, which), real.rows({which.begin(), which.end()}), mask, dropped};
    }

    /// The KV cache without the n oldest positions: see heed::memory. Throws shape_error if it has fewer.
    latent_memory without_oldest(std::size_t n) const
    {
        static_assert(is_cache<Latent>, "heed: latent_memory::without_oldest: only a KV cache drops positions: "
                                        "with_cache(memory), of plain tensors");
        if constexpr (is_cache<Latent>) {
            auto left = latent.without_oldest(lengths::full(batch(), n));
            const std::size_t T = left.shape()[1];
            return {std::move(left), lengths::full(batch(), T), mask, dropped + n};
        } else {
            return *this;
        }
    }
};

/// The memory as a KV cache, with room for more positions: see attention/memory.hpp. Its rows have equal lengths.
template <plain_tensor Latent>
    requires(!is_cache<Latent>)
auto with_cache(const latent_memory<Latent>& from)
{
    using kept = cache_tensor<element_of<Latent>>;
    return latent_memory<kept>{kept(view_of(from.latent), from.real), from.real, no_mask{}, from.dropped};
}

/// A copy of a KV cache that no longer grows.
template <class T>
auto gathered(const latent_memory<cache_tensor<T>>& from)
{
    return latent_memory<array<T, 3>>{gathered(from.latent), from.real, no_mask{}, from.dropped};
}

/// How latent heads compute many queries: with keys and values of each head, or with W_UK absorbed into the queries.
/// The result is the same, except for rounding.
enum class latent_form { cheaper, expanded, absorbed };

/// Leaves c_j [...,C] unchanged.
struct no_latent_norm {
    auto operator()(tensor auto latent) const { return latent; }

    static auto parameters(auto&, auto&&) { return no_latent_norm{}; }
};

/// c_j divided by its root mean square, times a gain for each dimension.
///
///     y = gain ⊙ c / √(mean(c²) + ε)         Zhang and Sennrich 2019
template <class Vector>
struct latent_norm {
    Vector gain;  // [C]
    double epsilon = 1e-6;

    auto operator()(const tensor auto& latent) const { return ops::rms_norm(latent, gain, epsilon); }

    static auto parameters(auto& self, auto&& visit)
    {
        return heed::latent_norm{visit("gain", self.gain), self.epsilon};
    }
};
template <class Vector>
latent_norm(Vector, double = 1e-6) -> latent_norm<Vector>;

/// Heads with keys and values projected from one small latent vector per position; the memory stores only that vector
/// (multi-head latent attention, MLA).
///
///     c_j = x_j W_DKV,  k_j^R = R_j(x_j W_KR)                         stored: C + R numbers, shared by all heads
///     k_{j,h} = [W_UK^h c_j; k_j^R],  v_{j,h} = W_UV^h c_j
///     q_{i,h} = [x_i W_Q^h; R_i(x_i W_QR^h)]
///     o_{i,h} = Σ_j softmax_j(q_{i,h} · k_{j,h} / √(K + R)) v_{j,h},  u_i = [o_{i,1}; …; o_{i,n}] W_O
///                                             DeepSeek-AI 2024 ("DeepSeek-V2"), eq. 9-19
///
/// A single query expands no keys or values: q · (W_UK c_j) = (W_UKᵀ q) · c_j, and Σ_j α_j W_UV c_j = W_UV Σ_j α_j c_j.
/// So a step costs 2·T·(C + R) for each head, and all heads read each position once. Many queries use the cheaper form
/// (`form`), one head at a time, in tiles where these are faster.
///
///     latent_heads attend{8, W_Q, W_QR, W_DKV, W_KR, W_UK, W_UV, W_O};
///
/// R_p rotates by position (score::rotary); `extend` continues with the next position. The normalizer must be
/// `rowwise`: it reads a single row of scores. Deviation: queries are not compressed; if yours are, pass the compressed
/// and normalized queries, and the paper's W_UQ as W_Q. The equations have no norm of c_j; the models, and the authors'
/// program, do (§3.1.2): give `latent_norm{gain}` as the last member. A model with a context extended after training
/// (YaRN) also has a larger scale than 1/√(K + R): multiply W_Q and W_QR by its factor.
///
/// The calls are those of `attention`. They throw shape_error unless the matrices and the memory fit, and an extended
/// memory must have no padding.
template <class Matrix, class Normalize = normalize::softmax, class Norm = no_latent_norm>
struct latent_heads : mechanism<latent_heads<Matrix, Normalize, Norm>> {
    std::size_t heads = 1;  // n
    Matrix W_Q;             // [Q,n·K]
    Matrix W_QR;            // [Q,n·R]
    Matrix W_DKV;           // [D,C]
    Matrix W_KR;            // [D,R]
    Matrix W_UK;            // [n·K,C]: the W_UK^h of all heads, stacked, as in the paper
    Matrix W_UV;            // [n·C,V]: the transposed W_UV^h of all heads, stacked
    Matrix W_O;             // [n·V,O]
    Normalize normalize{};
    ops::rotation how{};
    latent_form form = latent_form::cheaper;
    HEED_NO_UNIQUE_ADDRESS Norm norm{};  // of c_j, without the rotated part

    latent_heads() = default;
    latent_heads(std::size_t n, Matrix q, Matrix q_turned, Matrix down, Matrix k_turned, Matrix up_k, Matrix up_v,
                 Matrix o, Normalize by = {}, ops::rotation turns = {}, latent_form takes = latent_form::cheaper,
                 Norm of_latent = {})
        : heads(n),
          W_Q(std::move(q)),
          W_QR(std::move(q_turned)),
          W_DKV(std::move(down)),
          W_KR(std::move(k_turned)),
          W_UK(std::move(up_k)),
          W_UV(std::move(up_v)),
          W_O(std::move(o)),
          normalize(std::move(by)),
          how(turns),
          form(takes),
          norm(std::move(of_latent))
    {}

    /// The latent vectors of annotations [B,T,D], with lengths or a mask as for attention::on.
    auto memory_of(const tensor auto& annotations, const detail::source_limit auto&... limit) const
    {
        return memory_from(0, annotations, limit...);
    }

    /// The memory with more annotations [B,t,D] appended: see attention::extend.
    template <class Latent>
    auto extend(const latent_memory<Latent>& memory, const tensor auto& annotations) const
    {
        detail::require_no_padding("latent_heads::extend", memory.real, memory.positions());
        const auto more = memory_from(memory.next_position(), annotations);
        auto all = appended(memory.latent, more);
        const auto shape = shape_of(all);
        return latent_memory<decltype(all)>{std::move(all), lengths::full(shape[0], shape[1]), no_mask{},
                                            memory.dropped};
    }

    /// The state before the first step: the number of the next query.
    auto start(const auto&) const { return attention_state<no_state>{}; }

    /// One query [B,Q]: its context [B,O], the weights of each head [B,n,T], and the next state.
    template <class Mask = no_mask>
    auto step(const auto& memory, const auto& given, const auto& given_state, const Mask& mask = {}) const
    {
        const auto& state = checked(memory, given_state);
        // The heads are rows of queries that share their keys.
        const auto asked =
            detail::side_by_side(queries_of_heads(detail::query_beside<2>(W_Q, given), state.step, true));  // [B,n,C+R]
        static_assert(std::is_same_v<Mask, no_mask> || std::is_same_v<Mask, lengths> ||
                          std::is_convertible_v<const Mask&, boolean_mask_view<2>>,
                      "heed: latent_heads::step takes lengths or a boolean_mask [B,T]; causal{} and predicate masks "
                      "are for many queries");
        auto [weights, sums] =
            summed(memory, asked, state,
                   detail::mask_for(mask, {state.step, 1, memory.batch(), 1, memory.positions(), true}, memory.real));
        const auto contexts = each([&, &of = sums](std::size_t h) { return value(ops::step_of(of, h), h); });
        return step_result{ops::linear(ops::concat_heads(contexts), W_O), std::move(weights),
                           state_of_head(state, 0, 1)};
    }

    /// The specification: separate keys and values for each head, as in a multi_head.
    template <class Mask = no_mask>
    auto compose(const auto& given_memory, const auto& given, const auto& given_state, const Mask& mask = {}) const
    {
        const auto& memory = in_one_piece(given_memory);
        const auto& state = checked(memory, given_state);
        const auto asked = queries_of_heads(detail::query_beside<2>(W_Q, given), state.step, false);
        const auto answers = each([&](std::size_t h) {
            return asking().compose(expanded(memory, h), asked[h], state_of_head(state, h), mask);
        });
        return step_result{ops::linear(ops::concat_heads(detail::collect(answers, detail::context_of)), W_O),
                           detail::side_by_side(detail::collect(answers, detail::weights_of)),
                           state_of_head(state, 0, 1)};
    }

    /// Many queries: queries [B,S,Q] -> contexts [B,S,O], and the state after the last one. `mask`: as for attention.
    template <class Mask = no_mask>
    auto read_all(const auto& given_memory, const auto& given, const auto& given_state, const Mask& mask = {}) const
    {
        const auto& memory = in_one_piece(given_memory);
        const auto& queries = detail::query_beside<3>(W_Q, given);
        const auto& state = checked(memory, given_state);
        const std::size_t S = shape_of(queries)[1];
        const bool absorb = absorbs(S, memory.positions());
        const auto asked = queries_of_heads(queries, state.step, absorb);
        const auto context = [&](const auto& known, std::size_t h) {
            return asking().read_all(known, asked[h], state_of_head(state, h), mask).contexts;
        };
        const auto contexts =
            absorb ? each([&, known = shown(memory)](std::size_t h) { return value(context(known, h), h); })
                   : each([&](std::size_t h) { return context(expanded(memory, h), h); });
        return sequence_result{ops::linear(ops::concat_heads(contexts), W_O), state_of_head(state, 0, S)};
    }

    /// The weights of many queries, for each head: [B,n,S,T].
    template <class Mask>
    auto all_weights(const auto& given_memory, const auto& given, const auto& given_state, const Mask& mask) const
    {
        const auto& memory = in_one_piece(given_memory);
        const auto& state = checked(memory, given_state);
        const auto asked = queries_of_heads(detail::query_beside<3>(W_Q, given), state.step, true);
        const auto known = shown(memory);
        return detail::side_by_side(
            each([&](std::size_t h) { return asking().weights_of(known, asked[h], state_of_head(state, h), mask); }));
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return heed::latent_heads{self.heads,
                                  visit("W_Q", self.W_Q),
                                  visit("W_QR", self.W_QR),
                                  visit("W_DKV", self.W_DKV),
                                  visit("W_KR", self.W_KR),
                                  visit("W_UK", self.W_UK),
                                  visit("W_UV", self.W_UV),
                                  visit("W_O", self.W_O),
                                  visit("normalize", self.normalize),
                                  self.how,
                                  self.form,
                                  visit("norm", self.norm)};
    }

private:
    static auto appended(const tensor auto& latent, const auto& more) { return ops::append(latent, more.latent); }
    template <class T>
    static auto appended(cache_tensor<T> latent, const auto& more)
    {
        latent.append(view_of(more.latent), more.real);
        return latent;
    }

    /// f(h) of each head.
    auto each(const auto& f) const
    {
        std::vector<decltype(f(std::size_t{0}))> all;
        for (std::size_t h = 0; h < heads; ++h) all.push_back(f(h));
        return all;
    }

    /// The state of head h, `more` queries later.
    static attention_state<no_state> state_of_head(const attention_state<no_state>& state, std::size_t h,
                                                   std::size_t more = 0)
    {
        return {{}, state.step + more, {}, h};
    }

    /// The state, if its type is that of latent heads, which only count queries. Throws shape_error unless the memory
    /// fits.
    template <class State>
    decltype(auto) checked(const auto& memory, const State& state) const
    {
        constexpr bool counts = std::is_same_v<State, attention_state<no_state>>;
        static_assert(counts, HEED_SAYS_ANOTHER_STATE);
        static_assert(plain_tensor<Matrix> || !plain_tensor<decltype(memory.latent)>, HEED_SAYS_KEYS_DO_NOT_TRAIN);
        check_matrices();
        const std::size_t must = shape_of(W_DKV)[1] + shape_of(W_KR)[1];
        if (const std::size_t is = shape_of(memory.latent)[2]; is != must) {
            throw shape_error("latent_heads: the memory has " + counted(is, "number") + " for each position " +
                              "but must have C + R = " + std::to_string(must) +
                              "; use the memory that this mechanism made");
        }
        return detail::meant_unless<counts, attention_state<no_state>>(state);
    }

    /// The attention of one head, over the keys of either form.
    auto asking() const
    {
        static_assert(rowwise<Normalize>,
                      "heed: latent_heads: the normalizer must be rowwise: it must read one row of scores only");
        const std::size_t width = (shape_of(W_Q)[1] + shape_of(W_QR)[1]) / heads;
        return attention{score::scaled_dot{1 / std::sqrt(static_cast<double>(width))}, normalize,
                         combine::weighted_sum{}};
    }

    /// The weights of each row's queries `asked` [B,n,C+R], and the weighted sums of the latent vectors: [B,n,T],
    /// [B,n,C+R].
    template <class Memory, class Mask>
    auto summed(const Memory& memory, const auto& asked, const attention_state<no_state>& state, const Mask& mask) const
    {
        const auto [B, T, L] = shape_of(memory.latent);
        auto weights = asking().weights_of(shown(memory), asked, state, mask);
        auto sums = ops::bmm(ops::reshaped(weights, shape_of_rank<2>{B * heads, T}), memory.latent);
        return std::pair{std::move(weights), std::move(sums)};
    }
    /// Rows of a KV cache have separate storage and are computed one after the other.
    template <class T, class Mask>
    auto summed(const latent_memory<cache_tensor<T>>& memory, const auto& asked, const attention_state<no_state>& state,
                const Mask& mask) const
    {
        static_assert(std::is_same_v<Mask, no_mask>,
                      "heed: latent_heads::step of a KV cache takes no mask; give gathered(memory), a copy");
        const auto [B, P, L] = memory.latent.shape();
        array<T, 3> weights(shape_of_rank<3>{B, heads, P}), sums(shape_of_rank<3>{B, heads, L});
        for (std::size_t b = 0; b < B; ++b) {
            const tensor_view<const T, 3> kept{memory.latent.row(b), {1, P, L}},
                query{asked.data() + b * heads * L, {1, heads, L}};
            const latent_memory<tensor_view<const T, 3>> row{kept, lengths{P}};
            const auto [w, sum] = summed(row, query, state, mask);
            std::copy_n(w.data(), heads * P, weights.data() + b * heads * P);
            std::copy_n(sum.data(), heads * L, sums.data() + b * heads * L);
        }
        return std::pair{std::move(weights), std::move(sums)};
    }

    /// The memory in contiguous storage: the rows of a KV cache are copied.
    static const auto& in_one_piece(const auto& memory) { return memory; }
    template <class T>
    static auto in_one_piece(const latent_memory<cache_tensor<T>>& memory)
    {
        return latent_memory<shared_tensor<T, 3>>{detail::in_one_piece(memory.latent), memory.real, no_mask{},
                                                  memory.dropped};
    }

    /// Is absorbing W_UK into S queries cheaper than expanding the keys and values of T positions?
    bool absorbs(std::size_t S, std::size_t T) const
    {
        if (form != latent_form::cheaper) return form == latent_form::absorbed;
        const std::size_t C = shape_of(W_UK)[1], K = shape_of(W_UK)[0] / heads, R = shape_of(W_KR)[1],
                          V = shape_of(W_UV)[1];
        return S * T * 2 * (C + R) + S * C * (K + V) <= S * T * (K + R + V) + T * C * (K + V);
    }

    /// Throws shape_error unless all matrices fit.
    void check_matrices() const
    {
        const std::size_t C = shape_of(W_DKV)[1], R = shape_of(W_KR)[1], D = shape_of(W_DKV)[0], n = heads;
        if (n == 0 || shape_of(W_Q)[1] % n != 0) {
            throw shape_error("latent_heads: W_Q " + shape_text(shape_of(W_Q)) + " for " + counted(n, "head") +
                              "; the number of heads must divide its columns");
        }
        const char* const name = "latent_heads";
        require_shape(name, "W_QR", shape_of(W_QR), {shape_of(W_Q)[0], n * R}, "W_KR's columns for each head");
        require_shape(name, "W_KR", shape_of(W_KR), {D, R}, "the rows of W_DKV");
        require_shape(name, "W_UK", shape_of(W_UK), {shape_of(W_Q)[1], C},
                      "one row for each column of W_Q, one column for each column of W_DKV");
        require_shape(name, "W_UV", shape_of(W_UV), {n * C, shape_of(W_UV)[1]}, "C rows for each head");
        require_shape(name, "W_O", shape_of(W_O), {n * shape_of(W_UV)[1], shape_of(W_O)[1]}, "V rows for each head");
    }

    auto memory_from(std::size_t first, const auto& annotations, const auto&... limit) const
    {
        check_matrices();
        const auto make = [&](const auto& x, const auto&, const lengths& real, const auto& mask, bool) {
            auto latent = ops::concat(norm(detail::projection(*this, "the annotations", x, W_DKV)),
                                      ops::rotate(ops::linear(x, W_KR), first, how));
            return latent_memory<decltype(latent), std::remove_cvref_t<decltype(mask)>>{std::move(latent), real, mask};
        };
        return detail::from_source("latent_heads::on", make, detail::read_in_place(annotations), limit...);
    }

    static lengths dropped_of(const auto& memory)
    {
        return memory.dropped == 0 ? lengths() : lengths::full(memory.batch(), memory.dropped);
    }

    /// The memory with the latent vectors as keys and values; nothing is copied.
    template <class Latent, class Mask>
    static auto shown(const latent_memory<Latent, Mask>& memory)
    {
        const auto& kept = detail::read_in_place(memory.latent);
        using latent = std::remove_cvref_t<decltype(kept)>;
        return heed::memory<latent, latent, Mask>{kept, kept, memory.real, memory.mask, false, dropped_of(memory)};
    }

    /// The memory of head h with expanded keys and values.
    template <class Latent, class Mask>
    auto expanded(const latent_memory<Latent, Mask>& memory, std::size_t h) const
    {
        const std::size_t C = shape_of(W_DKV)[1], R = shape_of(W_KR)[1];
        const auto c = ops::slice_columns(memory.latent, 0, C);
        auto keys = ops::concat(ops::linear(c, ops::transpose(part_of_head(W_UK, h))),
                                ops::slice_columns(memory.latent, C, C + R));
        auto values = ops::linear(c, part_of_head(W_UV, h));
        return heed::memory<decltype(values), decltype(keys), Mask>{
            std::move(values), std::move(keys), memory.real, memory.mask, false, dropped_of(memory)};
    }

    /// The rows of head h: W_UK^h [K,C], or W_UV^h [C,V].
    auto part_of_head(const Matrix& W, std::size_t h) const
    {
        const std::size_t rows = shape_of(W)[0] / heads;
        return ops::slice_rows(W, h * rows, (h + 1) * rows);
    }

    /// The value of head h, from a weighted sum of latent vectors: [...,C+R] -> [...,V].
    auto value(const tensor auto& sum, std::size_t h) const
    {
        return ops::linear(ops::slice_columns(sum, 0, shape_of(W_DKV)[1]), part_of_head(W_UV, h));
    }

    /// Each head's query, [...,K+R], or with W_UK absorbed, [...,C+R].
    auto queries_of_heads(const tensor auto& queries, std::size_t first, bool absorb) const
    {
        auto asked = ops::split_heads(detail::projection(*this, "the query", queries, W_Q), heads);
        const auto turned = ops::split_heads(ops::linear(queries, W_QR), heads);
        for (std::size_t h = 0; h < heads; ++h) {
            if (absorb) asked[h] = ops::linear(asked[h], part_of_head(W_UK, h));
            asked[h] = ops::concat(asked[h], ops::rotate(turned[h], first, how));
        }
        return asked;
    }
};

template <class Matrix, class Matrix2, class Matrix3, class Matrix4, class Matrix5, class Matrix6, class Matrix7,
          class Normalize = normalize::softmax, class Norm = no_latent_norm>
latent_heads(std::size_t, Matrix, Matrix2, Matrix3, Matrix4, Matrix5, Matrix6, Matrix7, Normalize = {},
             ops::rotation = {}, latent_form = latent_form::cheaper, Norm = {})
    -> latent_heads<joint_tensor<Matrix, Matrix2, Matrix3, Matrix4, Matrix5, Matrix6, Matrix7>, Normalize, Norm>;

}  // namespace heed::inline HEED_TARGET
