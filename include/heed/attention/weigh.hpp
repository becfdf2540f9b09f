// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>
#include <utility>

#include <heed/attention/concepts.hpp>
#include <heed/attention/normalize_hooks.hpp>
#include <heed/attention/score_hooks.hpp>
#include <heed/attention/state.hpp>
#include <heed/core/family.hpp>
#include <heed/core/mask.hpp>

/// Score, normalize, combine: the three lines that attention is, and a kernel for all three where there is one.
///
///     e = match(query, keys)
///     α = normalize(e, state, at)
///     c = combine(α, values)
namespace heed {

/// Weights and values become a context, by a combiner that takes the moment or by one that does not.
template <class Combine>
auto combined(const Combine& combine, const tensor auto& weights, const tensor auto& values, const auto& at)
try {
    if constexpr (hook::call<Combine, decltype(weights), decltype(values), decltype(at)>) {
        return combine(weights, values, at);
    } else if constexpr (hook::call<Combine, decltype(weights), decltype(values)>) {
        return combine(weights, values);
    } else {
        static_assert(hook::call<Combine, decltype(weights), decltype(values)>,
                      "heed: this combiner cannot be called: declare its `auto operator()(const heed::tensor auto& "
                      "weights, const heed::tensor auto& values) const`, with the `const` and for tensors of any kind");
        return constant_like(values, shape_of_rank<2>{}, 0.0);
    }
} catch (const shape_error& found) {
    detail::throw_whose(found, combine, {detail::named("the weights", weights), detail::named("the values", values)});
}

/// Do kernels know this policy by one of these names? A policy declares its name by `using in_kernels = kernels::…;`.
template <class Policy, class... Names>
concept known_to_kernels_as = requires
{
    typename Policy::in_kernels;
}
&&(std::is_same_v<typename Policy::in_kernels, Names> || ...);

/// The combiner that sums: the innermost, if others wrap it.
template <class Combine>
const auto& summing(const Combine& combine)
{
    return detail::below(combine, []<class Layer>(const Layer&) { return std::bool_constant<wraps_another<Layer>>{}; });
}

/// The context after the combiners that wrap the summing one.
template <class Combine>
auto finished(const Combine& combine, const tensor auto& context, std::size_t positions, const auto& at)
try {
    if constexpr (wraps_another<Combine>) {
        return combine.finish(heed::finished(combine.inner, context, positions, at), positions, at);
    } else {
        return context;
    }
} catch (const shape_error& found) {
    detail::throw_whose(found, combine, {detail::named("the context", context)});
}

/// Can the combiners that wrap the summing one finish the contexts of many queries at once?
template <class Combine>
consteval bool finishes_all()
{
    if constexpr (wraps_another<Combine> && detail::has_finish_all<Combine>)
        return heed::finishes_all<typename Combine::wraps>();
    return !wraps_another<Combine>;
}

/// The combiner that sums for many queries at once: the innermost, if those over it can finish all of its contexts.
template <class Combine>
const auto& summing_all(const Combine& combine)
{
    if constexpr (heed::finishes_all<Combine>()) {
        return heed::summing(combine);
    } else {
        return combine;
    }
}

/// Contexts [B,S,D] of many queries after the combiners that wrap the summing one.
template <class Combine, tensor Contexts>
auto finished_all(const Combine& combine, Contexts contexts, const auto& queries)
try {
    if constexpr (wraps_another<Combine> && heed::finishes_all<Combine>()) {
        return combine.finish_all(heed::finished_all(combine.inner, std::move(contexts), queries), queries);
    } else {
        return contexts;
    }
} catch (const shape_error& found) {
    detail::throw_whose(found, combine, {detail::named("the contexts", contexts)});
}

/// A kernel for the three lines. A score's header specialises this for its score and the normalizers and combiners that
/// the kernel knows, and so may a user's:
///
///     template <class M, class N, class C>
///         requires(heed::known_to_kernels_as<N, heed::kernels::softmax_of_row> &&
///                  heed::known_to_kernels_as<C, heed::kernels::weighted_sum_of_row>)
///     struct heed::step_kernel<mine::score<M>, N, C> {
///         using operation = mine::step_op;
///         static auto answer(const auto& score, const N&, const C&, const auto& operands, auto with) { … }
///     };
///
/// `answer` gets operands{query, keys, values, history, real} after the window was cut, words were projected and
/// wrappers have added to query and keys. It returns an `outcome` of tensors of the same family, made by the operation,
/// which has its own derivative.
template <class Score, class Normalize, class Combine>
struct step_kernel {};

/// The results of the three lines, or of a kernel.
template <class Context, class Weights, class History>
struct outcome {
    Context context;
    Weights weights;
    History history;  // the normalizer's next state

    /// The outcome with f applied to every tensor, together with the same tensors of `others`.
    auto map(auto&& f, const auto&... others) const
    {
        auto c = f(context, others.context...);
        auto w = f(weights, others.weights...);
        auto h = history.map(f, others.history...);
        return heed::outcome<decltype(c), decltype(w), decltype(h)>{std::move(c), std::move(w), std::move(h)};
    }
};
template <class Context, class Weights, class History>
outcome(Context, Weights, History) -> outcome<Context, Weights, History>;

/// The operands of the three lines.
template <class Query, class Keys, class Values, class History>
struct operands {
    const Query& query;      // [B,A], projected
    const Keys& keys;        // [B,T,A]
    const Values& values;    // [B,T,D]
    const History& history;  // the normalizer's state
    lengths_view real;       // of each row
};
template <class Query, class Keys, class Values, class History>
operands(const Query&, const Keys&, const Values&, const History&, lengths_view)
    -> operands<Query, Keys, Values, History>;

}  // namespace heed
