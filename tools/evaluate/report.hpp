// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <heed/core/utf8.hpp>
#include <heed_kit/metrics/bootstrap.hpp>
#include <heed_kit/text/display.hpp>

namespace evaluation {

using json = nlohmann::ordered_json;

/// The results of a command, as a table and as JSON.
struct report {
    std::vector<std::vector<std::string>> table;  ///< the first row names the columns
    std::string note;                             ///< below the table
    json data;
    std::string file = {}, contents = {};  ///< written after the report is printed, if it has a name

    std::string text(bool as_json) const
    {
        if (as_json) return data.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
        std::vector<std::size_t> widths;
        for (const auto& row : table) {
            widths.resize(std::max(widths.size(), row.size()), 0);
            for (std::size_t i = 0; i < row.size(); ++i)
                widths[i] = std::max(widths[i], heed::text::display_width(heed::text::printable(row[i])));
        }
        std::string result;
        for (const auto& row : table) {
            std::string line;
            for (std::size_t i = 0; i < row.size(); ++i) {
                const std::string cell = heed::text::printable(row[i]);
                const std::string space(widths[i] - heed::text::display_width(cell), ' ');
                if (i > 0) line += "  ";
                line += i == 0 ? cell + space : space + cell;  // names left-aligned, numbers right-aligned
            }
            result += line.erase(line.find_last_not_of(' ') + 1) + "\n";
        }
        if (note.empty()) return result;
        return result + (table.empty() ? "" : "\n") + note + "\n";
    }
};

/// "[33.02, 35.17]"
inline std::string range_text(const heed::metrics::interval& range, int digits)
{
    return fmt::format("[{:.{}f}, {:.{}f}]", range.low, digits, range.high, digits);
}

/// "14", or "14.33" for the mean of several.
inline std::string count_text(double count)
{
    return fmt::format("{:.{}f}", count, count == std::floor(count) ? 0 : 2);
}

inline json json_of(const heed::metrics::bootstrap_score& score)
{
    return {{"score", score.score}, {"mean", score.mean}, {"low", score.range.low}, {"high", score.range.high}};
}

}  // namespace evaluation
