// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/sparsemax.hpp>
#include <heed/score/cosine.hpp>

/// Cosine gives "small" and "cats" the same score, since they point the same way; sparsemax gives exactly 0 to a word
/// whose score is 1 or more behind.
inline auto one_half_each()
{
    using namespace heed;
    return attention{score::cosine{2}, normalize::sparsemax{}, combine::weighted_sum{}};
}

/// The scores of `swap` have the right order but are too close: "small" is half a thing and gets half the score of
/// "cats". A factor of 3 makes them three times as far apart, and the softmax sharp enough.
inline heed::array<double, 2> thing_to_action() { return {{0, 3}, {3, 0}}; }
