// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <heed/concepts.hpp>
#include <heed/memory.hpp>
#include <heed/ops/gate.hpp>

/// What combiners need that take another one inside and also look at the query.
namespace heed::detail {

/// The inner combiner's context, whether or not it wants to know the moment.
auto combined(const auto& inner, const tensor auto& weights, const tensor auto& values, const auto& at)
{
    if constexpr (requires { inner(weights, values, at); }) {
        return inner(weights, values, at);
    } else {
        return inner(weights, values);
    }
}

/// The query's tensor: itself, or the state of a state_and_word.
decltype(auto) asking_state(const auto& query)
{
    if constexpr (requires { (query.state); }) {
        return (query.state);
    } else {
        return (query);
    }
}

inline bool shows(const no_mask&, std::size_t) { return true; }
inline bool shows(const boolean_mask<2>& mask, std::size_t i) { return mask[i] != 0; }
template <class Bias>
bool shows(const additive_mask<Bias>& mask, std::size_t i)
{
    using T = element_of<Bias>;
    return view_of(mask.bias).data[i] != -std::numeric_limits<T>::infinity();
}

/// Which rows may attend to at least one of T positions.
inline std::vector<std::uint8_t> rows_that_see(std::size_t positions, const auto& at)
{
    std::vector<std::uint8_t> sees(at.real.batch(), 0);
    for (std::size_t b = 0; b < sees.size(); ++b) {
        for (std::size_t t = 0; t < at.real[b] && sees[b] == 0; ++t) {
            const std::size_t i = b * positions + t;
            sees[b] = shows(at.source, i) && shows(at.mask, i) ? 1 : 0;
        }
    }
    return sees;
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
