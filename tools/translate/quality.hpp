// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <heed/core/errors.hpp>
#include <heed/seq2seq/batch.hpp>
#include <heed_kit/metrics/bleu.hpp>
#include <heed_translator/language.hpp>
#include <heed_translator/search.hpp>
#include <heed_translator/system.hpp>

#include "library.hpp"
#include "ranks.hpp"

/// Translates many sentences and measures the quality.
namespace translation {

/// Parallel text as ids.
struct examples {
    std::vector<id_sentence> source, target;
};

inline batch make_batch(const examples& from, const std::vector<std::size_t>& which)
{
    return heed::seq2seq::make_training_batch<float>(chosen(from.source, which), chosen(from.target, which));
}

struct quality {
    heed::metrics::bleu_score bleu;
    double loss = 0;             // nats per token
    double perplexity = 0;       // per token
    double word_perplexity = 0;  // per word, if tokens are subwords
};

/// The model's loss on the references, end words included; without BLEU. After an interrupt it returns early and is
/// meaningless. Ranks share the work, batch by batch, and all get the result of a single process.
quality evaluate_loss(const models& with, const examples& pairs, const std::vector<sentence>& references,
                      std::size_t batch_size, any_ranks over = alone());

/// BLEU of the words of greedy translations against the references as given; for raw text, both are tokenized by
/// mteval's 13a. The translation of an empty sentence is empty. After an interrupt it returns early and is meaningless.
/// Ranks share the work.
heed::metrics::bleu_score evaluate_bleu(const models& with, const examples& pairs,
                                        const std::vector<sentence>& references, const language& target,
                                        std::size_t batch_size, any_ranks over = alone());

/// The greedy translation of each sentence, or the result of the search `how`. Ranks share the work, batch by batch,
/// and all get all translations, equal to those of a single process.
std::vector<heed::seq2seq::translation<float>>
translate_all(const models& with, const std::vector<id_sentence>& sources, std::size_t batch_size, bool with_weights,
              search_options how, const watch_search& watch, any_ranks over);

/// Decoding time.
struct decoding_time {
    double seconds = 0;
    std::size_t sentences = 0, words = 0;  // words as written

    /// "decoded 30 sentences, 95 words in 0.40 s: 238 words/s"
    std::string text() const
    {
        return fmt::format("decoded {}, {} in {:.2f} s: {:.0f} words/s", heed::counted(sentences, "sentence"),
                           heed::counted(words, "word"), seconds, static_cast<double>(words) / seconds);
    }
};

}  // namespace translation
