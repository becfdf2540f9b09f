// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/core/errors.hpp>
#include <heed/seq2seq/beam.hpp>
#include <heed/seq2seq/candidates.hpp>
#include <heed/seq2seq/forced.hpp>

#include "command_line.hpp"
#include "interrupt.hpp"
#include "model_file.hpp"
#include "progress.hpp"

/// Searches for translations of many sentences, with one model or several.
namespace translation {

/// One model, or several that decide together: an ensemble.
class models {
public:
    models(const system& one) : members_{&one} {}
    explicit models(const std::vector<translator_file>& several)
    {
        for (const translator_file& each : several) members_.push_back(each.system.get());
    }

    /// The only model; null for an ensemble.
    const system* alone() const { return members_.size() == 1 ? members_.front() : nullptr; }

    std::unique_ptr<heed::seq2seq::decoding<float>> decode(const heed::seq2seq::source_batch& sentences) const;

    /// Forced decoding: led through these translations.
    std::vector<heed::seq2seq::forced_decoding<float>> force(const heed::seq2seq::source_batch& sentences,
                                                             const std::vector<const id_sentence*>& targets,
                                                             bool with_weights) const;

private:
    std::vector<const system*> members_;
};

/// The models of an ensemble: they must read and write the same tokens.
std::vector<translator_file> load_models(const std::vector<std::filesystem::path>& paths);

inline bool looks(const translator_file& model) { return model.system->looks(); }

inline bool looks(const std::vector<translator_file>& models)
{
    return std::any_of(models.begin(), models.end(), [](const auto& each) { return looks(each); });
}

/// The options of a search.
struct search_options {
    std::size_t beam = 12, block_ngrams = 0, min_length = 0, max_length = 0, best = 1;
    double length_penalty = 0.6, coverage_penalty = 0;

    static search_options greedy()
    {
        search_options result;
        result.beam = 1;
        return result;
    }

    void declare(CLI::App& app)
    {
        const auto choice = [&](const char* name, auto& value, const char* help) {
            return app.add_option(name, value, help)->type_name("N")->capture_default_str()->group("Search");
        };
        choice("--beam", beam, "hypotheses kept for each sentence; 1: greedy")
            ->check(CLI::Range(std::size_t{1}, std::size_t{1024}).description(""));
        choice("--length-penalty", length_penalty,
               "log-probabilities are divided by ((5 + tokens) / 6)^A (Wu et al.\n"
               "2016); 0: undivided, which makes translations short")
            ->check(CLI::Range(0.0, 10.0).description(""))
            ->check(number)
            ->type_name("A");
        choice("--coverage-penalty", coverage_penalty, "penalty for source words without attention (ibid.)")
            ->check(CLI::Range(0.0, 100.0).description(""))
            ->check(number)
            ->type_name("B");
        choice("--block-ngrams", block_ngrams, "no N tokens in a row twice in a translation; 0: no limit")
            ->check(any_number);
        choice("--min-length", min_length, "minimum number of tokens of a translation")->check(any_number);
        choice("--max-length", max_length, "maximum number; 0: twice those of the source plus 10")->check(any_number);
    }

    /// Throws if options contradict each other.
    void check(bool model_looks) const
    {
        if (best > beam)
            throw heed::error(fmt::format("--n-best {} of a beam of {}: give --beam {} or more", best, beam, best));
        if (max_length > 0 && min_length > max_length)
            throw heed::error(fmt::format("--min-length {} is more than --max-length {}", min_length, max_length));
        if (coverage_penalty > 0 && !model_looks)
            throw heed::error("--coverage-penalty: needs attention, and the model was trained with --attention none");
    }

    heed::seq2seq::length_limit at_most() const
    {
        return max_length > 0 ? heed::seq2seq::length_limit{0, max_length} : heed::seq2seq::length_limit{};
    }

    heed::seq2seq::beam_options beam_options(bool with_weights) const
    {
        heed::seq2seq::beam_options how;
        how.width = beam;
        how.best = best;
        how.alpha = length_penalty;
        how.coverage = coverage_penalty;
        how.no_repeat = block_ngrams;
        how.least_words = min_length;
        how.at_most = at_most();
        how.never = {how.special.padding, how.special.begin};  // not text; they occur where nothing else may
        how.with_weights = with_weights;
        return how;
    }
};

/// Batches of sentences of similar length, in a fixed order: little padding, and always the same.
inline std::vector<std::vector<std::size_t>> batches_by_length(const std::vector<id_sentence>& sentences,
                                                               std::size_t size)
{
    std::vector<std::size_t> order(sentences.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return sentences[a].size() < sentences[b].size(); });
    std::vector<std::vector<std::size_t>> batches;
    for (std::size_t i = 0; i < order.size(); i += size) {
        batches.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(i),
                             order.begin() + static_cast<std::ptrdiff_t>(std::min(order.size(), i + size)));
    }
    return batches;
}

inline std::vector<const id_sentence*> chosen(const std::vector<id_sentence>& from,
                                              const std::vector<std::size_t>& which)
{
    std::vector<const id_sentence*> some;
    for (const std::size_t i : which) some.push_back(&from[i]);
    return some;
}

/// A model's translations of a sentence, best first.
using translations = std::vector<heed::seq2seq::translation<float>>;

/// The translations of all sentences, in their order. After an interrupt it returns soon and some are missing.
std::vector<translations> search_all(const models& with, const std::vector<id_sentence>& sources,
                                     std::size_t batch_size, const search_options& how, bool with_weights,
                                     const heed::seq2seq::candidate_lists* only = nullptr, progress* seen = nullptr);

/// The greedy translation of each sentence.
inline std::vector<heed::seq2seq::translation<float>>
translate_all(const models& with, const std::vector<id_sentence>& sources, std::size_t batch_size, bool with_weights,
              const search_options& how = search_options::greedy(), progress* seen = nullptr)
{
    std::vector<heed::seq2seq::translation<float>> best(sources.size());
    auto all = search_all(with, sources, batch_size, how, with_weights, nullptr, seen);
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!all[i].empty()) best[i] = std::move(all[i].front());
    }
    return best;
}

}  // namespace translation
