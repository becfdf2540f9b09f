// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <heed/nn/stacked.hpp>
#include <heed/papers/translation.hpp>
#include <heed/seq2seq/translator.hpp>

namespace heed::papers::luong2015 {

/// How the paper's systems are put together: stacked LSTM cells read the source backwards ("reverse"), the decoder
/// continues from their last states, its current state asks, and the attentional vector is fed to the next step.
inline auto parts(std::size_t layers = 4, seq2seq::direction reads = seq2seq::direction::backward)
{
    return seq2seq::parts{}
        .with_encoder(seq2seq::new_forward{reads})
        .with_cells(nn::new_stacked<nn::new_lstm>{layers})
        .with_asks(seq2seq::asks_with::new_current_state{})
        .with_start(seq2seq::starts_with::new_last_state{})
        .with_readout(seq2seq::output::new_fed<seq2seq::output::new_attentional>{});
}

/// The same without input feeding: "global" and "local" alone in table 1, and table 4's architectures.
inline auto parts_without_feeding(std::size_t layers = 4, seq2seq::direction reads = seq2seq::direction::backward)
{
    return luong2015::parts(layers, reads).with_readout(seq2seq::output::new_attentional{});
}

/// Those of "Base", which has no attention; it takes seq2seq::attentions::none.
inline auto parts_without_attention(std::size_t layers = 4, seq2seq::direction reads = seq2seq::direction::forward)
{
    return luong2015::parts(layers, reads).with_readout(seq2seq::output::new_linear{});
}

/// The scores of section 3.1. Each makes a score for a state [H] and annotations [D]; D is H here.
struct new_dot {
    template <class T>
    auto make(random_source&, const seq2seq::sizes&) const
    {
        return score::dot{};
    }
};
/// Makes score::general.
struct new_general {
    template <class T>
    auto make(random_source& random, const seq2seq::sizes& n) const
    {
        return score::general{nn::glorot<T>(random, n.hidden, n.width())};
    }
};
/// Makes score::concat.
struct new_concat {
    template <class T>
    auto make(random_source& random, const seq2seq::sizes& n) const
    {
        auto W_a = nn::glorot<T>(random, n.hidden + n.width(), n.alignment);
        return score::concat{std::move(W_a), nn::small_vector<T>(random, n.alignment)};
    }
};
/// Makes score::location, for sources of at most `longest` words.
struct new_location {
    std::size_t longest = 51;  // S_max: words of the longest source sentence, its end included

    template <class T>
    auto make(random_source& random, const seq2seq::sizes& n) const
    {
        return score::location{nn::glorot<T>(random, n.hidden, longest)};
    }
};

/// The attentions of sections 3.1 and 3.2, as translators take them: each makes one around a score.
template <class T, class Score = new_general>
struct new_global {
    Score score{};

    auto operator()(random_source& random, const seq2seq::sizes& n) const
    {
        return luong2015::global(score.template make<T>(random, n));
    }
};
/// Makes attention in a window of `reach` words on each side that moves on with the target.
template <class T, class Score = new_general>
struct new_local_m {
    std::size_t reach = 10;  // D
    Score score{};

    auto operator()(random_source& random, const seq2seq::sizes& n) const
    {
        return luong2015::local_m_of(score.template make<T>(random, n), reach);
    }
};
/// Makes attention in a window of `reach` words on each side, at a place that the query predicts.
template <class T, class Score = new_general>
struct new_local_p {
    std::size_t reach = 10;  // D
    Score score{};

    auto operator()(random_source& random, const seq2seq::sizes& n) const
    {
        auto made = score.template make<T>(random, n);
        auto W_p = nn::glorot<T>(random, n.hidden, n.alignment);
        auto v_p = nn::small_vector<T>(random, n.alignment);
        return luong2015::local_p_of(std::move(made), std::move(W_p), std::move(v_p), reach);
    }
};

/// The systems of Luong et al. 2015, tables 1 and 4. Sizes of the paper: embedding, hidden and readout 1000, 4 layers.
///
///     best single model        translator<T>(seed, n)                                   local-p (general) + feed input
///     global (location)        translator<T>(seed, n, new_global<T, new_location>{}, parts_without_feeding())
///     Base                     translator<T>(seed, n, seq2seq::attentions::none<T>{}, parts_without_attention())
///
/// Deviations: trained initial states of the encoder; biases of the output layer.
template <class T, class Attention = luong2015::new_local_p<T>, class Parts = decltype(luong2015::parts())>
auto translator(std::uint64_t seed, const seq2seq::sizes& n, const Attention& attention = {},
                const Parts& made = luong2015::parts(), nn::initializer<T> recurrent = nullptr)
{
    return seq2seq::make_translator<T>(seed, n, attention, made, recurrent);
}

}  // namespace heed::papers::luong2015
