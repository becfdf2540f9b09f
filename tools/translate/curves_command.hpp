// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/io/atomic_file.hpp>
#include <heed_kit/view/chart.hpp>

#include "../support/misuse.hpp"
#include "command_line.hpp"
#include "log_columns.hpp"
#include "page_command.hpp"

namespace translation {

namespace fs = std::filesystem;

/// `translate curves`
struct curves_command {
    std::vector<fs::path> logs;
    std::vector<std::string> names;
    fs::path output;
    std::string x = "epochs", y = "bleu", title;

    void declare(CLI::App& app)
    {
        app.description("Draw training curves from logs as SVG.");
        app.footer("loss and perplexity are those of validation, per token; training-loss is the minimized loss.\n"
                   "Missing values, nan and inf leave gaps in the curve.\n\n"
                   "Example:\n"
                   "  translate curves en-de.csv --x minutes --output bleu.svg");
        app.add_option("LOG", logs, "logs of `translate train --log`; one curve each")
            ->required()
            ->take_all()
            ->type_name("FILE");
        app.add_option("--output", output, "the picture to write (SVG)")->required()->type_name("FILE");
        app.add_option("--x", x, "epochs, updates or minutes")
            ->check(CLI::IsMember(keys(across)).description(""))
            ->type_name("NAME")
            ->capture_default_str();
        app.add_option("--y", y, "bleu, loss, perplexity or training-loss")
            ->check(CLI::IsMember(keys(up)).description(""))
            ->type_name("NAME")
            ->capture_default_str();
        app.add_option("--name", names,
                       "names of the curves, one per LOG, in order; default: the\n"
                       "file names")
            ->take_all()
            ->type_name("NAME");
        app.add_option("--title", title, "title of the picture")->type_name("TEXT");
    }

    int run()
    {
        for (const fs::path& log : logs) check_output(output, {log});
        if (!names.empty() && names.size() != logs.size())
            throw program::misuse(fmt::format("{} for {}; expected one per log, or none",
                                              heed::counted(names.size(), "name"), heed::counted(logs.size(), "log")));
        const std::vector<std::string> called = names.empty() ? names_of(logs) : names;
        heed::view::chart picture{.title = title, .x_label = across.at(x).label, .y_label = up.at(y).label, .all = {}};
        for (std::size_t i = 0; i < logs.size(); ++i) {
            heed::view::series& line = picture.all.emplace_back();
            log_columns read = read_columns(logs[i], across.at(x).column, up.at(y).column);
            line.name = called[i];
            line.xs = std::move(read.xs);
            line.ys = std::move(read.ys);
            for (double& each : line.ys) each = y == "perplexity" ? std::exp(each) : each;
        }
        heed::io::write_file(output, heed::view::svg(picture));
        return 0;
    }

private:
    struct axis {
        std::string_view column;
        std::string label;
    };
    using axes = std::map<std::string, axis>;
    inline static const axes across{
        {"epochs", {"epoch", "epochs"}}, {"updates", {"updates", "updates"}}, {"minutes", {"minutes", "minutes"}}};
    inline static const axes up{{"bleu", {"validation_bleu", "validation BLEU"}},
                                {"loss", {"validation_loss", "validation loss, nats per token"}},
                                {"perplexity", {"validation_loss", "validation perplexity"}},
                                {"training-loss", {"training_loss", "training loss, nats per token"}}};

    static std::vector<std::string> keys(const axes& of)
    {
        std::vector<std::string> names;
        for (const auto& [name, what] : of) names.push_back(name);
        return names;
    }
};

}  // namespace translation
