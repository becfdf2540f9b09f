// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// ZIP files, as far as .npz files need them: members stored or deflated, of any size (ZIP64).
//
//     for each member    local header, name, extra fields, data
//     central directory  for each member: method, CRC-32, sizes, offset of its local header, name, extra fields
//     ZIP64              the size and offset of the directory in 64 bits, and where they stand
//     end                the size and offset of the directory in 32 bits, a comment
//
// PKWARE, APPNOTE.TXT 6.3.10. A number that does not fit into its 16 or 32 bits is stored as all ones, and stands in
// the extra field 0x0001. zlib compresses; link ZLIB::ZLIB, or -lz.

#include <heed/core/errors.hpp>
#include <heed/io/atomic_file.hpp>
#include <heed/io/file_bytes.hpp>

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heed::io {

/// How the members of a ZIP file are kept.
enum class compression { stored, deflated };

namespace detail {

inline constexpr std::uint32_t zip_local = 0x04034b50, zip_central = 0x02014b50, zip_end = 0x06054b50,
                               zip64_end = 0x06064b50, zip64_locator = 0x07064b50;
inline constexpr std::uint16_t zip64_field = 1;
inline constexpr std::size_t zip_local_size = 30, zip_central_size = 46, zip_end_size = 22, zip64_end_size = 56,
                             zip64_locator_size = 20;

/// Reads little-endian numbers one after the other from a range that is long enough.
class zip_numbers {
public:
    explicit zip_numbers(const std::byte* at) : at_(at) {}

    std::uint16_t u16() { return take<std::uint16_t>(); }
    std::uint32_t u32() { return take<std::uint32_t>(); }
    std::uint64_t u64() { return take<std::uint64_t>(); }
    void skip(std::size_t bytes) { at_ += bytes; }

private:
    template <class T>
    T take()
    {
        T value;
        std::memcpy(&value, at_, sizeof(T));
        at_ += sizeof(T);
        return value;
    }

    const std::byte* at_;
};

struct zip_member {
    std::string name;
    std::uint16_t method = 0;
    std::uint32_t crc = 0;
    std::uint64_t stored = 0, size = 0, offset = 0;
    shared_bytes data;  // as stored
};

/// The directory of a ZIP file: where it is, and how many members it has.
struct zip_directory {
    std::uint64_t members = 0, size = 0, offset = 0;
    std::uint64_t end = 0;  // of everything in front of the end records
};

inline zip_directory zip_directory_of(const shared_bytes& file, const auto& refuse)
{
    const auto at = [&](std::uint64_t offset) { return zip_numbers(file.data() + offset); };
    if (file.size() < zip_end_size) refuse("is only " + std::to_string(file.size()) + " bytes long; not a ZIP file");
    // The end record may be followed by a comment of its own, whose length it states.
    const std::size_t last = file.size() - zip_end_size, first = last < 65535 ? 0 : last - 65535;
    std::optional<std::size_t> end;
    for (std::size_t offset = last + 1; offset-- > first && !end;) {
        auto record = at(offset);
        if (record.u32() != zip_end) continue;
        record.skip(16);
        if (record.u16() == last - offset) end = offset;
    }
    if (!end) refuse("is not a ZIP file, or truncated: the end of its directory is missing");

    auto record = at(*end + 4);
    const auto disk = record.u16(), directory_disk = record.u16();
    record.skip(2);
    const auto members = record.u16();
    const auto size = record.u32(), offset = record.u32();
    zip_directory directory{members, size, offset, *end};
    if (*end >= zip64_locator_size) {
        auto locator = at(*end - zip64_locator_size);
        if (locator.u32() == zip64_locator) {
            locator.skip(4);
            const auto wide = locator.u64();
            const std::size_t locator_at = *end - zip64_locator_size;
            if (wide > locator_at || locator_at - wide < zip64_end_size || at(wide).u32() != zip64_end)
                refuse("is damaged: its ZIP64 locator points at nothing");
            auto numbers = at(wide + 32);
            directory.members = numbers.u64();
            directory.size = numbers.u64();
            directory.offset = numbers.u64();
            directory.end = wide;
        }
    }
    if ((disk != 0 && disk != 65535) || (directory_disk != 0 && directory_disk != 65535))
        refuse("is one of several parts of a ZIP file; join them first");
    if (directory.offset > directory.end || directory.size > directory.end - directory.offset)
        refuse("is damaged: its directory should have " + std::to_string(directory.size) + " bytes at byte " +
               std::to_string(directory.offset) + ", and the file ends before");
    if (directory.members > directory.size / zip_central_size)
        refuse("is damaged: " + std::to_string(directory.members) + " members do not fit into a directory of " +
               std::to_string(directory.size) + " bytes");
    return directory;
}

/// The numbers of a member that did not fit into 32 bits, from its extra fields.
inline void read_zip64(std::span<const std::byte> extra, zip_member& member, const auto& refuse)
{
    constexpr std::uint32_t elsewhere = std::numeric_limits<std::uint32_t>::max();
    while (extra.size() >= 4) {
        zip_numbers head(extra.data());
        const auto kind = head.u16();
        const std::size_t size = head.u16();
        extra = extra.subspan(4);
        if (size > extra.size()) refuse("is damaged: \"" + member.name + "\" has extra fields that are cut off");
        if (kind == zip64_field) {
            std::size_t left = size;
            zip_numbers numbers(extra.data());
            for (std::uint64_t* const number : {&member.size, &member.stored, &member.offset}) {
                if (*number != elsewhere) continue;
                if (left < 8) refuse("is damaged: \"" + member.name + "\" has a ZIP64 field that is too short");
                *number = numbers.u64();
                left -= 8;
            }
            return;
        }
        extra = extra.subspan(size);
    }
}

/// The members of a ZIP file, none of which overlaps another. refuse(why) throws.
inline std::vector<zip_member> zip_members(const shared_bytes& file, const auto& refuse)
{
    const zip_directory directory = zip_directory_of(file, refuse);
    const std::uint64_t directory_end = directory.offset + directory.size;
    std::vector<zip_member> members;
    std::set<std::string_view> names;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
    std::uint64_t at = directory.offset;
    for (std::uint64_t i = 0; i < directory.members; ++i) {
        if (directory_end - at < zip_central_size) refuse("is damaged: its directory ends within a member");
        zip_numbers entry(file.data() + at);
        if (entry.u32() != zip_central) refuse("is damaged: its directory has no member where one is due");
        entry.skip(4);
        const auto flags = entry.u16();
        zip_member member;
        member.method = entry.u16();
        entry.skip(4);
        member.crc = entry.u32();
        member.stored = entry.u32();
        member.size = entry.u32();
        const std::size_t name = entry.u16(), extra = entry.u16(), comment = entry.u16();
        entry.skip(8);
        member.offset = entry.u32();
        at += zip_central_size;
        if (directory_end - at < name + extra + comment) refuse("is damaged: its directory ends within a name");
        member.name = file.text(at, name);
        read_zip64({file.data() + at + name, extra}, member, refuse);
        at += name + extra + comment;

        const std::string what = "\"" + member.name + "\" ";
        if ((flags & 1) != 0) refuse(what + "is encrypted; heed reads plain members");
        if (member.method != 0 && member.method != 8)
            refuse(what + "is compressed by method " + std::to_string(member.method) +
                   "; heed reads stored (0) and deflated (8) members");
        if (member.offset > directory.offset || directory.offset - member.offset < zip_local_size)
            refuse("is damaged: " + what + "should begin at byte " + std::to_string(member.offset));
        zip_numbers local(file.data() + member.offset);
        const bool is_local = local.u32() == zip_local;
        local.skip(22);
        const std::size_t local_name = local.u16(), local_extra = local.u16();
        const std::uint64_t begin = member.offset + zip_local_size + local_name + local_extra;
        if (!is_local || begin > directory.offset ||
            file.text(member.offset + zip_local_size, local_name) != member.name)
            refuse("is damaged: " + what + "is not at byte " + std::to_string(member.offset));
        if (member.stored > directory.offset - begin)
            refuse("is damaged: " + what + "should have " + std::to_string(member.stored) + " bytes, and there are " +
                   std::to_string(directory.offset - begin));
        if (member.method == 0 && member.size != member.stored)
            refuse("is damaged: " + what + "is stored as it is, in " + std::to_string(member.stored) +
                   " bytes, but should have " + std::to_string(member.size));
        // Deflate makes nothing shorter than that: a size beyond is a lie.
        if (member.method == 8 && member.size / 1033 > member.stored)
            refuse("is damaged: " + std::to_string(member.stored) + " bytes cannot be deflated from " +
                   std::to_string(member.size) + ", as " + what + "says");
        member.data = file.part(static_cast<std::size_t>(begin), static_cast<std::size_t>(member.stored));
        ranges.emplace_back(member.offset, begin + member.stored);
        members.push_back(std::move(member));
    }
    if (at != directory_end) refuse("is damaged: its directory goes on behind its last member");
    for (const zip_member& each : members) {
        if (!names.insert(each.name).second) refuse("is damaged: \"" + each.name + "\" appears twice");
    }
    std::sort(ranges.begin(), ranges.end());
    for (std::size_t i = 1; i < ranges.size(); ++i) {
        if (ranges[i].first < ranges[i - 1].second)
            refuse("is damaged: two members share the bytes from " + std::to_string(ranges[i].first) + " on");
    }
    return members;
}

/// Ends a stream of zlib, however its scope is left.
class zlib_stream {
public:
    explicit zlib_stream(int (*end)(z_stream*)) : end_(end) {}
    zlib_stream(const zlib_stream&) = delete;
    zlib_stream& operator=(const zlib_stream&) = delete;
    ~zlib_stream() { end_(&state); }

    z_stream state{};

private:
    int (*end_)(z_stream*);
};

/// zlib counts in 32 bits, so that long input comes in parts.
class zlib_input {
public:
    explicit zlib_input(std::span<const std::byte> bytes) : left_(bytes) {}

    /// The next part, where the one before has been read.
    void feed(z_stream& stream)
    {
        if (stream.avail_in > 0) return;
        const std::size_t part = std::min(left_.size(), std::size_t{1} << 30);
        stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(left_.data()));
        stream.avail_in = static_cast<uInt>(part);
        left_ = left_.subspan(part);
    }
    bool last() const { return left_.empty(); }

private:
    std::span<const std::byte> left_;
};

/// Doubles the output if it is full, up to `most` bytes.
inline void make_room(z_stream& stream, std::vector<std::byte>& to, std::uint64_t most)
{
    if (stream.avail_out > 0) return;
    const std::size_t filled = to.size();
    const std::uint64_t more = std::min<std::uint64_t>(std::max<std::size_t>(filled, 1 << 16), 1 << 30);
    to.resize(static_cast<std::size_t>(filled + std::min<std::uint64_t>(more, most - filled)));
    stream.next_out = reinterpret_cast<Bytef*>(to.data() + filled);
    stream.avail_out = static_cast<uInt>(to.size() - filled);
}

inline std::vector<std::byte> inflated(const zip_member& member, const auto& refuse)
{
    zlib_stream stream(&inflateEnd);
    if (inflateInit2(&stream.state, -MAX_WBITS) != Z_OK) throw error("zlib cannot begin to decompress");
    zlib_input input({member.data.data(), member.data.size()});
    std::vector<std::byte> to;
    to.reserve(static_cast<std::size_t>(member.size) + 1);
    int status = Z_OK;
    while (status == Z_OK && to.size() - stream.state.avail_out <= member.size) {
        input.feed(stream.state);
        make_room(stream.state, to, member.size + 1);  // one more shows a member that is longer than it says
        status = ::inflate(&stream.state, Z_NO_FLUSH);
    }
    to.resize(to.size() - stream.state.avail_out);
    if (status != Z_STREAM_END || to.size() != member.size || stream.state.avail_in > 0 || !input.last())
        refuse("is damaged: \"" + member.name + "\" does not decompress to " + std::to_string(member.size) + " bytes");
    return to;
}

inline std::vector<std::byte> deflated(std::span<const std::byte> from)
{
    zlib_stream stream(&deflateEnd);
    if (deflateInit2(&stream.state, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        throw error("zlib cannot begin to compress");
    zlib_input input(from);
    std::vector<std::byte> to;
    int status = Z_OK;
    while (status == Z_OK) {
        input.feed(stream.state);
        make_room(stream.state, to, std::numeric_limits<std::size_t>::max());
        status = ::deflate(&stream.state, input.last() ? Z_FINISH : Z_NO_FLUSH);
    }
    if (status != Z_STREAM_END) throw error("zlib cannot compress");
    to.resize(to.size() - stream.state.avail_out);
    return to;
}

inline std::uint32_t crc_of(std::uint32_t crc, std::span<const std::byte> bytes)
{
    return static_cast<std::uint32_t>(::crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

/// What a member holds, decompressed where it must be. refuse(why) throws.
inline shared_bytes contents_of(const zip_member& member, const auto& refuse)
{
    shared_bytes contents = member.method == 0 ? member.data : shared_bytes(inflated(member, refuse));
    // A null pointer makes zlib start over.
    const std::uint32_t crc = contents.empty() ? 0 : crc_of(0, {contents.data(), contents.size()});
    if (crc != member.crc) refuse("is damaged: \"" + member.name + "\" fails its checksum (CRC-32)");
    return contents;
}

/// Writes a ZIP file, member by member. Numbers from `largest` on go to ZIP64 fields.
class zip_writer {
public:
    explicit zip_writer(atomic_file& file, std::uint64_t largest = std::numeric_limits<std::uint32_t>::max())
        : file_(file), largest_(largest)
    {}

    /// A member of these two parts in a row.
    void add(const std::string& name, std::span<const std::byte> head, std::span<const std::byte> body, compression how)
    {
        written member{name, 0, 0, 0, at_, how == compression::deflated ? std::uint16_t{8} : std::uint16_t{0}};
        if (!head.empty()) member.crc = crc_of(member.crc, head);
        if (!body.empty()) member.crc = crc_of(member.crc, body);
        member.size = member.stored = head.size() + body.size();
        std::vector<std::byte> compressed;
        if (how == compression::deflated) {
            std::vector<std::byte> whole(head.begin(), head.end());
            whole.insert(whole.end(), body.begin(), body.end());
            compressed = deflated(whole);
            member.stored = compressed.size();
        }
        std::string local;
        put(local, zip_local);
        common(local, member, wide(member));
        put(local, static_cast<std::uint16_t>(name.size()));
        const std::string extra = extra_of(member, wide(member), false);
        put(local, static_cast<std::uint16_t>(extra.size()));
        write(local + name + extra);
        if (how == compression::deflated) {
            write(compressed);
        } else {
            write(head);
            write(body);
        }
        members_.push_back(std::move(member));
    }

    /// Writes the directory. The file is whole then, but not yet committed.
    void finish()
    {
        const std::uint64_t offset = at_;
        for (const written& member : members_) {
            const bool is_wide = wide(member) || member.offset >= largest_;
            std::string entry;
            put(entry, zip_central);
            put(entry, std::uint16_t{3 << 8 | 45});  // made by Unix, for version 4.5
            common(entry, member, is_wide);
            put(entry, static_cast<std::uint16_t>(member.name.size()));
            const std::string extra = extra_of(member, is_wide, true);
            put(entry, static_cast<std::uint16_t>(extra.size()));
            entry.append(6, '\0');  // no comment, the first disk, not text
            put(entry, std::uint32_t{0644u << 16});
            put(entry, is_wide ? elsewhere : static_cast<std::uint32_t>(member.offset));
            write(entry + member.name + extra);
        }
        const std::uint64_t size = at_ - offset, count = members_.size();
        const bool is_wide =
            count >= std::min<std::uint64_t>(largest_, 65535) || size >= largest_ || offset >= largest_;
        std::string end;
        if (is_wide) {
            put(end, zip64_end);
            put(end, std::uint64_t{zip64_end_size - 12});
            put(end, std::uint32_t{45 | 45 << 16});
            put(end, std::uint64_t{0});  // the first disk, twice
            put(end, count);
            put(end, count);
            put(end, size);
            put(end, offset);
            put(end, zip64_locator);
            put(end, std::uint32_t{0});
            put(end, at_);
            put(end, std::uint32_t{1});
        }
        put(end, zip_end);
        put(end, std::uint32_t{0});
        const auto narrow = is_wide ? std::uint16_t{65535} : static_cast<std::uint16_t>(count);
        put(end, narrow);
        put(end, narrow);
        put(end, is_wide ? elsewhere : static_cast<std::uint32_t>(size));
        put(end, is_wide ? elsewhere : static_cast<std::uint32_t>(offset));
        put(end, std::uint16_t{0});
        write(end);
    }

private:
    static constexpr std::uint32_t elsewhere = std::numeric_limits<std::uint32_t>::max();

    struct written {
        std::string name;
        std::uint32_t crc;
        std::uint64_t stored, size, offset;
        std::uint16_t method;
    };

    bool wide(const written& member) const { return member.size >= largest_ || member.stored >= largest_; }

    template <class T>
    static void put(std::string& to, T number)
    {
        to.append(reinterpret_cast<const char*>(&number), sizeof(T));
    }

    /// What local header and directory share, from the version on.
    static void common(std::string& to, const written& member, bool is_wide)
    {
        put(to, std::uint16_t{45});
        put(to, std::uint16_t{1 << 11});  // names are UTF-8
        put(to, member.method);
        put(to, std::uint32_t{33u << 16});  // 1980-01-01: the same tensors give the same bytes
        put(to, member.crc);
        put(to, is_wide ? elsewhere : static_cast<std::uint32_t>(member.stored));
        put(to, is_wide ? elsewhere : static_cast<std::uint32_t>(member.size));
    }

    static std::string extra_of(const written& member, bool is_wide, bool with_offset)
    {
        std::string extra;
        if (!is_wide) return extra;
        put(extra, zip64_field);
        put(extra, static_cast<std::uint16_t>(with_offset ? 24 : 16));
        put(extra, member.size);
        put(extra, member.stored);
        if (with_offset) put(extra, member.offset);
        return extra;
    }

    void write(std::span<const std::byte> bytes)
    {
        file_.write(bytes);
        at_ += bytes.size();
    }
    void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

    atomic_file& file_;
    std::uint64_t largest_, at_ = 0;
    std::vector<written> members_;
};

}  // namespace detail

}  // namespace heed::io
