// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>

#include <heed/kernels/tiles/normalizer_rules.hpp>
#include <heed/kernels/tiles/score_mod.hpp>
#include <heed/kernels/tiles/tiles.hpp>
#include <heed/simd/simd.hpp>

/// A tile of scores, and its conversion to weights by a rule of kernels/tiles/normalizer_rules.hpp. Forward and
/// backward share these steps.
namespace heed::inline HEED_TARGET::kernels::tiles::detail {

/// Scores of a tile after score_mod and mask_mod.
template <class T>
void score_tile(const auto& compare, const query_block<T>& block, const visible_tile& visible, T* tile)
{
    compare.scores(visible, tile);
    if (block.mod.modifies || !visible.is_full) block.mod.apply(block.of, visible, tile, nullptr);
}

/// Converts scores to weights; calls f(j, c, weight), if given, for each register. Returns whether any weight is not 0.
template <std::size_t registers, class Rule, class T>
HEED_SIMD_INLINE bool weights_of(std::size_t count, const Rule& rule,
                                 const std::array<row<T, registers>, Rule::numbers>& z, T* tile, const auto&... f)
{
    using namespace simd;
    mask<T> some{};
    for (std::size_t j = 0; j < count; ++j) {
        T* const at = tile + j * lanes<T, registers>;
        row<T, registers> weights = row<T, registers>::of(at);
        if constexpr (requires { rule.weights(z, weights); }) {
            rule.weights(z, weights);
        } else {
            unrolled<registers>([&](auto c) {
                std::array<vec<T>, Rule::numbers> numbers;
                unrolled<Rule::numbers>([&](auto i) { numbers[i] = z[i].at[c]; });
                weights.at[c] = rule.weight(weights.at[c], numbers);
            });
        }
        unrolled<registers>([&](auto c) {
            (f(j, c, weights.at[c]), ...);
            some |= weights.at[c] != 0;
        });
        weights.put(at);
    }
    return !Rule::sparse || any(some);
}

/// The state of a sequential rule from key to key, for a row of lanes; empty for other rules.
template <std::size_t registers, class Rule, class T>
struct carried {};
template <std::size_t registers, class Rule, class T>
    requires(Rule::sequential)
struct carried<registers, Rule, T> : std::array<typename Rule::template stick<simd::vec<T>>, registers> {};

/// Weights by any rule: a sequential rule takes its weights from `rest`, and writes each weight's share of `rest` to
/// `shares`, unless that is null.
template <std::size_t registers, class Rule, class T>
HEED_SIMD_INLINE bool weigh(std::size_t count, const Rule& rule, const std::array<row<T, registers>, Rule::numbers>& z,
                            [[maybe_unused]] carried<registers, Rule, T>& rest, T* tile,
                            [[maybe_unused]] std::type_identity_t<T>* shares = nullptr, const auto&... f)
{
    using namespace simd;
    if constexpr (Rule::sequential) {
        for (std::size_t j = count; j-- > 0;) {
            unrolled<registers>([&](auto c) {
                const std::size_t at = j * lanes<T, registers> + c * simd::lanes<T>;
                vec<T> share;
                store(tile + at, rule.next_weight(load(tile + at), rest[c], share));
                if (shares != nullptr) store(shares + at, share);
            });
        }
        return true;
    } else {
        return weights_of<registers>(count, rule, z, tile, f...);
    }
}

/// The rule's numbers of n queries from s on, padded with zeros.
template <std::size_t registers, class Rule, class T>
auto numbers_at(const T* numbers, std::size_t queries, std::size_t s, std::size_t n)
{
    std::array<row<T, registers>, Rule::numbers> z;
    for (std::size_t i = 0; i < Rule::numbers; ++i) {
        T some[lanes<T, registers>] = {};
        std::copy_n(numbers + i * queries + s, n, some);
        z[i] = row<T, registers>::of(some);
    }
    return z;
}

}  // namespace heed::inline HEED_TARGET::kernels::tiles::detail
