// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Every published mechanism under its paper's name, built from the public policies. Not included by heed.hpp.

#include <heed/papers/captioning.hpp>
#include <heed/papers/linear_attention.hpp>
#include <heed/papers/monotonic.hpp>
#include <heed/papers/positions.hpp>
#include <heed/papers/sentence_pairs.hpp>
#include <heed/papers/softmax_variants.hpp>
#include <heed/papers/transformer.hpp>
#include <heed/papers/translation.hpp>
