// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include <heed/attention/concepts.hpp>
#include <heed/attention/weigh.hpp>
#include <heed/ops/masks.hpp>

/// Helpers of combiners that wrap another one and also read the query.
namespace heed::detail {

/// The query's tensor: the query itself, or the state of a state_and_word.
decltype(auto) asking_state(const auto& query)
{
    if constexpr (requires { (query.state); }) {
        return (query.state);
    } else {
        return (query);
    }
}

inline bool shows(const no_mask&, std::size_t) { return true; }
inline bool shows(const boolean_mask_view<2>& mask, std::size_t i) { return mask[i] != 0; }
template <class Bias>
bool shows(const additive_mask<Bias>& mask, std::size_t i)
{
    using T = element_of<Bias>;
    return view_of(mask.bias).data[i] != -std::numeric_limits<T>::infinity();
}

/// Which rows may attend to at least one of T positions, in this thread's workspace.
inline std::span<const std::uint8_t> rows_that_see(std::size_t positions, const auto& at)
{
    const std::size_t B = at.real.batch();
    auto* const sees = transient_family::take<std::uint8_t>(B);
    std::fill_n(sees, B, std::uint8_t{0});
    for (std::size_t b = 0; b < B; ++b) {
        for (std::size_t t = 0; t < at.real[b] && sees[b] == 0; ++t) {
            const std::size_t i = b * positions + t;
            sees[b] = shows(at.source, i) && shows(at.mask, i) ? 1 : 0;
        }
    }
    return {sees, B};
}

/// x, with 0 in the rows that may attend to nothing.
template <tensor X>
auto where_seen(X x, std::size_t positions, const auto& at)
{
    const auto sees = rows_that_see(positions, at);
    const bool all = std::find(sees.begin(), sees.end(), 0) == sees.end();
    return all ? std::move(x) : ops::keep_rows(x, sees);
}

}  // namespace heed::detail
