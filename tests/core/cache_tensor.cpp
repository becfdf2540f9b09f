// SPDX-License-Identifier: BSD-3-Clause

#include <heed/core/cache_tensor.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

#include <heed/core/random.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::random;

namespace {

constexpr std::size_t N = 3;

/// The expected contents of a cache tensor: the numbers of each row.
using model = std::vector<std::vector<double>>;

bool same(const cache_tensor<double>& x, const model& must)
{
    const auto [B, T, width] = x.shape();
    std::size_t longest = 0;
    for (const auto& row : must) longest = std::max(longest, row.size() / N);
    if (B != must.size() || width != N || T != longest) return false;
    for (std::size_t b = 0; b < B; ++b) {
        if (x.length(b) * N != must[b].size()) return false;
        for (std::size_t i = 0; i < must[b].size(); ++i)
            if (x.row(b)[i] != must[b][i]) return false;
        for (std::size_t i = must[b].size(); i < T * N; ++i)
            if (!(x.row(b)[i] - x.row(b)[i] == 0)) return false;  // finite and readable
    }
    return true;
}

}  // namespace

TEST_CASE("copies, selected rows, appended and dropped positions match lists of numbers")
{
    struct value {
        cache_tensor<double> is;
        model must;
    };
    std::uint64_t draw = 0;
    const auto drawn = [&](std::size_t below) { return heed::below(below, 7, draw++); };
    for (std::size_t round = 0; round < 30; ++round) {
        const std::size_t rows = drawn(4);
        const auto first = random({rows, 2, N}, draw);
        std::vector<value> all(1);
        std::vector<std::size_t> counts(rows);
        all[0].must.resize(rows);
        for (std::size_t b = 0; b < rows; ++b) {
            counts[b] = drawn(3);
            for (std::size_t i = 0; i < counts[b] * N; ++i) all[0].must[b].push_back(first.data()[b * 2 * N + i]);
        }
        all[0].is = cache_tensor<double>(view_of(first), lengths(counts));
        // T of the first tensor is that of x, for any lengths.
        CHECK(all[0].is.shape() == shape_of_rank<3>{rows, 2, N});
        std::vector<std::size_t> every(rows);
        for (std::size_t b = 0; b < rows; ++b) every[b] = b;
        all[0].is = all[0].is.rows(every);
        for (std::size_t act = 0; act < 60; ++act) {
            value next = all[drawn(all.size())];
            const std::size_t B = next.must.size();
            const std::size_t what = drawn(6);
            if (what > 2) {
                const std::size_t t = 1 + drawn(12);
                const auto more = random({B, t, N}, 1000 + draw);
                std::vector<std::size_t> some(B);
                for (std::size_t b = 0; b < B; ++b) {
                    some[b] = drawn(t + 1);
                    for (std::size_t i = 0; i < some[b] * N; ++i) next.must[b].push_back(more.data()[b * t * N + i]);
                }
                next.is.append(view_of(more), lengths(some));
            } else if (what == 2) {
                std::vector<std::size_t> oldest(B);
                for (std::size_t b = 0; b < B; ++b) {
                    std::vector<double>& row = next.must[b];
                    oldest[b] = drawn(row.size() / N + 1);
                    row.erase(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(oldest[b] * N));
                }
                next.is = next.is.without_oldest(lengths(oldest));
            } else if (B > 0) {
                std::vector<std::size_t> which(drawn(5));
                model must;
                for (std::size_t& row : which) {
                    row = drawn(B);
                    must.push_back(next.must[row]);
                }
                next.is = next.is.rows(which);
                next.must = must;
            }
            all.push_back(std::move(next));
            if (all.size() > 8) all.erase(all.begin() + static_cast<std::ptrdiff_t>(drawn(all.size())));
            bool each = true;
            for (const value& v : all) each = each && same(v.is, v.must);
            REQUIRE(each);
        }
    }
}

TEST_CASE("the first copy that grows uses the spare capacity, a later copy moves")
{
    const auto word = random({1, 1, N}, 2);
    const auto begin = random({1, 2, N}, 1);
    cache_tensor<double> a(view_of(begin), lengths{2});
    auto b = a;
    const double* const place = a.row(0);
    CHECK(b.row(0) == place);
    b.append(view_of(word), lengths{1});
    CHECK(b.row(0) == place);
    a.append(view_of(word), lengths{0});  // nothing to append
    CHECK(a.row(0) == place);
    a.append(view_of(word), lengths{1});
    CHECK(a.row(0) != place);
    CHECK(b.row(0) == place);
    CHECK(reinterpret_cast<std::uintptr_t>(place) % 64 == 0);
}

TEST_CASE("threads grow copies of one tensor at the same time")
{
    constexpr std::size_t many = 4, T = 300;
    const auto begin = random({1, 2, N}, 1);
    const cache_tensor<double> old(view_of(begin), lengths{2});
    std::vector<cache_tensor<double>> all(many, old);
    std::vector<std::thread> running;
    for (std::size_t i = 0; i < many; ++i) {
        running.emplace_back([&all, i] {
            for (std::size_t t = 0; t < T; ++t) {
                const auto word = filled<double, 3>({1, 1, N}, static_cast<double>(1000 * i + t));
                all[i].append(view_of(word), lengths{1});
            }
        });
    }
    for (std::thread& each : running) each.join();
    for (std::size_t i = 0; i < many; ++i) {
        model must(1, std::vector<double>(old.row(0), old.row(0) + 2 * N));
        for (std::size_t t = 0; t < T; ++t) must[0].insert(must[0].end(), N, static_cast<double>(1000 * i + t));
        CHECK(same(all[i], must));
    }
    CHECK(old.length(0) == 2);
}

TEST_CASE("appending a thousand positions one by one moves seven times")
{
    const auto begin = random({1, 1, N}, 1);
    cache_tensor<double> x(view_of(begin), lengths{1});
    std::size_t moves = 0;
    for (std::size_t t = 1; t < 1000; ++t) {
        const auto before = x;  // an older copy does not force a move
        const auto word = random({1, 1, N}, t);
        x.append(view_of(word), lengths{1});
        moves += x.row(0) != before.row(0) ? 1 : 0;
    }
    CHECK(moves >= 1);
    CHECK(moves <= 7);
    CHECK(x.shape() == shape_of_rank<3>{1, 1000, N});
}

TEST_CASE("dropping the oldest positions does not copy, and a sliding window moves once per window length")
{
    const auto begin = random({1, 40, N}, 1);
    cache_tensor<double> x(view_of(begin), lengths{40});
    CHECK(x.without_oldest(lengths{7}).row(0) == x.row(0) + 7 * N);
    CHECK(x.without_oldest(lengths{40}).shape() == shape_of_rank<3>{1, 0, N});
    std::size_t moves = 0;
    for (std::size_t t = 0; t < 1000; ++t) {
        const auto before = x;
        const auto word = random({1, 1, N}, t);
        x.append(view_of(word), lengths{1});
        moves += x.row(0) != before.row(0) ? 1 : 0;
        x = x.without_oldest(lengths{1});
    }
    CHECK(x.shape() == shape_of_rank<3>{1, 40, N});
    CHECK(moves >= 1);
    CHECK(moves <= 1000 / 38);
}

TEST_CASE("gathered tensors, and a view of a single row")
{
    const auto x = random({2, 3, N}, 1);
    const cache_tensor<double> two(view_of(x), lengths{3, 1});
    const auto all = gathered(two);
    for (std::size_t i = 0; i < 4 * N; ++i) CHECK(all.data()[i] == x.data()[i]);
    for (std::size_t i = 4 * N; i < 6 * N; ++i) CHECK(all.data()[i] == 0);
    const std::vector<std::size_t> first{0};
    const auto one = two.rows(first);
    CHECK(view_of(one).data == two.row(0));
    CHECK(shape_of(one) == shape_of_rank<3>{1, 3, N});
    const cache_tensor<double> none;
    CHECK(view_of(none).size() == 0);
}

TEST_CASE("cache tensors: messages")
{
    const auto begin = random({2, 3, N}, 1);
    cache_tensor<double> x(view_of(begin), lengths{3, 1});
    CHECK(support::message_of<shape_error>([&] { (void)view_of(x); }) ==
          "a cache tensor [2,3,3] has rows that are not contiguous, so it cannot be viewed; pass "
          "gathered(x), a copy of it");
    CHECK(support::message_of<shape_error>([&] {
              const std::vector<std::size_t> third{2};
              (void)x.rows(third);
          }) == "cache_tensor::rows: row 2 of [2,3,3]; rows count from 0");
    CHECK(support::message_of<shape_error>([&] {
              const auto wide = random({2, 1, 4}, 1);
              x.append(view_of(wide), lengths{1, 1});
          }) ==
          "cache_tensor::append: the appended part is [2,1,4] but must be [2,1,3] (the batch and the width of this "
          "tensor, [2,3,3])");
    CHECK(support::message_of<shape_error>([&] {
              (void)x.without_oldest(lengths{2, 2});
          }) == "without_oldest: 2 positions of row 1, which has 1; a count is at most the length of its row");
    CHECK(support::message_of<shape_error>([&] { (void)x.without_oldest(lengths{1}); }) ==
          "without_oldest: 1 length for a batch of 2 rows; give the number of positions to drop for each row");
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                const auto more = random({2, 1, N}, 1);
                                x.append(view_of(more), lengths{1, 2});
                            }),
                            "the length of row 1 is 2"));
}
