// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/rotate.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

using namespace heed;
using support::random;

namespace {

/// The maximum difference of y from x [B,H,T,N] rotated in scalar loops. `angles(b, t, m)`: the cosine and sine.
double distance_from_turned(const array<double, 4>& y, const array<double, 4>& x, const ops::rotation& how,
                            const auto& angles)
{
    const std::size_t N = x.shape()[3], half = (how.width == 0 ? N : how.width) / 2;
    const bool halves = how.pairs == ops::turned_pairs::halves;
    array<double, 4> must = x;
    for (std::size_t b = 0; b < x.shape()[0]; ++b) {
        for (std::size_t h = 0; h < x.shape()[1]; ++h) {
            for (std::size_t t = 0; t < x.shape()[2]; ++t) {
                for (std::size_t m = 0; m < half; ++m) {
                    const std::size_t i = halves ? m : 2 * m, k = halves ? m + half : 2 * m + 1;
                    const auto [c, s] = angles(b, t, m);
                    must(b, h, t, i) = c * x(b, h, t, i) - s * x(b, h, t, k);
                    must(b, h, t, k) = s * x(b, h, t, i) + c * x(b, h, t, k);
                }
            }
        }
    }
    return support::distance(y, must);
}

std::pair<double, double> angle_at(std::size_t position, std::size_t m, std::size_t width, double base)
{
    const double angle =
        static_cast<double>(position) * std::pow(base, -2.0 * static_cast<double>(m) / static_cast<double>(width));
    return {std::cos(angle), std::sin(angle)};
}

const ops::rotation all_kinds[] = {{},
                                   {100, ops::turned_pairs::halves},
                                   {100, ops::turned_pairs::neighbors, 4},
                                   {10000, ops::turned_pairs::halves, 4},
                                   {10000, ops::turned_pairs::halves, 6}};

}  // namespace

TEST_CASE("each pair is rotated by its angle, at any position, in either order of pairs")
{
    const auto x = random({2, 3, 6}, 1);
    for (const std::size_t first : {0u, 1u, 31u, 100u, 5000u}) {
        for (const auto pairs : {ops::turned_pairs::neighbors, ops::turned_pairs::halves}) {
            const ops::rotation how{100, pairs};
            const auto y = ops::rotate(x, first, how);
            for (std::size_t b = 0; b < 2; ++b) {
                for (std::size_t t = 0; t < 3; ++t) {
                    for (std::size_t m = 0; m < 3; ++m) {
                        const bool halves = pairs == ops::turned_pairs::halves;
                        const std::size_t i = halves ? m : 2 * m, k = halves ? m + 3 : 2 * m + 1;
                        const double angle =
                            static_cast<double>(first + t) * std::pow(100.0, -2.0 * static_cast<double>(m) / 6);
                        const double c = std::cos(angle), s = std::sin(angle);
                        CHECK(y(b, t, i) == support::approx(c * x(b, t, i) - s * x(b, t, k)));
                        CHECK(y(b, t, k) == support::approx(s * x(b, t, i) + c * x(b, t, k)));
                    }
                }
            }
        }
    }
}

TEST_CASE("a position has the same bits in any call, and the gradient is rotated back")
{
    const auto x = random({1, 80, 4}, 1);
    const auto all = ops::rotate(x, std::size_t{7}, ops::rotation{});
    for (const std::size_t t : {0u, 24u, 25u, 79u}) {
        array<double, 2> one({1, 4});
        for (std::size_t i = 0; i < 4; ++i) one(0, i) = x(0, t, i);
        const auto alone = ops::rotate(one, 7 + t, ops::rotation{});
        for (std::size_t i = 0; i < 4; ++i) CHECK(alone(0, i) == all(0, t, i));
    }
    const auto f = [](const auto& v) { return ops::rotate(v, std::size_t{30}, ops::rotation{}); };
    CHECK_GRADIENT(f, random({2, 4, 6}, 2));
    CHECK_GRADIENT(f, random({2, 4}, 3));
    CHECK(support::message_of<shape_error>([&] {
              (void)f(random({2, 5}, 1));
          }) == "rotate: vectors of size 5 in [2,5]; elements are rotated in pairs, so the size must be even");
}

TEST_CASE("given positions, shared by all sentences or not, of any integer type")
{
    const std::size_t B = 2, H = 3, T = 4, N = 6;
    const auto x = random({B, H, T, N}, 1);
    const std::vector<std::size_t> rows{7, 0, 100, 31, 64, 63, 5000, 5001}, row(rows.begin(), rows.begin() + 4);
    for (const ops::rotation& how : all_kinds) {
        const std::size_t width = how.width == 0 ? N : how.width;
        const auto each = [&](std::size_t b, std::size_t t, std::size_t m) {
            return angle_at(rows[b * T + t], m, width, how.base);
        };
        const auto same = [&](std::size_t, std::size_t t, std::size_t m) {
            return angle_at(row[t], m, width, how.base);
        };
        const auto y = ops::rotate(x, rows, how);
        CHECK(distance_from_turned(y, x, how, each) < 1e-11);
        CHECK(distance_from_turned(ops::rotate(x, row, how), x, how, same) < 1e-11);

        // Heads are sentences with the same positions; a position has the same bits as in a call that starts there.
        for (std::size_t h = 0; h < H; ++h) {
            const array<double, 3> head = ops::reshaped(ops::slice(x, 1, h, h + 1), B, T, N);
            const array<double, 3> must = ops::reshaped(ops::slice(y, 1, h, h + 1), B, T, N);
            CHECK(support::same_bits(ops::rotate(head, rows, how), must));
            for (std::size_t t = 0; t < T; ++t) {
                const auto now = ops::step_of(head, t);
                const std::vector<std::size_t> numbers{rows[t], rows[T + t]};
                CHECK(support::same_bits(ops::rotate(now, numbers, how), ops::step_of(must, t)));
                CHECK(ops::rotate(now, rows[t], how)(0, 1) == must(0, t, 1));
                CHECK(ops::rotate(now, std::span(rows).subspan(t, 1), how)(0, 1) == must(0, t, 1));
            }
        }
    }

    array<std::int64_t, 2> ids({B, T});
    std::vector<int> list;
    for (std::size_t i = 0; i < B * T; ++i) {
        ids.data()[i] = static_cast<std::int64_t>(rows[i]);
        list.push_back(static_cast<int>(rows[i]));
    }
    CHECK(support::same_bits(ops::rotate(x, ids), ops::rotate(x, rows, ops::rotation{})));
    CHECK(support::same_bits(ops::rotate(x, list), ops::rotate(x, ids)));
    const auto from_7 = ops::rotate(x, 7);
    CHECK(support::same_bits(from_7, ops::rotate(x, std::vector{7, 8, 9, 10})));
    for (std::size_t i = 0; i < T * N; ++i) CHECK(from_7.data()[i] == ops::rotate(x, 7, {}).data()[i]);
}

TEST_CASE("given tables: a row for each position, or looked up by position")
{
    const std::size_t B = 2, H = 3, T = 4, N = 6, P = 9;
    const auto x = random({B, H, T, N}, 1);
    const std::vector<std::size_t> rows{8, 0, 3, 3, 1, 2, 3, 4}, row(rows.begin(), rows.begin() + 4);
    for (const ops::rotation& how : all_kinds) {
        const std::size_t half = (how.width == 0 ? N : how.width) / 2;
        const auto c = random({P, half}, 2), s = random({P, half}, 3);  // any numbers
        const auto each = [&](std::size_t b, std::size_t t, std::size_t m) {
            return std::pair{c(rows[b * T + t], m), s(rows[b * T + t], m)};
        };
        CHECK(distance_from_turned(ops::rotate(x, c, s, rows, how), x, how, each) < 1e-15);
        const auto same = [&](std::size_t, std::size_t t, std::size_t m) {
            return std::pair{c(row[t], m), s(row[t], m)};
        };
        CHECK(distance_from_turned(ops::rotate(x, c, s, row, how), x, how, same) < 1e-15);

        const auto c_2 = random({T, half}, 4), s_2 = random({T, half}, 5);
        const auto by_position = [&](std::size_t, std::size_t t, std::size_t m) {
            return std::pair{c_2(t, m), s_2(t, m)};
        };
        CHECK(distance_from_turned(ops::rotate(x, c_2, s_2, how), x, how, by_position) < 1e-15);
        const auto c_3 = random({B, T, half}, 6), s_3 = random({B, T, half}, 7);
        const auto by_sentence = [&](std::size_t b, std::size_t t, std::size_t m) {
            return std::pair{c_3(b, t, m), s_3(b, t, m)};
        };
        const auto y = ops::rotate(x, c_3, s_3, how);
        CHECK(distance_from_turned(y, x, how, by_sentence) < 1e-15);

        // One position of each sentence: a row of the tables for each sentence.
        const array<double, 3> head = ops::reshaped(ops::slice(x, 1, 1, 2), B, T, N);
        const auto now = ops::rotate(ops::step_of(head, 2), ops::step_of(c_3, 2), ops::step_of(s_3, 2), how);
        CHECK(support::same_bits(now, ops::step_of(ops::rotate(head, c_3, s_3, how), 2)));
        for (std::size_t i = 0; i < N; ++i) CHECK(now(1, i) == y(1, 1, 2, i));
    }

    // Tables computed by the formula give the same rotation.
    array<double, 2> c({P, N / 2}), s({P, N / 2});
    for (std::size_t p = 0; p < P; ++p) {
        for (std::size_t m = 0; m < N / 2; ++m) std::tie(c(p, m), s(p, m)) = angle_at(p, m, N, 10000);
    }
    CHECK(support::distance(ops::rotate(x, c, s, rows), ops::rotate(x, rows)) < 1e-14);
}

TEST_CASE("gradients with respect to vectors and tables, for any rank and width")
{
    const std::vector<std::size_t> rows{3, 0, 1, 3}, row{3, 1};
    for (const ops::rotation& how : {all_kinds[0], all_kinds[3]}) {
        const std::size_t half = how.width == 0 ? 3 : 2;
        const auto by_list = [&](const auto& x) { return ops::rotate(x, rows, how); };
        CHECK_GRADIENT(by_list, random({4, 6}, 1));
        CHECK_GRADIENT(by_list, random({2, 2, 6}, 2));
        CHECK_GRADIENT(by_list, random({2, 2, 2, 6}, 3));
        CHECK_GRADIENT([&](const auto& x) { return ops::rotate(x, 30, how); }, random({1, 2, 4, 6}, 4));
        const auto looked_up = [&](const auto& x, const auto& c, const auto& s) {
            return ops::rotate(x, c, s, row, how);
        };
        CHECK_GRADIENT(looked_up, random({2, 6}, 5), random({4, half}, 6), random({4, half}, 7));
        CHECK_GRADIENT(looked_up, random({2, 2, 2, 6}, 8), random({4, half}, 9), random({4, half}, 10));
        const auto direct = [&](const auto& x, const auto& c, const auto& s) { return ops::rotate(x, c, s, how); };
        CHECK_GRADIENT(direct, random({2, 6}, 11), random({2, half}, 12), random({2, half}, 13));
        CHECK_GRADIENT(direct, random({2, 3, 2, 6}, 14), random({2, half}, 15), random({2, half}, 16));
        CHECK_GRADIENT(direct, random({2, 2, 6}, 17), random({2, 2, half}, 18), random({2, 2, half}, 19));
        support::check_empty([&](const auto& x) { return ops::rotate(x, std::vector<int>{}, how); },
                             random({0, 3, 6}, 20));
        support::check_empty(direct, random({2, 3, 0, 6}, 21), random({0, half}, 22), random({0, half}, 23));
        support::check_empty(direct, random({0, 3, 6}, 24), random({0, 3, half}, 25), random({0, 3, half}, 26));
    }
}

TEST_CASE("threads share vectors, and add to the tables in a fixed order")
{
    const auto x = random({4, 2, 64, 32}, 1), d = random({4, 2, 64, 32}, 2);
    const auto c = random({64, 16}, 3), s = random({64, 16}, 4);
    const auto gradients = [&](std::size_t threads) {
        set_threads(threads);
        ad::tape<double> on;
        const auto v = on.parameter(x);
        const auto cosines = on.parameter(c), sines = on.parameter(s);
        on.backward(ops::dot(ops::rotate(v, cosines, sines), d));
        set_threads(1);
        return std::tuple{copy_of(on.gradient(v)), copy_of(on.gradient(cosines)), copy_of(on.gradient(sines))};
    };
    const auto one = gradients(1), four = gradients(4);
    CHECK(support::same_bits(std::get<0>(one), std::get<0>(four)));
    CHECK(support::same_bits(std::get<1>(one), std::get<1>(four)));
    CHECK(support::same_bits(std::get<2>(one), std::get<2>(four)));
}

TEST_CASE("rotate: misfits")
{
    const auto x = random({2, 5, 6}, 1);
    const auto refused = [&](const auto&... with) {
        return support::message_of<shape_error>([&] { (void)ops::rotate(x, with...); });
    };
    CHECK(refused(0, ops::rotation{.width = 3}) ==
          "rotate: a width of 3 for vectors of size 6 in [2,5,6]; elements are rotated in pairs, so it must be even "
          "and at most 6, or 0 for all");
    CHECK(refused(0, ops::rotation{.width = 8}) ==
          "rotate: a width of 8 for vectors of size 6 in [2,5,6]; elements are rotated in pairs, so it must be even "
          "and at most 6, or 0 for all");
    CHECK(refused(std::vector{1, 2, 3}) ==
          "rotate: 3 positions for x [2,5,6]; give 5, the same for all sentences, or 10, sentence by sentence");
    CHECK(refused(std::vector{0, 1, -1, 3, 4}) == "rotate: position -1; positions count from 0");
    CHECK(refused(array<int, 2>({5, 2})) ==
          "rotate: the matrix of positions is [5,2] but must be [2,5] (one for each position of x [2,5,6])");
    const auto c = random({4, 3}, 2), wide = random({5, 6}, 3);
    CHECK(refused(c, c) ==
          "rotate: the table of cosines is [4,3] but must be [5,3] (one number for each rotated pair of x [2,5,6])");
    CHECK(refused(wide, wide) ==
          "rotate: the table of cosines is [5,6] but must be [5,3] (one number for each rotated pair of x [2,5,6])");
    CHECK(refused(c, random({3, 3}, 4), std::vector{0, 1, 2, 3, 0}) ==
          "rotate: the table of sines is [3,3] but must be [4,3] (the shape of the cosines)");
    CHECK(refused(c, c, std::vector{0, 1, 2, 3, 4}) ==
          "rotate: position 4 of tables [4,3], which have only 4 rows; positions count from 0");
    CHECK(refused(c, c, std::vector{0}) ==
          "rotate: 1 position for x [2,5,6]; give 5, the same for all sentences, or 10, sentence by sentence");
    const auto turned = random({5, 2, 3}, 5);
    CHECK(
        refused(turned, turned) ==
        "rotate: the table of cosines is [5,2,3] but must be [2,5,3] (one number for each rotated pair of x [2,5,6])");
}
