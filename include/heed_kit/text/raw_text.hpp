// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed_kit/text/casing.hpp>
#include <heed_kit/text/sentence_pieces.hpp>
#include <heed_kit/text/tokenizer.hpp>
#include <heed_kit/text/unicode.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

/// Converts raw text to tokens for a model, and back. One object contains all required data and can be stored in a
/// model file.
///
///     const auto english = raw_text::learn(lines);
///     english.read("A man is sleeping.").tokens;        // {"▁a", "▁man", "▁is", "▁sleep", "ing", "￭."}
///     english.read("A man is sleeping.").words;         // {"A", "man", "is", "sleeping", "."}
///     const auto line = english.write(tokens);
///     spaced(line.words, line.joined);                  // "A man is sleeping."
///
/// A line is normalized and split into words and symbols by the rules of Unicode (text/unicode.hpp); the first word of
/// a sentence gets its usual case (text/casing.hpp); words are split into learned subwords (text/sentence_pieces.hpp);
/// marks encode the spaces (text/tokenizer.hpp). write() restores exactly the normalized line.
namespace heed::inline HEED_TARGET::text {

/// Options of the tokenization.
struct raw_text_options {
    std::size_t pieces = 4000;  // maximum number of subwords; the characters may require more
    std::string kind = "bpe";   // or "unigram"
    bool casing = true;         // otherwise "The" and "the" are two words

    friend bool operator==(const raw_text_options&, const raw_text_options&) = default;
};

/// A tokenizer of raw text, learned from text. Copies share the subwords; safe to use from several threads.
class raw_text final : public tokenizer {
public:
    /// Learns from lines of one language. Throws heed::error if they have no words.
    static raw_text learn(std::span<const std::string> lines, const raw_text_options& how = {})
    {
        std::vector<sentence> words;
        words.reserve(lines.size());
        for (const std::string& line : lines) words.push_back(words_of(normalize(line)));
        usual_casing usual = how.casing ? usual_casing::learn(words) : usual_casing();
        std::map<std::string, std::size_t> counts;
        for (const sentence& line : words) {
            sentence_starts starts;
            for (const std::string& word : line) {
                const bool start = starts(word);
                if (is_word(word)) ++counts[start ? at_start(usual, word).first : word];
            }
        }
        std::set<char32_t> characters;
        for (const auto& [word, count] : counts) {
            for (std::size_t at = 0; at < word.size();) {
                const utf8_character one = utf8_at(word, at);
                characters.insert(one.code);
                at += one.length;
            }
        }
        const std::size_t least = characters.size() + 10;
        return {sentence_pieces::learn(counts, std::max(how.pieces, least), how.kind), how.casing, std::move(usual)};
    }

    raw_text(sentence_pieces pieces, bool casing, usual_casing usual = {})
        : pieces_(std::move(pieces)), casing_(casing), usual_(std::move(usual))
    {}

    tokenized_line read(std::string_view line) const override { return tokenize(normalize(line), false); }

    tokenized_line read_forgiving(std::string_view line) const override { return tokenize(normalize(line), true); }

    written_line write(std::span<const std::string> tokens) const override
    {
        sentence_starts starts;
        return write_tokens(tokens, [&](const std::string& word, bool small) {
            return starts(word) && usual_.capitals() && !small ? title_case(word) : word;
        });
    }

    std::string shout(std::string_view line) const override { return upper_case(line); }

    /// The subwords.
    const sentence_pieces& pieces() const { return pieces_; }
    /// The usual casing of words.
    const usual_casing& casing() const { return usual_; }

    /// The settings, the usual casing, a blank line, the subwords.
    std::string to_text() const override
    {
        std::string text = std::string(format) + '\n';
        text += casing_ ? "casing of words\n" : "casing as it is\n";
        text += usual_.capitals() ? "sentences begin with a capital\n" : "sentences begin as they do\n";
        for (const auto& [lower, word] : usual_.forms()) text.append(word).append("\n");
        return text + '\n' + pieces_.to_text();
    }

    /// The inverse. Throws heed::error for invalid text.
    static raw_text from_text(std::string_view text)
    {
        const auto line = [&text]() -> std::string_view {
            if (text.empty()) throw error("raw text: its description ends too early");
            const std::size_t end = std::min(text.find('\n'), text.size());
            const std::string_view one = text.substr(0, end);
            text.remove_prefix(std::min(end + 1, text.size()));
            return one;
        };
        const auto either = [&line](std::string_view yes, std::string_view no) {
            const std::string_view found = line();
            if (found != yes && found != no)
                throw error("raw text: its description has \"" + printable(found.substr(0, 60)) + "\"; it must be \"" +
                            std::string(yes) + "\" or \"" + std::string(no) + "\"");
            return found == yes;
        };
        if (const std::string_view found = line(); found != format)
            throw error("raw text: its description begins with \"" + printable(found.substr(0, 60)) +
                        "\"; this program reads \"" + std::string(format) + "\"");
        const bool casing = either("casing of words", "casing as it is");
        const bool capitals = either("sentences begin with a capital", "sentences begin as they do");
        sentence usual;
        for (std::string_view one = line(); !one.empty(); one = line()) usual.emplace_back(one);
        for (const std::string& word : usual)
            if (find_invalid_utf8(word))
                throw error("raw text: \"" + printable(word) + "\" in its description is not UTF-8");
        return {sentence_pieces::from_text(text), casing, usual_casing(capitals, usual)};
    }

    friend bool operator==(const raw_text& left, const raw_text& right)
    {
        return left.pieces_ == right.pieces_ && left.casing_ == right.casing_ && left.usual_ == right.usual_;
    }

private:
    static constexpr std::string_view format = "heed.raw_text/1";

    /// Longer words are split into parts of this many bytes, since SentencePiece's time may grow quadratically with the
    /// length of a word.
    static constexpr std::size_t longest_word = 400;

    static sentence words_of(const std::string& text)
    {
        sentence words;
        for (const segment& each : segments(text)) words.push_back(text.substr(each.begin, each.end - each.begin));
        return words;
    }

    /// A word at the beginning of a sentence in its usual form, and whether it requires "↓", because it would be
    /// another word with a capital.
    static std::pair<std::string, bool> at_start(const usual_casing& usual, const std::string& word)
    {
        if (!usual.capitals()) return {word, false};
        if (std::optional<std::string> form = usual.of(word); form && title_case(*form) == word)
            return {std::move(*form), false};
        return {word, title_case(word) != word};
    }

    /// A word of a text to be translated. `start`: it begins a sentence. `silent`: its casing is uninformative.
    std::string forgiven(const std::string& word, bool start, bool silent) const
    {
        const std::string usual = usual_.of(word).value_or(lower_case(word));
        if (silent) return usual;
        std::string written = start ? at_start(usual_, word).first : word;
        const bool odd = usual != written && split(usual).size() < split(written).size();
        return odd ? usual : written;
    }

    tokenized_line tokenize(const std::string& text, bool forgiving) const
    {
        tokenized_line line;
        const std::vector<segment> all = segments(text);
        for (const segment& each : all) {
            line.words.push_back(text.substr(each.begin, each.end - each.begin));
            line.spans.emplace_back(each.begin, each.end);
        }
        forgiving = forgiving && casing_;
        bool silent = false;
        if (forgiving) {
            const letter_counts letters = count_letters(line.words);
            line.shouted = letters.lower == 0 && letters.words_in_capitals >= 2;
            silent = line.shouted || (letters.upper == 0 && usual_.capitals());
        }
        sentence_starts starts;
        for (std::size_t i = 0; i < all.size(); ++i) {
            const std::string& word = line.words[i];
            const bool apart = i == 0 || all[i].begin > all[i - 1].end;
            const std::size_t begin = line.tokens.size();
            const bool start = starts(word);
            if (all[i].word) {
                if (!apart && all[i - 1].word) line.tokens.emplace_back(joint);
                std::string form = word;
                bool small = false;
                if (forgiving)
                    form = forgiven(word, start, silent);
                else if (start)
                    std::tie(form, small) = at_start(usual_, word);
                if (small) line.tokens.emplace_back(small_mark);
                for (std::string& piece : split(form)) line.tokens.push_back(std::move(piece));
            } else {
                std::string& symbol = line.tokens.emplace_back(apart ? word_start : joint);
                symbol += word;
                const bool joins = i + 1 < all.size() && all[i + 1].word && all[i + 1].begin == all[i].end;
                if (joins) symbol += joint;
            }
            std::vector<std::size_t>& here = line.tokens_of.emplace_back();
            for (std::size_t k = begin; k < line.tokens.size(); ++k) here.push_back(k);
        }
        return line;
    }

    sentence split(const std::string& word) const
    {
        if (word.size() <= longest_word) return pieces_.split(word);
        sentence all;
        for (std::size_t begin = 0; begin < word.size();) {
            std::size_t end = std::min(begin + longest_word, word.size());
            while (end < word.size() && (static_cast<unsigned char>(word[end]) & 0xC0u) == 0x80u) ++end;
            sentence part = pieces_.split(word.substr(begin, end - begin));
            if (begin > 0) {  // a continuation, so without "▁"
                part.front().erase(0, word_start.size());
                if (part.front().empty()) part.erase(part.begin());
            }
            for (std::string& each : part) all.push_back(std::move(each));
            begin = end;
        }
        return all;
    }

    sentence_pieces pieces_;
    bool casing_;
    usual_casing usual_;
};

}  // namespace heed::inline HEED_TARGET::text
