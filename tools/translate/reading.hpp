// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/stat.h>

#include <heed/core/errors.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/random.hpp>
#include <heed_kit/text/corpus.hpp>
#include <heed_kit/text/id_pairs.hpp>
#include <heed_kit/text/learn_bpe.hpp>
#include <heed_kit/text/pair_shards.hpp>
#include <heed_kit/text/spilled_numbers.hpp>
#include <heed_kit/text/word_table.hpp>
#include <heed_translator/language.hpp>
#include <heed_translator/options.hpp>
#include <heed_translator/raw.hpp>

#include "library.hpp"
#include "progress.hpp"
#include "raw_lines.hpp"
#include "training_pairs.hpp"

/// Reads parallel text for training in one pass, in memory that grows with the number of distinct words but not with
/// the number of lines.
///
/// Each line is stored as the numbers of its distinct words, in order of first occurrence (spilled_numbers). Byte-pair
/// codes and vocabularies are learned from the word counts and map these numbers to those of the vocabulary. Up to
/// --shard pairs stay in memory; longer texts go to shards in a file. Each pair goes to a random shard determined by
/// its position in the text, so that a shard is a random part of the text.
namespace translation {

namespace fs = std::filesystem;

/// An identification of a text file for the stamp of a cache: its size and modification time. Empty unless it is a
/// regular file.
inline std::string stamp_of(const fs::path& path)
{
    struct stat about {};
    if (::stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return "";
    return fmt::format("{} bytes of {}.{:09}", about.st_size, about.st_mtim.tv_sec, about.st_mtim.tv_nsec);
}

/// For raw text, casing and subwords are learned from at most this many lines, evenly spaced.
inline constexpr std::size_t lines_to_learn_raw_from = 250'000;

/// One side of the text.
class text_side {
public:
    /// `folder`: for numbers that do not fit in memory.
    text_side(fs::path path, const fs::path& folder) : path_(std::move(path)), numbers_(folder), tokens_of_(folder) {}

    /// Also stores which tokens of a raw line make up each word. Call before read().
    void keep_words() { keeps_words_ = true; }

    /// Counts the lines before reading, so that both sides can be compared before anything is learned.
    void count_lines()
    {
        std::error_code not_there;
        if (!fs::is_regular_file(path_, not_there)) {
            kept_ = heed::text::read_corpus(path_);  // a pipe can be read only once
            counted_ = kept_->size();
            return;
        }
        std::ifstream stream = heed::text::open_text(path_);
        std::vector<char> some(1 << 16);
        char last = '\n';
        counted_ = 0;
        while (stream.read(some.data(), static_cast<std::streamsize>(some.size())) || stream.gcount() > 0) {
            counted_ += static_cast<std::size_t>(std::count(some.data(), some.data() + stream.gcount(), '\n'));
            last = some[static_cast<std::size_t>(stream.gcount() - 1)];
        }
        if (last != '\n') ++counted_;
    }
    std::size_t counted() const { return counted_; }

    /// Learns the tokenization of raw lines. Call after count_lines().
    void learn_raw(language& side, const options& how)
    {
        side.raw = learn_tokenizer(kept_ ? *kept_ : some_lines(), how);
    }

    /// Reads all lines. `forgiving`: the model accepts raw text with any casing. `seen(share)` is called occasionally.
    void read(const language& side, bool forgiving, const std::function<void(double)>& seen)
    {
        language asked = side;
        asked.forgiving = true;
        const auto add_raw = [&](const sentence& words) {
            const sentence tokens = side.tokens(words);
            add(tokens, forgiving ? asked.tokens(words) : tokens);
            if (keeps_words_) add_words((forgiving ? asked : side).tokens_of_words(words));
        };
        if (kept_) {
            for (const sentence& words : *kept_) add_raw(words);
            kept_.reset();
            return;
        }
        std::ifstream stream = heed::text::open_text(path_);
        heed::text::sentence_reader lines(stream, path_.string());
        std::error_code ignored;
        const auto bytes = fs::is_regular_file(path_, ignored) ? fs::file_size(path_, ignored) : 0;
        std::uint64_t done = 0;
        std::vector<std::uint32_t> line_numbers;
        for (std::string_view line; lines.next_line(line);) {
            done += line.size() + 1;
            if (side.raw) {
                add_raw(heed::text::split(line));
            } else {
                line_numbers.clear();
                std::string_view last;
                heed::text::for_each_word(line, [&](std::string_view word) {
                    line_numbers.push_back(words_.see(word));
                    last = word;
                });
                numbers_.push_back(static_cast<std::uint32_t>(line_numbers.size()));
                for (const std::uint32_t each : line_numbers) numbers_.push_back(each);
                ++lines_;
                ends_.add({std::string(last)}, [](const std::string&) { return false; });
            }
            if (lines.line() % 16384 == 0 && bytes > 0) seen(static_cast<double>(done) / static_cast<double>(bytes));
        }
        if (lines_ == 0) throw heed::error(path_.string() + ": is empty; it must have one sentence per line");
    }

    std::size_t lines() const { return lines_; }
    const fs::path& path() const { return path_; }
    const heed::text::word_table& words() const { return words_; }
    const heed::text::spilled_numbers& numbers() const { return numbers_; }
    const raw_lines& ends() const { return ends_; }
    /// For each line of raw text: the number of words and, for each word, the number of tokens and their positions.
    const heed::text::spilled_numbers& tokens_of() const { return tokens_of_; }

private:
    /// For raw text, the tokens for building vocabularies and the tokens that the model reads.
    void add(const sentence& counted, const sentence& read)
    {
        for (const std::string& each : counted) words_.see(each);
        numbers_.push_back(static_cast<std::uint32_t>(read.size()));
        for (const std::string& each : read) numbers_.push_back(words_.see(each, 0));
        ++lines_;
    }

    /// The last word is the end of the sentence.
    void add_words(const word_tokens& words)
    {
        const auto add = [&](std::size_t number) { tokens_of_.push_back(static_cast<std::uint32_t>(number)); };
        add(words.size() - 1);
        for (std::size_t j = 0; j + 1 < words.size(); ++j) {
            add(words[j].size());
            for (const std::size_t token : words[j]) add(token);
        }
    }

    /// At most lines_to_learn_raw_from of a file.
    std::vector<sentence> some_lines() const
    {
        const double step = std::max(1.0, static_cast<double>(counted_) / static_cast<double>(lines_to_learn_raw_from));
        std::ifstream stream = heed::text::open_text(path_);
        heed::text::sentence_reader lines(stream, path_.string());
        std::vector<sentence> result;
        double next = 0;
        for (std::string_view line; lines.next_line(line);) {
            if (static_cast<double>(lines.line()) <= next) continue;
            result.push_back(heed::text::split(line));
            next += step;
        }
        if (result.empty()) throw heed::error(path_.string() + ": is empty; it must have one sentence per line");
        return result;
    }

    fs::path path_;
    std::optional<std::vector<sentence>> kept_;
    heed::text::word_table words_;
    heed::text::spilled_numbers numbers_;  // for each line: the number of words, and the words
    heed::text::spilled_numbers tokens_of_;
    bool keeps_words_ = false;
    std::size_t lines_ = 0, counted_ = 0;  // lines read; lines counted before
    raw_lines ends_;
};

/// The distinct words of a side as the tokens of a model.
class word_tokens_of {
public:
    /// Splits each word into subwords, if the language does.
    word_tokens_of(const text_side& side, const language& how) : side_(&side)
    {
        if (!how.splitting || how.raw) return;
        begins_.push_back(0);
        for (std::uint32_t word = 0; word < side.words().size(); ++word) {
            for (const std::string& piece : (*how.splitting)({std::string(side.words().word(word))})) {
                const std::uint32_t number = pieces_.see(piece);
                if (number == counts_.size()) counts_.push_back(0);
                counts_[number] += side.words().count(word);
                ids_.push_back(number);
            }
            begins_.push_back(ids_.size());
        }
    }

    /// The number of occurrences of each token.
    void count(std::unordered_map<std::string_view, std::size_t>& counts) const
    {
        const heed::text::word_table& tokens = split() ? pieces_ : side_->words();
        for (std::uint32_t token = 0; token < tokens.size(); ++token)
            counts[tokens.word(token)] += split() ? counts_[token] : tokens.count(token);
    }

    /// Converts tokens to those of this vocabulary.
    void number(const heed::text::vocabulary& by)
    {
        const heed::text::word_table& tokens = split() ? pieces_ : side_->words();
        std::vector<std::uint32_t> known(tokens.size());
        for (std::uint32_t token = 0; token < tokens.size(); ++token) known[token] = by.id(tokens.word(token));
        if (split()) {
            for (std::uint32_t& each : ids_) each = known[each];
        } else {
            ids_ = std::move(known);
        }
    }

    /// Appends the tokens of words.
    void append(const std::vector<std::uint32_t>& words, id_sentence& to) const
    {
        if (!split()) {
            for (const std::uint32_t word : words) to.push_back(ids_[word]);
            return;
        }
        for (const std::uint32_t word : words)
            to.insert(to.end(), ids_.begin() + static_cast<std::ptrdiff_t>(begins_[word]),
                      ids_.begin() + static_cast<std::ptrdiff_t>(begins_[word + 1]));
    }

    /// The positions of the tokens of each of these words in a line.
    word_tokens positions(const std::vector<std::uint32_t>& words) const
    {
        word_tokens result(words.size());
        std::size_t next = 0;
        for (std::size_t j = 0; j < words.size(); ++j) {
            const std::size_t count = split() ? begins_[words[j] + 1] - begins_[words[j]] : 1;
            for (std::size_t i = 0; i < count; ++i) result[j].push_back(next++);
        }
        return result;
    }

private:
    bool split() const { return !begins_.empty(); }

    const text_side* side_;
    heed::text::word_table pieces_;
    std::vector<std::size_t> counts_;  // of subwords, in the text
    std::vector<std::size_t> begins_;  // of the subwords of each word; empty if words are tokens
    std::vector<std::uint32_t> ids_;   // subwords of all words, or the token of each word
};

/// How to read a text.
struct reading_options {
    fs::path source, target;
    fs::path cache;                 // the file of shards
    std::size_t shard = 1'000'000;  // pairs; a longer text is read in shards
    fs::path codes, target_codes;   // byte-pair codes, if given
    fs::path links;                 // between words, for guided alignment, if given
};

/// Parallel text for training.
class training_text {
public:
    explicit training_text(reading_options from) : from_(std::move(from)) {}

    /// Reads the text, or the file of shards from an earlier run. Sets both languages of `file` from its options, and
    /// returns the pairs. Prints its progress.
    training_pairs read(translator_file& file);

private:
    std::string stamp(const options& how) const;
    std::optional<link_lines> read_links() const;
    [[noreturn]] void refuse_shards() const;
    std::optional<training_pairs> cached(translator_file& file, const std::string& stamp) const;
    void read_sides(translator_file& file, text_side& source, text_side& target) const;
    void learn_codes(translator_file& file, const text_side& source, const text_side& target) const;
    void build_vocabularies(translator_file& file, word_tokens_of& source, word_tokens_of& target) const;

    reading_options from_;
};

}  // namespace translation
