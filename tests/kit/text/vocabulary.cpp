// SPDX-License-Identifier: BSD-3-Clause
#include <heed_kit/text/vocabulary.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace heed::text;

namespace {

const std::vector<sentence> corpus{{"the", "cat", "and", "the", "dog"}, {"a", "dog", "the", "Zoo"}, {"über", "cat"}};

using words = std::vector<std::string>;

std::string problem(words list)
{
    try {
        vocabulary::from_words(std::move(list));
    } catch (const heed::error& caught) {
        return caught.what();
    }
    return "no error";
}

}  // namespace

TEST_CASE("the special words come first")
{
    const vocabulary empty;
    CHECK(empty.words() == words{"<pad>", "<unk>", "<s>", "</s>"});
    CHECK(empty.word(vocabulary::pad) == "<pad>");
    CHECK(empty.word(vocabulary::unk) == "<unk>");
    CHECK(empty.word(vocabulary::bos) == "<s>");
    CHECK(empty.word(vocabulary::eos) == "</s>");
}

TEST_CASE("words are ordered by count, then by bytes")
{
    const vocabulary all = vocabulary::build(corpus);
    CHECK(all.words() == words{"<pad>", "<unk>", "<s>", "</s>", "the", "cat", "dog", "Zoo", "a", "and", "über"});
    CHECK(vocabulary::build(corpus, 2).words() == words{"<pad>", "<unk>", "<s>", "</s>", "the", "cat", "dog"});
    CHECK(vocabulary::build(corpus, 1, 6).words() == words{"<pad>", "<unk>", "<s>", "</s>", "the", "cat"});
    CHECK(vocabulary::build(corpus, 4).size() == 4);
    CHECK(vocabulary::build({}).size() == 4);

    const std::vector<sentence> other_order{corpus[2], corpus[1], corpus[0]};
    CHECK(vocabulary::build(other_order) == all);
}

TEST_CASE("words and ids are looked up")
{
    const vocabulary all = vocabulary::build(corpus);
    for (word_id id = 4; id < all.size(); ++id) {
        CHECK(all.id(all.word(id)) == id);
        CHECK(all.contains(all.word(id)));
    }
    CHECK(all.id("cat") == 5);
    CHECK(all.id(std::string_view("category").substr(0, 3)) == 5);
    CHECK(all.id("cow") == vocabulary::unk);
    CHECK(all.id("") == vocabulary::unk);
    CHECK_FALSE(all.contains("cow"));
    CHECK_THROWS_WITH_AS(all.word(11), "vocabulary: there is no word 11; the last is 10", heed::error);
    CHECK_THROWS_AS(all.word(static_cast<word_id>(-1)), heed::error);
}

TEST_CASE("sentences are encoded and decoded")
{
    const vocabulary all = vocabulary::build(corpus);
    const std::vector<word_id> ids = all.encode(sentence{"the", "cow", "über"});
    CHECK(ids == std::vector<word_id>{4, vocabulary::unk, 10});
    CHECK(all.decode(ids) == sentence{"the", "<unk>", "über"});
    CHECK(all.decode(std::vector<word_id>{vocabulary::bos, 4, 5, vocabulary::eos, 6, vocabulary::pad}) ==
          sentence{"the", "cat"});
    CHECK(all.decode(std::vector<word_id>{4, vocabulary::pad, 5}) == sentence{"the", "cat"});
    CHECK(all.encode(sentence{}).empty());
    CHECK_THROWS_AS(all.decode(std::vector<word_id>{99}), heed::error);
}

TEST_CASE("a corpus word spelled like a special word is an unknown word")
{
    const std::vector<sentence> hostile{{"</s>", "x", "</s>", "<pad>"}, {"<s>", "</s>", "<unk>", "x"}};
    const vocabulary built = vocabulary::build(hostile);
    CHECK(built.words() == words{"<pad>", "<unk>", "<s>", "</s>", "x"});
    CHECK(built.encode(hostile[0]) == std::vector<word_id>{vocabulary::unk, 4, vocabulary::unk, vocabulary::unk});
    CHECK(built.encode(hostile[1]) == std::vector<word_id>{vocabulary::unk, vocabulary::unk, vocabulary::unk, 4});
    CHECK_FALSE(built.contains("</s>"));
    CHECK(vocabulary::from_words(built.words()) == built);
}

TEST_CASE("a vocabulary survives a round trip")
{
    const vocabulary all = vocabulary::build(corpus);
    const vocabulary again = vocabulary::from_words(all.words());
    CHECK(again == all);
    CHECK(again.id("dog") == all.id("dog"));
    CHECK(vocabulary::from_text(all.to_text()) == all);
    CHECK(vocabulary().to_text() == "<pad>\n<unk>\n<s>\n</s>");
    CHECK(vocabulary::from_text(vocabulary().to_text()) == vocabulary());
}

TEST_CASE("a copy is independent")
{
    vocabulary copy;
    {
        const vocabulary all = vocabulary::build(corpus);
        copy = all;
    }
    CHECK(copy.id("dog") == 6);
    CHECK(copy.word(6) == "dog");
}

TEST_CASE("a list of words that is not a vocabulary is rejected")
{
    const auto with = [](words more) {
        words list{"<pad>", "<unk>", "<s>", "</s>"};
        list.insert(list.end(), more.begin(), more.end());
        return list;
    };
    CHECK(problem(with({"a", "b"})) == "no error");
    CHECK(problem({}) == "vocabulary: word 0 must be <pad>, but the list ends before it");
    CHECK(problem({"<pad>", "the"}) == "vocabulary: word 1 must be <unk> but is \"the\"");
    CHECK(problem(with({"a", "b", "a"})) == "vocabulary: word 6 (\"a\") is listed twice");
    CHECK(problem(with({"<s>"})) == "vocabulary: word 4 (\"<s>\") repeats a special word");
    CHECK(problem(with({""})) == "vocabulary: word 4 (\"\") is empty");
    CHECK(problem(with({"a b"})) == "vocabulary: word 4 (\"a b\") contains white space");
    CHECK_THROWS_AS(vocabulary::from_text(""), heed::error);
    CHECK_THROWS_AS(vocabulary::from_text("<pad>\n<unk>\n<s>\n</s>\n"), heed::error);  // an empty fifth word
}
