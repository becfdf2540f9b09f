// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed_kit/text/sentence.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace heed::inline HEED_TARGET::text {

/// The row of a word in an embedding table: 0 … vocabulary::size() - 1.
using word_id = std::uint32_t;

/// Words and their ids.
///
/// Every vocabulary begins with four special words: `<pad>` = 0, `<unk>` = 1, `<s>` = 2, `</s>` = 3. They are marks,
/// not text: a corpus word spelled like a special word is not treated as one. It is not counted, gets no id, and reads
/// as `<unk>`, so text cannot pad, begin or end a sentence.
///
/// Copyable; lookups by std::string_view allocate nothing; safe to read from several threads.
class vocabulary {
public:
    static constexpr word_id pad = 0;  ///< fills the end of short sentences in a batch
    static constexpr word_id unk = 1;  ///< any unlisted word
    static constexpr word_id bos = 2;  ///< `<s>`: the first input of a decoder
    static constexpr word_id eos = 3;  ///< `</s>`: the end of a sentence
    static constexpr std::array<std::string_view, 4> special_words{"<pad>", "<unk>", "<s>", "</s>"};
    static constexpr std::size_t unlimited = std::numeric_limits<word_id>::max();

    /// Only the special words.
    vocabulary()
    {
        for (const std::string_view special : special_words) words_.emplace_back(special);
    }

    /// All words with at least `min_count` occurrences, most frequent first, ties in byte order: the order depends only
    /// on the counts. `max_size`, which includes the special words, excludes the rarest.
    static vocabulary build(std::span<const sentence> corpus, std::size_t min_count = 1,
                            std::size_t max_size = unlimited)
    {
        std::unordered_map<std::string_view, std::size_t> counts;
        for (const sentence& line : corpus)
            for (const std::string& word : line) ++counts[word];
        return of_counts({counts.begin(), counts.end()}, min_count, max_size);
    }

    /// As above for distinct words and their counts.
    static vocabulary of_counts(std::vector<std::pair<std::string_view, std::size_t>> ranked, std::size_t min_count = 1,
                                std::size_t max_size = unlimited)
    {
        std::erase_if(ranked, [&](const auto& each) { return each.second < min_count || is_special(each.first); });
        std::sort(ranked.begin(), ranked.end(), [](const auto& left, const auto& right) {
            return left.second != right.second ? left.second > right.second : left.first < right.first;
        });

        vocabulary result;
        for (const auto& [word, count] : ranked) {
            if (result.words_.size() >= std::min(max_size, unlimited)) break;
            result.append(std::string(word));
        }
        return result;
    }

    /// The inverse of words(). Throws heed::error unless the list begins with the four special words and all words are
    /// distinct, not empty and without white space.
    static vocabulary from_words(std::vector<std::string> words)
    {
        for (std::size_t i = 0; i < special_words.size(); ++i)
            if (i >= words.size() || words[i] != special_words[i])
                throw error("vocabulary: word " + std::to_string(i) + " must be " + std::string(special_words[i]) +
                            (i < words.size() ? " but is \"" + words[i] + "\"" : ", but the list ends before it"));
        if (words.size() > unlimited) throw error("vocabulary: the number of words exceeds 32 bits");

        vocabulary result;
        for (std::size_t i = special_words.size(); i < words.size(); ++i) {
            const std::string& word = words[i];
            const auto refuse = [&](const char* why) {
                throw error("vocabulary: word " + std::to_string(i) + " (\"" + word + "\") " + why);
            };
            if (const char* const wrong = not_one_word(word)) refuse(wrong);
            if (is_special(word)) refuse("repeats a special word");
            if (!result.append(std::move(words[i]))) {
                words[i] = result.words_.back();
                refuse("is listed twice");
            }
        }
        return result;
    }

    /// One word per line, the format of a model's metadata; from_text() is the inverse and checks as from_words() does.
    /// Throws heed::error if a word is empty or contains white space: build() accepts such words from text not
    /// processed by split().
    std::string to_text() const
    {
        for (std::size_t i = special_words.size(); i < words_.size(); ++i)
            if (const char* const wrong = not_one_word(words_[i]))
                throw error("vocabulary: word " + std::to_string(i) + " (\"" + words_[i] + "\") " + wrong +
                            "; as text, each word must be a line without white space");
        return join(words_, "\n");
    }

    /// A vocabulary from the lines of to_text().
    static vocabulary from_text(std::string_view text)
    {
        std::vector<std::string> words;
        for (std::size_t begin = 0; begin <= text.size();) {
            const std::size_t end = std::min(text.find('\n', begin), text.size());
            words.emplace_back(text.substr(begin, end - begin));
            begin = end + 1;
        }
        return from_words(std::move(words));
    }

    std::size_t size() const { return words_.size(); }
    const std::vector<std::string>& words() const { return words_; }

    /// Whether a word has an id. False for the special words.
    bool contains(std::string_view word) const { return ids_.find(word) != ids_.end(); }

    /// The id of a word; `unk` for unlisted words and for the spelling of special words.
    word_id id(std::string_view word) const
    {
        const auto found = ids_.find(word);
        return found == ids_.end() ? unk : found->second;
    }

    /// The word with this id. Throws heed::error if it does not exist.
    const std::string& word(word_id id) const
    {
        if (id >= words_.size())
            throw error("vocabulary: there is no word " + std::to_string(id) + "; the last is " +
                        std::to_string(words_.size() - 1));
        return words_[id];
    }

    /// The ids of a sentence, one per word: without `<s>` and `</s>`.
    std::vector<word_id> encode(std::span<const std::string> words) const
    {
        std::vector<word_id> ids;
        ids.reserve(words.size());
        for (const std::string& each : words) ids.push_back(id(each));
        return ids;
    }

    /// The words of these ids, up to the first `</s>`. `<pad>` and `<s>` are skipped; `<unk>` is kept.
    sentence decode(std::span<const word_id> ids) const
    {
        sentence words;
        for (const word_id each : ids) {
            if (each == eos) break;
            if (each != pad && each != bos) words.push_back(word(each));
        }
        return words;
    }

    friend bool operator==(const vocabulary& left, const vocabulary& right) { return left.words_ == right.words_; }

private:
    struct hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view word) const { return std::hash<std::string_view>{}(word); }
    };

    /// The reason why this cannot be a word of a text, or null.
    static const char* not_one_word(std::string_view word)
    {
        if (word.empty()) return "is empty";
        return std::any_of(word.begin(), word.end(), is_separator) ? "contains white space" : nullptr;
    }

    static bool is_special(std::string_view word)
    {
        return std::find(special_words.begin(), special_words.end(), word) != special_words.end();
    }

    /// Returns false if the word was already present; it is appended to words_ in any case.
    bool append(std::string word)
    {
        words_.push_back(std::move(word));
        return ids_.emplace(words_.back(), static_cast<word_id>(words_.size() - 1)).second;
    }

    std::vector<std::string> words_;                                       // by id
    std::unordered_map<std::string, word_id, hash, std::equal_to<>> ids_;  // only words of the text
};

}  // namespace heed::inline HEED_TARGET::text
