// SPDX-License-Identifier: BSD-3-Clause
//
// translate: train a translator on any parallel text, use it, score it, and see where it attends.
//
// A choice of systems and attentions, on the CPU. The interesting parts are in systems/, which put heed's models
// together, one file per system, and in training.cpp, which trains them.
//
// test: --help

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include <heed/core/parallel.hpp>
#include <heed/version.hpp>

#include "../support/program.hpp"
#include "align_command.hpp"
#include "bpe_command.hpp"
#include "curves_command.hpp"
#include "dictionary_command.hpp"
#include "dimensions_command.hpp"
#include "page_command.hpp"
#include "recipe.hpp"
#include "rescore_command.hpp"
#include "run_command.hpp"
#include "score_command.hpp"
#include "threads.hpp"
#include "train_command.hpp"

using namespace translation;

int main(int argc, char** argv)
{
    CLI::App app{"Train a neural translator with attention, translate with it, score it, and see where it looks."};
    app.formatter(std::make_shared<program::formatter>());  // before the subcommands, which take it over
    app.set_version_flag("--version", "translate (heed) " HEED_VERSION_STRING);
    app.require_subcommand(1);
    app.option_defaults()->take_last();  // so that --epochs can be appended to an earlier command
    app.footer("`translate train --help` tells more, with an example; so do the others.");

    train_command train;
    run_command run;
    score_command score;
    align_command align;
    page_command page;
    rescore_command rescore;
    dimensions_command dimensions;
    curves_command curves;
    bpe_command bpe;
    dictionary_command dictionary;
    std::size_t threads = 0;
    program::ask_for_threads(app, threads);  // before the command and after it
    std::vector<std::pair<CLI::App*, std::function<int()>>> commands;
    const auto add = [&](const char* name, auto& command, bool computes) {
        CLI::App* const here = app.add_subcommand(name);
        command.declare(*here);
        if (computes) program::ask_for_threads(*here, threads);
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
    add("rescore", rescore, true);
    add("dimensions", dimensions, true);
    add("curves", curves, false);
    add("bpe", bpe, false);
    add("dictionary", dictionary, false);

    return program::run(
        app, "translate", argc, argv,
        [&] {
            heed::set_threads(threads);
            int status = 0;
            for (const auto& [command, work] : commands) {
                if (command->parsed()) status = work();
            }
            return status;
        },
        "; smaller --batch, --beam, --hidden or --embedding need less", add_recipe);
}
