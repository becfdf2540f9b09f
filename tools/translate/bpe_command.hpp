// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <filesystem>
#include <iostream>
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
        app.description("Byte-pair encoding: learn codes from text, split words into pieces, join them again.");
        app.require_subcommand(1);
        app.footer(
            "Codes and pieces are those of subword-nmt (version 0.2). `translate train --bpe N` does all of this\n"
            "itself. `translate bpe learn --help` tells more, with an example; so do apply and undo.");

        learning = app.add_subcommand("learn", "Learn codes: the most frequent pairs of symbols, merged one by one.");
        learning->footer("Codes for two languages are joint when learned from the text of both.\n\n"
                         "Example:\n"
                         "  translate bpe learn --input train.en --input train.de --merges 10000 --codes en-de.codes");
        learning
            ->add_option("--input", texts,
                         "text to learn from; may be given several times; standard input if\nnot given")
            ->take_all()
            ->type_name("FILE");
        learning->add_option("--codes", codes, "the codes to write")->required()->type_name("FILE");
        add_count(*learning, "--merges", merges, "learn at most so many");
        add_count(*learning, "--least", least, "do not merge pairs that occur less often");

        applying = app.add_subcommand("apply", "Split words into pieces, \"@@\" after each but a word's last.");
        applying->footer("Example:\n"
                         "  translate bpe apply --codes en-de.codes --input test.de --output test.pieces.de");
        applying->add_option("--codes", codes, "codes of `translate bpe learn` or subword-nmt")
            ->required()
            ->type_name("FILE");
        undoing = app.add_subcommand("undo", "Join pieces to words again.");
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
        say(fmt::format("{} merges from {} different words: {}", learned.size(), words.size(), codes.string()));
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
                std::cout << done;
                done.clear();
            }
        }
        if (output.empty())
            std::cout << done;
        else
            heed::io::write_file(output, done);
        flush_output();
        return 0;
    }
};

}  // namespace translation
