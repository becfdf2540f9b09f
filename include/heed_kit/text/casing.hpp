// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed_kit/text/sentence.hpp>
#include <heed_kit/text/unicode.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

/// The casing of words: a word that begins a sentence is the same as elsewhere, and a line in capitals is read as if it
/// were not. What is usual is learned from text, as Moses' truecaser does (Koehn et al., Moses, ACL 2007).
namespace heed::inline HEED_TARGET::text {

/// Which words begin a sentence: asked for each word and symbol of a line, in order. It is the first word, and any
/// after a full stop, an exclamation or a question mark.
class sentence_starts {
public:
    bool operator()(std::string_view word)
    {
        if (is_word(word)) return std::exchange(next_, false);
        if (word == "." || word == "!" || word == "?") next_ = true;
        return false;
    }

private:
    bool next_ = true;
};

/// The cased letters of words.
struct letter_counts {
    std::size_t lower = 0, upper = 0;
    std::size_t words_in_capitals = 0;  // of two letters and more
};

/// Counts them.
inline letter_counts count_letters(std::span<const std::string> words)
{
    letter_counts all;
    for (const std::string& word : words) {
        std::size_t lower = 0, upper = 0;
        for (std::size_t at = 0; at < word.size();) {
            const utf8_character one = utf8_at(word, at);
            const auto code = static_cast<UChar32>(one.code);
            if (u_isupper(code) || u_istitle(code)) ++upper;
            if (u_islower(code)) ++lower;
            at += one.length;
        }
        all.lower += lower;
        all.upper += upper;
        if (upper >= 2 && lower == 0) ++all.words_in_capitals;
    }
    return all;
}

/// How each word is usually written, away from the beginnings of sentences.
class usual_casing {
public:
    usual_casing() = default;

    /// These words, as they are usually written. `capitals`: sentences usually begin with a capital.
    usual_casing(bool capitals, std::span<const std::string> words) : capitals_(capitals)
    {
        for (const std::string& word : words)
            if (!forms_.try_emplace(lower_case(word), word).second)
                throw error("casing: \"" + printable(word) + "\" is listed a second time");
    }

    /// Learns from lines, each as its words and symbols. Of equally frequent forms the first in byte order is usual.
    static usual_casing learn(std::span<const sentence> lines)
    {
        std::unordered_map<std::string, std::map<std::string, std::size_t>> counts;
        std::size_t with_capital = 0, without = 0;
        for (const sentence& line : lines) {
            if (count_letters(line).lower == 0) continue;  // all capitals: says nothing
            sentence_starts starts;
            for (const std::string& word : line) {
                if (!is_word(word)) {
                    starts(word);
                } else if (!starts(word)) {
                    ++counts[lower_case(word)][word];
                } else if (lower_case(word) != upper_case(word)) {
                    ++(title_case(word) == word ? with_capital : without);
                }
            }
        }
        usual_casing result;
        result.capitals_ = with_capital > without;
        for (const auto& [lower, forms] : counts) {
            const auto rarer = [](const auto& a, const auto& b) { return a.second < b.second; };
            result.forms_[lower] = std::max_element(forms.begin(), forms.end(), rarer)->first;
        }
        return result;
    }

    /// Whether sentences usually begin with a capital.
    bool capitals() const { return capitals_; }

    /// The usual form of a word, however it is written; nothing if it is not known.
    std::optional<std::string> of(const std::string& word) const
    {
        const auto found = forms_.find(lower_case(word));
        return found == forms_.end() ? std::nullopt : std::optional(found->second);
    }

    /// The usual forms, by the words in lower case.
    const std::map<std::string, std::string>& forms() const { return forms_; }

    friend bool operator==(const usual_casing&, const usual_casing&) = default;

private:
    bool capitals_ = false;
    std::map<std::string, std::string> forms_;
};

}  // namespace heed::inline HEED_TARGET::text
