// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed_kit/text/sentence.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/core/cxx20.hpp>

/// Tokens of raw text, from which the text can be restored to the byte.
///
/// A line is split into words and symbols (punctuation). Tokens encode spaces, so that no language-specific rules are
/// required:
///
///     "▁sleep" "ing"   a word, in subwords; words are separated unless marked otherwise
///     "￭."             a symbol without a space before it
///     "▁–"             a symbol after a space
///     "▁(￭"            a symbol joined to the following word
///     "￭"              two words without a space between them
///     "↓"              the next word begins a sentence without a capital
///
/// The first word of a sentence has its usual case: "The man (30)." becomes ▁the ▁man ▁(￭ ▁30 ￭) ￭. The marks of joints
/// are those of OpenNMT's tokenizer (Klein et al., OpenNMT: Open-Source Toolkit for Neural Machine Translation, ACL
/// 2017), ▁ is SentencePiece's.
namespace heed::inline HEED_TARGET::text {

/// The marks of tokens, as above.
inline constexpr std::string_view word_start = "▁", joint = "￭", small_mark = "↓";

/// A line of text as tokens.
struct tokenized_line {
    sentence tokens;
    sentence words;                                          // words and separate symbols, as written
    std::vector<std::pair<std::size_t, std::size_t>> spans;  // for each word: its bytes in the normalized line
    std::vector<std::vector<std::size_t>> tokens_of;         // for each word: the positions of its tokens
    bool shouted = false;                                    // the line was all capitals, but its tokens are not
};

/// Tokens converted to words.
struct written_line {
    sentence words;
    std::vector<std::vector<std::size_t>> tokens_of;  // for each word: the positions of its tokens
    std::vector<bool> joined;                         // for each word: no space before it
};

/// The text of words, with a space before each word that is not `joined` to the previous one.
inline std::string spaced(std::span<const std::string> words, const std::vector<bool>& joined)
{
    std::string text;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (i > 0 && !(i < joined.size() && joined[i])) text += ' ';
        text += words[i];
    }
    return text;
}

/// Converts lines to tokens and back. Several threads may use a tokenizer concurrently.
class tokenizer {
public:
    virtual ~tokenizer() = default;

    /// The tokens of a line. Throws heed::error for invalid UTF-8.
    virtual tokenized_line read(std::string_view line) const = 0;

    /// As above for text to be translated: words in capitals, and words without capitals in lines where all other words
    /// have them, are converted to their usual form.
    virtual tokenized_line read_forgiving(std::string_view line) const = 0;

    /// The words of tokens. spaced() of the words of read(line).tokens is the normalized line.
    virtual written_line write(std::span<const std::string> tokens) const = 0;

    /// The line in capitals.
    virtual std::string shout(std::string_view line) const = 0;

    /// The serialized tokenizer, which from_text() of the class restores.
    virtual std::string to_text() const = 0;
};

/// The words of tokens. `written(word, small)`, called once for each word in order, returns its final form; `small`:
/// after "↓". Accepts any tokens, including model output that is not valid text.
inline written_line write_tokens(std::span<const std::string> tokens, auto&& written)
{
    written_line line;
    std::vector<std::size_t> waiting;  // positions of marks, which belong to the next word
    bool small = false, next = false;  // of the previous word, and of the next word
    bool join = false;                 // the next word has no space before it
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        std::string_view token = tokens[i];
        waiting.push_back(i);
        if (token == small_mark) next = true;
        if (token == joint) join = true;
        if (token == small_mark || token == joint) continue;
        const bool begins = token.starts_with(word_start), joined = !begins && token.starts_with(joint);
        if (!begins && !joined && !line.words.empty()) {  // continues
            line.words.back() += token;
        } else {
            if (!line.words.empty()) line.words.back() = written(line.words.back(), small);
            if (begins) token.remove_prefix(word_start.size());
            if (joined) token.remove_prefix(joint.size());
            const bool joins = token.size() > joint.size() && token.ends_with(joint);
            if (joins) token.remove_suffix(joint.size());
            line.words.emplace_back(token);
            line.tokens_of.emplace_back();
            line.joined.push_back(joined || join || line.words.size() == 1);
            small = std::exchange(next, false);
            join = joins;
        }
        for (const std::size_t each : waiting) line.tokens_of.back().push_back(each);
        waiting.clear();
    }
    if (line.words.empty()) return line;
    line.words.back() = written(line.words.back(), small);
    for (const std::size_t each : waiting) line.tokens_of.back().push_back(each);  // trailing marks
    return line;
}

}  // namespace heed::inline HEED_TARGET::text
