// SPDX-License-Identifier: BSD-3-Clause
//
// evaluate: score translations, word alignments and texts in files, whoever made them.
//
// The metrics are heed/metrics; here they meet files and tables.
//
// test: --help
// test: compare --help

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include <heed/version.hpp>

#include "evaluation/alignments.hpp"
#include "evaluation/scores.hpp"
#include "evaluation/texts.hpp"

namespace {

void say(const std::string& text) { std::fputs((text + '\n').c_str(), stderr); }

}  // namespace

int main(int argc, char** argv)
{
    using namespace evaluation;
    std::ios::sync_with_stdio(false);
    std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error like a full disk, not the end

    CLI::App app{"Score translations, word alignments and texts."};
    app.set_version_flag("--version", "evaluate (heed) " HEED_VERSION_STRING);
    app.require_subcommand(1);
    app.get_formatter()->column_width(33);
    app.footer("`evaluate bleu --help` tells more, with an example; so do the others.");

    std::vector<std::pair<CLI::App*, std::unique_ptr<command>>> commands;
    const auto add = [&](const char* name, std::unique_ptr<command> what) {
        commands.emplace_back(app.add_subcommand(name), std::move(what));
        commands.back().second->declare(*commands.back().first);
    };
    add("bleu", std::make_unique<bleu_command>());
    add("ter", std::make_unique<ter_command>());
    add("ribes", std::make_unique<ribes_command>());
    add("chrf", std::make_unique<chrf_command>());
    add("compare", std::make_unique<compare_command>());
    add("align", std::make_unique<align_command>());
    add("repetition", std::make_unique<repetition_command>());
    add("lengths", std::make_unique<lengths_command>());
    add("words", std::make_unique<words_command>());

    try {
        int status = 0;
        try {
            app.parse(argc, argv);
            for (const auto& [parsed, what] : commands)
                if (parsed->parsed()) std::cout << what->run().text(what->as_json);
        } catch (const CLI::ParseError& reason) {
            status = app.exit(reason);  // --help and --version, too
        }
        if (!std::cout.flush()) throw heed::error("standard output: cannot be written");
        return status;
    } catch (const std::bad_alloc&) {
        say("evaluate: out of memory");
    } catch (const std::exception& problem) {
        say("evaluate: " + heed::text::printable(problem.what()));
    }
    return 1;
}
