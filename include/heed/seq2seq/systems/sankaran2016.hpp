// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <heed/normalize/recent_temporal.hpp>
#include <heed/papers/translation.hpp>
#include <heed/seq2seq/translator.hpp>

namespace heed::inline HEED_TARGET::papers::sankaran2016 {

/// The parts of the paper's systems: a bidirectional GRU encoder, a conditional GRU, an output of two layers.
inline auto parts()
{
    return seq2seq::parts{}
        .with_query_from(seq2seq::query_from::intermediate_state_factory{})
        .with_readout(seq2seq::output::two_layers_factory{});
}

/// Makes the baseline of section 4.1: coverage embeddings (Mi et al. 2016), initialized from a table of the source
/// words.
struct coverage_factory {
    std::size_t coverage = 100;  // N

    template <class T>
    auto operator()(const nn::initializers<T>& init, const seq2seq::sizes& n) const
    {
        auto made = mi2016::make_coverage<T>(init, {n.hidden, n.width(), n.alignment, n.embedding, coverage});
        return seq2seq::coverage_of_words{std::move(made), init.gaussian(n.source_vocabulary, coverage, 0.1)};
    }
};

/// The systems of Sankaran et al. 2016, tables 2 to 6. Sizes of the paper: embedding 620 (German) or 300, hidden 1000.
///
///     NMT                  translator<T>(seed, n, seq2seq::attentions::additive_factory{})
///     + temporal           translator<T>(seed, n)
///     + coverage           translator<T>(seed, n, sankaran2016::coverage_factory{})
///     + local-m            translator<T>(seed, n, seq2seq::attention_factory{additive, normalize::local_m{10}})
///
/// with `additive` = seq2seq::attentions::additive_score_factory{}. Temporal attention within local-m's window is
/// `attention_factory{additive, normalize::local_m{10, normalize::temporal{}}}`. Temporal attention of the last steps
/// only, future work in section 3, is `attention_factory{additive, normalize::recent_temporal{5},
/// combine::direction_split{}}`.
///
/// heed's choice: s_0 = tanh(W_s ←h_1 + b_s). The paper does not specify s_0; dl4mt-tutorial, the source of its
/// conditional GRU, computes it from the mean of the annotations.
template <class T, class Attention = seq2seq::attentions::temporal_factory,
          class Parts = decltype(sankaran2016::parts())>
auto translator(std::uint64_t seed, const seq2seq::sizes& n, const Attention& attention = {},
                const Parts& with = sankaran2016::parts(), nn::initializer<T> recurrent = nullptr)
{
    return seq2seq::make_translator<T>(seed, n, attention, with, recurrent);
}

}  // namespace heed::inline HEED_TARGET::papers::sankaran2016
