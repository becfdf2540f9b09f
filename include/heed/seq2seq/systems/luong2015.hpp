// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <heed/nn/stacked.hpp>
#include <heed/papers/translation.hpp>
#include <heed/seq2seq/translator.hpp>

namespace heed::inline HEED_TARGET::papers::luong2015 {

/// The parts of the paper's systems: stacked LSTM cells read the source backward ("reverse"), the decoder starts from
/// their last states, its current state is the query, and the attentional vector is an input of the next step.
inline auto parts(std::size_t layers = 4, seq2seq::direction reads = seq2seq::direction::backward)
{
    return seq2seq::parts{}
        .with_encoder(seq2seq::forward_encoder_factory{reads})
        .with_cells(nn::stacked_factory<nn::lstm_factory>{layers})
        .with_query_from(seq2seq::query_from::current_state{})
        .with_start(seq2seq::initial_state::last_state{})
        .with_readout(seq2seq::output::input_feeding_factory{});
}

/// The parts without input feeding: "global" and "local" alone in table 1, and table 4's architectures.
inline auto parts_without_feeding(std::size_t layers = 4, seq2seq::direction reads = seq2seq::direction::backward)
{
    return luong2015::parts(layers, reads).with_readout(seq2seq::output::attentional_factory{});
}

/// The parts of "Base", which has no attention; use it with seq2seq::fixed_context{}.
inline auto parts_without_attention(std::size_t layers = 4, seq2seq::direction reads = seq2seq::direction::forward)
{
    return luong2015::parts(layers, reads).with_readout(seq2seq::output::linear_factory{});
}

/// Makes score::general. Like score::dot{}, which is its own factory, and the two below, it is a score of section 3.1.
struct general_factory {
    auto operator()(const auto& init, const seq2seq::sizes& n) const
    {
        return score::general{init.glorot(n.hidden, n.width())};
    }
};
/// Makes score::concat.
struct concat_factory {
    auto operator()(const auto& init, const seq2seq::sizes& n) const
    {
        return score::concat{init.glorot(n.hidden + n.width(), n.alignment), init.small_vector(n.alignment)};
    }
};
/// Makes score::location, for sources of at most `longest` words.
struct location_factory {
    std::size_t longest = 51;  // S_max: words of the longest source sentence, including its end

    auto operator()(const auto& init, const seq2seq::sizes& n) const
    {
        return score::location{init.glorot(n.hidden, longest)};
    }
};

/// Makes normalize::local_p, a window of `reach` words on each side of a position predicted by the query; section 3.2.
struct local_p_factory {
    std::size_t reach = 10;  // D

    auto operator()(const auto& init, const seq2seq::sizes& n) const
    {
        return normalize::local_p{init.glorot(n.hidden, n.alignment), init.small_vector(n.alignment), reach};
    }
};

/// The systems of Luong et al. 2015, tables 1 and 4. Sizes of the paper: embedding, hidden and readout 1000, 4 layers.
///
///     best single model        translator<T>(seed, n)                                   local-p (general) + feed input
///     global (location)        translator<T>(seed, n, seq2seq::attention_factory{location_factory{}},
///                                            parts_without_feeding())
///     local-m (general)        translator<T>(seed, n, seq2seq::attention_factory{general_factory{},
///     normalize::local_m{10}},
///                                            parts_without_feeding())
///     Base                     translator<T>(seed, n, seq2seq::fixed_context{}, parts_without_attention())
///
/// Deviations: trained initial states of the encoder; biases of the output layer.
template <class T, class Attention = seq2seq::attention_factory<general_factory, local_p_factory>,
          class Parts = decltype(luong2015::parts())>
auto translator(std::uint64_t seed, const seq2seq::sizes& n, const Attention& attention = {},
                const Parts& with = luong2015::parts(), nn::initializer<T> recurrent = nullptr)
{
    return seq2seq::make_translator<T>(seed, n, attention, with, recurrent);
}

}  // namespace heed::inline HEED_TARGET::papers::luong2015
