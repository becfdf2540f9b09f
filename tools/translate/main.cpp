// SPDX-License-Identifier: BSD-3-Clause
//
// translate: trains a translator on any parallel text, translates, scores, and shows attention.
//
// The systems are in src/translator, which assembles heed's models, one file per system;
// training.cpp trains them.
//
// test: --help

#include <cstddef>
#include <functional>
#include <iostream>
#include <memory>
#include <streambuf>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/core/parallel.hpp>
#include <heed/version.hpp>

#include "../support/launched.hpp"
#include "../support/processor.hpp"
#include "../support/program.hpp"
#include "align_command.hpp"
#include "bpe_command.hpp"
#include "curves_command.hpp"
#include "dictionary_command.hpp"
#include "dimensions_command.hpp"
#include "manual.hpp"
#include "page_command.hpp"
#include "quantize_command.hpp"
#include "ranks.hpp"
#include "recipe.hpp"
#include "rescore_command.hpp"
#include "run_command.hpp"
#include "score_command.hpp"
#include "serve_command.hpp"
#include "threads.hpp"
#include "train_command.hpp"

using namespace translation;

const char* const heed_built_for = HEED_BUILT_FOR;

namespace {

/// Discards the output of all ranks except 0.
struct no_buffer : std::streambuf {
    int overflow(int character) override { return character; }
};

}  // namespace

int main(int argc, char** argv)
{
    const auto started = program::launched_as::of_environment();
    speaks = started.rank == 0;
    if (!speaks) {
        std::ios::sync_with_stdio(false);            // a later call would restore the buffers
        static no_buffer& nowhere = *new no_buffer;  // std::cout is flushed at the very end
        std::cout.rdbuf(&nowhere);
        std::cerr.rdbuf(&nowhere);
    }
    bool shared = false;  // the work of all processes has begun
    CLI::App app{"Train a neural translator with attention, translate with it, score it, and show its attention."};
    app.formatter(std::make_shared<program::formatter>());  // before the subcommands, which inherit it
    app.set_version_flag("--version", "translate (heed) " HEED_VERSION_STRING);
    app.require_subcommand(1);
    app.option_defaults()->take_last();  // so that --epochs can be appended to an earlier command
    app.footer("`translate COMMAND --help` explains a command, with an example.");

    train_command train;
    run_command run;
    score_command score;
    align_command align;
    page_command page;
    rescore_command rescore;
    serve_command serve;
    dimensions_command dimensions;
    curves_command curves;
    bpe_command bpe;
    dictionary_command dictionary;
    quantize_command quantize;
    std::size_t threads = 0;
    program::ask_for_threads(app, threads);  // accepted before and after the command
    std::vector<std::pair<CLI::App*, std::function<int()>>> commands;
    const auto add = [&](const char* name, auto& command, bool computes) {
        CLI::App* const here = app.add_subcommand(name);
        command.declare(*here);
        if (computes) program::ask_for_threads(*here, threads);
        commands.emplace_back(here, [=, &command, &shared] {
            if (computes && speaks) say_if_blas_is_slow();
            constexpr bool divided = requires(any_ranks & over) { command.run(over); };
            shared = divided;
            if constexpr (divided) {
                return with_ranks([&command](any_ranks& over) { return command.run(over); });
            } else {
                if (started.size <= 1) return command.run();
                if (!speaks) return 0;  // the launcher would terminate all processes
                say(fmt::format("translate: `translate {}` runs in one process; start it without mpirun", name));
                return 1;
            }
        });
    };
    add("train", train, true);
    add("run", run, true);
    add("score", score, true);
    add("align", align, true);
    add("page", page, true);
    add("rescore", rescore, true);
    add("serve", serve, true);
    add("dimensions", dimensions, true);
    add("curves", curves, false);
    add("bpe", bpe, false);
    add("dictionary", dictionary, false);
    add("quantize", quantize, false);

    const int result = program::run(
        app, speaks ? "translate" : fmt::format("translate, rank {}", started.rank), argc, argv,
        [&] {
            heed::set_threads(threads);
            int status = 0;
            for (const auto& [command, work] : commands) {
                if (command->parsed()) status = work();
            }
            return status;
        },
        "; use smaller --batch, --beam, --hidden or --embedding",
        [&](std::vector<std::string>& arguments) { add_recipe(arguments, argv[0]); }, manual(), {"evaluate"});
    // A launcher ends all processes as soon as one has failed, so rank 0 reports errors that all ranks have.
    return speaks || shared ? result : 0;
}
