// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/tiles/score_mod.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include <support/tiles.hpp>

using namespace heed;
using namespace heed::kernels;
using test::head_of_numbers, test::waves;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Compares modified scores of tiles of zeros with the function and the mask of each score; returns the number of
/// tiles.
template <class T>
std::size_t check_scores(const auto& mask, const auto& function, const auto& plain, const auto& slope,
                         const auto& is_seen)
{
    head_of_numbers<T> x(70, 250, 3, 2);
    const auto of = x.head();
    using function_type = std::remove_cvref_t<decltype(function)>;
    const tiles::score_mod_of<T, function_type, std::remove_cvref_t<decltype(mask)>> mod(function, mask);
    std::size_t come = 0, wrong = 0;
    tiles::with_registers<T>(x.S, [&](auto registers) {
        constexpr std::size_t width = tiles::lanes<T, registers>;
        for (std::size_t s = 0; s < x.S; s += width) {
            const std::size_t n = std::min(width, x.S - s);
            std::vector<bool> met(x.P * width);
            const auto every = [](std::size_t) { return true; };
            const tiles::query_block<T> block{of, s, n, mod};
            tiles::detail::each_tile<registers>(block, every, [&](const tiles::visible_tile& visible) {
                ++come;
                std::vector<T> tile(visible.count * width, T(0.5)), again = tile, slopes(tile.size(), T(9));
                mod.apply(of, visible, tile.data(), nullptr);
                if (mod.modifies) mod.apply(of, visible, again.data(), slopes.data());
                for (std::size_t j = 0; j < visible.count; ++j) {
                    for (std::size_t q = 0; q < n; ++q) {
                        const auto query = static_cast<double>(s + q), key = static_cast<double>(visible.first + j);
                        const bool sees = is_seen(query + 180, key);  // query 69 is at key 249
                        const double must = sees ? plain(0.5, query, key) : -infinity;
                        const auto off = [&](T is) {
                            return !(static_cast<double>(is) == must ||
                                     std::fabs(static_cast<double>(is) - must) <= 1e-5 * (1 + std::fabs(must)));
                        };
                        met[(visible.first + j) * width + q] = sees;
                        wrong += off(tile[j * width + q]) ? 1u : 0u;
                        if (!mod.modifies) continue;
                        wrong += off(again[j * width + q]) ? 1u : 0u;
                        const double by = sees ? 0.7 * slope(0.5, query, key) : 0;
                        const double is = static_cast<double>(slopes[j * width + q]);
                        wrong += std::fabs(is - by) <= 1e-5 * (1 + std::fabs(by)) ? 0u : 1u;
                    }
                }
            });
            for (std::size_t key = 0; key < x.P; ++key)
                for (std::size_t q = 0; q < n; ++q)
                    wrong +=
                        is_seen(static_cast<double>(s + q + 180), static_cast<double>(key)) && !met[key * width + q]
                            ? 1u
                            : 0u;
        }
    });
    CHECK(wrong == 0);
    return come;
}

constexpr auto as_it_is = [](double e, double, double) { return e; };
constexpr auto no_slope = [](double, double, double) { return 1.0; };

}  // namespace

TEST_CASE_TEMPLATE("masks hide scores, with declared ranges and without", T, float, double)
{
    const auto all = [](double, double) { return true; };
    const auto behind = [](double here, double key) { return key <= here; };
    const auto near = [](double here, double key) { return std::fabs(key - here) < 5; };
    const auto odd = [](double here, double key) { return std::fmod(here + key, 2) == 1 && key < 100; };
    const std::size_t most = check_scores<T>(tiles::unmasked{}, tiles::unmodified{}, as_it_is, no_slope, all);
    check_scores<T>(not_behind{}, tiles::unmodified{}, as_it_is, no_slope, behind);
    CHECK(check_scores<T>(sliding_window{5}, tiles::unmodified{}, as_it_is, no_slope, near) < most);
    const mask_mod evaluated_near{
        [](const score_index& p) { return (p.diagonal - p.key < 5) & (p.key - p.diagonal < 5); }};
    CHECK(check_scores<T>(evaluated_near, tiles::unmodified{}, as_it_is, no_slope, near) < most);
    const mask_mod evaluated_odd{[](const score_index& p) { return ((p.diagonal + p.key) % 2 == 1) & (p.key < 100); }};
    check_scores<T>(evaluated_odd, tiles::unmodified{}, as_it_is, no_slope, odd);
}

TEST_CASE_TEMPLATE("functions change scores by their indices, and have slopes", T, float, double)
{
    const auto f = [](auto e, score_index p) { return e * e - 0.1 * abs(p.query - p.key); };
    const auto plain = [](double e, double q, double k) { return e * e - 0.1 * std::fabs(q - k); };
    const auto slope = [](double e, double, double) { return 2 * e; };
    check_scores<T>(tiles::unmasked{}, f, plain, slope, [](double, double) { return true; });
    check_scores<T>(not_behind{}, f, plain, slope, [](double here, double key) { return key <= here; });
}

TEST_CASE("a function with a table: the gradient goes to the looked-up element")
{
    head_of_numbers<double> x(9, 30, 3, 2);
    const auto of = x.head();
    const auto f = [](auto e, score_index p, const auto& table) { return e + 2 * table(p.key % 7); };
    const std::vector<double> numbers = waves<double>(7, 4);
    using pair = tiles::modified_by_table<decltype(f), lane_table<double, 1>>;
    const pair by{f, {numbers.data(), {7}}};
    const tiles::unmasked all;
    const tiles::score_mod_of<double, pair, tiles::unmasked> mod(by, all);
    CHECK(mod.learns);
    tiles::with_registers<double>(x.S, [&](auto registers) {
        constexpr std::size_t width = tiles::lanes<double, registers>;
        const auto every = [](std::size_t) { return true; };
        const tiles::query_block<double> block{of, 0, std::min(x.S, width), mod};
        tiles::detail::each_tile<registers>(block, every, [&](const tiles::visible_tile& visible) {
            std::vector<double> d(visible.count * width, 0), products(d.size(), 0.25), table(7, 0), must(7, 0);
            for (std::size_t j = 0; j < visible.count; ++j) {
                for (std::size_t q = 0; q < std::min(x.S, width); ++q) {
                    d[j * width + q] = std::cos(static_cast<double>(j * 5 + q));
                    must[(visible.first + j) % 7] += 2 * d[j * width + q];
                }
            }
            mod.table_gradient(of, visible, products.data(), d.data(), table.data());
            for (std::size_t i = 0; i < 7; ++i) CHECK(std::fabs(table[i] - must[i]) <= 1e-13);
        });
    });
}
