// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <heed/core/workspace.hpp>
#include <heed/kernels/tiles/products.hpp>
#include <heed/kernels/tiles/score_mod.hpp>
#include <heed/kernels/tiles/tiles.hpp>
#include <heed/kernels/tiles/transpose.hpp>
#include <heed/simd/lookup_table.hpp>
#include <heed/simd/simd.hpp>

/// A block of keys in the lanes against all queries of a sentence, for kernels/tiles/temporal.hpp: tiles of scores
/// [queries][lanes], and the history of each key.
namespace heed::inline HEED_TARGET::kernels::tiles {

/// Queries in a tile with keys in the lanes.
inline constexpr std::size_t queries = 48;

/// A sentence whose keys have a history: its queries and keys, the score_mod and the mask_mod, and how the history
/// modulates a score. `function`, `mask` and `past` are references.
template <class T, class Function, class Mask, class Past>
struct remembering_head {
    using number = T;
    using function_type = Function;
    using mask_type = Mask;

    head<T> of;
    const Function& function;
    const Mask& mask;
    const Past& past;
};
template <class T, class Function, class Mask, class Past>
remembering_head(const head<T>&, const Function&, const Mask&, const Past&)
    -> remembering_head<T, Function, Mask, Past>;

namespace detail {

/// A block of keys of a remembering_head, a tile of queries at a time.
template <std::size_t registers, class Sentence>
class key_block {
public:
    using T = typename Sentence::number;
    using row = tiles::row<T, registers>;
    static constexpr std::size_t width = lanes<T, registers>;
    static constexpr bool modified = !std::is_same_v<typename Sentence::function_type, unmodified>;

    explicit key_block(const Sentence& sentence)
        : sentence_(sentence), of_(sentence.of), panel_(here_.template take<T>(of_.width * width))
    {}

    /// Moves to the keys from `first` on.
    void go_to(std::size_t first)
    {
        first_ = first;
        n_ = std::min(width, of_.positions - first);
        transposed<registers>(of_.width, n_, of_.keys.from(first), of_.scale, panel_);
    }
    std::size_t keys() const { return n_; }

    /// Scores of `count` queries from s on, visible or not; `slopes`: ∂e / ∂(inner product) times the scale, or null.
    void scores(std::size_t s, std::size_t count, T* tile, T* slopes = nullptr) const
    {
        products(s, count, tile);
        if constexpr (modified) {
            const auto& f = sentence_.function;
            if (slopes == nullptr) {
                each_index(s, count, [&](std::size_t at, const score_index& p) {
                    store_lanes(tile + at, heed::pack<T>(f(load_lanes(tile + at), heed::detail::for_score(p))));
                });
            } else {
                each_index(s, count, [&](std::size_t at, const score_index& p) {
                    const dual<T> e = f(dual<T>{load_lanes(tile + at), 1}, heed::detail::for_score(p));
                    store_lanes(tile + at, e.value);
                    store_lanes(slopes + at, e.slope * of_.scale);
                });
            }
        }
    }
    void products(std::size_t s, std::size_t count, T* tile) const
    {
        detail::products<registers, false>(count, of_.width, of_.queries[s], of_.queries.stride, 1, panel_, tile);
    }

    /// Updates L, the history, by a tile of scores. Calls f(q, e, L) for each query, with L before the query.
    HEED_SIMD_INLINE void remember(std::size_t count, const T* tile, row& L, const auto& f) const
    {
        const auto& past = sentence_.past;
        for (std::size_t q = 0; q < count; ++q) {
            const row e = row::of(tile + q * width);
            f(q, e, L);
            simd::unrolled<registers>([&](auto c) { L.at[c] = past.grown(L.at[c], e.at[c]); });
        }
    }

    /// Writes −inf where a query of the tile does not see a key. Returns whether any query sees a key.
    bool hide(std::size_t s, std::size_t count, T* tile) const
    {
        const auto& mask = sentence_.mask;
        const std::int32_t q0 = of_.diagonal_of(s), q1 = of_.diagonal_of(s + count - 1),
                           begin = static_cast<std::int32_t>(first_), end = static_cast<std::int32_t>(first_ + n_);
        const key_range reach = heed::detail::visible_range_of(mask, q0, q1);
        if (reach.end <= begin || reach.begin >= end) return false;
        constexpr T lowest = -std::numeric_limits<T>::infinity();
        constexpr bool evaluated = !heed::detail::told_by_ranges<typename Sentence::mask_type>;
        lane_mask visible(!evaluated);
        if (heed::detail::full_range_of(mask, q0, q1).contains(begin, end - 1)) {
            visible = true;
        } else {
            each_index(s, count, [&](std::size_t at, const score_index& p) {
                const lane_mask sees(mask(p));
                if constexpr (evaluated) visible = visible | (sees & first_lanes(n_ - std::min(n_, at % width)));
                store_lanes(tile + at, select(sees, load_lanes(tile + at), lowest));
            });
        }
        if (n_ < width) {
            for (std::size_t q = 0; q < count; ++q) std::fill(tile + q * width + n_, tile + (q + 1) * width, lowest);
        }
        return any_of_lanes(visible.at);
    }

    /// Adds the gradient of the score_mod's table.
    void add_to_table(std::size_t s, std::size_t count, const T* products, const T* d_scores, T* table) const
    {
        heed::detail::add_to_table(
            sentence_.function.f, sentence_.function.table,
            table, [&](const auto& come_back) __attribute__((always_inline)) {
                each_index(
                    s, count, [&](std::size_t at, const score_index& p) __attribute__((always_inline)) {
                        come_back(load_lanes(products + at), heed::detail::for_score(p), load_lanes(d_scores + at));
                    });
            });
    }

private:
    /// f(at, index) for each register of a tile of `count` queries from s on.
    HEED_SIMD_INLINE void each_index(std::size_t s, std::size_t count, const auto& f) const
    {
        constexpr std::size_t groups = width / lane_count;
        static_assert(groups * lane_count == width);
        score_index p;
        p.batch = static_cast<std::int32_t>(of_.batch);
        p.head = static_cast<std::int32_t>(of_.number);
        for (std::size_t q = 0; q < count; ++q) {
            p.query = heed::pack<std::int32_t>(static_cast<std::int32_t>(of_.first_query + s + q));
            p.diagonal = heed::pack<std::int32_t>(of_.diagonal_of(s + q));
            simd::unrolled<groups>([&](auto g) {
                score_index here = p;
                for (std::size_t i = 0; i < lane_count; ++i)
                    here.key.at[i] = static_cast<std::int32_t>(first_ + g * lane_count + i);
                f(q * width + g * lane_count, here);
            });
        }
    }

    const Sentence& sentence_;
    const head<T>& of_;
    scratch here_;
    T* panel_;
    std::size_t first_ = 0, n_ = 0;
};

/// L of a block of keys; −inf in the unused lanes.
template <std::size_t registers, class T>
row<T, registers> past_of(const T* history, std::size_t n)
{
    T all[lanes<T, registers>];
    std::fill(std::copy_n(history, n, all), all + lanes<T, registers>, -std::numeric_limits<T>::infinity());
    return row<T, registers>::of(all);
}

}  // namespace detail

}  // namespace heed::inline HEED_TARGET::kernels::tiles
