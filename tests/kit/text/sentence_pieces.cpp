// SPDX-License-Identifier: BSD-3-Clause
#include <heed_kit/text/sentence_pieces.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <map>
#include <string>
#include <vector>

using namespace heed::text;

namespace {

const std::map<std::string, std::size_t> counts{{"sleep", 9},   {"sleeping", 7}, {"walk", 8},  {"walking", 6},
                                                {"walked", 3},  {"the", 40},     {"this", 20}, {"größe", 2},
                                                {"schön", 3},   {"then", 5},     {"a", 30},    {"aß", 1},
                                                {"singing", 4}, {"sing", 5},     {"ring", 4},  {"ringing", 2}};

std::string joined(const sentence& pieces)
{
    std::string all;
    for (const std::string& each : pieces) all += each;
    return all;
}

std::string problem(const std::string& text)
{
    try {
        sentence_pieces::from_text(text);
    } catch (const heed::error& caught) {
        return caught.what();
    }
    return "no error";
}

}  // namespace

TEST_CASE("joined subwords are the word")
{
    for (const char* const kind : {"bpe", "unigram"}) {
        const sentence_pieces pieces = sentence_pieces::learn(counts, 50, kind);
        CHECK(pieces.kind() == kind);
        CHECK(pieces.list().size() <= 50);
        for (const std::string word : {"sleep", "walkings", "größer", "x", "日本", "aaaa", "👍"}) {
            CAPTURE(word);
            CHECK(joined(pieces.split(word)) == "▁" + word);
        }
        CHECK(pieces.split("the") == sentence{"▁the"});
        CHECK(pieces.split("sleepwalking").size() > 1);
    }
}

TEST_CASE("learning twice, or reading a written model, gives the same subwords")
{
    for (const char* const kind : {"bpe", "unigram"}) {
        const sentence_pieces pieces = sentence_pieces::learn(counts, 60, kind);
        CHECK(sentence_pieces::learn(counts, 60, kind) == pieces);
        const sentence_pieces again = sentence_pieces::from_text(pieces.to_text());
        CHECK(again == pieces);
        for (const auto& [word, count] : counts) CHECK(again.split(word + "s") == pieces.split(word + "s"));
    }
}

TEST_CASE("unusable training input is rejected")
{
    CHECK_THROWS_WITH_AS(sentence_pieces::learn({}, 10), "subwords: no words to learn from; at least one is required",
                         heed::error);
    CHECK_THROWS_WITH_AS(sentence_pieces::learn(counts, 50, "char"),
                         "subwords: there is no kind \"char\"; choose unigram or bpe", heed::error);
    CHECK_THROWS_WITH_AS(sentence_pieces::learn(counts, 3), doctest::Contains("SentencePiece cannot learn 3 subwords"),
                         heed::error);
}

TEST_CASE("invalid subword lists are rejected")
{
    CHECK(problem("bpe\n") == "subwords: the list is empty");
    CHECK(problem("") == "subwords: there is no kind \"\"; choose unigram or bpe");
    CHECK(problem("bpe\n▁a\n") == "subwords: line 2 is \"▁a\"; expected a subword and its score");
    CHECK(problem("bpe\n▁a x\n") == "subwords: line 2 is \"▁a x\"; expected a subword and its score");
    CHECK(problem("bpe\n▁a -1\n▁a -2\n") == "subwords: \"▁a\" is listed twice");
    CHECK(problem("bpe\n 1\n") == "subwords: \"\" is empty");
    CHECK(problem("bpe\n<unk> 1\n") == "subwords: \"<unk>\" is not a subword");
    CHECK(problem("bpe\n\xFF 1\n").find("is not UTF-8") != std::string::npos);
    CHECK(problem("bpe\na nan\n").find("is not finite") != std::string::npos);
    CHECK(problem("bpe\na inf\n").find("is not finite") != std::string::npos);
    CHECK(problem("bpe\n" + std::string(5000, 'a') + " 1\n").find("too long") != std::string::npos);

    // Unusual, but valid.
    for (const char* const kind : {"bpe\n", "unigram\n"}) {
        const auto odd = sentence_pieces::from_text(kind + std::string("x 1e30\n▁ -3e38\nxx 0\n<s> 1\n<0x41> 1\n"));
        for (const std::string word : {"xxxxx", "yx", "<s>", "A"}) CHECK(joined(odd.split(word)) == "▁" + word);
    }
}
