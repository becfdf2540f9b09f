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

/// The casing of words: a word at the beginning of a sentence is converted to its usual form, and so are lines in
/// capitals. The usual forms are learned from text, as by Moses' truecaser (Koehn et al., Moses, ACL 2007).
namespace heed::inline HEED_TARGET::text {

/// Whether a word begins a sentence; call it for each word and symbol of a line, in order. The first word begins one,
/// and so does any word after a full stop, an exclamation mark or a question mark.
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

/// Counts of the cased letters of words.
struct letter_counts {
    std::size_t lower = 0, upper = 0;
    std::size_t words_in_capitals = 0;  // words of two or more letters
};

/// Counts the letters of a word.
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

/// The usual form of each word, apart from beginnings of sentences.
class usual_casing {
public:
    usual_casing() = default;

    /// Words in their usual forms. `capitals`: sentences usually begin with a capital. Throws heed::error for a word
    /// that is listed twice.
    usual_casing(bool capitals, std::span<const std::string> words) : capitals_(capitals)
    {
        for (const std::string& word : words)
            if (!forms_.try_emplace(lower_case(word), word).second)
                throw error("casing: \"" + printable(word) + "\" is listed twice");
    }

    /// Learns from lines, given as words and symbols. Of equally frequent forms, the first in byte order is usual.
    static usual_casing learn(std::span<const sentence> lines)
    {
        std::unordered_map<std::string, std::map<std::string, std::size_t>> counts;
        std::size_t with_capital = 0, without = 0;
        for (const sentence& line : lines) {
            if (count_letters(line).lower == 0) continue;  // all capitals: no information
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

    /// The usual form of a word in any casing; empty if unknown.
    std::optional<std::string> of(const std::string& word) const
    {
        const auto found = forms_.find(lower_case(word));
        return found == forms_.end() ? std::nullopt : std::optional(found->second);
    }

    /// The usual forms, by the lowercase words.
    const std::map<std::string, std::string>& forms() const { return forms_; }

    friend bool operator==(const usual_casing&, const usual_casing&) = default;

private:
    bool capitals_ = false;
    std::map<std::string, std::string> forms_;
};

}  // namespace heed::inline HEED_TARGET::text
