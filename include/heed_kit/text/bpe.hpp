// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed/core/utf8.hpp>
#include <heed_kit/text/corpus.hpp>
#include <heed_kit/text/sentence.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <istream>
#include <limits>
#include <queue>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

/// Byte-pair encoding: words as sequences of frequent subwords, so that a small vocabulary covers every word.
///
///     bpe pieces(bpe_codes::read("codes"));
///     pieces.apply(split("a lowest bid"));      // {"a", "low@@", "est", "bid"}
///     undo_bpe(split("a low@@ est bid"));       // {"a", "lowest", "bid"}
///
/// Sennrich, Haddow, Birch: Neural Machine Translation of Rare Words with Subword Units, ACL 2016. Codes, code files
/// and subwords are equal to those of subword-nmt, version 0.2. Learning is in text/learn_bpe.hpp.
namespace heed::inline HEED_TARGET::text {

/// Follows every subword except the last of a word.
inline constexpr std::string_view bpe_separator = "@@";

/// Marks the last symbol of a word during merging: "est</w>" differs from the "est" in "estate".
inline constexpr std::string_view bpe_end_of_word = "</w>";

/// Two symbols that are merged.
struct bpe_merge {
    std::string left, right;

    friend bool operator==(const bpe_merge&, const bpe_merge&) = default;
};

/// The merges in the order in which they were learned. A merge may be listed twice; its first position counts.
class bpe_codes {
public:
    /// No merges: every word is split into characters.
    bpe_codes() = default;

    /// Throws heed::error if a symbol is empty, not UTF-8 or contains white space.
    explicit bpe_codes(std::vector<bpe_merge> merges) : merges_(std::move(merges))
    {
        for (std::size_t i = 0; i < merges_.size(); ++i) {
            for (const std::string& symbol : {merges_[i].left, merges_[i].right}) {
                const bool parts = symbol.empty() || std::any_of(symbol.begin(), symbol.end(), is_separator);
                if (parts || find_invalid_utf8(symbol) || symbol.find('\0') != std::string::npos)
                    throw error("byte-pair codes: merge " + std::to_string(i + 1) + " has the symbol \"" + symbol +
                                "\"; symbols must be UTF-8 without white space, and not empty");
            }
        }
    }

    /// Reads a code file: "#version: 0.2", then a merge "left right" on each line. CRLF, a byte order mark and blank
    /// lines at the end are tolerated. Throws heed::error "name:line: …" (with the column if a byte is wrong).
    static bpe_codes read(std::istream& stream, const std::string& name)
    {
        sentence_reader reader(stream, name, empty_lines::keep);
        sentence words;
        if (!reader.next(words)) throw error(name + ": is empty; " + expected_header());
        if (words.empty() || words[0] != "#version:")
            throw error(reader.where() + ": not a code file: " + expected_header());
        if (words.size() != 2 || words[1] != "0.2")
            throw error(reader.where() + ": codes have version \"" + join(std::span(words).subspan(1)) + "\"; " +
                        expected_header());
        bpe_codes codes;
        std::size_t blank = 0;  // line number of the first trailing blank line
        while (reader.next(words)) {
            if (words.empty()) {
                if (blank == 0) blank = reader.line();
                continue;
            }
            if (blank != 0)
                throw error(name + ":" + std::to_string(blank) + ": a blank line between merges; " + expected_merge());
            if (words.size() != 2)
                throw error(reader.where() + ": " + counted(words.size(), "symbol") + "; " + expected_merge());
            codes.merges_.push_back({std::move(words[0]), std::move(words[1])});
        }
        return codes;
    }

    static bpe_codes read(const std::filesystem::path& path)
    {
        std::ifstream stream = open_text(path);
        return read(stream, path.string());
    }

    /// The inverse of to_text(); errors use `name` as the name of the text.
    static bpe_codes from_text(const std::string& text, const std::string& name = "byte-pair codes")
    {
        std::istringstream stream(text);
        return read(stream, name);
    }

    /// The contents of a code file.
    std::string to_text() const
    {
        std::string text = "#version: 0.2\n";
        for (const bpe_merge& each : merges_) text.append(each.left).append(" ").append(each.right).append("\n");
        return text;
    }

    const std::vector<bpe_merge>& merges() const { return merges_; }
    std::size_t size() const { return merges_.size(); }

    friend bool operator==(const bpe_codes&, const bpe_codes&) = default;

private:
    static std::string expected_header() { return "the first line must be \"#version: 0.2\""; }
    static std::string expected_merge() { return "each line must be two symbols with a space between them"; }

    std::vector<bpe_merge> merges_;
};

/// Splits words into subwords. Caches words, so two threads must not use one object concurrently; copies are
/// independent.
class bpe {
public:
    explicit bpe(const bpe_codes& codes)
    {
        for (std::size_t rank = 0; rank < codes.size(); ++rank) {
            const bpe_merge& each = codes.merges()[rank];
            const std::uint32_t left = number(each.left), right = number(each.right);
            merges_.try_emplace(pair_key(left, right), merge{rank, number(each.left + each.right)});
        }
    }

    /// The subwords of a word, without separators: "lowest" -> {"low", "est"}. Their concatenation is the word.
    ///
    /// Repeatedly applies the applicable merge that was learned first, everywhere from left to right. Time O(n log n)
    /// for n characters. Throws heed::error if the word is not UTF-8.
    std::vector<std::string> pieces(std::string_view word) const
    {
        std::vector<node> nodes;
        for (std::size_t position = 0; position < word.size();) {
            const utf8_character character = utf8_at(word, position);
            if (!character.valid)
                throw error("byte-pair encoding: byte " + std::to_string(position + 1) + " of the word \"" +
                            printable(word) + "\" is not valid UTF-8");
            const std::size_t end = position + character.length;
            std::string symbol(word.substr(position, character.length));
            if (end == word.size()) symbol += bpe_end_of_word;
            const auto found = numbers_.find(symbol);
            nodes.push_back(
                {found == numbers_.end() ? unknown : found->second, position, nodes.size() + 1, nodes.size() - 1});
            position = end;
        }

        using candidate = std::tuple<std::size_t, std::size_t, std::uint64_t>;  // rank, node, pair
        std::priority_queue<candidate, std::vector<candidate>, std::greater<>> waiting;
        const auto consider = [&](std::size_t i) {
            const std::size_t next = nodes[i].next;
            if (next >= nodes.size()) return;
            const std::uint64_t pair = pair_key(nodes[i].symbol, nodes[next].symbol);
            if (const auto found = merges_.find(pair); found != merges_.end())
                waiting.emplace(found->second.rank, i, pair);
        };
        for (std::size_t i = 0; i < nodes.size(); ++i) consider(i);
        std::vector<std::size_t> made;
        while (!waiting.empty()) {
            // Merges that become applicable wait until this merge has been applied everywhere, even if they were
            // learned earlier.
            const std::size_t rank = std::get<0>(waiting.top());
            made.clear();
            for (; !waiting.empty() && std::get<0>(waiting.top()) == rank; waiting.pop()) {
                const auto [same_rank, i, pair] = waiting.top();
                const std::size_t next = nodes[i].next;
                if (next >= nodes.size()) continue;
                if (pair_key(nodes[i].symbol, nodes[next].symbol) != pair) continue;  // no longer present
                nodes[i].symbol = merges_.at(pair).result;
                nodes[i].next = nodes[next].next;
                nodes[next].symbol = gone;
                if (nodes[i].next < nodes.size()) nodes[nodes[i].next].previous = i;
                made.push_back(i);
            }
            for (const std::size_t i : made) {
                if (nodes[i].previous < nodes.size()) consider(nodes[i].previous);
                consider(i);
            }
        }

        std::vector<std::string> result;
        for (std::size_t i = 0; i < nodes.size(); i = nodes[i].next) {
            const std::size_t end = nodes[i].next < nodes.size() ? nodes[nodes[i].next].begin : word.size();
            result.emplace_back(word.substr(nodes[i].begin, end - nodes[i].begin));
        }
        return result;
    }

    /// {"a", "lowest"} -> {"a", "low@@", "est"}: the separator follows every subword except the last of a word.
    ///
    /// undo_bpe() restores all words: a word that ends in "@@" is split before its last character, since its last
    /// subword would otherwise look like an inner one. This differs from subword-nmt.
    sentence apply(std::span<const std::string> words)
    {
        sentence result;
        for (const std::string& word : words) {
            auto known = known_.find(word);
            if (known == known_.end()) {
                if (known_pieces_ >= most_known) {  // bounds the memory for unlimited text
                    known_.clear();
                    known_pieces_ = 0;
                }
                known = known_.emplace(word, marked(word)).first;
                known_pieces_ += known->second.size();
            }
            result.insert(result.end(), known->second.begin(), known->second.end());
        }
        return result;
    }

    std::vector<sentence> apply(std::span<const sentence> corpus)
    {
        std::vector<sentence> result;
        result.reserve(corpus.size());
        for (const sentence& each : corpus) result.push_back(apply(std::span<const std::string>(each)));
        return result;
    }

private:
    struct merge {
        std::size_t rank;
        std::uint32_t result;
    };
    struct node {
        std::uint32_t symbol;
        std::size_t begin, next, previous;  // before the first: SIZE_MAX; after the last: nodes.size()
    };

    static constexpr std::uint32_t gone = std::numeric_limits<std::uint32_t>::max(), unknown = gone - 1;
    static constexpr std::size_t most_known = std::size_t{1} << 20;  // of subwords

    static std::uint64_t pair_key(std::uint32_t left, std::uint32_t right) { return std::uint64_t{left} << 32 | right; }

    std::uint32_t number(const std::string& symbol)
    {
        return numbers_.try_emplace(symbol, static_cast<std::uint32_t>(numbers_.size())).first->second;
    }

    sentence marked(const std::string& word) const
    {
        sentence all = pieces(word);
        if (all.empty()) return all;
        if (std::string& last = all.back(); last.ends_with(bpe_separator)) {
            all.emplace_back(1, last.back());
            all[all.size() - 2].pop_back();
        }
        for (std::size_t i = 0; i + 1 < all.size(); ++i) all[i] += bpe_separator;
        return all;
    }

    std::unordered_map<std::string, std::uint32_t> numbers_;  // of symbols
    std::unordered_map<std::uint64_t, merge> merges_;         // by the ids of left and right
    std::unordered_map<std::string, sentence> known_;         // cache of split words
    std::size_t known_pieces_ = 0;                            // characters of all cached words
};

/// {"a", "low@@", "est"} -> {"a", "lowest"}. A separator after the very last subword, where a translation breaks off,
/// is dropped, and so is a word that consists only of a separator.
inline sentence undo_bpe(std::span<const std::string> pieces)
{
    sentence words;
    bool open = false;  // the word continues
    for (const std::string& each : pieces) {
        const bool more = each.ends_with(bpe_separator);
        const std::string_view text = std::string_view(each).substr(0, each.size() - (more ? bpe_separator.size() : 0));
        if (open)
            words.back() += text;
        else
            words.emplace_back(text);
        open = more;
    }
    if (!words.empty() && words.back().empty()) words.pop_back();
    return words;
}

}  // namespace heed::inline HEED_TARGET::text
