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

/// A translator that `translate train` has written, in a program of your own:
///
///     const auto model = heed::seq2seq::load("en-de.safetensors");
///     const auto out = model.translate(lines, {.beam = 12, .alternatives = 3});
///     out[0].text;  out[0].score;  out[0].alternatives[1].text;  out[0].alignment;
///
/// Which of the systems it is, the file says. A program links heed::translator and compiles in a second, since this
/// header only declares.
namespace heed::inline HEED_TARGET::seq2seq {

class candidate_lists;

}  // namespace heed::inline HEED_TARGET::seq2seq

namespace heed::translator {

struct translator_file;

/// How `trained_translator::translate` searches, and what it returns.
struct translate_options {
    std::size_t beam = 12;          // hypotheses kept for each line; 1: greedy
    std::size_t alternatives = 1;   // translations of each line, the best included; at most `beam`
    std::size_t batch = 64;         // lines that are translated together
    double length_penalty = 0.6;    // log-probabilities are divided by ((5 + pieces) / 6)^this (Wu et al. 2016)
    double coverage_penalty = 0;    // for source pieces without attention (ibid.)
    std::size_t block_ngrams = 0;   // no so many pieces in a row twice in a translation; 0: no limit
    std::size_t min_length = 0;     // in pieces
    std::size_t max_length = 0;     // in pieces; 0: twice those of the source plus 10
    bool alignments = true;         // between words, if the model has attention
    bool piece_alignments = false;  // also between pieces
    bool replace_unknown = false;   // unknown words become the source word with the most weight,
    const std::unordered_map<std::string, std::string>* meanings = nullptr;  // or its translation, if this has one
    const seq2seq::candidate_lists* only = nullptr;                          // only these words are written; null: all
    // Called before the first batch with 0, and after each batch with the number of its lines. Where it returns false,
    // translating ends: the other lines have no translation.
    std::function<bool(std::size_t lines)> watch = {};
    // Of several processes that share the lines, this one translates the batches part, part + parts, …; the other lines
    // have no translation. Lines are put into batches by their length, always the same way.
    std::size_t part = 0, parts = 1;
    // Called for each line, by its number, before each step of its search. Where it returns false, the search of that
    // line ends, and it has no translation: a client has gone, or a deadline has passed.
    std::function<bool(std::size_t line)> wanted = {};
};

/// A translation of a line.
struct translated {
    std::string text;
    double score = 0;                 // what the search ranks by: log_probability after the penalties
    double log_probability = 0;       // log p(pieces, end | line), in nats; of an ensemble, that of the mean
    std::vector<std::string> words;   // of `text`
    std::vector<bool> unknown;        // of each word: the model wrote <unk>
    std::vector<std::string> pieces;  // as the model wrote them: words, or pieces of words ("low@@", "est")
    std::vector<std::uint32_t> ids;   // of the pieces, in the target vocabulary
    // [words + 1][source words + 1], the last of each is the end of the sentence: a row is where the model looked when
    // it wrote this word, and sums to 1 for most attentions. A source word's pieces are added, a word's averaged.
    std::vector<std::vector<float>> alignment;
    std::vector<std::vector<float>> piece_alignment;  // [pieces + 1][source pieces + 1]
};

/// The best translation of a line; all that were asked for, best first, are its `alternatives`. Of an empty line all is
/// empty.
struct translated_line : translated {
    std::vector<std::string> source_words, source_pieces;
    std::vector<translated> alternatives;
};

/// What a model says of a given translation.
struct scored_pair {
    double log_probability = 0;             // log p(target, end | source), in nats
    std::vector<double> log_probabilities;  // of each piece, and of the end
    std::vector<std::string> source_words, target_words, target_pieces;
    std::vector<std::vector<float>> alignment, piece_alignment;  // as in `translated`
};

/// How `trained_translator::score` works, and what it returns.
struct score_options {
    std::size_t batch = 64;
    bool alignments = true;         // between words, if the model has attention
    bool piece_alignments = false;  // also between pieces
};

/// A stored translator, or several that decide together: an ensemble. Lines are text as the training text was; a model
/// of byte-pair codes splits the words itself, and one of raw text (`translate train --raw`) takes and returns that:
/// its words are then whole ones, with symbols apart.
///
/// Several threads may use one object at once, and each gets what it would get alone. Copies are cheap: they share the
/// model.
class trained_translator {
public:
    /// Translations of these lines, in their order. Throws heed::error for options that contradict each other, and for
    /// lines that are not UTF-8.
    std::vector<translated_line> translate(const std::vector<std::string>& lines,
                                           const translate_options& how = {}) const;
    std::vector<translated_line> translate(std::initializer_list<std::string> lines,
                                           const translate_options& how = {}) const
    {
        return translate(std::vector<std::string>(lines), how);
    }
    translated_line translate(std::string_view line, const translate_options& how = {}) const;

    /// The same of lines that are split at their spaces already.
    std::vector<translated_line> translate_words(const std::vector<std::vector<std::string>>& lines,
                                                 const translate_options& how = {}) const;

    /// The model led through given translations: targets[i] translates sources[i].
    std::vector<scored_pair> score(const std::vector<std::string>& sources, const std::vector<std::string>& targets,
                                   const score_options& how = {}) const;
    scored_pair score(std::string_view source, std::string_view target, const score_options& how = {}) const;

    /// The system's name, as `translate train --system` has it; of an ensemble, that of the first model.
    const std::string& system() const;
    /// In words: "transformer (Vaswani et al. 2017), 1234 parameters"; of an ensemble, all of them.
    std::string description() const;
    /// All options of the training by their names, such as "hidden"; of an ensemble, those of the first model.
    std::map<std::string, std::string> options() const;
    /// Whether there is attention, and so alignments.
    bool has_attention() const;
    /// The count of all parameters.
    std::size_t parameters() const;
    /// The words or pieces that it reads; the first four are `<pad>`, `<unk>`, `<s>` and `</s>`.
    const std::vector<std::string>& source_vocabulary() const;
    /// The words or pieces that it writes.
    const std::vector<std::string>& target_vocabulary() const;
    /// The models, at least one; for programs that include heed_translator/model_file.hpp.
    const std::vector<translator_file>& files() const;

private:
    friend trained_translator load(const std::vector<std::filesystem::path>& paths);

    struct models;
    explicit trained_translator(std::shared_ptr<const models> loaded) : models_(std::move(loaded)) {}

    std::shared_ptr<const models> models_;
};

/// The models of these files as an ensemble. Throws heed::error, which names the file, for one that cannot be read, is
/// no such model or is damaged, and for models that do not read and write the same pieces.
trained_translator load(const std::vector<std::filesystem::path>& paths);
inline trained_translator load(std::initializer_list<std::filesystem::path> paths)
{
    return load(std::vector<std::filesystem::path>(paths));
}

/// The model of this file.
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
