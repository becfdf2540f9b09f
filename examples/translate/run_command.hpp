// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <heed/io/atomic_file.hpp>
#include <heed/text/corpus.hpp>
#include <heed/view/page.hpp>
#include <heed/view/svg.hpp>

#include "candidates.hpp"
#include "command_line.hpp"
#include "dictionary.hpp"
#include "model_file.hpp"
#include "phrases.hpp"
#include "progress.hpp"
#include "quality.hpp"
#include "search.hpp"
#include "word_weights.hpp"

namespace translation {

namespace fs = std::filesystem;

/// `translate run`
struct run_command {
    std::vector<fs::path> paths;
    fs::path input, alignments, page, words, phrases;
    std::string replacements, candidates = "all";
    std::size_t batch = 64, pictures = 50, page_sentences = 50, dimensions = 50;
    search_options search;

    void declare(CLI::App& app)
    {
        app.description("Translate: one sentence per line in, one translation per line out.");
        app.footer(
            "With --n-best each line is \"index ||| translation ||| score\", index from 0, best first; the\n"
            "score is the log-probability after --length-penalty and --coverage-penalty. Pictures and the\n"
            "page only show the best; log p there is the log-probability itself.\n"
            "Tokens are words, or pieces of words for a model of --bpe; pictures and replacements of unknown\n"
            "words always use words: the weights of a source word's pieces are added, a target word's averaged.\n\n"
            "Example:\n"
            "  echo \"a man is sleeping .\" | translate run --model en-de.safetensors --alignments alignment.svg");
        add_models(app, paths);
        app.add_option("--input", input, "sentences to translate; standard input if not given")->type_name("FILE");
        add_count(app, "--batch", batch, "sentences translated at once; with 1, each is answered at once");
        search.declare(app);
        best_ = app.add_option("--n-best", search.best,
                               "the N best translations of each sentence, with their scores;\n"
                               "pictures and the page only show the best")
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
                       "for that: output of `translate dictionary`, for a model of --bpe\n"
                       "with its --model")
            ->needs(limited)
            ->type_name("FILE")
            ->group("Search");
        app.add_option("--phrases", phrases,
                       "for that, too: the N best words of each phrase of up to four source\n"
                       "tokens, from `translate dictionary --phrases`")
            ->needs(limited)
            ->type_name("FILE")
            ->group("Search");
        app.parse_complete_callback([this] {
            const auto sizes = parse_candidates(candidates);
            if (sizes && sizes->per_word > 0 && words.empty() && phrases.empty())
                throw CLI::RequiresError("--candidates " + candidates, "--dictionary");
        });
        replace_ = add_replacements(app, replacements,
                                    "replace unknown words by the source word with the most weight, or\n"
                                    "by its translation in this dictionary");
        CLI::Option* const svg = app.add_option("--alignments", alignments, "draw the attention weights, as SVG")
                                     ->type_name("FILE")
                                     ->group("Pictures");
        add_count(app, "--pictures", pictures, "maximum number of sentences to draw")->needs(svg)->group("Pictures");
        CLI::Option* const html = app.add_option("--page", page, "show it as a page for the browser, in one HTML file")
                                      ->type_name("FILE")
                                      ->group("Pictures");
        add_count(app, "--page-sentences", page_sentences, "maximum number of sentences on it")
            ->needs(html)
            ->group("Pictures");
        add_count(app, "--dimensions", dimensions, "number of dimensions shown one by one, for per-dimension weights",
                  any_number)
            ->needs(html)
            ->group("Pictures");
    }

    int run()
    {
        check_outputs();
        const std::vector<translator_file> files = load_models(paths);
        prepare(files);
        input_text text(input);
        heed::text::sentence_reader reader(text.stream(), text.name(), heed::text::empty_lines::keep);
        // Interactive input gets each answer at once.
        const bool typed = input.empty() && isatty(STDIN_FILENO) != 0;
        const std::size_t chunk = typed || batch == 1 ? 1 : 16 * batch;
        progress line(0, !typed && isatty(STDOUT_FILENO) == 0);
        for (bool more = true; more;) {
            std::vector<sentence> lines;
            for (sentence one; lines.size() < chunk && (more = reader.next(one));) lines.push_back(one);
            translate_lines(files, lines, line);
        }
        line.clear();
        if (reader.line() == 0 && !input.empty())
            throw heed::error(input.string() + ": is empty; there is nothing to translate");
        if (time_.words > 0) say(time_.text());
        if (!alignments.empty()) draw();
        if (!page.empty()) heed::io::write_file(page, heed::view::html(shown_));
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
        for (const fs::path& output : {alignments, page}) {
            if (!output.empty()) check_output(output, inputs);
        }
        if (same_file(alignments, page))
            throw heed::error(page.string() + ": --page and --alignments are one file; give one another name");
    }

    void prepare(const std::vector<translator_file>& files)
    {
        const bool look = looks(files);
        search.check(look);
        if (!look && !(alignments.empty() && page.empty()))
            throw heed::error(paths.front().string() +
                              ": trained with --attention none, so it has no alignment to draw");
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

    /// Restricts the search to the words that --candidates names, if that is not all.
    void restrict(const translator_file& file)
    {
        const auto sizes = parse_candidates(candidates);
        for (const auto& [name, given] : {std::pair("--dictionary", &words), std::pair("--phrases", &phrases)})
            if (!sizes && !given->empty())
                throw heed::error(std::string(name) + ": is for --candidates K:N; leave it out, or give that");
        if (!sizes) return;
        if (words.empty()) {
            only_.emplace(sizes->frequent, 0, std::vector<id_sentence>());
        } else {
            const dictionary known(words);
            known.require_tokens(file.source, file.target, words,
                                 "make one of its pieces with `translate dictionary --model " + paths.front().string() +
                                     "`");
            only_.emplace(known.candidates(sizes->frequent, sizes->per_word, file.source, file.target));
        }
        if (!phrases.empty()) only_->add_phrases(sizes->per_word, read_phrases(phrases, file.source, file.target));
    }

    void translate_lines(const std::vector<translator_file>& files, const std::vector<sentence>& lines, progress& line)
    {
        const translator_file& file = files.front();
        const bool wants_drawing = !alignments.empty() && drawn_.size() < pictures;
        const bool wants_page = !page.empty() && shown_.sentences.size() < page_sentences;
        const std::vector<id_sentence> sources = file.source.encode(lines);
        const clock::time_point start = clock::now();
        const auto all = search_all(models(files), sources, batch, search, wants_drawing || wants_page || replacing_,
                                    only_ ? &*only_ : nullptr, &line);
        time_.seconds += seconds_since(start);
        time_.sentences += lines.size();
        std::string out;
        for (std::size_t i = 0; i < lines.size(); ++i, ++index_) {
            if (lines[i].empty()) {
                out += listed_ ? fmt::format("{} |||  ||| {:.6f}\n", index_, 0.0) : "\n";
                continue;
            }
            for (std::size_t k = 0; k < all[i].size(); ++k) {
                const auto& found = all[i][k];
                reading read = file.target.read(found.words);
                if (replacing_) replace_unknown(file.source, lines[i], found.weights, meanings_, read);
                const std::string text = heed::text::join(read.words);
                out += listed_ ? fmt::format("{} ||| {} ||| {:.6f}\n", index_, text, found.score) : text + '\n';
                if (k > 0) continue;
                time_.words += read.words.size();
                if (!alignments.empty() && drawn_.size() < pictures) keep_drawing(file, lines[i], found.weights, read);
                if (!page.empty() && shown_.sentences.size() < page_sentences) {
                    heed::view::sentence& pair = shown_.sentences.emplace_back();
                    pair.source = lines[i];
                    pair.source.emplace_back(end_of_sentence);
                    pair.translations = {for_page(file, files.size() == 1, lines[i], found.words, read, found.weights)};
                    pair.translations.back().note = fmt::format("log p {:.2f}", found.log_probability);
                }
            }
        }
        std::cout << out;
        flush_output();
    }

    void keep_drawing(const translator_file& file, const sentence& source, const weight_rows& weights,
                      const reading& read)
    {
        drawing picture{source, read.words, {}};
        picture.source.emplace_back(end_of_sentence);
        picture.target.emplace_back(end_of_sentence);
        picture.weights = flat(between_words(file.source, source, weights, read.tokens, true));
        drawn_.push_back(std::move(picture));
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
    std::vector<drawing> drawn_;
    heed::view::page shown_;
};

}  // namespace translation
