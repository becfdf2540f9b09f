// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/io/atomic_file.hpp>
#include <heed/text/corpus.hpp>
#include <heed/view/chart.hpp>

#include "command_line.hpp"
#include "page_command.hpp"
#include "training_log.hpp"

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
        app.description("Draw training curves from logs, as SVG.");
        app.footer("loss and perplexity are the validation's, per token; training-loss is the minimised loss.\n"
                   "A value that is missing, nan or inf leaves a gap in the curve.\n\n"
                   "Example:\n"
                   "  translate curves en-de.csv --x minutes --out bleu.svg");
        app.add_option("LOG", logs, "logs of `translate train --log`; one curve each")
            ->required()
            ->take_all()
            ->type_name("FILE");
        app.add_option("--out", output, "the picture to write (SVG)")->required()->type_name("FILE");
        app.add_option("--x", x, "epochs, updates or minutes")
            ->check(CLI::IsMember(keys(across)).description(""))
            ->type_name("NAME")
            ->capture_default_str();
        app.add_option("--y", y, "bleu, loss, perplexity or training-loss")
            ->check(CLI::IsMember(keys(up)).description(""))
            ->type_name("NAME")
            ->capture_default_str();
        app.add_option("--name", names,
                       "names of the curves, one for each LOG, in order; otherwise\n"
                       "as the files")
            ->take_all()
            ->type_name("NAME");
        app.add_option("--title", title, "of the picture")->type_name("TEXT");
    }

    int run()
    {
        for (const fs::path& log : logs) check_output(output, {log});
        if (!names.empty() && names.size() != logs.size())
            throw heed::error(fmt::format("{} for {}; give one for each, or none", heed::counted(names.size(), "name"),
                                          heed::counted(logs.size(), "log")));
        const std::vector<std::string> called = names.empty() ? names_of(logs) : names;
        heed::view::chart picture{.title = title, .x_label = across.at(x).label, .y_label = up.at(y).label, .all = {}};
        for (std::size_t i = 0; i < logs.size(); ++i) {
            heed::view::series& line = picture.all.emplace_back();
            line.name = called[i];
            read(logs[i], line);
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

    void read(const fs::path& path, heed::view::series& line) const
    {
        std::ifstream file = heed::text::open_text(path);
        heed::text::sentence_reader lines(file, path.string(), heed::text::empty_lines::keep);
        sentence words;
        if (!lines.next(words) || heed::text::join(words) != training_log::header)
            throw heed::error(path.string() + ": not a log of `translate train`: its first line must be " +
                              std::string(training_log::header));
        const std::size_t x_column = place(across.at(x).column), y_column = place(up.at(y).column);
        while (lines.next(words)) {
            const std::string row = heed::text::join(words);
            std::vector<double> values;
            for (std::size_t begin = 0; begin <= row.size();) {
                const std::size_t end = std::min(row.find(',', begin), row.size());
                double value = std::numeric_limits<double>::quiet_NaN();  // missing
                const auto [stop, problem] = std::from_chars(row.data() + begin, row.data() + end, value);
                const auto refuse = [&, from = begin](const char* what) {
                    throw heed::error(fmt::format("{}: {}: \"{}\" {}", lines.where(), column(values.size()),
                                                  row.substr(from, end - from), what));
                };
                if (end > begin && (problem == std::errc::invalid_argument || stop != row.data() + end))
                    refuse("is not a number");
                if (problem == std::errc::result_out_of_range) refuse("is beyond what a double holds");
                values.push_back(value);
                begin = end + 1;
            }
            if (values.size() != columns().size())
                throw heed::error(fmt::format("{}: {} values; a row of a log has {}", lines.where(), values.size(),
                                              columns().size()));
            line.xs.push_back(values[x_column]);
            line.ys.push_back(y == "perplexity" ? std::exp(values[y_column]) : values[y_column]);
        }
        if (line.xs.empty()) throw heed::error(path.string() + ": has no epoch yet; there is nothing to draw");
    }

    /// The names of a log's columns.
    static std::vector<std::string> columns()
    {
        std::vector<std::string> names;
        const std::string header(training_log::header);
        for (std::size_t begin = 0; begin <= header.size();) {
            const std::size_t end = std::min(header.find(',', begin), header.size());
            names.push_back(header.substr(begin, end - begin));
            begin = end + 1;
        }
        return names;
    }

    static std::size_t place(std::string_view name)
    {
        const std::vector<std::string> all = columns();
        return static_cast<std::size_t>(std::find(all.begin(), all.end(), name) - all.begin());
    }

    static std::string column(std::size_t place)
    {
        const std::vector<std::string> all = columns();
        return place < all.size() ? all[place] : fmt::format("column {}", place + 1);
    }
};

}  // namespace translation
