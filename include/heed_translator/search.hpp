// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heed/core/errors.hpp>
#include <heed/seq2seq/beam.hpp>
#include <heed/seq2seq/candidates.hpp>
#include <heed/seq2seq/forced.hpp>

#include <heed_translator/model_file.hpp>

/// Searches for translations of many sentences, with one model or several.
namespace heed::translator {

/// One model, or an ensemble of several.
class models {
public:
    models(const system& one) : members_{&one} {}
    /// Refers to the models of these files, which must outlive it.
    explicit models(const std::vector<translator_file>& several)
    {
        for (const translator_file& each : several) members_.push_back(each.system.get());
    }
    explicit models(const std::vector<translator_file>&&) = delete;

    /// The only model; null for an ensemble.
    const system* alone() const { return members_.size() == 1 ? members_.front() : nullptr; }

    /// Starts decoding these sentences.
    std::unique_ptr<heed::seq2seq::decoding<float>> decode(const heed::seq2seq::source_batch& sentences) const;

    /// Forced decoding of these translations.
    std::vector<heed::seq2seq::forced_decoding<float>> force(const heed::seq2seq::source_batch& sentences,
                                                             const std::vector<const id_sentence*>& targets,
                                                             bool with_weights) const;

private:
    std::vector<const system*> members_;
};

/// The models of an ensemble; they must have the same tokens.
std::vector<translator_file> load_models(const std::vector<std::filesystem::path>& paths);

/// Whether the model, or a model of the ensemble, has attention.
inline bool has_attention(const translator_file& model) { return model.system->has_attention(); }

inline bool has_attention(const std::vector<translator_file>& models)
{
    return std::any_of(models.begin(), models.end(), [](const auto& each) { return has_attention(each); });
}

/// The batches of a search that this process does, if `of` processes share the work: the batches index, index + of, …
/// The other sentences get no translation.
struct part_of_search {
    std::size_t index = 0, of = 1;

    /// Whether this batch is assigned to this process.
    bool has(std::size_t number) const { return number % of == index; }
};

/// The options of a search.
struct search_options {
    std::size_t beam = 12, block_ngrams = 0;
    std::size_t min_length = 0, max_length = 0;  // in tokens; see translate_options
    std::size_t best = 1;
    double length_penalty = 0.6, coverage_penalty = 0;
    part_of_search part{};
    /// Called for each sentence, by its number, before each step of its search. If it returns false, the sentence gets
    /// no translation. Empty: all are wanted.
    std::function<bool(std::size_t sentence)> wanted = {};

    /// A beam of 1.
    static search_options greedy()
    {
        search_options result;
        result.beam = 1;
        return result;
    }

    /// Throws heed::error if the options contradict each other, or require attention that the models do not have.
    void check(bool model_looks) const
    {
        const auto number = [](std::size_t count) { return std::to_string(count); };
        if (beam == 0 || best == 0) throw heed::error("search: beam and best must be at least 1");
        if (best > beam)
            throw heed::error("search: the " + number(best) + " best of a beam of " + number(beam) +
                              "; the beam must be " + number(best) + " or more");
        if (max_length > 0 && min_length > max_length)
            throw heed::error("search: the minimum length " + number(min_length) + " is greater than the maximum, " +
                              number(max_length));
        if (!(length_penalty >= 0) || !(coverage_penalty >= 0))
            throw heed::error("search: a penalty must be 0 or more");
        if (coverage_penalty > 0 && !model_looks)
            throw heed::error("search: a coverage penalty requires attention, but the model has none");
    }

    /// The maximum length as used by the searches.
    heed::seq2seq::length_limit at_most() const
    {
        return max_length > 0 ? heed::seq2seq::length_limit{0, max_length} : heed::seq2seq::length_limit{};
    }

    /// All options as used by the beam search.
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
        how.with_weights = with_weights;
        return how;
    }
};

/// Batches of sentences of similar length, in a deterministic order, with little padding.
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

/// The sentences of a batch, in that order.
inline std::vector<const id_sentence*> chosen(const std::vector<id_sentence>& from,
                                              const std::vector<std::size_t>& which)
{
    std::vector<const id_sentence*> some;
    for (const std::size_t i : which) some.push_back(&from[i]);
    return some;
}

/// The translations of a sentence, best first.
using translations = std::vector<heed::seq2seq::translation<float>>;

/// Called before the first batch of a search with 0, and after each batch with the number of its sentences. If it
/// returns false, the search ends.
using watch_search = std::function<bool(std::size_t sentences)>;

/// The translations of all sentences, in order. If `watch` ended the search, some are missing.
std::vector<translations> search_all(const models& with, const std::vector<id_sentence>& sources,
                                     std::size_t batch_size, const search_options& how, bool with_weights,
                                     const heed::seq2seq::candidate_lists* only = nullptr,
                                     const watch_search& watch = {});

/// The greedy translation of each sentence.
inline std::vector<heed::seq2seq::translation<float>>
translate_all(const models& with, const std::vector<id_sentence>& sources, std::size_t batch_size, bool with_weights,
              const search_options& how = search_options::greedy(), const watch_search& watch = {})
{
    std::vector<heed::seq2seq::translation<float>> best(sources.size());
    auto all = search_all(with, sources, batch_size, how, with_weights, nullptr, watch);
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!all[i].empty()) best[i] = std::move(all[i].front());
    }
    return best;
}

}  // namespace heed::translator
