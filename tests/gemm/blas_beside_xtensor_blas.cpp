// SPDX-License-Identifier: BSD-3-Clause
//
// heed and xtensor-blas in one file; heed's products equal xtensor-blas's dot of plain matrices.

#include <doctest/doctest.h>

#if !defined(HEED_BLAS_CBLAS) && __has_include(<xtensor-blas/xlinalg.hpp>)

#include <heed/heed.hpp>
#include <xtensor-blas/xlinalg.hpp>

#include <support/tensors.hpp>

using namespace heed;
using support::random;

TEST_CASE("linear equals xt::linalg::dot on plain two-dimensional containers")
{
    for (const std::size_t rows : {1u, 2u, 7u, 32u}) {
        const auto x = random({rows, 5}, 1), W = random({5, 9}, 2);
        const array<double, 2> must = xt::linalg::dot(x, W);
        CHECK(support::distance(ops::linear(x, W), must) < 1e-15);
    }
}

TEST_CASE("a product with a transposed matrix equals xt::linalg::dot")
{
    const auto a = random<float>({6, 5}, 1), b = random<float>({8, 5}, 2);
    const array<float, 2> flipped = xt::transpose(b);
    const array<float, 2> must = xt::linalg::dot(a, flipped);
    array<float, 2> c(shape_of_rank<2>{6, 8});
    blas::gemm(blas::op::plain, blas::op::transposed, 6, 8, 5, a.data(), b.data(), 0.0f, c.data());
    CHECK(support::distance(c, must) < 1e-6);
}

#endif
