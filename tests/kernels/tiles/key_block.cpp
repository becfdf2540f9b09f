// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/tiles/key_block.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <vector>

#include <support/tiles.hpp>

using namespace heed;
using namespace heed::kernels;
using test::head_of_numbers;

namespace {

/// A history that counts queries.
struct counts_queries {
    template <class V>
    static V grown(V L, V)
    {
        return L + 1;
    }
};

}  // namespace

TEST_CASE_TEMPLATE("keys in lanes: scores and slopes of all queries, -inf where a query does not see a key", T, float,
                   double)
{
    constexpr T lowest = -std::numeric_limits<T>::infinity();
    const double near = 64 * static_cast<double>(std::numeric_limits<T>::epsilon());
    head_of_numbers<T> x(5, 9, 3, 2);
    const auto square = [](auto e, const score_index&) { return e * e; };
    const not_behind mask;
    const counts_queries past;
    const tiles::remembering_head sentence{x.head(), square, mask, past};
    tiles::with_registers<T>(1000, [&](auto registers) {
        constexpr std::size_t width = tiles::lanes<T, registers>;
        tiles::detail::key_block<registers, std::remove_const_t<decltype(sentence)>> block(sentence);
        block.go_to(0);
        const std::size_t keys = std::min(width, x.P);
        CHECK(block.keys() == keys);
        std::vector<T> tile(x.S * width), slopes(tile.size());
        block.scores(0, x.S, tile.data(), slopes.data());
        auto L = tiles::row<T, registers>::all(0);
        std::size_t times = 0;
        block.remember(x.S, tile.data(), L, [&](std::size_t q, const auto&, const auto& before) {
            const T count = before.at[0][0];
            CHECK(count == static_cast<T>(q));
            ++times;
        });
        CHECK(times == x.S);
        const T count = L.at[0][0];
        CHECK(count == static_cast<T>(x.S));
        double worst = 0;
        for (std::size_t q = 0; q < x.S; ++q) {
            for (std::size_t j = 0; j < keys; ++j) {
                const double e = x.score(q, j);
                worst = std::max(worst, std::fabs(static_cast<double>(tile[q * width + j]) - e * e));
                worst = std::max(worst, std::fabs(static_cast<double>(slopes[q * width + j]) - 0.7 * 2 * e));
            }
        }
        CHECK(worst <= near);
        CHECK(block.hide(0, x.S, tile.data()));
        for (std::size_t q = 0; q < x.S; ++q)  // the last of 5 queries is at the last of 9 keys
            for (std::size_t j = 0; j < width; ++j) CHECK((tile[q * width + j] == lowest) == (j > q + 4));
    });
}

TEST_CASE_TEMPLATE("the history of a block of keys is -inf in lanes without a key", T, float, double)
{
    const T history[] = {1, 2, 3};
    T lanes[simd::lanes<T>];
    tiles::detail::past_of<1>(history, std::size_t{1}).put(lanes);
    CHECK(lanes[0] == T(1));
    for (std::size_t i = 1; i < simd::lanes<T>; ++i) CHECK(lanes[i] == -std::numeric_limits<T>::infinity());
}
