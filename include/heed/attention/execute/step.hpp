// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <heed/attention/make_memory.hpp>
#include <heed/attention/masks.hpp>
#include <heed/attention/memory.hpp>
#include <heed/attention/plan.hpp>
#include <heed/attention/query.hpp>
#include <heed/attention/state.hpp>
#include <heed/ops/by_rows.hpp>
#include <heed/ops/windows.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/query.hpp>
#include <heed/policy/query_numbers.hpp>
#include <heed/policy/score_hooks.hpp>
#include <heed/policy/step_context.hpp>
#include <heed/policy/step_kernel.hpp>
#include <heed/policy/weigh.hpp>

/// One step of attention, written once for all families of tensors.
///
///     state = observe_memory(state.score, at, memory)        the score's state, given this query
///     seen = body(query(projected, state), keys(k, state))   a kernel; or score, normalizer and combiner
///     next = advance(state, seen.weights, seen.context, at)  the state for the next query
///
/// Temporaries, [T,A] per sentence, are never made for a whole batch: the body runs by rows, see ops/by_rows.hpp.
namespace heed::inline HEED_TARGET::detail {

/// Nothing to cut: the normalizer is without a window, or the window is already cut (in_window).
template <class Where = nowhere>
struct no_window {
    using tag = Where;
    no_window map(const auto&) const { return {}; }
};

/// The input of a step's body, with elements of type T.
template <class T, class Score, class Normalize, class Combine, class Query, class Keys, class Values, class State,
          class History, class Given, class Masks, class Window>
struct step_input {
    using element = T;
    static constexpr bool shared = shares_rows<std::remove_cvref_t<Keys>>;

    std::type_identity<T> numbers;
    lengths_view real;
    std::size_t step, head;
    Score score;
    Normalize normalize;
    Combine combine;
    Query query;        // [B,A] projected
    Keys keys;          // [B,T,A]
    Values values;      // [B,T,D]
    State score_state;  // the score's state
    History history;    // the normalizer's state
    Given given;        // the query as it was given
    Masks masks;
    Window window;

    /// The input with `row` applied to every tensor that has a row for each sentence, and `whole` to the parameters.
    auto map(const auto& row, const auto& whole) const
    {
        return detail::step_input{numbers,
                                  row.part(real),
                                  step,
                                  head,
                                  map_parameters(score, whole),
                                  map_parameters(normalize, whole),
                                  map_parameters(combine, whole),
                                  map_query(query, row),
                                  row(keys),
                                  row(values),
                                  score_state.map(row),
                                  history.map(row),
                                  map_query(given, row),
                                  masks.map(row),
                                  window.map(row)};
    }
    void visit(const auto& row, const auto& whole) const { (void)map(row, whole); }
};
template <class T, class... X>  // X: references to lvalues
step_input(std::type_identity<T>, lengths_view, std::size_t, std::size_t, X&&...)->step_input<T, X...>;

/// Does a policy return an array although its input is in the workspace?
template <class Result, class Given>
inline constexpr bool owns_beside = owning_tensor<Result>&& family_of<Given>::rank == family_rank::workspace_tensor;

/// The body of a step: cuts the window, lets wrappers add to the keys, and runs a kernel, if `fused`, or score,
/// normalizer and combiner one after the other. `With` is weights_too or context_only.
template <bool fused, class With>
struct step_body {
    template <class In>
    auto operator()(const In& in) const
    try {
        namespace over = heed::score::over;
        using window = std::remove_cvref_t<decltype(in.window)>;
        const step_context<std::remove_cvref_t<decltype(in.given)>, std::remove_cvref_t<decltype(in.masks)>,
                           typename window::tag>
            at{in.real, in.step, in.given, in.masks, in.head};
        const auto& score = over::innermost(in.score);
        using innermost = std::remove_cvref_t<decltype(score)>;
        const auto keys = over::keys(in.score, in.keys, in.score_state);  // [B,T,A]
        if constexpr (fused) {
            using kernel = step_kernel<innermost, std::remove_cvref_t<decltype(in.normalize)>,
                                       std::remove_cvref_t<decltype(in.combine)>>;
            return wanted(With{}, kernel::answer(score, in.normalize, in.combine,
                                                 operands{in.query, keys, in.values, in.history, at.real}, With{}));
        } else {
            const auto scores =
                over::compare(score, in.query, keys, over::innermost_state(in.score, in.score_state));  // [B,T]
            static_assert(rank_of<decltype(scores)> ==
                              (score_traits_of<innermost>().weights == weight_kind::per_position ? 2 : 3),
                          "heed: the score's result has the wrong rank: a score per position gives [B,T], a score per "
                          "dimension gives [B,T,D], a score per group [B,T,G]");
            static_assert(!owns_beside<decltype(scores), decltype(keys)>,
                          "heed: the score returns an array, but must return tensors of the same kind as its "
                          "arguments: heed::constant_like(keys, shape, value) makes a constant, "
                          "heed::same_family(keys, x) converts an array x");
            auto seen = weigh_with_next(in.normalize, scores, in.history, at);  // weights [B,T]
            static_assert(!owns_beside<decltype(seen.weights), decltype(scores)>,
                          "heed: the normalizer returns an array, but must return weights of the same kind as the "
                          "scores: heed::constant_like(scores, shape, value) makes a constant, "
                          "heed::same_family(scores, x) converts an array x");
            auto context = combined(in.combine, combiner_weights(in.normalize, seen.weights, at), in.values, at);
            return wanted(With{}, outcome{std::move(context), std::move(seen.weights), std::move(seen.next)});
        }
    } catch (const shape_error& found) {
        rethrow_naming(found, heed::score::over::innermost(in.score),
                       {detail::named("the projected query", in.query), detail::named("the keys", in.keys),
                        detail::named("the values", in.values)});
    }

    /// Runs on the positions in a window; returns weights and history of all positions.
    template <class In>
        requires requires(const In& in) { in.window.where; }
    auto operator()(const In& in) const
    {
        window_view where = in.window.where;
        if (in.real.batch() == 1) where.width = where.count[0];
        const out_of_windows cut{where};
        auto part = (*this)(detail::step_input{in.numbers, where.count, in.step, in.head, in.score,
                                               inside_of(in.normalize, in.window), in.combine, in.query, cut(in.keys),
                                               cut(in.values), in.score_state.map(cut), in.history.map(cut), in.given,
                                               in.masks.map(cut), no_window<in_window>{}});
        const auto put = [&where](const auto& whole, const auto& x) { return ops::put_window(whole, x, where); };
        auto history = in.history.map(put, part.history);
        auto weights = spread(With{}, std::move(part.weights), where, shape_of(in.keys)[1]);
        return outcome{std::move(part.context), std::move(weights), std::move(history)};
    }

private:
    /// The outcome with or without weights; weights of a window are placed among those of all positions.
    static auto wanted(weights_too, auto all) { return all; }
    static auto wanted(context_only, auto all)
    {
        auto none = constant_like(all.context, shape_of_rank<2>{shape_of(all.context)[0], 0}, 0.0);
        return outcome{std::move(all.context), std::move(none), std::move(all.history)};
    }
    static auto spread(weights_too, const auto& weights, const window_view& where, std::size_t positions)
    {
        return ops::spread_window(weights, where, positions);
    }
    static auto spread(context_only, auto none, const window_view&, std::size_t) { return none; }
};

/// The normalizer that computes weights: the one inside the window, if any.
const auto& weighing(const auto& normalize, const auto&) { return normalize; }
decltype(auto) weighing(const cuts_windows auto& normalize, const auto& at)
{
    return inside_of(normalize, window_at(normalize, at, 0));
}

/// The executor of a step's body, from the types of attention, keys, states and step context. By rows, because
/// temporaries are as large as the keys; for the whole batch if one kernel does all the work, or if a state's tensors
/// cannot be reached.
template <class Attention, class Keys, class State, class History, class At>
consteval step_executor executor_of_step()
{
    namespace over = heed::score::over;
    using attend = const Attention&;
    using kernel = step_kernel<
        std::remove_cvref_t<decltype(over::innermost(std::declval<attend>().score))>,
        std::remove_cvref_t<decltype(detail::weighing(std::declval<attend>().normalize, std::declval<const At&>()))>,
        std::remove_cvref_t<decltype(summing(std::declval<attend>().combine))>>;
    constexpr bool by_row = mappable_query<typename At::query_type> && mappable_state<State> && mappable_state<History>;
    constexpr bool fused = std::is_same_v<typename At::masks_type, no_masks> && requires
    {
        typename kernel::operation;
    };
    constexpr bool whole = !cuts_windows<decltype(Attention::normalize)> && !shares_rows<Keys>;
    if (!fused) return by_row ? step_executor::composed_by_row : step_executor::composed;
    if constexpr (fused && whole)
        if (!over::changes_keys<decltype(Attention::score), Keys, State>()) return step_executor::fused;
    return by_row ? step_executor::fused_by_row : step_executor::fused;
}

/// A memory as a step reads it, in the family of tensors that computes.
template <class Keys, class Values>
struct source_of_step {
    Keys keys;
    Values values;
    std::size_t batch, positions, width;
    lengths_view real, dropped;  // see heed::memory
    std::size_t next_position;
};
decltype(auto) rows_of_memory(const auto&, const auto& x, const auto& bring) { return bring(x); }
template <class T>
auto rows_of_memory(const memory<cache_tensor<T>, cache_tensor<T>>&, const cache_tensor<T>& x, const auto&)
{
    return growing_rows<cache_tensor<T>>{x};
}
auto rows_of_memory(const shared_by_rows auto& memory, const auto& x, const auto&)
{
    return shared_rows<std::remove_cvref_t<decltype(x)>>{x, memory.sentence.data()};
}
void require_sentences(const auto&) {}
void require_sentences(const shared_by_rows auto& memory) { memory.require_sentences(); }
auto source_in(const auto& memory, const auto& bring)
{
    require_sentences(memory);
    const auto rows = [&](const auto& x) -> decltype(auto) { return rows_of_memory(memory, x, bring); };
    return source_of_step<decltype(rows(memory.keys)), decltype(rows(memory.values))>{
        rows(memory.keys), rows(memory.values), memory.batch(), memory.positions(),
        memory.width(),    memory.real,         memory.dropped, memory.next_position()};
}

/// A state in the family of tensors that computes: its taped counterpart, if it has one and the step is taped.
const auto& state_in(const auto& state, const auto&) { return state; }
template <reachable_state State>
auto state_in(const State& state, const auto& bring)
{
    using history = decltype(state.normalize.map(bring));
    using score_state = decltype(state.score.map(bring));
    using brought = attention_state<history, score_state>;
    if constexpr (State::has_tensors && !std::is_same_v<brought, State> && taped_state<brought>) {
        if (const brought* const taped = on_tape_of<brought>(state)) return *taped;
    }
    return brought{state.normalize.map(bring), state.step, state.score.map(bring), state.head};
}

/// Throws shape_error unless a tensor has a row for each sentence.
struct require_row_per_sentence {
    const char* name;
    std::size_t batch;

    template <tensor X>
    visited operator()(const X& x) const
    {
        const auto is = shape_of(x);
        auto must = is;
        must[0] = batch;
        require_shape("attention", name, is, must, "one row for each sentence of the memory");
        return {};
    }
};

/// Throws shape_error unless every tensor of a state has a row for each sentence. (A state without tensors is a
/// counter, which fits any batch.)
void require_rows(const auto&, const require_row_per_sentence&) {}
void require_rows(const mappable_state auto& state, const require_row_per_sentence& look) { (void)state.map(look); }
void require_state_of(std::size_t batch, const auto& score_state, const auto& history)
{
    require_rows(history, require_row_per_sentence{"the normalizer's state", batch});
    require_rows(score_state, require_row_per_sentence{"the score's state", batch});
}

/// The window of a step; no_window for a normalizer without one. Throws shape_error unless the history fits the memory.
no_window<> window_of_step(const auto&, const auto&, const auto&, std::size_t, std::size_t) { return {}; }
auto window_of_step(const cuts_windows auto& normalize, const auto& at, const auto& history, std::size_t batch,
                    std::size_t positions)
{
    (void)history.map([&](const auto& x) {
        auto must = shape_of(x);
        must[0] = batch;
        must[1] = positions;
        require_shape("attention", "the state", shape_of(x), must, "from start() of the same memory");
        return visited{};
    });
    return window_at(normalize, at, positions);
}

/// Runs the body of a step for `batch` sentences, with about `work` multiplications for each.
template <class Family, step_executor by, class With, class In>
auto run_body(const In& in, std::size_t batch, std::size_t work)
{
    constexpr step_body<by == step_executor::fused || by == step_executor::fused_by_row, With> body{};
    if constexpr (by == step_executor::fused || by == step_executor::composed) {
        return body(in);
    } else {
        (void)map_query(in.query, require_row_per_sentence{"the projected query", batch});
        (void)map_query(in.given, require_row_per_sentence{"the query", batch});
        require_state_of(batch, in.score_state, in.history);
        auto seen = by_rows(Family{}, body, in, batch, work);
        const auto second = [](const auto&, const auto& x) { return x; };
        auto history = in.history.map(second, seen.history);  // with the types of the caller's state
        return outcome{std::move(seen.context), std::move(seen.weights), std::move(history)};
    }
}

/// A history includes every score, even of positions that this query may not see. Kernels skip those, so with a history
/// lengths become a mask.
template <class Attention, class Mask>
inline constexpr bool lengths_are_a_mask =
    std::is_convertible_v<const Mask&, lengths_view>&& remembers<decltype(Attention::normalize)>;

/// One step in a family of tensors, to which `bring` converts memory and masks; composed if `specified`. `given` is the
/// unprojected query, `known` the positions of each row that the state remembers.
template <class Family, bool specified, class With, class Attention, class Mask>
auto step(const Attention& attend, const auto& memory, const auto& projected, const auto& given, const auto& state,
          const Mask& mask, const auto& bring, const auto& known)
{
    namespace over = heed::score::over;
    using score = decltype(Attention::score);
    using number = element_of<decltype(memory.keys)>;
    // Weights per position cost nothing to keep, and a score that advances its state needs them.
    using with = std::conditional_t<score::traits.weights == weight_kind::per_position || over::advances<score>(),
                                    weights_too, With>;
    const auto source = source_in(memory, bring);  // keys [B,T,A], values [B,T,D]
    const auto masks = masks_of<Family, number, lengths_are_a_mask<Attention, Mask>>(memory.mask, mask, bring);
    const lengths_view real = visible_lengths(mask, memory.real, source.positions);
    masks.require(source.batch, source.positions);
    require_state_of(source.batch, state.score, state.normalize);
    const step_context at{real, state.step, given, masks, state.head};
    auto score_state = detail::grown_state(attend.score, over::observe_memory(attend.score, state.score, at, source),
                                           known, memory, at);
    const auto query = over::query(attend.score, projected, score_state);  // [B,A]
    const auto history = detail::grown_history(attend.score, attend.normalize, state.normalize, known, memory);
    const auto window = window_of_step(attend.normalize, at, history, source.batch, source.positions);
    const detail::step_input in{std::type_identity<number>{},
                                real,
                                state.step,
                                state.head,
                                attend.score,
                                attend.normalize,
                                summing(attend.combine),
                                query,
                                source.keys,
                                source.values,
                                score_state,
                                history,
                                given,
                                masks,
                                window};
    constexpr step_executor by =
        specified ? step_executor::composed
                  : executor_of_step<Attention, std::remove_cvref_t<decltype(source.keys)>, decltype(score_state),
                                     std::remove_const_t<decltype(history)>, std::remove_const_t<decltype(at)>>();
    // context [B,D], weights [B,T] or [B,T,D]
    auto seen = run_body<Family, by, with>(in, source.batch, 8 * source.positions * source.width);
    auto context = [&] {  // [B,D]
        if constexpr (!wraps_another<decltype(Attention::combine)> || !requires { window.where; }) {
            return finished(attend.combine, seen.context, source.positions, at);
        } else {
            const auto within = masks.map(out_of_windows{window.where});
            return finished(attend.combine, seen.context, window.where.width,
                            in_windows(step_context{window.where.count, state.step, given, within, state.head}));
        }
    }();
    auto next = over::advance(attend.score, std::move(score_state), seen.weights, context, at);
    attention_state<decltype(seen.history), decltype(next)> after{std::move(seen.history), state.step + 1,
                                                                  std::move(next), state.head};
    return step_result{std::move(context), std::move(seen.weights), std::move(after)};
}

}  // namespace heed::inline HEED_TARGET::detail
