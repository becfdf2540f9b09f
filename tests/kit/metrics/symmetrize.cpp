// SPDX-License-Identifier: BSD-3-Clause
#include <heed/core/random.hpp>
#include <heed_kit/metrics/symmetrize.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

using namespace heed::metrics;

namespace {

std::string combined(const std::string& forward, const std::string& reverse, const char* method)
{
    return pharaoh(symmetrize(parse_links(forward), parse_links(reverse), symmetrization_named(method)));
}

using table = std::vector<std::vector<bool>>;

links links_of(const table& cells)
{
    links result;
    for (std::size_t i = 0; i < cells.size(); ++i)
        for (std::size_t j = 0; j < cells[i].size(); ++j)
            if (cells[i][j]) result.emplace_back(static_cast<int>(i), static_cast<int>(j));
    return result;
}

// Moses' pseudocode, cell by cell, repeatedly.
table by_pseudo_code(const table& forward, const table& reverse, bool strict)
{
    const std::size_t rows = forward.size(), columns = forward[0].size();
    table result(rows, std::vector<bool>(columns));
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j) result[i][j] = forward[i][j] && reverse[i][j];
    const int steps[8][2] = {{-1, 0}, {0, -1}, {1, 0}, {0, 1}, {-1, -1}, {-1, 1}, {1, -1}, {1, 1}};
    for (bool more = true; more;) {
        more = false;
        for (std::size_t i = 0; i < rows; ++i) {
            for (std::size_t j = 0; j < columns; ++j) {
                if (!result[i][j]) continue;
                for (const auto& step : steps) {
                    const std::size_t down =
                        i + static_cast<std::size_t>(step[0]);  // -1 wraps to a row beyond the last
                    const std::size_t right = j + static_cast<std::size_t>(step[1]);
                    if (down >= rows || right >= columns) continue;
                    if (result[down][right] || !(forward[down][right] || reverse[down][right])) continue;
                    bool source = false, target = false;  // whether it has a link
                    for (std::size_t k = 0; k < columns; ++k) source = source || result[down][k];
                    for (std::size_t k = 0; k < rows; ++k) target = target || result[k][right];
                    if (strict ? source || target : source && target) continue;
                    result[down][right] = more = true;
                }
            }
        }
    }
    return result;
}

}  // namespace

TEST_CASE("a hand-computed example of two directions")
{
    // Both: 0-0 and 2-2. Next to 0-0: 0-1 (target 1 is free), 1-1 diagonally (source 1 is free). Not adjacent to a
    // link: 5-0 gives source 5 its first link, 4-4 gives both of its words their first link.
    const std::string forward = "0-0 0-1 2-2 4-4", reverse = "0-0 1-1 2-2 5-0";
    CHECK(combined(forward, reverse, "intersection") == "0-0 2-2");
    CHECK(combined(forward, reverse, "union") == "0-0 0-1 1-1 2-2 4-4 5-0");
    CHECK(combined(forward, reverse, "grow-diag") == "0-0 0-1 1-1 2-2");
    CHECK(combined(forward, reverse, "grow-diag-final") == "0-0 0-1 1-1 2-2 4-4 5-0");
    CHECK(combined(forward, reverse, "grow-diag-final-and") == "0-0 0-1 1-1 2-2 4-4");
    // 0-1 gives only one of its words its first link.
    CHECK(combined(forward, reverse, "grow-diag-strict") == "0-0 1-1 2-2");
    CHECK(combined(forward, reverse, "grow-diag-final-strict") == "0-0 1-1 2-2 4-4");
}

TEST_CASE("random links equal the pseudocode")
{
    heed::random_source source{9};
    for (std::size_t round = 0; round < 200; ++round) {
        const std::uint64_t stream = source.next_stream();
        const std::size_t rows = 1 + heed::below(7, stream, 0), columns = 1 + heed::below(7, stream, 1);
        table forward(rows, std::vector<bool>(columns)), reverse = forward;
        std::uint64_t drawn = 2;
        for (table* const each : {&forward, &reverse})
            for (auto& row : *each)
                for (std::size_t j = 0; j < columns; ++j) row[j] = heed::uniform(stream, drawn++) < 0.4;
        CAPTURE(pharaoh(links_of(forward)));
        CAPTURE(pharaoh(links_of(reverse)));
        for (const bool strict : {false, true}) {
            const table grown = by_pseudo_code(forward, reverse, strict);
            CHECK(pharaoh(symmetrize(links_of(forward), links_of(reverse),
                                     strict ? symmetrization::grow_diag_strict : symmetrization::grow_diag)) ==
                  pharaoh(links_of(grown)));
        }
    }
}

TEST_CASE("growing continues from added links, forward and backward")
{
    const std::string far = "0-3 1-2 2-1 3-0 4-0 5-0";
    CHECK(combined(far, "3-0", "grow-diag") == far);
    CHECK(combined(far, "0-3", "grow-diag") == far);
    CHECK(combined(far, "5-0", "grow-diag") == far);
    CHECK(combined(far, "", "grow-diag").empty());  // no link to start from
    CHECK(combined(far, "", "grow-diag-final") == far);
    CHECK(combined(far, "", "grow-diag-final-and") == "0-3 1-2 2-1 3-0");
}

TEST_CASE("a link that gives no word its first partner is not added")
{
    // 0-1 and 1-0 are between aligned words.
    CHECK(combined("0-0 1-1 0-1", "0-0 1-1 1-0", "grow-diag-final") == "0-0 1-1");
    // A final step reads the links of the previous step: of 3-0 and 3-5, the forward one comes first, and 5 stays
    // unlinked.
    CHECK(combined("0-0 3-5", "0-0 3-0", "grow-diag-final") == "0-0 3-5");
}

TEST_CASE("results equal those of an independent implementation")
{
    // Hansards test sentence and its baselines (fast_align, then grow-diagonal of lilt/alignment-scripts).
    CHECK(combined(
              "0-1 1-2 2-0 3-3 4-4 5-5 5-6 6-7 7-8 7-9 8-10 8-11 9-12 10-13 11-14 11-17 12-15 15-19 15-20 16-18 16-21 "
              "17-22 18-23 19-24",
              "0-0 1-2 2-0 3-3 4-4 5-6 6-7 7-8 8-11 9-12 10-13 11-14 12-15 13-18 14-18 15-19 16-20 17-22 18-23 19-24",
              "grow-diag-strict") ==
          "0-1 1-2 2-0 3-3 4-4 5-6 6-7 7-8 8-11 9-12 10-13 11-14 12-15 14-18 15-19 16-20 17-22 18-23 19-24");
}

TEST_CASE("duplicate, empty, identical and disjoint links")
{
    CHECK(combined("1-1 0-0 1-1", "0-0 1-1", "intersection") == "0-0 1-1");
    for (const auto& each : symmetrizations) {
        const std::string_view name = each.first;  // clang cannot capture a structured binding
        const symmetrization method = each.second;
        CAPTURE(name);
        CHECK(symmetrize(links{}, links{}, method).empty());
        CHECK(symmetrize(links{{2, 1}, {0, 0}}, links{{0, 0}, {2, 1}}, method) == links{{0, 0}, {2, 1}});
        CHECK(symmetrization_named(name) == method);
    }
    CHECK(combined("0-0", "1-1", "intersection").empty());
    CHECK(combined("0-0", "1-1", "grow-diag").empty());
    CHECK(combined("0-0", "1-1", "union") == "0-0 1-1");
    CHECK(flipped({{0, 3}, {2, 1}}) == links{{3, 0}, {1, 2}});
}

TEST_CASE("positions up to the maximum of int work")
{
    constexpr int most = std::numeric_limits<int>::max();
    const links far{{0, 0}, {most, most}, {most - 1, most}};
    CHECK(symmetrize(far, {{0, 0}, {most, most}}, symmetrization::grow_diag) ==
          links{{0, 0}, {most - 1, most}, {most, most}});
}

TEST_CASE("unequal numbers of alignments and unknown methods are rejected")
{
    CHECK_THROWS_WITH_AS(
        symmetrization_named("grow"),
        "symmetrization \"grow\" is not known; choose from intersection, union, grow-diag, grow-diag-final, "
        "grow-diag-final-and, grow-diag-strict, grow-diag-final-strict",
        heed::error);
    CHECK_THROWS_WITH_AS(
        symmetrize(std::vector<links>(2), std::vector<links>(3), symmetrization::all),
        "symmetrize: 2 forward alignments but 3 reverse alignments; expected one of each per sentence pair",
        heed::error);
    CHECK(symmetrize(std::vector<links>{{{0, 0}}, {}}, std::vector<links>{{{0, 0}}, {{1, 1}}}, symmetrization::all) ==
          std::vector<links>{{{0, 0}}, {{1, 1}}});
}
