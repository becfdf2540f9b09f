// SPDX-License-Identifier: BSD-3-Clause
#include <heed/gemm/panels.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <support/kernels.hpp>

namespace {

using namespace heed;
using namespace heed::kernels;
using namespace heed::test;

}  // namespace

TEST_CASE_TEMPLATE("products with panels equal those of the matrix, for any sizes, strides and numbers of threads", T,
                   float, double)
{
    using panels = kernels::panels<T>;
    const std::size_t width = panel_width<T>();
    for (const std::size_t K : {0u, 1u, 5u, 33u}) {
        for (const std::size_t N : {std::size_t{1}, width, width + 3, std::size_t{150}}) {
            CAPTURE(K);
            CAPTURE(N);
            const std::size_t gap = 2;
            const list<T> W = some<T>(K * (N + gap), 1);
            panels laid;
            laid.pack(K, N, W.data(), N + gap);
            CHECK(laid.rows() == K);
            CHECK(laid.columns() == N);
            CHECK(laid.count() == (N + width - 1) / width);
            CHECK(laid.empty() == (K == 0));
            for (const std::size_t rows : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 40u}) {
                const list<T> x = some<T>(rows * (K + gap), 2), start = some<T>(rows * (N + gap), 3);
                for (const bool add : {false, true}) {
                    list<double> want(start.begin(), start.end());
                    for (std::size_t r = 0; r < rows; ++r) {
                        for (std::size_t n = 0; n < N; ++n) {
                            double& sum = want[r * (N + gap) + n];
                            if (!add) sum = 0;
                            for (std::size_t k = 0; k < K; ++k)
                                sum += static_cast<double>(x[r * (K + gap) + k]) *
                                       static_cast<double>(W[k * (N + gap) + n]);
                        }
                    }
                    for (const std::size_t threads : {1u, 3u}) {
                        const with_threads scope(threads);
                        list<T> y = start;
                        laid.multiply(rows, x.data(), K + gap, y.data(), N + gap, add);
                        CHECK(far(y, want) <= 2 * tolerance<T>);
                    }
                }
            }
        }
    }
}

TEST_CASE("a row's product has the same bits in any batch of rows")
{
    using panels = kernels::panels<float>;
    const std::size_t K = 37, N = panel_width<float>() + 1, rows = 20;
    const list<float> W = some<float>(K * N, 1), x = some<float>(rows * K, 2);
    panels laid;
    laid.pack(K, N, W.data(), N);
    list<float> all(rows * N), alone(N);
    laid.multiply(rows, x.data(), K, all.data(), N, false);
    for (std::size_t r = 0; r < rows; ++r) {
        laid.multiply(1, x.data() + r * K, K, alone.data(), N, false);
        CHECK(same_bits(alone.data(), all.data() + r * N, N));
    }
}
