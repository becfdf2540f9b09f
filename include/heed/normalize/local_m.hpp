// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>

#include <heed/normalize/softmax.hpp>
#include <heed/normalize/within.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/hooks.hpp>

namespace heed::inline HEED_TARGET::normalize {

/// Monotonic local attention: target word t attends to the source words around position t.
///
///     p_t = t
///     α_t = inner(e_{t,s}),  s within [p_t - D, p_t + D]      Luong et al. 2015, §3.2
///
/// Only the window is computed: scores, weights and context cost 2D + 1 positions for any sentence length. For t > S +
/// D the paper's window is empty; here p_t stops at the sentence's last word (docs/explanation/decisions.md). Steps and
/// positions count from 0 here. The paper's inner normalizer is softmax; for one with state, choose the history that it
/// keeps:
///
///     local_m{D, temporal{}}                             all positions, inside the window or not: costs a whole row
///     local_m{D, temporal{}, history::in_window{}}       only positions in the window
///
/// A state that decays or forgets (decayed_temporal, recent_temporal) does so everywhere, and always costs a whole row.
template <class Inner = softmax, class History = history::everywhere>
struct local_m {
    std::size_t reach = 10;  // D
    HEED_NO_UNIQUE_ADDRESS Inner inner{};
    HEED_NO_UNIQUE_ADDRESS History state{};

    using wraps = Inner;
    static constexpr normalizer_traits traits = traits_around_normalizer<Inner>([](normalizer_traits& own) {
        own.reads_length = own.needs_all_positions = true;
        own.has_window = detail::may_cut<Inner, History>;
    });

    /// The positions that target word t attends to in a row of n source words.
    position_range range_at(std::size_t t, std::size_t n) const
    {
        return position_range::around(n == 0 ? 0 : std::min(t, n - 1), std::min(reach, n), n);
    }

    auto window(const auto& at, std::size_t positions) const
    {
        return detail::found_window<>{around(at, positions), {}};
    }

    const Inner& inner_in_window(const auto&) const { return inner; }

    auto operator()(const tensor auto& scores, const auto& memory, const auto& at) const  // [B,T] or [B,T,D]
    {
        return detail::weigh_within<History>(around(at, shape_of(scores)[1]), inner, scores, memory, at);
    }

    auto advance(const tensor auto& scores, const tensor auto& weights, const auto& memory, const auto& at) const
    {
        return detail::advance_within<History>(around(at, shape_of(scores)[1]), inner, scores, weights, memory, at);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return normalize::local_m{self.reach, visit("inner", self.inner), self.state};
    }

private:
    window_view around(const auto& at, std::size_t positions) const
    {
        const std::size_t D = std::min(reach, positions);
        return detail::window_of_rows(at.real, std::min(2 * D + 1, positions),
                                      [&](std::size_t b) { return range_at(at.step, at.real[b]); });
    }
};

template <class Inner = softmax, class History = history::everywhere>
local_m(std::size_t = 10, Inner = {}, History = {}) -> local_m<Inner, History>;

}  // namespace heed::inline HEED_TARGET::normalize
