// SPDX-License-Identifier: BSD-3-Clause
#include <heed_kit/text/tokenizer.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace heed::text;

namespace {

/// Writes words marked with "↓" in brackets.
written_line written(const sentence& tokens)
{
    return write_tokens(tokens, [](const std::string& word, bool small) { return small ? "[" + word + "]" : word; });
}

std::string text_of(const sentence& tokens)
{
    const written_line line = written(tokens);
    return spaced(line.words, line.joined);
}

}  // namespace

TEST_CASE("words are separated by spaces unless tokens mark a joint")
{
    CHECK(text_of({"▁a", "▁man", "▁sleep", "ing", "￭."}) == "a man sleeping.");
    CHECK(text_of({"▁–", "▁yes", "▁(￭", "▁no", "￭)"}) == "– yes (no)");
    CHECK(text_of({"▁a", "￭/￭", "▁b"}) == "a/b");
    CHECK(text_of({"▁5", "￭", "▁km"}) == "5km");
    CHECK(text_of({"▁…", "￭!", "￭!"}) == "…!!");
    CHECK(text_of({}).empty());
}

TEST_CASE("the joint marks can occur in text")
{
    CHECK(text_of({"▁￭"}) == "￭");
    CHECK(text_of({"▁a", "￭￭"}) == "a￭");
    CHECK(text_of({"▁￭￭", "▁a"}) == "￭a");
    CHECK(text_of({"▁▁", "▁↓"}) == "▁ ↓");
}

TEST_CASE("the tokens of each word are known")
{
    const written_line line = written({"↓", "▁sleep", "ing", "￭.", "￭", "↓", "▁x", "↓"});
    CHECK(line.words == sentence{"[sleeping]", ".", "[x]"});
    CHECK(line.tokens_of == std::vector<std::vector<std::size_t>>{{0, 1, 2}, {3}, {4, 5, 6, 7}});
    CHECK(line.joined == std::vector<bool>{true, true, true});
}

TEST_CASE("tokens that no text has still become text")
{
    CHECK(text_of({"ing", "▁a"}) == "ing a");
    CHECK(text_of({"￭", "￭", "↓", "↓"}).empty());
    CHECK(text_of({"￭.", "ing"}) == ".ing");
    CHECK(text_of({"▁", "▁", "a"}) == " a");
    CHECK(text_of({""}).empty());
}

TEST_CASE("words without joint marks are separated by spaces")
{
    CHECK(spaced(sentence{"a", "b", "c"}, {}) == "a b c");
    CHECK(spaced(sentence{"a", "b", "c"}, {true, true}) == "ab c");
}
