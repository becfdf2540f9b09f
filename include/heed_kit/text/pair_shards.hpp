// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed/core/random.hpp>
#include <heed/io/atomic_file.hpp>
#include <heed_kit/text/id_pairs.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/// Sentence pairs that do not fit in memory, as word ids in a file of shards that are read one at a time.
///
///     pair_shards_writer file("text.corpus", sizes, 32000, 32000, "text stamp", "a note");
///     file.add(0, source_ids, target_ids);  // shards in any order, with the announced sizes
///     file.commit();
///
///     pair_shards text("text.corpus");
///     id_pairs some = text.read(2);
///
/// The file is a machine-dependent cache, not an exchange format: a header of 64-bit numbers in native byte order with
/// the position, sizes and hash of each shard, two texts from the writer, then the shards: the ends of the source
/// sentences, those of the target sentences, the source words, the target words.
namespace heed::inline HEED_TARGET::text {

/// The size of a shard.
struct shard_size {
    std::uint64_t pairs = 0, source_words = 0, target_words = 0;

    friend bool operator==(const shard_size&, const shard_size&) = default;
};

namespace detail {

struct shard_entry {
    std::uint64_t place;
    shard_size size;
    std::uint64_t hash;  // hash of its bytes
};

struct shards_header {
    std::uint64_t magic = 0, bytes = 0, source_vocabulary = 0, target_vocabulary = 0, shards = 0, stamp_bytes = 0,
                  note_bytes = 0, hash = 0;
};

/// "heedprs1" as a number: a different byte order gives a different number.
inline constexpr std::uint64_t shards_magic = 0x6865656470727331;

/// A hash of bytes, in groups of 8. It may be computed in parts if each part except the last has a multiple of 8 bytes.
inline std::uint64_t hash_of(std::span<const std::byte> bytes, std::uint64_t from)
{
    for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
        std::uint64_t group = 0;
        std::memcpy(&group, bytes.data(), 8);
        from = std::rotl((from ^ group) * 0x9fb21c651e98df25u, 29);
    }
    if (bytes.empty()) return from;
    std::uint64_t group = 0;
    std::memcpy(&group, bytes.data(), bytes.size());
    return mix(from ^ group ^ std::uint64_t{bytes.size()} << 56);
}

/// The bytes of the four parts of a shard.
inline std::array<std::uint64_t, 4> parts_of(const shard_size& size, std::uint64_t source_vocabulary,
                                             std::uint64_t target_vocabulary)
{
    return {4 * size.pairs, 4 * size.pairs, id_lines::bytes_for(source_vocabulary) * size.source_words,
            id_lines::bytes_for(target_vocabulary) * size.target_words};
}

}  // namespace detail

/// Reads such a file, one shard at a time.
class pair_shards {
public:
    /// Opens the file. Throws heed::error if it has another format, is damaged or is truncated.
    explicit pair_shards(const std::filesystem::path& path) : name_(path.string())
    {
        const auto file = std::make_shared<descriptor>();  // first, so that no file stays open if memory runs out
        file_ = file;
        file->number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (file->number < 0) throw error(name_ + ": cannot be opened: " + std::strerror(errno));
        struct stat about {};
        if (::fstat(file->number, &about) != 0) throw error(name_ + ": cannot be read: " + std::strerror(errno));
        if (!S_ISREG(about.st_mode) || about.st_size < static_cast<::off_t>(sizeof header_)) not_ours();
        get(0, std::as_writable_bytes(std::span(&header_, 1)));
        if (header_.magic != detail::shards_magic) not_ours();
        const std::uint64_t size = static_cast<std::uint64_t>(about.st_size), rest = size - sizeof header_;
        if (header_.bytes != size || header_.shards > rest / sizeof(detail::shard_entry) ||
            header_.stamp_bytes > rest || header_.note_bytes > rest ||
            header_.shards * sizeof(detail::shard_entry) + header_.stamp_bytes + header_.note_bytes > rest)
            damaged("it is truncated, or its sizes contradict each other");
        entries_.resize(header_.shards);
        stamp_.resize(header_.stamp_bytes);
        note_.resize(header_.note_bytes);
        std::uint64_t place = sizeof header_;
        for (const std::span<std::byte> part :
             {std::as_writable_bytes(std::span(entries_)), std::as_writable_bytes(std::span(stamp_)),
              std::as_writable_bytes(std::span(note_))}) {
            get(place, part);
            place += part.size();
        }
        if (header_.hash != hash_of_header(header_, entries_, stamp_, note_)) damaged("its header was changed");
        content_ = mix(header_.source_vocabulary ^ mix(header_.target_vocabulary));
        for (const detail::shard_entry& each : entries_) {
            std::uint64_t end = each.place;
            for (const std::uint64_t part :
                 detail::parts_of(each.size, header_.source_vocabulary, header_.target_vocabulary))
                end += part;
            if (each.place < place || each.place > size || each.size.pairs > size || each.size.source_words > size ||
                each.size.target_words > size || end > size)
                damaged("a shard is outside the file");
            pairs_ += each.size.pairs;
            content_ = mix(content_ ^ each.hash);
        }
    }

    /// The number of shards.
    std::size_t size() const { return entries_.size(); }
    /// The number of sentence pairs in all shards.
    std::size_t pairs() const { return pairs_; }
    /// The sizes of the vocabularies.
    std::uint64_t source_vocabulary() const { return header_.source_vocabulary; }
    std::uint64_t target_vocabulary() const { return header_.target_vocabulary; }  ///< of the target
    /// The numbers of pairs and words in a shard.
    const shard_size& size_of(std::size_t shard) const { return entries_[shard].size; }
    /// The stamp of the text when the file was written; see the writer.
    const std::string& stamp() const { return stamp_; }
    /// The note of the writer.
    const std::string& note() const { return note_; }
    /// A hash of all shards.
    std::uint64_t hash() const { return content_; }

    /// The sentence pairs of a shard. Throws heed::error if the file was changed after writing.
    id_pairs read(std::size_t shard) const
    {
        const detail::shard_entry& one = entries_.at(shard);
        id_pairs pairs{id_lines(header_.source_vocabulary), id_lines(header_.target_vocabulary)};
        pairs.source.resize(one.size.pairs, one.size.source_words);
        pairs.target.resize(one.size.pairs, one.size.target_words);
        std::uint64_t place = one.place, hash = 0;
        for (const std::span<std::byte> part : {pairs.source.ends_bytes(), pairs.target.ends_bytes(),
                                                pairs.source.ids_bytes(), pairs.target.ids_bytes()}) {
            get(place, part);
            place += part.size();
            hash = mix(hash ^ detail::hash_of(part, 0));
        }
        if (hash != one.hash || !pairs.source.sound(header_.source_vocabulary) ||
            !pairs.target.sound(header_.target_vocabulary))
            damaged("shard " + std::to_string(shard + 1) + " of " + std::to_string(size()) + " was changed");
        return pairs;
    }

    /// Whether the file has the signature of this format, even if it is damaged.
    static bool is_one(const std::filesystem::path& path)
    {
        const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (file < 0) return false;
        std::uint64_t magic = 0;
        const bool read = ::pread(file, &magic, sizeof magic, 0) == sizeof magic;
        ::close(file);
        return read && magic == detail::shards_magic;
    }

    /// A hash of the data before the shards.
    static std::uint64_t hash_of_header(detail::shards_header header, const std::vector<detail::shard_entry>& entries,
                                        const std::string& stamp, const std::string& note)
    {
        header.hash = 0;
        std::uint64_t hash = detail::hash_of(std::as_bytes(std::span(&header, 1)), 1);
        hash = detail::hash_of(std::as_bytes(std::span(entries)), hash);
        hash = detail::hash_of(std::as_bytes(std::span(stamp)), hash);
        return detail::hash_of(std::as_bytes(std::span(note)), hash);
    }

private:
    struct descriptor {
        int number = -1;

        descriptor() = default;
        descriptor(const descriptor&) = delete;
        descriptor& operator=(const descriptor&) = delete;
        ~descriptor()
        {
            if (number >= 0) ::close(number);
        }
    };

    [[noreturn]] void not_ours() const { throw error(name_ + ": not a file of sentence pairs as numbers"); }
    [[noreturn]] void damaged(const std::string& how) const
    {
        throw error(name_ + ": is damaged: " + how + "; remove it to rebuild it from the text");
    }

    void get(std::uint64_t place, std::span<std::byte> bytes) const
    {
        while (!bytes.empty()) {
            const ::ssize_t count = ::pread(file_->number, bytes.data(), bytes.size(), static_cast<::off_t>(place));
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) throw error(name_ + ": cannot be read: " + std::strerror(errno));
            if (count == 0) damaged("it was truncated while in use");
            place += static_cast<std::uint64_t>(count);
            bytes = bytes.subspan(static_cast<std::size_t>(count));
        }
    }

    std::string name_, stamp_, note_;
    std::shared_ptr<const descriptor> file_;  // kept open, since the file of that name may be replaced
    detail::shards_header header_;
    std::vector<detail::shard_entry> entries_;
    std::size_t pairs_ = 0;
    std::uint64_t content_ = 0;
};

/// Writes such a file, as a whole or not at all (io::atomic_file).
class pair_shards_writer {
public:
    /// `sizes`: the final size of each shard.
    pair_shards_writer(const std::filesystem::path& path, const std::vector<shard_size>& sizes,
                       std::size_t source_vocabulary, std::size_t target_vocabulary, std::string stamp,
                       std::string note)
        : name_(path.string()),
          file_(path),
          stamp_(std::move(stamp)),
          note_(std::move(note)),
          room_(std::clamp<std::size_t>((std::size_t{16} << 20) / (4 * std::max<std::size_t>(1, sizes.size())), 4096,
                                        std::size_t{1} << 18) /
                8 * 8)
    {
        header_ = {detail::shards_magic, 0, source_vocabulary, target_vocabulary, sizes.size(), stamp_.size(),
                   note_.size(),         0};
        std::uint64_t place =
            sizeof header_ + sizes.size() * sizeof(detail::shard_entry) + stamp_.size() + note_.size();
        for (const shard_size& each : sizes) {
            if (each.pairs > 0) place = (place + 4095) / 4096 * 4096;
            entries_.push_back({place, each, 0});
            std::array<stream, 4>& parts = shards_.emplace_back();
            const auto bytes = detail::parts_of(each, source_vocabulary, target_vocabulary);
            for (std::size_t i = 0; i < 4; ++i) {
                parts[i].place = place;
                place += bytes[i];
            }
        }
        header_.bytes = place;
        done_.resize(sizes.size());
    }

    /// Appends a pair to a shard. Throws heed::error if the shard is full, and if writing fails.
    void add(std::size_t shard, std::span<const word_id> source, std::span<const word_id> target)
    {
        std::array<stream, 4>& parts = shards_.at(shard);
        shard_size& done = done_[shard];
        const shard_size& all = entries_[shard].size;
        if (done.pairs == all.pairs || source.size() > all.source_words - done.source_words ||
            target.size() > all.target_words - done.target_words)
            throw error(name_ + ": shard " + std::to_string(shard + 1) +
                        " has no room for this pair; its size was given to the constructor");
        done.pairs += 1;
        done.source_words += source.size();
        done.target_words += target.size();
        put(parts[0], static_cast<std::uint32_t>(done.source_words));
        put(parts[1], static_cast<std::uint32_t>(done.target_words));
        put_ids(parts[2], source, header_.source_vocabulary);
        put_ids(parts[3], target, header_.target_vocabulary);
    }

    /// Renames the file to its final name. Throws heed::error if a shard is not full, and if writing fails.
    void commit()
    {
        for (std::size_t s = 0; s < shards_.size(); ++s) {
            if (done_[s] != entries_[s].size)
                throw error(name_ + ": shard " + std::to_string(s + 1) +
                            " is not full; add all its pairs before commit()");
            std::uint64_t hash = 0;
            for (stream& each : shards_[s]) {
                flush(each);
                hash = mix(hash ^ each.hash);
            }
            entries_[s].hash = hash;
        }
        header_.hash = pair_shards::hash_of_header(header_, entries_, stamp_, note_);
        std::uint64_t place = 0;
        for (const std::span<const std::byte> part :
             {std::as_bytes(std::span(&header_, 1)), std::as_bytes(std::span(entries_)),
              std::as_bytes(std::span(stamp_)), std::as_bytes(std::span(note_))}) {
            file_.write_at(place, part);
            place += part.size();
        }
        file_.commit();
    }

private:
    struct stream {
        std::uint64_t place = 0, hash = 0;  // position of the next bytes, and hash of the previous ones
        std::vector<std::byte> waiting = {};
    };

    template <class Number>
    void put(stream& to, Number number)
    {
        const auto bytes = std::as_bytes(std::span(&number, 1));
        to.waiting.insert(to.waiting.end(), bytes.begin(), bytes.end());
        if (to.waiting.size() >= room_) flush(to);
    }

    void put_ids(stream& to, std::span<const word_id> ids, std::uint64_t vocabulary)
    {
        const bool narrow = id_lines::bytes_for(vocabulary) == 2;
        for (const word_id id : ids) {
            if (id >= vocabulary)
                throw error(name_ + ": word " + std::to_string(id) + " of a vocabulary of " +
                            counted(vocabulary, "word") + "; ids count from 0");
            narrow ? put(to, static_cast<std::uint16_t>(id)) : put(to, id);
        }
    }

    void flush(stream& to)
    {
        file_.write_at(to.place, to.waiting);
        to.place += to.waiting.size();
        to.hash = detail::hash_of(to.waiting, to.hash);
        to.waiting.clear();
    }

    std::string name_;
    heed::io::atomic_file file_;
    std::string stamp_, note_;
    std::size_t room_;  // bytes to be written, a multiple of 8
    detail::shards_header header_;
    std::vector<detail::shard_entry> entries_;
    std::vector<std::array<stream, 4>> shards_;
    std::vector<shard_size> done_;
};

}  // namespace heed::inline HEED_TARGET::text
