// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include <heed/attention/hook_names.hpp>
#include <heed/core/errors.hpp>
#include <heed/core/parameters.hpp>
#include <heed/core/tensor.hpp>

/// The required members of a score, a normalizer and a combiner, and their hooks: members that heed uses if they exist.
/// Functions are `const` and take tensors of any family; names without arguments are constants, `static constexpr`, or
/// types.
///
/// Score                                    default                    asked by
///   weights, operator()(query, keys),      required                   attention
///     parameters(self, visit)
///   prepare(annotations) -> keys           the annotations            attention::on, multi_head
///     prepare(annotations, first)            from a position on         attention::extend
///   follow(keys, before) -> keys           the keys                   attention::extend
///   prepares_alike                         false                      multi_head
///   project(query)                         the query                  attention::step, and for all queries at once
///   match(projected, keys)                 operator()                 score::over::compare
///     match(projected, keys, past)           with state
///   start(memory) -> past                  no_past                    attention::start
///   recall(past, at) -> past               past                       detail::step
///     recall(past, at, memory)               of keys and lengths
///   advance(past, weights, at) -> past     past                       detail::step
///     or (past, weights, context, at)
///   grow(past, begun, join, at) -> past    past.map(join, begun)      detail::step of a memory that has grown
///   groups()                               required for per_group     attention::start
///   match_all(queries, keys)               one query after another    attention::read_all
///     match_all(queries, keys, from)         from a query on
///   asked_all(asked, memory, first)        not in tiles               attention::read_all
///   project_words(words)                   the words                  seq2seq::decoder
///   check_past<Past>()                     any state is taken         attention::step on a tape
///   reads_word, reads_context              false, has `advance`       decoders and search
///   adds_word, reads_length                false                      score::with_word, verify
///   widens_keys                            false                      scores that wrap it
///   counts_queries                         false                      growing memories
///   never_negative                         false                      attention
///   in_kernels                             no kernel                  step_kernel
///     in_kernels::in_tiles                   no tiles                   attention::read_all
/// Score that wraps another; score::over::another declares laid_over, hands_past_on and the member `base`
///   query(projected, past)                 projected                  score::over::query
///   query_all(projected, first)            one query after another    attention::read_all
///   keys(keys, past)                       keys                       score::over::keys
///   begin(memory),                         required with a state      score::over::another
///     after(past, weights, context, at)      of its own
///   arrive(past, at)                       past                       score::over::another
///     or (past, at, memory)
/// Normalizer
///   operator()(scores, state, at),         required                   weigh
///     parameters(self, visit)
///   start(blank) -> state                  no_state                   start_of
///   advance(scores, weights, state, at)    required with `start`      next_of
///   weigh_and_advance(scores, state, at)   both, one by one           weigh_with_next
///     -> weights_and_next
///   thin(weights, at) -> weights           weights                    thinned
///   focus(at, positions) -> found          no window                  detail::step
///   inside(found) -> normalizer            required with `focus`      detail::middle_of_step
///   cuts                                   has `focus`                cuts_windows
///   row_by_row                             false                      attention::read_all
///   by_tiles() -> rule                     scores of all queries      attention::read_all
///   by_sums() -> rule_of_sums              scores of all queries      attention::read_all
///   asks_never_negative                    false                      attention
///   differentiable, random                 true, false                verify, draws
///   ages, reads_length, ignores_offset     false                      windows, verify, normalize::temperature
///   in_kernels                             no kernel                  step_kernel
/// Normalizer over another one, `using wraps = Inner;` with a member `inner`
///   start, advance, thin, differentiable,  those of `inner`           as above
///     random, ages, reads_length,
///     ignores_offset, asks_never_negative
/// Combiner
///   weights,                               required                   attention
///     operator()(weights, values)
///     or (weights, values, at),
///     parameters(self, visit)
///   combine_all(weights, values)           one query after another    attention::read_all
///     combine_all(weights, values, from)     from a query on
///   commutes_with_matrices                 false                      seq2seq::packed
///   in_kernels                             no kernel                  step_kernel
///   finishes,                              -                          detail::laid_over_combiner
///     finish(context, positions, at)
///   finish_all(contexts, queries)          one query after another    attention::read_all
/// State, and a query of several parts
///   map(f, others...)                      line by line, whole batch  steps by rows, beams, windows
///   step(s)                                required for many queries  attention::read_all
///
/// A member whose name is almost that of a hook is refused, and so is a hook that cannot be called as above; a policy
/// may also list its hooks, see heed::hooks. attention/check.hpp explains what is missing, in a sentence each.
namespace heed {

/// What a score assigns a weight to. A score and a combiner must agree.
enum class weight_kind {
    per_position,   // one number for each source position: scores and weights [B,T]
    per_dimension,  // one for each dimension of each position: scores and weights [B,T,D]
    per_group,      // one for each group of dimensions of each position: scores and weights [B,T,G]
};

/// hook::prepare<Score, decltype(annotations)>, and so on: can this hook be called with these arguments?
namespace hook {

#define HEED_CALLABLE(name)                                                                                            \
    template <class P, class... X>                                                                                     \
    concept name = requires(const P& policy, X&&... x)                                                                 \
    {                                                                                                                  \
        policy.name(static_cast<X&&>(x)...);                                                                           \
    };
HEED_FUNCTION_HOOKS(HEED_CALLABLE)
#undef HEED_CALLABLE

/// Can this policy be called with these arguments?
template <class P, class... X>
concept call = requires(const P& policy, X&&... x)
{
    policy(static_cast<X&&>(x)...);
};

#define HEED_DECLARES(name, what)                                                                                      \
    template <class P>                                                                                                 \
    concept name = requires                                                                                            \
    {                                                                                                                  \
        what;                                                                                                          \
    };
HEED_DECLARES(wraps, typename P::wraps)                  // does this normalizer wrap another, its `inner`?
HEED_DECLARES(laid_over, typename P::laid_over)          // does this score wrap another, its `base`?
HEED_DECLARES(hands_past_on, requires P::hands_past_on)  // has such a score no state of its own?
HEED_DECLARES(finishes, typename P::finishes)            // does this combiner wrap another, its `inner`?
#undef HEED_DECLARES

}  // namespace hook

// A static assertion takes a literal.
#define HEED_SAYS_HOOK(name, signature)                                                                                \
    "heed: this policy has a member `" name "`, which heed cannot call: declare it `" signature                        \
    "` (or, if it is no hook, list those that are: `using hooks = heed::hooks<...>;`)"
/// Where P's hook cannot be called: refused if P has it.
#define HEED_MAY_LACK(P, hook, signature) static_assert(detail::may_lack<P>(#hook), HEED_SAYS_HOOK(#hook, signature))

namespace detail {

template <class P>
concept declares_weights = std::is_convertible_v<decltype(P::weights), weight_kind>;

template <class P>
inline constexpr bool placeholder = std::same_as<P, visited>;  // parameters() while somebody only looks

// differentiable_of<P>(), and so on: a constant of P, or of the normalizer or score that P wraps.
#define HEED_CONSTANT(name, otherwise)                                                                                 \
    template <class P>                                                                                                 \
    consteval bool name##_of()                                                                                         \
    {                                                                                                                  \
        if constexpr (requires { P::name; }) {                                                                         \
            static_assert(                                                                                             \
                requires { typename std::bool_constant<P::name>; },                                                    \
                "heed: a policy's `" #name "` must be a constant: `static constexpr bool " #name " = ...;`");          \
            return P::name;                                                                                            \
        } else if constexpr (hook::wraps<P>) {                                                                         \
            return name##_of<typename P::wraps>();                                                                     \
        } else if constexpr (requires(const P& score) { score.base; }) {                                               \
            return name##_of<std::remove_cvref_t<decltype(std::declval<const P&>().base)>>();                          \
        } else {                                                                                                       \
            return otherwise;                                                                                          \
        }                                                                                                              \
    }
HEED_CONSTANT(differentiable, true)  // is its gradient the derivative of what it computes?
HEED_CONSTANT(random, false)         // do its results depend on a row's place in the batch?
HEED_CONSTANT(ages, false)           // does its state of a position change in a step that does not show the position?
HEED_CONSTANT(reads_length, false)   // do its weights depend on a row's length, and not only on what a query sees?
HEED_CONSTANT(asks_never_negative, false)  // does it divide by the sum of the scores?
HEED_CONSTANT(ignores_offset, false)       // does it return the same weights for e + c as for e?
HEED_CONSTANT(reads_word, false)           // does it read the embedding of the previous target word?
HEED_CONSTANT(adds_word, false)            // does it add the target word to the query itself?
HEED_CONSTANT(widens_keys, false)          // are its keys wider than those that its base compares?
HEED_CONSTANT(counts_queries, false)       // does it read the number of the query?
#undef HEED_CONSTANT

/// Are its scores never negative? A score that wraps another answers for itself.
template <class P>
concept never_negative = P::never_negative;

template <class P>
consteval bool cuts_of()
{
    if constexpr (requires { P::cuts; }) {
        return P::cuts;
    } else {
        return has_focus<P>;
    }
}

struct blank_probe {
    array<double, 2> operator()(double) const { return {}; }
};

template <class P>
consteval bool remembers_of()
{
    if constexpr (hook::hands_past_on<P>) {
        return remembers_of<typename P::laid_over>();
    } else if constexpr (declares_weights<P>) {
        return has_start<P>;
    } else if constexpr (hook::start<P, blank_probe>) {
        return !std::is_empty_v<decltype(std::declval<const P&>().start(blank_probe{}))>;
    } else if constexpr (hook::wraps<P>) {
        return remembers_of<typename P::wraps>();
    } else {
        return false;
    }
}

// Whose tensor does not fit: an operation deep inside of a policy knows that x [2,5] does not fit a matrix [6,4]; where
// attention calls the policy, in a function-try-block, it is known that x was the query:
//
//     score::additive: the query [2,5] does not fit W [6,4], U [8,4], v [4] (linear: …)

/// A tensor, and what it is there: "the query". Of what is no tensor, the name alone.
struct named : named_shape {
    template <class X>
    [[gnu::noinline, gnu::cold]] named(const char* what, const X& x)
    {
        if constexpr (tensor<X>) {
            const auto extents = shape_of(x);
            named_shape::operator=({what, extents.data(), extents.size()});
        } else {
            named_shape::operator=({what, nullptr, 0});
        }
    }
};

/// Throws an error that names the policy, the first of these tensors, and what it should fit: the others and the
/// policy's own parameters; unless `found` names a policy already.
template <class Policy>
[[noreturn, gnu::noinline, gnu::cold]] void throw_whose(const shape_error& found, const Policy& policy,
                                                        std::initializer_list<named_shape> those)
{
    named_shapes tensors(those);
    if constexpr (!std::is_empty_v<Policy> && parameterised<Policy>)
        (void)Policy::parameters(const_cast<Policy&>(policy), looking_visitor{&tensors});
    throw_named_shape_error(found, __PRETTY_FUNCTION__, tensors);
}

}  // namespace detail

/// Has this score or normalizer state: does it remember anything from one query to the next?
template <class P>
concept remembers = detail::remembers_of<P>();

/// Does this normalizer restrict attention to a window, outside of which nothing is computed? It has `focus` and
/// `inside`, and no `static constexpr bool cuts = false;`. (A final class declares `cuts = true`.)
template <class P>
concept cuts_windows = detail::cuts_of<P>();

/// Does this normalizer read only the scores of a row and the row's length? Then each query of each sentence is a row,
/// and many queries are answered at once.
template <class P>
concept row_by_row = P::row_by_row;

/// Does this normalizer draw random numbers? Its results then depend on a row's place in the batch.
template <class P>
concept draws = detail::random_of<P>();

/// e = score(query, keys): how well does this query match that source position?
template <class P>
concept scorer = detail::declares_weights<P> && detail::has_call<P> && parameterised<P>;

/// α = normalize(e, at): how do scores become weights?
template <class P>
concept normalizer = detail::has_call<P> && parameterised<P>;

/// c = combine(α, values): how do weights and values become one context?
template <class P>
concept combiner = detail::declares_weights<P> && detail::has_call<P> && parameterised<P>;

}  // namespace heed
