// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "picture.hpp"

/// Draws a tape of numbers: a list of entries, each with a name, a value, a gradient, and `from`, pairs of the index of
/// an entry that it reads and a slope. An entry comes after all entries that it reads.
namespace course {

/// Draws a tree in the terminal, the last entry at the top: each entry with its number, value and [gradient], and below
/// it the entries that it reads. An entry that is read several times is drawn once.
template <class Entry>
void draw(const std::vector<Entry>& entries, std::size_t at, std::vector<bool>& seen, const std::string& before)
{
    const Entry& e = entries[at];
    const bool again = seen[at] && !e.from.empty();
    std::printf("#%zu %s = %.3f [%.3f]%s\n", at, e.name.c_str(), e.value, e.gradient, again ? ", see above" : "");
    seen[at] = true;
    for (std::size_t i = 0; !again && i < e.from.size(); ++i) {
        const bool last = i + 1 == e.from.size();
        std::printf("%s%s", before.c_str(), last ? "└─ " : "├─ ");
        draw(entries, e.from[i].first, seen, before + (last ? "   " : "│  "));
    }
}
/// Draws a picture for a browser, from left to right: each entry is in the first column after all entries that it
/// reads.
template <class Entry>
std::string graph_svg(const std::vector<Entry>& entries)
{
    std::vector<std::size_t> column, x, y, rows(entries.size());
    std::string lines, boxes;
    for (const Entry& e : entries) {
        std::size_t behind = 0;
        for (const auto& [a, slope] : e.from) behind = std::max(behind, column[a] + 1);
        column.push_back(behind);
        x.push_back(10 + 110 * behind);
        y.push_back(10 + 60 * rows[behind]++ + (behind % 2) * 20);  // so that lines do not run through boxes
        for (const auto& [a, slope] : e.from) {
            lines += fmt::format("<path d='M{} {}L{} {}'/>\n", x[a] + 80, y[a] + 20, x.back(), y.back() + 20);
        }
        boxes += fmt::format("<rect x='{}' y='{}' width='80' height='40' rx='4'/><text x='{}' y='{}'>{} = {:.3f}</text>"
                             "<text x='{}' y='{}' class='gradient'>[{:.3f}]</text>\n",
                             x.back(), y.back(), x.back() + 40, y.back() + 17, e.name, e.value, x.back() + 40,
                             y.back() + 33, e.gradient);
    }
    const std::size_t width = *std::max_element(x.begin(), x.end()) + 90,
                      height = *std::max_element(y.begin(), y.end()) + 50;
    return fmt::format("<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0} {1}' width='{0}' height='{1}'>\n"
                       "<style>rect{{fill:#fff;stroke:#888}}path{{stroke:#888}}text{{font:12px sans-serif;"
                       "text-anchor:middle}}.gradient{{fill:#c2255c}}.page{{stroke:none}}</style>\n"
                       "<rect class='page' width='{0}' height='{1}'/>\n{2}{3}</svg>\n",
                       width, height, lines, boxes);
}

/// Draws both: the tree in the terminal and, with --out, graph.svg.
template <class Entry>
void draw(const std::vector<Entry>& entries)
{
    std::vector<bool> seen(entries.size());
    draw(entries, entries.size() - 1, seen, "");
    write_picture("graph", graph_svg(entries));
}

}  // namespace course
