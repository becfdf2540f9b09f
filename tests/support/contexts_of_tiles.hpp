// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <heed/kernels/tiles/forward.hpp>
#include <heed/kernels/tiles/score_mod.hpp>
#include <support/tiles.hpp>

namespace heed::test {

/// Contexts of a head, and the normalizer's numbers per query.
template <class T>
struct contexts_and_numbers {
    std::vector<T> contexts, numbers;
};

/// Contexts of all queries of a head, block by block.
template <class T, class Rule, class Mask>
contexts_and_numbers<T> contexts_of(head_of_numbers<T>& x, const Rule& rule, const Mask& mask)
{
    namespace tiles = kernels::tiles;
    const auto of = x.head();
    const tiles::unmodified plain;
    const tiles::score_mod_of<T, tiles::unmodified, Mask> mod(plain, mask);
    contexts_and_numbers<T> all{std::vector<T>(x.S * x.D, T(9)), std::vector<T>(Rule::numbers * x.S)};
    tiles::with_registers<T>(x.S, [&](auto registers) {
        constexpr std::size_t width = tiles::lanes<T, registers>;
        for (std::size_t s = 0; s < x.S; s += width)
            tiles::forward<registers>(tiles::query_block<T>{of, s, std::min(width, x.S - s), mod}, rule,
                                      tiles::rows<T>{all.contexts.data(), x.D}, all.numbers.data());
    });
    return all;
}

}  // namespace heed::test
