// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/softmax_with_sink.hpp>
#include <heed/score/scaled_dot.hpp>

/// OpenAI 2025, "gpt-oss-120b & gpt-oss-20b Model Card".
namespace heed::papers::openai2025 {

/// Attention with a sink that learns, one for each head.
///
///     α_j = exp(e_j) / (exp(s) + Σ_k exp(e_k))           in words: a bias in the divisor of softmax
///
/// s [1].
template <class Vector>
auto with_sink(Vector s)
{
    return attention{score::scaled_dot{}, normalize::softmax_with_sink{std::move(s)}, combine::weighted_sum{}};
}

}  // namespace heed::papers::openai2025
