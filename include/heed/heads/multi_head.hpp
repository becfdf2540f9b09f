// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/errors.hpp>
#include <heed/core/tensor.hpp>
#include <heed/heads/mechanism.hpp>
#include <heed/masks/given.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/shape.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/hooks.hpp>
#include <heed/policy/query.hpp>
#include <heed/score/over.hpp>

namespace heed::inline HEED_TARGET {

namespace detail {

/// Does this score, or one that it wraps, prepare its own keys from the annotations? Not if all heads of its type
/// prepare the same keys.
template <class Score>
consteval bool prepares_keys()
{
    constexpr score_traits traits = score_traits_of<Score>();
    if constexpr (wraps_another<Score> && !traits.extends_keys) {
        return prepares_keys<typename Score::wraps>();
    } else {
        return wraps_another<Score> || (!traits.prepares_alike && (traits.extends_keys || has_prepare<Score>));
    }
}

/// May heads share keys? Not if each prepares its own, nor if they have different types.
constexpr bool may_share_keys(const auto&) { return false; }
template <class Head>
constexpr bool may_share_keys(const std::vector<Head>&)
{
    return !prepares_keys<decltype(Head::score)>();
}

}  // namespace detail

namespace per_head {

/// The default of multi_head: the contexts of its heads are concatenated, and multiplied by W_O unchanged.
///
///     Concat(head_1, …, head_n)               Vaswani et al. 2017, section 3.2.2
///
/// Such a policy gets the contexts, [B,n·V] of one query or [B,S,n·V] of many, and the input query of the multi_head;
/// W_O multiplies its result. `heads_per_value` consecutive heads read the same values, so that W_V has columns for n /
/// heads_per_value heads.
struct identity {
    static constexpr std::size_t heads_per_value = 1;

    auto operator()(tensor auto contexts, const auto&) const { return contexts; }

    static auto parameters(auto&, auto&&) { return per_head::identity{}; }
};

}  // namespace per_head

/// The projections of multi_head without biases, as in the paper: query, key, value and output are x W.
struct no_biases {
    static std::tuple<> query() { return {}; }
    static std::tuple<> key() { return {}; }
    static std::tuple<> value() { return {}; }
    static std::tuple<> output() { return {}; }

    static auto parameters(auto&, auto&&) { return no_biases{}; }
};

/// The projections of multi_head (query, key, value, output) with a bias each, as in many Transformers:
///
///     x W_Q + b_Q,  x W_K + b_K,  x W_V + b_V,  Concat(…) W_O + b_O        PyTorch, nn.MultiheadAttention
template <class Vector>
struct biases {
    Vector b_Q;  // [n·K]
    Vector b_K;  // [n·K], or [G·K] for shared keys
    Vector b_V;  // [n·V], or [G·V]
    Vector b_O;  // [O]

    auto query() const { return std::tie(b_Q); }
    auto key() const { return std::tie(b_K); }
    auto value() const { return std::tie(b_V); }
    auto output() const { return std::tie(b_O); }

    static auto parameters(auto& self, auto&& visit)
    {
        return heed::biases{visit("b_Q", self.b_Q), visit("b_K", self.b_K), visit("b_V", self.b_V),
                            visit("b_O", self.b_O)};
    }
};
template <class Vector, class Vector2, class Vector3, class Vector4>
biases(Vector, Vector2, Vector3, Vector4) -> biases<joint_tensor<Vector, Vector2, Vector3, Vector4>>;

/// Several attentions in parallel, each in its own subspace, over any score and any normalizer.
///
///     head_i = Attention(Q W_Q^i, K W_K^i, V W_V^i)
///     MultiHead(Q, K, V) = Concat(head_1, …, head_n) W_O       Vaswani et al. 2017, section 3.2.2
///
///     multi_head attend{std::vector(8, attention{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}}),
///                       W_Q, W_K, W_V, W_O};
///
/// The heads' matrices are concatenated, W_Q = [W_Q^1, W_Q^2, …]: one product for all heads. Heads may share keys and
/// values (grouped-query attention, Ainslie et al. 2023; one for all: Shazeer 2019): if W_K and W_V have columns for
/// only G heads, where G divides n, n / G consecutive heads share each. The heads are a std::vector of one type (each
/// with its own parameters, for example those of an additive score), or a std::tuple of different types: for example
/// one local, one temporal. Their queries and annotations are the projected ones.
///
/// The calls are those of `attention`. `step` returns the weights of every head, [B,n,T], not their mean;
/// `ops::step_of(weights, i)` are head i's [B,T]. In a state_and_word the state is projected, and every head gets the
/// word. Masks and functions of scores read the number of their head, `score_index::head`.
///
/// A sixth argument may transform the concatenated contexts before W_O: per_head::gated, per_head::differential. A
/// seventh, `biases`, adds biases to the four projections.
///
/// Throws shape_error unless the matrices, the memory and the state fit the heads; heed::error if there is no head.
template <class Heads, class Matrix, class HeadTransform = per_head::identity, class Biases = no_biases>
struct multi_head : mechanism<multi_head<Heads, Matrix, HeadTransform, Biases>> {
    Heads heads;
    Matrix W_Q;  // [Q,n·K]
    Matrix W_K;  // [D,n·K], or [D,G·K] for shared keys
    Matrix W_V;  // [D,n·V], or [D,G·V]
    Matrix W_O;  // [n·V,O]
    HEED_NO_UNIQUE_ADDRESS HeadTransform head_transform{};
    HEED_NO_UNIQUE_ADDRESS Biases bias{};

    multi_head() = default;
    multi_head(Heads all, Matrix q, Matrix k, Matrix v, Matrix o, HeadTransform joins = {}, Biases b = {})
        : heads(std::move(all)),
          W_Q(std::move(q)),
          W_K(std::move(k)),
          W_V(std::move(v)),
          W_O(std::move(o)),
          head_transform(std::move(joins)),
          bias(std::move(b))
    {}

    /// Keys and values of all heads.
    auto memory_of(const auto&... source) const { return memory_from({}, source...); }

    /// The memory of `extend`.
    template <class Memories>
    auto extended(const memory_list<Memories>& memory, const auto&... source) const
    {
        check(memory);
        detail::require_rows_of("multi_head::extend", memory, source...);
        const lengths first = detail::next_positions(detail::first_of(memory.of));
        const auto more = memory_from(first, source...);
        return memory_list{detail::each_of(more.of, [&](auto i) {
            return detail::appended("multi_head::extend", detail::nth(heads, i).score, detail::nth(memory.of, i),
                                    detail::nth(more.of, i));
        })};
    }

    /// The state before the first step of a batch: one per head.
    auto start(const auto& given) const
    {
        const auto& memory = detail::memory_of_several(given);
        check(memory);
        auto states = detail::each_with_index(heads, [&](const auto& head, auto i) {
            auto state = head.start(memory_of_head(memory, i));
            state.head = i;
            return state;
        });
        return several_states{std::move(states), 0};
    }

    /// One query: its context [B,O], the weights of each head [B,n,T], and the next state.
    template <class Mask = no_mask>
    auto step(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        return answer_with_weights(detail::call_step, memory, query, state, mask);
    }

    /// `step` without fused kernels: its specification.
    template <class Mask = no_mask>
    auto compose(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        return answer_with_weights(detail::call_compose, memory, query, state, mask);
    }

    /// The context and state that `step` returns; the weights are not stored.
    template <class Mask = no_mask>
    auto read(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        const auto answers = answers_of_heads<2>(detail::call_read, memory, query, state, mask);
        return context_result{from_heads(ops::concat_heads(detail::collect(answers, detail::context_of)), query),
                              detail::states_of(answers, state.step + 1)};
    }

    /// Many queries at once: contexts [B,S,O], where each head's state passes from the first query to the last, and the
    /// state after the last query. One product projects all queries for all heads.
    template <class Mask = no_mask>
    auto read_all(const auto& memory, const auto& queries, const auto& state, const Mask& mask = {}) const
    {
        const auto answers = answers_of_heads<3>(detail::call_read_all, memory, queries, state, mask);
        auto contexts = from_heads(ops::concat_heads(detail::collect(answers, detail::contexts_of)), queries);
        auto next = detail::states_of(answers, state.step + shape_of(contexts)[1]);
        return sequence_result{std::move(contexts), std::move(next)};
    }

    /// The weights of many queries, for each head: [B,n,S,T].
    template <class Mask>
    auto all_weights(const auto& memory, const auto& queries, const auto& state, const Mask& mask) const
    {
        const auto weights = answers_of_heads<3>(detail::call_weights_of, memory, queries, state, mask);
        return detail::side_by_side(detail::collect(
            weights, [](const auto& x) -> const auto& { return x; }));
    }

    /// The code path of the first head, in one sentence: see heed::explain.
    template <class Mask = no_mask>
    std::string explain(const auto& memory, const auto& queries, const Mask& mask = {}) const
    {
        constexpr std::size_t axes = detail::has_axes<2, std::remove_cvref_t<decltype(queries)>>() ? 2 : 3;
        const auto explained = [&](const auto& head, const auto& of, const auto& asked, const auto&,
                                   const auto& known) { return head.explain(of, asked, known); };
        return detail::first_of(answers_of_heads<axes>(explained, memory, queries, start(memory), mask));
    }

    /// The keys and values of a head.
    const auto& memory_of_head(const auto& memory, auto i) const { return detail::nth(memory.of, i); }
    const auto& memory_of_head(const auto& memory, std::size_t i) const
    {
        return memory.of[i * detail::count_of(memory.of) / detail::count_of(heads)];
    }

    /// head_transform(contexts, query) W_O, for the concatenated contexts of the heads, [B,n·V] or [B,S,n·V], and the
    /// input query.
    auto from_heads(auto contexts, const auto& query) const
    {
        return detail::projection(*this, "the contexts of all heads", head_transform(std::move(contexts), query), W_O,
                                  bias.output());
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return heed::multi_head{visit("heads", self.heads), visit("W_Q", self.W_Q),
                                visit("W_K", self.W_K),     visit("W_V", self.W_V),
                                visit("W_O", self.W_O),     visit("joined", self.head_transform),
                                visit("bias", self.bias)};
    }

private:
    void check(const auto& memory, const auto&... state) const
    {
        if (const std::size_t is = detail::count_of(memory.of), must = groups(); is != must) {
            throw shape_error("multi_head: the memory has " + counted(is, "head") + " of keys but there are " +
                              std::to_string(must) + "; use the memory that this mechanism made");
        }
        (detail::require_one_per_mechanism("multi_head", "the state", state, heads), ...);
        using values = std::remove_cvref_t<decltype(detail::first_of(memory.of).values)>;
        static_assert(plain_tensor<Matrix> || !plain_tensor<values>, HEED_SAYS_KEYS_DO_NOT_TRAIN);
    }

    /// The number of heads of keys and values: n, or a divisor of n. Throws shape_error if the matrices do not fit.
    std::size_t groups() const
    {
        const std::size_t n = detail::count_of(heads);
        detail::require_some("multi_head: heads", n);
        if (n % HeadTransform::heads_per_value != 0) {
            throw shape_error("multi_head: " + counted(n, "head") + ", but groups of " +
                              counted(HeadTransform::heads_per_value, "head") +
                              " share values; the number of heads must be a multiple");
        }
        if (!detail::may_share_keys(heads)) return n;
        const std::size_t queries = shape_of(W_Q)[1], keys = shape_of(W_K)[1];
        const std::size_t width = queries / n, G = width == 0 ? 0 : keys / width;
        if (queries % n != 0 || G == 0 || keys % width != 0 || n % G != 0 || G % HeadTransform::heads_per_value != 0 ||
            shape_of(W_V)[1] % (G / HeadTransform::heads_per_value) != 0) {
            throw shape_error(
                "multi_head: " + counted(n, "head") + ", W_Q " + shape_text(shape_of(W_Q)) + ", W_K " +
                shape_text(shape_of(W_K)) + " and W_V " + shape_text(shape_of(W_V)) +
                "; W_Q must have columns for n heads, W_K and W_V for n or for a divisor of n" +
                (HeadTransform::heads_per_value == 1
                     ? std::string()
                     : ", W_V " + std::to_string(HeadTransform::heads_per_value) + " times fewer than W_K"));
        }
        return G;
    }

    /// The query [B,Q] of each head if R is 2, or the queries [B,S,Q] if R is 3.
    template <std::size_t R>
    auto queries_of_heads(const auto& given) const
    {
        const auto& query = detail::query_beside<R>(W_Q, given);
        return with_states(query,
                           projected("the query", detail::state_of(query), W_Q, bias.query(), detail::count_of(heads)));
    }
    static auto with_states(const tensor auto&, auto states) { return states; }
    static auto with_states(const auto& query, auto states)
    {
        std::vector<decltype(detail::with_state(query, states[0]))> queries;
        for (auto& state : states) queries.push_back(detail::with_state(query, std::move(state)));
        return queries;
    }

    /// x W, plus b if the tuple holds a bias, split into one slice for each head.
    auto projected(const char* name, const auto& x, const Matrix& W, const auto& b, std::size_t heads_of_W) const
    {
        return ops::split_heads(detail::projection(*this, name, x, W, b), heads_of_W);
    }

    /// memory_of for annotations that start at position `first` of each row.
    auto memory_from(const lengths_view& first, const auto&... source) const
    {
        const auto project = [this, first](const auto& annotations, const auto& values, const lengths& real,
                                           const auto& mask, bool values_given) {
            const std::size_t n = detail::count_of(heads), G = groups();
            constexpr std::size_t a_value = HeadTransform::heads_per_value;
            const auto K = projected("the annotations", annotations, W_K, bias.key(), G);
            const auto V = projected("the values", values, W_V, bias.value(), G / a_value);
            const auto memory_at = [&](const auto& head, auto i) {
                static_assert(decltype(std::remove_cvref_t<decltype(head)>::score)::traits.weights ==
                                  weight_kind::per_position,
                              "heed: multi_head returns one weight for each head and position, [B,n,T]: its heads need "
                              "a score per position");
                return detail::memory_by{head, first}(K[i], V[i / a_value], real, mask, values_given);
            };
            if constexpr (requires { heads[n]; }) {
                return memory_list{detail::each_of(K, [&](std::size_t g) { return memory_at(heads[g * n / G], g); })};
            } else {
                return memory_list{detail::each_with_index(heads, memory_at)};
            }
        };
        return detail::from_source("multi_head::on", project, detail::read_in_place(source)...);
    }

    /// The result of each head's `call` for its memory, query or queries, and state.
    template <std::size_t R>
    auto answers_of_heads(const auto& call, const auto& given, const auto& query, const auto& given_state,
                          const auto& mask) const
    {
        const auto queries = queries_of_heads<R>(query);
        const auto& memory = detail::memory_of_several(given);
        const auto& state = detail::states_of_several(*this, memory, given_state);
        check(memory, state);
        const std::size_t S = R == 2 ? 1 : shape_of(detail::state_of(queries[0]))[1];
        const auto& valid = detail::mask_given(mask);
        const auto& known =
            detail::mask_of_heads<R>(valid, detail::first_of(memory.of), S, state.step, detail::count_of(heads));
        return detail::each_with_index(heads, [&](const auto& head, auto i) {
            return call(head, memory_of_head(memory, i), queries[i], detail::nth(state.of, i), known);
        });
    }

    auto answer_with_weights(const auto& call, const auto& memory, const auto& query, const auto& state,
                             const auto& mask) const
    {
        const auto answers = answers_of_heads<2>(call, memory, query, state, mask);
        return step_result{from_heads(ops::concat_heads(detail::collect(answers, detail::context_of)), query),
                           detail::side_by_side(detail::collect(answers, detail::weights_of)),
                           detail::states_of(answers, state.step + 1)};
    }
};

template <class Heads, class Matrix, class Matrix2, class Matrix3, class Matrix4,
          class HeadTransform = per_head::identity, class Biases = no_biases>
multi_head(Heads, Matrix, Matrix2, Matrix3, Matrix4, HeadTransform = {}, Biases = {})
    -> multi_head<Heads, joint_tensor<Matrix, Matrix2, Matrix3, Matrix4>, HeadTransform, Biases>;

}  // namespace heed::inline HEED_TARGET
