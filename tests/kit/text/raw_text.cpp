// SPDX-License-Identifier: BSD-3-Clause
#include <heed_kit/text/raw_text.hpp>

#include <doctest/doctest.h>

#include <support/exhaustive.hpp>

#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace heed::text;

namespace {

const std::vector<std::string> english{"A man is sleeping.",
                                       "The man walks; the dog sleeps.",
                                       "A dog is walking to the house of Tom.",
                                       "Is Tom sleeping? No, he is walking in the USA!",
                                       "“It's a dog,” he said.",
                                       "He said that I am the man (30)."};

std::string back(const raw_text& text, const sentence& tokens)
{
    const written_line line = text.write(tokens);
    return spaced(line.words, line.joined);
}

/// The line after a round trip; also checks that words, bytes and tokens of both lines are equal.
std::string round_trip(const raw_text& text, const std::string& line)
{
    const tokenized_line read = text.read(line);
    const written_line written = text.write(read.tokens);
    CHECK(written.words == read.words);
    CHECK(written.tokens_of == read.tokens_of);
    const std::string normal = normalize(line);
    REQUIRE(read.spans.size() == read.words.size());
    std::size_t next = 0, count = 0;
    for (std::size_t i = 0; i < read.words.size(); ++i) {
        const auto [begin, end] = read.spans[i];
        CHECK(normal.substr(begin, end - begin) == read.words[i]);
        CHECK(begin >= next);
        for (; next < begin; ++next) CHECK(normal[next] == ' ');
        next = end;
        for (const std::size_t token : read.tokens_of[i]) CHECK(token == count++);
    }
    CHECK(next == normal.size());
    CHECK(count == read.tokens.size());
    return spaced(written.words, written.joined);
}

}  // namespace

TEST_CASE("the code of docs/how_to/raw_text.md")
{
    namespace text = heed::text;
    // section: tokens
    const std::vector<std::string> lines{"The man or a dog reads.", "A man reads; the dog (or a man) sleeps."};
    const auto cut = text::raw_text::learn(lines, {.pieces = 60});
    const text::tokenized_line line = cut.read("The dog (or a man) reads.");
    // line.words   The  dog  (  or  a  man  )  reads  .
    // line.tokens  ▁the ▁dog ▁(￭ ▁or ▁a ▁man ￭) ▁reads ￭.     rarer words have several subwords

    const text::written_line again = cut.write(line.tokens);
    const std::string same = text::spaced(again.words, again.joined);  // "The dog (or a man) reads."

    const std::string stored = cut.to_text();  // for a file
    const auto loaded = text::raw_text::from_text(stored);
    // end
    CHECK(line.words == sentence{"The", "dog", "(", "or", "a", "man", ")", "reads", "."});
    CHECK(line.tokens == sentence{"▁the", "▁dog", "▁(￭", "▁or", "▁a", "▁man", "￭)", "▁reads", "￭."});
    CHECK(same == "The dog (or a man) reads.");
    CHECK(loaded == cut);
}

TEST_CASE("a line becomes tokens")
{
    const raw_text text = raw_text::learn(english, {.pieces = 60});
    const tokenized_line line = text.read("The dog (30).");
    CHECK(line.tokens.front() == "▁the");
    CHECK(line.tokens[1] == "▁dog");
    CHECK(line.tokens[2] == "▁(￭");
    CHECK(line.tokens[line.tokens.size() - 2] == "￭)");
    CHECK(line.tokens.back() == "￭.");
    CHECK(line.words == sentence{"The", "dog", "(", "30", ")", "."});
    CHECK_FALSE(line.shouted);
    CHECK(back(text, line.tokens) == "The dog (30).");
    CHECK(back(text, {"▁a", "▁dog", "￭.", "▁he", "▁said"}) == "A dog. He said");
}

TEST_CASE("any line survives a round trip")
{
    const std::vector<std::string> lines{"A man is sleeping.",
                                         "a man. is sleeping? yes! IN THE usa",
                                         "iPhone and McDonald's: 3.14, 1,000.5; 5km",
                                         "„Ja“, sagte er – leise… ‚so‘ »und« so",
                                         "Qu’est-ce que c’est ?  « Bonjour ! »",
                                         "Žluťoučký kůň úpěl ďábelské ódy",
                                         "https://example.org/a_b?c=d&e=%20#f mail@example.org",
                                         "👩‍🚀👍🏽 🇩🇪 text️⃣ 1️⃣",
                                         "e\u0301\u0301 \u0308 x\u200Dy \u00AD- \u200B.",
                                         "▁￭↓ ↓a ￭￭ ▁▁x ￭. <unk> </s> <pad> <s> <0x41> @@ a@@",
                                         "ΣΟΦΟΣ Σοφός. ß ẞ. ß. ǆ. ǅ. ŉ. İstanbul. ıı. ﬁ. ﬁx",
                                         "日本語のテキスト。ภาษาไทย हिन्दी العربية",
                                         "\u00A0\u202F",
                                         "",
                                         ".",
                                         "...!!!",
                                         "_ __init__ _x_",
                                         std::string(3000, 'a') + " " + std::string(1000, '.') + "ü"};
    for (const raw_text_options& how :
         {raw_text_options{.pieces = 60}, raw_text_options{.pieces = 60, .kind = "unigram"},
          raw_text_options{.pieces = 60, .casing = false}}) {
        const raw_text text = raw_text::learn(english, how);
        for (const std::string& line : lines) {
            CAPTURE(line);
            CHECK(round_trip(text, line) == normalize(line));
        }
    }
}

TEST_CASE("lines of arbitrary characters survive a round trip")
{
    const raw_text text = raw_text::learn(english, {.pieces = 60});
    const std::vector<std::string> parts{"a",      "B",      "ß", "The", " ", " ", ".",      "?", "'",
                                         "’",      "\u0301", "￭", "▁",   "↓", "1", ",",      "👍", "\u200D",
                                         "\u00A0", "日",     "й", "Ǆ",   "_", "-", "\u00AD", "ŉ"};
    std::mt19937 random(7);
    for (std::size_t n = 0; n < 2000; ++n) {
        std::string line;
        for (std::size_t length = random() % 12; length > 0; --length) line += parts[random() % parts.size()];
        CAPTURE(line);
        REQUIRE(round_trip(text, line) == normalize(line));
        REQUIRE_NOTHROW(text.read_forgiving(line));
    }
}

TEST_CASE("casing of a source sentence")
{
    const raw_text text = raw_text::learn(english, {.pieces = 200});
    const sentence usual = text.read("The man is in the USA.").tokens;
    const tokenized_line loud = text.read_forgiving("THE MAN IS IN THE USA.");
    CHECK(loud.shouted);
    CHECK(loud.tokens == usual);
    CHECK(loud.words == sentence{"THE", "MAN", "IS", "IN", "THE", "USA", "."});
    CHECK(text.read_forgiving("the man is in the usa.").tokens == usual);
    CHECK(text.read_forgiving("the man is in the usa.").shouted == false);
    CHECK(text.read_forgiving("The MAN is in the USA.").tokens == usual);
    CHECK(text.read_forgiving("The man is in the USA.").tokens == usual);
    CHECK(text.read_forgiving("USA!").shouted == false);  // one word is not enough evidence
    CHECK(text.shout("straße 1") == "STRASSE 1");

    const raw_text plain = raw_text::learn(english, {.pieces = 200, .casing = false});
    CHECK(plain.read_forgiving("THE MAN IS").tokens == plain.read("THE MAN IS").tokens);
    CHECK(plain.read("The man").tokens.front() == "▁The");
}

TEST_CASE("text that never begins with a capital keeps its casing")
{
    const std::vector<std::string> lower{"a man is sleeping .", "a dog is walking ."};
    const raw_text text = raw_text::learn(lower, {.pieces = 60});
    CHECK(text.read("a man .").tokens.front() == "▁a");
    CHECK(back(text, {"▁a", "▁man"}) == "a man");
    CHECK(round_trip(text, "A man .") == "A man .");
}

TEST_CASE("a written model can be read")
{
    for (const std::string kind : {"bpe", "unigram"}) {
        const raw_text text = raw_text::learn(english, {.pieces = 60, .kind = kind});
        CHECK(raw_text::learn(english, {.pieces = 60, .kind = kind}) == text);
        const std::string written = text.to_text();
        const raw_text again = raw_text::from_text(written);
        CHECK(again == text);
        CHECK(again.to_text() == written);
        CHECK(again.read("Tom walked – 3 dogs!").tokens == text.read("Tom walked – 3 dogs!").tokens);

        // Truncated anywhere, or with any byte changed: an error or a different text, but no crash.
        for (std::size_t size = 0; size < written.size(); size += 7) {
            try {
                raw_text::from_text(written.substr(0, size)).read("Tom walked.");
            } catch (const heed::error&) {}
        }
        std::mt19937 random(3);
        for (std::size_t n = 0; n < 300; ++n) {
            std::string forged = written;
            forged[random() % forged.size()] = static_cast<char>(random() % 256);
            try {
                raw_text::from_text(forged).read("Tom walked.");
            } catch (const heed::error&) {}
        }
    }
    CHECK_THROWS_WITH_AS(raw_text::from_text("other\n"),
                         "raw text: its description begins with \"other\"; this program reads \"heed.raw_text/1\"",
                         heed::error);
    CHECK_THROWS_WITH_AS(raw_text::from_text("heed.raw_text/1\ncasing of words\n"),
                         "raw text: its description ends too early", heed::error);
}

TEST_CASE("bytes that are not text are rejected")
{
    const raw_text text = raw_text::learn(english, {.pieces = 60});
    CHECK_THROWS_AS(text.read("ab\xFF"), heed::error);
    CHECK_THROWS_AS(text.read_forgiving("\xE2\x82"), heed::error);
    CHECK(text.read(std::string("a\0b", 3)).words == sentence{"ab"});
    CHECK_THROWS_AS(raw_text::learn(std::vector<std::string>{"...", ""}), heed::error);
}

TEST_CASE("the time for a very long line is linear in its words")
{
    const raw_text text = raw_text::learn(english, {.pieces = 60});
    for (const std::string& part : {std::string("a"), std::string("the man. "), std::string("."), std::string("é")}) {
        std::string line;
        while (line.size() < (support::exhaustive() ? 1'000'000 : 200'000)) line += part;
        CHECK(back(text, text.read(line).tokens) == normalize(line));
    }
}

TEST_CASE("several threads may read and write concurrently")
{
    const raw_text text = raw_text::learn(english, {.pieces = 60});
    std::vector<std::string> expected;
    for (const std::string& line : english) expected.push_back(join(text.read_forgiving(line).tokens));
    std::vector<std::size_t> wrong(4);
    std::vector<std::thread> threads;
    for (std::size_t& count : wrong) {
        threads.emplace_back([&] {
            for (std::size_t n = 0; n < 200; ++n) {
                const std::string& line = english[n % english.size()];
                if (join(text.read_forgiving(line).tokens) != expected[n % english.size()]) ++count;
                if (back(text, text.read(line).tokens) != line) ++count;
            }
        });
    }
    for (std::thread& each : threads) each.join();
    CHECK(wrong == std::vector<std::size_t>(4));
}
