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

/// Tokens of raw text, from which the text can be written again, to the byte.
///
/// A line is cut into words and symbols (punctuation). Tokens say where spaces were, so that they need no rules of any
/// language:
///
///     "▁sleep" "ing"   a word, in pieces; words are apart unless something says otherwise
///     "￭."             a symbol without a space before it
///     "▁–"             a symbol with one
///     "▁(￭"            a symbol that the following word is joined to
///     "￭"              two words without a space between them
///     "↓"              the next word begins a sentence without a capital
///
/// A word that begins a sentence is written as it is elsewhere: "The man (30)." becomes ▁the ▁man ▁(￭ ▁30 ￭) ￭. The
/// marks of joints are those of OpenNMT's tokenizer (Klein et al., OpenNMT: Open-Source Toolkit for Neural Machine
/// Translation, ACL 2017), ▁ is SentencePiece's.
namespace heed::inline HEED_TARGET::text {

/// The marks of tokens, as above.
inline constexpr std::string_view word_start = "▁", joint = "￭", small_mark = "↓";

/// A line of text as tokens.
struct tokenized_line {
    sentence tokens;
    sentence words;                                          // with symbols as words of their own, as written
    std::vector<std::pair<std::size_t, std::size_t>> spans;  // of each word: its bytes in the normalized line
    std::vector<std::vector<std::size_t>> tokens_of;         // of each word: their positions
    bool shouted = false;                                    // the line was all capitals, but its tokens are not
};

/// Tokens as text again.
struct written_line {
    sentence words;
    std::vector<std::vector<std::size_t>> tokens_of;  // of each word: their positions
    std::vector<bool> joined;                         // of each word: no space before it
};

/// The text of words, with a space before each that is not `joined` to the one before it.
inline std::string spaced(std::span<const std::string> words, const std::vector<bool>& joined)
{
    std::string text;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (i > 0 && !(i < joined.size() && joined[i])) text += ' ';
        text += words[i];
    }
    return text;
}

/// What turns lines into tokens and back. A tokenizer may be used by several threads at once.
class tokenizer {
public:
    virtual ~tokenizer() = default;

    /// A line's tokens. Throws heed::error for what is not UTF-8.
    virtual tokenized_line read(std::string_view line) const = 0;

    /// The same for text to be translated: words in capitals, and words without them where all others have some, are
    /// read as they are usually written.
    virtual tokenized_line read_forgiving(std::string_view line) const = 0;

    /// The words of tokens. spaced() of the words of read(line).tokens is the normalized line.
    virtual written_line write(std::span<const std::string> tokens) const = 0;

    /// The line in capitals.
    virtual std::string shout(std::string_view line) const = 0;

    /// What from_text() of the class makes the same tokenizer of.
    virtual std::string to_text() const = 0;
};

/// The words of tokens, each as `written(word, small)` makes it, which is called once for each in order; `small`: after
/// "↓". Any tokens will do, also a model's that no text has.
inline written_line write_tokens(std::span<const std::string> tokens, auto&& written)
{
    written_line line;
    std::vector<std::size_t> waiting;  // positions of marks, which belong to the next word
    bool small = false, next = false;  // of the last word, of the one to come
    bool join = false;                 // the one to come has no space before it
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        std::string_view token = tokens[i];
        waiting.push_back(i);
        if (token == small_mark) next = true;
        if (token == joint) join = true;
        if (token == small_mark || token == joint) continue;
        const bool begins = token.starts_with(word_start), joined = !begins && token.starts_with(joint);
        if (!begins && !joined && !line.words.empty()) {  // goes on
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
    for (const std::size_t each : waiting) line.tokens_of.back().push_back(each);  // marks that nothing follows
    return line;
}

}  // namespace heed::inline HEED_TARGET::text
