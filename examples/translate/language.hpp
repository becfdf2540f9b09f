// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/seq2seq/batch.hpp>
#include <heed/text/bpe.hpp>
#include <heed/text/sentence.hpp>
#include <heed/text/vocabulary.hpp>

namespace translation {

using heed::seq2seq::id_sentence;
using heed::text::sentence;

/// Words into pieces by byte-pair codes.
class splitter {
public:
    explicit splitter(heed::text::bpe_codes codes) : codes_(std::move(codes)), apply_(codes_) {}

    const heed::text::bpe_codes& codes() const { return codes_; }
    sentence operator()(const sentence& words) const { return apply_.apply(std::span<const std::string>(words)); }

private:
    heed::text::bpe_codes codes_;
    mutable heed::text::bpe apply_;  // caches words; this program uses it from one thread
};

/// The positions of the tokens that make up each word.
using word_tokens = std::vector<std::vector<std::size_t>>;

/// A model's output as words.
struct reading {
    sentence words;
    word_tokens tokens;         // of each word
    std::vector<bool> unknown;  // whether one of them is the unknown one
};

/// One language of a translator: converts its text to the ids that a model reads, and back. A model's tokens are words
/// or pieces of words.
struct language {
    heed::text::vocabulary vocabulary;  // of tokens
    std::optional<splitter> splitting;  // without it, words are tokens
    bool backwards = false;             // the model reads from the last token to the first

    heed::text::bpe_codes codes() const { return splitting ? splitting->codes() : heed::text::bpe_codes(); }

    /// A sentence's tokens, in the order of the text.
    sentence tokens(const sentence& words) const { return splitting ? (*splitting)(words) : words; }

    /// The ids that the model reads.
    id_sentence encode(const sentence& words) const
    {
        id_sentence ids = vocabulary.encode(tokens(words));
        if (backwards) std::reverse(ids.begin(), ids.end());
        return ids;
    }
    std::vector<id_sentence> encode(const std::vector<sentence>& text) const
    {
        std::vector<id_sentence> ids;
        ids.reserve(text.size());
        for (const sentence& each : text) ids.push_back(encode(each));
        return ids;
    }

    /// The tokens, in text order, that make up each word; the end of the sentence counts as a word.
    word_tokens tokens_of_words(const sentence& words) const
    {
        word_tokens result;
        std::size_t next = 0;
        for (const std::string& word : words) {
            const std::size_t count = splitting ? tokens({word}).size() : 1;
            result.emplace_back();
            for (std::size_t i = 0; i < count; ++i) result.back().push_back(next++);
        }
        result.push_back({next});
        return result;
    }

    /// The words of the model's output. Pieces are joined as heed::text::undo_bpe does; special words are left out.
    reading read(std::span<const std::uint32_t> ids) const
    {
        using heed::text::vocabulary;
        reading result;
        bool open = false;  // the last word continues
        for (std::size_t i = 0; i < ids.size(); ++i) {
            if (ids[i] == vocabulary::eos) break;
            if (ids[i] == vocabulary::pad || ids[i] == vocabulary::bos) continue;
            std::string_view piece = this->vocabulary.word(ids[i]);
            if (!open) {
                result.words.emplace_back();
                result.tokens.emplace_back();
                result.unknown.push_back(false);
            }
            open = splitting && piece.ends_with(heed::text::bpe_separator);
            if (open) piece.remove_suffix(heed::text::bpe_separator.size());
            result.words.back() += piece;
            result.tokens.back().push_back(i);
            if (ids[i] == vocabulary::unk) result.unknown.back() = true;
        }
        if (!result.words.empty() && result.words.back().empty()) {
            result.words.pop_back();
            result.tokens.pop_back();
            result.unknown.pop_back();
        }
        return result;
    }
    sentence words(std::span<const std::uint32_t> ids) const { return read(ids).words; }

    /// Weights over the positions that the model read, reordered to text order; `depth` numbers per position. The end
    /// of the sentence stays last.
    std::vector<float> as_written(std::vector<float> weights, std::size_t depth = 1) const
    {
        const std::size_t positions = weights.size() / depth;
        for (std::size_t i = 0, j = positions - 2; backwards && positions > 2 && i < j; ++i, --j) {
            const auto at = [&](std::size_t k) { return weights.begin() + static_cast<std::ptrdiff_t>(k * depth); };
            std::swap_ranges(at(i), at(i + 1), at(j));
        }
        return weights;
    }

    friend bool operator==(const language& left, const language& right)
    {
        return left.vocabulary == right.vocabulary && left.codes() == right.codes() &&
               left.splitting.has_value() == right.splitting.has_value() && left.backwards == right.backwards;
    }
};

}  // namespace translation
