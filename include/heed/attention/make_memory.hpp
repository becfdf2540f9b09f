// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention/memory.hpp>
#include <heed/attention/query.hpp>
#include <heed/attention/state.hpp>
#include <heed/core/cache_tensor.hpp>
#include <heed/core/family.hpp>
#include <heed/core/mask.hpp>
#include <heed/core/shared_tensor.hpp>
#include <heed/ops/by_rows.hpp>
#include <heed/ops/masks.hpp>
#include <heed/ops/shape.hpp>
#include <heed/ops/windows.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/hooks.hpp>
#include <heed/policy/query_numbers.hpp>
#include <heed/policy/score_hooks.hpp>
#include <heed/policy/state.hpp>
#include <heed/policy/weigh.hpp>

/// `on`, once per batch: positions that may not be attended to are cleared, then the score prepares the keys.
namespace heed::inline HEED_TARGET::detail {

/// Calls f(first, count) for ranges of [B,T] that may not be attended to.
void each_hidden(const lengths& limit, const shape_of_rank<3>& shape, const auto& f)
{
    for (std::size_t b = 0; b < shape[0]; ++b) f(b * shape[1] + limit[b], shape[1] - limit[b]);
}
void each_hidden(const boolean_mask<2>& limit, const shape_of_rank<3>& shape, const auto& f)
{
    for (std::size_t i = 0; i < shape[0] * shape[1]; ++i)
        if (limit[i] == 0) f(i, std::size_t{1});
}

/// A copy of x [B,T,D] with zeros at hidden positions.
auto cleared_copy(const auto& x, const lengths& limit) { return ops::clear_padding(x, limit); }
auto cleared_copy(const auto& x, const boolean_mask<2>& limit) { return ops::zero_masked(x, limit); }

/// Checks and returns annotations or values [B,T,D].
template <tensor X>
array<plain_number<element_of<X>>, 3> annotations_meant(X&&)
{
    static_assert(rank_of<X> != 4,
                  "heed: heads that are already projected, [B,H,T,d], are for the `on` and `extend` of an attention, "
                  "both keys and values; a multi_head takes annotations [B,T,D] and projects them itself");
    static_assert(
        rank_of<X> == 3 || rank_of<X> == 4,
        "heed: attention::on takes annotations [B,T,D] ([1,T,D] for one sentence), and values [B,T,D] if keys are "
        "computed from other annotations; `extend` takes annotations [B,t,D] ([B,1,D] for one position)");
    return {};
}
template <tensor X>
    requires(rank_of<X> == 3)
X && annotations_meant(X&& x) { return std::forward<X>(x); }

/// x [B,T,D] with zeros at the positions that may not be attended to. A moved array is cleared in place; other arrays
/// are copied, since a memory owns its tensors. Other tensors, such as views, are copied only if a position is hidden.
template <tensor X>
auto cleared_in(const X& x, const auto& limit)
{
    bool hides_any = false;
    each_hidden(limit, shape_of(x), [&](std::size_t, std::size_t count) { hides_any = hides_any || count > 0; });
    using kept = std::conditional_t<owning_tensor<X>, shared_tensor<element_of<X>, 3>, X>;
    return hides_any ? kept(cleared_copy(x, limit)) : kept(x);
}
template <class T>
array<T, 3> cleared_in(const array<T, 3>& x, const auto& limit)
{
    return cleared_copy(x, limit);
}
template <class T>
array<T, 3> cleared_in(array<T, 3>&& x, const auto& limit)
{
    array<T, 3> here = std::move(x);
    const auto shape = shape_of(here);
    each_hidden(limit, shape, [data = here.data(), D = shape[2]](std::size_t first, std::size_t count) {
        std::fill_n(data + first * D, count * D, T(0));
    });
    return here;
}
template <tensor X, source_limit Limit>
auto cleared(const char* where, X&& x, const Limit& limit)
{
    const auto shape = shape_of(x);
    limit.require(where, {shape[0], shape[1]});
    return cleared_in(std::forward<X>(x), limit);
}

/// The lengths and the mask in the limits of a batch.
inline const lengths& real_in(const lengths& limit) { return limit; }
inline lengths real_in(const boolean_mask<2>& limit) { return lengths::full(limit.shape()[0], limit.shape()[1]); }
inline no_mask mask_in(const lengths&) { return {}; }
inline const boolean_mask<2>& mask_in(const boolean_mask<2>& limit) { return limit; }

/// The memory that `make` builds from annotations, from values if they differ, and from lengths or a mask if some
/// positions are missing. `where` begins the messages. The last argument of `make`: were values given?
template <tensor X, source_limit Limit>
auto from_source(const char* where, const auto& make, X&& annotations, const Limit& limit)
{
    auto both = detail::cleared(where, detail::annotations_meant(std::forward<X>(annotations)), limit);
    return make(both, std::move(both), real_in(limit), mask_in(limit),
                false);  // the values are moved after the keys are made
}
template <tensor X, tensor V, source_limit Limit>
auto from_source(const char* where, const auto& make, X&& annotations, V&& values, const Limit& limit)
{
    decltype(auto) of_keys = detail::annotations_meant(std::forward<X>(annotations));
    decltype(auto) of_values = detail::annotations_meant(std::forward<V>(values));
    const auto shape = shape_of(of_keys);
    require_shape(where, "the values", shape_of(of_values), {shape[0], shape[1], shape_of(of_values)[2]},
                  "one for each annotation");
    const auto keys_from = detail::cleared(where, std::forward<decltype(of_keys)>(of_keys), limit);
    return make(keys_from, detail::cleared(where, std::forward<decltype(of_values)>(of_values), limit), real_in(limit),
                mask_in(limit), true);
}
template <tensor First, tensor... Rest>
auto from_source(const char* where, const auto& make, First&& annotations, Rest&&... values)
{
    decltype(auto) first = detail::annotations_meant(std::forward<First>(annotations));
    const auto shape = shape_of(first);
    return detail::from_source(where, make, std::forward<decltype(first)>(first), std::forward<Rest>(values)...,
                               lengths::full(shape[0], shape[1]));
}

/// The arguments of a combiner's `prepare_values`.
template <class Annotations, class Keys, class Mask, class Score, class Normalize>
struct source_of_values {
    const Annotations& annotations;
    const Keys& keys;
    const lengths& real;
    const Mask& mask;
    const Score& score;
    const Normalize& normalize;
};
template <class Annotations, class Keys, class Mask, class Score, class Normalize>
source_of_values(const Annotations&, const Keys&, const lengths&, const Mask&, const Score&, const Normalize&)
    -> source_of_values<Annotations, Keys, Mask, Score, Normalize>;

/// Makes the memory from annotations and values that are already cleared.
template <class Attention>
struct memory_by {
    const Attention& attend;
    lengths_view first{};  // the position of the first annotation of each row; empty: 0

    /// `values` may be the annotations themselves: they are moved only after the keys are made.
    template <class Values, class Mask>
    auto operator()(const tensor auto& annotations, Values&& values, lengths real, Mask mask, bool values_given) const
    {
        using score_type = std::remove_cvref_t<decltype(Attention::score)>;
        const auto& score = attend.score;
        auto keys = heed::score::over::prepare(score, annotations, first.batch() == 0 ? 0 : first[0]);
        // Keys that are not an array are the annotations themselves.
        if constexpr (is_array<decltype(keys)> && hook::prepare<score_type, decltype(annotations), std::size_t>) {
            for (std::size_t b = 1; b < first.batch(); ++b) {
                if (first[b] == first[0]) continue;
                const auto row =
                    rows_of_view(tensor_view<const element_of<decltype(keys)>, 3>(view_of(annotations)), {b, 1});
                const auto of_row = heed::score::over::prepare(score, row, first[b]);
                std::copy_n(view_of(of_row).data, view_of(of_row).size(), view_of(keys)[b].data);
            }
        }
        auto prepared = [&] {
            const auto& combine = heed::summing(attend.combine);
            using combine_type = std::remove_cvref_t<decltype(combine)>;
            using source = decltype(source_of_values{annotations, keys, real, mask, score, attend.normalize});
            if constexpr (hook::prepare_values<combine_type, decltype(values), source>) {
                if (first.batch() > 0)
                    throw_error({"attention::extend: the combiner computes values from all positions before them: "
                                 "heed::streaming keeps a state instead of a memory"});
                return combine.prepare_values(values,
                                              source_of_values{annotations, keys, real, mask, score, attend.normalize});
            } else {
                HEED_MAY_LACK(combine_type, prepare_values, decltype(values), source);
                return std::remove_cvref_t<Values>(std::forward<Values>(values));
            }
        }();
        auto in_family = same_family(keys, std::move(prepared));
        return memory<decltype(in_family), decltype(keys), Mask>{std::move(in_family), std::move(keys), std::move(real),
                                                                 std::move(mask), values_given};
    }
};
template <class Attention>
memory_by(const Attention&, lengths_view = {}) -> memory_by<Attention>;

/// Throws heed::error unless `more` has separate values if the memory has them, and shape_error unless its rows and
/// widths are those of the memory.
void require_alike(const char* where, const auto& to, const auto& more)
{
    if (to.values_given && !more.values_given) {
        throw_error({where, ": this memory was made from keys and values, `on(x, v)`, and must be extended by both: "
                            "extend(memory, keys, values)"});
    }
    const auto fits = [&](const char* what, const auto& must, const auto& is) {
        const auto shape = shape_of(is);
        require_shape(where, what, shape, {shape_of(must)[0], shape[1], shape_of(must)[2]},
                      "the same rows and width as in the memory, ", shape_of(must));
    };
    fits("the values", to.values, more.values);
    fits("the keys", to.keys, more.keys);
}

/// Throws shape_error unless annotations have one row for each row of a memory.
void require_rows_of(const char* where, const auto& memory, const tensor auto& annotations, const auto&...)
{
    if constexpr (rank_of<decltype(annotations)> == 3) {
        const auto shape = shape_of(annotations);
        require_shape(where, "the annotations", shape, {memory.batch(), shape[1], shape[2]},
                      "one row for each row of the memory");
    }
}

/// The number of the next position of each row of a memory.
lengths next_positions(const auto& memory)
{
    std::vector<std::size_t> next(memory.batch());
    for (std::size_t b = 0; b < next.size(); ++b) next[b] = next_position_of(memory, b);
    return lengths(std::move(next));
}

/// Appends the positions of `more` to a KV cache, which may have padding.
template <class Score, class T, class Values, class Keys>
auto appended(const char* where, const Score& score, memory<cache_tensor<T>, cache_tensor<T>> to,
              const memory<Values, Keys>& more)
{
    require_alike(where, to, more);
    std::vector<std::size_t> real(to.batch());
    for (std::size_t b = 0; b < real.size(); ++b) real[b] = to.real[b] + more.real[b];
    to.values.append(view_of(more.values), more.real);
    if constexpr (heed::score::over::follows<Score, array<T, 3>>()) {
        const auto [B, P, N] = to.keys.shape();
        auto last = filled<T, 3>({B, 1, N}, T(0));  // the last key of each row; zeros for an empty row
        for (std::size_t b = 0; b < B; ++b) {
            if (const std::size_t n = to.keys.length(b); n > 0)
                std::copy_n(to.keys.row(b) + (n - 1) * N, N, last.data() + b * N);
        }
        const auto keys = heed::score::over::continue_keys(score, more.keys, last);
        to.keys.append(view_of(keys), more.real);
    } else {
        to.keys.append(view_of(more.keys), more.real);
    }
    to.real = lengths(std::move(real));
    to.values_given = more.values_given;
    return to;
}

/// Throws shape_error if a row of a memory that will be extended has padding. `instead`: an alternative for the
/// message.
inline void require_no_padding(const char* where, const lengths& real, std::size_t positions, const char* instead = "")
{
    for (std::size_t b = 0; b < real.batch(); ++b) {
        if (real[b] != positions) {
            throw_shape_error({where, ": row ", b, " of the memory has ", number_of{real[b], "real position"}, " of ",
                               positions, "; a memory is extended after its last position, so it must have no padding",
                               instead});
        }
    }
}

/// Appends the positions of `more` to a memory; neither has padding.
template <class Values, class Keys, class MoreValues, class MoreKeys>
auto appended(const char* where, const auto& score, const memory<Values, Keys>& to,
              const memory<MoreValues, MoreKeys>& more)
{
    require_alike(where, to, more);
    require_no_padding(where, to.real, to.positions(), ", or be a KV cache: with_cache(memory)");
    for (std::size_t b = 0; b < more.batch(); ++b) {
        if (more.real[b] != more.positions()) {
            throw_shape_error({where, ": row ", b, " gets ", number_of{more.real[b], "position"}, " of ",
                               more.positions(),
                               "; only a KV cache, with_cache(memory), may have rows of different lengths"});
        }
    }
    auto values = ops::append(to.values, more.values);
    auto keys = ops::append(to.keys, heed::score::over::continue_keys(score, more.keys, to.keys));
    const auto shape = shape_of(values);
    return memory<Values, Keys>{std::move(values), std::move(keys),   lengths::full(shape[0], shape[1]),
                                no_mask{},         more.values_given, to.dropped};
}

// States of a memory that has grown since they were made.
//
// A position that a state does not remember is initialized by `start`, at the first query that sees it: no earlier
// scores, no coverage, the fertility of its annotation. A score recomputes values that depend on several positions,
// such as the convolution of score::with_location, in its hook `grow`.
//
//     old = observe_memory(state.score, at, memory)          the remembered positions
//     state = grow(old, start(memory), at)                    and the new ones
//
// Sentences of a KV cache may differ in length, so a state stores the number of remembered positions for each.

/// States of normalizers and scores with tensors that have one number for each position. A state without tensors fits
/// any memory.
template <class State>
concept state_of_positions = mappable_state<State> && !std::is_empty_v<State> && !holds_no_tensors<State>;

/// Sets `differs` if any tensor of a state has a different number of positions.
struct differs_in_positions {
    static constexpr bool spares_rows = true;

    std::size_t positions;
    bool& differs;

    template <tensor X>
    visited operator()(const X& x) const
    {
        if constexpr (rank_of<X> >= 2) differs = differs || shape_of(x)[1] != positions;
        return {};
    }
};

/// A tensor of a state for all positions of a memory: known positions from x, the others as `start` makes them.
struct with_begun_positions {
    static constexpr bool spares_rows = true;

    const known_positions& known;
    lengths_view real, dropped;  // of the memory
    std::size_t positions;

    template <tensor X, tensor Y>
    X operator()(const X& x, const Y&) const
    {
        return x;
    }
    template <tensor X, tensor Y>
        requires(rank_of<X> >= 2 && rank_of<X> == rank_of<Y>)
    X operator()(const X& x, const Y& begun) const
    {
        const auto is = shape_of(x);
        const bool told = known.batch() != 0;
        if (shape_of(begun)[1] != positions || (is[1] == positions && !told && dropped.batch() == 0)) return x;
        const std::size_t B = real.batch();
        auto* const begins = workspace_family::take<std::size_t>(B);  // of the kept positions, in x
        auto* const counts = workspace_family::take<std::size_t>(B);
        std::size_t longest = 0;
        bool shifts = false;
        for (std::size_t b = 0; b < B; ++b) {
            const std::size_t has = told ? known.counts[b] : is[1], from = told ? known.dropped[b] : 0,
                              first = dropped.batch() == 0 ? 0 : dropped[b], end = first + real[b];
            if (from > first || from + has > end) {
                auto must = is;
                must[1] = positions;
                throw_shape_error({"attention: the state is ", is, " but must be ", must, ": it remembers position ",
                                   from > first ? from : end, " of row ", b,
                                   from > first ? " and none before it, but the memory begins with position "
                                                : ", but the memory has ",
                                   from > first ? first : end,
                                   "; give a state that start() or step() returned for this memory"});
            }
            begins[b] = std::min(has, first - from);
            counts[b] = has - begins[b];
            longest = std::max(longest, counts[b]);
            shifts = shifts || begins[b] > 0;
        }
        const lengths_view kept{counts, B};
        const auto joined = [&](const auto& old) { return ops::join_positions(old, same_family(x, begun), kept); };
        if (!shifts) return joined(x);
        return joined(ops::window_of(x, window_view{begins, kept, longest}));
    }

    /// All positions as `start` makes them, in the family of x.
    template <tensor X, tensor Y>
    X all_of_second(const X& x, const Y& begun) const
    {
        auto* const none = workspace_family::take<std::size_t>(real.batch());
        std::fill_n(none, real.batch(), std::size_t{0});
        return ops::join_positions(x, same_family(x, begun), lengths_view{none, real.batch()});
    }
};

/// Do the positions of a memory differ from those that a state remembers? Throws shape_error if they do and the numbers
/// of rows differ as well.
bool has_grown(const auto& state, const known_positions& known, const auto& memory)
{
    const std::size_t B = memory.real.batch();
    bool differs = known.batch() == 0 ? memory.dropped.batch() != 0 : known.batch() != B;
    for (std::size_t b = 0; b < known.batch() && !differs; ++b) {
        differs = known.counts[b] != memory.real[b] ||
                  known.dropped[b] != (memory.dropped.batch() == 0 ? 0 : memory.dropped[b]);
    }
    if (!differs) (void)state.map(differs_in_positions{memory.positions(), differs});
    if (differs && known.batch() != 0 && known.batch() != B) {
        throw_shape_error({"attention: the state is for ", known.batch(), " sentences, but the memory has ", B,
                           "; select the same rows in both"});
    }
    return differs;
}

/// A normalizer's state as `start` makes it for a memory.
template <class Score>
auto first_history(const Score& score, const auto& normalize, const auto& memory)
{
    constexpr std::size_t rank = Score::traits.weights == weight_kind::per_position ? 2 : 3;
    shape_of_rank<rank> shape{memory.batch(), memory.positions()};
    if (Score::traits.weights == weight_kind::per_dimension) shape.back() = memory.width();
    if constexpr (Score::traits.weights == weight_kind::per_group) shape.back() = score.groups();
    return start_of(normalize, [&memory, &shape](double value) { return constant_like(memory.keys, shape, value); });
}

/// A normalizer's state for all positions of a memory.
template <class State>
State grown_history(const auto&, const auto&, const State& state, const auto&, const auto&)
{
    return state;
}
template <state_of_positions State>
State grown_history(const auto& score, const auto& normalize, const State& state, const known_positions& known,
                    const auto& memory)
{
    if (!has_grown(state, known, memory)) return state;
    return state.map(with_begun_positions{known, memory.real, memory.dropped, memory.positions()},
                     first_history(score, normalize, memory));
}

/// A score's state for all positions of a memory. It has already received the query at `at`.
template <class State>
State grown_state(const auto&, State state, const auto&, const auto&, const auto&)
{
    return state;
}
template <state_of_positions State>
State grown_state(const auto& score, State state, const known_positions& known, const auto& memory, const auto& at)
{
    if (!has_grown(state, known, memory)) return state;
    return heed::score::over::grow(score, state, heed::score::over::start(score, memory),
                                   with_begun_positions{known, memory.real, memory.dropped, memory.positions()}, at);
}

/// Records the positions of a memory in a state if its sentences differ in length or have dropped positions.
void know_positions(auto& state, const auto& memory)
{
    constexpr bool cached = is_cache<std::remove_cvref_t<decltype(memory.keys)>>;
    if constexpr (std::remove_cvref_t<decltype(state)>::has_tensors) {
        state.known = {};
        const lengths_view real = memory.real, dropped = memory.dropped;
        if (dropped.batch() == 0 && !(cached && differ_in_length(real))) return;
        const std::size_t B = real.batch();
        state.known.counts.assign(real.data(), real.data() + B);
        state.known.dropped.resize(B);
        std::copy_n(dropped.data(), dropped.batch(), state.known.dropped.data());
    }
}

/// Records them in the state of a result.
template <class Answer>
Answer knowing_positions(const auto& memory, Answer answer)
{
    know_positions(answer.state, memory);
    return answer;
}

}  // namespace heed::inline HEED_TARGET::detail
