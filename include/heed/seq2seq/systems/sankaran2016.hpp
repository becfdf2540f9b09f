// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <heed/normalize/recent_temporal.hpp>
#include <heed/papers/translation.hpp>
#include <heed/seq2seq/translator.hpp>

namespace heed::papers::sankaran2016 {

/// How the paper's systems are put together: a bidirectional GRU encoder, a conditional GRU, an output of two layers.
inline auto parts()
{
    return seq2seq::parts{}
        .with_asks(seq2seq::asks_with::new_intermediate_state{})
        .with_readout(seq2seq::output::new_two_layers{});
}

/// Makes temporal attention that remembers the last steps only: future work, section 3.
template <class T>
struct new_recent_temporal {
    std::size_t steps = 5;

    auto operator()(random_source& random, const seq2seq::sizes& n) const
    {
        return attention{seq2seq::attentions::additive<T>::score(random, n), normalize::recent_temporal{steps},
                         combine::direction_split{}};
    }
};

/// The rival of section 4.2: local-m around step t of the target, with the additive score.
template <class T>
struct new_local_m {
    std::size_t reach = 10;

    auto operator()(random_source& random, const seq2seq::sizes& n) const
    {
        return luong2015::local_m_of(seq2seq::attentions::additive<T>::score(random, n), reach);
    }
};

/// Both: temporal weights within local-m's window.
template <class T>
struct new_local_temporal {
    std::size_t reach = 10;

    auto operator()(random_source& random, const seq2seq::sizes& n) const
    {
        return attention{seq2seq::attentions::additive<T>::score(random, n),
                         normalize::local_m{reach, normalize::temporal{}}, combine::weighted_sum{}};
    }
};

/// The rival of section 4.1: coverage embeddings (Mi et al. 2016), which start from a table of the source words.
template <class T>
struct new_coverage {
    std::size_t coverage = 100;  // N

    auto operator()(random_source& random, const seq2seq::sizes& n) const
    {
        auto made = mi2016::make_coverage<T>(random, {n.hidden, n.width(), n.alignment, n.embedding, coverage});
        return seq2seq::coverage_of_words{std::move(made), nn::gaussian<T>(random, n.source_vocabulary, coverage, 0.1)};
    }
};

/// The systems of Sankaran et al. 2016, tables 2 to 6. Sizes of the paper: embedding 620 (German) or 300, hidden 1000.
///
///     NMT                  translator<T>(seed, n, seq2seq::attentions::additive<T>{})
///     + temporal           translator<T>(seed, n)
///     + coverage           translator<T>(seed, n, sankaran2016::new_coverage<T>{})
///     + local-m            translator<T>(seed, n, sankaran2016::new_local_m<T>{})
///
/// Ours: s_0 = tanh(W_s ←h_1 + b_s), where the paper is silent and dl4mt takes the mean of the annotations.
template <class T, class Attention = seq2seq::attentions::temporal<T>, class Parts = decltype(sankaran2016::parts())>
auto translator(std::uint64_t seed, const seq2seq::sizes& n, const Attention& attention = {},
                const Parts& made = sankaran2016::parts(), nn::initializer<T> recurrent = nullptr)
{
    return seq2seq::make_translator<T>(seed, n, attention, made, recurrent);
}

}  // namespace heed::papers::sankaran2016
