// SPDX-License-Identifier: BSD-3-Clause
#include "quality.hpp"

#include <cmath>

#include "interrupt.hpp"

namespace translation {

namespace {

/// Σ −log p(target | source) of these pairs, in nats.
double loss_of(const models& with, const examples& pairs, const std::vector<std::size_t>& which)
{
    if (const system* const one = with.alone()) return one->loss(make_batch(pairs, which));
    const auto some = heed::seq2seq::make_source(chosen(pairs.source, which));
    double nats = 0;
    for (const auto& each : with.force(some, chosen(pairs.target, which), false)) nats -= each.log_probability();
    return nats;
}

}  // namespace

quality evaluate_loss(const models& with, const examples& pairs, const std::vector<sentence>& references,
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

heed::metrics::bleu_score evaluate_bleu(const models& with, const examples& pairs,
                                        const std::vector<sentence>& references, const language& target,
                                        std::size_t batch_size)
{
    std::vector<sentence> hypotheses;
    hypotheses.reserve(references.size());
    const auto all = translate_all(with, pairs.source, batch_size, false);
    for (std::size_t i = 0; i < all.size(); ++i)
        hypotheses.push_back(pairs.source[i].empty() ? sentence() : target.words(all[i].words));
    return heed::metrics::bleu(hypotheses, references);
}

}  // namespace translation
