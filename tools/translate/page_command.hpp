// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/io/atomic_file.hpp>
#include <heed/seq2seq/forced.hpp>
#include <heed_kit/metrics/alignment_error.hpp>
#include <heed_kit/text/corpus.hpp>
#include <heed_kit/view/page.hpp>

#include "../support/misuse.hpp"
#include "command_line.hpp"
#include "for_page.hpp"
#include "gold.hpp"
#include "interrupt.hpp"
#include "library.hpp"
#include "progress.hpp"
#include "raw_lines.hpp"
#include "search_options.hpp"

namespace translation {

namespace fs = std::filesystem;

/// A name for each file: its stem, or the whole path if stems are equal.
inline std::vector<std::string> names_of(const std::vector<fs::path>& files)
{
    std::vector<std::string> names;
    for (const fs::path& file : files) {
        const auto same = [&](const fs::path& other) { return other.stem() == file.stem(); };
        names.push_back(std::count_if(files.begin(), files.end(), same) > 1 ? file.string() : file.stem().string());
    }
    return names;
}

/// `translate page`
struct page_command {
    std::vector<fs::path> paths;
    std::vector<std::string> names;
    fs::path source, reference, gold, output;
    std::string title;
    std::size_t sentences = 50, dimensions = 50, batch = 64;
    bool forced = false;
    search_options search;

    void declare(CLI::App& app)
    {
        app.description("Compare models on one HTML page: their translations and attention.");
        app.footer(
            "The page is one self-contained file. Words respond to the pointer; links of --gold appear next to\n"
            "those of the models. With --forced, every model decodes the reference, so that models can be\n"
            "compared word by word. log p is that of the translation, including its end. An empty line keeps\n"
            "its place and has no translation.\n\n"
            "Example:\n"
            "  translate page --model en-de.safetensors --source test.en --reference test.de --output page.html");
        app.add_option("--model", paths, "models trained by `translate train`; each is a system on the page")
            ->required()
            ->take_all()
            ->type_name("FILE");
        app.add_option("--name", names,
                       "names of the models, one per model, in order; default: the\n"
                       "file names")
            ->take_all()
            ->type_name("NAME");
        app.add_option("--source", source, "sentences to translate")->required()->type_name("FILE");
        CLI::Option* const known =
            app.add_option("--reference", reference, "translations, line by line")->type_name("FILE");
        app.add_option("--gold", gold, "known links of source and reference: i-j sure, ipj possible")
            ->needs(known)
            ->type_name("FILE");
        app.add_flag("--forced", forced, "show forced decoding of the reference instead of translations")->needs(known);
        app.add_option("--output", output, "the page to write (HTML)")->required()->type_name("FILE");
        app.add_option("--title", title, "title of the page; default: the name of the source")->type_name("TEXT");
        add_count(app, "--sentences", sentences, "number of sentences to show");
        add_count(app, "--dimensions", dimensions, "number of dimensions shown individually, for per-dimension weights",
                  any_number);
        add_count(app, "--batch", batch, "sentences per batch");
        declare_search(app, search);
    }

    int run()
    {
        std::vector<fs::path> inputs = paths;
        inputs.insert(inputs.end(), {source, reference, gold});
        check_output(output, inputs);
        if (!names.empty() && names.size() != paths.size())
            throw program::misuse(fmt::format("{} for {}; expected one per --model, or none",
                                              heed::counted(names.size(), "name"),
                                              heed::counted(paths.size(), "model")));
        heed::view::page page{.title = title.empty() ? source.filename().string() : title,
                              .note = forced ? "Forced decoding of the reference" : "",
                              .systems = names.empty() ? names_of(paths) : names,
                              .sentences = {},
                              .most_dimensions = dimensions};
        heed::text::parallel_corpus pairs =
            reference.empty() ? heed::text::parallel_corpus{read_lines(source), {}} : read_lines(source, reference);
        stop_politely();
        progress line(std::min(pairs.source.size(), sentences) * paths.size());
        for (const fs::path& path : paths) {  // one at a time, so that only the sentences are kept
            const translator_file file = load_model(path);
            if (page.sentences.empty()) {
                begin(file, pairs, page);
                note_raw_lines(pairs.source, file.source);
            } else {
                require_same_words(file, path, pairs, page);
            }
            if (!forced) check_search(search, has_attention(file));
            if (forced)
                teacher_force(file, pairs, page, line);
            else
                translate(file, pairs, page, line);
            if (interrupted() != 0) return 128 + interrupted();
        }
        line.clear();
        heed::io::write_file(output, heed::view::html(page));
        return 0;
    }

private:
    /// Puts the sentences on the page, as the words of its first model, and drops the other models.
    void begin(const translator_file& file, heed::text::parallel_corpus& pairs, heed::view::page& page) const
    {
        std::vector<heed::metrics::gold_links> links;
        if (!gold.empty()) links = read_gold(gold, source, shown(file, pairs));
        pairs.source.resize(std::min(pairs.source.size(), sentences));
        if (!reference.empty()) pairs.target.resize(pairs.source.size());
        heed::text::parallel_corpus words = shown(file, pairs);
        for (std::size_t i = 0; i < pairs.source.size(); ++i) {
            heed::view::sentence& pair = page.sentences.emplace_back();
            pair.source = std::move(words.source[i]);
            if (!reference.empty()) pair.reference = std::move(words.target[i]);
            if (!gold.empty()) pair.gold = std::move(links[i]);
            pair.source.emplace_back(end_of_sentence);
        }
    }

    /// Throws if a model splits text into other words: a model of raw text together with a model of tokens.
    void require_same_words(const translator_file& file, const fs::path& path, const heed::text::parallel_corpus& pairs,
                            const heed::view::page& page) const
    {
        for (std::size_t i = 0; i < pairs.source.size(); ++i) {
            sentence words = file.source.shown(pairs.source[i]);
            words.emplace_back(end_of_sentence);
            if (words != page.sentences[i].source)
                throw heed::error(
                    fmt::format("{}: splits line {} of {} into different words from {}; a page compares models "
                                "of raw text, or models of the same tokens",
                                path.string(), i + 1, source.string(), paths.front().string()));
        }
    }

    void translate(const translator_file& file, const heed::text::parallel_corpus& pairs, heed::view::page& page,
                   progress& line) const
    {
        const auto all =
            search_all(*file.system, file.source.encode(pairs.source), batch, search, true, nullptr, shown_on(&line));
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (all[i].empty()) return;  // interrupted
            if (pairs.source[i].empty()) {
                page.sentences[i].translations.emplace_back();
                continue;
            }
            const auto& found = all[i].front();
            add(file, pairs.source[i], found.words, read_translation(file, pairs.source[i], found.words), found.weights,
                found.log_probability, page.sentences[i]);
        }
    }

    void teacher_force(const translator_file& file, const heed::text::parallel_corpus& pairs, heed::view::page& page,
                       progress& line) const
    {
        const auto sources = file.source.encode(pairs.source), targets = file.target.encode(pairs.target);
        for (std::size_t i = 0; i < sources.size() && interrupted() == 0; ++i) {
            const std::vector<const id_sentence*> one{&targets[i]};
            const auto some = heed::seq2seq::make_source(std::vector<const id_sentence*>{&sources[i]});
            const auto led = models(*file.system).force(some, one, true);
            reading read{file.target.shown(pairs.target[i]), file.target.tokens_of_words(pairs.target[i]), {}, {}};
            read.tokens.pop_back();  // the end of the sentence
            add(file, pairs.source[i], targets[i], read, led.front().weights, led.front().log_probability(),
                page.sentences[i]);
            line.add(1);
        }
    }

    static void add(const translator_file& file, const sentence& source, const id_sentence& written,
                    const reading& read, const weight_rows& weights, double log_probability, heed::view::sentence& to)
    {
        weight_rows words;
        if (!weights.empty()) words = between_words(file.source, source, weights, read.tokens, false);
        to.translations.push_back(for_page(file, true, source, written, read, words));
        to.translations.back().note = fmt::format("log p {:.2f}", log_probability);
    }
};

}  // namespace translation
