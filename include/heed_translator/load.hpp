// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// Loads a translator written by `translate train`:
///
///     const auto model = heed::seq2seq::load("en-de.safetensors");
///     const auto out = model.translate(lines, {.beam = 12, .alternatives = 3});
///     out[0].text;  out[0].score;  out[0].alternatives[1].text;  out[0].alignment;
///
/// The file determines the system. Link heed::translator; programs compile in a second, since this header contains only
/// declarations.
namespace heed::inline HEED_TARGET::seq2seq {

class candidate_lists;

}  // namespace heed::inline HEED_TARGET::seq2seq

namespace heed::translator {

struct translator_file;

/// Options of `trained_translator::translate`.
struct translate_options {
    std::size_t beam = 12;          // hypotheses per line; 1: greedy
    std::size_t alternatives = 1;   // number of translations of each line, including the best; at most `beam`
    std::size_t batch = 64;         // lines per batch
    double length_penalty = 0.6;    // log-probabilities are divided by ((5 + subwords) / 6)^this (Wu et al. 2016)
    double coverage_penalty = 0;    // for source subwords without attention (ibid.)
    std::size_t block_ngrams = 0;   // n-grams of this size may not repeat in a translation; 0: no limit
    std::size_t min_length = 0;     // in subwords
    std::size_t max_length = 0;     // in subwords; 0: twice the source length plus 10
    bool alignments = true;         // alignments between words, if the model has attention
    bool piece_alignments = false;  // also alignments between subwords
    bool replace_unknown = false;   // replace unknown words with the source word of the largest weight,
    const std::unordered_map<std::string, std::string>* meanings = nullptr;  // or with its translation, if given here
    const seq2seq::candidate_lists* only = nullptr;  // restrict the output to these words; null: all
    // Called before the first batch with 0, and after each batch with the number of its lines. If it returns false,
    // translating ends, and the remaining lines have no translation.
    std::function<bool(std::size_t lines)> watch = {};
    // If several processes share the lines, this process translates the batches part, part + parts, …; the other lines
    // have no translation. Lines are assigned to batches deterministically by length.
    std::size_t part = 0, parts = 1;
    // Called for each line, by its number, before each step of its search. If it returns false, the search of that line
    // ends without a translation, for example because a client has disconnected or a deadline has passed.
    std::function<bool(std::size_t line)> wanted = {};
};

/// A translation of a line.
struct translated {
    std::string text;
    double score = 0;                 // the ranking criterion: log_probability after the penalties
    double log_probability = 0;       // log p(subwords, end | line), in nats; for an ensemble, that of the mean
    std::vector<std::string> words;   // words of `text`
    std::vector<bool> unknown;        // for each word: the model wrote <unk>
    std::vector<std::string> pieces;  // output of the model: words or subwords ("low@@", "est")
    std::vector<std::uint32_t> ids;   // ids of `pieces` in the target vocabulary
    // [words + 1][source words + 1], the last row and column are the end of the sentence. A row contains the attention
    // for a word and sums to 1 for most attentions. Weights are summed over the subwords of a source word and averaged
    // over those of a target word.
    std::vector<std::vector<float>> alignment;
    std::vector<std::vector<float>> piece_alignment;  // [subwords + 1][source subwords + 1]
};

/// The best translation of a line; all requested translations are its `alternatives`, best first. All members are empty
/// for an empty line.
struct translated_line : translated {
    std::vector<std::string> source_words, source_pieces;
    std::vector<translated> alternatives;
};

/// The score of a given translation.
struct scored_pair {
    double log_probability = 0;             // log p(target, end | source), in nats
    std::vector<double> log_probabilities;  // of each subword, and of the end
    std::vector<std::string> source_words, target_words, target_pieces;
    std::vector<std::vector<float>> alignment, piece_alignment;  // as in `translated`
};

/// Options of `trained_translator::score`.
struct score_options {
    std::size_t batch = 64;
    bool alignments = true;         // alignments between words, if the model has attention
    bool piece_alignments = false;  // also alignments between subwords
};

/// A stored translator, or an ensemble of several. Lines must have the format of the training text. A model with
/// byte-pair codes splits words itself; a model of raw text (`translate train --raw`) reads and returns raw text, with
/// symbols as separate words.
///
/// Several threads may use one object concurrently, with the same results as a single thread. Copies are cheap: they
/// share the model.
class trained_translator {
public:
    /// Translations of these lines, in order. Throws heed::error for options that contradict each other, and for lines
    /// that are not UTF-8.
    std::vector<translated_line> translate(const std::vector<std::string>& lines,
                                           const translate_options& how = {}) const;
    std::vector<translated_line> translate(std::initializer_list<std::string> lines,
                                           const translate_options& how = {}) const
    {
        return translate(std::vector<std::string>(lines), how);
    }
    translated_line translate(std::string_view line, const translate_options& how = {}) const;

    /// As above, for lines already split at their spaces.
    std::vector<translated_line> translate_words(const std::vector<std::vector<std::string>>& lines,
                                                 const translate_options& how = {}) const;

    /// Forced decoding: targets[i] translates sources[i].
    std::vector<scored_pair> score(const std::vector<std::string>& sources, const std::vector<std::string>& targets,
                                   const score_options& how = {}) const;
    scored_pair score(std::string_view source, std::string_view target, const score_options& how = {}) const;

    /// The name of the system, as in `translate train --system`; for an ensemble, that of the first model.
    const std::string& system() const;
    /// A description such as "transformer (Vaswani et al. 2017), 1234 parameters"; for an ensemble, of all models.
    std::string description() const;
    /// All training options by name, such as "hidden"; for an ensemble, those of the first model.
    std::map<std::string, std::string> options() const;
    /// Whether the model has attention, and therefore alignments.
    bool has_attention() const;
    /// The number of parameters.
    std::size_t parameters() const;
    /// The source words or subwords; the first four are `<pad>`, `<unk>`, `<s>` and `</s>`.
    const std::vector<std::string>& source_vocabulary() const;
    /// The target words or subwords.
    const std::vector<std::string>& target_vocabulary() const;
    /// The models, at least one; for programs that include heed_translator/model_file.hpp.
    const std::vector<translator_file>& files() const;

private:
    friend trained_translator load(const std::vector<std::filesystem::path>& paths);

    struct models;
    explicit trained_translator(std::shared_ptr<const models> loaded) : models_(std::move(loaded)) {}

    std::shared_ptr<const models> models_;
};

/// Loads an ensemble of these files. Throws heed::error, naming the file, if a file cannot be read, is not a model or
/// is damaged, and if the models have different tokens.
trained_translator load(const std::vector<std::filesystem::path>& paths);
inline trained_translator load(std::initializer_list<std::filesystem::path> paths)
{
    return load(std::vector<std::filesystem::path>(paths));
}

/// Loads the model of this file.
inline trained_translator load(const std::filesystem::path& path) { return load({path}); }

}  // namespace heed::translator

namespace heed::inline HEED_TARGET::seq2seq {

using heed::translator::load;
using heed::translator::score_options;
using heed::translator::scored_pair;
using heed::translator::trained_translator;
using heed::translator::translate_options;
using heed::translator::translated;
using heed::translator::translated_line;

}  // namespace heed::inline HEED_TARGET::seq2seq
