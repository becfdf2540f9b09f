// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <heed/seq2seq/batch.hpp>
#include <heed/seq2seq/systems/vaswani2017.hpp>
#include <heed/seq2seq/translator.hpp>

#include "sizes.hpp"

/// Shared by the searches of heed and of libtorch: models with their weights, sentences, and the protocol. Every
/// program reads one workload per line from standard input, and responds with the seconds that it took and the sum of
/// the best translations' log-probabilities.
namespace bench::search {

struct work {
    std::string name, model;
    std::size_t width, batch;  // width 0: greedy
};

inline const std::vector<work>& works()
{
    static const std::vector<work> all = [] {
        std::vector<work> result{{"beam12/B16", "rnnsearch", 12, 16},
                                 {"beam12/B1", "rnnsearch", 12, 1},
                                 {"greedy/B1", "rnnsearch", 0, 1},
                                 {"greedy/B64", "rnnsearch", 0, 64}};
        for (const std::string model : {"transformer-128", "transformer-512"}) {
            result.push_back({model + "/beam5/B16", model, 5, 16});
            result.push_back({model + "/beam5/B1", model, 5, 1});
            result.push_back({model + "/greedy/B1", model, 0, 1});
            result.push_back({model + "/greedy/B64", model, 0, 64});
        }
        return result;
    }();
    return all;
}

inline constexpr std::size_t sentences = 64;

/// Seconds: CPU time with one thread, so that other load on the machine matters less; otherwise wall time.
inline double now(int threads)
{
    timespec t{};
    clock_gettime(threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// RNNsearch as in bench/training.cpp, untrained. Its end word is unlikely, so that the length limit of the search ends
/// every translation: each has the length of its source including the end word (13.6 on average).
inline auto make_rnnsearch()
{
    const training_size z;
    const auto size = [](long n) { return static_cast<std::size_t>(n); };
    auto model = heed::seq2seq::make_translator<float>(
        1, {size(z.vocabulary), size(z.vocabulary), size(z.embedding), size(z.hidden), size(z.alignment)},
        heed::seq2seq::attentions::additive_factory{});
    // As in a trained model, logits differ by several units.
    for (float& w : model.decoder.readout.W_o) w *= 8;
    model.decoder.readout.b(heed::seq2seq::special_ids{}.end) = -20;  // never chosen
    return model;
}

struct transformer_size {
    long model, hidden, heads, layers;
    long vocabulary = 10000;
};

inline transformer_size size_of(const std::string& model)
{
    return model == "transformer-128" ? transformer_size{128, 256, 4, 4} : transformer_size{512, 2048, 8, 6};
}

/// An untrained Transformer with one table for all embeddings; logits and end word as for RNNsearch above.
inline auto make_transformer(const transformer_size& size)
{
    const auto number = [](long n) { return static_cast<std::size_t>(n); };
    heed::papers::vaswani2017::translator_sizes n;
    n.source_vocabulary = n.target_vocabulary = number(size.vocabulary);
    n.model = number(size.model);
    n.hidden = number(size.hidden);
    n.heads = number(size.heads);
    n.encoder_layers = n.decoder_layers = number(size.layers);
    auto model = heed::papers::vaswani2017::translator<float>(1, n);
    for (float& gain : model.decoder.back().around_feed_forward.norm.gain) gain *= 4;
    model.b(heed::seq2seq::special_ids{}.end) = -40;
    return model;
}

/// Sentences of 5 to 25 words, mostly 9 to 16, as in Multi30k's captions. Sorted by length, as when decoding a file,
/// and divided into batches.
inline std::vector<heed::seq2seq::source_batch> batches(std::size_t batch)
{
    using heed::seq2seq::id_sentence;
    std::vector<float> u(sentences * 4);
    fill(u.data(), u.size(), 21, 1.0F);
    std::vector<id_sentence> all(sentences);
    const auto ids = words(sentences * 32, training_size{}.vocabulary, 22);
    for (std::size_t s = 0; s < sentences; ++s) {
        const float bell = u[4 * s] + u[4 * s + 1] + u[4 * s + 2] + u[4 * s + 3];  // ±4, deviation 1.15
        const auto length = static_cast<std::size_t>(std::clamp(12.6F + 3.2F * bell, 5.0F, 25.0F));
        for (std::size_t i = 0; i < length; ++i) all[s].push_back(static_cast<std::uint32_t>(ids[32 * s + i]));
    }
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
    std::vector<heed::seq2seq::source_batch> result;
    for (std::size_t first = 0; first < sentences; first += batch) {
        std::vector<const id_sentence*> some;
        for (std::size_t s = first; s < first + batch; ++s) some.push_back(&all[s]);
        result.push_back(heed::seq2seq::make_source(some));
    }
    return result;
}

}  // namespace bench::search
