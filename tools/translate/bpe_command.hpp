// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/io/atomic_file.hpp>
#include <heed_kit/text/bpe.hpp>
#include <heed_kit/text/corpus.hpp>
#include <heed_kit/text/learn_bpe.hpp>

#include "command_line.hpp"
#include "progress.hpp"

namespace translation {

namespace fs = std::filesystem;

/// `translate bpe`: byte-pair encoding of text files.
struct bpe_command {
    std::vector<fs::path> texts;
    fs::path codes, input, output;
    std::size_t merges = 10000, least = 2;
    CLI::App *learning = nullptr, *applying = nullptr, *undoing = nullptr;

    void declare(CLI::App& app)
    {
        app.description("Byte-pair encoding: learn codes from text, split words into subwords, join them again.");
        app.require_subcommand(1);
        app.footer("Codes and subwords are those of subword-nmt (version 0.2). `translate train --bpe N` runs these\n"
                   "steps itself. `translate bpe COMMAND --help` explains a step, with an example.");

        learning = app.add_subcommand("learn", "Learn codes: the most frequent pairs of symbols, merged one by one.");
        learning->footer("To learn joint codes for two languages, pass the text of both.\n\n"
                         "Example:\n"
                         "  translate bpe learn --input train.en --input train.de --merges 10000 --codes en-de.codes");
        learning->add_option("--input", texts, "text to learn from; may be repeated; default: standard input")
            ->take_all()
            ->type_name("FILE");
        learning->add_option("--codes", codes, "the codes to write")->required()->type_name("FILE");
        add_count(*learning, "--merges", merges, "maximum number of merges");
        add_count(*learning, "--least", least, "minimum count of a pair to merge");

        applying =
            app.add_subcommand("apply", "Split words into subwords, with \"@@\" after each except the last of a word.");
        applying->footer("Example:\n"
                         "  translate bpe apply --codes en-de.codes --input test.de --output test.bpe.de");
        applying->add_option("--codes", codes, "codes from `translate bpe learn` or subword-nmt")
            ->required()
            ->type_name("FILE");
        undoing = app.add_subcommand("undo", "Join subwords into words.");
        undoing->footer("Example:\n"
                        "  echo \"a b@@ i@@ ke\" | translate bpe undo");
        for (CLI::App* const each : {applying, undoing}) {
            each->add_option("--input", input, "text; standard input if not given")->type_name("FILE");
            each->add_option("--output", output, "output file; standard output if not given")->type_name("FILE");
        }
    }

    int run()
    {
        if (learning->parsed()) return learn();
        if (applying->parsed()) {
            heed::text::bpe with(heed::text::bpe_codes::read(codes));
            return each_line([&](const heed::text::sentence& line) { return with.apply(std::span(line)); });
        }
        return each_line([](const heed::text::sentence& line) { return heed::text::undo_bpe(line); });
    }

private:
    int learn() const
    {
        check_output(codes, texts);
        heed::text::word_counts words;
        for (const fs::path& path : texts.empty() ? std::vector<fs::path>{fs::path()} : texts) {
            input_text text(path);
            heed::text::count_words(words,
                                    heed::text::read_corpus(text.stream(), text.name(), heed::text::empty_lines::keep));
        }
        const heed::text::bpe_codes learned = heed::text::learn_bpe(words, merges, least);
        heed::io::write_file(codes, learned.to_text());
        say(fmt::format("{} merges from {} distinct words: {}", learned.size(), words.size(), codes.string()));
        return 0;
    }

    int each_line(auto&& change) const
    {
        if (!output.empty()) check_output(output, {input, codes});
        input_text text(input);
        heed::text::sentence_reader lines(text.stream(), text.name(), heed::text::empty_lines::keep);
        std::string done;
        for (heed::text::sentence line; lines.next(line);) {
            done += heed::text::join(change(line)) + '\n';
            if (output.empty() && done.size() > (1u << 16)) {
                program::print(done);
                done.clear();
            }
        }
        program::write(output, done);
        return 0;
    }
};

}  // namespace translation
