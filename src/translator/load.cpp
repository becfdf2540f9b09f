// SPDX-License-Identifier: BSD-3-Clause

#include <heed_translator/load.hpp>

#include <optional>
#include <span>
#include <utility>

#include <heed/core/errors.hpp>
#include <heed/core/utf8.hpp>
#include <heed_translator/search.hpp>
#include <heed_translator/word_weights.hpp>

namespace heed::translator {

namespace detail {

/// The words of line `number`, from 0. Throws heed::error if it is not valid text.
inline text::sentence words_of_line(const language& side, std::string_view line, const char* what, std::size_t number)
{
    auto bad = text::find_invalid_utf8(line);
    const char* why = "is not valid UTF-8";
    if (const std::size_t nul = line.find('\0'); !bad && nul != line.npos) {
        bad = nul;
        why = "is not allowed in text";
    }
    if (bad) {
        constexpr std::string_view digits = "0123456789abcdef";
        const unsigned byte = static_cast<unsigned char>(line[*bad]);
        throw error(std::string(what) + " line " + std::to_string(number + 1) + ": byte " + std::to_string(*bad + 1) +
                    ", 0x" + digits[byte / 16] + digits[byte % 16] + ", " + why);
    }
    return side.split(line);
}

inline std::vector<text::sentence> words_of_lines(const language& side, const std::vector<std::string>& lines,
                                                  const char* what)
{
    std::vector<text::sentence> all;
    all.reserve(lines.size());
    for (std::size_t i = 0; i < lines.size(); ++i) all.push_back(words_of_line(side, lines[i], what, i));
    return all;
}

inline void require_batch(std::size_t batch)
{
    if (batch == 0) throw error("translate: a batch of 0 lines; it must have at least 1");
}

inline translated read_translation(const translator_file& file, const text::sentence& source,
                                   const seq2seq::translation<float>& found, const translate_options& how)
{
    heed::translator::reading read = heed::translator::read_translation(file, source, found.words);
    translated result;
    if (!found.weights.empty()) {
        if (how.replace_unknown) {
            const std::unordered_map<std::string, std::string> none;
            heed::translator::replace_unknown(file.source, source, found.weights,
                                              how.meanings == nullptr ? none : *how.meanings, read);
        }
        if (how.alignments)
            result.alignment = heed::translator::between_words(file.source, source, found.weights, read.tokens, true);
        if (how.piece_alignments) result.piece_alignment = found.weights;
    }
    result.text = read.text();
    result.score = found.score;
    result.log_probability = found.log_probability;
    result.words = std::move(read.words);
    result.unknown = std::move(read.unknown);
    result.ids = found.words;
    for (const std::uint32_t id : found.words) result.pieces.emplace_back(file.target.vocabulary.word(id));
    return result;
}

}  // namespace detail

struct trained_translator::models {
    std::vector<heed::translator::translator_file> files;
};

std::vector<translated_line> trained_translator::translate(const std::vector<std::string>& lines,
                                                           const translate_options& how) const
{
    return translate_words(detail::words_of_lines(files().front().source, lines, "translate:"), how);
}

translated_line trained_translator::translate(std::string_view line, const translate_options& how) const
{
    return std::move(translate(std::vector<std::string>{std::string(line)}, how).front());
}

std::vector<translated_line> trained_translator::translate_words(const std::vector<std::vector<std::string>>& lines,
                                                                 const translate_options& how) const
{
    const translator_file& file = files().front();
    heed::translator::search_options search;
    search.beam = how.beam;
    search.best = how.alternatives;
    search.length_penalty = how.length_penalty;
    search.coverage_penalty = how.coverage_penalty;
    search.block_ngrams = how.block_ngrams;
    search.min_length = how.min_length;
    search.max_length = how.max_length;
    search.wanted = how.wanted;
    if (how.part >= how.parts)
        throw error("translate: part " + std::to_string(how.part) + " of " + std::to_string(how.parts) +
                    "; parts count from 0");
    search.part = {how.part, how.parts};
    const bool attention = has_attention();
    search.check(attention);
    detail::require_batch(how.batch);
    if (how.replace_unknown && !attention)
        throw error("translate: unknown words cannot be replaced: the model has no attention");
    const bool with_weights = how.alignments || how.piece_alignments || how.replace_unknown;
    const auto all = heed::translator::search_all(heed::translator::models(files()), file.source.encode(lines),
                                                  how.batch, search, with_weights, how.only, how.watch);
    std::vector<translated_line> results(lines.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
        translated_line& result = results[i];
        result.source_words = file.source.shown(lines[i]);
        if (result.source_words.empty()) continue;
        for (const auto& found : all[i])
            result.alternatives.push_back(detail::read_translation(file, lines[i], found, how));
        if (!result.alternatives.empty()) static_cast<translated&>(result) = result.alternatives.front();
        result.source_pieces = file.source.tokens(lines[i]);
    }
    return results;
}

std::vector<scored_pair> trained_translator::score(const std::vector<std::string>& sources,
                                                   const std::vector<std::string>& targets,
                                                   const score_options& how) const
{
    if (sources.size() != targets.size())
        throw error("score: " + counted(sources.size(), "source") + " and " + counted(targets.size(), "target") +
                    "; line n of one must translate line n of the other");
    detail::require_batch(how.batch);
    const translator_file& file = files().front();
    const auto from = detail::words_of_lines(file.source, sources, "score: source");
    const auto to = detail::words_of_lines(file.target, targets, "score: target");
    const auto source_ids = file.source.encode(from), target_ids = file.target.encode(to);
    const heed::translator::models with(files());
    std::vector<scored_pair> results(sources.size());
    for (const auto& which : heed::translator::batches_by_length(target_ids, how.batch)) {
        const auto some = seq2seq::make_source(heed::translator::chosen(source_ids, which));
        const auto forced =
            with.force(some, heed::translator::chosen(target_ids, which), how.alignments || how.piece_alignments);
        for (std::size_t k = 0; k < which.size(); ++k) {
            const std::size_t i = which[k];
            scored_pair& result = results[i];
            result.log_probability = forced[k].log_probability();
            result.log_probabilities.assign(forced[k].log_probabilities.begin(), forced[k].log_probabilities.end());
            result.source_words = file.source.shown(from[i]);
            result.target_words = file.target.shown(to[i]);
            result.target_pieces = file.target.tokens(to[i]);
            if (forced[k].weights.empty()) continue;
            if (how.alignments)
                result.alignment = heed::translator::between_words(file.source, from[i], forced[k].weights,
                                                                   file.target.tokens_of_words(to[i]), false);
            if (how.piece_alignments) result.piece_alignment = forced[k].weights;
        }
    }
    return results;
}

scored_pair trained_translator::score(std::string_view source, std::string_view target, const score_options& how) const
{
    return std::move(
        score(std::vector<std::string>{std::string(source)}, std::vector<std::string>{std::string(target)}, how)
            .front());
}

const std::string& trained_translator::system() const { return files().front().how.system; }

std::string trained_translator::description() const
{
    std::string text;
    for (const translator_file& each : files()) {
        const system_kind& kind = heed::translator::kind_of(each.how);
        text += (text.empty() ? "" : " + ") + kind.name + " (" + kind.description + ")";
        if (heed::translator::support_of("attention", kind) != nullptr)
            text += ", " + each.how.attention + " attention";
        text += ", " + counted(each.system->parameter_count(), "parameter");
    }
    return text;
}

std::map<std::string, std::string> trained_translator::options() const
{
    std::map<std::string, std::string> all;
    files().front().how.each_text([&](const std::string& name, const std::string& value) { all[name] = value; });
    return all;
}

bool trained_translator::has_attention() const { return heed::translator::has_attention(files()); }

std::size_t trained_translator::parameters() const
{
    std::size_t count = 0;
    for (const translator_file& each : files()) count += each.system->parameter_count();
    return count;
}

const std::vector<std::string>& trained_translator::source_vocabulary() const
{
    return files().front().source.vocabulary.words();
}

const std::vector<std::string>& trained_translator::target_vocabulary() const
{
    return files().front().target.vocabulary.words();
}

const std::vector<heed::translator::translator_file>& trained_translator::files() const { return models_->files; }

trained_translator load(const std::vector<std::filesystem::path>& paths)
{
    if (paths.empty()) throw error("load: no file; name a model of `translate train`");
    auto loaded = std::make_shared<trained_translator::models>();
    loaded->files = heed::translator::load_models(paths);
    return trained_translator(std::move(loaded));
}

}  // namespace heed::translator
