// SPDX-License-Identifier: BSD-3-Clause
#include <heed/core/random.hpp>
#include <heed_kit/metrics/bleu.hpp>
#include <heed_kit/metrics/chrf.hpp>
#include <heed_kit/metrics/error_rate.hpp>
#include <heed_kit/metrics/ribes.hpp>
#include <heed_kit/metrics/ter.hpp>
#include <heed_kit/metrics/tuning.hpp>
#include <heed_kit/text/sentence.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using namespace heed::metrics;
using heed::text::sentence;
using heed::text::split;

namespace {

std::vector<sentence> texts(const std::vector<std::string>& lines)
{
    std::vector<sentence> result;
    for (const std::string& each : lines) result.push_back(split(each));
    return result;
}

template <class Statistics>
Statistics sum(const std::vector<Statistics>& sentences)
{
    Statistics total{};
    for (const Statistics& each : sentences) total += each;
    return total;
}

/// Every corpus score of a text with several references.
struct scores {
    double bleu, ter, wer, ribes, chrf, words;  // words: those of TER
    friend bool operator==(const scores&, const scores&) = default;
};

scores score(const std::vector<std::string>& lines, const std::vector<std::vector<std::string>>& references)
{
    const std::vector<sentence> words = texts(lines);
    std::vector<std::vector<sentence>> sets;
    for (const auto& each : references) sets.push_back(texts(each));
    const ter_counts edits = sum(ter_statistics(words, sets));
    return {bleu(sum(bleu_statistics(words, sets))).score,  ter(edits),
            error_rate(sum(error_statistics(words, sets))), sum(ribes_statistics(words, sets)).score(),
            chrf(sum(chrf_statistics(lines, references))),  edits.reference_length};
}

}  // namespace

TEST_CASE("an empty line of a reference file is ignored if another reference has words")
{
    const std::vector<std::string> said{"a b", "q w e r t"};
    const std::vector<std::string> first{"a b c d e f g h", "q w e r t"};
    const scores alone = score(said, {first});
    // Every n-gram matches, and 7 words of 8 + 5: BLEU = 100 exp(1 - 13 / 7).
    CHECK(std::abs(alone.bleu - 100 * std::exp(1 - 13.0 / 7)) < 1e-12);
    // Six words are missing, of 13.
    CHECK(std::abs(alone.ter - 100 * 6.0 / 13) < 1e-12);
    CHECK(std::abs(alone.wer - 100 * 6.0 / 13) < 1e-12);
    for (const std::string empty : {"", " ", "\t"}) {
        CHECK(score(said, {first, {empty, "q w e r t"}}) == alone);
        CHECK(score(said, {{empty, "q w e r t"}, first}) == alone);
        CHECK(score(said, {{empty, empty}, first, {empty, empty}}) == alone);
    }
    // Unicode white space is not a word for chrF, which ignores it.
    CHECK(chrf_matches("a b", std::vector<std::string>{"\xC2\xA0\xE3\x80\x80", "a c"}).reference[0] == 2);
}

TEST_CASE("if all references of a sentence are empty, they count as one empty reference")
{
    const std::vector<std::string> said{"a b", "q w e r t"};
    const std::vector<std::string> first{"", "q w e r"};
    CHECK(score(said, {first, {"", "q w e r"}}) == score(said, {first}));
    CHECK(score(said, {first, {"", ""}}) == score(said, {first}));
    CHECK(score({"", "a"}, {{"", "a"}, {"", ""}}) == score({"", "a"}, {{"", "a"}}));
}

TEST_CASE("empty lines among random references change no score")
{
    heed::random_source random{5};
    for (std::size_t round = 0; round < 50; ++round) {
        const std::uint64_t stream = random.next_stream();
        std::uint64_t i = 0;
        const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(heed::below(bound, stream, i++)); };
        const auto line = [&](std::size_t least) {
            std::string words;
            for (std::size_t left = least + below(6); left > 0; --left)
                words += (words.empty() ? "" : " ") + std::string(1, static_cast<char>('a' + below(4)));
            return words;
        };
        constexpr std::size_t sentences = 4;
        std::vector<std::string> said;
        std::vector<std::vector<std::string>> full(2), holes(4);
        for (std::size_t s = 0; s < sentences; ++s) {
            said.push_back(line(0));
            for (auto& each : full) each.push_back(line(1));
            // The two references in order, in two of four files.
            const std::size_t one = below(3), other = one + 1 + below(3 - one);
            for (std::size_t f = 0; f < holes.size(); ++f)
                holes[f].push_back(f == one ? full[0][s] : f == other ? full[1][s] : "");
        }
        CAPTURE(round);
        CHECK(score(said, holes) == score(said, full));
    }
}

TEST_CASE("tuning prefers the translation that is nearer to the only reference")
{
    // The first translation is the whole reference, the second has two of its words. If the empty line counted as a
    // reference two words away, the second would have a brevity penalty of 1.
    const std::vector<sentence> said = texts({"a b c d e f x h", "a b", "q w e r t", "q w e r t"});
    const std::vector<std::vector<sentence>> references{
        texts({"a b c d e f g h", "a b c d e f g h", "q w e r t", "q w e r t"}),
        texts({"", "", "q w e r t", "q w e r t"})};
    const auto grams = bleu_statistics(said, references);
    rated_lists<bleu_counts> lists(2);
    for (std::size_t k = 0; k < said.size(); ++k) lists[k / 2].push_back({{k % 2 == 0 ? 1.0 : 0.0}, grams[k]});
    const tuned_weights tuned = tune(lists, [](const bleu_counts& all) { return bleu(all).score; });
    CHECK(tuned.weights[0] > 0);
}
