// SPDX-License-Identifier: BSD-3-Clause
//
// heed before and after <cblas.h> in one file, compiled with HEED_BLAS_CBLAS.

#include <doctest/doctest.h>

#if __has_include(<cblas.h>)

#include <heed/gemm/blas.hpp>

#include <cblas.h>

#include <heed/heed.hpp>
#include <support/tensors.hpp>

TEST_CASE("heed's product calls cblas_sgemm")
{
    using heed::blas::op;
    const auto a = support::random<float>({6, 5}, 1), b = support::random<float>({5, 8}, 2);
    heed::array<float, 2> ours(heed::shape_of_rank<2>{6, 8}), theirs = ours;
    heed::blas::gemm(op::plain, op::plain, 6, 8, 5, a.data(), b.data(), 0.0f, ours.data());
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 6, 8, 5, 1.0f, a.data(), 5, b.data(), 8, 0.0f, theirs.data(),
                8);
    CHECK(support::same_bits(ours, theirs));
}

#endif
