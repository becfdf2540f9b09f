// SPDX-License-Identifier: BSD-3-Clause
#include <heed/core/random.hpp>
#include <heed_kit/text/phrases.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

using namespace heed::text;
using ids = std::vector<word_id>;
using links = std::vector<std::pair<int, int>>;

namespace {

// By definition: all pairs of spans with a link inside and no link that leaves them.
std::vector<phrase_pair> by_definition(const links& all, std::size_t source, std::size_t target,
                                       const phrase_options& how)
{
    std::vector<phrase_pair> result;
    for (std::size_t a = 0; a < source; ++a)
        for (std::size_t b = a + 1; b <= std::min(source, a + how.longest_source); ++b)
            for (std::size_t c = 0; c < target; ++c)
                for (std::size_t d = c + 1; d <= std::min(target, c + how.longest_target); ++d) {
                    std::size_t inside = 0, leaving = 0;
                    for (const auto& [i, j] : all) {
                        const auto s = static_cast<std::size_t>(i), t = static_cast<std::size_t>(j);
                        const bool of_source = s >= a && s < b, of_target = t >= c && t < d;
                        inside += of_source && of_target ? 1u : 0u;
                        leaving += of_source != of_target ? 1u : 0u;
                    }
                    if (inside > 0 && leaving == 0) result.push_back({a, b, c, d});
                }
    return result;
}

struct sample {
    ids source, target;
    links all;
};

sample random_pair(heed::random_source& random)
{
    const std::uint64_t stream = random.next_stream();
    sample result{ids(heed::below(9, stream, 0)), ids(heed::below(9, stream, 1)), {}};
    std::uint64_t n = 2;
    for (ids* const side : {&result.source, &result.target})
        for (word_id& word : *side) word = static_cast<word_id>(heed::below(4, stream, n++));
    for (std::size_t i = 0; i < result.source.size(); ++i)
        for (std::size_t j = 0; j < result.target.size(); ++j)
            if (heed::uniform(stream, n++) < 0.15) result.all.emplace_back(static_cast<int>(i), static_cast<int>(j));
    return result;
}

}  // namespace

TEST_CASE("a hand-computed example: a verb in two parts, and a word without a link")
{
    // 0:er 1:geht 2:ja 3:nicht 4:nach 5:hause – 0:he 1:does 2:not 3:go 4:home (Koehn 2010, section 5.2, changed)
    const links all{{0, 0}, {1, 3}, {3, 1}, {3, 2}, {4, 4}, {5, 4}};
    const auto found = extract_phrases(all, 6, 5);
    const auto has = [&](const phrase_pair& each) {
        return std::find(found.begin(), found.end(), each) != found.end();
    };
    CHECK(has({0, 1, 0, 1}));
    CHECK(has({1, 2, 3, 4}));
    CHECK(has({3, 4, 1, 3}));        // nicht – does not
    CHECK(has({1, 4, 1, 4}));        // geht ja nicht – does not go
    CHECK(has({2, 4, 1, 3}));        // ja nicht – does not
    CHECK(has({4, 6, 4, 5}));        // nach hause – home
    CHECK_FALSE(has({4, 5, 4, 5}));  // home is also linked to hause
    CHECK_FALSE(has({2, 3, 0, 1}));  // ja has no link
    CHECK(has({1, 3, 3, 4}));        // geht ja – go
    CHECK(has({0, 4, 0, 4}));        // all except for the end
    CHECK(found.size() == 8);
    CHECK(extract_phrases(links{}, 3, 3).empty());
    CHECK(extract_phrases(links{}, 0, 0).empty());
}

TEST_CASE("phrases of random links and lengths equal the definition")
{
    heed::random_source random{2};
    for (std::size_t round = 0; round < 300; ++round) {
        const sample pair = random_pair(random);
        const phrase_options how{1 + round % 5, 1 + round / 5 % 6};
        CAPTURE(round);
        CHECK(extract_phrases(pair.all, pair.source.size(), pair.target.size(), how) ==
              by_definition(pair.all, pair.source.size(), pair.target.size(), how));
    }
}

TEST_CASE("a table counts the phrase pairs of a target word, and lookup finds all phrases of a sentence")
{
    heed::random_source random{4};
    std::vector<ids> sources, targets;
    std::vector<links> all;
    std::map<ids, std::map<word_id, double>> counts;
    const phrase_options how;
    for (std::size_t n = 0; n < 40; ++n) {
        const sample pair = random_pair(random);
        sources.push_back(pair.source);
        targets.push_back(pair.target);
        all.push_back(pair.all);
        for (const phrase_pair& each : by_definition(pair.all, pair.source.size(), pair.target.size(), how)) {
            const auto cut = [](const ids& from, std::size_t begin, std::size_t end) {
                return ids(from.begin() + static_cast<std::ptrdiff_t>(begin),
                           from.begin() + static_cast<std::ptrdiff_t>(end));
            };
            const ids words = cut(pair.target, each.target_begin, each.target_end);
            for (const word_id word : std::set<word_id>(words.begin(), words.end()))
                counts[cut(pair.source, each.source_begin, each.source_end)][word] += 1;
        }
    }
    const auto table = phrase_table::learn(sources, targets, all, how);
    CHECK(table.size() == counts.size());
    for (const auto& [phrase, words] : counts) {
        const auto found = table.of(phrase);
        REQUIRE(found.size() == words.size());
        for (std::size_t k = 0; k < found.size(); ++k) {
            CHECK(found[k].count == words.at(found[k].target));
            if (k > 0)
                CHECK((found[k - 1].count > found[k].count ||
                       (found[k - 1].count == found[k].count && found[k - 1].target < found[k].target)));
        }
    }
    std::vector<ids> phrases;
    for (const auto& entry : counts) phrases.push_back(entry.first);
    CHECK(table.phrases() == phrases);
    CHECK(table.of(ids{}).empty());
    CHECK(table.of(ids{99}).empty());
    CHECK(table.of(ids{0, 1, 2, 3, 0}).empty());

    const ids sentence{3, 0, 1, 1, 2, 0, 3, 9};
    for (const std::size_t per_phrase : {0u, 1u, 3u, 100u}) {
        std::set<word_id> wanted, seen;
        for (std::size_t i = 0; i < sentence.size(); ++i) {
            for (std::size_t n = 1; n <= 4 && i + n <= sentence.size(); ++n) {
                const auto known = table.of(std::span(sentence).subspan(i, n));
                for (std::size_t k = 0; k < std::min(per_phrase, known.size()); ++k) wanted.insert(known[k].target);
            }
        }
        table.words_of(sentence, per_phrase, [&](word_id word) { seen.insert(word); });
        CHECK(seen == wanted);
    }
}

TEST_CASE("a table can be filled directly")
{
    phrase_table table;
    table.set(ids{0, 0, 5}, {{7, 2}, {3, 1}});
    table.set(ids{5}, {{1, 1}});
    CHECK(table.phrases() == std::vector<ids>{{0, 0, 5}, {5}});
    CHECK(table.of(ids{0, 0, 5}).front().target == 7);
    table.set(ids{5}, {{2, 1}});
    CHECK(table.of(ids{5}).front().target == 2);
    CHECK_THROWS_WITH_AS(table.set(ids(5), {}), "phrases: a source phrase of 5 words; it must have 1 to 4",
                         heed::error);
    CHECK_THROWS_AS(table.set(ids{}, {}), heed::error);
}

TEST_CASE("inconsistent input is rejected")
{
    CHECK_THROWS_WITH_AS(extract_phrases(links{{2, 0}}, 2, 1),
                         "phrases: link 2-0 of sentences with 2 and 1 words; positions count from 0", heed::error);
    CHECK_THROWS_AS(extract_phrases(links{{0, -1}}, 2, 1), heed::error);
    CHECK_THROWS_WITH_AS(phrase_table::learn(std::vector<ids>(2), std::vector<ids>(2), std::vector<links>(1)),
                         "phrases: 2 source sentences, 2 target sentences and 1 alignment; the numbers must be equal",
                         heed::error);
    CHECK_THROWS_WITH_AS(phrase_table::learn({}, {}, {}, {.longest_source = 5}),
                         "phrases: source phrases of up to 5 words; the length must be 1 to 4", heed::error);
}
