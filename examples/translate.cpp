// SPDX-License-Identifier: BSD-3-Clause
//
// translate: train a translator on any parallel text, use it, score it, and look at where it looks.
//
// RNNsearch (Bahdanau, Cho, Bengio 2015) with a choice of attentions, on the CPU. What is interesting is not here but
// in heed/seq2seq/translator.hpp, which puts the model together, and in translation/training.hpp, which trains it.
//
// test: --help

#include <csignal>
#include <cstddef>
#include <functional>
#include <iostream>
#include <new>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include <heed/core/parallel.hpp>
#include <heed/text/utf8.hpp>
#include <heed/version.hpp>

#include "translation/align_command.hpp"
#include "translation/bpe_command.hpp"
#include "translation/curves_command.hpp"
#include "translation/dictionary_command.hpp"
#include "translation/page_command.hpp"
#include "translation/run_command.hpp"
#include "translation/score_command.hpp"
#include "translation/threads.hpp"
#include "translation/train_command.hpp"

using namespace translation;

int main(int argc, char** argv)
{
    std::ios::sync_with_stdio(false);
    std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error like a full disk, not the end

    CLI::App app{"Train a neural translator with attention, translate with it, score it, and see where it looks."};
    app.set_version_flag("--version", "translate (heed) " HEED_VERSION_STRING);
    app.require_subcommand(1);
    app.get_formatter()->column_width(33);
    app.option_defaults()->take_last();  // more --epochs can be put behind a command from before
    app.failure_message(usage_message);
    app.footer("`translate train --help` tells more, with an example; so do the others.\n"
               "An option with \"...\" takes several values, one behind another, and may also be given again:\n"
               "--model A B is --model A --model B.");

    train_command train;
    run_command run;
    score_command score;
    align_command align;
    page_command page;
    curves_command curves;
    bpe_command bpe;
    dictionary_command dictionary;
    std::size_t threads = 0;
    const auto ask_for_threads = [&](CLI::App& of) {  // before the command and after it
        of.add_option("--threads", threads, "threads to use; 0: as many as the machine has")
            ->check(CLI::Range(std::size_t{0}, std::size_t{256}).description(""))
            ->type_name("N")
            ->capture_default_str();
    };
    ask_for_threads(app);
    std::vector<std::pair<CLI::App*, std::function<int()>>> commands;
    const auto add = [&](const char* name, auto& command, bool computes) {
        CLI::App* const here = app.add_subcommand(name);
        command.declare(*here);
        if (computes) ask_for_threads(*here);
        commands.emplace_back(here, [&command, computes] {
            if (computes) say_if_blas_is_slow();
            return command.run();
        });
    };
    add("train", train, true);
    add("run", run, true);
    add("score", score, true);
    add("align", align, true);
    add("page", page, true);
    add("curves", curves, false);
    add("bpe", bpe, false);
    add("dictionary", dictionary, false);

    try {
        int status = 0;
        try {
            app.parse(argc, argv);
            heed::set_threads(threads);
            for (const auto& [command, work] : commands) {
                if (command->parsed()) status = work();
            }
        } catch (const CLI::ParseError& reason) {
            status = app.exit(reason);  // --help and --version, too
        }
        flush_output();
        return status;
    } catch (const std::bad_alloc&) {
        say("translate: out of memory; smaller --batch, --beam, --hidden or --embedding need less");
    } catch (const std::exception& problem) {
        say("translate: " + heed::text::printable(problem.what()));
    }
    return 1;
}
