// SPDX-License-Identifier: BSD-3-Clause
#include <heed/gemm/products_in_bfloat16.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <support/bfloat16.hpp>
#include <support/tiles.hpp>

using namespace heed;
using blas::op;
using support::rounded_to_bfloat16;
using test::waves;

namespace {

constexpr float no_number = std::numeric_limits<float>::quiet_NaN();

/// C = op(A) op(B) + beta C, with rows `gap` longer than needed, which hold NaN.
struct product {
    op op_a, op_b;
    std::size_t m, n, k, gap;

    std::size_t lda() const { return (op_a == op::plain ? k : m) + gap; }
    std::size_t ldb() const { return (op_b == op::plain ? n : k) + gap; }
    std::size_t ldc() const { return n + gap; }
    std::vector<float> matrix(std::size_t rows, std::size_t stride, double seed) const
    {
        auto x = waves<float>(rows * stride, seed);
        for (std::size_t i = 0; i < x.size(); ++i)
            if (i % stride >= stride - gap) x[i] = no_number;
        x.resize(x.size() - gap);  // nothing is read behind the last row
        return x;
    }
    std::vector<float> A() const { return matrix(op_a == op::plain ? m : k, lda(), 1); }
    std::vector<float> B() const { return matrix(op_b == op::plain ? k : n, ldb(), 2); }

    std::vector<float> times(const std::vector<float>& a, const std::vector<float>& b, float beta,
                             std::vector<float> c) const
    {
        blas::gemm(op_a, op_b, m, n, k, a.data(), lda(), b.data(), ldb(), beta, c.data(), ldc());
        return c;
    }

    /// The number of elements that are not the product of rounded numbers, except for rounding of sums in float.
    std::size_t wrong(float beta) const
    {
        const auto a = A(), b = B();
        auto c = matrix(m, ldc(), 3);
        const auto before = c;
        if (beta == 0)
            for (float& x : c) x = no_number;  // is not read
        const auto is = times(a, b, beta, c);
        std::vector<double> rows(m * k), columns(n * k);
        for (std::size_t p = 0; p < k; ++p) {
            for (std::size_t i = 0; i < m; ++i)
                rows[i * k + p] = rounded_to_bfloat16(a[op_a == op::plain ? i * lda() + p : p * lda() + i]);
            for (std::size_t j = 0; j < n; ++j)
                columns[j * k + p] = rounded_to_bfloat16(b[op_b == op::plain ? p * ldb() + j : j * ldb() + p]);
        }
        std::size_t bad = 0;
        for (std::size_t i = 0; i < is.size(); ++i) {
            const std::size_t row = i / ldc(), column = i % ldc();
            if (column >= n) {
                bad += !std::isnan(is[i]);
                continue;
            }
            double sum = beta == 0 ? 0 : static_cast<double>(beta) * before[i], size = std::fabs(sum);
            const double *const x_row = rows.data() + row * k, *const x_column = columns.data() + column * k;
            for (std::size_t p = 0; p < k; ++p) {
                const double x = x_row[p] * x_column[p];
                sum += x;
                size += std::fabs(x);
            }
            bad += !(std::fabs(is[i] - sum) <= std::ldexp(size * static_cast<double>(k + 4), -24));
        }
        return bad;
    }
};

}  // namespace

TEST_CASE("products in bfloat16 round their operands, and nothing else")
{
    const products_in_bfloat16 guard;
    for (const op op_a : {op::plain, op::transposed}) {
        for (const op op_b : {op::plain, op::transposed}) {
            for (const std::size_t m : {4u, 17u, 290u}) {  // 290, 530: more than a block
                for (const std::size_t n : {1u, 33u, 530u}) {
                    for (const std::size_t k : {1u, 31u, 530u}) {
                        if (m * n * k > 290 * 530 * 31) continue;
                        for (const std::size_t gap : {0u, 3u}) {
                            CAPTURE(m);
                            CAPTURE(n);
                            CAPTURE(k);
                            CAPTURE(gap);
                            CHECK(product{op_a, op_b, m, n, k, gap}.wrong(0) == 0);
                            CHECK(product{op_a, op_b, m, n, k, gap}.wrong(gap == 0 ? 1 : 0.5F) == 0);
                        }
                    }
                }
            }
        }
    }
}

TEST_CASE("products in bfloat16: a shape with a 0 has no product")
{
    const products_in_bfloat16 guard;
    const std::vector<float> some(8, 3);
    std::vector<float> c(8, 2);
    blas::gemm(op::plain, op::plain, 4, 2, 0, some.data(), some.data(), 0.5F, c.data());
    CHECK(c == std::vector<float>(8, 1));
    blas::gemm(op::plain, op::plain, 0, 2, 2, some.data(), some.data(), 0.0F, c.data());
    blas::gemm(op::plain, op::plain, 4, 0, 2, some.data(), some.data(), 0.0F, c.data());
    CHECK(c == std::vector<float>(8, 1));
}

TEST_CASE("products in bfloat16: infinity and NaN reach the result")
{
    const products_in_bfloat16 guard;
    const product one{op::plain, op::plain, 16, 16, 32, 0};
    auto a = one.A();
    const auto b = one.B();
    a[5 * 32 + 3] = no_number;
    a[6 * 32 + 3] = std::numeric_limits<float>::infinity();
    const auto c = one.times(a, b, 0, std::vector<float>(16 * 16));
    for (std::size_t i = 0; i < c.size(); ++i) CHECK(std::isfinite(c[i]) == (i / 16 != 5 && i / 16 != 6));
}

TEST_CASE("products in bfloat16 end with the guard; the innermost guard applies; doubles are unchanged")
{
    const product one{op::plain, op::transposed, 9, 20, 40, 0};
    const auto a = one.A(), b = one.B();
    const std::vector<float> c(9 * 20);
    const auto in_float = one.times(a, b, 0, c);
    {
        const products_in_bfloat16 guard;
        const auto rounded = one.times(a, b, 0, c);
        CHECK(rounded != in_float);
        {
            const batch_invariant other;
            const auto own = one.times(a, b, 0, c);
            CHECK(own != rounded);
            const products_in_bfloat16 unwanted{false};
            CHECK(one.times(a, b, 0, c) == own);
            const products_in_bfloat16 innermost;
            CHECK(one.times(a, b, 0, c) == rounded);
        }
        CHECK(one.times(a, b, 0, c) == rounded);
        const std::vector<double> x(6, 1.0 / 3), y(8, 1.0 / 7);
        std::vector<double> z(12);
        blas::gemm(op::plain, op::plain, 3, 4, 2, x.data(), y.data(), 0.0, z.data());
        CHECK(std::fabs(z[0] - 2.0 / 21) < 1e-15);
    }
    CHECK(one.times(a, b, 0, c) == in_float);
}

TEST_CASE("products in bfloat16 have the same bits for any number of threads")
{
    const product one{op::transposed, op::plain, 130, 300, 200, 0};  // enough for several threads
    const auto a = one.A(), b = one.B();
    const std::vector<float> c(130 * 300);
    const products_in_bfloat16 guard;
    const std::size_t before = threads();
    set_threads(1);
    const auto alone = one.times(a, b, 0, c);
    set_threads(3);
    CHECK(one.times(a, b, 0, c) == alone);
    set_threads(before);
}

TEST_CASE("products with fewer than 4 rows are not rounded")
{
    const product one{op::plain, op::plain, 3, 20, 40, 0};
    const auto a = one.A(), b = one.B();
    const std::vector<float> c(3 * 20);
    const auto in_float = one.times(a, b, 0, c);
    const products_in_bfloat16 guard;
    CHECK(one.times(a, b, 0, c) == in_float);
    CHECK(one.times(a, b, 0, c) == in_float);  // the guard still applies to the next product
}
