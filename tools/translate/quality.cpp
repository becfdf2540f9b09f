// SPDX-License-Identifier: BSD-3-Clause
#include "quality.hpp"

#include <cmath>

#include "interrupt.hpp"
#include "watch.hpp"

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
                      std::size_t batch_size, any_ranks over)
{
    double nats = 0, count = 0, words = 0;
    const auto batches = batches_by_length(pairs.target, batch_size);
    std::vector<double> each_nats(batches.size());  // 0 for sentences of other ranks
    for (std::size_t k = over.rank(); k < batches.size() && interrupted() == 0; k += over.size())
        each_nats[k] = loss_of(with, pairs, batches[k]);
    over.sum(std::span<double>(each_nats));
    for (const double each : each_nats) nats += each;
    for (const id_sentence& each : pairs.target) count += static_cast<double>(each.size() + 1);
    for (const sentence& each : references) words += static_cast<double>(each.size() + 1);
    return {{}, nats / count, std::exp(nats / count), std::exp(nats / words)};
}

heed::metrics::bleu_score evaluate_bleu(const models& with, const examples& pairs,
                                        const std::vector<sentence>& references, const language& target,
                                        std::size_t batch_size, any_ranks over)
{
    std::vector<sentence> hypotheses, known;
    hypotheses.reserve(references.size());
    const auto all =
        translate_all(with, pairs.source, batch_size, false, search_options::greedy(), shown_on(nullptr), over);
    for (std::size_t i = 0; i < all.size(); ++i)
        hypotheses.push_back(pairs.source[i].empty() ? sentence() : target.scored(target.read(all[i].words)));
    if (!target.raw) return heed::metrics::bleu(hypotheses, references);
    for (const sentence& each : references) known.push_back(target.scored(each));
    return heed::metrics::bleu(hypotheses, known);
}

std::vector<heed::seq2seq::translation<float>>
translate_all(const models& with, const std::vector<id_sentence>& sources, std::size_t batch_size, bool with_weights,
              search_options how, const watch_search& watch, any_ranks over)
{
    how.part = {over.rank(), over.size()};
    // Sentences that are still empty have no score.
    auto all = search_all(with, sources, batch_size, how, with_weights, nullptr, watch);
    std::vector<std::vector<heed::seq2seq::translation<float>>> found(all.size());
    for (std::size_t i = 0; i < all.size(); ++i)
        if (!all[i].empty()) found[i].push_back(std::move(all[i].front()));
    share_items(over, found, [](const auto& each) { return !each.empty(); });
    std::vector<heed::seq2seq::translation<float>> best(sources.size());
    for (std::size_t i = 0; i < found.size(); ++i)
        if (!found[i].empty()) best[i] = std::move(found[i].front());
    return best;
}

}  // namespace translation
