// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include <heed/core/diagnostics.hpp>
#include <heed/core/mask.hpp>
#include <heed/simd/dual_pack.hpp>
#include <heed/simd/pack.hpp>

/// The index of a score, and predicate masks.
///
///     attend(memory, queries, causal{} & sliding_window{1024});
///     attend(memory, queries, causal{} & [&](score_index p) { return document(p.key) == document(p.query); });
///     attend(memory, queries, causal{} & boolean_mask{seen} & additive_mask{bias});
///
/// A predicate mask is any callable from a score_index to a lane_mask (or bool), true = attend. `&`, `|` and `!`
/// combine masks, including tensor and lengths masks; additive masks combine only with `&`. A predicate mask is
/// evaluated for each query and key before their score, and blocks of keys that no query sees are skipped. It may
/// define two ranges; then it is only evaluated for keys in the visible but not in the full range:
///
///     // Queries in [first, last] see no key outside the visible range, and all keys in the full range.
///     key_range visible_range(std::int32_t first, std::int32_t last) const;
///     key_range full_range(std::int32_t first, std::int32_t last) const;
namespace heed::inline HEED_TARGET {

/// The indices of a register of scores.
struct score_index {
    std::int32_t batch = 0;       // the index of the sentence in the batch
    std::int32_t head = 0;        // the index of the head, in a mechanism of several heads; else 0
    pack<std::int32_t> query;     // counted from the first query, by the state
    pack<std::int32_t> key;       // counted from the first key of its sentence
    pack<std::int32_t> diagonal;  // for masks, the key at the query's position: the last query is at the last key;
                                  // for functions of scores, which also run step by step, the query's index

    score_index() : query(0), key(0), diagonal(0) {}
    // Register by register: a copy of the whole block would go through memory, and stall there.
    HEED_SIMD_INLINE score_index(const score_index& from) : batch(from.batch), head(from.head) { take_lanes(from); }
    HEED_SIMD_INLINE score_index& operator=(const score_index& from)
    {
        batch = from.batch;
        head = from.head;
        take_lanes(from);
        return *this;
    }

private:
    HEED_SIMD_INLINE void take_lanes(const score_index& from)
    {
        take(query, from.query);
        take(key, from.key);
        take(diagonal, from.diagonal);
    }
    HEED_SIMD_INLINE static void take(pack<std::int32_t>& x, const pack<std::int32_t>& from)
    {
        x.at = from.at;
        x.steps = from.steps;
    }
};

/// Keys [begin, end).
struct key_range {
    std::int32_t begin = 0, end = std::numeric_limits<std::int32_t>::max();

    bool empty() const { return begin >= end; }
    /// Does it contain all of first … last?
    bool contains(std::int32_t first, std::int32_t last) const { return begin <= first && last < end; }
};

namespace detail {

/// The index for functions of scores.
HEED_SIMD_INLINE score_index for_score(score_index p)
{
    p.diagonal.at = p.query.at;
    p.diagonal.steps = p.query.steps;
    return p;
}

inline constexpr key_range all_keys{}, no_keys{0, 0};

/// The ranges of masks that do not declare any: every key may be seen, and no key surely is.
template <class Mask>
key_range visible_range_of(const Mask& mask, std::int32_t first, std::int32_t last)
{
    if constexpr (requires { mask.visible_range(first, last); }) {
        return mask.visible_range(first, last);
    } else {
        return all_keys;
    }
}
template <class Mask>
key_range full_range_of(const Mask& mask, std::int32_t first, std::int32_t last)
{
    if constexpr (requires { mask.full_range(first, last); }) {
        return mask.full_range(first, last);
    } else {
        return no_keys;
    }
}

}  // namespace detail

/// Marks predicate masks, so that `&`, `|`, `!` find them; a lambda combined with one need not be marked.
struct predicate_mask {};

namespace detail {

/// Masks of tensors, of lengths, and of positions that are known only in a call: see masks/predicates.hpp.
template <class Mask>
inline constexpr bool of_a_call = false;
template <std::size_t N>
inline constexpr bool of_a_call<boolean_mask<N>> = true;
template <class Bias>
inline constexpr bool of_a_call<additive_mask<Bias>> = true;
template <>
inline constexpr bool of_a_call<present> = true;
template <>
inline constexpr bool of_a_call<lengths> = true;
template <>
inline constexpr bool of_a_call<causal_upper_left> = true;
template <>
inline constexpr bool of_a_call<causal_after> = true;

}  // namespace detail

/// A mask that `&`, `|` and `!` find by its type.
template <class Mask>
concept marked_mask =
    std::is_base_of_v<predicate_mask, Mask> || std::is_same_v<Mask, causal> || detail::of_a_call<Mask>;

/// A function of an index that is a mask without being marked, such as a lambda.
template <class Mask>
concept bare_mask = !marked_mask<Mask> && !tensor<Mask> && !detail::lazy_expression<Mask> &&
                    std::is_invocable_r_v<lane_mask, const Mask&, const score_index&>;

/// A marked mask of a function: `!mask_mod{f}`. The built-in `!` of a lambda has a different meaning.
template <class Function>
struct mask_mod : predicate_mask {
    Function sees;

    explicit mask_mod(Function f) : sees(std::move(f)) {}
    lane_mask operator()(const score_index& p) const { return lane_mask(sees(p)); }
};

/// Keys that are not after the query.
struct not_behind : predicate_mask {
    lane_mask operator()(const score_index& p) const { return p.key <= p.diagonal; }
    key_range visible_range(std::int32_t, std::int32_t last) const { return {0, last + 1}; }
    key_range full_range(std::int32_t first, std::int32_t) const { return {0, first + 1}; }
};

/// Keys less than `size` before or after the query: the query itself and size − 1 on each side.
struct sliding_window : predicate_mask {
    std::int32_t size = 1;

    explicit sliding_window(std::int32_t keys) : size(keys) {}
    lane_mask operator()(const score_index& p) const
    {
        return (p.diagonal - p.key < size) & (p.key - p.diagonal < size);
    }
    key_range visible_range(std::int32_t first, std::int32_t last) const { return around(first, last); }
    key_range full_range(std::int32_t first, std::int32_t last) const { return around(last, first); }

private:
    /// Keys less than `size` before `from` and after `to`; a size may be the maximum of its type.
    key_range around(std::int64_t from, std::int64_t to) const
    {
        const std::int64_t begin = from - size + 1, end = to + size, most = std::numeric_limits<std::int32_t>::max();
        return {static_cast<std::int32_t>(std::clamp(begin, std::int64_t{0}, most)),
                static_cast<std::int32_t>(std::clamp(end, std::int64_t{0}, most))};
    }
};

/// a & b: attend where both masks are true.
template <class A, class B>
struct both_masks : predicate_mask {
    A a;
    B b;

    both_masks(A first, B second) : a(std::move(first)), b(std::move(second)) {}
    lane_mask operator()(const score_index& p) const { return lane_mask(a(p)) & lane_mask(b(p)); }
    key_range visible_range(std::int32_t first, std::int32_t last) const
    {
        return common(detail::visible_range_of(a, first, last), detail::visible_range_of(b, first, last));
    }
    key_range full_range(std::int32_t first, std::int32_t last) const
    {
        return common(detail::full_range_of(a, first, last), detail::full_range_of(b, first, last));
    }

private:
    static key_range common(const key_range& x, const key_range& y)
    {
        return {std::max(x.begin, y.begin), std::min(x.end, y.end)};
    }
};

/// a | b: attend where at least one mask is true.
template <class A, class B>
struct either_mask : predicate_mask {
    A a;
    B b;

    either_mask(A first, B second) : a(std::move(first)), b(std::move(second)) {}
    lane_mask operator()(const score_index& p) const { return lane_mask(a(p)) | lane_mask(b(p)); }
    key_range visible_range(std::int32_t first, std::int32_t last) const
    {
        const key_range x = detail::visible_range_of(a, first, last), y = detail::visible_range_of(b, first, last);
        if (x.empty()) return y;
        if (y.empty()) return x;
        return {std::min(x.begin, y.begin), std::max(x.end, y.end)};
    }
    key_range full_range(std::int32_t first, std::int32_t last) const
    {
        const key_range x = detail::full_range_of(a, first, last), y = detail::full_range_of(b, first, last);
        return x.end - x.begin >= y.end - y.begin ? x : y;
    }
};

/// !a: attend where the mask is false.
template <class A>
struct not_mask : predicate_mask {
    A a;

    explicit not_mask(A of) : a(std::move(of)) {}
    lane_mask operator()(const score_index& p) const { return !lane_mask(a(p)); }
    key_range visible_range(std::int32_t first, std::int32_t last) const
    {
        const key_range seen = detail::full_range_of(a, first, last);
        return seen.empty() || seen.begin > 0 ? detail::all_keys : key_range{.begin = seen.end};
    }
    key_range full_range(std::int32_t first, std::int32_t last) const
    {
        const key_range seen = detail::visible_range_of(a, first, last);
        if (seen.empty()) return detail::all_keys;
        return seen.begin > 0 ? key_range{0, seen.begin} : key_range{.begin = seen.end};
    }
};

namespace detail {

/// Do `visible_range` and `full_range` define the mask completely?
template <class Mask>
inline constexpr bool told_by_ranges = requires(const Mask& mask)
{
    mask.visible_range(0, 0);
    mask.full_range(0, 0);
};
template <class A, class B>
inline constexpr bool told_by_ranges<both_masks<A, B>> = told_by_ranges<A>&& told_by_ranges<B>;
template <class A, class B>
inline constexpr bool told_by_ranges<either_mask<A, B>> = false;
template <class A>
inline constexpr bool told_by_ranges<not_mask<A>> = false;

/// A mask as a predicate mask: `causal` is not_behind.
inline not_behind as_predicate(const causal&) { return {}; }
template <class Mask>
const Mask& as_predicate(const Mask& mask)
{
    return mask;
}

/// Two masks, where one or both may be a bare function.
template <class A, class B>
concept combined_masks = marked_mask<A> || marked_mask<B> ||(bare_mask<A>&& bare_mask<B>);

/// The keys that the last query of a memory of one sentence sees, if the mask declares its whole visible range as full;
/// else an empty range.
template <class Mask>
std::pair<std::size_t, std::size_t> seen_in_one_piece(const Mask& mask, const auto& memory)
{
    if (memory.batch() != 1 || memory.real[0] == 0) return {0, 0};
    const auto last = static_cast<std::int32_t>(memory.real[0]) - 1;
    const key_range reach = visible_range_of(mask, last, last);
    const std::int32_t begin = std::max(0, reach.begin), end = std::min(last + 1, reach.end);
    if (begin >= end || !full_range_of(mask, last, last).contains(begin, end - 1)) return {0, 0};
    return {static_cast<std::size_t>(begin), static_cast<std::size_t>(end)};
}

/// Not `causal` alone, which the mechanisms handle directly.
template <class Mask>
concept any_predicate_mask = std::is_base_of_v<predicate_mask, Mask>;

/// The number of additive masks in a mask.
template <class Mask>
inline constexpr std::size_t biases_in = 0;
template <class Bias>
inline constexpr std::size_t biases_in<additive_mask<Bias>> = 1;
template <class A, class B>
inline constexpr std::size_t biases_in<both_masks<A, B>> = biases_in<A> + biases_in<B>;

#define HEED_SAYS_ADDED_NUMBERS                                                                                        \
    "heed: an additive mask has no truth values: combine it with other masks by `&`, not by `|` or `!`; "              \
    "add the numbers of two additive masks first"

}  // namespace detail

template <class A, class B>
    requires(detail::combined_masks<A, B>)
auto operator&(const A& a, const B& b)
{
    static_assert(detail::biases_in<A> + detail::biases_in<B> <= 1, HEED_SAYS_ADDED_NUMBERS);
    return both_masks(detail::as_predicate(a), detail::as_predicate(b));
}
template <class A, class B>
    requires(detail::combined_masks<A, B>)
auto operator|(const A& a, const B& b)
{
    static_assert(detail::biases_in<A> + detail::biases_in<B> == 0, HEED_SAYS_ADDED_NUMBERS);
    return either_mask(detail::as_predicate(a), detail::as_predicate(b));
}
template <class A>
    requires(marked_mask<A> || bare_mask<A>)
auto operator!(const A& a)
{
    static_assert(detail::biases_in<A> == 0, HEED_SAYS_ADDED_NUMBERS);
    return not_mask(detail::as_predicate(a));
}

}  // namespace heed::inline HEED_TARGET
