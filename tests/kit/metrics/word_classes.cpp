// SPDX-License-Identifier: BSD-3-Clause
#include <heed/core/random.hpp>
#include <heed_kit/metrics/word_classes.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <support/approx.hpp>

using namespace heed::metrics;

TEST_CASE("attention of each dimension to a source word, relative to a uniform distribution")
{
    // Two target words, three source positions, two dimensions.
    const std::vector<std::vector<float>> rows{{0.5f, 0, 0.25f, 1, 0.25f, 0}, {1, 0.5f, 0, 0.5f, 0, 0}};
    const auto found = attention_by_dimension(rows, 3, 2);
    REQUIRE(found.size() == 3);
    CHECK(found[0] == std::vector<float>{2.25f, 0.75f});
    CHECK(found[1] == std::vector<float>{0.375f, 2.25f});
    CHECK(found[2] == std::vector<float>{0.375f, 0});
    CHECK(attention_by_dimension(std::vector<std::vector<float>>{}, 1, 2)[0] == std::vector<float>{0, 0});
    CHECK_THROWS_WITH_AS(attention_by_dimension(rows, 2, 2),
                         "attention_by_dimension: a row has 6 weights but must have 4: 2 positions × 2 dimensions",
                         heed::shape_error);
}

TEST_CASE("sharpness of each dimension for a target word")
{
    const auto found =
        sharpness_by_dimension(std::vector<std::vector<float>>{{0.5f, 0, 0.25f, 1}, {0, 0.5f, 0, 0}}, 2, 2);
    CHECK(found == std::vector<std::vector<float>>{{0.5f, 1}, {0, 0.5f}});
    CHECK_THROWS_WITH_AS(sharpness_by_dimension(std::vector<std::vector<float>>{{1}}, 1, 2),
                         "sharpness_by_dimension: a row has 1 weight but must have 2: 1 position × 2 dimensions",
                         heed::shape_error);
}

TEST_CASE("a hand-computed example: three of five words in a class, with two ties")
{
    class_search search(1);
    const std::array<const char*, 5> classes{"a", "a", "b", "a", "b"};
    const std::array<float, 5> values{4, 2, 2, 3, 1};
    for (std::size_t i = 0; i < 5; ++i) search.add(classes[i], std::vector<float>{values[i]});
    // The six pairs of an a and a b: 4>2, 4>1, 2=2, 2>1, 3>2, 3>1.
    const auto found = search.best({.least = 1, .most = 9});
    REQUIRE(found.size() == 2);
    CHECK(found[0].word_class == "a");
    CHECK(found[0].count == 3);
    CHECK(found[0].auc == support::approx(5.5 / 6));
    CHECK(found[1].word_class == "b");
    CHECK(found[1].auc == support::approx(0.5 / 6));
    // U has the variance n m (n + m + 1) / 12.
    CHECK(found[0].z == support::approx((5.5 - 3) / std::sqrt(3 * 2 * 6 / 12.0)));
    CHECK(found[1].z == support::approx(-found[0].z));
    CHECK(search.best({.least = 3}).size() == 1);
    CHECK(search.best({.least = 4}).empty());
    CHECK(search.words() == 5);
}

TEST_CASE("a dimension planted to follow a class is found first, and so is the class")
{
    heed::random_source random{5};
    const std::array<const char*, 4> classes{"article", "noun", "verb", "sign"};
    class_search search(30);
    for (std::size_t n = 0; n < 800; ++n) {
        const std::uint64_t stream = random.next_stream();
        const std::size_t of = heed::below(4, stream, 99);
        std::vector<float> values;
        for (std::size_t d = 0; d < 30; ++d) values.push_back(static_cast<float>(heed::uniform(stream, d)));
        if (of == 1) values[17] += 0.9f;            // nearly always above all others
        if (of == 0 || of == 3) values[4] += 0.5f;  // two classes
        if (of == 2) values[9] -= 0.9f;             // avoided
        search.add(classes[of], values);
    }
    const auto found = search.best({.most = 1});
    REQUIRE(found.size() == 30);
    CHECK(found[0].dimension == 17);
    CHECK(found[0].word_class == "noun");
    CHECK(found[0].auc > 0.98);
    CHECK(found[0].z > 15);
    CHECK(found[1].dimension == 4);
    CHECK((found[1].word_class == "article" || found[1].word_class == "sign"));
    CHECK(found[2].auc < 0.7);
    for (std::size_t i = 1; i < found.size(); ++i) CHECK(found[i].auc <= found[i - 1].auc);
    // For a dimension that avoids verbs, verbs are last.
    const auto all = search.best({.most = 4});
    for (std::size_t i = 0; i + 3 < all.size(); i += 4) {
        if (all[i].dimension != 9) continue;
        CHECK(all[i + 3].word_class == "verb");
        CHECK(all[i + 3].auc < 0.05);
    }
}

TEST_CASE("inputs without two groups yield no result")
{
    CHECK(class_search(3).best().empty());
    class_search one(1);
    for (int i = 0; i < 30; ++i) one.add("a", std::vector<float>{0.5f});
    CHECK(one.best().empty());
    CHECK_THROWS_WITH_AS(one.add("a", std::vector<float>{1, 2}),
                         "class_search: 2 values for a word, but 1 dimension; give one value for each dimension",
                         heed::shape_error);
}
