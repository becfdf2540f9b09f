// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz.hpp"
#include "headers.hpp"

#include <heed_kit/text/pair_shards.hpp>

#include <array>
#include <span>

namespace fuzz::shards {

namespace text = heed::text;
using text::detail::shard_entry;
using text::detail::shards_header;

/// The parts of a shard file.
struct parts {
    shards_header header;
    std::vector<shard_entry> entries;
    std::string stamp, note, data;

    std::size_t front() const
    {
        return sizeof header + entries.size() * sizeof(shard_entry) + stamp.size() + note.size();
    }

    static parts of(std::string_view bytes)
    {
        parts found;
        const auto next = [&](std::uint64_t most) {
            const std::string_view part = bytes.substr(0, most);
            bytes.remove_prefix(part.size());
            return std::string(part);
        };
        const std::string header = next(sizeof(shards_header));
        std::memcpy(&found.header, header.data(), header.size());
        for (std::uint64_t i = 0; i < std::min<std::uint64_t>(found.header.shards, 64); ++i) {
            const std::string entry = next(sizeof(shard_entry));
            found.entries.push_back({});
            std::memcpy(&found.entries.back(), entry.data(), entry.size());
        }
        found.stamp = next(found.header.stamp_bytes);
        found.note = next(found.header.note_bytes);
        found.data = bytes;
        return found;
    }

    /// Hashes as computed by the writer, of the shards inside the data.
    void hash()
    {
        const std::string all = std::string(front(), '\0') + data;
        for (shard_entry& each : entries) {
            std::uint64_t place = each.place, hash = 0;
            for (const std::uint64_t size :
                 text::detail::parts_of(each.size, header.source_vocabulary, header.target_vocabulary)) {
                if (place > all.size() || size > all.size() - place) break;
                hash = heed::mix(hash ^ text::detail::hash_of(std::as_bytes(std::span(all)).subspan(place, size), 0));
                place += size;
            }
            each.hash = hash;
        }
        header.hash = text::pair_shards::hash_of_header(header, entries, stamp, note);
    }

    std::string bytes() const
    {
        std::string all(reinterpret_cast<const char*>(&header), sizeof header);
        all.append(reinterpret_cast<const char*>(entries.data()), entries.size() * sizeof(shard_entry));
        return all + stamp + note + data;
    }
};

void run(std::string_view bytes)
{
    const auto path = file_of(bytes);
    const auto found = read(path, bytes.size(), 16, [&] { return text::pair_shards(path); });
    if (!found) return;
    std::vector<text::id_pairs> all;
    std::vector<text::shard_size> sizes;
    for (std::size_t shard = 0; shard < found->size(); ++shard) {
        auto pairs = read(path, bytes.size(), 16, [&] { return found->read(shard); });
        if (!pairs) return;
        require(pairs->size() == found->size_of(shard).pairs, "wrong shard size");
        all.push_back(std::move(*pairs));
        sizes.push_back(found->size_of(shard));
    }

    const auto copy = path_of("written");
    text::pair_shards_writer writer(copy, sizes, found->source_vocabulary(), found->target_vocabulary(), found->stamp(),
                                    found->note());
    for (std::size_t shard = 0; shard < all.size(); ++shard)
        for (std::size_t i = 0; i < all[shard].size(); ++i)
            writer.add(shard, all[shard].source[i], all[shard].target[i]);
    writer.commit();
    const text::pair_shards again(copy);
    require(again.hash() == found->hash() && again.pairs() == found->pairs(), "the shards change in a round trip");
}

/// Changes the file and usually updates its hashes.
std::string mutate(std::string_view bytes, const dice& roll, const scramble& bytewise)
{
    parts changed = parts::of(bytes);
    const std::array<std::uint64_t shards_header::*, 6> fields{
        &shards_header::bytes,  &shards_header::source_vocabulary, &shards_header::target_vocabulary,
        &shards_header::shards, &shards_header::stamp_bytes,       &shards_header::note_bytes};
    const std::size_t kind = roll(6);
    if (kind == 0) {
        changed.data = bytewise(changed.data, changed.data.size() + 16);
    } else if (kind == 1) {
        changed.header.*fields[roll(fields.size())] = odd_number(roll);
    } else if (kind == 2) {
        std::string& part = roll(2) == 0 ? changed.stamp : changed.note;
        part = bytewise(part, part.size() + 16);
        changed.header.stamp_bytes = changed.stamp.size();
        changed.header.note_bytes = changed.note.size();
    } else if (kind == 3 && changed.entries.size() < 8) {
        changed.entries.push_back(changed.entries.empty() ? shard_entry{} : changed.entries.back());
        changed.header.shards = changed.entries.size();
        for (shard_entry& each : changed.entries) each.place += sizeof(shard_entry);
    } else if (!changed.entries.empty()) {
        shard_entry& one = changed.entries[roll(changed.entries.size())];
        std::uint64_t* const numbers[] = {&one.place, &one.size.pairs, &one.size.source_words, &one.size.target_words};
        std::uint64_t& number = *numbers[roll(4)];
        number = roll(2) == 0 ? odd_number(roll) : number + roll(3) - 1;
    }
    if (roll(4) != 0) changed.header.bytes = changed.front() + changed.data.size();
    if (roll(8) != 0) changed.hash();
    return changed.bytes();
}

std::vector<std::string> seeds()
{
    const auto numbers = [](const auto&... all) {
        std::string data;
        (put_number(data, all), ...);
        return data;
    };
    std::vector<std::string> all;
    for (const bool wide : {false, true}) {
        parts file;
        file.header.magic = text::detail::shards_magic;
        file.header.source_vocabulary = wide ? 65537 : 65536;
        file.header.target_vocabulary = 9;
        file.stamp = "stamp";
        file.note = "a note";
        file.header.shards = 2;
        file.header.stamp_bytes = file.stamp.size();
        file.header.note_bytes = file.note.size();
        file.entries.resize(2);
        // Two pairs, one empty, then one pair: ends, ends, words, words.
        file.data = numbers(std::uint32_t{2}, std::uint32_t{2}, std::uint32_t{0}, std::uint32_t{1});
        file.data +=
            wide ? numbers(std::uint32_t{4}, std::uint32_t{65536}) : numbers(std::uint16_t{4}, std::uint16_t{5});
        file.data += numbers(std::uint16_t{8});
        const std::size_t second = file.data.size();
        file.data += numbers(std::uint32_t{1}, std::uint32_t{0});
        file.data += wide ? numbers(std::uint32_t{7}) : numbers(std::uint16_t{7});
        file.entries[0] = {file.front(), {2, 2, 1}, 0};
        file.entries[1] = {file.front() + second, {1, 1, 0}, 0};
        file.header.bytes = file.front() + file.data.size();
        file.hash();
        all.push_back(file.bytes());
    }
    return all;
}

const registered target({"shards", run, seeds, mutate});

}  // namespace fuzz::shards
