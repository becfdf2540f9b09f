// SPDX-License-Identifier: BSD-3-Clause
#include <heed_kit/text/bpe.hpp>
#include <heed_kit/text/learn_bpe.hpp>

#include <doctest/doctest.h>

#include <support/temporary_directory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace heed::text;

namespace {

using merges = std::vector<bpe_merge>;

/// Codes learned from the words of a text.
merges learned(const std::string& text, std::size_t count, std::uint64_t least = 2)
{
    word_counts words;
    count_words(words, std::vector<sentence>{split(text)});
    return learn_bpe(words, count, least).merges();
}

std::string applied(bpe& to, const std::string& line) { return join(to.apply(split(line))); }

std::string undone(const std::string& line) { return join(undo_bpe(split(line))); }

template <class Body>
std::string problem(Body body)
{
    try {
        body();
    } catch (const heed::error& caught) {
        return caught.what();
    }
    return "no error";
}

std::string problem_with(const std::string& file)
{
    return problem([&] {
        std::istringstream stream(file);
        bpe_codes::read(stream, "codes");
    });
}

/// Learning and applying by definition: every merge scans all words.
namespace plain {

void merge(sentence& symbols, const bpe_merge& what)
{
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
        if (symbols[i] != what.left || symbols[i + 1] != what.right) continue;
        symbols[i] += symbols[i + 1];
        symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
}

/// For an ASCII word.
sentence symbols(const std::string& word)
{
    sentence result;
    for (const char each : word) result.emplace_back(1, each);
    result.back() += "</w>";
    return result;
}

merges learn(const word_counts& words, std::size_t count)
{
    std::vector<std::pair<sentence, std::uint64_t>> all;
    for (const auto& [word, often] : words) all.emplace_back(symbols(word), often);
    merges result;
    while (result.size() < count) {
        std::map<std::pair<std::string, std::string>, std::uint64_t> pairs;
        for (const auto& [word, often] : all)
            for (std::size_t i = 0; i + 1 < word.size(); ++i) pairs[{word[i], word[i + 1]}] += often;
        auto best = pairs.end();
        for (auto each = pairs.begin(); each != pairs.end(); ++each)
            if (each->second >= 2 && (best == pairs.end() || each->second >= best->second)) best = each;
        if (best == pairs.end()) break;
        result.push_back({best->first.first, best->first.second});
        for (auto& [word, often] : all) merge(word, result.back());
    }
    return result;
}

sentence pieces(const std::string& word, const merges& codes)
{
    sentence result = symbols(word);
    for (bool more = true; more;) {
        more = false;
        for (const bpe_merge& each : codes) {
            const sentence before = result;
            merge(result, each);
            if ((more = result != before))
                break;  // applies the first merge that fits, then starts again from the first
        }
    }
    result.back().resize(result.back().size() - 4);
    return result;
}

}  // namespace plain

/// Random numbers below a bound.
struct dice {
    unsigned state;
    unsigned operator()(unsigned below) { return (state = state * 1664525u + 1013904223u) / 65536u % below; }

    std::string word(unsigned letters, unsigned longest)
    {
        std::string result;
        for (unsigned i = 0, length = 1 + (*this)(longest); i < length; ++i)
            result += static_cast<char>('a' + (*this)(letters));
        return result;
    }
};

}  // namespace

TEST_CASE("the paper's example")
{
    // low 5, lower 2, newest 6, widest 3: "e s" and "es t</w>" occur 9 times, "l o" 7 times. "s t</w>" also occurs 9
    // times, and sorts last.
    const std::string text = "low low low low low lower lower newest newest newest newest newest newest "
                             "widest widest widest";
    const merges first = learned(text, 4);
    CHECK(first == merges{{"s", "t</w>"}, {"e", "st</w>"}, {"l", "o"}, {"w", "est</w>"}});

    bpe with{bpe_codes(first)};
    CHECK(applied(with, "low lowest newest widest") == "lo@@ w lo@@ west n@@ e@@ west w@@ i@@ d@@ est");
    CHECK(applied(with, "x estate st t") == "x e@@ s@@ t@@ a@@ t@@ e st t");
    CHECK(undone(applied(with, "low lowest newest widest")) == "low lowest newest widest");
}

TEST_CASE("among equally frequent pairs, the one that sorts last by code points is merged")
{
    CHECK(learned("ab ab cd cd", 1) == merges{{"c", "d</w>"}});
    CHECK(learned("abx abx acx acx", 1) == merges{{"c", "x</w>"}});
    CHECK(learned("ab ab ac ac", 2) == merges{{"a", "c</w>"}, {"a", "b</w>"}});
    // The left symbol decides, not the concatenation: "a" < "ab", so "ab c…" comes before "a d…", though "adx" > "abc".
    CHECK(learned("abc abc abc abq abq ad ad ad", 3) == merges{{"a", "b"}, {"ab", "c</w>"}, {"a", "d</w>"}});
    // U+1F600 is above U+FFFD; in UTF-16 it would come first.
    CHECK(learned("\U0001F600a \U0001F600a \uFFFDa \uFFFDa", 1) == merges{{"\U0001F600", "a</w>"}});
    CHECK(learned("za za \u00E9a \u00E9a", 1) == merges{{"\u00E9", "a</w>"}});
}

TEST_CASE("rare pairs are not merged")
{
    CHECK(learned("ab cd", 10).empty());
    CHECK(learned("ab ab cd", 10) == merges{{"a", "b</w>"}});
    CHECK(learned("ab ab cd", 10, 1) == merges{{"a", "b</w>"}, {"c", "d</w>"}});
    CHECK(learned("ab ab cd", 10, 0) == learned("ab ab cd", 10, 1));
    CHECK(learned("ab ab cd", 10, 3).empty());
    CHECK(learned("a b c a b c", 10).empty());
    CHECK(learned("ab ab", 0).empty());
    CHECK(problem([] { learn_bpe({}, 10); }) == "byte-pair encoding: no words to learn from; at least one is required");
}

TEST_CASE("a symbol next to itself is merged from the left")
{
    // Three times "a" and a final "a": "a a" occurs twice, overlapping. Merged from the left: "aa a a</w>".
    CHECK(learned("aaaa aaaa", 3) == merges{{"a", "a"}, {"aa", "a"}, {"aaa", "a</w>"}});
    bpe with{bpe_codes(merges{{"a", "a"}})};
    CHECK(applied(with, "aaaa aaa aa a aaaaax") == "aa@@ a@@ a aa@@ a a@@ a a aa@@ aa@@ a@@ x");
}

TEST_CASE("merges are applied in the order in which they were learned, each at every position")
{
    bpe early{bpe_codes(merges{{"b", "c"}, {"a", "b"}})};
    CHECK(applied(early, "abcd") == "a@@ bc@@ d");
    bpe late{bpe_codes(merges{{"a", "b"}, {"b", "c"}})};
    CHECK(applied(late, "abcd") == "ab@@ c@@ d");
    // "ab" + "c" and "a" + "bc" are one symbol. The earlier "abc a" must not take the a of the second "a bc".
    bpe twice{bpe_codes(merges{{"b", "c"}, {"abc", "a"}, {"a", "bc"}})};
    CHECK(applied(twice, "abcabcx") == "abc@@ abc@@ x");
    CHECK(applied(twice, "abcax") == "abca@@ x");
    // A merge listed twice has its first position; symbols without a merge are unchanged.
    bpe again{bpe_codes(merges{{"a", "b"}, {"b", "c"}, {"a", "b"}})};
    CHECK(applied(again, "abc? ?") == "ab@@ c@@ ? ?");
}

TEST_CASE("learning and applying equal the definition on random words of few letters")
{
    for (unsigned seed = 0; seed < 150; ++seed) {
        CAPTURE(seed);
        dice random{seed};
        const unsigned letters = 1 + random(3);
        word_counts words;
        for (int i = 0; i < 12; ++i) words[random.word(letters, 16)] += 1 + random(3);
        const merges expected = plain::learn(words, 60);
        const bpe_codes codes = learn_bpe(words, 60);
        REQUIRE(codes.merges() == expected);
        // Also shuffled codes, which cannot be learned.
        merges shuffled = expected;
        for (std::size_t i = shuffled.size(); i > 1; --i)
            std::swap(shuffled[i - 1], shuffled[random(static_cast<unsigned>(i))]);
        for (const merges& each : {expected, shuffled}) {
            const bpe with{bpe_codes(each)};
            for (int i = 0; i < 10; ++i) {
                const std::string word = random.word(letters, 24);
                REQUIRE(with.pieces(word) == plain::pieces(word, each));
            }
        }
    }
}

TEST_CASE("characters are code points")
{
    CHECK(learned("\u00FCb \u00FCb", 5) == merges{{"\u00FC", "b</w>"}});
    bpe none{bpe_codes()};
    CHECK(applied(none, "\u00FCber \U0001F600\U0001F600 \u4F60\u597D") ==
          "\u00FC@@ b@@ e@@ r \U0001F600@@ \U0001F600 \u4F60@@ \u597D");
    CHECK(none.pieces("").empty());
    CHECK(problem([&] { none.pieces("ab\xC3"); }) ==
          "byte-pair encoding: byte 3 of the word \"ab\uFFFD\" is not valid UTF-8");
    CHECK(problem([] {
              learn_bpe({{"\xE9t\xE9", 1}}, 1);
          }) == "byte-pair encoding: byte 1 of the word \"\uFFFDt\uFFFD\" is not valid UTF-8");
}

TEST_CASE("undoing restores any words")
{
    const std::string text = "the cat @@ a@@ @@@ @@@@ a@@b @@b @ @a @ </w> a</w> </w></w> <unk> -- ---- ----- a\u00A0b "
                             "the cat @@ a@@ @@@ @@@@ a@@b @@b @ @a @ </w> a</w> </w></w> <unk> -- ---- ----- a\u00A0b";
    for (const std::size_t count : {0u, 1u, 3u, 7u, 20u, 1000u}) {
        CAPTURE(count);
        bpe with{bpe_codes(learned(text, count))};
        CHECK(undone(applied(with, text)) == text);
        for (const std::string& word : split(text)) {
            CHECK(undone(applied(with, word)) == word);
            CHECK(undone(applied(with, word + " next")) == word + " next");
            CHECK(join(with.pieces(word), "") == word);
        }
    }
    CHECK(undo_bpe(sentence{}).empty());
}

TEST_CASE("a model's output is undone")
{
    CHECK(undone("a low@@ est b@@ i@@ d") == "a lowest bid");
    CHECK(undone("a b@@") == "a b");  // the output was truncated
    CHECK(undone("a @@") == "a");
    CHECK(undone("@@") == "");
    CHECK(undone("@@ @@ a") == "a");
    CHECK(undone("a@@ <unk> b") == "a<unk> b");
}

TEST_CASE("words are cached, and a copy is independent")
{
    bpe with{bpe_codes(merges{{"a", "b</w>"}})};
    CHECK(applied(with, "ab ab cab") == "ab ab c@@ ab");
    bpe copy = with;
    CHECK(applied(copy, "ab ab cab") == "ab ab c@@ ab");
    CHECK(with.apply(std::vector<sentence>{{"ab"}, {}, {"ba"}}) == std::vector<sentence>{{"ab"}, {}, {"b@@", "a"}});
}

TEST_CASE("a word of a hundred thousand characters is split")
{
    std::string word;
    unsigned state = 1;
    for (int i = 0; i < 100000; ++i) {
        state = state * 1664525u + 1013904223u;
        word += static_cast<char>('a' + state / 65536u % 7u);
    }
    const bpe_codes codes = learn_bpe({{word, 1}}, 200);
    CHECK(codes.size() == 200);
    const std::vector<std::string> pieces = bpe(codes).pieces(word);
    CHECK(pieces.size() < 50000);
    CHECK(join(pieces, "") == word);
}

TEST_CASE("code files are written and read")
{
    const bpe_codes codes(merges{{"e", "r</w>"}, {"t", "h"}, {"\u00FC", "b"}});
    CHECK(codes.to_text() == "#version: 0.2\ne r</w>\nt h\n\u00FC b\n");
    CHECK(bpe_codes::from_text(codes.to_text()) == codes);
    CHECK(bpe_codes::from_text(bpe_codes().to_text()).size() == 0);

    const auto& three = codes.merges();
    for (const char* file :
         {"#version: 0.2\r\ne r</w>\r\nt h\r\n\u00FC b\r\n", "#version: 0.2\ne r</w>\nt h\n\u00FC b",
          "#version: 0.2\ne r</w> \nt h\n\u00FC b\n\n\n", "\uFEFF#version: 0.2\ne r</w>\nt h\n\u00FC b\n"})
        CHECK(bpe_codes::from_text(file).merges() == three);
    // Listed twice; written as read.
    const std::string twice = "#version: 0.2\na b\nb c\na b\n";
    CHECK(bpe_codes::from_text(twice).to_text() == twice);

    const temporary_directory directory;
    CHECK(bpe_codes::read(directory.write("codes", codes.to_text())) == codes);
}

TEST_CASE("a file without valid codes is rejected with the location of the error")
{
    CHECK(problem_with("") == "codes: is empty; the first line must be \"#version: 0.2\"");
    CHECK(problem_with("\n") == "codes:1: not a code file: the first line must be \"#version: 0.2\"");
    CHECK(problem_with("a b\nc d\n") == "codes:1: not a code file: the first line must be \"#version: 0.2\"");
    CHECK(problem_with("#version: 0.1\na b\n") ==
          "codes:1: codes have version \"0.1\"; the first line must be \"#version: 0.2\"");
    CHECK(problem_with("#version: 0.2 byte\na b\n") ==
          "codes:1: codes have version \"0.2 byte\"; the first line must be \"#version: 0.2\"");
    CHECK(problem_with("#version:\na b\n") ==
          "codes:1: codes have version \"\"; the first line must be \"#version: 0.2\"");
    CHECK(problem_with("#version: 0.2\na b\nab\n") ==
          "codes:3: 1 symbol; each line must be two symbols with a space between them");
    CHECK(problem_with("#version: 0.2\na b c\n") ==
          "codes:2: 3 symbols; each line must be two symbols with a space between them");
    CHECK(problem_with("#version: 0.2\na b\n\n\nc d\n") ==
          "codes:3: a blank line between merges; each line must be two symbols with a space between them");
    CHECK(problem_with("#version: 0.2\na b\nc \xE9\n") ==
          "codes:3:3: byte 0xe9 is not valid UTF-8; save the text as UTF-8");
    CHECK(problem_with(std::string("#version: 0.2\na \0\n", 18)) ==
          "codes:2:3: byte 0x00 is not allowed in text; this may be a binary or UTF-16 file");
    CHECK(problem([] { bpe_codes::read(std::filesystem::path("no such file")); }) ==
          "no such file: cannot be opened: No such file or directory");
    CHECK(problem([] {
              bpe_codes(merges{{"a", "b"}, {"a", ""}});
          }) ==
          "byte-pair codes: merge 2 has the symbol \"\"; symbols must be UTF-8 without white space, and not empty");
    for (const char* bad : {"a b", "\xFF", "\t"}) CHECK_THROWS_AS(bpe_codes(merges{{bad, "b"}}), heed::error);
}
