// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Everything that runs and trains an attention mechanism. IO, text, metrics and pictures have headers of their own.

#include <heed/core/cxx20.hpp>

#include <heed/abcnn.hpp>
#include <heed/attention.hpp>
#include <heed/attention/streaming.hpp>
#include <heed/latent_heads.hpp>
#include <heed/multi_head.hpp>
#include <heed/multi_hop.hpp>
#include <heed/talking_heads.hpp>
#include <heed/version.hpp>

#include <heed/combine/attentional.hpp>
#include <heed/combine/direction_split.hpp>
#include <heed/combine/elementwise_sum.hpp>
#include <heed/combine/gated.hpp>
#include <heed/combine/grouped_sum.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/argmax.hpp>
#include <heed/normalize/connected.hpp>
#include <heed/normalize/dropout.hpp>
#include <heed/normalize/entmax15.hpp>
#include <heed/normalize/fading_temporal.hpp>
#include <heed/normalize/gumbel.hpp>
#include <heed/normalize/hard.hpp>
#include <heed/normalize/history_of_words.hpp>
#include <heed/normalize/local_m.hpp>
#include <heed/normalize/local_p.hpp>
#include <heed/normalize/ratio.hpp>
#include <heed/normalize/recent_temporal.hpp>
#include <heed/normalize/retention.hpp>
#include <heed/normalize/sigmoid.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/normalize/softmax_with_sink.hpp>
#include <heed/normalize/sparsemax.hpp>
#include <heed/normalize/stick_breaking.hpp>
#include <heed/normalize/temperature.hpp>
#include <heed/normalize/temporal.hpp>
#include <heed/normalize/top_k.hpp>
#include <heed/penalty/coverage.hpp>
#include <heed/penalty/doubly_stochastic.hpp>
#include <heed/penalty/guided_alignment.hpp>
#include <heed/penalty/monotone.hpp>
#include <heed/penalty/symmetry.hpp>
#include <heed/per_head/differential.hpp>
#include <heed/per_head/gated.hpp>
#include <heed/per_head/unchanged.hpp>
#include <heed/score/additive.hpp>
#include <heed/score/additive_grouped.hpp>
#include <heed/score/additive_per_dimension.hpp>
#include <heed/score/concat.hpp>
#include <heed/score/conv_s2s.hpp>
#include <heed/score/cosine.hpp>
#include <heed/score/dot.hpp>
#include <heed/score/forgetting.hpp>
#include <heed/score/general.hpp>
#include <heed/score/kernel.hpp>
#include <heed/score/location.hpp>
#include <heed/score/match.hpp>
#include <heed/score/rotary.hpp>
#include <heed/score/scaled_dot.hpp>
#include <heed/score/with_coverage.hpp>
#include <heed/score/with_fertility.hpp>
#include <heed/score/with_gated_coverage.hpp>
#include <heed/score/with_location.hpp>
#include <heed/score/with_neighbours.hpp>
#include <heed/score/with_positions.hpp>
#include <heed/score/with_recurrence.hpp>
#include <heed/score/with_word.hpp>

#include <heed/ad/ad.hpp>
