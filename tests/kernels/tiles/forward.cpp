// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/tiles/forward.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <heed/kernels/tiles/reference.hpp>
#include <support/contexts_of_tiles.hpp>
#include <support/tiles.hpp>

using namespace heed;
using namespace heed::kernels;
namespace reference = tiles::reference;
using test::contexts_of, test::head_of_numbers;

namespace {

/// The difference of contexts from the definition. `mask_mod(here, j)`: whether a query at key `here` sees key j.
template <class T>
double distance(head_of_numbers<T>& x, const test::contexts_and_numbers<T>& is, const auto& rule, const auto& mask_mod)
{
    std::vector<double> must(x.S * x.D);
    const auto sees = [&](std::size_t s, std::size_t j) { return mask_mod(s + x.P - x.S, j); };
    reference::forward(x.head(), reference::unmodified{}, sees, rule, tiles::rows<double>{must.data(), x.D});
    double worst = 0;
    for (std::size_t i = 0; i < must.size(); ++i) {
        const double off = std::fabs(static_cast<double>(is.contexts[i]) - must[i]) / (1 + std::fabs(must[i]));
        if (!(off <= worst)) worst = off;
    }
    return worst;
}

}  // namespace

TEST_CASE_TEMPLATE("contexts match the definition; values of masked keys may be NaN", T, float, double)
{
    const double near = 300 * static_cast<double>(std::numeric_limits<T>::epsilon());
    const struct {
        std::size_t S, P, A, D;
    } cases[] = {{1, 1, 1, 1}, {3, 5, 4, 3}, {70, 200, 5, 17}, {33, 97, 16, 16}, {2, 900, 3, 2}};
    for (const auto& each : cases) {
        const std::size_t S = each.S, P = each.P, D = each.D;
        CAPTURE(S);
        CAPTURE(P);
        head_of_numbers<T> x(S, P, each.A, D);
        const auto all = [](std::size_t, std::size_t) { return true; };
        const auto behind = [](std::size_t here, std::size_t key) { return key <= here; };
        const reference::softmax softmax;
        const reference::stick_breaking stick_breaking;
        CHECK(distance(x, contexts_of(x, tiles::softmax{}, tiles::unmasked{}), softmax, all) <= near);
        CHECK(distance(x, contexts_of(x, tiles::softmax{}, not_behind{}), softmax, behind) <= near);
        CHECK(distance(x, contexts_of(x, tiles::sigmoid{}, not_behind{}), reference::sigmoid{}, behind) <= 4 * near);
        CHECK(distance(x, contexts_of(x, tiles::stick_breaking{}, not_behind{}), stick_breaking, behind) <= near);
        if (P < 4) continue;
        for (std::size_t i = 0; i < D; ++i) x.values[3 * D + i] = std::numeric_limits<T>::quiet_NaN();
        const mask_mod others{[](const score_index& p) { return p.key != 3; }};
        const auto not_three = [](std::size_t, std::size_t key) { return key != 3; };
        CHECK(distance(x, contexts_of(x, tiles::softmax{}, others), softmax, not_three) <= near);
        CHECK(distance(x, contexts_of(x, tiles::stick_breaking{}, others), stick_breaking, not_three) <= near);
    }
}

TEST_CASE_TEMPLATE("several blocks at once, of one of several heads, have the bits of one block after another", T,
                   float, double)
{
    constexpr std::size_t S = 150, P = 403, A = 9, D = 17;
    head_of_numbers<T> x(S, P, A, D);
    const auto check = [&](const auto& mask) {
        const auto must = contexts_of(x, tiles::softmax{}, mask);
        const auto among_others = [](const std::vector<T>& rows, std::size_t width) {
            std::vector<T> all(rows.size() * 3, std::numeric_limits<T>::quiet_NaN());
            for (std::size_t i = 0; i < rows.size(); ++i) all[i / width * 3 * width + i % width] = rows[i];
            return all;
        };
        const auto keys = among_others(x.keys, A), values = among_others(x.values, D);
        auto of = x.head();
        of.keys = {keys.data(), 3 * A};
        of.values = {values.data(), 3 * D};
        const tiles::unmodified plain;
        const tiles::score_mod_of<T, tiles::unmodified, std::remove_cvref_t<decltype(mask)>> mod(plain, mask);
        test::contexts_and_numbers<T> is{std::vector<T>(S * D), std::vector<T>(2 * S)};
        tiles::with_registers<T>(S, [&](auto registers) {
            const std::size_t blocks = tiles::blocks_at_once<registers, tiles::inner_product, tiles::softmax>(of);
            REQUIRE(blocks >= 4);
            const std::size_t some = blocks * tiles::lanes<T, registers>;
            for (std::size_t s = 0; s < S; s += some)
                tiles::forward<registers>(tiles::query_block<T>{of, s, std::min(some, S - s), mod}, tiles::softmax{},
                                          tiles::rows<T>{is.contexts.data(), D}, is.numbers.data());
        });
        CHECK(is.contexts == must.contexts);
        CHECK(is.numbers == must.numbers);
    };
    check(tiles::unmasked{});
    check(not_behind{});
    // A tile that no query sees, and a value that is NaN.
    x.values[7 * D] = std::numeric_limits<T>::quiet_NaN();
    check(mask_mod{[](const score_index& p) { return (p.key != 7) & ((p.key < 96) | (p.key >= 200)); }});
}

TEST_CASE("a query that sees no key gets 0, and numbers that give no weight")
{
    head_of_numbers<double> x(5, 9, 3, 2);
    const mask_mod none{[](const score_index&) { return lane_mask(false); }};
    const auto is = contexts_of(x, tiles::softmax{}, none);
    CHECK(is.contexts == std::vector<double>(10, 0));
    CHECK(is.numbers == std::vector<double>(10, 0));
}
