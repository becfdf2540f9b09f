// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/tiles/transpose.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <heed/kernels/tiles/products.hpp>
#include <support/tiles.hpp>

using namespace heed;
using namespace heed::kernels;
using test::far, test::rounding, test::waves;

TEST_CASE_TEMPLATE("rows become lanes and back; lanes without a query are zeros", T, float, double)
{
    tiles::with_registers<T>(1000, [](auto registers) {
        constexpr std::size_t all = tiles::lanes<T, registers>;
        for (const std::size_t n : {std::size_t{1}, all / 2 + 1, all}) {
            for (const std::size_t width : {std::size_t{1}, simd::lanes<T>, 2 * simd::lanes<T> + 3}) {
                const std::size_t stride = width + 2;
                const auto from = waves<T>(n * stride, 1), by = waves<T>(all, 2), start = waves<T>(n * stride, 3);
                std::vector<T> panel(width * all, T(9)), to = start, added = start;
                tiles::detail::transposed<registers>(width, n, tiles::rows<const T>{from.data(), stride}, T(0.5),
                                                     panel.data());
                const auto finite = [&] { return tiles::detail::finite_lanes<registers>(width, n, panel.data()); };
                CHECK(finite());
                for (std::size_t i = 0; i < width; ++i) {
                    for (std::size_t q = 0; q < all; ++q)
                        CHECK(panel[i * all + q] == (q < n ? T(0.5) * from[q * stride + i] : T(0)));
                }
                tiles::detail::transposed_back<registers, false>(width, n, panel.data(), by.data(),
                                                                 tiles::rows<T>{to.data(), stride});
                tiles::detail::add_transposed<registers>(width, 0, n, panel.data(),
                                                         tiles::rows<T>{added.data(), stride});
                for (std::size_t q = 0; q < n; ++q) {
                    for (std::size_t i = 0; i < stride; ++i) {
                        const double old = static_cast<double>(start[q * stride + i]),
                                     half = 0.5 * static_cast<double>(from[q * stride + i]);
                        CHECK(far(to[q * stride + i], i < width ? half * static_cast<double>(by[q]) : old) <=
                              rounding<T>);
                        CHECK(far(added[q * stride + i], i < width ? old + half : old) <= rounding<T>);
                    }
                }
                panel[(width - 1) * all + n - 1] = std::numeric_limits<T>::infinity();
                CHECK_FALSE(finite());
                panel[(width - 1) * all + n - 1] = 0;
                if (n < all) panel[n] = std::numeric_limits<T>::quiet_NaN();
                CHECK(finite());  // the lane has no query
            }
        }
    });
}
