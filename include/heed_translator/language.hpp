// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/seq2seq/batch.hpp>
#include <heed_kit/metrics/tokenize_13a.hpp>
#include <heed_kit/text/bpe.hpp>
#include <heed_kit/text/sentence.hpp>
#include <heed_kit/text/tokenizer.hpp>
#include <heed_kit/text/vocabulary.hpp>

namespace heed::translator {

using heed::seq2seq::id_sentence;
using heed::text::sentence;

/// Splits words into subwords by byte-pair codes. Several threads may split concurrently; copies share a cache.
class splitter {
public:
    explicit splitter(heed::text::bpe_codes codes) : shared_(std::make_shared<shared>(std::move(codes))) {}

    const heed::text::bpe_codes& codes() const { return shared_->codes; }
    sentence operator()(const sentence& words) const
    {
        const std::lock_guard one_at_a_time(shared_->mutex);
        return shared_->apply.apply(std::span<const std::string>(words));
    }

private:
    struct shared {
        explicit shared(heed::text::bpe_codes from) : codes(std::move(from)), apply(codes) {}

        heed::text::bpe_codes codes;
        heed::text::bpe apply;  // caches words
        std::mutex mutex;
    };
    std::shared_ptr<shared> shared_;
};

/// The positions of the tokens that make up each word.
using word_tokens = std::vector<std::vector<std::size_t>>;

/// The output of a model as words.
struct reading {
    sentence words;
    word_tokens tokens;         // tokens per word
    std::vector<bool> unknown;  // whether a token of the word is unknown
    std::vector<bool> joined;   // raw text: no space before the word

    /// The words joined into text; raw text is detokenized.
    std::string text() const { return heed::text::spaced(words, joined); }
};

/// One language of a translator: converts text to the ids of a model, and back. The tokens of a model are words or
/// subwords. Input is split at spaces or, with `raw`, is a line, whose words are returned by shown().
struct language {
    heed::text::vocabulary vocabulary;                           // of tokens
    std::optional<splitter> splitting;                           // if missing, words are tokens
    std::shared_ptr<const heed::text::tokenizer> raw = nullptr;  // for raw text
    bool forgiving = false;  // raw text with any casing is accepted: it is a source language

    /// Whether tokens may be subwords.
    bool in_pieces() const { return splitting || raw; }

    /// The byte-pair codes; empty if words are tokens.
    heed::text::bpe_codes codes() const { return splitting ? splitting->codes() : heed::text::bpe_codes(); }

    /// A line of text split at spaces.
    sentence split(std::string_view line) const { return heed::text::split(line); }

    /// The tokens of a sentence, in text order.
    sentence tokens(const sentence& words) const
    {
        return raw ? line(words).tokens : splitting ? (*splitting)(words) : words;
    }

    /// The words of a sentence; in raw text, symbols are separate words.
    sentence shown(const sentence& words) const { return raw ? line(words).words : words; }

    /// Whether a line of raw text is all capitals, so that its translation is written in capitals.
    bool shouted(const sentence& words) const { return raw && line(words).shouted; }

    /// The ids that the model reads, in text order, independent of the direction of the encoder.
    id_sentence encode(const sentence& words) const { return vocabulary.encode(tokens(words)); }
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
        if (raw) {
            const heed::text::tokenized_line all = line(words);
            word_tokens result = all.tokens_of;
            result.push_back({all.tokens.size()});
            return result;
        }
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

    /// The words of the model's output. Subwords are joined as by heed::text::undo_bpe; special words are omitted.
    reading read(std::span<const std::uint32_t> ids) const
    {
        using heed::text::vocabulary;
        if (raw) return read_raw(ids);
        reading result;
        bool open = false;  // the word continues
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

    /// The words in capitals.
    void shout(reading& read) const
    {
        for (std::string& word : read.words) word = raw ? raw->shout(word) : word;
    }

    /// The tokens for BLEU: words or, for raw text, the tokens of mteval's tokenizer 13a.
    sentence scored(const reading& read) const { return raw ? heed::metrics::tokenize_13a(read.text()) : read.words; }
    sentence scored(const sentence& words) const
    {
        return raw ? heed::metrics::tokenize_13a(heed::text::join(words)) : words;
    }

    friend bool operator==(const language& left, const language& right)
    {
        return left.vocabulary == right.vocabulary && left.codes() == right.codes() &&
               left.splitting.has_value() == right.splitting.has_value() && left.same_raw(right);
    }

    /// Whether both tokenize raw text in the same way, or neither is for raw text.
    bool same_raw(const language& other) const
    {
        return raw == other.raw || (raw && other.raw && raw->to_text() == other.raw->to_text());
    }

private:
    heed::text::tokenized_line line(const sentence& words) const
    {
        const std::string text = heed::text::join(words);
        return forgiving ? raw->read_forgiving(text) : raw->read(text);
    }

    reading read_raw(std::span<const std::uint32_t> ids) const
    {
        using heed::text::vocabulary;
        sentence tokens;
        std::vector<std::size_t> places;
        for (std::size_t i = 0; i < ids.size() && ids[i] != vocabulary::eos; ++i) {
            if (ids[i] == vocabulary::pad || ids[i] == vocabulary::bos) continue;
            tokens.push_back((ids[i] == vocabulary::unk ? std::string(heed::text::word_start) : std::string()) +
                             this->vocabulary.word(ids[i]));
            places.push_back(i);
        }
        heed::text::written_line written = raw->write(tokens);
        reading result{std::move(written.words), std::move(written.tokens_of), {}, std::move(written.joined)};
        for (auto& positions : result.tokens) {
            for (std::size_t& each : positions) each = places[each];
            result.unknown.push_back(std::any_of(positions.begin(), positions.end(),
                                                 [&](std::size_t i) { return ids[i] == vocabulary::unk; }));
        }
        return result;
    }
};

}  // namespace heed::translator
