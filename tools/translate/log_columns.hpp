// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include <heed/core/errors.hpp>
#include <heed_kit/text/corpus.hpp>

#include "training_log.hpp"

namespace translation {

/// The column names of a log.
inline std::vector<std::string> columns_of_log()
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

/// Two columns of a log, row by row; NaN where a value is missing.
struct log_columns {
    std::vector<double> xs, ys;
};

/// Reads these columns of a log of `translate train --log`. Throws heed::error, with the line, for any other file, and
/// for a log without rows.
inline log_columns read_columns(const std::filesystem::path& path, std::string_view x, std::string_view y)
{
    const std::vector<std::string> names = columns_of_log();
    const auto place = [&](std::string_view name) {
        return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    };
    const std::size_t x_column = place(x), y_column = place(y);
    std::ifstream file = heed::text::open_text(path);
    heed::text::sentence_reader lines(file, path.string(), heed::text::empty_lines::keep);
    heed::text::sentence words;
    if (!lines.next(words) || heed::text::join(words) != training_log::header)
        throw heed::error(path.string() + ": not a log of `translate train`: the first line must be " +
                          std::string(training_log::header));
    log_columns found;
    while (lines.next(words)) {
        const std::string row = heed::text::join(words);
        std::vector<double> values;
        for (std::size_t begin = 0; begin <= row.size();) {
            const std::size_t end = std::min(row.find(',', begin), row.size());
            double value = std::numeric_limits<double>::quiet_NaN();  // missing
            const auto [stop, problem] = std::from_chars(row.data() + begin, row.data() + end, value);
            const auto refuse = [&, from = begin](const char* what) {
                const std::size_t n = values.size();
                throw heed::error(fmt::format("{}: {}: \"{}\" {}", lines.where(),
                                              n < names.size() ? names[n] : fmt::format("column {}", n + 1),
                                              row.substr(from, end - from), what));
            };
            if (end > begin && (problem == std::errc::invalid_argument || stop != row.data() + end))
                refuse("is not a number");
            if (problem == std::errc::result_out_of_range) refuse("is out of the range of a double");
            values.push_back(value);
            begin = end + 1;
        }
        if (values.size() != names.size())
            throw heed::error(
                fmt::format("{}: has {} values; expected {}", lines.where(), values.size(), names.size()));
        found.xs.push_back(values[x_column]);
        found.ys.push_back(values[y_column]);
    }
    if (found.xs.empty()) throw heed::error(path.string() + ": has no epoch yet, so no curve can be drawn");
    return found;
}

}  // namespace translation
