// SPDX-License-Identifier: BSD-3-Clause
//
// evaluate: scores translations, word alignments and texts in files.
//
// The metrics are in heed_kit/metrics; this program reads the files and prints the tables.
//
// test: --help
// test: compare --help

#include <cstddef>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include <heed/core/parallel.hpp>
#include <heed/io/atomic_file.hpp>
#include <heed/version.hpp>

#include "../support/environment.hpp"
#include "../support/launched.hpp"
#include "../support/processor.hpp"
#include "../support/program.hpp"
#include "adequacy.hpp"
#include "alignments.hpp"
#include "rescoring.hpp"
#include "scores.hpp"
#include "sentences.hpp"
#include "texts.hpp"

const char* const heed_built_for = HEED_BUILT_FOR;

namespace {

/// Prints a report, and writes its file even if that fails: neither result is lost.
void show(const evaluation::report& what, bool as_json)
{
    program::call_each([&] { program::print(what.text(as_json)); },
                       [&] {
                           if (!what.file.empty()) heed::io::write_file(what.file, what.contents);
                       });
}

}  // namespace

int main(int argc, char** argv)
{
    using namespace evaluation;
    if (const auto started = program::launched_as::of_environment(); started.size > 1) {
        if (started.rank != 0) return 0;  // the launcher would terminate all processes
        std::cerr << "evaluate: runs in one process; start it without mpirun\n";
        return 1;
    }
    CLI::App app{"Score translations, word alignments and texts."};
    app.formatter(std::make_shared<program::formatter>());  // before the subcommands, which inherit it
    app.set_version_flag("--version", "evaluate (heed) " HEED_VERSION_STRING);
    app.require_subcommand(1);
    app.footer("`evaluate COMMAND --help` explains a command, with an example.");

    std::vector<std::pair<CLI::App*, std::unique_ptr<command>>> commands;
    std::size_t threads = 0;
    program::ask_for_threads(app, threads);  // accepted before and after the command
    const auto add = [&](const char* name, std::unique_ptr<command> what) {
        commands.emplace_back(app.add_subcommand(name), std::move(what));
        commands.back().second->declare(*commands.back().first);
        program::ask_for_threads(*commands.back().first, threads);
    };
    add("bleu", std::make_unique<bleu_command>());
    add("ter", std::make_unique<ter_command>());
    add("ribes", std::make_unique<ribes_command>());
    add("chrf", std::make_unique<chrf_command>());
    add("wer", std::make_unique<wer_command>());
    add("perplexity", std::make_unique<perplexity_command>());
    add("compare", std::make_unique<compare_command>());
    add("tune", std::make_unique<tune_command>());
    add("rerank", std::make_unique<rerank_command>());
    add("align", std::make_unique<align_command>());
    add("adequacy", std::make_unique<adequacy_command>());
    add("repetition", std::make_unique<repetition_command>());
    add("lengths", std::make_unique<lengths_command>());
    add("words", std::make_unique<words_command>());
    add("sentences", std::make_unique<sentences_command>());

    return program::run(
        app, "evaluate", argc, argv,
        [&] {
            heed::set_threads(threads);
            for (const auto& [parsed, what] : commands)
                if (parsed->parsed()) show(what->run(), what->as_json);
            return 0;
        },
        "", [](std::vector<std::string>&) {}, {{"*", {program::environment_section}}}, {"translate"});
}
