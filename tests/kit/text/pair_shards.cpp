// SPDX-License-Identifier: BSD-3-Clause
#include <heed_kit/text/pair_shards.hpp>
#include <heed_kit/text/spilled_numbers.hpp>
#include <heed_kit/text/word_table.hpp>

#include <heed/core/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "support/temporary_directory.hpp"

using namespace heed::text;

namespace {

/// Sentence i of a side: sometimes empty, its words below `words`.
std::vector<word_id> sentence_of(std::size_t i, std::uint64_t side, std::size_t words)
{
    std::vector<word_id> ids(heed::below(9, side, i));
    for (std::size_t k = 0; k < ids.size(); ++k)
        ids[k] = static_cast<word_id>(heed::below(words, heed::mix(side + i), k));
    return ids;
}

}  // namespace

TEST_CASE("shards keep all sentences, in 2 or 4 bytes per word")
{
    const temporary_directory here;
    for (const auto& sizes_of : std::vector<std::array<std::size_t, 2>>{{65536, 3}, {65537, 1}, {65536, 701}}) {
        const std::size_t vocabulary = sizes_of[0], shards = sizes_of[1];
        const std::filesystem::path path = here.path() / ("pairs" + std::to_string(shards));
        const std::size_t pairs = 30000;
        // With many shards, a few get most sentences, so that they are written in several parts.
        const auto shard_of = [&](std::size_t i) { return shards > 9 && i % 2 == 0 ? i / 2 % 9 : i * i % shards; };
        std::vector<shard_size> sizes(shards);
        std::vector<std::vector<word_id>> sources, targets;
        for (std::size_t i = 0; i < pairs; ++i) {
            sources.push_back(sentence_of(i, 1, vocabulary));
            targets.push_back(sentence_of(i, 2, 100));
            shard_size& one = sizes[shard_of(i)];
            one.pairs += 1;
            one.source_words += sources[i].size();
            one.target_words += targets[i].size();
        }
        {
            pair_shards_writer file(path, sizes, vocabulary, 100, "stamp", "a note");
            for (std::size_t i = 0; i < pairs; ++i) file.add(shard_of(i), sources[i], targets[i]);
            CHECK_THROWS_WITH_AS(
                file.add(0, {}, {}),
                (path.string() + ": shard 1 has no room for this pair; its size was given to the constructor").c_str(),
                heed::error);
            CHECK(!std::filesystem::exists(path));
            file.commit();
        }
        const pair_shards file(path);
        CHECK(file.size() == shards);
        CHECK(file.pairs() == pairs);
        CHECK(file.stamp() == "stamp");
        CHECK(file.note() == "a note");
        CHECK(file.source_vocabulary() == vocabulary);
        CHECK(file.target_vocabulary() == 100);
        std::vector<id_pairs> read;
        for (std::size_t s = 0; s < shards; ++s) {
            CHECK(file.size_of(s) == sizes[s]);
            read.push_back(file.read(s));
        }
        std::vector<std::size_t> next(shards, 0);
        bool same = true;
        for (std::size_t i = 0; i < pairs; ++i) {
            const std::size_t s = shard_of(i), at = next[s]++;
            same = same && read[s].source[at] == sources[i] && read[s].target[at] == targets[i] &&
                   read[s].source.words(at) == sources[i].size();
        }
        CHECK(same);

        // A changed byte of the header is detected when the file is opened, one of a shard when the shard is read.
        // Shards start at multiples of 4096 and leave unused bytes before them.
        std::ifstream whole(path, std::ios::binary);
        const std::string good{std::istreambuf_iterator<char>(whole), {}};
        for (const std::size_t place :
             {std::size_t{9}, std::size_t{70}, std::size_t{4096}, good.size() / 8192 * 4096, good.size() - 1}) {
            std::string bad = good;
            bad[place] = static_cast<char>(bad[place] ^ 1);
            std::ofstream(path, std::ios::binary) << bad;
            CHECK_THROWS_AS(
                [&] {
                    const pair_shards changed(path);
                    for (std::size_t s = 0; s < shards; ++s) changed.read(s);
                }(),
                heed::error);
        }
        for (const std::size_t size :
             {std::size_t{0}, std::size_t{63}, std::size_t{64}, std::size_t{200}, good.size() - 1}) {
            std::ofstream(path, std::ios::binary) << good.substr(0, size);
            CHECK_THROWS_AS(pair_shards{path}, heed::error);
        }
    }
}

TEST_CASE("spilled numbers are kept beyond the memory limit")
{
    const temporary_directory here;
    for (const std::size_t most : std::vector<std::size_t>{1, 7, 1000, 100000}) {
        spilled_numbers numbers(here.path(), most);
        for (std::uint32_t i = 0; i < 70000; ++i) numbers.push_back(i * i);
        CHECK(numbers.size() == 70000);
        for (int again = 0; again < 2; ++again) {
            spilled_numbers::reader each(numbers);
            bool same = true;
            std::vector<std::uint32_t> some;
            for (std::uint32_t i = 0; i < 70000;) {
                same = same && each.next() == i * i;
                ++i;
                each.next(std::min<std::size_t>(i % 5, 70000 - i), some);
                for (const std::uint32_t number : some) same = same && number == i * i, ++i;
            }
            CHECK(same);
            CHECK_THROWS_AS(each.next(), heed::error);
        }
    }
    CHECK(std::filesystem::is_empty(here.path()));
}

TEST_CASE("a word table numbers words in order of appearance, and counts them")
{
    word_table table;
    std::map<std::string, std::size_t> counts;
    std::vector<std::string> order;
    for (std::size_t i = 0; i < 20000; ++i) {
        const std::string word = "w" + std::to_string(heed::below(5000, 1, i));
        if (counts[word]++ == 0) order.push_back(word);
        CHECK(order[table.see(word)] == word);
    }
    REQUIRE(table.size() == order.size());
    for (std::uint32_t k = 0; k < table.size(); ++k) {
        CHECK(table.word(k) == order[k]);
        CHECK(table.count(k) == counts[order[k]]);
    }
    CHECK(order[table.see(order[5], 0)] == order[5]);
    CHECK(table.count(5) == counts[order[5]]);
}
