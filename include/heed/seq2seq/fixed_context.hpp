// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>

#include <heed/attention.hpp>

namespace heed::seq2seq {

/// No attention: the whole source sentence in one vector, the same at every step.
///
///     c = h_T                                 RNNencdec, Cho et al. 2014
///
/// Takes the place of an attention, so that one decoder serves both. With `forward_encoder` the vector is h_T, as in
/// the paper (the paper adds a layer tanh(V h_T), which the decoder's own matrices replace here); with
/// `bidirectional_encoder` it is [→h_T; ←h_1], which is in none of the papers and does much better.
struct fixed_context {
    template <class Summary>
    struct source_vector {
        Summary summary;  // [B,D]
    };

    /// The sentence's vector, [B,D].
    auto on(const auto& source, const lengths&) const
    {
        return source_vector<std::remove_cvref_t<decltype(source.whole)>>{source.whole};
    }

    attention_state<no_state> start(const auto&) const { return {}; }

    /// The sentence's vector once more.
    auto read(const auto& memory, const auto&, const attention_state<no_state>& state) const
    {
        return read_out<decltype(memory.summary), attention_state<no_state>>{memory.summary, {{}, state.step + 1}};
    }

    static auto parameters(auto&, auto&&) { return fixed_context{}; }
};

}  // namespace heed::seq2seq
