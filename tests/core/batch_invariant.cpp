// SPDX-License-Identifier: BSD-3-Clause

#include <heed/core/batch_invariant.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <heed/core/parallel.hpp>
#include <heed/core/random.hpp>
#include <heed/gemm/blas.hpp>

using heed::blas::op;

namespace {

template <class T>
std::vector<T> numbers(std::size_t count, std::uint64_t seed)
{
    std::vector<T> all(count);
    for (std::size_t i = 0; i < count; ++i) all[i] = static_cast<T>(2 * heed::uniform(seed, i) - 1);
    return all;
}

template <class T>
bool same_bits(const T* left, const T* right, std::size_t count)
{
    return std::memcmp(left, right, count * sizeof(T)) == 0;
}

/// The rows of [most,K] x [K,N] as one product, as products of `rows` rows each, and as plain sums.
template <class T>
void check_rows(op op_a, op op_b, std::size_t most, std::size_t N, std::size_t K, T beta)
{
    const std::vector<T> A = numbers<T>(most * K, 1), B = numbers<T>(K * N, 2), before = numbers<T>(most * N, 3);
    const std::size_t lda = op_a == op::plain ? K : most, ldb = op_b == op::plain ? N : K;
    const auto multiply = [&](std::size_t first, std::size_t rows, std::vector<T>& C) {
        heed::blas::gemm(op_a, op_b, rows, N, K, A.data() + (op_a == op::plain ? first * K : first), lda, B.data(), ldb,
                         beta, C.data() + first * N, N);
    };
    const heed::batch_invariant guard;
    std::vector<T> at_once = before;
    multiply(0, most, at_once);
    for (const std::size_t rows : std::vector<std::size_t>{1, 2, 5, 6, 7, 16, 31}) {
        std::vector<T> parts = before;
        for (std::size_t r = 0; r < most; r += rows) multiply(r, std::min(rows, most - r), parts);
        CAPTURE(rows);
        CHECK(same_bits(parts.data(), at_once.data(), parts.size()));
    }
    double furthest = 0;
    for (std::size_t i = 0; i < most; ++i) {
        for (std::size_t j = 0; j < N; ++j) {
            double sum = static_cast<double>(beta) * static_cast<double>(before[i * N + j]);
            for (std::size_t k = 0; k < K; ++k) {
                sum += static_cast<double>(op_a == op::plain ? A[i * K + k] : A[k * most + i]) *
                       static_cast<double>(op_b == op::plain ? B[k * N + j] : B[j * K + k]);
            }
            furthest = std::max(furthest, std::abs(static_cast<double>(at_once[i * N + j]) - sum));
        }
    }
    CHECK(furthest < (sizeof(T) == 4 ? 1e-4 : 1e-11));
}

}  // namespace

TEST_CASE_TEMPLATE("A row of a product has the same bits beside any others, on any number of threads", T, float, double)
{
    for (const std::size_t threads : std::vector<std::size_t>{1, 3}) {
        heed::set_threads(threads);
        for (const op a : {op::plain, op::transposed}) {
            for (const op b : {op::plain, op::transposed}) {
                check_rows<T>(a, b, 33, 19, 300, T(0));
                check_rows<T>(a, b, 40, 70, 7, T(1));
            }
        }
        check_rows<T>(op::plain, op::plain, 100, 200, 600, T(0));  // enough work to be shared
    }
    heed::set_threads(1);
    const std::vector<T> A = numbers<T>(50 * 600, 4), B = numbers<T>(600 * 200, 5);
    std::vector<T> one(50 * 200), three(50 * 200);
    const heed::batch_invariant guard;
    heed::blas::gemm(op::plain, op::plain, 50, 200, 600, A.data(), B.data(), T(0), one.data());
    heed::set_threads(3);
    heed::blas::gemm(op::plain, op::plain, 50, 200, 600, A.data(), B.data(), T(0), three.data());
    heed::set_threads(1);
    CHECK(same_bits(one.data(), three.data(), one.size()));
}

TEST_CASE("The guard ends with its scope, may be nested, and holds for the threads that share its work")
{
    using heed::detail::batch_invariant_here;
    CHECK_FALSE(batch_invariant_here);
    {
        const heed::batch_invariant outer;
        CHECK(batch_invariant_here);
        {
            const heed::batch_invariant inner, unwanted(false);
            CHECK(batch_invariant_here);
        }
        CHECK(batch_invariant_here);
        heed::set_threads(3);
        std::atomic<int> with{0}, without{0};
        heed::parallel_for(3, 1,
                           [&](std::size_t, std::size_t, std::size_t) { ++(batch_invariant_here ? with : without); });
        CHECK(with == 3);
        CHECK(without == 0);
    }
    CHECK_FALSE(batch_invariant_here);
    const heed::batch_invariant unwanted(false);
    CHECK_FALSE(batch_invariant_here);
    std::atomic<int> with{0};
    heed::parallel_for(3, 1, [&](std::size_t, std::size_t, std::size_t) { with += batch_invariant_here; });
    CHECK(with == 0);
    heed::set_threads(1);
}
