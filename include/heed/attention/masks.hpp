// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention/query.hpp>
#include <heed/core/mask.hpp>
#include <heed/core/workspace_tensor.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/masks.hpp>
#include <heed/ops/shape.hpp>
#include <heed/ops/windows.hpp>
#include <heed/policy/state.hpp>
#include <heed/policy/step_context.hpp>
#include <heed/simd/lookup.hpp>
#include <heed/simd/lookup_table.hpp>
#include <heed/simd/score_index.hpp>

/// Masks as executors read them: predicates, lengths, or nothing, and numbers that are added to scores.
namespace heed::inline HEED_TARGET::detail {

/// The queries to which a mask applies. A mask for one query has no axis of queries.
struct asked_queries {
    std::size_t first, count;  // their numbers
    std::size_t sentences, heads, positions;
    bool one = false;
    bool projected = false;  // heads, whose masks of three axes might be of heads or of sentences

    /// The sizes of a mask for B sentences, H heads, S queries and T positions, 1 where an axis is missing. Throws
    /// shape_error unless each is 1 or whole.
    template <std::size_t N>
    shape_of_rank<4> sizes(const char* name, const shape_of_rank<N>& is) const
    {
        const bool of_heads = N == 4 || (N == 3 && one), of_sentences = N > 2 || one;
        const shape_of_rank<4> sizes{of_sentences ? is[0] : 1, of_heads ? is[1] : 1, one ? 1 : is[N - 2], is[N - 1]},
            must{sentences, heads, one ? 1 : count, positions};
        if (N == 3 && projected && !one && sentences == heads && is[0] > 1) {
            throw shape_error("attention: " + std::string(name) + " " + shape_text(is) + " may be of " +
                              std::to_string(heads) +
                              " heads or of as many sentences; give it four axes, [B,1,S,T] or "
                              "[1,H,S,T]");
        }
        for (std::size_t i = 0; i < 4; ++i) {
            if (sizes[i] == 1 || sizes[i] == must[i]) continue;
            shape_of_rank<N> whole;
            for (std::size_t axis = N, from = 4; axis-- > 0;) {
                do --from;
                while ((from == 2 && one) || (from == 1 && !of_heads) || (from == 0 && !of_sentences));
                whole[axis] = must[from];
            }
            constexpr const char* axes[] = {"", "", ", [S,T]", ", [B,S,T]", ", [B,H,S,T]"};
            throw shape_error("attention: " + std::string(name) + " is " + shape_text(is) + " but must be " +
                              shape_text(whole) + (one ? "" : axes[N]) + "; an axis of size 1 serves all" +
                              (one || N > 2 ? "" : "; for positions of each sentence give present{...} or lengths"));
        }
        return sizes;
    }
};

/// Truth values [B,H,S,T], each axis whole or of size 1, as a function of the index. They are those of a mask, shared.
struct truth_values : predicate_mask {
    std::shared_ptr<const std::vector<std::uint8_t>> values;
    std::ptrdiff_t batch, head;  // from one to the next; 0 if all share one
    std::int32_t query, key;
    std::int32_t first, last_query, last_key;

    template <std::size_t N>
    truth_values(const boolean_mask<N>& of, const shape_of_rank<4>& sizes, std::size_t first_query)
        : values(of.shared_values()),
          batch(step(sizes, 0)),
          head(step(sizes, 1)),
          query(static_cast<std::int32_t>(step(sizes, 2))),
          key(static_cast<std::int32_t>(step(sizes, 3))),
          first(static_cast<std::int32_t>(first_query)),
          last_query(static_cast<std::int32_t>(sizes[2]) - 1),
          last_key(static_cast<std::int32_t>(sizes[3]) - 1)
    {
        if (sizes[2] * sizes[3] > std::size_t{std::numeric_limits<std::int32_t>::max()}) {
            throw shape_error("attention: a boolean mask of " + std::to_string(sizes[2]) + " queries and " +
                              std::to_string(sizes[3]) + " positions is too large; say it by a function of an index");
        }
    }

    HEED_SIMD_INLINE lane_mask operator()(const score_index& p) const
    {
        const std::uint8_t* const from = values->data() + p.batch * batch + p.head * head;
        const detail::strided_index queries = p.query.steps + detail::strided_index{true, -first};
        detail::strided_index place = queries * query + p.key.steps * key;
        if (place.known && place.call != nullptr && place.per_key == 1 && queries.per_lane == 1 && query > 1 &&
            queries.first + static_cast<std::int32_t>(lane_count) - 1 <= last_query) {
            const std::size_t slot = place.call->next++;
            if (slot < detail::lane_memo::slots) {
                const auto odd = static_cast<std::int32_t>(reinterpret_cast<std::uintptr_t>(from) & 1);
                place.first += odd;  // columns begin at even addresses
                const auto found =
                    detail::column_of<false, 1>(from - odd, (last_query + 1) * (last_key + 1) + odd, place, slot);
                lane_mask::vector bits;
                std::memcpy(&bits, &found, sizeof bits);
                return lane_mask(bits != 0);
            }
        }
        // Lanes beyond the last query or key read the last one.
        const auto at =
            simd::within(last_query + 1, p.query.at - first) * query + simd::within(last_key + 1, p.key.at) * key;
        return lane_mask(simd::bytes_at(from, at) != 0);
    }

private:
    static std::ptrdiff_t step(const shape_of_rank<4>& sizes, std::size_t axis)
    {
        std::ptrdiff_t numbers = 1;
        for (std::size_t i = axis + 1; i < 4; ++i) numbers *= static_cast<std::ptrdiff_t>(sizes[i]);
        return sizes[axis] == 1 ? 0 : numbers;
    }
};

/// The first keys of each sentence.
struct keys_of_lengths : predicate_mask {
    lengths real;

    explicit keys_of_lengths(lengths of) : real(std::move(of)) {}
    lane_mask operator()(const score_index& p) const
    {
        return p.key < static_cast<std::int32_t>(real[static_cast<std::size_t>(p.batch) * real.heads()]);
    }
};

/// Keys of the past, and one more for each query.
struct causal_from : predicate_mask {
    std::int32_t first, past;                // the number of the first query of a call, and how many keys there were
    std::int32_t before_first, before_last;  // that query's diagonals, in the longest and in the shortest sentence

    causal_from(std::size_t keys, const asked_queries& queries, const lengths_view& real)
        : first(static_cast<std::int32_t>(queries.first)), past(static_cast<std::int32_t>(keys))
    {
        const auto diagonal = [&](std::size_t n) {
            return static_cast<std::int32_t>(n) - static_cast<std::int32_t>(queries.count);
        };
        before_first = before_last = diagonal(real.batch() > 0 ? real[0] : 0);
        for (std::size_t b = 1; b < real.batch(); ++b) {
            before_first = std::max(before_first, diagonal(real[b]));
            before_last = std::min(before_last, diagonal(real[b]));
        }
    }
    lane_mask operator()(const score_index& p) const { return p.key - p.query <= past; }
    key_range visible_range(std::int32_t, std::int32_t last) const
    {
        return {0, last - before_last + first + past + 1};
    }
    key_range full_range(std::int32_t from, std::int32_t) const { return {0, from - before_first + first + past + 1}; }
};

/// A mask as a predicate for these queries, in sentences of these lengths.
template <class Mask>
const Mask& predicate_of(const Mask& mask, const asked_queries&, const lengths_view&)
{
    return mask;
}
template <std::size_t N>
truth_values predicate_of(const boolean_mask<N>& mask, const asked_queries& queries, const lengths_view&)
{
    return {mask, queries.sizes("the boolean mask", mask.shape()), queries.first};
}
inline truth_values predicate_of(const present& mask, const asked_queries& queries, const lengths_view&)
{
    const auto [B, T] = mask.shape();
    return {mask, queries.sizes<4>("the mask of positions that are present, [B,1,1,T],", {B, 1, 1, T}), queries.first};
}
inline keys_of_lengths predicate_of(const lengths& mask, const asked_queries& queries, const lengths_view&)
{
    mask.require("attention: the mask", queries.sentences * mask.heads(), queries.positions);
    return keys_of_lengths{mask};
}
inline causal_from predicate_of(const causal_upper_left&, const asked_queries& queries, const lengths_view& real)
{
    return {0, queries, real};
}
inline causal_from predicate_of(const causal_after& mask, const asked_queries& queries, const lengths_view& real)
{
    return {mask.past, queries, real};
}
template <class Bias>
no_mask predicate_of(const additive_mask<Bias>&, const asked_queries&, const lengths_view&)
{
    return {};
}
// Unqualified calls: masks of masks find the overloads below by their second argument.
template <class A, class B>
auto predicate_of(const both_masks<A, B>& mask, const asked_queries& queries, const lengths_view& real)
{
    const auto& a = predicate_of(mask.a, queries, real);
    const auto& b = predicate_of(mask.b, queries, real);
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(a)>, no_mask>) {
        return b;
    } else if constexpr (std::is_same_v<std::remove_cvref_t<decltype(b)>, no_mask>) {
        return a;
    } else {
        return both_masks(a, b);
    }
}
template <class A, class B>
auto predicate_of(const either_mask<A, B>& mask, const asked_queries& queries, const lengths_view& real)
{
    return either_mask(predicate_of(mask.a, queries, real), predicate_of(mask.b, queries, real));
}
template <class A>
auto predicate_of(const not_mask<A>& mask, const asked_queries& queries, const lengths_view& real)
{
    return not_mask(predicate_of(mask.a, queries, real));
}

/// The numbers of the additive mask that stands among others.
template <class Bias>
const Bias& bias_of(const additive_mask<Bias>& mask)
{
    return mask.bias;
}
template <class A, class B>
const auto& bias_of(const both_masks<A, B>& mask)
{
    if constexpr ((biases_in<A>) > 0) {
        return detail::bias_of(mask.a);
    } else {
        return detail::bias_of(mask.b);
    }
}

/// A mask, and numbers [B,H,S,T], each axis whole or of size 1, that are added to the scores.
template <class Mask, class Bias>
struct mask_and_bias {
    Mask mask;
    Bias bias;
    asked_queries queries;
    std::size_t head = 0;  // which asks, where the rows are those of one
};
template <class Mask, class Bias>
mask_and_bias(Mask, Bias, const asked_queries&, std::size_t = 0) -> mask_and_bias<Mask, Bias>;

template <class Mask>
inline constexpr bool has_bias = false;
template <class Mask, class Bias>
inline constexpr bool has_bias<mask_and_bias<Mask, Bias>> = true;

/// The type of the numbers that a mask adds; void if it adds none.
template <class Mask>
struct bias_of_mask : std::type_identity<void> {};
template <class Mask>
    requires((biases_in<Mask>) > 0)
struct bias_of_mask<Mask> : std::remove_cvref<decltype(detail::bias_of(std::declval<const Mask&>()))> {};
template <class Mask>
using bias_in = typename bias_of_mask<Mask>::type;

/// x with another shape, of as many numbers: a view of a plain tensor.
template <std::size_t N>
auto seen_as(const tensor auto& x, const shape_of_rank<N>& shape)
{
    return ops::reshaped(x, shape);
}
template <std::size_t N>
auto seen_as(const plain_tensor auto& x, const shape_of_rank<N>& shape)
{
    return tensor_view<const element_of<decltype(x)>, N>{view_of(x).data, shape};
}

/// A mask for these queries, as executors read it: no_mask, lengths and causal as they are, others as a predicate; with
/// numbers that are added, a mask_and_bias. It refers to the mask.
template <class Mask>
decltype(auto) mask_for(const Mask& mask, const asked_queries& queries, const lengths_view& real)
{
    if constexpr ((biases_in<Mask>) > 0) {
        const auto& bias = detail::bias_of(mask);
        return mask_and_bias{detail::predicate_of(mask, queries, real),
                             detail::seen_as(bias, queries.sizes("the additive mask", shape_of(bias))), queries};
    } else if constexpr (std::is_same_v<Mask, lengths>) {
        return (mask);
    } else {
        return detail::predicate_of(mask, queries, real);
    }
}

/// The part of a mask for S queries that applies to query s.
no_mask mask_of_step(const no_mask&, const auto&...) { return {}; }
lengths_view mask_of_step(const lengths& mask, const auto&...) { return mask; }
inline lengths_view mask_of_step(const causal&, std::size_t s, std::size_t S, const lengths_view& real)
{
    auto* const seen = workspace_family::take<std::size_t>(real.batch());
    const std::size_t behind = S > s ? S - s - 1 : 0;  // queries; where there is none at all, one of zeros stands in
    for (std::size_t b = 0; b < real.batch(); ++b) seen[b] = real[b] > behind ? real[b] - behind : 0;
    return {seen, real.batch()};
}

/// The part of each row within its window: of one sentence a piece, of several a copy.
struct out_of_windows {
    static constexpr bool spares_rows = true;

    window_view where;

    auto operator()(const tensor auto& x) const
    {
        auto must = shape_of(x);
        return must[0] == 1 ? ops::positions_between(x, where.begin[0], where.count[0]) : ops::window_of(x, where);
    }
    boolean_mask_view<2> part(const boolean_mask_view<2>& mask) const
    {
        const auto [B, T] = mask.shape();
        if (B == 1) return {mask.data() + where.begin[0], {1, where.count[0]}};
        auto* const some = workspace_family::take<std::uint8_t>(B * where.width);
        std::fill_n(some, B * where.width, std::uint8_t{0});
        for (std::size_t b = 0; b < B; ++b)
            std::copy_n(mask.data() + b * T + where.begin[b], where.count[b], some + b * where.width);
        return {some, {B, where.width}};
    }
};

/// What hides positions in a step: any of three masks, in one type, so that a step under masks is compiled once.
template <class Bias>
struct step_masks {
    std::optional<boolean_mask_view<2>> source, query;  // [B,T]
    std::optional<Bias> bias;                           // [B,T]

    /// The scores, -inf at hidden positions.
    template <tensor E>
    auto visible(const E& scores) const
    {
        using result = typename common_family_of<E, Bias>::template tensor_type<element_of<E>, rank_of<E>>;
        std::optional<result> shown;
        const auto hide = [&](const auto& mask) {
            shown = shown ? ops::masked_fill(*shown, mask) : ops::masked_fill(scores, mask);
        };
        if (source) hide(*source);
        if (query) hide(*query);
        if (bias) return shown ? ops::add_mask(*shown, *bias) : ops::add_mask(scores, *bias);
        return shown ? *std::move(shown) : result(scores);
    }

    /// Is the position i of [B,T] visible?
    bool is_visible(std::size_t i) const
    {
        return (!source || (*source)[i] != 0) && (!query || (*query)[i] != 0) &&
               (!bias || view_of(*bias).data[i] != -std::numeric_limits<element_of<Bias>>::infinity());
    }

    /// The masks with `row` applied to the bias and row.part to the others.
    template <class Row>
    auto map(const Row& row) const
    {
        using bias_type = std::remove_cvref_t<decltype(row(*bias))>;
        step_masks<bias_type> mapped;
        if (source) mapped.source.emplace(row.part(*source));
        if (query) mapped.query.emplace(row.part(*query));
        if (bias) mapped.bias.emplace(row(*bias));
        return mapped;
    }

    /// Throws shape_error unless all are [B,T].
    void require(std::size_t B, std::size_t T) const
    {
        if (source) source->require("attention", {B, T});
        if (query) query->require("attention", {B, T});
        if (bias) {
            require_shape("attention", "the additive mask", shape_of(*bias), shape_of_rank<2>{B, T},
                          "one number for each position");
        }
    }
};

/// How many of the memory's positions the query may see in each row: all real ones, or fewer by a mask of lengths.
lengths_view visible_lengths(const auto&, const lengths_view& real, std::size_t) { return real; }
lengths_view visible_lengths(const std::convertible_to<lengths_view> auto& given, const lengths_view& real,
                             std::size_t positions)
{
    const lengths_view mask = given;
    if (mask.batch() != real.batch()) {
        throw shape_error("attention: the mask has " + std::to_string(mask.batch()) + " lengths but the batch has " +
                          std::to_string(real.batch()) + " rows; give one length per row");
    }
    auto* const both = workspace_family::take<std::size_t>(real.batch());
    for (std::size_t b = 0; b < real.batch(); ++b) {
        if (mask[b] > positions) {
            throw shape_error("attention: the mask shows row " + std::to_string(b) + " the first " +
                              std::to_string(mask[b]) + " positions, but the memory has only " +
                              std::to_string(positions) + "; a length counts positions of the memory");
        }
        both[b] = std::min(mask[b], real[b]);
    }
    return {both, real.batch(), real.first_row(), real.heads()};
}

/// The masks of a step, in the family that computes it, where `bring` brings a tensor. Lengths shorten the rows
/// instead, see below. `Always`: masks that hide nothing, where there are none.
template <class Family, class T, bool Always, class Source, class Mask>
auto masks_of(const Source& source, const Mask& mask, const auto& bring)
{
    constexpr bool of_source = !std::is_same_v<Source, no_mask>,
                   shortens = std::is_convertible_v<const Mask&, lengths_view>,
                   of_query = std::is_convertible_v<const Mask&, boolean_mask_view<2>>, biased = requires
    {
        requires rank_of<decltype(mask.bias)>
        == 2;
    };
    static_assert(of_query || biased || shortens || std::is_same_v<Mask, no_mask>,
                  "heed: the mask of one query is a boolean_mask<2>, an additive_mask of a tensor [B,T], or lengths");
    if constexpr (of_source || of_query || biased || Always) {
        step_masks<typename Family::template tensor_type<T, 2>> all;
        if constexpr (of_source) all.source.emplace(source);
        if constexpr (of_query) all.query.emplace(mask);
        if constexpr (biased) all.bias.emplace(bring(mask.bias));
        return all;
    } else {
        return no_masks{};
    }
}

}  // namespace heed::inline HEED_TARGET::detail

/// Predicate masks as truth values, drawn for the queries of a block or a step and forgotten with their scores.
namespace heed::inline HEED_TARGET::detail {

/// A predicate mask and the queries to which it applies: `all` of them, the first of which has the number `first`.
template <class Mask>
struct predicate_of_queries {
    Mask mask;
    std::size_t first, all, positions, head;

    const predicate_of_queries& rows(std::size_t, std::size_t) const { return *this; }  // lengths know which sentences
};
template <class Mask>
predicate_of_queries(Mask, std::size_t, std::size_t, std::size_t, std::size_t) -> predicate_of_queries<Mask>;

/// A mask together with the numbers of the S queries to which it applies, and their head.
const auto& asked_of_queries(const auto& mask, const auto&, std::size_t, const auto&) { return mask; }
auto asked_of_queries(const any_predicate_mask auto& mask, const auto& memory, std::size_t S, const auto& state)
{
    return predicate_of_queries{mask, query_of_masks(memory, state.step), S, memory.positions(), state.head};
}
template <class Mask, class Bias>
auto asked_of_queries(const mask_and_bias<Mask, Bias>& mask, const auto& memory, std::size_t S, const auto& state)
{
    return mask_and_bias{detail::asked_of_queries(mask.mask, memory, S, state), mask.bias, mask.queries, state.head};
}

/// What `count` queries from the begin-th on see: [B,count,T] at `to`. A query beyond the last sees nothing.
template <class Mask>
void draw(const predicate_of_queries<Mask>& what, const lengths_view& real, std::size_t begin, std::size_t count,
          std::uint8_t* to)
{
    const std::size_t T = what.positions;
    std::fill_n(to, real.batch() * count * T, std::uint8_t{0});
    score_index p;
    for (std::size_t b = 0; b < real.batch(); ++b) {
        p.batch = static_cast<std::int32_t>(real.sentence_of(b));
        p.head = static_cast<std::int32_t>(what.head + real.head_of(b));
        for (std::size_t s = begin; s < begin + count; ++s, to += T) {
            if (s >= what.all) continue;
            p.query = static_cast<std::int32_t>(what.first + s);
            p.diagonal = static_cast<std::int32_t>(real[b] + s) - static_cast<std::int32_t>(what.all);
            for (std::size_t t = 0; t < real[b]; t += lane_count) {
                p.key.at = counted_from(t).at;
                const lane_mask seen = what.mask(p);
                for (std::size_t i = 0; i < lane_count && t + i < real[b]; ++i) to[t + i] = seen.at[i] != 0 ? 1 : 0;
            }
        }
    }
}

/// The same in this thread's workspace.
template <class Mask>
boolean_mask_view<3> materialized(const predicate_of_queries<Mask>& what, const lengths_view& real, std::size_t begin,
                                  std::size_t count)
{
    auto* const to = workspace_family::take<std::uint8_t>(real.batch() * count * what.positions);
    detail::draw(what, real, begin, count, to);
    return {to, {real.batch(), count, what.positions}};
}

/// What each of S queries of a head sees, [B,S,T].
template <class Mask>
boolean_mask<3> materialize_mask(const Mask& mask, const lengths_view& real, std::size_t first, std::size_t S,
                                 std::size_t positions, std::size_t head = 0)
{
    boolean_mask<3> all(shape_of_rank<3>{real.batch(), S, positions});
    if (real.batch() * S * positions > 0)
        detail::draw(predicate_of_queries{mask, first, S, positions, head}, real, 0, S, &all[0]);
    return all;
}

/// The part of a mask that applies to query s, [B,T].
template <class Mask>
boolean_mask_view<2> mask_of_step(const predicate_of_queries<Mask>& what, std::size_t s, std::size_t,
                                  const lengths_view& real)
{
    return {detail::materialized(what, real, s, 1).data(), {real.batch(), what.positions}};
}

/// A mask of one query, and numbers [B,T] that are added to its scores.
template <class Mask, class Bias>
struct mask_and_bias_of_step {
    Mask mask;
    Bias bias;

    template <class To>
        requires(std::is_convertible_v<const Mask&, To>)
    operator To() const { return mask; }
};
template <class Mask, class Bias>
mask_and_bias_of_step(Mask, Bias) -> mask_and_bias_of_step<Mask, Bias>;

template <class Mask, class Bias>
auto mask_of_step(const mask_and_bias<Mask, Bias>& what, std::size_t s, std::size_t S, const lengths_view& real)
{
    const std::size_t H = real.heads(), T = what.queries.positions;
    const auto all = shape_of(what.bias);
    const shape_of_rank<4> whole{real.batch() / H, H, 1, T};
    auto numbers = constant_like(what.bias, whole, 0.0);
    if (all[2] > 0) {
        const std::size_t at = all[2] == 1 ? 0 : s;
        const auto row = ops::slice(what.bias, 2, at, at + 1);  // [B,H,1,T]
        const bool of_all = all[1] > H;
        numbers = ops::add(numbers, of_all ? ops::slice(row, 1, what.head, what.head + 1) : row);
    }
    return mask_and_bias_of_step{detail::mask_of_step(what.mask, s, S, real),
                                 ops::reshaped(numbers, shape_of_rank<2>{real.batch(), T})};
}

/// The queries of a call, for its masks.
inline asked_queries queries_of_call(const auto& memory, std::size_t S, const auto& state)
{
    const std::size_t H = memory.real.heads();
    return {query_of_masks(memory, state.step), S, memory.batch() / H, H, memory.positions()};
}

/// The mask of one query as it is given, if a step reads it as it is.
template <class Mask>
concept mask_of_one_query = std::is_same_v<Mask, no_mask> || std::is_convertible_v<const Mask&, lengths_view> ||
    std::is_convertible_v<const Mask&, boolean_mask_view<2>> || requires(const Mask& mask)
{
    requires rank_of<decltype(mask.bias)>
    == 2;
};

/// The mask of one query, or of many, of each of n heads, which are asked one by one.
template <std::size_t R, class Mask>
decltype(auto) mask_of_heads(const Mask& given, const auto& memory, std::size_t S, std::size_t step, std::size_t n)
{
    if constexpr (R == 2 && mask_of_one_query<Mask>) {
        return (given);
    } else {
        return detail::mask_for(given, {query_of_masks(memory, step), S, memory.batch(), n, memory.positions(), R == 2},
                                memory.real);
    }
}

/// The mask of one query: lengths, truth values [B,T], numbers [B,T], or both. The caller opens a scratch.
template <class Mask>
decltype(auto) mask_of_query(const Mask& given, const auto& memory, const auto& state)
{
    if constexpr (mask_of_one_query<Mask>) {
        return (given);
    } else {
        auto queries = detail::queries_of_call(memory, 1, state);
        queries.one = true;
        const auto& known = detail::mask_for(given, queries, memory.real);
        return detail::mask_of_step(detail::asked_of_queries(known, memory, 1, state), 0, 1, memory.real);
    }
}

}  // namespace heed::inline HEED_TARGET::detail
