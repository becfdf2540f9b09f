// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>

#include <heed/core/diagnostics.hpp>
#include <heed/core/mask.hpp>
#include <heed/core/tensor.hpp>
#include <heed/masks/predicates.hpp>
#include <heed/simd/score_index.hpp>

/// The mask argument of a call, and the static_assert messages for arguments that are not masks.
namespace heed::inline HEED_TARGET::detail {

/// Numbers or truth values, which must be wrapped in a mask type.
template <class Mask>
inline constexpr bool raw_mask = tensor<Mask> || lazy_expression<Mask> || is_vector<Mask>;

/// Every type that a call accepts as a mask, from the user or from a mechanism.
template <class Mask>
concept any_mask_type = std::is_same_v<Mask, no_mask> || marked_mask<Mask> || bare_mask<Mask> || has_bias<Mask> ||
    std::is_convertible_v<const Mask&, lengths_view> || std::is_convertible_v<const Mask&, boolean_mask_view<2>> ||
    requires(const Mask& mask)
{
    requires tensor<decltype(mask.bias)>;
};

#define HEED_SAYS_RAW_MASK                                                                                             \
    "heed: this is not a mask: wrap truth values (true = attend) in boolean_mask{x}, numbers that are added to the "   \
    "scores in additive_mask{x}, and numbers of positions in lengths{...}"

/// The mask, if its type and number type are valid; a function of an index becomes a mask_mod.
template <class Mask, class... Keys>
decltype(auto) mask_given(const Mask& mask, const Keys&...)
{
    static_assert(!raw_mask<Mask>, HEED_SAYS_RAW_MASK);
    constexpr bool one_value = std::is_arithmetic_v<Mask>;
    static_assert(!one_value, "heed: a single truth value is not a mask; if f is a lambda, `!f` is a truth value in "
                              "C++: write `!mask_mod{f}`");
    constexpr bool known = any_mask_type<Mask>;
    static_assert(
        raw_mask<Mask> || one_value || known,
        "heed: this is not a mask: give lengths, present, a boolean_mask, an additive_mask, causal{}, or a function "
        "of an index, `[](score_index p) { return p.key <= p.query; }`, combined by `&`, `|` and `!`");
    constexpr bool one_type = one_number_type<Keys..., bias_in<Mask>>;
    static_assert(one_type,
                  "heed: this additive mask has a different number type than queries and keys, such as double "
                  "instead of float; convert it: `heed::array<float, 2> x = bias;`");
    constexpr bool refused = !known || !one_type;
    if constexpr (bare_mask<Mask> && !refused) {
        return mask_mod{mask};
    } else {
        return meant_unless<!refused, no_mask>(mask);
    }
}

}  // namespace heed::inline HEED_TARGET::detail
