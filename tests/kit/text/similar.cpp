// SPDX-License-Identifier: BSD-3-Clause
#include <heed_kit/text/similar.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

using namespace heed;
using text::sentence;

namespace {

std::vector<sentence> lines(const std::vector<std::string>& texts)
{
    std::vector<sentence> all;
    for (const std::string& each : texts) all.push_back(text::split(each));
    return all;
}

std::string refused(const std::vector<sentence>& corpus)
{
    try {
        (void)text::most_similar(corpus);
    } catch (const error& problem) {
        return problem.what();
    }
    return "";
}

}  // namespace

TEST_CASE("a shared rare word counts for more than a shared common one")
{
    const auto corpus = lines({"a dog runs", "a cat sleeps", "a zebra runs", "the zebra sleeps", "a bird runs",
                               "a horse runs", "a fish runs", "a zebra"});
    const auto found = text::most_similar(corpus);
    CHECK(found[2] == 3);  // zebra, although three others share "a" and "runs"
    CHECK(found[3] == 2);
    CHECK(found[7] ==
          2);  // the only other sentence of two words; three words are as near as one, and one word has no match
}

TEST_CASE("results equal cosines of all pairs")
{
    std::vector<sentence> corpus;
    for (unsigned i = 0; i < 60; ++i) {
        sentence words;
        for (unsigned k = 0; k < 2 + i % 3; ++k) words.push_back(std::to_string((i * i + 7 * k * i + k) % 13));
        corpus.push_back(words);
    }
    std::map<std::string, double> in_sentences;
    for (const sentence& each : corpus) {
        std::map<std::string, int> once;
        for (const auto& word : each) once[word] = 1;
        for (const auto& [word, one] : once) in_sentences[word] += one;
    }
    const auto vector = [&](const sentence& s) {
        std::map<std::string, double> w;
        for (const auto& word : s) w[word] += std::log(60 / in_sentences[word]);
        return w;
    };
    const auto cosine = [&](const sentence& s, const sentence& t) {
        auto u = vector(s), v = vector(t);
        double both = 0, one = 0, other = 0;
        for (const auto& [word, x] : u) both += v.count(word) != 0 ? x * v[word] : 0, one += x * x;
        for (const auto& [word, x] : v) other += x * x;
        return both / std::sqrt(one * other);
    };
    const auto found = text::most_similar(corpus);
    for (std::size_t i = 0; i < corpus.size(); ++i) {
        INFO(i);
        CHECK(corpus[found[i]].size() == corpus[i].size());
        CHECK(corpus[found[i]] != corpus[i]);
        for (const sentence& other : corpus) {
            if (other.size() == corpus[i].size() && other != corpus[i])
                CHECK(cosine(corpus[i], other) <= cosine(corpus[i], corpus[found[i]]) + 1e-12);
        }
    }
}

TEST_CASE("equal sentences are not candidates; ties are broken by length, then by order")
{
    CHECK(text::most_similar(lines({"a b", "a b", "c d", "e f"})) == std::vector<std::size_t>{2, 2, 0, 0});
    CHECK(text::most_similar(lines({"a b c d e", "a", "a b c"})) == std::vector<std::size_t>{2, 2, 1});
    CHECK(text::most_similar({}).empty());
    CHECK(refused(lines({"a b", "a b"})) == "text::most_similar: every sentence is \"a b\"; two must differ");
}
