// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Every published mechanism under its paper's name, built from the same policies as your own. Not part of heed.hpp.

#include <heed/papers/images.hpp>
#include <heed/papers/linear.hpp>
#include <heed/papers/monotonic.hpp>
#include <heed/papers/positions.hpp>
#include <heed/papers/sentence_pairs.hpp>
#include <heed/papers/transformer.hpp>
#include <heed/papers/translation.hpp>
#include <heed/papers/weights.hpp>
