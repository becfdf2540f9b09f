// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/io/atomic_file.hpp>
#include <heed/seq2seq/forced.hpp>
#include <heed_kit/metrics/alignment_error.hpp>
#include <heed_kit/text/corpus.hpp>
#include <heed_kit/view/svg.hpp>
#include <heed_translator/search.hpp>

#include "command_line.hpp"
#include "for_page.hpp"
#include "gold.hpp"
#include "interrupt.hpp"
#include "library.hpp"
#include "progress.hpp"
#include "raw_lines.hpp"

namespace translation {

namespace fs = std::filesystem;

/// The attention weights of forced decoding: for each pair, a matrix between words, including the row and column of the
/// end words. A token has the weights of the step that outputs it or, with a `shift` of 1, of the next step, whose
/// input it is (Chen, Sun and Liu 2020); the end word always has those of its step. After an interrupt it returns early
/// and some matrices are missing.
inline std::vector<weight_rows> force_all(const std::vector<translator_file>& files,
                                          const heed::text::parallel_corpus& pairs, std::size_t batch_size,
                                          std::size_t shift, progress* seen = nullptr)
{
    const translator_file& file = files.front();
    const models with(files);
    const auto sources = file.source.encode(pairs.source), targets = file.target.encode(pairs.target);
    std::vector<weight_rows> all(pairs.size());
    for (const auto& which : batches_by_length(targets, batch_size)) {
        if (interrupted() != 0) break;
        const auto some = heed::seq2seq::make_source(chosen(sources, which));
        const auto forced = with.force(some, chosen(targets, which), true);
        for (std::size_t k = 0; k < which.size(); ++k) {
            const std::size_t i = which[k];
            word_tokens words = file.target.tokens_of_words(pairs.target[i]);
            for (std::size_t j = 0; j + 1 < words.size(); ++j) {
                for (std::size_t& token : words[j]) token += shift;
            }
            all[i] = between_words(file.source, pairs.source[i], forced[k].weights, std::move(words), false);
        }
        if (seen != nullptr) seen->add(which.size());
    }
    return all;
}

/// `translate align`
struct align_command {
    std::vector<fs::path> paths;
    fs::path source, target, output, weights, tokens, picture, gold;
    std::size_t batch = 64, pictures = 10, shift = 0;
    bool link_all = false;

    void declare(CLI::App& app)
    {
        app.description("Word alignments of given translations, from the model's attention during forced decoding.");
        app.footer(
            "One line per pair in Pharaoh's notation: i-j, source word i and target word j from 0. Each target\n"
            "word is linked to the source word with the largest weight, or to none if that is the end of the\n"
            "sentence. A pair with an empty line has no links.\n"
            "Links are between words even for a --bpe model: weights are summed over the subwords of a source\n"
            "word and averaged over those of a target word. `evaluate align` scores and symmetrizes them.\n"
            "--shift 1 gives each target token the weights of the next step, whose input it is: these often align\n"
            "better (Chen, Sun and Liu 2020). The last token has the weights of the step that outputs the end of\n"
            "the sentence. --weights and --picture show the same weights.\n\n"
            "Example:\n"
            "  translate align --model en-de.safetensors --source test.en --target test.de --output test.links");
        add_models(app, paths);
        app.add_option("--source", source, "sentences")->required()->type_name("FILE");
        app.add_option("--target", target, "translations, line by line")->required()->type_name("FILE");
        app.add_option("--output", output, "output file; standard output if not given")->type_name("FILE");
        add_count(app, "--shift", shift,
                  "weights of a target token: 0: of the step that outputs it; 1: of\n"
                  "the next step",
                  CLI::Range(std::size_t{0}, std::size_t{1}).description(""));
        app.add_flag("--link-all", link_all, "link every target word, ignoring the end of the sentence");
        app.add_option("--weights", weights,
                       "also write the weights: a line for each target word with a number\n"
                       "for each source word and the end; a blank line after each pair")
            ->type_name("FILE");
        app.add_option("--tokens", tokens,
                       "also write the words that links and weights refer to, one line per\n"
                       "pair: source words ||| target words; with --raw, marks are words")
            ->type_name("FILE");
        CLI::Option* const svg = app.add_option("--picture", picture, "draw the weights as SVG")->type_name("FILE");
        app.add_option("--gold", gold, "human links to mark in the picture: i-j sure, ipj possible")
            ->needs(svg)
            ->type_name("FILE");
        add_count(app, "--pictures", pictures, "number of pairs to draw")->needs(svg);
        add_count(app, "--batch", batch, "pairs per batch");
    }

    int run()
    {
        std::vector<fs::path> inputs = paths;
        inputs.insert(inputs.end(), {source, target, gold});
        const std::vector<std::pair<const char*, fs::path>> outputs{
            {"--output", output}, {"--weights", weights}, {"--tokens", tokens}, {"--picture", picture}};
        for (const auto& [option, out] : outputs) {
            if (!out.empty()) check_output(out, inputs);
        }
        check_outputs_apart(outputs);
        const std::vector<translator_file> files = load_models(paths);
        if (!has_attention(files))
            throw heed::error(paths.front().string() + ": trained with --attention none, so it has no alignments");
        const auto pairs = read_lines(source, target);
        note_raw_lines(pairs.source, files.front().source);
        std::vector<heed::metrics::gold_links> by_hand;
        if (!gold.empty()) by_hand = read_gold(gold, source, shown(files.front(), pairs));
        stop_politely();
        progress line(pairs.size());
        const std::vector<weight_rows> all = force_all(files, pairs, batch, shift, &line);
        line.clear();
        if (interrupted() != 0) return 128 + interrupted();
        std::string links, numbers;
        for (const weight_rows& rows : all) {
            links +=
                heed::metrics::pharaoh(heed::seq2seq::links_of(rows, {.end_word_means_unaligned = !link_all})) + '\n';
            if (weights.empty()) continue;
            for (std::size_t j = 0; j + 1 < rows.size(); ++j) {
                for (std::size_t i = 0; i < rows[j].size(); ++i)
                    numbers += fmt::format("{}{:.6g}", i == 0 ? "" : " ", rows[j][i]);
                numbers += '\n';
            }
            numbers += '\n';
        }
        program::call_each(
            [&] {
                if (!tokens.empty()) heed::io::write_file(tokens, all_words(shown(files.front(), pairs)));
            },
            [&] {
                if (!picture.empty()) draw(shown(files.front(), pairs), all, by_hand);
            },
            [&] {
                if (!weights.empty()) heed::io::write_file(weights, numbers);
            },
            [&] { program::write(output, links); });
        return 0;
    }

private:
    static std::string all_words(const heed::text::parallel_corpus& pairs)
    {
        std::string text;
        for (std::size_t i = 0; i < pairs.size(); ++i) text += words_beside(pairs.source[i], pairs.target[i]);
        return text;
    }

    void draw(const heed::text::parallel_corpus& pairs, const std::vector<weight_rows>& all,
              const std::vector<heed::metrics::gold_links>& by_hand) const
    {
        const std::size_t count = std::min(pictures, all.size());
        std::vector<std::vector<float>> numbers(count);
        std::vector<sentence> sources, targets;
        std::vector<heed::metrics::links> marked(count);
        for (std::size_t k = 0; k < count; ++k) {
            numbers[k] = flat(all[k]);
            sources.push_back(pairs.source[k]);
            targets.push_back(pairs.target[k]);
            sources.back().emplace_back(end_of_sentence);
            targets.back().emplace_back(end_of_sentence);
            if (by_hand.empty()) continue;
            marked[k] = by_hand[k].sure;
            marked[k].insert(marked[k].end(), by_hand[k].possible.begin(), by_hand[k].possible.end());
        }
        std::vector<heed::view::alignment> drawn;
        for (std::size_t k = 0; k < count; ++k) drawn.push_back({numbers[k], sources[k], targets[k], marked[k]});
        heed::io::write_file(picture, heed::view::svg(drawn));
    }
};

}  // namespace translation
