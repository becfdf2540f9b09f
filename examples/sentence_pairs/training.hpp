// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <heed/seq2seq/batch.hpp>
#include <heed_kit/metrics/two_classes.hpp>

#include "../../tools/support/progress.hpp"
#include "model.hpp"

namespace sentence_pairs {

struct recipe {
    std::size_t epochs = 10, batch = 64;
    double rate = 2e-3, dropout = 0.3;
    std::uint64_t seed = 1;
};

/// Counts correct answers; p(yes) above one half means yes.
inline heed::metrics::two_classes judge(const model& judged, const examples& all)
{
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return all.second[a].size() < all.second[b].size(); });
    heed::metrics::two_classes counts;
    constexpr std::size_t at_once = 128;
    for (std::size_t begin = 0; begin < order.size(); begin += at_once) {
        const std::vector<std::size_t> which(order.begin() + static_cast<std::ptrdiff_t>(begin),
                                             order.begin() +
                                                 static_cast<std::ptrdiff_t>(std::min(order.size(), begin + at_once)));
        const auto p = judged.probabilities(all.batch(which));
        for (std::size_t i = 0; i < which.size(); ++i)
            counts.add(p[i] > 0.5f, all.answers[which[i]] == heed::pairs::yes);
    }
    return counts;
}

inline std::string percent(const heed::metrics::two_classes& counts)
{
    return fmt::format("accuracy {:.2f}%, F1 {:.2f}% (precision {:.2f}%, recall {:.2f}%) of {} pairs",
                       100 * counts.accuracy(), 100 * counts.f1(), 100 * counts.precision(), 100 * counts.recall(),
                       counts.size());
}

/// Trains with Adam; writes the model to `path` after each epoch with the best accuracy on `valid` so far.
inline void train(matcher_file& file, const examples& training, const examples& valid, const recipe& how,
                  const std::filesystem::path& path)
{
    fmt::print("{}: {} parameters; {} pairs for training, {} for validation, half are translations\n", file.form,
               file.model->parameters(), training.size(), valid.size());
    const auto start = program::clock::now();
    heed::random_source dropout{how.seed, 1000};
    double best = -1;
    for (std::size_t epoch = 1; epoch <= how.epochs; ++epoch) {
        const auto batches = heed::seq2seq::shuffled_batches(training.first, training.second, how.batch,
                                                             heed::mix(how.seed ^ heed::mix(epoch)));
        program::progress bar(training.size(), true, "pairs");
        double loss = 0;
        for (const auto& which : batches) {
            loss += file.model->learn(training.batch(which), how.rate, how.dropout, dropout);
            bar.add(which.size());
        }
        bar.clear();
        const auto counts = judge(*file.model, valid);
        const bool is_best = counts.accuracy() > best;
        if (is_best) {
            best = counts.accuracy();
            file.save(path);
        }
        fmt::print("epoch {:2}  loss {:.4f}  valid accuracy {:.2f}%  F1 {:.2f}%  {}{}\n", epoch,
                   loss / static_cast<double>(training.size()), 100 * counts.accuracy(), 100 * counts.f1(),
                   program::duration_text(program::seconds_since(start)), is_best ? "  saved" : "");
        std::fflush(stdout);
    }
}

}  // namespace sentence_pairs
