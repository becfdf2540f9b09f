// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/attention/concepts.hpp>
#include <heed/kernels/tiles/rules.hpp>
#include <heed/ops/sparse.hpp>

namespace heed::normalize {

/// Softmax that may look away: a sink takes part of the weight, and gives nothing for it.
///
///     α_j = exp(e_j) / (exp(s) + Σ_k exp(e_k))        s = 0: "softmax off by one", Miller 2023
///
///     normalize::softmax_with_sink{array<float, 1>{0}}     s learns; ad::lift makes it a parameter, as any other
///
/// s is one number for each attention, and so one for each head of a multi_head. Without any real position all weights
/// are 0, as softmax's. Weights sum to less than 1, by what the sink has. Works per dimension, with one sink for all.
/// Attention sinks are those of Xiao et al. 2024, who keep the first words' keys for it; a learned number in the place
/// of a word is how later models have them.
template <class Vector>
struct softmax_with_sink {
    static constexpr bool row_by_row = true;  // see attention/at_once.hpp
    Vector sink;                              // [1]

    auto operator()(const tensor auto& scores, const auto&, const auto& at) const  // [B,T] or [B,T,D], the same
    {
        return ops::softmax_with_sink(at.visible(scores), sink, at.real);
    }

    auto by_tiles() const { return kernels::tiles::softmax_with_sinks<Vector>{{}, sink}; }

    static auto parameters(auto& self, auto&& visit)
    {
        auto sink = visit("sink", self.sink);
        return softmax_with_sink<decltype(sink)>{std::move(sink)};
    }
};

template <class Vector>
softmax_with_sink(Vector) -> softmax_with_sink<Vector>;

}  // namespace heed::normalize
