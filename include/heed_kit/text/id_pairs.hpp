// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed/core/random.hpp>
#include <heed_kit/text/vocabulary.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace heed::inline HEED_TARGET::text {

/// Sentences as word ids, stored consecutively: 2 bytes per word if the vocabulary has at most 65,536 words, otherwise
/// 4, and 4 bytes per sentence.
class id_lines {
public:
    explicit id_lines(std::uint64_t vocabulary = vocabulary::unlimited) : wide_(bytes_for(vocabulary) == 4) {}

    /// The number of bytes per word id.
    static std::size_t bytes_for(std::uint64_t vocabulary) { return vocabulary <= 65536 ? 2 : 4; }

    std::size_t size() const { return ends_.size(); }
    /// The number of words of a sentence.
    std::size_t words(std::size_t i) const { return ends_[i] - begin(i); }
    /// The total number of words.
    std::size_t words() const { return ends_.empty() ? 0 : ends_.back(); }

    std::vector<word_id> operator[](std::size_t i) const
    {
        if (wide_) return {wide_ids_.begin() + at(begin(i)), wide_ids_.begin() + at(ends_[i])};
        return {narrow_ids_.begin() + at(begin(i)), narrow_ids_.begin() + at(ends_[i])};
    }

    /// Appends a sentence. Throws heed::error if the total number of words exceeds 32 bits.
    void add(std::span<const word_id> ids)
    {
        if (ids.size() > std::numeric_limits<std::uint32_t>::max() - words())
            throw error("sentences as numbers: more than 2^32 words in total; read the text in smaller shards");
        for (const word_id id : ids) wide_ ? wide_ids_.push_back(id) : narrow_ids_.push_back(narrow(id));
        ends_.push_back(static_cast<std::uint32_t>(words() + ids.size()));
    }

    /// The bytes of the sentence ends in a file.
    std::span<std::byte> ends_bytes() { return std::as_writable_bytes(std::span(ends_)); }
    /// The bytes of the words in a file, after the ends.
    std::span<std::byte> ids_bytes()
    {
        return wide_ ? std::as_writable_bytes(std::span(wide_ids_)) : std::as_writable_bytes(std::span(narrow_ids_));
    }
    /// Allocates this many sentences and words, to be filled through the bytes above.
    void resize(std::size_t sentences, std::size_t words)
    {
        ends_.resize(sentences);
        wide_ ? wide_ids_.resize(words) : narrow_ids_.resize(words);
    }
    /// Whether the bytes are valid: ascending ends, the last equal to the number of words, and words below
    /// `vocabulary`.
    bool sound(std::uint64_t vocabulary) const
    {
        std::uint32_t last = 0;
        for (const std::uint32_t end : ends_) {
            if (end < last) return false;
            last = end;
        }
        if (last != (wide_ ? wide_ids_.size() : narrow_ids_.size())) return false;
        for (const auto id : wide_ids_) {
            if (id >= vocabulary) return false;
        }
        for (const auto id : narrow_ids_) {
            if (id >= vocabulary) return false;
        }
        return true;
    }

    /// A hash of the sentences, to be continued with further sentences.
    std::uint64_t hash(std::uint64_t from) const
    {
        for (std::size_t i = 0; i < size(); ++i) {
            for (std::size_t k = begin(i); k < ends_[i]; ++k)
                from = mix(from ^ (wide_ ? wide_ids_[k] : word_id{narrow_ids_[k]}));
            from = mix(from + 1);
        }
        return from;
    }

private:
    static std::ptrdiff_t at(std::size_t i) { return static_cast<std::ptrdiff_t>(i); }
    static std::uint16_t narrow(word_id id)
    {
        if (id > std::numeric_limits<std::uint16_t>::max())
            throw error("sentences as numbers: word " + std::to_string(id) + " exceeds a vocabulary of at most 65536");
        return static_cast<std::uint16_t>(id);
    }
    std::size_t begin(std::size_t i) const { return i == 0 ? 0 : ends_[i - 1]; }

    bool wide_;
    std::vector<std::uint32_t> ends_;  // end of each sentence, in words
    std::vector<std::uint16_t> narrow_ids_;
    std::vector<std::uint32_t> wide_ids_;  // one of the two is empty
};

/// Sentences and their translations as word ids.
struct id_pairs {
    id_lines source, target;

    std::size_t size() const { return source.size(); }
};

}  // namespace heed::inline HEED_TARGET::text
