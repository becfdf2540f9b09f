// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/errors.hpp>
#include <heed/core/mask.hpp>
#include <heed/core/tensor.hpp>
#include <heed/ops/heads.hpp>
#include <heed/simd/lookup.hpp>
#include <heed/simd/lookup_table.hpp>
#include <heed/simd/score_index.hpp>

/// The masks of a call in the form that executors read: predicates, lengths or no_mask, and numbers added to the
/// scores.
namespace heed::inline HEED_TARGET::detail {

/// The queries that a mask applies to. A mask for one query has no query axis.
struct asked_queries {
    std::size_t first, count;  // numbers of the queries
    std::size_t sentences, heads, positions;
    bool one = false;
    bool projected = false;  // in heads, where the first of three mask axes might be heads or sentences

    /// The sizes of a mask for B sentences, H heads, S queries and T positions, 1 for a missing axis. Throws
    /// shape_error unless each size is 1 or that of the call.
    template <std::size_t N>
    shape_of_rank<4> sizes(const char* name, const shape_of_rank<N>& is) const
    {
        const bool of_heads = N == 4 || (N == 3 && one), of_sentences = N > 2 || one;
        const shape_of_rank<4> sizes{of_sentences ? is[0] : 1, of_heads ? is[1] : 1, one ? 1 : is[N - 2], is[N - 1]},
            must{sentences, heads, one ? 1 : count, positions};
        if (N == 3 && projected && !one && sentences == heads && is[0] > 1) {
            throw_shape_error({"attention: ", name, " ", is, " may be of ", heads,
                               " heads or of the same number of sentences; give it four axes, [B,1,S,T] or [1,H,S,T]"});
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
            throw_shape_error({"attention: ", name, " is ", is, " but must be ", whole, one ? "" : axes[N],
                               "; an axis of size 1 is broadcast",
                               one || N > 2 ? "" : "; for a mask per sentence use present{...} or lengths"});
        }
        return sizes;
    }
};

/// Truth values [B,H,S,T], each axis of full size or 1, as a function of the index. They share the mask's memory.
struct truth_values : predicate_mask {
    std::shared_ptr<const std::vector<std::uint8_t>> values;
    std::ptrdiff_t batch, head;  // strides; 0 if the axis has size 1
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
            throw_shape_error({"attention: a boolean mask of ", sizes[2], " queries and ", sizes[3],
                               " positions is too large; use a function of an index instead"});
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

/// All keys of the past, and one more for each query.
struct causal_from : predicate_mask {
    std::int32_t first, past;                // the number of the first query of the call; the number of earlier keys
    std::int32_t before_first, before_last;  // the diagonal of that query in the longest and in the shortest sentence

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
truth_values predicate_of(const std::same_as<present> auto& mask, const asked_queries& queries, const lengths_view&)
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
// Unqualified calls: for nested masks, argument-dependent lookup finds the overloads below.
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

/// The bias of the additive mask within a combined mask.
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

/// A mask, and numbers [B,H,S,T], each axis of full size or 1, that are added to the scores.
template <class Mask, class Bias>
struct mask_and_bias {
    Mask mask;
    Bias bias;
    asked_queries queries;
    std::size_t head = 0;  // the head, if the rows belong to a single one
};
template <class Mask, class Bias>
mask_and_bias(Mask, Bias, const asked_queries&, std::size_t = 0) -> mask_and_bias<Mask, Bias>;

template <class Mask>
inline constexpr bool has_bias = false;
template <class Mask, class Bias>
inline constexpr bool has_bias<mask_and_bias<Mask, Bias>> = true;

/// The type of the bias that a mask adds; void if it adds none.
template <class Mask>
struct bias_of_mask : std::type_identity<void> {};
template <class Mask>
    requires((biases_in<Mask>) > 0)
struct bias_of_mask<Mask> : std::remove_cvref<decltype(detail::bias_of(std::declval<const Mask&>()))> {};
template <class Mask>
using bias_in = typename bias_of_mask<Mask>::type;

/// A mask for these queries in the form that executors read: no_mask, lengths and causal unchanged, others as a
/// predicate, and with a bias as a mask_and_bias. The result refers to the mask.
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

}  // namespace heed::inline HEED_TARGET::detail
