// SPDX-License-Identifier: BSD-3-Clause
#include <heed/core/workspace.hpp>
#include <heed/score/keys_up_to_query.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include <support/tensors.hpp>

using namespace heed;

namespace {

std::vector<std::size_t> listed(const lengths_view& counts) { return {counts.data(), counts.data() + counts.batch()}; }

struct three_sentences {
    array<double, 3> keys;
    lengths real{3, 1, 0};
};

/// As steps map state to some rows of the batch, and to windows.
struct rows_from_second {
    lengths_view part(const lengths_view& all) const { return all.rows(1, 2); }
};
struct cut_window {
    window_view where;
};

}  // namespace

TEST_CASE("a query is at its own position, or at the last position of a shorter sentence")
{
    const scratch here;
    const three_sentences memory;
    using numbers = std::vector<std::size_t>;
    CHECK(listed(score::keys_up_to_query::of_step(0, memory).count) == numbers{1, 1, 0});
    CHECK(listed(score::keys_up_to_query::of_step(1, memory).count) == numbers{2, 1, 0});
    CHECK(listed(score::keys_up_to_query::of_step(7, memory).count) == numbers{3, 1, 0});
    const auto all = score::keys_up_to_query::of_all({.first = 1, .real = memory.real}, 2);
    CHECK(listed(all.count) == numbers{2, 3, 1, 1, 0, 0});
    CHECK(all.first.batch() == 0);
}

TEST_CASE("part of a batch has the counts of its rows, and a window its first key")
{
    const scratch here;
    const auto now = score::keys_up_to_query::of_step(1, three_sentences{});
    CHECK(listed(now.map(rows_from_second{}).count) == std::vector<std::size_t>{1, 0});
    CHECK(score::keys_up_to_query{}.map(rows_from_second{}).count.batch() == 0);
    const window near{{1, 0, 0}, lengths{2, 1, 0}, 2};
    const auto cut = now.map(cut_window{near});
    CHECK(listed(cut.first) == std::vector<std::size_t>{1, 0, 0});
    CHECK(listed(cut.count) == listed(now.count));

    const lengths_view count = now.count;  // 2, 1, 0
    CHECK(ops::detail::keys_of_row(count, cut.first, 0, 2) == 1);
    CHECK(ops::detail::keys_of_row(count, cut.first, 2, 2) == 0);
    CHECK(ops::detail::keys_of_row(count, lengths_view{}, 0, 3) == 2);
    CHECK(ops::detail::keys_of_row(count, lengths_view{}, 0, 1) == 1);   // only one of the two is visible
    CHECK(ops::detail::keys_of_row(lengths{1}, lengths{3}, 0, 2) == 0);  // the window begins after the query
}

TEST_CASE("counts that do not fit the rows are rejected")
{
    const auto refused = [](const lengths& count, const lengths& first, std::size_t rows) {
        return support::message_of<shape_error>([&] { ops::detail::require_places("here", count, first, rows); });
    };
    ops::detail::require_places("here", lengths{1, 2}, lengths{}, 2);
    ops::detail::require_places("here", lengths{1, 2}, lengths{0, 1}, 2);
    CHECK(support::contains(refused({1, 2}, {}, 3), "here: 2 counts of keys and 0 first keys for 3 rows"));
    CHECK(support::contains(refused({1, 2}, {1}, 2), "2 counts of keys and 1 first keys for 2 rows"));
}
