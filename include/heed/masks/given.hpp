// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>

#include <heed/core/diagnostics.hpp>
#include <heed/core/mask.hpp>
#include <heed/core/tensor.hpp>
#include <heed/masks/predicates.hpp>
#include <heed/simd/score_index.hpp>

/// The mask that a caller gives, and what the compiler says if it is none.
namespace heed::inline HEED_TARGET::detail {

/// Numbers or truth values that are to be made a mask first.
template <class Mask>
inline constexpr bool raw_mask = tensor<Mask> || lazy_expression<Mask> || is_vector<Mask>;

/// What a call takes as a mask, of a user's or of a mechanism's.
template <class Mask>
concept any_mask_type = std::is_same_v<Mask, no_mask> || marked_mask<Mask> || bare_mask<Mask> || has_bias<Mask> ||
    std::is_convertible_v<const Mask&, lengths_view> || std::is_convertible_v<const Mask&, boolean_mask_view<2>> ||
    requires(const Mask& mask)
{
    requires tensor<decltype(mask.bias)>;
};

#define HEED_SAYS_RAW_MASK                                                                                             \
    "heed: this is no mask yet: of truth values (true = attend) make a boolean_mask{x}, of numbers that are added to " \
    "the scores an additive_mask{x}, of the numbers of positions lengths{...}"

/// The mask for keys of these numbers, where it is one; a function of an index becomes one.
template <class Mask, class... Keys>
decltype(auto) mask_given(const Mask& mask, const Keys&...)
{
    static_assert(!raw_mask<Mask>, HEED_SAYS_RAW_MASK);
    constexpr bool one_value = std::is_arithmetic_v<Mask>;
    static_assert(!one_value,
                  "heed: one truth value is no mask; C++ makes one of `!f` where f is a lambda: write `!mask_mod{f}`");
    constexpr bool known = any_mask_type<Mask>;
    static_assert(
        raw_mask<Mask> || one_value || known,
        "heed: this is no mask: give lengths, present, a boolean_mask, an additive_mask, causal{}, or a function "
        "of an index, `[](score_index p) { return p.key <= p.query; }`, joined by `&`, `|` and `!`");
    constexpr bool one_type = one_number_type<Keys..., bias_in<Mask>>;
    static_assert(one_type,
                  "heed: this additive mask holds numbers of another type than queries and keys, such as double "
                  "and float: give it theirs, `heed::array<float, 2> x = bias;` converts");
    constexpr bool refused = !known || !one_type;
    if constexpr (bare_mask<Mask> && !refused) {
        return mask_mod{mask};
    } else {
        return meant_unless<!refused, no_mask>(mask);
    }
}

}  // namespace heed::inline HEED_TARGET::detail
