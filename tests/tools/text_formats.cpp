// SPDX-License-Identifier: BSD-3-Clause
//
// heed reads every text format that it writes, with words that are special in some format.

#include "../../tools/support/nbest.hpp"
#include "../../tools/translate/dictionary.hpp"
#include "../../tools/translate/log_columns.hpp"
#include "../../tools/translate/phrases.hpp"
#include "../../tools/translate/training_log.hpp"

#include <heed/core/random.hpp>
#include <heed/io/safetensors.hpp>
#include <heed_kit/metrics/alignment_error.hpp>
#include <heed_kit/text/bpe.hpp>
#include <heed_kit/text/corpus.hpp>
#include <heed_kit/text/learn_bpe.hpp>
#include <heed_kit/text/vocabulary.hpp>

#include <doctest/doctest.h>

#include <support/temporary_directory.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

using namespace heed::text;

namespace {

/// Words that a text may have: UTF-8 without ASCII white space and NUL.
const std::vector<std::string> hostile{"|||",
                                       "||",
                                       "|",
                                       "||||",
                                       "a|||b",
                                       "&#124;&#124;&#124;",
                                       "&amp;#124;&#124;&#124;",
                                       "&amp;amp;#124;&#124;&#124;",
                                       "&#124;",
                                       "&amp;",
                                       "&",
                                       "&amp;|||",
                                       "&#124;&#124;|",
                                       "\xC2\xA0",
                                       "a\xC2\xA0"
                                       "b",
                                       "\xE2\x80\xA8",
                                       "\xE2\x80\xA9",
                                       "\xE3\x80\x80",
                                       "\xEF\xBB\xBF",
                                       "\xEF\xBB\xBF"
                                       "a",
                                       "\xC2\x85",
                                       "\"",
                                       "\"\"",
                                       "'",
                                       ",",
                                       ",,",
                                       ";",
                                       "\\",
                                       "\\n",
                                       "\\\\",
                                       "@@",
                                       "a@@",
                                       "@@@",
                                       "-",
                                       "0-0",
                                       "1p2",
                                       "0",
                                       "-1",
                                       "1e5",
                                       "nan",
                                       "#",
                                       "#version:",
                                       "0.2",
                                       "NULL",
                                       "</w>",
                                       "a</w>",
                                       "\x01",
                                       "\x1B[0m",
                                       "\x1C",
                                       "\x7F",
                                       "=",
                                       "a=b",
                                       "====",
                                       "%",
                                       "$HOME",
                                       "<unk>",
                                       "<s>",
                                       "</s>",
                                       "<pad>",
                                       "{",
                                       "}",
                                       "[",
                                       "]",
                                       "▁",
                                       "￭",
                                       "↓",
                                       "word",
                                       "ß",
                                       "\xF0\x9F\x98\x80"};

struct draws {
    std::uint64_t stream, next = 0;
    std::size_t below(std::size_t bound) { return static_cast<std::size_t>(heed::below(bound, stream, next++)); }
    sentence words(std::size_t least, std::size_t most)
    {
        sentence result(least + below(most - least + 1));
        for (std::string& each : result) each = hostile[below(hostile.size())];
        return result;
    }
};

/// The sentences that a program reads from a file with these contents.
std::vector<sentence> read(const std::string& contents)
{
    std::istringstream stream(contents);
    return read_corpus(stream, "file", empty_lines::keep);
}

/// A language whose vocabulary contains each of the words.
heed::translator::language language_of(const std::vector<std::string>& words)
{
    heed::translator::language result;
    result.vocabulary = vocabulary::build(std::vector<sentence>{words});
    return result;
}

}  // namespace

TEST_CASE("n-best lists survive a round trip")
{
    heed::random_source random{1};
    for (std::size_t round = 0; round < 300; ++round) {
        draws draw{random.next_stream()};
        std::string file;
        std::vector<sentence> written;
        for (std::size_t i = 0; i < 5; ++i) {
            written.push_back(draw.words(0, 4));
            file += program::nbest_text(i, join(written.back()), "-1.5 2") + '\n';
        }
        const std::vector<sentence> lines = read(file);
        REQUIRE(lines.size() == written.size());
        for (std::size_t i = 0; i < lines.size(); ++i) {
            const program::nbest_line line = program::parse_nbest(lines[i], "file:1");
            CHECK(line.index == i);
            CHECK(line.words == written[i]);
            CHECK(line.scores == sentence{"-1.5", "2"});
        }
    }
    // Ordinary words are written as by Moses.
    CHECK(program::nbest_text(3, "a || &amp; &#124; |a|", "-1") == "3 ||| a || &amp; &#124; |a| ||| -1");
    CHECK(program::nbest_text(3, "a ||| b", "-1") == "3 ||| a &#124;&#124;&#124; b ||| -1");
    CHECK(program::nbest_text(0, "", "-1") == "0 |||  ||| -1");
    CHECK(program::written_line(" a\t|||  b ") == " a\t&#124;&#124;&#124;  b ");
    CHECK_THROWS_AS(program::parse_nbest(split("0 ||| a ||| ||| -3.1"), "file:1"), heed::error);
}

TEST_CASE("phrase tables survive a round trip")
{
    const temporary_directory directory;
    const auto source = language_of(hostile), target = language_of(hostile);
    heed::random_source random{2};
    for (std::size_t round = 0; round < 100; ++round) {
        draws draw{random.next_stream()};
        const sentence phrase = draw.words(1, 4), words = draw.words(0, 5);
        CAPTURE(join(phrase));
        CAPTURE(join(words));
        const std::string line = translation::phrases_text(phrase, words) + "\nword ||| word\n";
        const auto table =
            translation::read_phrases(directory.write("phrases", after_byte_order_mark(line)), source, target);
        const std::vector<word_id> ids = source.vocabulary.encode(phrase);
        bool known = true;
        for (const std::string& each : phrase) known = known && source.vocabulary.contains(each);
        if (phrase == sentence{"word"}) continue;
        std::vector<word_id> wanted, found;
        for (const std::string& each : words)
            if (target.vocabulary.contains(each)) wanted.push_back(target.vocabulary.id(each));
        for (const auto& each : table.of(ids)) found.push_back(each.target);
        CHECK(table.size() == (known ? 2 : 1));
        if (known) CHECK(found == wanted);
    }
    CHECK(translation::phrases_text(split("a || b"), split("x &#124;")) == "a || b ||| x &#124;");
}

TEST_CASE("dictionaries")
{
    const temporary_directory directory;
    for (const std::string& first : hostile) {  // each starts a file
        std::string text;
        for (const std::string& word : {first, std::string("word")})
            for (std::size_t i = 0; i < 3; ++i)
                text +=
                    translation::dictionary_text(word, hostile[(word.size() + i) % hostile.size()], std::pow(1e-3, i)) +
                    '\n';
        const translation::dictionary read(directory.write("dictionary", after_byte_order_mark(text)));
        CAPTURE(first);
        const auto best = read.best();
        REQUIRE(best.contains(first));
        CHECK(best.at(first) == hostile[first.size() % hostile.size()]);
        CHECK(best.size() == (first == "word" ? 1 : 2));
    }
}

TEST_CASE("vocabularies survive a round trip, alone and in a model file")
{
    const vocabulary all = vocabulary::build(std::vector<sentence>{hostile});
    CHECK(vocabulary::from_text(all.to_text()) == all);
    const temporary_directory directory;
    heed::io::archive archive;
    archive.metadata["vocabulary"] = all.to_text();
    heed::io::save(directory.path() / "model", archive);
    CHECK(heed::io::load(directory.path() / "model").metadata.at("vocabulary") == all.to_text());
    // Words that no text contains: a vocabulary in memory may have them.
    for (const std::string word : {"", "a b", "\t", "a\n", "\r", "\v"}) {
        CAPTURE(word);
        const vocabulary one = vocabulary::build(std::vector<sentence>{{word}});
        CHECK(one.contains(word));
        CHECK_THROWS_WITH_AS(one.to_text(), doctest::Contains("vocabulary: word 4 "), heed::error);
    }
    archive.metadata["vocabulary"] = vocabulary::build(std::vector<sentence>{{"\xFF"}}).to_text();
    CHECK_THROWS_AS(heed::io::save(directory.path() / "model", archive), heed::error);
}

TEST_CASE("byte-pair codes survive a round trip, and subwords become words again")
{
    word_counts counts;
    for (std::size_t i = 0; i < hostile.size(); ++i) counts[hostile[i]] += 2 + i % 3;
    const bpe_codes codes = learn_bpe(counts, 60);
    REQUIRE(codes.size() > 20);
    CHECK(bpe_codes::from_text(codes.to_text()) == codes);
    heed::random_source random{3};
    bpe pieces(codes);
    for (std::size_t round = 0; round < 200; ++round) {
        draws draw{random.next_stream()};
        const sentence words = draw.words(0, 5);
        CAPTURE(join(words));
        const sentence cut = pieces.apply(words);
        CHECK(undo_bpe(cut) == words);
        // As a file of subwords.
        const std::vector<sentence> lines = read(after_byte_order_mark(join(cut) + "\n"));
        REQUIRE(lines.size() == 1);
        CHECK(lines[0] == cut);
    }
}

TEST_CASE("links")
{
    namespace metrics = heed::metrics;
    const int last = std::numeric_limits<int>::max();
    const metrics::links all{{0, 0}, {last, 0}, {3, last}};
    CHECK(metrics::parse_links(metrics::pharaoh(all)) == all);
    CHECK(metrics::parse_gold(metrics::pharaoh({}, all)).possible == all);
    CHECK_THROWS_WITH_AS(metrics::pharaoh({{0, -1}}), "pharaoh: the link 0--1; positions count from 0", heed::error);
    CHECK_THROWS_AS(metrics::pharaoh({}, {{-1, 0}}), heed::error);
}

TEST_CASE("logs")
{
    const temporary_directory directory;
    constexpr double infinite = std::numeric_limits<double>::infinity();
    const std::vector<double> losses{0, 1e-300, 1e300, infinite, -infinite, std::nan("")};
    const auto path = directory.path() / "log.csv";
    translation::training_log log(path);
    log.begin(false, 0);
    for (std::size_t i = 0; i < losses.size(); ++i)
        log.add({i, i, losses[i], losses[i], losses[i], losses[i], losses[i],
                 i % 2 == 0 ? std::nullopt : std::optional(losses[i])});
    const auto columns = translation::read_columns(path, "epoch", "validation_loss");
    REQUIRE(columns.ys.size() == losses.size());
    for (std::size_t i = 0; i < losses.size(); ++i) {
        CHECK(columns.xs[i] == static_cast<double>(i));
        CHECK((std::isnan(losses[i])
                   ? std::isnan(columns.ys[i])
                   : columns.ys[i] == losses[i] || std::abs(columns.ys[i] - losses[i]) <= 1e-6 * losses[i] + 1e-6));
    }
    translation::training_log again(path);
    again.begin(true, losses.size());
    CHECK(translation::read_columns(path, "epoch", "validation_loss").ys.size() == losses.size());
}
