// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Everything that runs and trains an attention mechanism. IO, text, metrics and pictures are headers of their own.

#include <heed/attention.hpp>
#include <heed/version.hpp>

#include <heed/combine/elementwise_sum.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/normalize/temporal.hpp>
#include <heed/score/additive.hpp>
#include <heed/score/additive_per_dimension.hpp>
#include <heed/score/dot.hpp>
#include <heed/score/general.hpp>
#include <heed/score/with_word.hpp>

#include <heed/ad/ad.hpp>
