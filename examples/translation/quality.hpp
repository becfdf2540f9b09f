// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include <heed/metrics/bleu.hpp>
#include <heed/seq2seq/batch.hpp>

#include "interrupt.hpp"
#include "language.hpp"
#include "progress.hpp"
#include "search.hpp"
#include "system.hpp"

/// Many sentences translated, and how well.
namespace translation {

/// Parallel text as numbers.
struct examples {
    std::vector<id_sentence> source, target;
};

inline batch make_batch(const examples& from, const std::vector<std::size_t>& which)
{
    return heed::seq2seq::make_training_batch<float>(chosen(from.source, which), chosen(from.target, which));
}

struct quality {
    heed::metrics::bleu_score bleu;
    double loss = 0;  // nats a token
    double perplexity = 0;
};

/// Perplexity of the references, a token of the model's, and BLEU of the translations: of their words, against the
/// references as they were given. Once interrupted, it is over soon and means nothing.
inline quality evaluate(const system& with, const examples& pairs, const std::vector<sentence>& references,
                        const language& target, std::size_t batch_size,
                        const search_options& how = search_options::greedy(), progress* seen = nullptr)
{
    double nats = 0, count = 0;
    for (const auto& which : batches_by_length(pairs.target, batch_size)) {
        if (interrupted != 0) break;
        const batch some = make_batch(pairs, which);
        nats += with.loss(some);
        count += static_cast<double>(some.target_words);
    }
    std::vector<sentence> hypotheses;
    hypotheses.reserve(references.size());
    for (const auto& t : translate_all(with, pairs.source, batch_size, false, how, seen))
        hypotheses.push_back(target.words(t.words));
    return {heed::metrics::bleu(hypotheses, references), nats / count, std::exp(nats / count)};
}

}  // namespace translation
