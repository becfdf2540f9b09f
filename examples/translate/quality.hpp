// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include <heed/metrics/bleu.hpp>
#include <heed/seq2seq/batch.hpp>
#include <heed/seq2seq/forced.hpp>

#include "interrupt.hpp"
#include "language.hpp"
#include "progress.hpp"
#include "search.hpp"
#include "system.hpp"

/// Translating many sentences, and measuring the quality.
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
    double word_perplexity = 0;  // per word, if tokens are pieces of words
};

/// Σ −log p(target | source) of these pairs, in nats.
inline double loss_of(const models& with, const examples& pairs, const std::vector<std::size_t>& which)
{
    if (const system* const one = with.alone()) return one->loss(make_batch(pairs, which));
    const auto some = heed::seq2seq::make_source(chosen(pairs.source, which));
    const auto at_work = with.decode(some);
    double nats = 0;
    for (const auto& each :
         heed::seq2seq::force(*at_work, some.real, chosen(pairs.target, which), {.with_weights = false}))
        nats -= each.log_probability();
    return nats;
}

/// The model's loss on the references, end words included; without BLEU. After an interrupt it returns soon and is
/// meaningless.
inline quality evaluate_loss(const models& with, const examples& pairs, const std::vector<sentence>& references,
                             std::size_t batch_size)
{
    double nats = 0, count = 0, words = 0;
    for (const auto& which : batches_by_length(pairs.target, batch_size)) {
        if (interrupted != 0) break;
        nats += loss_of(with, pairs, which);
        for (const std::size_t i : which) count += static_cast<double>(pairs.target[i].size() + 1);
    }
    for (const sentence& each : references) words += static_cast<double>(each.size() + 1);
    return {{}, nats / count, std::exp(nats / count), std::exp(nats / words)};
}

/// BLEU of the translations' words against the references as given. The translation of an empty sentence is empty.
/// After an interrupt it returns soon and is meaningless.
inline heed::metrics::bleu_score evaluate_bleu(const models& with, const examples& pairs,
                                               const std::vector<sentence>& references, const language& target,
                                               std::size_t batch_size,
                                               const search_options& how = search_options::greedy(),
                                               progress* seen = nullptr)
{
    std::vector<sentence> hypotheses;
    hypotheses.reserve(references.size());
    const auto all = translate_all(with, pairs.source, batch_size, false, how, seen);
    for (std::size_t i = 0; i < all.size(); ++i)
        hypotheses.push_back(pairs.source[i].empty() ? sentence() : target.words(all[i].words));
    return heed::metrics::bleu(hypotheses, references);
}

}  // namespace translation
