// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "course.hpp"

// a) Count the pairs, and take the maximum of (count, pair).
using symbols = std::vector<std::string>;
inline std::pair<std::string, std::string> first_merge(const std::map<symbols, int>& words)
{
    std::map<std::pair<std::string, std::string>, int> counts;
    for (const auto& [word, times] : words)
        for (std::size_t i = 0; i + 1 < word.size(); ++i) counts[{word[i], word[i + 1]}] += times;
    std::pair<int, std::pair<std::string, std::string>> best;
    for (const auto& [pair, count] : counts) best = std::max(best, {count, pair});
    return best.second;
}

// b) Logarithms are added where probabilities would be multiplied. A beam of width 1 is greedy search; a beam as wide
// as the number of sentences tries every sentence.
using table = std::vector<std::vector<double>>;
inline std::vector<std::size_t> beam_search(const table& log_p, std::size_t width, std::size_t longest)
{
    struct beginning {
        double score = 0;
        std::vector<std::size_t> words{};
        bool ended = false;
    };
    std::vector<beginning> open(1);
    beginning best{-INFINITY, {}, true};
    for (std::size_t step = 0; !open.empty(); ++step) {
        std::vector<beginning> all;
        for (const beginning& b : open) {
            const std::size_t last = b.words.empty() ? 0 : b.words.back();
            for (std::size_t w = 0; w < (step < longest ? log_p.size() : 1); ++w) {
                beginning next{b.score + log_p[last][w], b.words, w == 0};
                if (w != 0) next.words.push_back(w);
                all.push_back(std::move(next));
            }
        }
        std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
        if (all.size() > width) all.resize(width);
        open.clear();
        for (const beginning& b : all) {
            if (!b.ended) open.push_back(b);
            if (b.ended && b.score > best.score) best = b;
        }
    }
    return best.words;
}
