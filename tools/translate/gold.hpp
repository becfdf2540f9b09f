// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <heed/core/errors.hpp>
#include <heed_kit/metrics/alignment_error.hpp>
#include <heed_kit/text/corpus.hpp>

namespace translation {

/// Human links of sentence pairs, line by line: i-j sure, ipj possible. Throws heed::error unless there is a line for
/// each source sentence, and both ends of each link are words of the given pairs.
inline std::vector<heed::metrics::gold_links> read_gold(const std::filesystem::path& gold,
                                                        const std::filesystem::path& source,
                                                        const heed::text::parallel_corpus& pairs)
{
    const std::vector<heed::text::sentence> lines = heed::text::read_corpus(gold, heed::text::empty_lines::keep);
    if (lines.size() != pairs.source.size())
        throw heed::error(fmt::format("{} has {}, {} has {}; expected the links of each pair, an empty line for none",
                                      gold.string(), heed::counted(lines.size(), "line"), source.string(),
                                      pairs.source.size()));
    std::vector<heed::metrics::gold_links> all;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::string where = gold.string() + ":" + std::to_string(i + 1);
        all.push_back(heed::metrics::parse_gold(heed::text::join(lines[i]), where));
        for (const auto* kind : {&all.back().sure, &all.back().possible}) {
            for (const auto& [from, to] : *kind) {
                if (std::cmp_less(from, pairs.source[i].size()) && std::cmp_less(to, pairs.target[i].size())) continue;
                throw heed::error(fmt::format("{}: a link of words {} and {}, but the sentences have {} and {}; words "
                                              "count from 0",
                                              where, from, to, pairs.source[i].size(), pairs.target[i].size()));
            }
        }
    }
    return all;
}

}  // namespace translation
