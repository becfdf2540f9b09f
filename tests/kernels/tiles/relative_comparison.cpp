// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/tiles/relative_comparison.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <heed/kernels/tiles/score_mod.hpp>
#include <support/tiles.hpp>

using namespace heed;
using namespace heed::kernels;
using test::head_of_numbers, test::waves;

namespace {

/// Scores and gradients of one head with D [A,2R+1], by the definition.
template <class T>
void check(std::size_t S, std::size_t P, std::size_t R, std::size_t first_query)
{
    CAPTURE(S);
    CAPTURE(P);
    CAPTURE(R);
    head_of_numbers<T> x(S, P, 5, 2);
    const std::size_t columns = 2 * R + 1;
    const auto D = waves<T>(x.A * columns, 4);
    auto of = x.head();
    of.factors = D.data();
    of.factor_count = D.size();
    of.first_query = first_query;
    const auto column = [&](std::size_t s, std::size_t j) {
        const auto away = static_cast<long>(j) - static_cast<long>(first_query + s), most = static_cast<long>(R);
        return static_cast<std::size_t>(std::clamp(away, -most, most) + most);
    };
    const tiles::unmodified plain;
    const tiles::unmasked all;
    const tiles::score_mod_of<T, tiles::unmodified, tiles::unmasked> mod(plain, all);
    std::vector<T> d_queries(S * x.A, T(0.5)), d_keys(P * x.A, T(0.5)), d_D(D.size(), T(0.5));
    std::vector<double> must_q(d_queries.size(), 0.5), must_k(d_keys.size(), 0.5), must_D(D.size(), 0.5);
    const tiles::head_gradients<T> to{
        {d_queries.data(), x.A}, {d_keys.data(), x.A}, {nullptr, 0}, nullptr, d_D.data(), nullptr};
    const double rounding = 256 * static_cast<double>(std::numeric_limits<T>::epsilon());
    double worst = 0;
    const auto meet = [&](T is, double must) {
        worst = std::max(worst, std::fabs(static_cast<double>(is) - must) / (1 + std::fabs(must)));
    };
    tiles::with_registers<T>(S, [&](auto registers) {
        constexpr std::size_t width = tiles::lanes<T, registers>;
        for (std::size_t s = 0; s < S; s += width) {
            const std::size_t n = std::min(width, S - s);
            tiles::inner_product_with_distances::block<registers, T> compare(of, s, n);
            compare.begin_back();
            const auto every = [](std::size_t) { return true; };
            const tiles::query_block<T> block{of, s, n, mod};
            tiles::detail::each_tile<registers>(block, every, [&](const tiles::visible_tile& visible) {
                std::vector<T> tile(visible.count * width), d(tile.size(), T(0));
                compare.scores(visible, tile.data());
                for (std::size_t j = 0; j < visible.count; ++j) {
                    for (std::size_t q = 0; q < n; ++q) {
                        const std::size_t r = column(s + q, visible.first + j);
                        const double back = std::cos(static_cast<double>(3 * j + q));
                        d[j * width + q] = static_cast<T>(back);
                        double sum = 0;
                        for (std::size_t i = 0; i < x.A; ++i) {
                            const double query = static_cast<double>(x.queries[(s + q) * x.A + i]),
                                         key = static_cast<double>(x.keys[(visible.first + j) * x.A + i]),
                                         distance = static_cast<double>(D[i * columns + r]);
                            sum += 0.7 * query * (key + distance);
                            must_q[(s + q) * x.A + i] += back * (key + distance);
                            must_k[(visible.first + j) * x.A + i] += back * query;
                            must_D[i * columns + r] += back * query;
                        }
                        meet(tile[j * width + q], sum);
                    }
                }
                compare.back(visible, d.data(), to, false);
            });
            CHECK(compare.sums_finite());
            compare.add_to(to);
        }
    });
    CHECK(worst <= rounding);
    for (std::size_t i = 0; i < must_q.size(); ++i) meet(d_queries[i], must_q[i]);
    for (std::size_t i = 0; i < must_k.size(); ++i) meet(d_keys[i], must_k[i]);
    for (std::size_t i = 0; i < must_D.size(); ++i) meet(d_D[i], must_D[i]);
    CHECK(worst <= 8 * rounding);
}

}  // namespace

TEST_CASE_TEMPLATE("keys and their distances: scores and gradients match the definition", T, float, double)
{
    check<T>(1, 1, 0, 0);
    check<T>(5, 9, 2, 0);
    check<T>(70, 130, 7, 0);
    check<T>(3, 200, 300, 197);
    check<T>(40, 100, 3, 60);
    check<T>(9, 9, 4, 1000);  // a reach beyond all distances
}
