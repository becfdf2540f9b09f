// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <heed/core/errors.hpp>
#include <heed/io/safetensors.hpp>
#include <heed/seq2seq/candidates.hpp>
#include <heed_kit/text/lexicon.hpp>
#include <heed_kit/text/vocabulary.hpp>
#include <heed_translator/language.hpp>
#include <heed_translator/options.hpp>

#include "dictionary.hpp"
#include "library.hpp"
#include "phrases.hpp"
#include "quality.hpp"

/// Training with a subset of the target words: how candidates are chosen and stored in a checkpoint.
namespace translation {

/// --candidates K:N.
struct candidate_sizes {
    std::size_t frequent, per_word;
};

/// Empty unless the text is "K:N".
inline std::optional<candidate_sizes> parse_candidates(const std::string& text)
{
    candidate_sizes result{};
    const char* const end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), end, result.frequent);
    if (first.ec != std::errc{} || first.ptr == end || *first.ptr != ':') return std::nullopt;
    const auto second = std::from_chars(first.ptr + 1, end, result.per_word);
    if (second.ec != std::errc{} || second.ptr != end) return std::nullopt;
    return result;
}

/// The error in the argument of --candidates; empty if there is none.
inline std::string wrong_candidates(const std::string& text)
{
    if (text == "all") return "";
    const auto sizes = parse_candidates(text);
    if (!sizes) return "give two numbers, such as 2000:10, or all";
    return sizes->frequent == 0 && sizes->per_word == 0 ? "0:0 leaves no candidates; choose larger numbers" : "";
}

/// The words over which the softmax of a batch runs: see heed::seq2seq::candidate_lists.
struct candidate_words {
    candidate_sizes sizes;
    enum class origin { none, learned, given } from = origin::none;
    std::vector<id_sentence> translations;  // by source word, at most sizes.per_word, best first
    heed::text::phrase_table phrases;       // and, for each phrase of a sentence, the sizes.per_word best words

    heed::seq2seq::candidate_lists lists() const
    {
        heed::seq2seq::candidate_lists result(sizes.frequent, sizes.per_word, translations);
        if (phrases.size() > 0) result.add_phrases(sizes.per_word, phrases);
        return result;
    }

    /// The number of source words, apart from special words, with a translation.
    std::size_t translated() const
    {
        std::size_t count = 0;
        for (std::size_t word = heed::text::vocabulary::special_words.size(); word < translations.size(); ++word)
            count += translations[word].empty() ? 0 : 1;
        return count;
    }

    /// Learned from the training text by IBM Model 1.
    void learn(const examples& training, std::size_t source_words)
    {
        const auto learned = heed::text::lexicon::learn(training.source, training.target);
        from = origin::learned;
        translations.assign(source_words, {});
        for (std::size_t word = 0; word < std::min(source_words, learned.size()); ++word) {
            for (const auto& each : learned.of(static_cast<std::uint32_t>(word))) {
                if (translations[word].size() == sizes.per_word) break;
                translations[word].push_back(each.target);
            }
        }
    }

    /// Built from a dictionary and its file name.
    void choose(const dictionary& given, const std::filesystem::path& path, const language& source,
                const language& target)
    {
        from = origin::given;
        translations = given.meanings(source, target);
        for (id_sentence& each : translations) each.resize(std::min(each.size(), sizes.per_word));
        if (translated() == 0)
            throw heed::error(path.string() + ": no line has both words in the "
                                              "vocabularies of this text; omit --dictionary to learn one");
    }

    static const char* name(origin from)
    {
        return from == origin::given ? "given" : from == origin::learned ? "learned" : "none";
    }

    /// Stores the dictionary in a checkpoint, since another build could learn one that differs in its last digits.
    void put(heed::io::archive& to) const
    {
        std::vector<std::int64_t> counts, words;
        for (const id_sentence& each : translations) {
            counts.push_back(static_cast<std::int64_t>(each.size()));
            words.insert(words.end(), each.begin(), each.end());
        }
        to.metadata["training.dictionary"] = name(from);
        to.tensors.push_back(heed::io::tensor_entry::of("candidates.counts", {counts.size()}, counts));
        to.tensors.push_back(heed::io::tensor_entry::of("candidates.words", {words.size()}, words));
    }

    /// Continues with the dictionary of a checkpoint. Throws heed::error if it contradicts the options of this run.
    void take(const heed::io::archive& archive, std::size_t source_words, std::size_t target_words)
    {
        if (const std::string& before = entry(archive.metadata, "training.dictionary"); before != name(from)) {
            throw heed::error(from == origin::given
                                  ? "this run was started without --dictionary; omit it to resume"
                                  : "this run was started with --dictionary; pass the same file to resume");
        }
        const auto counts = archive.at("candidates.counts").values<std::int64_t>();
        const auto words = archive.at("candidates.words").values<std::int64_t>();
        std::vector<id_sentence> stored;
        std::size_t next = 0;
        bool good = counts.size() == (from == origin::none ? 0 : source_words);
        for (std::size_t i = 0; good && i < counts.size(); ++i) {
            good = counts[i] >= 0 && static_cast<std::uint64_t>(counts[i]) <= words.size() - next;
            stored.emplace_back();
            for (std::int64_t k = 0; good && k < counts[i]; ++k, ++next) {
                good = words[next] >= 0 && static_cast<std::uint64_t>(words[next]) < target_words;
                stored.back().push_back(static_cast<std::uint32_t>(words[next]));
            }
        }
        if (!good || next != words.size())
            throw heed::error("the file contradicts itself: \"candidates.counts\" and \"candidates.words\" are not "
                              "translations of its source words");
        if (from == origin::given && stored != translations)
            throw heed::error("this run was started with another --dictionary; pass the same file to resume");
        translations = std::move(stored);
    }
};

}  // namespace translation
