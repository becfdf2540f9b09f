// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

#include <heed/core/cxx20.hpp>

/// The names of hooks: does a policy have a member of this name, or of almost this name?
///
/// A hook may be a template, which cannot be asked for without arguments. But in a class derived from the policy and
/// from a struct with members of all names, a name that the policy has as well is ambiguous.
namespace heed {

namespace detail {

// Every name that lacks a letter of the hook's, has a letter twice, or has two neighbours swapped. (A double letter is
// given as one.)
#define HEED_SLIP(X, before, a, b, after) X(before##b##after) X(before##a##a##b##after) X(before##b##a##after)
#define HEED_SLIPS_2(X, before, a, b) HEED_SLIP(X, before, a, b, ) X(before##a) X(before##a##b##b)
#define HEED_SLIPS_3(X, before, a, b, c) HEED_SLIP(X, before, a, b, c) HEED_SLIPS_2(X, before##a, b, c)
#define HEED_SLIPS_4(X, before, a, b, c, d) HEED_SLIP(X, before, a, b, c##d) HEED_SLIPS_3(X, before##a, b, c, d)
#define HEED_SLIPS_5(X, before, a, b, c, d, e)                                                                         \
    HEED_SLIP(X, before, a, b, c##d##e) HEED_SLIPS_4(X, before##a, b, c, d, e)
#define HEED_SLIPS_6(X, before, a, b, c, d, e, f)                                                                      \
    HEED_SLIP(X, before, a, b, c##d##e##f) HEED_SLIPS_5(X, before##a, b, c, d, e, f)
#define HEED_SLIPS_7(X, before, a, b, c, d, e, f, g)                                                                   \
    HEED_SLIP(X, before, a, b, c##d##e##f##g) HEED_SLIPS_6(X, before##a, b, c, d, e, f, g)

// Hooks that are functions, with further slips.
#define HEED_SLIPS_OF_prepare(X) HEED_SLIPS_7(X, , p, r, e, p, a, r, e) X(prepair) X(prepares)
#define HEED_SLIPS_OF_project(X) HEED_SLIPS_7(X, , p, r, o, j, e, c, t) X(projekt) X(projects)
#define HEED_SLIPS_OF_match(X) HEED_SLIPS_5(X, , m, a, t, c, h) X(matches)
#define HEED_SLIPS_OF_match_all(X) HEED_SLIPS_6(X, , mat, c, h, _, a, ll) X(match_al) X(mach_all) X(matchs_all)
#define HEED_SLIPS_OF_start(X) HEED_SLIPS_5(X, , s, t, a, r, t) X(starts)
#define HEED_SLIPS_OF_recall(X) HEED_SLIPS_5(X, , r, e, c, a, ll) X(recal) X(recalls)
#define HEED_SLIPS_OF_advance(X) HEED_SLIPS_7(X, , a, d, v, a, n, c, e) X(advence) X(advanse) X(advances)
#define HEED_SLIPS_OF_weigh_and_advance(X) X(weigh_advance) X(weighs_and_advances) X(weight_and_advance)
#define HEED_SLIPS_OF_query(X) HEED_SLIPS_5(X, , q, u, e, r, y) X(queries)
#define HEED_SLIPS_OF_query_all(X) X(queries_all) X(query_al) X(queryall) X(quer_all) X(querry_all)
#define HEED_SLIPS_OF_follow(X) HEED_SLIPS_5(X, , f, o, ll, o, w) X(follows)
#define HEED_SLIPS_OF_asked_all(X) X(ask_all) X(asked_al) X(askedall) X(aksed_all) X(asks_all)
#define HEED_SLIPS_OF_keys(X) HEED_SLIPS_4(X, , k, e, y, s)
#define HEED_SLIPS_OF_begin(X) HEED_SLIPS_5(X, , b, e, g, i, n) X(begins)
#define HEED_SLIPS_OF_arrive(X) HEED_SLIPS_5(X, , a, rr, i, v, e) X(arive) X(arrives)
#define HEED_SLIPS_OF_after(X) HEED_SLIPS_5(X, , a, f, t, e, r)
#define HEED_SLIPS_OF_thin(X) HEED_SLIPS_4(X, , t, h, i, n) X(thins)
#define HEED_SLIPS_OF_focus(X) HEED_SLIPS_5(X, , f, o, c, u, s) X(focuses)
#define HEED_SLIPS_OF_inside(X) HEED_SLIPS_6(X, , i, n, s, i, d, e) X(insides)
#define HEED_SLIPS_OF_combine_all(X)                                                                                   \
    HEED_SLIPS_7(X, , com, b, i, n, e, _, all) X(combine_al) X(combin_al) X(combines_all)
#define HEED_SLIPS_OF_finish(X) HEED_SLIPS_6(X, , f, i, n, i, s, h)
#define HEED_SLIPS_OF_finish_all(X) X(finishes_all) X(finish_al) X(finishall) X(finsh_all) X(finihs_all)
#define HEED_SLIPS_OF_by_tiles(X) X(by_tile) X(bytiles) X(by_tlies) X(in_tiles)
#define HEED_SLIPS_OF_by_sums(X) X(by_sum) X(bysums) X(by_smus) X(in_sums)
#define HEED_SLIPS_OF_groups(X) HEED_SLIPS_6(X, , g, r, o, u, p, s)
#define HEED_SLIPS_OF_project_words(X) X(project_word) X(projects_words) X(projectwords) X(project_wrods)
#define HEED_SLIPS_OF_check_past(X) X(check_pasts) X(checks_past) X(checkpast) X(chek_past)
#define HEED_SLIPS_OF_grow(X) X(grwo) X(gorw) X(rgow) X(groww)
#define HEED_SLIPS_OF_map(X) X(mapp) X(maap) X(mmap) X(mpa) X(amp) X(maps)
// Hooks that are constants.
#define HEED_SLIPS_OF_reads_word(X) X(read_word) X(reads_words) X(readsword) X(reads_wrod) X(raeds_word) X(needs_word)
#define HEED_SLIPS_OF_reads_context(X) X(read_context) X(reads_contexts) X(readscontext) X(reads_contex)
#define HEED_SLIPS_OF_reads_length(X) X(read_length) X(reads_lengths) X(readslength) X(reads_lenght) X(reads_lenth)
#define HEED_SLIPS_OF_row_by_row(X) X(rowbyrow) X(row_by_rows) X(rows_by_row) X(by_row) X(by_rows) X(row_by)
#define HEED_SLIPS_OF_differentiable(X)                                                                                \
    X(differentable) X(diferentiable) X(differantiable) X(differenciable) X(is_differentiable)
#define HEED_SLIPS_OF_random(X) X(randm) X(randon) X(ramdom) X(is_random)
#define HEED_SLIPS_OF_ages(X) X(agse) X(aegs) X(aging)
#define HEED_SLIPS_OF_prepares_alike(X) X(prepare_alike) X(prepares_alik) X(preparesalike)
#define HEED_SLIPS_OF_never_negative(X) X(never_negativ) X(not_negative) X(nevernegative) X(nonnegative) X(non_negative)
#define HEED_SLIPS_OF_asks_never_negative(X) X(ask_never_negative) X(asks_nonnegative) X(asks_non_negative)
#define HEED_SLIPS_OF_ignores_offset(X) X(ignore_offset) X(ignores_offsets) X(ignoresoffset) X(ignores_ofset)
#define HEED_SLIPS_OF_commutes_with_matrices(X)                                                                        \
    X(commute_with_matrices) X(commutes_with_matrix) X(comutes_with_matrices) X(commutes_with_matrixes)
#define HEED_SLIPS_OF_widens_keys(X) X(widen_keys) X(widens_key) X(widenskeys) X(wides_keys) X(widenes_keys)
#define HEED_SLIPS_OF_counts_queries(X) X(count_queries) X(counts_query) X(countsqueries) X(counts_querys)
#define HEED_SLIPS_OF_cuts(X) X(cut) X(cutts) X(ctus) X(custs)
// Hooks that are types.
#define HEED_SLIPS_OF_wraps(X) HEED_SLIPS_5(X, , w, r, a, p, s)
#define HEED_SLIPS_OF_in_kernels(X) X(in_kernel) X(inkernels) X(in_kernals) X(in_kernal) X(in_kernles)

// clang-format off
#define HEED_FUNCTION_HOOKS(X)                                                                                         \
    X(prepare) X(project) X(match) X(match_all) X(start) X(recall) X(advance) X(grow) X(groups) X(project_words)       \
    X(check_past) X(follow) X(asked_all) X(query) X(query_all) X(keys) X(begin) X(arrive) X(after)                     \
    X(weigh_and_advance) X(thin) X(focus) X(inside) X(by_tiles) X(by_sums) X(combine_all) X(finish) X(finish_all) X(map)
#define HEED_HOOKS(X)                                                                                                  \
    HEED_FUNCTION_HOOKS(X) X(reads_word) X(reads_context) X(reads_length) X(row_by_row) X(differentiable) X(random)    \
    X(ages) X(ignores_offset) X(cuts) X(commutes_with_matrices) X(prepares_alike) X(never_negative)                    \
    X(asks_never_negative) X(widens_keys) X(counts_queries) X(wraps) X(in_kernels)
// clang-format on

#define HEED_DECLARE(name) void name() const;
#define HEED_DECLARE_ALL(hook) HEED_DECLARE(hook) HEED_SLIPS_OF_##hook(HEED_DECLARE)
struct all_names {
    void operator()() const;
    HEED_HOOKS(HEED_DECLARE_ALL)
};
#undef HEED_DECLARE_ALL
#undef HEED_DECLARE

template <class P>
struct beside_names : P, all_names {};

/// Can the names of its members be asked for? Not those of a final class.
template <class P>
concept shows_names = std::is_class_v<P> && !std::is_final_v<P>;

template <class P>
struct only : P {};

// has_prepare<P>, and so on: is there a member of this name? misspells_prepare<P>(): is there one of almost this name,
// which is no data? The name of the policy itself is neither.
#define HEED_IS_FREE(name) &beside_names<P>::name;
#define HEED_CLASHES(names)                                                                                            \
    !requires { names }
#define HEED_IS_OWN(name)                                                                                              \
    requires { requires std::is_base_of_v<typename only<P>::name, P>; }
#define HEED_IS_TAKEN(name)                                                                                            \
    if constexpr (HEED_CLASHES(HEED_IS_FREE(name)) && !HEED_IS_OWN(name)) {                                            \
        if constexpr (!requires { requires std::is_member_object_pointer_v<decltype(&P::name)>; }) return true;        \
    }
#define HEED_ASK_NAME(hook)                                                                                            \
    template <class P>                                                                                                 \
    concept has_##hook = shows_names<P>&& HEED_CLASHES(HEED_IS_FREE(hook)) && !HEED_IS_OWN(hook);                      \
    template <class P>                                                                                                 \
    consteval bool misspells_##hook()                                                                                  \
    {                                                                                                                  \
        if constexpr (shows_names<P>) {                                                                                \
            if constexpr (HEED_CLASHES(HEED_SLIPS_OF_##hook(HEED_IS_FREE))) { HEED_SLIPS_OF_##hook(HEED_IS_TAKEN) }    \
        }                                                                                                              \
        return false;                                                                                                  \
    }
HEED_HOOKS(HEED_ASK_NAME)

template <class P>
concept has_call = shows_names<P> && HEED_CLASHES(HEED_IS_FREE(operator()));
#undef HEED_ASK_NAME
#undef HEED_IS_TAKEN
#undef HEED_IS_OWN
#undef HEED_CLASHES
#undef HEED_IS_FREE

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

enum class hook_found { unknown, missing, present };

/// Does P have a hook of this name?
template <class P>
consteval hook_found find_hook(std::string_view name)
{
#define HEED_FIND(hook)                                                                                                \
    if (name == #hook) return has_##hook<P> ? hook_found::present : hook_found::missing;
    HEED_HOOKS(HEED_FIND)
#undef HEED_FIND
    return hook_found::unknown;
}

}  // namespace detail

/// The hooks that a policy has, so that all of them are checked, as `override` does for virtual functions:
///
///     using hooks = heed::hooks<"prepare", "project", "match">;
///
/// A name that is no hook is refused, and so is one that the policy does not have. Without the list, heed refuses
/// members with almost the name of a hook, and hooks that it cannot call; with it, a policy may have such members.
template <detail::hook_name... Names>
struct hooks {
    /// Is it one of these names?
    static consteval bool lists(std::string_view name) { return ((Names.view() == name) || ...); }

    template <class P>
    static consteval bool all(detail::hook_found least)
    {
        return ((detail::find_hook<P>(Names.view()) >= least) && ...);
    }
};

namespace detail {

/// Does P declare its hooks?
template <class P>
concept lists_hooks = std::is_same_v<decltype(P::hooks::lists("")), bool>;

/// May heed go without this hook: has P no such member, or does it list its hooks, and this is not one of them?
template <class P>
consteval bool may_lack(std::string_view name)
{
    if constexpr (lists_hooks<P>) {
        return !P::hooks::lists(name);
    } else {
        return find_hook<P>(name) != hook_found::present;
    }
}

}  // namespace detail

}  // namespace heed
