// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <heed/core/errors.hpp>
#include <heed_kit/text/vocabulary.hpp>

namespace heed::inline HEED_TARGET::text {

/// Sentences as word ids of a vocabulary.
using id_lists = std::span<const std::vector<word_id>>;

/// How IBM Model 1 is learned.
struct lexicon_options {
    std::size_t rounds = 5;     // of EM
    double least = 1e-3;        // less probable translations are dropped at the end
    double unlinked_share = 1;  // how often the empty word occurs in each source sentence; 0: never
};

/// A dictionary with probabilities: the translations of each source word.
///
/// Learned from sentence pairs by IBM Model 1 (Brown et al. 1993), in which every target word f comes from one word e
/// of the source, or from the empty word, all of them being equally probable:
///
///     p(f | sentence) ∝ Σ_e t(f|e),    t(f|e) ← Σ_pairs t(f|e) / Σ_e' t(f|e')  of each f, made to sum to 1 over f
///
/// or from the links of a given alignment, as relative frequencies. It takes the place of the fast_align table of
/// Sankaran et al. 2016, §6.2; fast_align also models positions.
class lexicon {
public:
    struct translation {
        word_id target;
        double probability;  // t(target | source)
    };

    lexicon() = default;

    /// Learns from sentence pairs: Σ_n |source_n| |target_n| steps per round.
    static lexicon learn(id_lists sources, id_lists targets, const lexicon_options& how = {})
    {
        require_pairs(sources.size(), targets.size());
        word_id nothing = 0;  // the empty word's id: the one after those of the source
        for (const auto& words : sources) {
            for (const word_id e : words) nothing = std::max(nothing, e + 1);
        }
        const bool unlinked = how.unlinked_share > 0;
        std::vector<std::vector<translation>> of(nothing + 1);
        // The pairs that occur; a list is sorted whenever it has doubled.
        std::vector<std::size_t> ordered(of.size(), 0);
        const auto meet = [&](word_id e, word_id f) {
            of[e].push_back({f, 0});
            if (of[e].size() >= 2 * ordered[e] + 64) ordered[e] = put_in_order(of[e]);
        };
        for (std::size_t n = 0; n < sources.size(); ++n) {
            for (const word_id f : targets[n]) {
                for (const word_id e : sources[n]) meet(e, f);
                if (unlinked) meet(nothing, f);
            }
        }
        for (auto& list : of) {
            put_in_order(list);
            for (translation& each : list) each.probability = 1.0 / static_cast<double>(list.size());
        }
        std::vector<std::vector<double>> counts(of.size());
        for (std::size_t round = 0; round < how.rounds; ++round) {
            for (std::size_t e = 0; e < of.size(); ++e) counts[e].assign(of[e].size(), 0.0);
            std::vector<std::pair<word_id, std::size_t>> places;
            for (std::size_t n = 0; n < sources.size(); ++n) {
                for (const word_id f : targets[n]) {
                    places.clear();
                    double sum = 0;
                    const auto add = [&](word_id e, double share) {
                        const auto at = place(of[e], f);
                        places.emplace_back(e, at);
                        sum += share * of[e][at].probability;
                    };
                    for (const word_id e : sources[n]) add(e, 1);
                    if (unlinked) add(nothing, how.unlinked_share);
                    for (const auto& [e, at] : places) {
                        const double share = e == nothing ? how.unlinked_share : 1;
                        counts[e][at] += share * of[e][at].probability / sum;
                    }
                }
            }
            for (std::size_t e = 0; e < of.size(); ++e) {
                double sum = 0;
                for (const double count : counts[e]) sum += count;
                for (std::size_t i = 0; i < of[e].size(); ++i) of[e][i].probability = sum > 0 ? counts[e][i] / sum : 0;
            }
        }
        of.resize(nothing);
        return lexicon(std::move(of), how.least);
    }

    /// Learns from the links (source position, target position) of each sentence pair.
    static lexicon of_links(id_lists sources, id_lists targets, std::span<const std::vector<std::pair<int, int>>> links,
                            double least = 1e-3)
    {
        require_pairs(sources.size(), targets.size());
        require_pairs(sources.size(), links.size());
        std::vector<std::unordered_map<word_id, double>> counts;
        for (std::size_t n = 0; n < sources.size(); ++n) {
            for (const auto& [i, j] : links[n]) {
                if (i < 0 || j < 0 || static_cast<std::size_t>(i) >= sources[n].size() ||
                    static_cast<std::size_t>(j) >= targets[n].size()) {
                    throw error("lexicon: link " + std::to_string(i) + "-" + std::to_string(j) + " of pair " +
                                std::to_string(n) + ", whose sentences have " + std::to_string(sources[n].size()) +
                                " and " + std::to_string(targets[n].size()) + " words; positions count from 0");
                }
                const word_id e = sources[n][static_cast<std::size_t>(i)];
                if (e >= counts.size()) counts.resize(e + 1);
                counts[e][targets[n][static_cast<std::size_t>(j)]] += 1;
            }
        }
        std::vector<std::vector<translation>> of(counts.size());
        for (std::size_t e = 0; e < counts.size(); ++e) {
            double sum = 0;
            for (const auto& entry : counts[e]) sum += entry.second;
            for (const auto& [f, count] : counts[e]) of[e].push_back({f, count / sum});
        }
        return lexicon(std::move(of), least);
    }

    /// The translations of a source word, the most probable first, equal ones by id; none for an unseen word.
    std::span<const translation> of(word_id source) const
    {
        if (source >= of_.size()) return {};
        return of_[source];
    }

    /// t(target | source); 0 if it was dropped.
    double probability(word_id source, word_id target) const
    {
        for (const translation& each : of(source)) {
            if (each.target == target) return each.probability;
        }
        return 0;
    }

    /// Links (source position, target position) of a sentence pair: each target word with the source word that most
    /// probably has it as a translation, the first of equals, or with none if it is a translation of none. A dictionary
    /// of the other direction makes those of the other direction; metrics::symmetrize() merges them.
    std::vector<std::pair<int, int>> align(std::span<const word_id> source, std::span<const word_id> target) const
    {
        std::vector<std::pair<int, int>> links;
        for (std::size_t j = 0; j < target.size(); ++j) {
            double best = 0;
            int place = -1;
            for (std::size_t i = 0; i < source.size(); ++i) {
                const double here = probability(source[i], target[j]);
                if (here <= best) continue;
                best = here;
                place = static_cast<int>(i);
            }
            if (place >= 0) links.emplace_back(place, static_cast<int>(j));
        }
        return links;
    }

    /// All source words are below this.
    std::size_t size() const { return of_.size(); }

    /// The most probable translation of each word, as text: the replacement for an unknown word. Special words such as
    /// `<unk>` are not translations.
    std::unordered_map<std::string, std::string> dictionary(const vocabulary& source, const vocabulary& target) const
    {
        std::unordered_map<std::string, std::string> result;
        const auto marks = static_cast<word_id>(vocabulary::special_words.size());
        for (word_id e = marks; e < of_.size(); ++e) {
            for (const translation& each : of_[e]) {
                if (each.target < marks) continue;
                result.emplace(source.word(e), target.word(each.target));
                break;
            }
        }
        return result;
    }

private:
    lexicon(std::vector<std::vector<translation>> of, double least) : of_(std::move(of))
    {
        for (auto& list : of_) {
            std::sort(list.begin(), list.end(), [](const translation& a, const translation& b) {
                return a.probability != b.probability ? a.probability > b.probability : a.target < b.target;
            });
            while (!list.empty() && list.back().probability < least) list.pop_back();
            list.shrink_to_fit();
        }
    }

    static void require_pairs(std::size_t sources, std::size_t others)
    {
        if (sources != others) {
            throw error("lexicon: " + std::to_string(sources) + " source sentences and " + std::to_string(others) +
                        " of the other side; give one for each");
        }
    }

    static std::size_t put_in_order(std::vector<translation>& list)
    {
        std::sort(list.begin(), list.end(),
                  [](const translation& a, const translation& b) { return a.target < b.target; });
        const auto same = [](const translation& a, const translation& b) { return a.target == b.target; };
        list.erase(std::unique(list.begin(), list.end(), same), list.end());
        return list.size();
    }

    static std::size_t place(const std::vector<translation>& list, word_id f)
    {
        return static_cast<std::size_t>(
            std::lower_bound(list.begin(), list.end(), f,
                             [](const translation& each, word_id wanted) { return each.target < wanted; }) -
            list.begin());
    }

    std::vector<std::vector<translation>> of_;  // by source word
};

}  // namespace heed::inline HEED_TARGET::text
