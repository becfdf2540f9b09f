// SPDX-License-Identifier: BSD-3-Clause
#include <heed_kit/text/unknown_words.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include <heed/core/errors.hpp>
#include <heed_kit/text/lexicon.hpp>
#include <heed_kit/text/vocabulary.hpp>

using namespace heed;
using ids = std::vector<std::uint32_t>;

TEST_CASE("unknown words become dictionary translations or the source word; a dictionary survives a round trip as text")
{
    const std::vector<text::sentence> german{{"das", "Haus"}}, english{{"the", "house"}};
    const auto source = text::vocabulary::build(german), target = text::vocabulary::build(english);
    using links = std::vector<std::vector<std::pair<int, int>>>;
    const auto learned = text::lexicon::of_links(std::vector<ids>{source.encode(german[0])},
                                                 std::vector<ids>{target.encode(english[0])}, links{{{0, 0}, {1, 1}}});
    const auto dictionary = learned.dictionary(source, target);
    CHECK(dictionary.at("Haus") == "house");
    CHECK(dictionary.size() == 2);
    const text::sentence translated{"<unk>", "of", "<unk>"}, of{"Haus", "Zanzibar"};
    const std::vector<std::vector<float>> weights{{0.4F, 0.1F, 0.5F}, {1, 0, 0}, {0.1F, 0.2F, 0.7F}, {0, 0, 1}};
    CHECK(text::replace_unknown(translated, of, weights, dictionary) == text::sentence{"house", "of", "Zanzibar"});
    CHECK(text::replace_unknown(translated, of, weights) == text::sentence{"Haus", "of", "Zanzibar"});
    CHECK(text::replace_unknown(translated, {}, weights) == translated);
    CHECK(text::replace_unknown({"x"}, of, std::vector<std::vector<float>>{}) == text::sentence{"x"});
    CHECK_THROWS_WITH_AS(text::replace_unknown(translated, of, std::vector<std::vector<float>>{}),
                         "replace_unknown: target word 0 is unknown, but there are weights for 0 of 2 source words; "
                         "search with weights",
                         error);
}
