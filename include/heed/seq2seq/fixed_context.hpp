// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/attention.hpp>

namespace heed::seq2seq {

/// No attention: the whole source sentence in one vector, the same at every step.
///
///     c = [→h_T; ←h_1]                        RNNencdec, Cho et al. 2014; Sutskever et al. 2014 · SPEC E11, M1
///
/// Stands where an attention stands, so that one decoder serves both. Deviation: both directions are read, as with
/// attention, so that the two systems differ in nothing else.
struct fixed_context {
    template <class Summary>
    struct source_vector {
        Summary summary;  // [B,2H]
    };

    auto on(const auto& source, const lengths&) const
    {
        auto summary = ops::concat(source.forward, source.backward);
        return source_vector<decltype(summary)>{std::move(summary)};
    }

    attention_state<no_state> start(const auto&) const { return {}; }

    auto read(const auto& memory, const auto&, const attention_state<no_state>& state) const
    {
        return read_out<decltype(memory.summary), attention_state<no_state>>{memory.summary, {{}, state.step + 1}};
    }

    static auto parameters(auto&, auto&&) { return fixed_context{}; }
};

}  // namespace heed::seq2seq
