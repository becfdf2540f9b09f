// SPDX-License-Identifier: BSD-3-Clause
#include <heed/core/random.hpp>
#include <heed_kit/metrics/repetition.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include <support/approx.hpp>

using namespace heed::metrics;
using heed::text::sentence;
using heed::text::split;

namespace {

// "2+3<0!": the words 2 … 4 repeat those from 0 on and follow them directly.
std::string found(const std::string& line, const repetition_options& how = {})
{
    std::string text;
    for (const repetition& each : find_repetitions(split(line), how))
        text += (text.empty() ? "" : " ") + std::to_string(each.begin) + "+" + std::to_string(each.length) + "<" +
                std::to_string(each.earlier) + (each.adjacent ? "!" : "");
    return text;
}

}  // namespace

TEST_CASE("direct and later repetitions of phrases are found")
{
    CHECK(found("a b c d e").empty());
    CHECK(found("a b c a b c") == "3+3<0!");
    CHECK(found("a b c x a b c y") == "4+3<0");
    CHECK(found("the the cat") == "1+1<0!");
    CHECK(found("the cat saw the dog").empty());  // one word, not adjacent
    CHECK(found("x a b y a b z a b") == "4+2<1 7+2<1");
    CHECK(found("a b c b c d") == "3+2<1!");  // "b c" after "b c"
}

TEST_CASE("every further occurrence of a phrase is a repetition")
{
    CHECK(found("a b a b a b a b") == "2+2<0! 4+2<2! 6+2<4!");
    CHECK(found("a a a a a") == "1+1<0! 2+1<1! 3+1<2! 4+1<3!");
    CHECK(found("a b a b a") == "2+2<0!");  // the last one is a single word, separated from its copy by "b"
    CHECK(found("x a b a b y a b a b") == "3+2<1! 6+2<1 8+2<6!");
    CHECK(found("a b a a b a a b a") == "3+3<0! 6+3<3!");
    CHECK(found("the the x the the") == "1+1<0! 4+1<3!");
}

TEST_CASE("the shortest length is an option")
{
    CHECK(found("the cat saw the dog", {1, 1}) == "3+1<0");
    CHECK(found("the the cat", {2, 2}).empty());
    CHECK(found("a b x a b c y a b c", {3, 3}) == "7+3<3");
    CHECK(found("a b c b c x", {4, 2}) == "3+2<1!");
    CHECK(found("a b c d c d a b", {4, 1}) == "4+2<2!");
    CHECK_THROWS_WITH_AS(found("a", {0, 1}), "repetitions: a phrase of 0 words; it must have at least 1", heed::error);
    CHECK_THROWS_AS(found("a", {1, 0}), heed::error);
}

TEST_CASE("every repetition repeats an earlier phrase without overlap")
{
    heed::random_source source{3};
    std::size_t count = 0;
    for (std::size_t round = 0; round < 300; ++round) {
        const std::uint64_t stream = source.next_stream();
        sentence words(heed::below(40, stream, 0));
        for (std::size_t i = 0; i < words.size(); ++i)
            words[i] = std::string(1, static_cast<char>('a' + heed::below(1 + round % 5, stream, i + 1)));
        CAPTURE(heed::text::join(words));
        std::size_t end = 0;
        for (const repetition& each : find_repetitions(words)) {
            ++count;
            REQUIRE(each.begin >= end);
            end = each.begin + each.length;
            REQUIRE(end <= words.size());
            REQUIRE(each.earlier + each.length <= each.begin);
            CHECK(each.adjacent == (each.earlier + each.length == each.begin));
            CHECK((each.length >= 2 || each.adjacent));
            for (std::size_t i = 0; i < each.length; ++i) CHECK(words[each.begin + i] == words[each.earlier + i]);
        }
    }
    CHECK(count > 1000);
}

TEST_CASE("a corpus sums over its sentences")
{
    const std::vector<sentence> text{split("a b c"), split("a b a b a b x a b"), split("d e f x d e f"), {}};
    const repetition_statistics all = count_repetitions(text);
    CHECK(all.sentences == 4);
    CHECK(all.words == 19);
    CHECK(all.affected == 2);
    CHECK(all.repetitions == 4);
    CHECK(all.adjacent == 2);
    CHECK(all.repeated_words == 9);
    CHECK(all.mean_length() == support::approx(2.25));
    CHECK(all.most == 4);  // "a b"
    const repetition_statistics none = count_repetitions({});
    CHECK(none.mean_length() == 0.0);
    CHECK(none.most == 0);
}

TEST_CASE("degenerate output of a model does not hang the count")
{
    CHECK(find_repetitions(sentence(20000, "the")).size() == 19999);
    sentence words;
    for (int i = 0; i < 20000; ++i) words.push_back(std::to_string(i % 100));
    const auto many = find_repetitions(words);
    CHECK(many.size() == 199);
    CHECK(many.back().length == 100);
}
