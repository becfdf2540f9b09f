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

// a) Each word of the right translation may be used up once.
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

// b) Any constant will do, since softmax does not change when a number is added to all scores. `constant_like` makes it
// where the keys are: a plain tensor, or a constant on the tape.
struct indifferent {
    static constexpr heed::score_traits traits{.weights = heed::weight_kind::per_position};

    auto operator()(const heed::tensor auto&, const heed::tensor auto& keys) const  // [B,Q], [B,T,D] -> [B,T]
    {
        using heed::shape_of;  // and that of a tape, which is in another namespace
        const auto [B, T, width] = shape_of(keys);
        return heed::constant_like(keys, heed::shape_of_rank<2>{B, T}, 0.0);
    }

    static auto parameters(auto&, auto&&) { return indifferent{}; }
};
