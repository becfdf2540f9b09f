// SPDX-License-Identifier: BSD-3-Clause
#include <heed_kit/view/page.hpp>

#include <support/markup.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

using heed::view::html;
using heed::view::page;
using heed::view::sentence;
using heed::view::translation;
using support::count;

namespace {

using words = std::vector<std::string>;

page one(translation system)
{
    page result{.title = "One", .systems = {"additive"}};
    result.sentences.push_back({{"a", "b"}, {}, {}, {std::move(system)}});
    return result;
}

/// The text that the page's script reads for a key of the first translation, up to the closing quote.
std::string value(const std::string& text, const std::string& key)
{
    const std::size_t at = text.find("\"" + key + "\":\"");
    if (at == std::string::npos) return "(none)";
    const std::size_t begin = at + key.size() + 4;
    return text.substr(begin, text.find('"', begin) - begin);
}

/// Reads weights as the page's script does.
std::vector<float> decoded(std::string_view text, float scale)
{
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::vector<float> result;
    REQUIRE(text.size() % 2 == 0);
    for (std::size_t at = 0; at < text.size(); at += 2) {
        const std::size_t low = digits.find(text[at + 1]);
        if (text[at] == '.')
            result.resize(result.size() + low + 1);
        else if (text[at] == '!')
            result.push_back(std::numeric_limits<float>::quiet_NaN());
        else
            result.push_back(static_cast<float>(digits.find(text[at]) * 64 + low) / 4095.f * scale);
    }
    return result;
}

}  // namespace

TEST_CASE("a page is one file without external requests")
{
    const std::string text = html(one({{"x"}, {0.25f, 0.75f}}));
    CHECK(text.starts_with("<!DOCTYPE html>"));
    CHECK(text.ends_with("</html>\n"));
    CHECK(count(text, "<title>One</title>") == 1);
    CHECK(count(text, "default-src 'none'") == 1);
    CHECK(count(text, " src=") == 0);
    CHECK(count(text, " href=") == 0);
    CHECK(count(text, "url(") == 0);
    CHECK(count(text, "@import") == 0);
    CHECK(count(text, "</script>") == 2);
    CHECK(count(text, "</style>") == 1);
    CHECK(text.size() < 45'000);
    CHECK_FALSE(heed::text::find_invalid_utf8(text));
}

TEST_CASE("words cannot inject markup or scripts")
{
    page hostile = one({{"</script><b>", "\"\\", "\xFF\x1B[31m", "<!--"}, std::vector<float>(8), 0, "</script>"});
    hostile.title = "</title><script>alert(1)</script>";
    hostile.note = "<i>&";
    hostile.systems = {"</script>"};
    hostile.dimension = "\"</script>";
    const std::string text = html(hostile);
    CHECK(count(text, "</script>") == 2);
    CHECK(count(text, "</title>") == 1);
    CHECK(count(text, "<!--") == 0);
    CHECK(count(text, "<title>&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;</title>") == 1);
    CHECK(count(text, "&lt;i&gt;&amp;") == 1);
    CHECK(count(text, R"(["\u003c/script\u003e\u003cb\u003e","\"\\","��[31m","\u003c!--"])") == 1);
    CHECK(count(text, "\"dimension\":\"\\\"\\u003c/script\\u003e\"") == 1);
}

TEST_CASE("the end mark is stored, so that the list can omit it")
{
    page marked = one({{"x"}, {0.25f, 0.75f}});
    marked.sentences[0].source = {"a", "</s>"};
    CHECK(count(html(marked), R"("end":"\u003c/s\u003e")") == 1);
    CHECK(count(html(marked), R"("source":["a","\u003c/s\u003e"])") == 1);
    marked.end = "<eos>";
    CHECK(count(html(marked), R"("end":"\u003ceos\u003e")") == 1);
}

TEST_CASE("weights have 4096 steps, and runs of zeros are short")
{
    std::vector<float> weights;
    for (std::size_t i = 0; i < 300; ++i)
        weights.push_back(i % 3 == 0 || (i > 50 && i < 220) ? 0.f : static_cast<float>(i) / 300.f);
    const std::string mean = value(html(one({words(150, "x"), weights})), "mean");
    const std::vector<float> back = decoded(mean, 1);
    REQUIRE(back.size() == 300);
    for (std::size_t i = 0; i < 300; ++i) CHECK(std::abs(back[i] - weights[i]) < 0.5f / 4095 + 1e-6f);
    CHECK(mean.size() < 300);
    CHECK(value(html(one({words(128, "x"), std::vector<float>(256)})), "mean") == "././././");
}

TEST_CASE("weights that are not finite are stored as such")
{
    constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
    const std::string text = html(one({{"x", "y"}, {nan, infinity, -1.f, 2.f}}));
    CHECK(value(text, "mean") == "!!!!.A//");
    CHECK(count(text, "\"scale\":2.000000,") == 1);
}

TEST_CASE("weights per dimension: the mean covers all dimensions, only some are stored separately")
{
    // [S=1,T=2,D=3]
    page three = one({{"x"}, {0.25f, 0.5f, 0.75f, 0.75f, 0.5f, 0.1f}, 3});
    three.most_dimensions = 2;
    const std::string text = html(three);
    CHECK(count(text, "\"dimensions\":3,\"kept\":2,") == 1);
    const std::vector<float> mean = decoded(value(text, "mean"), 1), all = decoded(value(text, "all"), 1);
    REQUIRE(mean.size() == 2);
    CHECK(mean[0] == doctest::Approx(0.5).epsilon(0.001));
    CHECK(mean[1] == doctest::Approx(0.45).epsilon(0.001));
    REQUIRE(all.size() == 4);  // [D,S,T]
    CHECK(all[0] == doctest::Approx(0.25).epsilon(0.001));
    CHECK(all[1] == doctest::Approx(0.75).epsilon(0.001));
    CHECK(all[2] == doctest::Approx(0.5).epsilon(0.001));
    CHECK(all[3] == doctest::Approx(0.5).epsilon(0.001));

    three.most_dimensions = 0;
    CHECK(value(html(three), "all") == "(none)");
    CHECK(value(html(three), "mean") == value(text, "mean"));
}

TEST_CASE("the size is two characters per weight, plus the page itself")
{
    const std::string small = html(page{});
    page large{.systems = {"fine-grained"}, .most_dimensions = 100};
    for (std::size_t n = 0; n < 5; ++n)
        large.sentences.push_back(
            {words(20, "word"), {}, {}, {{words(20, "Wort"), std::vector<float>(20 * 20 * 100, 0.05f), 100}}});
    const std::size_t size = html(large).size() - small.size();
    CHECK(size > 5u * 400 * 100 * 2);
    CHECK(size < 5u * 400 * 101 * 2 + 5 * 600);
    large.most_dimensions = 10;
    CHECK(html(large).size() - small.size() < 5u * 400 * 11 * 2 + 5 * 600);
}

TEST_CASE("systems without weights or translation, and an empty page")
{
    page several{.systems = {"silent", "missing"}};
    several.sentences.push_back({{"a"}, {"x"}, {{{0, 0}}, {}}, {{{"x"}, {}}, {}}});
    const std::string text = html(several);
    CHECK(count(text, "\"sure\":[[0,0]],\"possible\":[]") == 1);
    CHECK(count(text, "{\"words\":[\"x\"],\"note\":\"\"}") == 1);
    CHECK(count(text, "{\"words\":[],\"note\":\"\"}") == 1);
    CHECK(count(html(page{}), "\"sentences\":[]") == 1);
}

TEST_CASE("a page with inconsistent parts is rejected")
{
    CHECK_THROWS_WITH_AS(html(one({{"x"}, {1.f}})),
                         "view::html: sentence 1, system additive: 1 weight, but 1 target and 2 source words need 2",
                         heed::shape_error);
    CHECK_THROWS_WITH_AS(html(one({{"x"}, {1.f, 1.f}, 3})),
                         "view::html: sentence 1, system additive: 2 weights, but 1 target and 2 source words of 3 "
                         "dimensions need 6",
                         heed::shape_error);
    page more = one({{"x"}, {1.f, 0.f}});
    more.systems.push_back("temporal");
    CHECK_THROWS_WITH_AS(html(more), "view::html: sentence 1: 1 translation, but the page has 2 systems",
                         heed::shape_error);
    // Gold links are links to the reference, not to the translation.
    page linked = one({{"x"}, {1.f, 0.f}});
    linked.sentences[0].gold.possible = {{1, 0}};
    CHECK_THROWS_WITH_AS(html(linked),
                         "view::html: sentence 1: the gold link 1-0 is outside 2 source and 0 reference words",
                         heed::shape_error);
    linked.sentences[0].reference = {"x"};
    CHECK_NOTHROW(html(linked));
    for (const heed::metrics::links& outside : {heed::metrics::links{{2, 0}}, {{0, 1}}, {{-1, 0}}, {{0, -1}}}) {
        linked.sentences[0].gold.sure = outside;
        CHECK_THROWS_AS(html(linked), heed::shape_error);
    }
}
