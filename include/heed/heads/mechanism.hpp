// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>

#include <heed/attention.hpp>
#include <heed/core/mechanism_list.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/shape.hpp>
#include <heed/policy/concepts.hpp>

/// A base class that completes a mechanism's interface from the few members that it must define: for mechanisms of
/// several heads or hops, and for your own.
namespace heed::inline HEED_TARGET {

namespace detail {

/// x W for a matrix of this mechanism, plus the bias if the tuple `bias` holds one. `name`: the role of x, for example
/// "the query", for the error if the shapes do not fit.
template <class Bias = std::tuple<>>
auto projection(const auto& mechanism, const char* name, const auto& x, const auto& W, const Bias& bias = {})
try {
    return std::apply([&](const auto&... b) { return ops::linear(x, W, b...); }, bias);
} catch (const shape_error& found) {
    rethrow_naming(found, mechanism, {detail::named(name, x)});
}

/// The query [B,Q] if R is 2, or queries [B,S,Q] if R is 3, in the element type of the matrices.
template <std::size_t R, class Matrix>
decltype(auto) query_beside(const Matrix&, const auto& given)
{
    return query_of_axes<R, typename numbers_in<Matrix>::type>(given);
}

/// The member functions of an attention, as function objects: for mechanisms of several attentions.
inline constexpr auto call_step = [](const auto& one, const auto&... in) { return one.step(in...); };
inline constexpr auto call_compose = [](const auto& one, const auto&... in) { return one.compose(in...); };
inline constexpr auto call_read = [](const auto& one, const auto&... in) { return one.read(in...); };
inline constexpr auto call_read_all = [](const auto& one, const auto&... in) { return one.read_all(in...); };
inline constexpr auto call_weights_of = [](const auto& one, const auto&... in) { return one.weights_of(in...); };

/// Calls f(attention, i) for each attention, and returns the results as each_of does.
auto each_with_index(const auto& several, const auto& f)
{
    return detail::each_of(several, [&](auto i) { return f(detail::nth(several, i), i); });
}

/// The weights of n attentions, [B,T] or [B,S,T] each, as one tensor [B,n,T] or [B,n,S,T].
auto side_by_side(const auto& weights) { return ops::swap_axes(ops::stack(weights)); }

}  // namespace detail

/// Base class of a mechanism, `struct mine : heed::mechanism<mine>`, which defines
///
///     memory_of(annotations, rest...)               the memory of a batch; `rest` as for attention::on
///     start(memory)                                 the state before the first query
///     step(memory, query, state, mask = {})         one query: step_result{context, weights, state}
///     read_all(memory, queries, state, mask = {})   many queries: sequence_result{contexts, state}
///     all_weights(memory, queries, state, mask)     the weights of many queries; without it, no `weights_of`
///     extended(memory, annotations, rest...)        a memory that has grown; without it, no `extend`
///
/// and inherits the other calls of `attention`. It may also define `read`, if it can skip the weights, `compose` and
/// `step_into`; these are then called.
template <class Self>
class mechanism {
    friend Self;
    mechanism() = default;  // only mechanisms derive from it

    template <class Mine = Self>
    const Mine& self() const
    {
        return static_cast<const Mine&>(*this);
    }

public:
    /// The memory of a batch: all computation that does not depend on queries. The arguments are those of
    /// attention::on.
    auto on(const tensor auto& annotations, const auto&... rest) const
    {
        return self().memory_of(annotations, rest...);
    }
    auto on(const tensor auto& annotations, const lengths& real) const { return self().memory_of(annotations, real); }
    auto on(const tensor auto& annotations, const tensor auto& values, const lengths& real) const
    {
        return self().memory_of(annotations, values, real);
    }
    template <class... X>
        requires((detail::no_source<X> || ...))
    auto on(const X&... source) const { return on(detail::source_meant(source)...); }  // fails with a single message

    /// The memory with more annotations [B,t,D] appended, or with more keys and values: see attention::extend.
    template <class Mine = Self>
    auto extend(const auto& memory, const tensor auto&... annotations) const
        -> decltype(self<Mine>().extended(memory, annotations...))
    {
        return self().extended(memory, annotations...);
    }
    template <class Mine = Self>
    auto extend(const auto& memory, const tensor auto& annotations, const lengths& real) const
        -> decltype(self<Mine>().extended(memory, annotations, real))
    {
        return self().extended(memory, annotations, real);
    }
    template <class Mine = Self>
    auto extend(const auto& memory, const tensor auto& annotations, const tensor auto& values,
                const lengths& real) const -> decltype(self<Mine>().extended(memory, annotations, values, real))
    {
        return self().extended(memory, annotations, values, real);
    }

    /// One query: the context and the state that `step` returns, without the weights.
    template <class Mask = no_mask>
    auto read(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        auto answer = self().step(memory, query, state, mask);
        return context_result{std::move(answer.context), std::move(answer.state)};
    }

    /// `step` into results that the caller owns. `state` may be `result.state`.
    template <class Result, class Mask = no_mask>
    void step_into(Result& result, const auto& memory, const auto& query, const auto& state,
                   const Mask& mask = {}) const
    {
        detail::keep_answer(result, self().step(memory, query, state, mask));
    }

    /// Many queries at once: queries [B,S,Q] -> contexts [B,S,O]; the state passes from the first to the last. `mask`:
    /// as for attention.
    template <class Mask = no_mask>
    auto operator()(const auto& memory, const auto& queries, const Mask& mask = {}) const
    {
        return self().read_all(memory, queries, self().start(memory), mask).contexts;
    }

    /// The weights of many queries, for each head: [B,n,S,T], for plots and penalties. All are stored
    /// at once.
    template <class Mask = no_mask, class Mine = Self>
    auto weights_of(const auto& memory, const auto& queries, const Mask& mask = {}) const
        -> decltype(self<Mine>().all_weights(memory, queries, self<Mine>().start(memory), mask))
    {
        return self().all_weights(memory, queries, self().start(memory), mask);
    }

    /// The weights of many queries, starting from a given state.
    template <class Mask = no_mask, class Mine = Self>
    auto weights_of(const auto& memory, const auto& queries, const auto& state, const Mask& mask) const
        -> decltype(self<Mine>().all_weights(memory, queries, state, mask))
    {
        return self().all_weights(memory, queries, state, mask);
    }
};

}  // namespace heed::inline HEED_TARGET
