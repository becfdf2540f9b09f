// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <heed/io/atomic_file.hpp>
#include <heed_kit/text/corpus.hpp>
#include <heed_kit/view/page.hpp>
#include <heed_kit/view/svg.hpp>
#include <heed_translator/load.hpp>
#include <heed_translator/model_file.hpp>

#include "../support/misuse.hpp"
#include "../support/nbest.hpp"
#include "candidates.hpp"
#include "command_line.hpp"
#include "dictionary.hpp"
#include "for_page.hpp"
#include "library.hpp"
#include "phrases.hpp"
#include "progress.hpp"
#include "quality.hpp"
#include "ranks.hpp"
#include "raw_lines.hpp"
#include "search_options.hpp"

namespace translation {

namespace fs = std::filesystem;

/// `translate run`
struct run_command {
    std::vector<fs::path> paths;
    fs::path input, tokens, alignments, page, words, phrases;
    std::string replacements, candidates = "all";
    std::size_t batch = 64, pictures = 50, page_sentences = 50, dimensions = 50;
    search_options search;

    void declare(CLI::App& app)
    {
        app.description("Translate: one sentence per line in, one translation per line out.");
        app.footer(
            "With --n-best, each line is \"index ||| translation ||| score\", index from 0, best first; the\n"
            "score is the log-probability after --length-penalty and --coverage-penalty; a word ||| in a\n"
            "translation is written &#124;&#124;&#124;. Pictures and the page show only the best; their log p\n"
            "is the unpenalized log-probability.\n"
            "Tokens are words, or subwords for a --bpe model. Pictures and replacements of unknown words\n"
            "always use words: weights are summed over source subwords and averaged over target subwords.\n\n"
            "Example:\n"
            "  echo \"a man is sleeping .\" | translate run --model en-de.safetensors --alignments alignment.svg");
        add_models(app, paths);
        app.add_option("--input", input, "sentences to translate; standard input if not given")->type_name("FILE");
        app.add_option("--tokens", tokens,
                       "also write the words that pictures and the page refer to, one line\n"
                       "per sentence: source words ||| words of its best translation")
            ->type_name("FILE");
        add_count(app, "--batch", batch, "sentences per batch; 1: each translation is printed immediately");
        declare_search(app, search);
        best_ = app.add_option("--n-best", search.best,
                               "write the N best translations of each sentence with their scores;\n"
                               "pictures and the page show only the best")
                    ->check(positive)
                    ->type_name("N")
                    ->group("Search");
        CLI::Option* const limited =
            app.add_option("--candidates", candidates,
                           "write only the K most frequent tokens and, for each source token of\n"
                           "a batch, the N best of --dictionary; or all")
                ->check(CLI::Validator([](std::string& text) { return wrong_candidates(text); }, ""))
                ->type_name("K:N")
                ->capture_default_str()
                ->group("Search");
        app.add_option("--dictionary", words,
                       "for --candidates: output of `translate dictionary`, which needs\n"
                       "--model for a --bpe model")
            ->needs(limited)
            ->type_name("FILE")
            ->group("Search");
        app.add_option("--phrases", phrases,
                       "for --candidates: add the N best words of each phrase of up to four\n"
                       "source tokens, from `translate dictionary --phrases`")
            ->needs(limited)
            ->type_name("FILE")
            ->group("Search");
        app.parse_complete_callback([this] {
            const auto sizes = parse_candidates(candidates);
            if (sizes && sizes->per_word > 0 && words.empty() && phrases.empty())
                throw CLI::RequiresError("--candidates " + candidates, "--dictionary");
        });
        replace_ = add_replacements(app, replacements,
                                    "replace unknown words with the source word of the largest weight,\n"
                                    "or with its translation in this dictionary");
        CLI::Option* const svg = app.add_option("--alignments", alignments, "draw the attention weights as SVG")
                                     ->type_name("FILE")
                                     ->group("Pictures");
        add_count(app, "--pictures", pictures, "maximum number of sentences to draw")->needs(svg)->group("Pictures");
        CLI::Option* const html = app.add_option("--page", page, "write a page for the browser, as one HTML file")
                                      ->type_name("FILE")
                                      ->group("Pictures");
        add_count(app, "--page-sentences", page_sentences, "maximum number of sentences on the page")
            ->needs(html)
            ->group("Pictures");
        add_count(app, "--dimensions", dimensions, "number of dimensions shown individually, for per-dimension weights",
                  any_number)
            ->needs(html)
            ->group("Pictures");
    }

    int run(any_ranks over)
    {
        const bool first = over.rank() == 0;  // only rank 0 reads, writes and prints
        std::optional<heed::seq2seq::trained_translator> loaded;
        std::optional<input_text> text;
        std::optional<heed::text::sentence_reader> reader;
        agree(over, [&] {
            if (first) check_outputs();
            loaded.emplace(heed::seq2seq::load(paths));
            prepare(loaded->files());
            if (!first) return;
            text.emplace(input);
            reader.emplace(text->stream(), text->name(), heed::text::empty_lines::keep);
        });
        const heed::seq2seq::trained_translator& model = *loaded;
        // Interactive input gets each answer immediately. With --candidates, the words of a line depend on its batch.
        const bool typed = input.empty() && isatty(STDIN_FILENO) != 0;
        const std::size_t chunk = typed || batch == 1 ? 1 : 16 * batch * (only_ ? 1 : over.size());
        progress line(0, first && !typed && isatty(STDOUT_FILENO) == 0);
        for (bool more = true; more;) {
            std::vector<sentence> lines;
            agree(over, [&] {
                if (!first) return;
                for (sentence one; lines.size() < chunk && (more = reader->next(one));) lines.push_back(one);
            });
            if (over.size() > 1) share_lines(over, lines, more);
            translate_lines(model, lines, line, over);
        }
        line.clear();
        if (!first) return 0;
        if (time_.words > 0) say(time_.text());
        if (seen_.many()) say(seen_.note());
        program::call_each(
            [&] {
                if (!tokens.empty()) heed::io::write_file(tokens, tokens_);
            },
            [&] {
                if (!alignments.empty()) draw();
            },
            [&] {
                if (!page.empty()) heed::io::write_file(page, heed::view::html(shown_));
            });
        return 0;
    }

private:
    struct drawing {
        sentence source, target;
        std::vector<float> weights;
    };

    void check_outputs() const
    {
        std::vector<fs::path> inputs = paths;
        inputs.insert(inputs.end(), {input, words, phrases, fs::path(replacements)});
        const std::vector<std::pair<const char*, fs::path>> outputs{
            {"--tokens", tokens}, {"--alignments", alignments}, {"--page", page}};
        for (const auto& [option, output] : outputs) {
            if (!output.empty()) check_output(output, inputs);
        }
        check_outputs_apart(outputs);
    }

    void prepare(const std::vector<translator_file>& files)
    {
        const bool look = has_attention(files);
        check_search(search, look);
        if (!look && !(alignments.empty() && page.empty()))
            throw heed::error(paths.front().string() +
                              ": trained with --attention none, so it has no alignments to draw");
        replacing_ = replace_->count() > 0;
        if (replacing_) require_replaceable(look, paths.front());
        if (!replacements.empty()) meanings_ = dictionary(replacements).best();
        restrict(files.front());
        listed_ = best_->count() > 0;
        std::string system;
        for (const fs::path& path : paths) system += (system.empty() ? "" : " + ") + path.stem().string();
        shown_.title = input.empty() ? "Translations" : input.filename().string();
        shown_.systems = {system};
        shown_.most_dimensions = dimensions;
    }

    /// Restricts the search to the words of --candidates, unless it is `all`.
    void restrict(const translator_file& file)
    {
        const auto sizes = parse_candidates(candidates);
        for (const auto& [name, given] : {std::pair("--dictionary", &words), std::pair("--phrases", &phrases)})
            if (!sizes && !given->empty())
                throw program::misuse(std::string(name) +
                                      ": applies to --candidates K:N; omit it, or add --candidates");
        if (!sizes) return;
        if (words.empty()) {
            only_.emplace(sizes->frequent, 0, std::vector<id_sentence>());
        } else {
            const dictionary known(words);
            known.require_tokens(file.source, file.target, words,
                                 "build one of subwords with `translate dictionary --model " + paths.front().string() +
                                     "`");
            only_.emplace(known.candidates(sizes->frequent, sizes->per_word, file.source, file.target));
        }
        if (!phrases.empty()) only_->add_phrases(sizes->per_word, read_phrases(phrases, file.source, file.target));
    }

    /// Every rank gets the lines that rank 0 has read.
    static void share_lines(any_ranks& over, std::vector<sentence>& lines, bool& more)
    {
        packed_values all;
        if (over.rank() == 0) {
            all.put(lines);
            all.put(static_cast<unsigned char>(more));
        }
        heed::distributed::broadcast(over, all.memory());
        unpacked_values from(all.bytes());
        from.take(lines);
        more = from.take<unsigned char>() != 0;
    }

    void translate_lines(const heed::seq2seq::trained_translator& model, const std::vector<sentence>& lines,
                         progress& line, any_ranks& over)
    {
        const bool wants_drawing = !alignments.empty() && drawn_.size() < pictures;
        const bool wants_page = !page.empty() && shown_.sentences.size() < page_sentences;
        seen_.add(lines, model.files().front().source);
        heed::seq2seq::translate_options how;
        how.beam = search.beam;
        how.alternatives = search.best;
        how.batch = batch;
        how.length_penalty = search.length_penalty;
        how.coverage_penalty = search.coverage_penalty;
        how.block_ngrams = search.block_ngrams;
        how.min_length = search.min_length;
        how.max_length = search.max_length;
        how.alignments = wants_drawing || wants_page;
        how.replace_unknown = replacing_;
        how.meanings = &meanings_;
        how.only = only_ ? &*only_ : nullptr;
        how.watch = shown_on(&line);
        how.part = over.rank();
        how.parts = over.size();
        const clock::time_point start = clock::now();
        auto all = model.translate_words(lines, how);
        share_translations(over, all);
        time_.seconds += seconds_since(start);
        time_.sentences += lines.size();
        std::string out;
        for (std::size_t i = 0; i < lines.size(); ++i, ++index_) {
            const heed::seq2seq::translated_line& found = all[i];
            const auto written = [&](const std::string& text, double score) {
                return (listed_ ? program::nbest_text(index_, text, fmt::format("{:.6f}", score)) : text) + '\n';
            };
            if (found.source_words.empty()) out += written("", 0);
            for (const auto& each : found.alternatives) out += written(each.text, each.score);
            if (!tokens.empty()) tokens_ += words_beside(found.source_words, found.words);
            if (found.alternatives.empty()) continue;
            time_.words += found.words.size();
            if (!alignments.empty() && drawn_.size() < pictures) keep_drawing(found);
            if (!page.empty() && shown_.sentences.size() < page_sentences)
                keep_for_page(model.files(), lines[i], found);
        }
        if (over.rank() != 0) return;
        program::print(out);
    }

    /// Every rank gets the lines that the others have translated.
    static void share_translations(any_ranks& over, std::vector<heed::seq2seq::translated_line>& all)
    {
        if (over.size() == 1) return;
        std::vector<std::vector<heed::seq2seq::translated>> found(all.size());
        for (std::size_t i = 0; i < all.size(); ++i) found[i] = std::move(all[i].alternatives);
        share_items(over, found, [](const auto& each) { return !each.empty(); });
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (found[i].empty()) continue;
            static_cast<heed::seq2seq::translated&>(all[i]) = found[i].front();
            all[i].alternatives = std::move(found[i]);
        }
    }

    void keep_drawing(const heed::seq2seq::translated_line& found)
    {
        drawing picture{found.source_words, found.words, flat(found.alignment)};
        picture.source.emplace_back(end_of_sentence);
        picture.target.emplace_back(end_of_sentence);
        drawn_.push_back(std::move(picture));
    }

    void keep_for_page(const std::vector<translator_file>& files, const sentence& line,
                       const heed::seq2seq::translated_line& found)
    {
        heed::view::sentence& pair = shown_.sentences.emplace_back();
        pair.source = found.source_words;
        pair.source.emplace_back(end_of_sentence);
        reading read = files.front().target.read(found.ids);
        read.words = found.words;  // without unknown words
        weight_rows weights = found.alignment;
        if (!weights.empty()) weights.pop_back();  // row of the end
        pair.translations = {for_page(files.front(), files.size() == 1, line, found.ids, read, weights)};
        pair.translations.back().note = fmt::format("log p {:.2f}", found.log_probability);
    }

    void draw() const
    {
        std::vector<heed::view::alignment> all;
        for (const drawing& each : drawn_) all.push_back({each.weights, each.source, each.target});
        heed::io::write_file(alignments, heed::view::svg(all));
    }

    CLI::Option *best_ = nullptr, *replace_ = nullptr;
    bool listed_ = false, replacing_ = false;
    std::unordered_map<std::string, std::string> meanings_;
    std::optional<heed::seq2seq::candidate_lists> only_;
    decoding_time time_;
    std::size_t index_ = 0;  // of the next sentence
    std::string tokens_;     // for --tokens
    std::vector<drawing> drawn_;
    heed::view::page shown_;
    raw_lines seen_;  // lines for a model of words
};

}  // namespace translation
