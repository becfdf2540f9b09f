// SPDX-License-Identifier: BSD-3-Clause
//
// Grades step 10: compares with text::learn_bpe, and with an exhaustive search over all sentences.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <heed/core/random.hpp>
#include <heed_kit/text/learn_bpe.hpp>

#include "10.hpp"
#include "course.hpp"

namespace {

std::string check_merge()
{
    for (const std::map<std::string, int>& text :
         {std::map<std::string, int>{{"low", 5}, {"lower", 2}, {"newest", 6}, {"widest", 3}},
          {{"aba", 2}, {"bab", 2}},
          {{"aaaa", 1}, {"bb", 2}, {"ccc", 2}}}) {
        heed::text::word_counts counts;
        std::map<symbols, int> words;
        for (const auto& [word, times] : text) {
            counts[word] = static_cast<std::uint64_t>(times);
            symbols letters;
            for (const char letter : word) letters.emplace_back(1, letter);
            letters.back() += heed::text::bpe_end_of_word;  // the last letter of a word is a separate symbol
            words[letters] = times;
        }
        const auto must = heed::text::learn_bpe(counts, 1).merges().front();
        const auto [left, right] = first_merge(words);
        if (left != must.left || right != must.right)
            return "the first merge is " + left + " " + right + ", but should be " + must.left + " " + must.right;
    }
    return {};
}

std::string text(const std::vector<std::size_t>& words)
{
    std::string all = "(";
    for (const std::size_t w : words) all += (all.size() == 1 ? "" : " ") + std::to_string(w);
    return all + ")";
}

std::string check_beam()
{
    constexpr std::size_t V = 4, longest = 4;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        table log_p(V, std::vector<double>(V));
        for (std::size_t v = 0; v < V; ++v) {
            double sum = 0;
            for (std::size_t w = 0; w < V; ++w) sum += std::exp(log_p[v][w] = 2 * heed::normal(seed, v * V + w));
            for (std::size_t w = 0; w < V; ++w) log_p[v][w] -= std::log(sum);
        }
        std::vector<std::size_t> best, greedy;
        double most = -INFINITY;
        const std::function<void(const std::vector<std::size_t>&, double)> try_all = [&](const auto& words,
                                                                                         double score) {
            const std::size_t last = words.empty() ? 0 : words.back();
            if (score + log_p[last][0] > most) most = score + log_p[last][0], best = words;
            for (std::size_t w = 1; w < V && words.size() < longest; ++w) {
                auto more = words;
                more.push_back(w);
                try_all(more, score + log_p[last][w]);
            }
        };
        try_all({}, 0);
        for (std::size_t last = 0; greedy.size() < longest; greedy.push_back(last)) {
            const auto& row = log_p[last];
            for (std::size_t w = last = 0; w < V; ++w) last = row[w] > row[last] ? w : last;
            if (last == 0) break;
        }
        if (const auto is = beam_search(log_p, 1, longest); is != greedy)
            return "with width 1, the search returns " + text(is) + ", but should return " + text(greedy);
        if (const auto is = beam_search(log_p, 1000, longest); is != best)
            return "with width 1000, the search returns " + text(is) + ", but should return " + text(best);
    }
    // Greedy search begins with 1, the most probable word (0.5), but no word is probable after it; 2 (0.4) is the
    // better start.
    const auto log = [](std::vector<double> p) {
        for (double& x : p) x = std::log(x);
        return p;
    };
    const table trap{log({0.1, 0.5, 0.4}), log({0.3, 0.35, 0.35}), log({0.9, 0.05, 0.05})};
    if (const auto is = beam_search(trap, 2, longest); is != std::vector<std::size_t>{2})
        return "with width 2, the search returns " + text(is) + ", but should return (2)";
    return {};
}

}  // namespace

int main() { return course::graded({{"a", "the first merge", check_merge}, {"b", "a beam search", check_beam}}); }
