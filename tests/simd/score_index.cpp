// SPDX-License-Identifier: BSD-3-Clause
#include <heed/simd/score_index.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

using namespace heed;

namespace {

/// Whether a query at key `here` sees a key.
bool sees(const auto& mask, std::int32_t here, std::int32_t key)
{
    score_index p;
    p.diagonal = p.query = pack<std::int32_t>(here);
    p.key = pack<std::int32_t>(key);
    const lane_mask seen(mask(p));
    return seen.at[0] != 0;
}

/// Checks that no query of a run sees a key outside `reach`, and that each sees every key of `whole`; returns the
/// number of keys that `reach` excludes and `whole` includes.
std::pair<std::size_t, std::size_t> check_ranges(const auto& mask)
{
    constexpr std::int32_t n = 12;
    std::size_t outside = 0, named = 0, wrong = 0;
    for (std::int32_t first = 0; first < n; ++first) {
        for (std::int32_t last = first; last < n; ++last) {
            const key_range reach = detail::visible_range_of(mask, first, last),
                            whole = detail::full_range_of(mask, first, last);
            for (std::int32_t key = 0; key < n; ++key) {
                bool one = false, all = true;
                for (std::int32_t query = first; query <= last; ++query) {
                    one = one || sees(mask, query, key);
                    all = all && sees(mask, query, key);
                }
                const bool in_reach = reach.contains(key, key), in_whole = whole.contains(key, key);
                wrong += (one && !in_reach) || (in_whole && !all) ? 1u : 0u;
                outside += in_reach ? 0u : 1u;
                named += in_whole ? 1u : 0u;
            }
        }
    }
    CHECK(wrong == 0);
    return {outside, named};
}

}  // namespace

TEST_CASE("predicate masks, single and combined, see the documented keys, and their ranges are correct")
{
    const mask_mod even{[](const score_index& p) { return p.key % 2 == 0; }};
    const sliding_window near{3};
    for (std::int32_t query = 0; query < 9; ++query) {
        for (std::int32_t key = 0; key < 9; ++key) {
            const bool behind = key > query, apart = query - key >= 3 || key - query >= 3, odd = key % 2 == 1;
            CHECK(sees(not_behind{}, query, key) == !behind);
            CHECK(sees(near, query, key) == !apart);
            CHECK(sees(causal{} & near, query, key) == (!behind && !apart));
            CHECK(sees(near | even, query, key) == (!apart || !odd));
            CHECK(sees(!near, query, key) == apart);
            CHECK(sees(
                      causal{} & [](const score_index& p) { return p.key % 2 == 0; }, query, key) == (!behind && !odd));
            CHECK(sees(!(even | !causal{}), query, key) == (odd && !behind));
        }
    }
    const auto [left_out, named] = check_ranges(causal{} & near);
    CHECK(left_out > 0);
    CHECK(named > 0);
    check_ranges(not_behind{});
    check_ranges(near);
    check_ranges(near | even);
    check_ranges(not_behind{} | near);
    check_ranges(!near);
    check_ranges(!not_behind{});
    check_ranges(!even);
    check_ranges(near & !sliding_window{2});
    check_ranges(!(not_behind{} & near));
}

TEST_CASE("windows of any size do not overflow")
{
    const std::int32_t most = std::numeric_limits<std::int32_t>::max();
    const sliding_window all{most};
    CHECK(all.visible_range(0, most - 1).contains(0, most - 1));
    CHECK(all.full_range(5, 9).contains(0, 14));
    const sliding_window none{0};
    CHECK(none.visible_range(4, 4).empty());
    CHECK(!sees(none, 4, 4));
}

TEST_CASE("indices are copied with their steps; functions of scores see the query's index as `diagonal`")
{
    score_index p;
    p.batch = 3, p.head = 2;
    p.query = detail::stepping({true, 5, 1, 0});
    p.key = detail::stepping({true, 7, 0, 1});
    p.diagonal = detail::stepping({true, 9, 1, 0});
    score_index copy;
    copy = p;
    const score_index again(copy);
    CHECK(again.batch == 3);
    CHECK(again.head == 2);
    CHECK(again.query[1] == 6);
    CHECK(again.key.steps.per_key == 1);
    CHECK(again.diagonal.steps.first == 9);
    const score_index scored = detail::for_score(p);
    CHECK(scored.diagonal[1] == 6);
    CHECK(scored.diagonal.steps.first == 5);
    CHECK(scored.key[0] == 7);
}

TEST_CASE("a mask with a known range for its last query is one contiguous range")
{
    struct {
        std::vector<std::size_t> real{10};
        std::size_t sentences = 1;
        std::size_t batch() const { return sentences; }
    } memory;
    CHECK(detail::seen_in_one_piece(not_behind{}, memory) == std::pair<std::size_t, std::size_t>{0, 10});
    CHECK(detail::seen_in_one_piece(sliding_window{4}, memory) == std::pair<std::size_t, std::size_t>{6, 10});
    const mask_mod even{[](const score_index& p) { return p.key % 2 == 0; }};
    CHECK(detail::seen_in_one_piece(even, memory) == std::pair<std::size_t, std::size_t>{0, 0});
    memory.sentences = 2;
    CHECK(detail::seen_in_one_piece(not_behind{}, memory) == std::pair<std::size_t, std::size_t>{0, 0});
}
