// SPDX-License-Identifier: BSD-3-Clause
#include <heed/gemm/blas.hpp>

#include <doctest/doctest.h>

#include <support/dual_numbers.hpp>
#include <support/tensors.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

using namespace heed;
using support::random;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// The greatest error of C = op(A) op(B) + beta C against loops in double, with each of these numbers of threads and
/// several beta; lines are `gap` elements longer than needed. With beta = 0, C starts as NaN: it must not be read. What
/// lies between its lines must stay.
template <class T>
std::vector<double> errors(const std::vector<std::size_t>& threads, blas::op op_a, blas::op op_b, std::size_t M,
                           std::size_t N, std::size_t K, std::size_t gap)
{
    const bool flip_a = op_a == blas::op::transposed, flip_b = op_b == blas::op::transposed;
    const std::size_t lda = (flip_a ? M : K) + gap, ldb = (flip_b ? K : N) + gap, ldc = N + gap;
    const auto A = random<T>({(flip_a ? K : M) * lda + 1}, 1), B = random<T>({(flip_b ? N : K) * ldb + 1}, 2);
    std::vector<double> products(M * N), scales(M * N, 1.0);
    for (std::size_t i = 0; i < M; ++i) {
        for (std::size_t j = 0; j < N; ++j) {
            for (std::size_t k = 0; k < K; ++k) {
                const double a = static_cast<double>(A.data()[flip_a ? k * lda + i : i * lda + k]);
                const double b = static_cast<double>(B.data()[flip_b ? j * ldb + k : k * ldb + j]);
                products[i * N + j] += a * b;
                scales[i * N + j] += std::abs(a * b);
            }
        }
    }
    const auto error_with = [&](T beta) {
        auto C = random<T>({M * ldc + 1}, 3);
        const auto before = C;
        if (beta == T(0)) {
            for (std::size_t i = 0; i < M; ++i) {
                for (std::size_t j = 0; j < N; ++j) C.data()[i * ldc + j] = static_cast<T>(nan);
            }
        }
        if (gap == 0) {
            blas::gemm<T>(op_a, op_b, M, N, K, A.data(), B.data(), beta, C.data());
        } else {
            blas::gemm<T>(op_a, op_b, M, N, K, A.data(), lda, B.data(), ldb, beta, C.data(), ldc);
        }
        double worst = 0;
        for (std::size_t i = 0; i < M; ++i) {
            for (std::size_t j = 0; j < ldc; ++j) {
                const double was = static_cast<double>(before.data()[i * ldc + j]);
                double must = was, scale = 1;
                if (j < N) {
                    must = (beta == T(0) ? 0 : static_cast<double>(beta) * was) + products[i * N + j];
                    scale = scales[i * N + j];
                }
                const double off = std::abs(static_cast<double>(C.data()[i * ldc + j]) - must) / scale;
                worst = off >= 0 ? std::max(worst, off) : std::numeric_limits<double>::infinity();
            }
        }
        return worst;
    };
    std::vector<double> all;
    for (const std::size_t count : threads) {
        set_threads(count);
        all.push_back(std::max({error_with(T(0)), error_with(T(1)), error_with(T(-0.5))}));
    }
    set_threads(1);
    return all;
}

/// The same over all orientations.
template <class T>
void check_errors(const std::vector<std::size_t>& threads, std::size_t M, std::size_t N, std::size_t K, std::size_t gap,
                  double rounding)
{
    CAPTURE(M);
    CAPTURE(N);
    CAPTURE(K);
    CAPTURE(gap);
    for (const blas::op a : {blas::op::plain, blas::op::transposed}) {
        for (const blas::op b : {blas::op::plain, blas::op::transposed}) {
            const auto all = errors<T>(threads, a, b, M, N, K, gap);
            for (std::size_t i = 0; i < threads.size(); ++i) {
                CAPTURE(threads[i]);
                CHECK(all[i] <= rounding);
            }
        }
    }
}

}  // namespace

TEST_CASE_TEMPLATE("gemm is the product, in every orientation and for odd sizes", T, float, double)
{
    const double rounding = 8 * static_cast<double>(std::numeric_limits<T>::epsilon());
    for (const std::size_t M : {0u, 1u, 2u, 7u, 33u}) {
        for (const std::size_t N : {0u, 1u, 3u, 17u}) {
            for (const std::size_t K : {0u, 1u, 5u, 31u}) {
                for (const std::size_t gap : {0u, 3u}) check_errors<T>({1}, M, N, K, gap, rounding);
            }
        }
    }
}

TEST_CASE_TEMPLATE("and when it is shared out over threads", T, float, double)
{
    const double rounding = 16 * static_cast<double>(std::numeric_limits<T>::epsilon());
    check_errors<T>({1, 3}, 301, 67, 131, 1, rounding);  // over rows; the last shard is odd
    check_errors<T>({1, 3}, 9, 1501, 131, 1, rounding);  // over columns
    check_errors<T>({2}, 1, 1801, 1001, 0, rounding);    // one row
    check_errors<T>({3}, 1201, 1, 1301, 0, rounding);    // one column
    check_errors<T>({1, 3}, 97, 113, 211, 2, rounding);
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

TEST_CASE("products inside shards of our own")
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

TEST_CASE("a vector times a matrix inside shards of our own")
{
    const std::size_t N = 1801, K = 1001;
    const auto A = random({1, K}, 1), B = random({K, N}, 2);
    array<double, 2> must(shape_of_rank<2>{1, N});
    blas::gemm(blas::op::plain, blas::op::plain, 1, N, K, A.data(), B.data(), 0.0, must.data());
    set_threads(2);
    std::vector<array<double, 2>> results(4, array<double, 2>(shape_of_rank<2>{1, N}));
    parallel_for(results.size(), 1, [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t i = begin; i < end; ++i) {
            blas::gemm(blas::op::plain, blas::op::plain, 1, N, K, A.data(), B.data(), 0.0, results[i].data());
        }
    });
    set_threads(1);
    for (const auto& result : results) CHECK(support::same_bits(result, must));
}

TEST_CASE("products of matrices of dual numbers, each way round, added or not, and where one is constant")
{
    const auto check = [](auto element, bool constant_a, bool constant_b, std::size_t M, std::size_t N, std::size_t K) {
        using T = decltype(element);
        using D = dual_number<T>;
        using blas::op;
        const std::size_t wide = std::max({M, N, K}) + 2;
        for (const op op_a : {op::plain, op::transposed}) {
            for (const op op_b : {op::plain, op::transposed}) {
                for (const D beta : {D(0), D(1), D(T(0.5), T(2))}) {
                    auto A = test::dual_numbers<T>(wide * wide, 1), B = test::dual_numbers<T>(wide * wide, 2);
                    for (D& x : A) x.slope = constant_a ? 0 : x.slope;
                    for (D& x : B) x.slope = constant_b ? 0 : x.slope;
                    auto C = test::dual_numbers<T>(M * wide, 3);
                    const auto before = C;
                    blas::gemm(op_a, op_b, M, N, K, static_cast<const D*>(A.data()), wide,
                               static_cast<const D*>(B.data()), wide, beta, C.data(), wide);
                    for (std::size_t i = 0; i < M; ++i) {
                        for (std::size_t j = 0; j < wide; ++j) {
                            D sum = j < N ? beta * before[i * wide + j] : before[i * wide + j];
                            for (std::size_t k = 0; j < N && k < K; ++k) {
                                sum += (op_a == op::plain ? A[i * wide + k] : A[k * wide + i]) *
                                       (op_b == op::plain ? B[k * wide + j] : B[j * wide + k]);
                            }
                            CHECK(test::near(C[i * wide + j], sum, 2 * K + 8));
                        }
                    }
                }
            }
        }
    };
    for (const bool a : {false, true}) {
        for (const bool b : {false, true}) {
            // Few rows, short sums, and neither.
            const std::size_t sizes[][3]{{5, 7, 3},   {6, 70, 20}, {1, 70, 41}, {3, 41, 20},
                                         {2, 141, 1}, {7, 3, 300}, {40, 70, 41}};
            for (const auto& [M, N, K] : sizes) {
                check(float{}, a, b, M, N, K);
                check(double{}, a, b, M, N, K);
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
