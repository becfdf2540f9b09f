// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <concepts>
#include <utility>

#include <heed/core/window.hpp>
#include <heed/kernels/dot.hpp>
#include <heed/memory.hpp>
#include <heed/ops/fused.hpp>
#include <heed/ops/products.hpp>

/// Which combinations of policies have fused kernels.
///
/// Where `fused_form<attention>::exists`, attention::step uses the kernels for both families; the composed form stays
/// the specification that they are tested against. Policies are only declared here: who includes attention.hpp and one
/// mechanism includes no other.
namespace heed {

template <class Score, class Normalize, class Combine>
struct attention;
template <class State, class Word>
struct state_and_word;
template <class State, class Word>
struct state_and_projected_word;

namespace score {
template <class Matrix, class Vector>
struct additive;
template <class Matrix>
struct additive_per_dimension;
template <class Base, class Matrix>
struct with_word;
struct dot;
struct scaled_dot;
template <class Matrix>
struct general;
}  // namespace score
namespace normalize {
struct softmax;
struct temporal;
template <class Inner, class History>
struct local_m;
}  // namespace normalize
namespace combine {
struct weighted_sum;
struct elementwise_sum;
}  // namespace combine

template <class Attention>
struct fused_form {
    static constexpr bool exists = false;
};

/// The same for step_into alone, where plain results are kept and nothing needs to be allocated: `step` is the composed
/// form, and this one makes the same numbers bit for bit.
template <class Attention>
struct kept_form {
    static constexpr bool exists = false;
};

namespace detail {

/// x W into storage [rows,columns] that is there: out = x W + beta out.
template <class T, class Matrix, class X>
void multiply_into(const char* what, const shape_of_rank<2>& into, const X& x, const Matrix& W, T beta, T* out)
{
    const auto [rows, columns] = into;
    require_shape("attention", "the score's matrix", shape_of(W), {shape_of(W)[0], columns}, "as wide as the keys");
    const auto is = shape_of(x);
    require_shape("attention", what, is, {rows, shape_of(W)[0]},
                  "one row for each sentence of the memory, as wide as its matrix is high");
    blas::gemm(blas::op::plain, blas::op::plain, rows, shape_of(W)[1], is[1], view_of(x).data, view_of(W).data, beta,
               out);
}

/// A score's projected query [B,A], into storage that is there.
template <class T, class Score, class Query>
void project_into(const Score& score, const shape_of_rank<2>& into, const Query& query, T* out)
{
    multiply_into("the query", into, query, score.W, T(0), out);
}
template <class T, class Base, class Matrix, class State, class Word>
void project_into(const score::with_word<Base, Matrix>& score, const shape_of_rank<2>& into,
                  const state_and_word<State, Word>& query, T* out)
{
    multiply_into("the query's state", into, query.state, score.base.W, T(0), out);
    multiply_into("the query's word", into, query.word, score.Y, T(1), out);
}
template <class T, class Base, class Matrix, class State, class Word>
void project_into(const score::with_word<Base, Matrix>& score, const shape_of_rank<2>& into,
                  const state_and_projected_word<State, Word>& query, T* out)
{
    const auto word = view_of(query.word);
    require_shape("attention", "the query's projected word", word.shape, into,
                  "one row for each sentence of the memory, as wide as the keys");
    std::copy_n(word.data, word.size(), out);
    multiply_into("the query's state", into, query.state, score.base.W, T(1), out);
}

template <class Score>
const auto& base_of(const Score& score)
{
    if constexpr (requires { score.base; }) {
        return score.base;
    } else {
        return score;
    }
}

/// The shape of keys or values as the rows of a batch see them, [R,T,.].
template <class Memory>
shape_of_rank<3> for_rows(const Memory& memory, const tensor auto& x)
{
    auto shape = shape_of(x);
    if constexpr (shared_by_rows<Memory>) shape[0] = memory.batch();
    return shape;
}

template <bool temporal>
struct fused_additive {
    static constexpr bool exists = true;
    static constexpr bool answers_into = true;
    static constexpr bool shares_memory = true;

    template <bool with_weights>
    static auto step(const auto& attention, const auto& memory, const lengths& real, const auto& projected,
                     const auto& state)
    {
        const auto ask = [&](const auto&... history) {
            const auto& v = base_of(attention.score).v;
            if constexpr (shared_by_rows<std::remove_cvref_t<decltype(memory)>>) {
                return ops::additive_step<temporal>.shared(memory.sentence, projected, memory.keys, v, memory.values,
                                                           real, history...);
            } else {
                return ops::additive_step<temporal>(projected, memory.keys, v, memory.values, real, history...);
            }
        };
        auto seen = [&] {
            if constexpr (temporal) {
                return ask(state.normalize.history);
            } else {
                return ask();
            }
        }();
        auto next = [&] {
            if constexpr (temporal) {
                auto history = attention.normalize.make(std::move(seen.history));
                return attention_state<decltype(history)>{std::move(history), state.step + 1};
            } else {
                return attention_state<no_state>{{}, state.step + 1};
            }
        }();
        if constexpr (with_weights) {
            return attended<decltype(seen.context), decltype(seen.weights), decltype(next)>{
                std::move(seen.context), std::move(seen.weights), std::move(next)};
        } else {
            return read_out<decltype(seen.context), decltype(next)>{std::move(seen.context), std::move(next)};
        }
    }

    static void step_into(const auto& attention, auto& result, const auto& memory, const lengths& real,
                          const auto& query, const auto& state)
    {
        using T = element_of<decltype(memory.keys)>;
        const auto keys = for_rows(memory, memory.keys), values = for_rows(memory, memory.values);
        const auto& v = base_of(attention.score).v;
        using operation = ops::additive_step_op<temporal>;
        if constexpr (shared_by_rows<std::remove_cvref_t<decltype(memory)>>) {
            operation::check_sentences(memory.sentence, shape_of(memory.keys)[0]);
        }
        operation::check({keys[0], keys[2]}, keys, shape_of(v), values, real);
        if constexpr (temporal) operation::check_history(shape_of(state.normalize.history), keys);
        scratch here;
        T* projected = here.take<T>(keys[0] * keys[2]);
        project_into(attention.score, {keys[0], keys[2]}, query, projected);
        answer_into(attention, result, memory, real, static_cast<const T*>(projected), state);
    }

    /// The same for a projected query [B,A], when all shapes are known to fit. Without weights if the result has none.
    template <class T>
    static void answer_into(const auto& attention, auto& result, const auto& memory, const lengths& real,
                            const T* projected, const auto& state)
    {
        const auto keys = for_rows(memory, memory.keys), values = for_rows(memory, memory.values);
        const auto& v = base_of(attention.score).v;
        using operation = ops::additive_step_op<temporal>;
        scratch here;
        T* scores = here.take<T>(keys[0] * keys[1]);
        const T* past = nullptr;
        T* next = nullptr;
        if constexpr (temporal) {
            past = view_of(state.normalize.history).data;
            next = here.take<T>(keys[0] * keys[1]);  // not in place: `state` may be `result.state`
        }
        const std::size_t* sentences = nullptr;
        if constexpr (shared_by_rows<std::remove_cvref_t<decltype(memory)>>) sentences = memory.sentence.data();
        fit(result.context, {values[0], values[2]});
        T* weights = nullptr;
        if constexpr (requires { result.weights; }) {
            fit(result.weights, {keys[0], keys[1]});
            weights = result.weights.data();
        } else {
            weights = here.take<T>(keys[0] * keys[1]);
        }
        kernels::additive_forward(operation::template kernel<T>(keys, values, real.data(), projected,
                                                                view_of(memory.keys).data, view_of(v).data,
                                                                view_of(memory.values).data, past, sentences),
                                  scores, weights, result.context.data(), next);
        if constexpr (temporal) {
            fit(result.state.normalize.history, {keys[0], keys[1]});
            std::copy_n(next, keys[0] * keys[1], result.state.normalize.history.data());
        }
        result.state.step = state.step + 1;
    }
};

struct fused_per_dimension {
    static constexpr bool exists = true;

    template <bool with_weights>
    static auto step(const auto& attention, const auto& memory, const lengths& real, const auto& projected,
                     const auto& state)
    {
        auto seen = ops::per_dimension_step(projected, memory.keys, base_of(attention.score).V, memory.values, real,
                                            with_weights);
        attention_state<no_state> next{{}, state.step + 1};
        if constexpr (with_weights) {
            return attended<decltype(seen.context), decltype(seen.weights), decltype(next)>{
                std::move(seen.context), std::move(seen.weights), next};
        } else {
            return read_out<decltype(seen.context), decltype(next)>{std::move(seen.context), next};
        }
    }

    static void step_into(const auto& attention, auto& result, const auto& memory, const lengths& real,
                          const auto& query, const auto& state)
    {
        using T = element_of<decltype(memory.keys)>;
        const auto keys = shape_of(memory.keys), values = shape_of(memory.values);
        const auto& V = base_of(attention.score).V;
        ops::per_dimension_step_op::check({keys[0], keys[2]}, keys, shape_of(V), values, real);
        scratch here;
        T* projected = here.take<T>(keys[0] * keys[2]);
        project_into(attention.score, {keys[0], keys[2]}, query, projected);
        fit(result.context, {values[0], values[2]});
        T* weights = nullptr;
        if constexpr (requires { result.weights; }) {
            fit(result.weights, values);
            weights = result.weights.data();
        }
        ops::per_dimension_step_op::compute<T>(keys, values, real, projected, view_of(memory.keys).data,
                                               view_of(V).data, view_of(memory.values).data, weights,
                                               result.context.data());
        result.state.step = state.step + 1;
    }
};

/// The query as `dot` sees it [B,A]: as it is, or in scratch memory.
template <class T>
const T* asked(const score::dot&, const tensor auto& query, const shape_of_rank<3>& keys, scratch&)
{
    ops::dot_each_op::result_shape(shape_of(query), keys);
    return view_of(query).data;
}
template <class T, std::same_as<score::scaled_dot> Score>
const T* asked(const Score& score, const tensor auto& query, const shape_of_rank<3>& keys, scratch& here)
{
    ops::dot_each_op::result_shape(shape_of(query), keys);
    T* scaled = here.take<T>(keys[0] * keys[2]);
    simd::parallel_transform(
        keys[0] * keys[2], scaled, [f = static_cast<T>(score.factor(keys[2]))](auto x) { return x * f; },
        static_cast<const T*>(view_of(query).data));
    return scaled;
}
template <class T, class Matrix>
const T* asked(const score::general<Matrix>& score, const tensor auto& query, const shape_of_rank<3>& keys,
               scratch& here)
{
    T* projected = here.take<T>(keys[0] * keys[2]);
    project_into(score, {keys[0], keys[2]}, query, projected);
    return projected;
}

/// Inner products under softmax, of all real positions or of those in the window of local_m.
struct kept_dot {
    static constexpr bool exists = true;

    static stretch stretch_at(const normalize::softmax&, std::size_t, std::size_t real) { return {0, real}; }
    template <class History>
    static stretch stretch_at(const normalize::local_m<normalize::softmax, History>& local, std::size_t step,
                              std::size_t real)
    {
        return local.stretch_at(step, real);
    }

    static void step_into(const auto& attention, auto& result, const auto& memory, const lengths& real,
                          const auto& query, const auto& state)
    {
        using T = element_of<decltype(memory.keys)>;
        const auto keys = shape_of(memory.keys), values = shape_of(memory.values);
        real.require("attention", keys[0], keys[1]);
        const shape_of_rank<2> weights{keys[0], keys[1]};
        ops::weighted_sum_op::result_shape(weights, values);
        scratch here;
        const T* asked = detail::asked<T>(attention.score, query, keys, here);
        fit(result.context, {values[0], values[2]});
        fit(result.weights, weights);
        kernels::dot_forward(
            kernels::dot_step<T>{keys[0], keys[1], keys[2], values[2], asked, view_of(memory.keys).data,
                                 view_of(memory.values).data},
            [&, step = state.step](std::size_t b) { return stretch_at(attention.normalize, step, real[b]); },
            result.weights.data(), result.context.data());
        result.state.step = state.step + 1;
    }
};

template <class Score>
inline constexpr bool compares_by_dot = false;
template <>
inline constexpr bool compares_by_dot<score::dot> = true;
template <>
inline constexpr bool compares_by_dot<score::scaled_dot> = true;
template <class M>
inline constexpr bool compares_by_dot<score::general<M>> = true;

}  // namespace detail

template <class Score>
    requires(detail::compares_by_dot<Score>)
struct kept_form<attention<Score, normalize::softmax, combine::weighted_sum>> : detail::kept_dot {};
template <class Score, class History>
    requires(detail::compares_by_dot<Score>)
struct kept_form<attention<Score, normalize::local_m<normalize::softmax, History>, combine::weighted_sum>>
    : detail::kept_dot {};

template <class M, class V>
struct fused_form<attention<score::additive<M, V>, normalize::softmax, combine::weighted_sum>>
    : detail::fused_additive<false> {};
template <class M, class V>
struct fused_form<attention<score::additive<M, V>, normalize::temporal, combine::weighted_sum>>
    : detail::fused_additive<true> {};
template <class M, class V, class Y>
struct fused_form<attention<score::with_word<score::additive<M, V>, Y>, normalize::softmax, combine::weighted_sum>>
    : detail::fused_additive<false> {};
template <class M, class V, class Y>
struct fused_form<attention<score::with_word<score::additive<M, V>, Y>, normalize::temporal, combine::weighted_sum>>
    : detail::fused_additive<true> {};
template <class M>
struct fused_form<attention<score::additive_per_dimension<M>, normalize::softmax, combine::elementwise_sum>>
    : detail::fused_per_dimension {};
template <class M, class Y>
struct fused_form<
    attention<score::with_word<score::additive_per_dimension<M>, Y>, normalize::softmax, combine::elementwise_sum>>
    : detail::fused_per_dimension {};

}  // namespace heed
