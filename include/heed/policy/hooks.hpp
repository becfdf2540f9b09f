// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

#include <heed/core/cxx20.hpp>

/// Hooks: member functions of a policy that heed calls if they exist. This table has one row per hook: its name, its
/// signature, its result, and heed's behavior without it. Each row generates the concepts `hook::name` and
/// `detail::has_name`, the static_assert message for a member that heed cannot call, and a line of the documentation.
///
/// All hooks are `const` and take tensors of any family.
namespace heed::inline HEED_TARGET {

// clang-format off

// Of scores.
#define HEED_HOOK_prepare(X) X(prepare, "auto prepare(const heed::tensor auto& annotations) const", \
    "keys of annotations, computed once per memory; or `prepare(annotations, first)`, starting at position `first`", "the annotations")
#define HEED_HOOK_continue_keys(X) X(continue_keys, "auto continue_keys(const heed::tensor auto& keys, const heed::tensor auto& before) const", \
    "keys of later annotations, given those before them", "the keys")
#define HEED_HOOK_project(X) X(project, "auto project(const heed::tensor auto& query) const", \
    "the projected query", "the query")
#define HEED_HOOK_match(X) X(match, "auto match(const heed::tensor auto& projected, const heed::tensor auto& keys) const", \
    "scores; with a state, `match(projected, keys, state)`", "`operator()`")
#define HEED_HOOK_score_matrix(X) X(score_matrix, "auto score_matrix(const heed::tensor auto& queries, const heed::tensor auto& keys) const", \
    "scores [B·S,T] of all queries; or `score_matrix(queries, keys, from)`, starting at query `from`", "one query after another")
#define HEED_HOOK_asked_all(X) X(asked_all, "auto asked_all(const heed::tensor auto& queries, const auto& memory, std::size_t first) const", \
    "queries and keys of an inner product, for tiles", "no tiles")
#define HEED_HOOK_start(X) X(start, "auto start(const auto& memory) const", \
    "the state before the first query", "no state")
#define HEED_HOOK_observe_memory(X) X(observe_memory, "auto observe_memory(const auto& state, const auto& at) const", \
    "the state, given the query and its word; or `observe_memory(state, at, memory)`, which also gets keys and lengths", "the state")
#define HEED_HOOK_advance(X) X(advance, "auto advance(const auto& state, const heed::tensor auto& weights, const heed::tensor auto& context, const auto& at) const", \
    "the state after a step; the context may be omitted", "the state")
#define HEED_HOOK_grow(X) X(grow, "auto grow(const auto& state, const auto& begun, const auto& join, const auto& at) const", \
    "the state after the memory has grown", "`state.map(join, begun)`")
#define HEED_HOOK_groups(X) X(groups, "std::size_t groups() const", \
    "the number of groups", "required with `weight_kind::per_group`")
#define HEED_HOOK_project_words(X) X(project_words, "auto project_words(const heed::tensor auto& words) const", \
    "projected words of all steps", "the words")
#define HEED_HOOK_check_state(X) X(check_state, "template <class State> static consteval void check_state()", \
    "nothing: it rejects a type of state with a static assertion", "any state is accepted")

// Of scores that wrap another, in addition to these.
#define HEED_HOOK_query(X) X(query, "auto query(const heed::tensor auto& projected, const auto& state) const", \
    "the projected query plus this score's term", "the projected query")
#define HEED_HOOK_query_all(X) X(query_all, "auto query_all(const heed::tensor auto& projected, std::size_t first) const", \
    "the projected queries of all steps plus this score's term", "one query after another")
#define HEED_HOOK_keys(X) X(keys, "auto keys(const heed::tensor auto& keys, const auto& state) const", \
    "the keys plus this score's term", "the keys")
#define HEED_HOOK_init_state(X) X(init_state, "auto init_state(const auto& memory) const", \
    "its own state before the first query", "required if it has its own state")
#define HEED_HOOK_observe_query(X) X(observe_query, "auto observe_query(const auto& state, const auto& at) const", \
    "its own state, given the query and its word; or `observe_query(state, at, memory)`", "its state")
#define HEED_HOOK_update_state(X) X(update_state, "auto update_state(const auto& state, const heed::tensor auto& weights, const heed::tensor auto& context, const auto& at) const", \
    "its own state after a step", "required if it has its own state")

// Of normalizers. A wrapping normalizer without `start`, `advance` or `weights_for_combiner` uses those of the wrapped
// one.
#define HEED_HOOK_normalizer_start(X) X(start, "auto start(auto&& blank) const", \
    "the state before the first query; `blank(x)` makes a tensor of the scores' shape", "no state")
#define HEED_HOOK_normalizer_advance(X) X(advance, "auto advance(const heed::tensor auto& scores, const heed::tensor auto& weights, const auto& state, const auto& at) const", \
    "the state after a step", "required with `start`")
#define HEED_HOOK_weigh_and_advance(X) X(weigh_and_advance, "auto weigh_and_advance(const heed::tensor auto& scores, const auto& state, const auto& at) const", \
    "`weights_and_next{weights, state}`", "`operator()`, then `advance`")
#define HEED_HOOK_weights_for_combiner(X) X(weights_for_combiner, "auto weights_for_combiner(const heed::tensor auto& weights, const auto& at) const", \
    "the weights for the combiner", "the weights")
#define HEED_HOOK_window(X) X(window, "auto window(const auto& at, std::size_t positions) const", \
    "the window, a struct with `where` and `map`", "no window")
#define HEED_HOOK_inner_in_window(X) X(inner_in_window, "auto inner_in_window(const auto& found) const", \
    "the normalizer inside the window", "required with `window`")
#define HEED_HOOK_tile_rule(X) X(tile_rule, "auto tile_rule() const", \
    "the rule for its weights in tiles", "no tiles")
#define HEED_HOOK_linear_rule(X) X(linear_rule, "heed::ops::rule_of_sums linear_rule() const", \
    "the rule for its contexts by running sums", "no running sums")

// Of combiners.
#define HEED_HOOK_prepare_values(X) X(prepare_values, "auto prepare_values(const heed::tensor auto& values, const auto& of) const", \
    "the values, computed once per memory; `of` has `annotations`, `keys`, `real`, `mask`, `score` and `normalize`", "the values")
#define HEED_HOOK_combine_matrix(X) X(combine_matrix, "auto combine_matrix(const heed::tensor auto& weights, const heed::tensor auto& values) const", \
    "contexts of all queries; or `combine_matrix(weights, values, from)`, starting at query `from`", "one query after another")
#define HEED_HOOK_finish(X) X(finish, "auto finish(const heed::tensor auto& context, std::size_t positions, const auto& at) const", \
    "the context, given that of the wrapped combiner", "required with `wraps`")
#define HEED_HOOK_finish_matrix(X) X(finish_matrix, "auto finish_matrix(const heed::tensor auto& contexts, const auto& queries) const", \
    "the contexts of all queries, given those of the wrapped combiner", "one query after another")

// Of states, and of queries of several parts.
#define HEED_HOOK_map(X) X(map, "auto map(auto&& f, const auto&... others) const", \
    "the state with f applied to each tensor, together with the matching tensors of `others`", "the whole batch, operation by operation; no beam search")

#define HEED_HOOKS_OF_SCORES(X)                                                                                        \
    HEED_HOOK_prepare(X) HEED_HOOK_continue_keys(X) HEED_HOOK_project(X) HEED_HOOK_match(X) HEED_HOOK_score_matrix(X)            \
    HEED_HOOK_asked_all(X) HEED_HOOK_start(X) HEED_HOOK_observe_memory(X) HEED_HOOK_advance(X) HEED_HOOK_grow(X)               \
    HEED_HOOK_groups(X) HEED_HOOK_project_words(X) HEED_HOOK_check_state(X)
#define HEED_HOOKS_OF_WRAPPING_SCORES(X)                                                                               \
    HEED_HOOK_query(X) HEED_HOOK_query_all(X) HEED_HOOK_keys(X) HEED_HOOK_init_state(X) HEED_HOOK_observe_query(X) HEED_HOOK_update_state(X)
// Their `start` and `advance` share their names with scores' hooks, for which the concepts exist already.
#define HEED_HOOKS_OF_NORMALIZERS(X)                                                                                   \
    HEED_HOOK_weigh_and_advance(X) HEED_HOOK_weights_for_combiner(X) HEED_HOOK_window(X) HEED_HOOK_inner_in_window(X) HEED_HOOK_tile_rule(X)      \
    HEED_HOOK_linear_rule(X)
#define HEED_HOOKS_OF_COMBINERS(X) HEED_HOOK_prepare_values(X) HEED_HOOK_combine_matrix(X) HEED_HOOK_finish(X) HEED_HOOK_finish_matrix(X)
#define HEED_HOOKS(X)                                                                                                  \
    HEED_HOOKS_OF_SCORES(X) HEED_HOOKS_OF_WRAPPING_SCORES(X) HEED_HOOKS_OF_NORMALIZERS(X) HEED_HOOKS_OF_COMBINERS(X)   \
    HEED_HOOK_map(X)
// clang-format on

/// hook::prepare<Score, decltype(annotations)>, and so on: can this hook be called with these arguments?
namespace hook {

#define HEED_CALLABLE(name, signature, returns, otherwise)                                                             \
    template <class P, class... X>                                                                                     \
    concept name = requires(const P& policy, X&&... x)                                                                 \
    {                                                                                                                  \
        policy.name(static_cast<X&&>(x)...);                                                                           \
    };
HEED_HOOKS(HEED_CALLABLE)
#undef HEED_CALLABLE

/// Can this policy be called with these arguments?
template <class P, class... X>
concept call = requires(const P& policy, X&&... x)
{
    policy(static_cast<X&&>(x)...);
};

}  // namespace hook

namespace detail {

// A hook may be a template, which cannot be detected without arguments. But if a class derives from the policy and from
// a struct that has members of all these names, any name that the policy also has is ambiguous.
#define HEED_DECLARE(name, ...) void name() const;
struct all_hooks {
    void operator()() const;
    HEED_HOOKS(HEED_DECLARE)
};
#undef HEED_DECLARE

template <class P>
struct beside_hooks : P, all_hooks {};

template <class P>
struct only : P {};

/// Can its member names be detected? Not for a final class; policies must not be final.
template <class P>
concept shows_names = std::is_class_v<P> && !std::is_final_v<P>;

// has_prepare<P>, and so on: does P have a member of this name? The name of P itself does not count.
#define HEED_ASK_NAME(name, ...)                                                                                       \
    template <class P>                                                                                                 \
    concept has_##name = shows_names<P> && !requires                                                                   \
    {                                                                                                                  \
        &beside_hooks<P>::name;                                                                                        \
    }                                                                                                                  \
    &&!requires { requires std::is_base_of_v<typename only<P>::name, P>; };
// clang-format off
HEED_HOOKS(HEED_ASK_NAME)
// clang-format on
#undef HEED_ASK_NAME

template <class P>
concept has_call = shows_names<P> && !requires
{
    &beside_hooks<P>::operator();
};

/// Is this the name of a hook?
consteval bool is_hook(std::string_view name)
{
#define HEED_FIND(hook, ...) || name == #hook
    return false HEED_HOOKS(HEED_FIND);
#undef HEED_FIND
}

/// Does P have the hook of this name?
template <class P>
consteval bool has_hook(std::string_view name)
{
#define HEED_FIND(hook, ...) || (name == #hook && has_##hook<P>)
    return false HEED_HOOKS(HEED_FIND);
#undef HEED_FIND
}

/// A string as a template argument.
template <std::size_t N>
struct hook_name {
    char text[N]{};

    consteval hook_name(const char (&name)[N])
    {
        for (std::size_t i = 0; i < N; ++i) text[i] = name[i];
    }
    constexpr std::string_view view() const { return {text, N - 1}; }
};

}  // namespace detail

/// Lists the hooks of a policy, so that the compiler checks them, as `override` does for virtual functions:
///
///     using hooks = heed::hooks<"prepare", "project", "match">;
///
/// Names that are not hooks, or that the policy does not have, are compile errors. So is a member with the name of a
/// hook that heed cannot call, unless the policy's list omits that name.
template <detail::hook_name... Names>
struct hooks {
    /// Is `name` in the list?
    static consteval bool lists(std::string_view name) { return ((Names.view() == name) || ...); }
    /// Are all names in the list hooks?
    static consteval bool exist() { return (detail::is_hook(Names.view()) && ...); }
    /// Does P have all hooks in the list?
    template <class P>
    static consteval bool are_members()
    {
        return ((!detail::is_hook(Names.view()) || detail::has_hook<P>(Names.view())) && ...);
    }
};

namespace detail {

/// The hooks that P lists; without a list, all names count as listed.
template <class P>
struct listed_hooks : hooks<> {
    static consteval bool lists(std::string_view) { return true; }
};
template <class P>
    requires(std::is_same_v<decltype(P::hooks::lists("")), bool>)
struct listed_hooks<P> : P::hooks {};

/// Does P list its hooks without this one?
template <class P>
consteval bool leaves_out(std::string_view name)
{
    return !listed_hooks<P>::lists(name);
}

}  // namespace detail

// Rejects a hook of this row that P has, but not for arguments of these types. A static assertion requires a literal.
// clang-format off
#define HEED_MAY_LACK(P, row, ...)                                                                                     \
    static_assert(HEED_HOOK_##row(HEED_CAN_CALL)<P __VA_OPT__(,) __VA_ARGS__> || !HEED_HOOK_##row(HEED_HAS_HOOK)<P> || \
                  ::heed::detail::leaves_out<P>(HEED_HOOK_##row(HEED_HOOK_NAME)), HEED_HOOK_##row(HEED_CANNOT_CALL))
// clang-format on
#define HEED_CAN_CALL(name, ...) ::heed::hook::name
#define HEED_HAS_HOOK(name, ...) ::heed::detail::has_##name
#define HEED_HOOK_NAME(name, ...) #name
#define HEED_CANNOT_CALL(name, signature, ...)                                                                         \
    "heed: this policy has a member `" #name "`, which heed cannot call: declare it `" signature                       \
    "` (or, if it is not a hook, list your hooks: `using hooks = heed::hooks<...>;`)"

namespace detail {

// call_prepare(policy, otherwise, x...), and so on: the result of the policy's hook for x..., or `otherwise` if the
// policy does not have the hook.
#define HEED_CALL(name, signature, ...)                                                                                \
    template <class P, class Otherwise, class... X>                                                                    \
    decltype(auto) call_##name(const P& policy, Otherwise&& otherwise, X&&... x)                                       \
    {                                                                                                                  \
        if constexpr (hook::name<P, X...>) {                                                                           \
            return policy.name(static_cast<X&&>(x)...);                                                                \
        } else {                                                                                                       \
            static_assert(!has_##name<P> || leaves_out<P>(#name), HEED_CANNOT_CALL(name, signature));                  \
            return static_cast<Otherwise&&>(otherwise);                                                                \
        }                                                                                                              \
    }
HEED_HOOKS(HEED_CALL)
#undef HEED_CALL

}  // namespace detail

}  // namespace heed::inline HEED_TARGET
