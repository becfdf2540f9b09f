// SPDX-License-Identifier: BSD-3-Clause
#include <heed_translator/language.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using heed::text::bpe_codes;
using heed::text::bpe_merge;
using heed::text::vocabulary;
using heed::translator::id_sentence;
using heed::translator::language;
using heed::translator::sentence;
using heed::translator::splitter;

TEST_CASE("words become numbers and words again")
{
    const std::vector<sentence> text{{"one", "two"}, {"one"}};
    language words;
    words.vocabulary = vocabulary::build(text);
    CHECK(words.tokens(text[0]) == text[0]);
    CHECK(words.encode(text) == std::vector<id_sentence>{{4, 5}, {4}});
    CHECK(words.words(id_sentence{5, 4, vocabulary::eos, 5}) == sentence{"two", "one"});
}

TEST_CASE("a language of subwords")
{
    const sentence text{"abc", "ab"};
    language pieces;
    pieces.splitting.emplace(bpe_codes(std::vector<bpe_merge>{{"a", "b"}}));
    CHECK(pieces.tokens(text) == sentence{"ab@@", "c", "a@@", "b"});
    pieces.vocabulary = vocabulary::build(std::vector<sentence>{pieces.tokens(text)});
    const id_sentence ids = pieces.encode(text);
    CHECK(ids.size() == 4);
    CHECK(pieces.words(ids) == text);
    CHECK(pieces.words(id_sentence{ids[0]}) == sentence{"ab"});  // a truncated word

    language other = pieces;
    CHECK(other == pieces);
    other.splitting.emplace(bpe_codes());
    CHECK_FALSE(other == pieces);
    other.splitting.reset();
    CHECK_FALSE(other == pieces);
}

namespace {

/// Splits words into characters; the first token reports the method that read it.
class letters final : public heed::text::tokenizer {
public:
    explicit letters(std::string name) : name_(std::move(name)) {}

    heed::text::tokenized_line read(std::string_view line) const override { return cut(line, "exact"); }
    heed::text::tokenized_line read_forgiving(std::string_view line) const override
    {
        auto all = cut(line, "forgiving");
        all.shouted = line == "AB";
        return all;
    }
    heed::text::written_line write(std::span<const std::string> tokens) const override
    {
        return heed::text::write_tokens(tokens, [](const std::string& word, bool) { return word; });
    }
    std::string shout(std::string_view) const override { return "LOUD"; }
    std::string to_text() const override { return name_; }

private:
    static heed::text::tokenized_line cut(std::string_view line, const char* how)
    {
        heed::text::tokenized_line all;
        for (const char letter : std::string(how).substr(0, 1) + std::string(line)) {
            all.tokens.push_back((all.tokens.empty() ? "▁" : "") + std::string(1, letter));
        }
        all.words = {how, std::string(line)};
        all.tokens_of.resize(2);
        all.tokens_of[0] = {0};
        for (std::size_t i = 1; i < all.tokens.size(); ++i) all.tokens_of[1].push_back(i);
        return all;
    }

    std::string name_;
};

}  // namespace

TEST_CASE("a language of raw text")
{
    using list = std::vector<std::vector<std::size_t>>;
    language raw;
    raw.raw = std::make_shared<letters>("one");
    CHECK(raw.in_pieces());
    const sentence line{"ab", "c"};  // the line "ab c"
    CHECK(raw.tokens(line) == sentence{"▁e", "a", "b", " ", "c"});
    CHECK(raw.shown(line) == sentence{"exact", "ab c"});
    CHECK(raw.tokens_of_words(line) == list{{0}, {1, 2, 3, 4}, {5}});
    raw.forgiving = true;
    CHECK(raw.tokens(line).front() == "▁f");
    CHECK(raw.shouted({"AB"}));
    CHECK_FALSE(raw.shouted(line));

    raw.vocabulary = vocabulary::build(std::vector<sentence>{{"▁a", "b", "￭."}});
    const auto id = [&](const char* token) { return raw.vocabulary.id(token); };
    auto read = raw.read(
        id_sentence{vocabulary::pad, id("▁a"), id("b"), id("￭."), vocabulary::unk, id("￭."), vocabulary::eos, id("b")});
    CHECK(read.words == sentence{"ab", ".", "<unk>", "."});
    CHECK(read.tokens == list{{1, 2}, {3}, {4}, {5}});
    CHECK(read.unknown == std::vector<bool>{false, false, true, false});
    CHECK(read.text() == "ab. <unk>.");
    CHECK(raw.scored(read) == sentence{"ab", ".", "<", "unk", ">", "."});
    CHECK(raw.scored(sentence{"ab."}) == sentence{"ab", "."});
    raw.shout(read);
    CHECK(read.words == sentence{"LOUD", "LOUD", "LOUD", "LOUD"});
    CHECK(raw.read(id_sentence{}).words.empty());

    language other = raw;
    CHECK(other == raw);
    other.raw = std::make_shared<letters>("one");
    CHECK(other == raw);
    other.raw = std::make_shared<letters>("two");
    CHECK_FALSE(other == raw);
    other.raw.reset();
    CHECK_FALSE(other == raw);
}
