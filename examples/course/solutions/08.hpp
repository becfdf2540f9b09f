// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/core/family.hpp>
#include <heed/policy/concepts.hpp>

#include "course.hpp"

// a) Each word of the right translation can be matched once.
inline std::size_t clipped_matches(const std::vector<std::string>& translation, const std::vector<std::string>& right)
{
    std::map<std::string, std::size_t> left;
    for (const std::string& word : right) ++left[word];
    std::size_t matches = 0;
    for (const std::string& word : translation) {
        if (left[word] == 0) continue;
        --left[word];
        ++matches;
    }
    return matches;
}

// b) Any constant will do, since the softmax does not change if a number is added to all scores. `constant_like` makes
// a tensor of the same kind as the keys: an array, or a constant on the tape.
struct indifferent {
    static constexpr heed::score_traits traits{.weights = heed::weight_kind::per_position};

    auto operator()(const heed::tensor auto&, const heed::tensor auto& keys) const  // [B,Q], [B,T,D] -> [B,T]
    {
        using heed::shape_of;  // and shape_of of a tape, from another namespace
        const auto [B, T, width] = shape_of(keys);
        return heed::constant_like(keys, heed::shape_of_rank<2>{B, T}, 0.0);
    }

    static auto parameters(auto&, auto&&) { return indifferent{}; }
};
