// SPDX-License-Identifier: BSD-3-Clause
#include "../../examples/translate/language.hpp"

#include <doctest/doctest.h>

#include <vector>

using heed::text::bpe_codes;
using heed::text::bpe_merge;
using heed::text::vocabulary;
using translation::id_sentence;
using translation::language;
using translation::sentence;
using translation::splitter;

TEST_CASE("words are numbers and back")
{
    const std::vector<sentence> text{{"one", "two"}, {"one"}};
    language words;
    words.vocabulary = vocabulary::build(text);
    CHECK(words.tokens(text[0]) == text[0]);
    CHECK(words.encode(text) == std::vector<id_sentence>{{4, 5}, {4}});
    CHECK(words.words(id_sentence{5, 4, vocabulary::eos, 5}) == sentence{"two", "one"});
}

TEST_CASE("a language in pieces")
{
    const sentence text{"abc", "ab"};
    language pieces;
    pieces.splitting.emplace(bpe_codes(std::vector<bpe_merge>{{"a", "b"}}));
    CHECK(pieces.tokens(text) == sentence{"ab@@", "c", "a@@", "b"});
    pieces.vocabulary = vocabulary::build(std::vector<sentence>{pieces.tokens(text)});
    const id_sentence ids = pieces.encode(text);
    CHECK(ids.size() == 4);
    CHECK(pieces.words(ids) == text);
    CHECK(pieces.words(id_sentence{ids[0]}) == sentence{"ab"});  // it broke off

    language other = pieces;
    CHECK(other == pieces);
    other.splitting.emplace(bpe_codes());
    CHECK_FALSE(other == pieces);
    other.splitting.reset();
    CHECK_FALSE(other == pieces);
}

TEST_CASE("read backwards: the ids are reversed, weights come back in text order")
{
    language words;
    words.vocabulary = vocabulary::build(std::vector<sentence>{{"a", "b", "c"}});
    words.backwards = true;
    CHECK(words.encode(sentence{"a", "b", "c"}) == id_sentence{6, 5, 4});
    CHECK(words.tokens(sentence{"a", "b", "c"}) == sentence{"a", "b", "c"});
    // Over c b a </s>, as the model read them.
    CHECK(words.as_written({0.1f, 0.2f, 0.3f, 0.4f}) == std::vector<float>{0.3f, 0.2f, 0.1f, 0.4f});
    CHECK(words.as_written({1}) == std::vector<float>{1});
    CHECK(words.as_written({}).empty());
    words.backwards = false;
    CHECK(words.as_written({0.1f, 0.9f}) == std::vector<float>{0.1f, 0.9f});
}
