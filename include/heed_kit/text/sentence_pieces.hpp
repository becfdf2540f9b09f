// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed/core/utf8.hpp>
#include <heed_kit/text/sentence.hpp>

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

/// Subwords by SentencePiece (Debian: libsentencepiece-dev).
///
///     const auto pieces = sentence_pieces::learn({{"sleep", 7}, {"sleeping", 3}, …}, 4000);
///     pieces.split("sleeping");      // {"▁sleep", "ing"}
///
/// Kudo, Richardson: SentencePiece, EMNLP 2018; "unigram": Kudo, Subword Regularization, ACL 2018, without its
/// sampling; "bpe": Sennrich et al. 2016.
///
/// Text is split into words beforehand (text/raw_text.hpp), so that no subword crosses a word boundary, and
/// SentencePiece's normalization is off. Programs that include this header must link sentencepiece and
/// sentencepiece_train; with CMake, heed::raw_text.
namespace heed::inline HEED_TARGET::text {

/// Splits words into learned subwords. Copies share the learned data; safe to use from several threads.
class sentence_pieces {
public:
    struct piece {
        std::string text;
        float score;

        friend bool operator==(const piece&, const piece&) = default;
    };

    /// Learns at most `count` subwords, including single characters, from words and their counts. The result depends
    /// only on these: one thread, no randomness. Throws heed::error if there are no words, if the characters require
    /// more than `count`, or if `kind` is neither "unigram" nor "bpe".
    static sentence_pieces learn(const std::map<std::string, std::size_t>& words, std::size_t count,
                                 const std::string& kind = "bpe")
    {
        if (words.empty()) throw error("subwords: no words to learn from; at least one is required");
        require_kind(kind);
        counted_words each(words);
        std::string learned;
        const auto status = sentencepiece::SentencePieceTrainer::Train(
            std::unordered_map<std::string, std::string>{{"input_format", "tsv"},
                                                         {"model_type", kind},
                                                         {"vocab_size", std::to_string(count)},
                                                         {"hard_vocab_limit", "false"},
                                                         {"character_coverage", "0.9999"},
                                                         {"normalization_rule_name", "identity"},
                                                         {"split_by_unicode_script", "false"},
                                                         {"num_threads", "1"},
                                                         {"max_sentence_length", "1000000"},
                                                         {"bos_id", "-1"},
                                                         {"eos_id", "-1"},
                                                         {"minloglevel", "3"}},
            &each, &learned);
        if (!status.ok())
            throw error("subwords: SentencePiece cannot learn " + counted(count, "subword") + " from " +
                        counted(words.size(), "word") + ": " + status.error_message());
        sentencepiece::SentencePieceProcessor processor;
        if (const auto loaded = processor.LoadFromSerializedProto(learned); !loaded.ok())
            throw error(std::string("subwords: SentencePiece cannot read the learned model: ") +
                        loaded.error_message());
        std::vector<piece> list;
        for (int id = 0; id < processor.GetPieceSize(); ++id)
            if (!processor.IsUnknown(id)) list.push_back({processor.IdToPiece(id), processor.GetScore(id)});
        return sentence_pieces(kind, std::move(list));
    }

    /// Known subwords. Throws heed::error if one is empty, listed twice, not UTF-8 or contains white space, or if a
    /// score is not finite.
    sentence_pieces(std::string kind, std::vector<piece> list) : kind_(std::move(kind)), list_(std::move(list))
    {
        require_kind(kind_);
        if (list_.empty()) throw error("subwords: the list is empty");
        std::set<std::string_view> seen;
        for (const piece& each : list_) {
            const auto refuse = [&](const char* why) {
                throw error("subwords: \"" + printable(each.text) + "\" " + why);
            };
            if (each.text.empty()) refuse("is empty");
            if (each.text.size() > 4096) refuse("is too long");
            if (find_invalid_utf8(each.text)) refuse("is not UTF-8");
            for (const char byte : each.text)
                if (is_separator(byte) || byte == '\0') refuse("contains white space");
            if (each.text == unknown) refuse("is not a subword");
            if (!std::isfinite(each.score)) refuse("has a score that is not finite");
            if (!seen.insert(each.text).second) refuse("is listed twice");
        }
        processor_ = std::make_shared<sentencepiece::SentencePieceProcessor>();
        if (const auto status = processor_->LoadFromSerializedProto(model()); !status.ok())
            throw error(std::string("subwords: SentencePiece rejects the list: ") + status.error_message());
    }

    /// "unigram" or "bpe".
    const std::string& kind() const { return kind_; }
    /// The subwords, in SentencePiece's order.
    const std::vector<piece>& list() const { return list_; }

    /// The subwords of a word; the first begins with "▁", and their concatenation is "▁" and the word. A character that
    /// is in no subword is a separate subword, together with adjacent characters of this kind. Throws heed::error if
    /// SentencePiece rejects the word.
    sentence split(const std::string& word) const
    {
        sentence pieces;
        if (const auto status = processor_->Encode(word, &pieces); !status.ok())
            throw error("subwords of the word \"" + printable(word) + "\": " + status.error_message());
        return pieces;
    }

    /// The kind, then a line "subword score" for each; from_text() is the inverse and checks as the constructor does.
    std::string to_text() const
    {
        std::string text = kind_ + '\n';
        for (const piece& each : list_) {
            char digits[32];
            const auto end = std::to_chars(digits, digits + sizeof digits, each.score).ptr;
            text.append(each.text).append(" ").append(digits, end).append("\n");
        }
        return text;
    }

    /// Subwords from the lines of to_text(). Throws heed::error for other text.
    static sentence_pieces from_text(std::string_view text)
    {
        std::string kind;
        std::vector<piece> list;
        for (std::size_t begin = 0, number = 0; begin < text.size(); ++number) {
            const std::size_t end = std::min(text.find('\n', begin), text.size());
            const std::string_view line = text.substr(begin, end - begin);
            begin = end + 1;
            if (number == 0) {
                kind = line;
                continue;
            }
            const std::size_t space = line.find(' ');
            float score = 0;
            const char* const stop = line.data() + line.size();
            const auto read =
                std::from_chars(line.data() + (space == line.npos ? line.size() : space + 1), stop, score);
            if (space == line.npos || read.ec != std::errc{} || read.ptr != stop)
                throw error("subwords: line " + std::to_string(number + 1) + " is \"" + printable(line) +
                            "\"; expected a subword and its score");
            list.push_back({std::string(line.substr(0, space)), score});
        }
        return sentence_pieces(std::move(kind), std::move(list));
    }

    friend bool operator==(const sentence_pieces& left, const sentence_pieces& right)
    {
        return left.kind_ == right.kind_ && left.list_ == right.list_;
    }

private:
    static constexpr std::string_view unknown = "<unk>";

    static void require_kind(const std::string& kind)
    {
        if (kind != "unigram" && kind != "bpe")
            throw error("subwords: there is no kind \"" + printable(kind) + "\"; choose unigram or bpe");
    }

    /// Words in the format of the trainer: "word<TAB>count".
    class counted_words : public sentencepiece::SentenceIterator {
    public:
        explicit counted_words(const std::map<std::string, std::size_t>& words) : at_(words.begin()), end_(words.end())
        {
            write();
        }
        bool done() const override { return at_ == end_; }
        void Next() override
        {
            ++at_;
            write();
        }
        const std::string& value() const override { return line_; }
        sentencepiece::util::Status status() const override { return {}; }

    private:
        void write()
        {
            if (at_ != end_) line_ = at_->first + '\t' + std::to_string(at_->second);
        }

        std::map<std::string, std::size_t>::const_iterator at_, end_;
        std::string line_;
    };

    // SentencePiece trusts the tables of its models, so models are never read from a file: a model is serialized here
    // from checked data. The format is protobuf: fields of a number and a kind, 0 for a number, 2 for bytes after their
    // count, 5 for four bytes.   sentencepiece_model.proto
    static void put_number(std::string& to, std::uint64_t value)
    {
        for (; value >= 0x80; value >>= 7) to += static_cast<char>((value & 0x7F) | 0x80);
        to += static_cast<char>(value);
    }
    static void put_bytes(std::string& to, int field, std::string_view bytes)
    {
        put_number(to, static_cast<std::uint64_t>(field) << 3 | 2);
        put_number(to, bytes.size());
        to += bytes;
    }
    static void put_piece(std::string& to, std::string_view text, float score, std::uint64_t type)
    {
        std::string one;
        put_bytes(one, 1, text);
        put_number(one, 2 << 3 | 5);
        for (std::uint32_t bits = std::bit_cast<std::uint32_t>(score), i = 0; i < 4; ++i, bits >>= 8)
            one += static_cast<char>(bits & 0xFF);
        put_number(one, 3 << 3 | 0);
        put_number(one, type);
        put_bytes(to, 1, one);
    }
    std::string model() const
    {
        constexpr std::uint64_t normal = 1, unknown_type = 2;
        std::string all, training, normalizing;
        put_piece(all, unknown, 0, unknown_type);
        for (const piece& each : list_) put_piece(all, each.text, each.score, normal);
        put_number(training, 3 << 3 | 0);  // model_type
        put_number(training, kind_ == "unigram" ? 1 : 2);
        put_bytes(all, 2, training);
        put_bytes(normalizing, 1, "identity");
        put_bytes(all, 3, normalizing);
        return all;
    }

    std::string kind_;
    std::vector<piece> list_;
    std::shared_ptr<sentencepiece::SentencePieceProcessor> processor_;
};

}  // namespace heed::inline HEED_TARGET::text
