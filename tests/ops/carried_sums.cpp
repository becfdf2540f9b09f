// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/carried_sums.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <cstddef>
#include <span>
#include <vector>

using namespace heed;
using support::random;

TEST_CASE("the product of a query's row and a key's row is the sum over the positions between them")
{
    const auto x = random({2, 6, 1}, 1);
    const auto keys = ops::carried_sums(x);
    const lengths real{6, 4};
    const auto queries = ops::carried_to(keys, std::span<const std::size_t>{}, real, std::size_t{1}, std::size_t{5});
    REQUIRE(queries.shape() == shape_of_rank<3>{2, 5, 2});
    for (std::size_t b = 0; b < 2; ++b) {
        for (std::size_t s = 0; s < 5; ++s) {
            const std::size_t at = std::min(1 + s, real[b] - 1);
            for (std::size_t j = 0; j <= at; ++j) {
                double between = 0;
                for (std::size_t l = j + 1; l <= at; ++l) between += x(b, l, 0);
                CHECK(queries(b, s, 0) * keys(b, j, 0) + queries(b, s, 1) * keys(b, j, 1) == support::approx(between));
            }
        }
    }
    CHECK_GRADIENT([](const auto& v) { return ops::carried_sums(v); }, x);
    CHECK_GRADIENT(
        [&](const auto& k) {
            return ops::carried_to(k, std::span<const std::size_t>{}, real, std::size_t{1}, std::size_t{5});
        },
        random({2, 6, 3}, 2));
}

TEST_CASE("sums of new keys continue those of earlier keys")
{
    const auto x = random({2, 7, 1}, 1);
    array<double, 3> first({2, 4, 1}), second({2, 3, 1});
    for (std::size_t b = 0; b < 2; ++b) {
        for (std::size_t t = 0; t < 7; ++t) (t < 4 ? first(b, t, 0) : second(b, t - 4, 0)) = x(b, t, 0);
    }
    const auto all = ops::carried_sums(x);
    const auto carried = ops::carry_sums(ops::carried_sums(second), ops::carried_sums(first));
    for (std::size_t b = 0; b < 2; ++b) {
        for (std::size_t t = 0; t < 3; ++t) {
            CHECK(carried(b, t, 0) == 1);
            CHECK(carried(b, t, 1) == support::approx(all(b, t + 4, 1)));
        }
    }
    const auto keys = random({2, 3, 2}, 2);
    CHECK(support::same_bits(ops::carry_sums(keys, random({2, 0, 2}, 3)), keys));
    CHECK_GRADIENT([](const auto& k, const auto& before) { return ops::carry_sums(k, before); }, random({2, 3, 4}, 4),
                   random({2, 2, 4}, 5));
}

TEST_CASE("rows that share sentences, rows without a position, and shapes that do not fit")
{
    const auto keys = random({2, 4, 2}, 1);
    const std::vector<std::size_t> sentence{1, 1, 0};
    const auto y = ops::carried_to(keys, std::span(sentence), lengths{4, 0, 2}, std::size_t{0}, std::size_t{1});
    CHECK(support::same_bits(y, array<double, 3>{{{-keys(1, 0, 1), 1.0}}, {{0.0, 1.0}}, {{-keys(0, 0, 1), 1.0}}}));
    const auto says = [](auto&& f) { return support::message_of<shape_error>(f); };
    const std::vector<std::size_t> unknown{2, 0};
    CHECK(says([&] {
              (void)ops::carried_to(keys, std::span(unknown), lengths{1, 1}, std::size_t{0}, std::size_t{1});
          }) == "carried_to: sentence 2 of keys [2,4,2]; sentences count from 0");
    CHECK(says([&] {
              (void)ops::carried_sums(random({2, 3, 2}, 1));
          }) == "carried_sums: x is [2,3,2] but must be [2,3,1] (one number for each position)");
    CHECK(says([&] {
              (void)ops::carry_sums(random({2, 3, 1}, 1), random({2, 3, 1}, 1));
          }) == "a score with gates: keys [2,3,1] have no columns of sums; use the memory that this mechanism made");
}
