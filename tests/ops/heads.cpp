// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/heads.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <utility>

#include <support/gradients.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::random;

namespace {

constexpr std::size_t B = 2, n = 3, S = 4, d = 5;

}  // namespace

TEST_CASE("joined heads, separate heads and rows of heads")
{
    const auto x = random({B, S, n * d}, 1);
    const auto split = split_heads(x, n);
    CHECK(split.shape() == shape_of_rank<4>{B, n, S, d});
    const auto apart = split.apart();
    const auto rows = heed::detail::seen_as_rows(split), copied = heed::detail::rows_of_heads(apart);
    for (std::size_t b = 0; b < B; ++b) {
        for (std::size_t h = 0; h < n; ++h) {
            for (std::size_t s = 0; s < S; ++s) {
                for (std::size_t i = 0; i < d; ++i) {
                    CHECK(apart(b, h, s, i) == x(b, s, h * d + i));
                    CHECK(rows(b * n + h, s, i) == x(b, s, h * d + i));
                }
            }
        }
    }
    CHECK(support::same_bits(copied, rows));
    CHECK(support::same_bits(heed::detail::heads_of_rows(rows, n), apart));
    CHECK(support::same_bits(join_heads(apart), x));
    CHECK(support::same_bits(join_heads(split_heads(random({B, 0, n * d}, 1), n).apart()), random({B, 0, n * d}, 1)));
}

TEST_CASE("split_heads of an lvalue does not copy, and neither does a view of heads as rows")
{
    const auto q = random({B, S, n * d}, 1);
    CHECK(split_heads(q, n).joined.data() == q.data());
    auto given = q;
    const double* const there = given.data();
    CHECK(split_heads(std::move(given), n).joined.data() == there);
    CHECK(&join_heads(split_heads(q, n)) == &q);

    auto heads = random({B, n, S, d}, 2);
    const double* const numbers = heads.data();
    CHECK(view_of(heed::detail::seen_as_rows(heads)).data == numbers);
    CHECK(heed::detail::rows_of_heads(heads).data() != numbers);  // a memory owns its arrays
    CHECK(heed::detail::rows_of_heads(std::move(heads)).data() == numbers);
}

TEST_CASE("gradients of heads")
{
    const auto x = random({B, S, n * d}, 1), rows = random({B * n, S, d}, 3);
    CHECK(support::gradient_of<1>([](const auto& y) { return split_heads(y, n).apart(); }, x).worst < 1e-8);
    CHECK(
        support::gradient_of<1>([](const auto& y) { return heed::detail::seen_as_rows(split_heads(y, n)); }, x).worst <
        1e-8);
    CHECK(support::gradient_of<1>([](const auto& y) { return heed::detail::heads_of_rows(y, n); }, rows).worst < 1e-8);
    CHECK(support::gradient_of<1>([](const auto& y) { return join_heads(y); }, random({B, n, S, d}, 2)).worst < 1e-8);
}

TEST_CASE("a last axis that the number of heads does not divide is rejected")
{
    CHECK_THROWS_WITH_AS((void)split_heads(random({2, 3, 7}, 1), 2),
                         "split_heads: the last axis of [2,3,7] cannot be split into 2 heads; the number of heads must "
                         "divide its size",
                         shape_error);
    CHECK_THROWS_AS((void)split_heads(random({2, 3, 7}, 1), 0), shape_error);
}
