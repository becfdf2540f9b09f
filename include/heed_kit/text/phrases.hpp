// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed_kit/text/lexicon.hpp>
#include <heed_kit/text/ngrams.hpp>
#include <heed_kit/text/vocabulary.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace heed::inline HEED_TARGET::text {

/// Maximum lengths of the phrases of a pair, in words.
struct phrase_options {
    std::size_t longest_source = 4;  ///< words, at most 4
    std::size_t longest_target = 8;  ///< words
};

/// A phrase pair of a sentence pair: source words begin … end - 1, and the target words of their translation.
struct phrase_pair {
    std::size_t source_begin = 0, source_end = 0;
    std::size_t target_begin = 0, target_end = 0;

    friend bool operator==(const phrase_pair&, const phrase_pair&) = default;
    friend auto operator<=>(const phrase_pair&, const phrase_pair&) = default;
};

/// The phrase pairs that are consistent with the links (source position, target position) of a sentence pair: there is
/// a link inside, and no word of either phrase is linked to a word outside (Och & Ney 2004, section 3.2; Koehn, Och &
/// Marcu 2003). Unlinked words may be inside or outside a phrase. `links` are those of one aligner or, better, those of
/// two merged by metrics::symmetrize(). Throws heed::error for a link outside the sentences.
///
/// In order of source_begin, source_end, target_begin, target_end. Time linear in the source words times the maximum
/// lengths.
inline std::vector<phrase_pair> extract_phrases(std::span<const std::pair<int, int>> links, std::size_t source_words,
                                                std::size_t target_words, const phrase_options& how = {})
{
    constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
    struct range {
        std::size_t first = none, last = 0;  // range of the linked words; empty without links
        void include(std::size_t word)
        {
            first = std::min(first, word);
            last = first == none ? 0 : std::max(last, word);
        }
        bool linked() const { return first != none; }
    };
    std::vector<range> of_source(source_words), of_target(target_words);
    for (const auto& [i, j] : links) {
        if (!std::cmp_less(i, source_words) || !std::cmp_less(j, target_words) || i < 0 || j < 0)
            throw error("phrases: link " + std::to_string(i) + "-" + std::to_string(j) + " of sentences with " +
                        std::to_string(source_words) + " and " + std::to_string(target_words) +
                        " words; positions count from 0");
        of_source[static_cast<std::size_t>(i)].include(static_cast<std::size_t>(j));
        of_target[static_cast<std::size_t>(j)].include(static_cast<std::size_t>(i));
    }
    std::vector<phrase_pair> result;
    for (std::size_t begin = 0; begin < source_words; ++begin) {
        range linked;
        for (std::size_t end = begin + 1; end <= source_words && end - begin <= how.longest_source; ++end) {
            if (const range& here = of_source[end - 1]; here.linked()) {
                linked.include(here.first);
                linked.include(here.last);
            }
            if (!linked.linked()) continue;
            if (linked.last - linked.first >= how.longest_target) break;  // it only grows
            bool inside = true;
            for (std::size_t j = linked.first; j <= linked.last; ++j)
                inside = inside && (!of_target[j].linked() || (of_target[j].first >= begin && of_target[j].last < end));
            if (!inside) continue;
            // Extended by any number of unlinked neighbors.
            std::size_t leftmost = linked.first;
            while (leftmost > 0 && !of_target[leftmost - 1].linked() && linked.last - leftmost + 1 < how.longest_target)
                --leftmost;
            for (std::size_t left = leftmost; left <= linked.first; ++left) {
                for (std::size_t last = linked.last; last < target_words && last - left < how.longest_target; ++last) {
                    if (last > linked.last && of_target[last].linked()) break;
                    result.push_back({begin, end, left, last + 1});
                }
            }
        }
    }
    return result;
}

/// The target words of the translations of each source phrase of up to four words: "phrase words", used in addition to
/// the words of a dictionary in candidate lists (Mi et al. 2016; Sankaran et al. 2016, §6.2). In a pair of phrases
/// every source word may be linked to every target word.
class phrase_table {
public:
    static constexpr std::size_t longest = 4;  ///< maximum number of words of a source phrase

    struct translation {
        word_id target;
        double count;  ///< number of the phrase's pairs with this word
    };

    phrase_table() = default;

    /// Learns from the links of each sentence pair. Throws heed::error if the numbers of sentences and alignments
    /// differ, for links outside their sentences, and for source phrases of 0 words or more than 4.
    static phrase_table learn(id_lists sources, id_lists targets,
                              std::span<const std::vector<std::pair<int, int>>> links, const phrase_options& how = {})
    {
        if (sources.size() != targets.size() || sources.size() != links.size())
            throw error("phrases: " + counted(sources.size(), "source sentence") + ", " +
                        counted(targets.size(), "target sentence") + " and " + counted(links.size(), "alignment") +
                        "; the numbers must be equal");
        if (how.longest_source == 0 || how.longest_source > longest)
            throw error("phrases: source phrases of up to " + counted(how.longest_source, "word") +
                        "; the length must be 1 to " + std::to_string(longest));
        // A list is merged whenever its size has doubled.
        struct growing {
            std::vector<translation> words;
            std::size_t merged = 0;
        };
        std::unordered_map<gram<longest>, growing, gram_hash> lists;
        std::vector<word_id> words;
        for (std::size_t n = 0; n < sources.size(); ++n) {
            for (const phrase_pair& each : extract_phrases(links[n], sources[n].size(), targets[n].size(), how)) {
                const auto target =
                    std::span(targets[n]).subspan(each.target_begin, each.target_end - each.target_begin);
                words.assign(target.begin(), target.end());
                std::sort(words.begin(), words.end());
                words.erase(std::unique(words.begin(), words.end()), words.end());
                growing& list =
                    lists[key(std::span(sources[n]).subspan(each.source_begin, each.source_end - each.source_begin))];
                for (const word_id word : words) list.words.push_back({word, 1});
                if (list.words.size() >= 2 * list.merged + 64) list.merged = merge(list.words);
            }
        }
        phrase_table result;
        for (auto& [phrase, list] : lists) {
            merge(list.words);
            std::sort(list.words.begin(), list.words.end(), [](const translation& a, const translation& b) {
                return a.count != b.count ? a.count > b.count : a.target < b.target;
            });
            list.words.shrink_to_fit();
            result.table_.emplace(phrase, std::move(list.words));
        }
        return result;
    }

    /// The target words of a source phrase, most frequent first, ties by id; empty for unseen phrases.
    std::span<const translation> of(std::span<const word_id> phrase) const
    {
        if (phrase.empty() || phrase.size() > longest) return {};
        const auto found = table_.find(key(phrase));
        if (found == table_.end()) return {};
        return found->second;
    }

    /// Calls see(word) for the first `per_phrase` target words of each phrase in a source sentence, possibly several
    /// times for a word. Time linear in the sentence.
    template <class See>
    void words_of(std::span<const word_id> source, std::size_t per_phrase, const See& see) const
    {
        std::vector<std::uint32_t> numbers;
        for (const word_id word : source) numbers.push_back(word + 1);
        for_each_gram<longest>(numbers, longest, [&](std::size_t, const gram<longest>& phrase) {
            const auto found = table_.find(phrase);
            if (found == table_.end()) return;
            for (std::size_t k = 0; k < std::min(per_phrase, found->second.size()); ++k) see(found->second[k].target);
        });
    }

    /// The number of source phrases.
    std::size_t size() const { return table_.size(); }

    /// All source phrases, in ascending order.
    std::vector<std::vector<word_id>> phrases() const
    {
        std::vector<std::vector<word_id>> result;
        for (const auto& entry : table_) {
            std::vector<word_id>& phrase = result.emplace_back();
            for (std::size_t i = longest; i > 0; --i)
                if (entry.first[i - 1] != 0) phrase.push_back(entry.first[i - 1] - 1);
        }
        std::sort(result.begin(), result.end());
        return result;
    }

    /// Replaces the target words of a phrase, best first, to fill a table from another source. Throws heed::error for a
    /// phrase of 0 words or more than 4.
    void set(std::span<const word_id> phrase, std::vector<translation> words)
    {
        if (phrase.empty() || phrase.size() > longest)
            throw error("phrases: a source phrase of " + counted(phrase.size(), "word") + "; it must have 1 to " +
                        std::to_string(longest));
        table_[key(phrase)] = std::move(words);
    }

private:
    // Ids from 1 and latest first, as in for_each_gram.
    static gram<longest> key(std::span<const word_id> phrase)
    {
        gram<longest> result{};
        for (std::size_t i = 0; i < phrase.size(); ++i) result[i] = phrase[phrase.size() - 1 - i] + 1;
        return result;
    }

    /// Merges the counts of equal words; returns the number of words.
    static std::size_t merge(std::vector<translation>& list)
    {
        std::sort(list.begin(), list.end(),
                  [](const translation& a, const translation& b) { return a.target < b.target; });
        std::size_t kept = 0;
        for (std::size_t i = 0; i < list.size(); ++i) {
            if (kept > 0 && list[kept - 1].target == list[i].target)
                list[kept - 1].count += list[i].count;
            else
                list[kept++] = list[i];
        }
        list.resize(kept);
        return kept;
    }

    std::unordered_map<gram<longest>, std::vector<translation>, gram_hash> table_;
};

}  // namespace heed::inline HEED_TARGET::text
