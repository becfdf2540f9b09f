// SPDX-License-Identifier: BSD-3-Clause
#include <heed/gemm/blas.hpp>

#include <doctest/doctest.h>

#include <support/dual_numbers.hpp>
#include <support/exhaustive.hpp>
#include <support/tensors.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <vector>

using namespace heed;
using support::random;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// A product of random matrices, and its expected value by loops in double. Rows are `gap` elements longer than needed.
template <class T>
struct random_product {
    blas::op op_a, op_b;
    std::size_t M, N, K, gap, lda, ldb, ldc;
    array<T, 1> A, B, before;
    std::vector<double> products, scales;

    random_product(blas::op a, blas::op b, std::size_t rows, std::size_t columns, std::size_t depth, std::size_t more)
        : op_a(a),
          op_b(b),
          M(rows),
          N(columns),
          K(depth),
          gap(more),
          lda((a == blas::op::plain ? K : M) + gap),
          ldb((b == blas::op::plain ? N : K) + gap),
          ldc(N + gap),
          A(random<T>({(a == blas::op::plain ? M : K) * lda + 1}, 1)),
          B(random<T>({(b == blas::op::plain ? K : N) * ldb + 1}, 2)),
          before(random<T>({M * ldc + 1}, 3)),
          products(M * N),
          scales(M * N, 1.0)
    {
        const std::size_t down = a == blas::op::plain ? lda : 1, along = a == blas::op::plain ? 1 : lda;
        const std::size_t deep = b == blas::op::plain ? ldb : 1, across = b == blas::op::plain ? 1 : ldb;
        const T *const from_a = A.data(), *const from_b = B.data();
        for (std::size_t i = 0; i < M; ++i) {
            for (std::size_t j = 0; j < N; ++j) {
                double sum = 0, scale = 1;
                for (std::size_t k = 0; k < K; ++k) {
                    const double x = static_cast<double>(from_a[i * down + k * along]) *
                                     static_cast<double>(from_b[k * deep + j * across]);
                    sum += x;
                    scale += x < 0 ? -x : x;
                }
                products[i * N + j] = sum;
                scales[i * N + j] = scale;
            }
        }
    }

    /// The maximum error of C = op(A) op(B) + beta C. With beta = 0, C starts as NaN, which must not be read. The gap
    /// between rows must not change.
    double error(T beta) const
    {
        auto C = before;
        T* const is = C.data();
        if (beta == T(0)) {
            for (std::size_t i = 0; i < M; ++i) std::fill_n(is + i * ldc, N, static_cast<T>(nan));
        }
        if (gap == 0) {
            blas::gemm<T>(op_a, op_b, M, N, K, A.data(), B.data(), beta, is);
        } else {
            blas::gemm<T>(op_a, op_b, M, N, K, A.data(), lda, B.data(), ldb, beta, is, ldc);
        }
        const T* const was = before.data();
        double worst = 0;
        for (std::size_t i = 0; i < M; ++i) {
            for (std::size_t j = 0; j < ldc; ++j) {
                double must = static_cast<double>(was[i * ldc + j]), scale = 1;
                if (j < N) {
                    must = (beta == T(0) ? 0 : static_cast<double>(beta) * must) + products[i * N + j];
                    scale = scales[i * N + j];
                }
                const double off = std::abs(static_cast<double>(is[i * ldc + j]) - must) / scale;
                worst = off >= 0 ? std::max(worst, off) : std::numeric_limits<double>::infinity();
            }
        }
        return worst;
    }
};

constexpr double factors[] = {0, 1, -0.5};

/// Checks all orientations, each with all these values of beta, or with one selected by `only` plus the orientation's
/// index.
template <class T>
void check_errors(std::size_t M, std::size_t N, std::size_t K, std::size_t gap, double rounding,
                  std::size_t only = std::size(factors))
{
    CAPTURE(M);
    CAPTURE(N);
    CAPTURE(K);
    CAPTURE(gap);
    std::size_t orientation = 0;
    for (const blas::op a : {blas::op::plain, blas::op::transposed}) {
        for (const blas::op b : {blas::op::plain, blas::op::transposed}) {
            CAPTURE(orientation);
            const random_product<T> product(a, b, M, N, K, gap);
            for (std::size_t f = 0; f < std::size(factors); ++f) {
                if (only < std::size(factors) && f != (only + orientation) % std::size(factors)) continue;
                CAPTURE(factors[f]);
                CHECK(product.error(static_cast<T>(factors[f])) <= rounding);
            }
            ++orientation;
        }
    }
}

}  // namespace

TEST_CASE_TEMPLATE("gemm computes the product, in every orientation and for odd sizes", T, float, double)
{
    const double rounding = 8 * static_cast<double>(std::numeric_limits<T>::epsilon());
    for (const std::size_t M : {0u, 1u, 2u, 7u, 33u}) {
        for (const std::size_t N : {0u, 1u, 3u, 17u}) {
            for (const std::size_t K : {0u, 1u, 5u, 31u}) {
                for (const std::size_t gap : {0u, 3u}) check_errors<T>(M, N, K, gap, rounding);
            }
        }
    }
}

TEST_CASE_TEMPLATE("gemm agrees when threads share the work", T, float, double)
{
    const double rounding = 16 * static_cast<double>(std::numeric_limits<T>::epsilon());
    // The smallest shared sizes. All pairs of a size, an orientation and beta.
    const struct {
        std::size_t threads, M, N, K, gap;
    } cases[] = {{3, 193, 61, 131, 1},   // over rows; the last shard is odd
                 {3, 9, 1301, 131, 1},   // over columns
                 {2, 1, 1501, 1001, 0},  // one row
                 {3, 1201, 1, 1251, 0},  // one column
                 {3, 97, 113, 139, 2}};
    std::size_t only = 0;
    for (const auto& each : cases) {
        CAPTURE(each.threads);
        REQUIRE(2.0 * static_cast<double>(each.M * each.N * each.K) >= blas::detail::worth_sharing);
        set_threads(each.threads);
        check_errors<T>(each.M, each.N, each.K, each.gap, rounding,
                        support::exhaustive() ? std::size(factors) : only++ % std::size(factors));
    }
    set_threads(1);
}

TEST_CASE("two runs agree bit for bit at a given number of threads")
{
    const auto A = random<float>({301, 131}, 1), B = random<float>({131, 67}, 2);
    for (const std::size_t count : {1u, 2u}) {
        set_threads(count);
        array<float, 2> first(shape_of_rank<2>{301, 67}), second = first;
        blas::gemm(blas::op::plain, blas::op::plain, 301, 67, 131, A.data(), B.data(), 0.0f, first.data());
        blas::gemm(blas::op::plain, blas::op::plain, 301, 67, 131, A.data(), B.data(), 0.0f, second.data());
        CHECK(support::same_bits(first, second));
    }
    set_threads(1);
}

TEST_CASE("products inside shards of a caller")
{
    set_threads(2);
    const auto A = random({40, 30}, 1), B = random({30, 50}, 2);
    array<double, 2> must(shape_of_rank<2>{40, 50});
    blas::gemm(blas::op::plain, blas::op::plain, 40, 50, 30, A.data(), B.data(), 0.0, must.data());
    std::vector<array<double, 2>> results(64, array<double, 2>(shape_of_rank<2>{40, 50}));
    parallel_for(results.size(), 1, [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t i = begin; i < end; ++i) {
            blas::gemm(blas::op::plain, blas::op::plain, 40, 50, 30, A.data(), B.data(), 0.0, results[i].data());
        }
    });
    set_threads(1);
    for (const auto& result : results) CHECK(support::same_bits(result, must));
}

TEST_CASE("a vector times a matrix inside shards of a caller")
{
    const std::size_t N = 1501, K = 1001;
    const auto A = random({1, K}, 1), B = random({K, N}, 2);
    array<double, 2> must(shape_of_rank<2>{1, N});
    blas::gemm(blas::op::plain, blas::op::plain, 1, N, K, A.data(), B.data(), 0.0, must.data());
    set_threads(2);
    std::vector<array<double, 2>> results(3, array<double, 2>(shape_of_rank<2>{1, N}));
    parallel_for(results.size(), 1, [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t i = begin; i < end; ++i) {
            blas::gemm(blas::op::plain, blas::op::plain, 1, N, K, A.data(), B.data(), 0.0, results[i].data());
        }
    });
    set_threads(1);
    for (const auto& result : results) CHECK(support::same_bits(result, must));
}

namespace {

/// The number of wrong elements of a product of matrices of dual numbers, in each orientation, added or not.
template <class T>
std::size_t wrong_of_duals(bool constant_a, bool constant_b, std::size_t M, std::size_t N, std::size_t K)
{
    using D = dual_number<T>;
    using blas::op;
    const std::size_t wide = std::max({M, N, K}) + 2;
    auto A = test::dual_numbers<T>(wide * wide, 1), B = test::dual_numbers<T>(wide * wide, 2);
    for (D& x : A) x.slope = constant_a ? 0 : x.slope;
    for (D& x : B) x.slope = constant_b ? 0 : x.slope;
    const auto before = test::dual_numbers<T>(M * wide, 3);
    const D *const from_a = A.data(), *const from_b = B.data();
    std::size_t wrong = 0;
    std::vector<D> products(M * N);
    for (const op op_a : {op::plain, op::transposed}) {
        for (const op op_b : {op::plain, op::transposed}) {
            const std::size_t down = op_a == op::plain ? wide : 1, along = op_a == op::plain ? 1 : wide;
            const std::size_t deep = op_b == op::plain ? wide : 1, across = op_b == op::plain ? 1 : wide;
            for (std::size_t i = 0; i < M; ++i) {
                for (std::size_t j = 0; j < N; ++j) {
                    T value = 0, slope = 0;
                    for (std::size_t k = 0; k < K; ++k) {
                        const D &a = from_a[i * down + k * along], &b = from_b[k * deep + j * across];
                        value += a.value * b.value;
                        slope += a.slope * b.value + a.value * b.slope;
                    }
                    products[i * N + j] = {value, slope};
                }
            }
            for (const D beta : {D(0), D(1), D(T(0.5), T(2))}) {
                auto C = before;
                blas::gemm(op_a, op_b, M, N, K, from_a, wide, from_b, wide, beta, C.data(), wide);
                for (std::size_t i = 0; i < M; ++i) {
                    for (std::size_t j = 0; j < wide; ++j) {
                        const D was = before[i * wide + j];
                        const D must = j < N ? beta * was + products[i * N + j] : was;
                        wrong += test::near(C[i * wide + j], must, 2 * K + 8) ? 0u : 1u;
                    }
                }
            }
        }
    }
    return wrong;
}

}  // namespace

TEST_CASE("products of matrices of dual numbers, in each orientation, added or not, and with one constant matrix")
{
    for (const bool a : {false, true}) {
        for (const bool b : {false, true}) {
            // Few rows, short sums, and neither.
            const std::size_t sizes[][3]{{5, 7, 3},   {6, 70, 20}, {1, 70, 41}, {3, 41, 20},
                                         {2, 141, 1}, {7, 3, 300}, {33, 19, 17}};
            for (const auto& z : sizes) {
                CAPTURE(a);
                CAPTURE(b);
                CAPTURE(z[0]);
                CAPTURE(z[1]);
                CHECK(wrong_of_duals<float>(a, b, z[0], z[1], z[2]) == 0);
                CHECK(wrong_of_duals<double>(a, b, z[0], z[1], z[2]) == 0);
            }
        }
    }
    const dual_number<double>* const none = nullptr;
    std::vector<dual_number<double>> C(4, dual_number<double>(3, 4));
    blas::gemm(blas::op::plain, blas::op::plain, 2, 2, 0, none, none, dual_number<double>(0), C.data());
    CHECK(C[3] == 0);
    C.assign(4, dual_number<double>(3, 4));
    blas::gemm(blas::op::plain, blas::op::transposed, 2, 2, 0, none, none, dual_number<double>(0), C.data());
    CHECK(C[3] == 0);
}
