// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/core/tensor.hpp>
#include <heed/normalize/softmax_with_sink.hpp>
#include <heed/score/scaled_dot.hpp>

/// Xiao, Tian, Chen, Han and Lewis 2024, "Efficient Streaming Language Models with Attention Sinks".
namespace heed::papers::xiao2024 {

/// Attention with a sink whose score is 0 ("zero sink", or softmax off by one: Miller 2023).
///
///     α_j = exp(e_j) / (1 + Σ_k exp(e_k))           "SoftMax₁"
///
/// The 0 is a parameter: ad::lift lets it learn (openai2025::with_sink).
template <class T>
auto zero_sink()
{
    return attention{score::scaled_dot{}, normalize::softmax_with_sink{array<T, 1>{T(0)}}, combine::weighted_sum{}};
}

}  // namespace heed::papers::xiao2024
