// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/tiles/attend.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <vector>

#include <support/kernels.hpp>
#include <support/tiles.hpp>

using namespace heed;
using namespace heed::kernels;
using test::head_of_numbers, test::waves;

namespace {

template <class T>
struct answers {
    std::vector<T> contexts, numbers;
};

/// Contexts of all queries of a head, a block after the other.
template <class T, class Rule, class Mask>
answers<T> contexts_of(head_of_numbers<T>& x, const Rule& rule, const Mask& mask)
{
    const auto of = x.head();
    const tiles::unmodified plain;
    const tiles::changes_by<T, tiles::unmodified, Mask> what(plain, mask);
    answers<T> all{std::vector<T>(x.S * x.D, T(9)), std::vector<T>(Rule::numbers * x.S)};
    tiles::with_registers<T>(x.S, [&](auto registers) {
        constexpr std::size_t width = tiles::lanes<T, registers>;
        for (std::size_t s = 0; s < x.S; s += width)
            tiles::forward<registers>(of, s, std::min(width, x.S - s), what, rule,
                                      tiles::rows<T>{all.contexts.data(), x.D}, all.numbers.data());
    });
    return all;
}

/// How far they are from the definition: weigh(scores) gives the weights.
template <class T>
double distance(const head_of_numbers<T>& x, const answers<T>& is, const auto& weigh, const auto& sees)
{
    double worst = 0;
    for (std::size_t s = 0; s < x.S; ++s) {
        std::vector<double> e;
        std::vector<std::size_t> keys;
        for (std::size_t j = 0; j < x.P; ++j) {
            if (!sees(s + x.P - x.S, j)) continue;
            e.push_back(x.score(s, j));
            keys.push_back(j);
        }
        weigh(e);
        for (std::size_t i = 0; i < x.D; ++i) {
            double c = 0;
            for (std::size_t k = 0; k < keys.size(); ++k) c += e[k] * static_cast<double>(x.values[keys[k] * x.D + i]);
            const double off = std::fabs(static_cast<double>(is.contexts[s * x.D + i]) - c) / (1 + std::fabs(c));
            if (!(off <= worst)) worst = off;
        }
    }
    return worst;
}

void as_softmax(std::vector<double>& e)
{
    double top = -1e300, sum = 0;
    for (const double x : e) top = std::max(top, x);
    for (double& x : e) sum += x = std::exp(x - top);
    for (double& x : e) x /= sum;
}
void as_sigmoid(std::vector<double>& e)
{
    for (double& x : e) x = 1 / (1 + std::exp(-x));
}
void as_stick_breaking(std::vector<double>& e)
{
    double left = 1;
    for (std::size_t j = e.size(); j-- > 0;) {
        const double part = 1 / (1 + std::exp(-e[j]));
        e[j] = part * left;
        left *= 1 - part;
    }
}

template <class T>
constexpr double rounding = 64 * static_cast<double>(std::numeric_limits<T>::epsilon());

/// Numbers that a rule selects from the scores of all keys, kept or tile by tile, give weights that sum to 1.
template <class T>
void check_selection(const auto& rule, std::size_t keys, double spread)
{
    head_of_numbers<T> x(20, keys, 3, 2);
    for (T& q : x.queries) q *= static_cast<T>(spread);
    const auto of = x.head();
    const tiles::unmodified plain;
    const not_behind mask;
    const tiles::changes_by<T, tiles::unmodified, not_behind> what(plain, mask);
    tiles::with_registers<T>(x.S, [&](auto registers) {
        constexpr std::size_t width = tiles::lanes<T, registers>;
        const std::size_t n = std::min(x.S, width);
        const tiles::inner_product::block<registers, T> compare(of, 0, n);
        std::vector<T> all(x.P * width), tile(tiles::keys * width), kept(2 * width), by_tile(2 * width);
        tiles::detail::settle_rows<registers>(compare, of, 0, n, what, rule, all.data(), kept.data());
        tiles::detail::select_weights<registers>(compare, of, 0, n, what, rule, tile.data(), by_tile.data());
        for (std::size_t q = 0; q < n; ++q) {
            CHECK(kept[q] == by_tile[q]);
            double of_kept = 0, of_tiles = 0;
            for (std::size_t j = 0; j + x.S <= keys + q; ++j) {
                CHECK(std::fabs(static_cast<double>(all[j * width + q]) - x.score(q, j)) <= spread * rounding<T>);
                const auto weight = [&](const std::vector<T>& z) {
                    return static_cast<double>(rule.weight(
                        simd::splat(all[j * width + q]), std::array{simd::splat(z[q]), simd::splat(z[width + q])})[0]);
                };
                of_kept += weight(kept);
                of_tiles += weight(by_tile);
            }
            CHECK(std::fabs(of_kept - 1) <= 40 * rounding<T>);
            CHECK(std::fabs(of_tiles - 1) <= 40 * rounding<T>);
        }
    });
}

}  // namespace

TEST_CASE_TEMPLATE("contexts are those of the definition; values of hidden keys may be NaN", T, float, double)
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
        CHECK(distance(x, contexts_of(x, tiles::softmax{}, tiles::unmasked{}), as_softmax, all) <= near);
        CHECK(distance(x, contexts_of(x, tiles::softmax{}, not_behind{}), as_softmax, behind) <= near);
        CHECK(distance(x, contexts_of(x, tiles::sigmoid{}, not_behind{}), as_sigmoid, behind) <= 4 * near);
        CHECK(distance(x, contexts_of(x, tiles::stick_breaking{}, not_behind{}), as_stick_breaking, behind) <= near);
        if (P < 4) continue;
        for (std::size_t i = 0; i < D; ++i) x.values[3 * D + i] = std::numeric_limits<T>::quiet_NaN();
        const seen_if others{[](const place& p) { return p.key != 3; }};
        const auto not_three = [](std::size_t, std::size_t key) { return key != 3; };
        CHECK(distance(x, contexts_of(x, tiles::softmax{}, others), as_softmax, not_three) <= near);
        CHECK(distance(x, contexts_of(x, tiles::stick_breaking{}, others), as_stick_breaking, not_three) <= near);
    }
}

TEST_CASE("a query that sees nothing gets 0, and numbers that give no weight")
{
    head_of_numbers<double> x(5, 9, 3, 2);
    const seen_if none{[](const place&) { return lane_mask(false); }};
    const auto is = contexts_of(x, tiles::softmax{}, none);
    CHECK(is.contexts == std::vector<double>(10, 0));
    CHECK(is.numbers == std::vector<double>(10, 0));
}

TEST_CASE("gradients of queries, keys and values against differences; a tile left out adds nothing")
{
    const auto check = [](const auto& rule, const auto& mask) {
        head_of_numbers<double> x(4, 7, 3, 2);
        const auto g = waves<double>(x.S * x.D, 5);
        const auto loss = [&] {
            const auto is = contexts_of(x, rule, mask);
            return test::dot(is.contexts, g);
        };
        const auto is = contexts_of(x, rule, mask);
        std::vector<double> d_q(x.queries.size(), 0.5), d_k(x.keys.size(), 0.5), d_v(x.values.size(), 0.5);
        const auto of = x.head();
        const tiles::unmodified plain;
        const tiles::changes_by<double, tiles::unmodified, std::remove_cvref_t<decltype(mask)>> what(plain, mask);
        const tiles::head_gradients<double> to{{d_q.data(), x.A}, {d_k.data(), x.A}, {d_v.data(), x.D}};
        const auto back = [&](bool wanted) {
            tiles::with_registers<double>(x.S, [&](auto registers) {
                tiles::backward<registers>(of, 0, x.S, what, rule, tiles::rows<const double>{is.contexts.data(), x.D},
                                           is.numbers.data(), tiles::rows<const double>{g.data(), x.D}, to,
                                           [wanted](std::size_t) { return wanted; });
            });
        };
        back(false);
        CHECK(d_k == std::vector<double>(d_k.size(), 0.5));
        back(true);
        test::check_gradient("queries", x.queries, loss, d_q, 0.5);
        test::check_gradient("keys", x.keys, loss, d_k, 0.5);
        test::check_gradient("values", x.values, loss, d_v, 0.5);
    };
    check(tiles::softmax{}, tiles::unmasked{});
    check(tiles::softmax{}, not_behind{});
    check(tiles::sigmoid{0.5}, not_behind{});
    check(tiles::stick_breaking{}, not_behind{});
}

TEST_CASE_TEMPLATE("a rule that selects finds the same numbers from kept scores and tile by tile", T, float, double)
{
    check_selection<T>(tiles::sparse_weights<1>{}, 50, 5);
    check_selection<T>(tiles::sparse_weights<1>{}, 700, 5);
    check_selection<T>(tiles::sparse_weights<2>{}, 700, 5);
    check_selection<T>(tiles::sparse_weights<1>{}, 700, 1e-3);  // more weights than are kept
    check_selection<T>(tiles::sparse_weights<2>{}, 700, 1e-3);
}

TEST_CASE("scores are kept while they fit the second cache")
{
    constexpr std::size_t most = (std::size_t{3} << 18) / (tiles::lanes<float, 1> * sizeof(float));
    CHECK(tiles::keeps_scores<float, 1>(most));
    CHECK_FALSE(tiles::keeps_scores<float, 1>(most + 1));
}

TEST_CASE_TEMPLATE("scores become weights in place; the numbers of lanes without a query are zeros", T, float, double)
{
    constexpr std::size_t width = tiles::lanes<T, 2>, S = width + 3, s = 2, n = width - 1;
    const auto numbers = waves<T>(2 * S, 1);
    const auto z = tiles::detail::numbers_at<2, tiles::softmax>(numbers.data(), S, s, n);
    T some[width];
    for (std::size_t i = 0; i < 2; ++i) {
        z[i].put(some);
        for (std::size_t q = 0; q < width; ++q) CHECK(some[q] == (q < n ? numbers[i * S + s + q] : T(0)));
    }
    const auto e = waves<T>(5 * width, 2);
    auto tile = e;
    std::size_t seen = 0;
    CHECK(tiles::detail::weights_of<2>(5, tiles::softmax{}, z, tile.data(),
                                       [&](std::size_t, auto, simd::vec<T>) { ++seen; }));
    CHECK(seen == 10);
    double worst = 0;
    for (std::size_t j = 0; j < 5; ++j) {
        for (std::size_t q = 0; q < n; ++q) {
            const double must = std::exp(static_cast<double>(e[j * width + q]) - static_cast<double>(numbers[s + q])) *
                                static_cast<double>(numbers[S + s + q]);
            worst = std::max(worst, std::fabs(static_cast<double>(tile[j * width + q]) - must));
        }
    }
    CHECK(worst <= rounding<T>);
    // A sparse rule tells whether any weight is left.
    std::vector<T> low(5 * width, T(-9));
    const auto none = [](std::size_t, auto, simd::vec<T>) {};
    const std::array<tiles::row<T, 2>, 2> top{tiles::row<T, 2>::all(T(0)), tiles::row<T, 2>::all(T(-0.5))};
    CHECK_FALSE(tiles::detail::weights_of<2>(5, tiles::sparse_weights<1>{}, top, low.data(), none));
    low.assign(5 * width, T(-9));
    low[3 * width + 1] = T(-0.25);
    CHECK(tiles::detail::weights_of<2>(5, tiles::sparse_weights<1>{}, top, low.data(), none));
    CHECK(low[3 * width + 1] == T(0.25));
}
