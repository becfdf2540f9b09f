// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/sparsemax.hpp>
#include <heed/score/cosine.hpp>

/// The cosine sees that "small" and "cats" point the same way and gives them the same score; sparsemax gives exactly
/// nothing to a word whose score is 1 or more behind.
inline auto one_half_each()
{
    using namespace heed;
    return attention{score::cosine{2}, normalize::sparsemax{}, combine::weighted_sum{}};
}

/// The scores of `swap` are right and too close to each other: "small" is half a thing and gets half the score of
/// "cats". Three times as large, scores are three times as far apart, and the softmax is as sharp as asked for.
inline heed::array<double, 2> thing_to_action() { return {{0, 3}, {3, 0}}; }
