// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

#include <heed/core/arena.hpp>
#include <heed/core/parallel.hpp>

/// Matrix products on plain row-major memory, through the CBLAS that the program links (OpenBLAS).
///
/// The five functions are declared under names of our own, tied to the CBLAS symbols by asm labels: <cblas.h> and
/// xtensor-blas declare the same symbols with types that clash, and heed must live beside either of them.
/// `xt::linalg::dot` is not used: it returns wrong shapes for products of views of one buffer.
namespace heed::blas {

namespace detail {

// On the platforms we know, only macOS puts a prefix before the C names.
#if defined(__APPLE__)
#define HEED_BLAS_SYMBOL(name) __asm__("_" name)
#else
#define HEED_BLAS_SYMBOL(name) __asm__(name)
#endif
extern "C" {
void heed_cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float* a, int lda,
                      const float* b, int ldb, float beta, float* c, int ldc) HEED_BLAS_SYMBOL("cblas_sgemm");
void heed_cblas_dgemm(int order, int trans_a, int trans_b, int m, int n, int k, double alpha, const double* a, int lda,
                      const double* b, int ldb, double beta, double* c, int ldc) HEED_BLAS_SYMBOL("cblas_dgemm");
void heed_cblas_sgemv(int order, int trans, int m, int n, float alpha, const float* a, int lda, const float* x,
                      int incx, float beta, float* y, int incy) HEED_BLAS_SYMBOL("cblas_sgemv");
void heed_cblas_dgemv(int order, int trans, int m, int n, double alpha, const double* a, int lda, const double* x,
                      int incx, double beta, double* y, int incy) HEED_BLAS_SYMBOL("cblas_dgemv");
// Weak: any other CBLAS has none of these, and is then taken to be of one thread and safe to share.
[[gnu::weak]] void heed_openblas_set_num_threads(int count) HEED_BLAS_SYMBOL("openblas_set_num_threads");
[[gnu::weak]] int heed_openblas_get_num_threads() HEED_BLAS_SYMBOL("openblas_get_num_threads");
[[gnu::weak]] int heed_openblas_get_parallel() HEED_BLAS_SYMBOL("openblas_get_parallel");
[[gnu::weak]] void heed_omp_set_num_threads(int count) HEED_BLAS_SYMBOL("omp_set_num_threads");
[[gnu::weak]] int heed_omp_get_max_threads() HEED_BLAS_SYMBOL("omp_get_max_threads");
}
#undef HEED_BLAS_SYMBOL

inline void gemm(int ta, int tb, int m, int n, int k, const float* a, int lda, const float* b, int ldb, float beta,
                 float* c, int ldc)
{
    heed_cblas_sgemm(101, ta, tb, m, n, k, 1.0f, a, lda, b, ldb, beta, c, ldc);
}
inline void gemm(int ta, int tb, int m, int n, int k, const double* a, int lda, const double* b, int ldb, double beta,
                 double* c, int ldc)
{
    heed_cblas_dgemm(101, ta, tb, m, n, k, 1.0, a, lda, b, ldb, beta, c, ldc);
}
inline void gemv(int trans, int m, int n, const float* a, int lda, const float* x, int incx, float beta, float* y)
{
    heed_cblas_sgemv(101, trans, m, n, 1.0f, a, lda, x, incx, beta, y, 1);
}
inline void gemv(int trans, int m, int n, const double* a, int lda, const double* x, int incx, double beta, double* y)
{
    heed_cblas_dgemv(101, trans, m, n, 1.0, a, lda, x, incx, beta, y, 1);
}

/// How OpenBLAS was built: 0 without threads, 1 with threads of its own, 2 with OpenMP's. 1 of any other CBLAS.
inline int kind_of_threads()
{
    static const int kind = heed_openblas_get_parallel == nullptr ? 1 : heed_openblas_get_parallel();
    return kind;
}

/// While one of these lives, OpenBLAS uses one thread in the thread that made it: heed shares out its own work, and two
/// pools in one process collapse.
///
/// OpenBLAS has one number of threads per process, so the users of one thread are counted: the first one remembers the
/// number and sets 1, the last one restores it. If the program sets a number in between, that one is kept. OpenMP has
/// another number in each thread, which OpenBLAS follows if it was built with OpenMP.
class one_blas_thread {
public:
    one_blas_thread()
        : of_openmp_(kind_of_threads() == 2 && heed_omp_get_max_threads != nullptr ? heed_omp_get_max_threads() : 1),
          counted_(settable() && enter())
    {
        if (of_openmp_ != 1) heed_omp_set_num_threads(1);
    }
    ~one_blas_thread()
    {
        if (counted_) leave();
        if (of_openmp_ != 1) heed_omp_set_num_threads(of_openmp_);
    }
    one_blas_thread(const one_blas_thread&) = delete;
    one_blas_thread& operator=(const one_blas_thread&) = delete;

private:
    // The lower half of `state` holds the number of users and a bit that is set while one of them changes OpenBLAS's
    // number. The upper half counts how often that number was restored: if `state` is the same before and after a
    // thread reads the number, no user changed it meanwhile.
    static constexpr std::uint64_t one_user = 1, changing = std::uint64_t{1} << 31, restored = std::uint64_t{1} << 32;
    static inline std::atomic<std::uint64_t> state{0};
    static inline int before = 1;  // read and written only while `changing` is set

    static std::uint64_t users(std::uint64_t now) { return now % changing; }

    static bool settable()
    {
        return heed_openblas_get_num_threads != nullptr && heed_openblas_set_num_threads != nullptr;
    }

    static std::uint64_t wait_until_changed()
    {
        std::uint64_t now = state.load(std::memory_order_acquire);
        for (; (now & changing) != 0; now = state.load(std::memory_order_acquire)) std::this_thread::yield();
        return now;
    }

    /// False if there is nothing to do: the program itself wants one thread.
    static bool enter()
    {
        for (;;) {
            std::uint64_t now = wait_until_changed();
            const bool single = heed_openblas_get_num_threads() == 1;
            if (single && users(now) == 0) {
                std::atomic_thread_fence(std::memory_order_acquire);
                if (state.load(std::memory_order_relaxed) == now) return false;
            } else if (state.compare_exchange_strong(now, single ? now + one_user : now | changing)) {
                if (!single) {
                    before = heed_openblas_get_num_threads();
                    heed_openblas_set_num_threads(1);
                    state.store(now + one_user, std::memory_order_release);
                }
                return true;
            }
        }
    }

    static void leave()
    {
        for (;;) {
            std::uint64_t now = wait_until_changed();
            const bool last = users(now) == 1;
            if (!state.compare_exchange_strong(now, (now - one_user) | (last ? changing : 0))) continue;
            if (last) {
                if (heed_openblas_get_num_threads() == 1) heed_openblas_set_num_threads(before);
                state.store(now - one_user + restored, std::memory_order_release);
            }
            return;
        }
    }

    int of_openmp_;
    bool counted_;
};

/// OpenBLAS built without threads keeps global state: concurrent calls give wrong results.
inline bool callable_from_several_threads() { return kind_of_threads() != 0; }

// Below this a fork and join costs more than it saves (some 10 us against 200 Gflop/s).
inline constexpr double worth_sharing = 3e6;

}  // namespace detail

enum class op { plain = 111, transposed = 112 };

/// C = op(A) op(B) + beta C, with op(A) [M,K], op(B) [K,N], C [M,N]; lda, ldb, ldc: elements from a row to the next.
template <class T>
void gemm(op op_a, op op_b, std::size_t M, std::size_t N, std::size_t K, const T* A, std::size_t lda, const T* B,
          std::size_t ldb, T beta, T* C, std::size_t ldc)
{
    if (M == 0 || N == 0) return;
    if (K == 0) {
        for (std::size_t i = 0; i < M; ++i) {
            for (std::size_t j = 0; j < N; ++j) C[i * ldc + j] = beta == T(0) ? T(0) : C[i * ldc + j] * beta;
        }
        return;
    }
    const auto integer = [](std::size_t n) { return static_cast<int>(n); };
    const auto part = [&](std::size_t i0, std::size_t i1, std::size_t j0, std::size_t j1) {
        const detail::one_blas_thread guard;
        const T* a = A + (op_a == op::plain ? i0 * lda : i0);
        const T* b = B + (op_b == op::plain ? j0 : j0 * ldb);
        T* c = C + i0 * ldc + j0;
        const std::size_t m = i1 - i0, n = j1 - j0;
        if (m == 1) {  // gemm with one row is up to three times slower than gemv
            const int incx = op_a == op::plain ? 1 : integer(lda);
            if (op_b == op::plain) {
                detail::gemv(112, integer(K), integer(n), b, integer(ldb), a, incx, beta, c);
            } else {
                detail::gemv(111, integer(n), integer(K), b, integer(ldb), a, incx, beta, c);
            }
            return;
        }
        detail::gemm(static_cast<int>(op_a), static_cast<int>(op_b), integer(m), integer(n), integer(K), a,
                     integer(lda), b, integer(ldb), beta, c, integer(ldc));
    };
    const double flops = 2.0 * static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K);
    if (threads() == 1 || flops < detail::worth_sharing || !detail::callable_from_several_threads()) {
        return part(0, M, 0, N);
    }
    if (M == 1 && op_b == op::plain && K >= 64 * threads()) {
        // A vector times a matrix reads the matrix once, and nothing else counts: each thread reads rows that follow
        // each other in memory. Its sum of them is added at the end, always in the same order.
        scratch here;
        T* const sums = here.take<T>(threads() * N);
        std::fill_n(sums, threads() * N, T(0));  // inside a shard of somebody else's all rows are one shard
        parallel_for(K, 1, [&](std::size_t k0, std::size_t k1, std::size_t shard) {
            const detail::one_blas_thread guard;
            detail::gemv(112, integer(k1 - k0), integer(N), B + k0 * ldb, integer(ldb),
                         A + (op_a == op::plain ? k0 : k0 * lda), op_a == op::plain ? 1 : integer(lda),
                         shard == 0 ? beta : T(0), shard == 0 ? C : sums + shard * N);
        });
        for (std::size_t shard = 1; shard < threads(); ++shard) {
            for (std::size_t j = 0; j < N; ++j) C[j] += sums[shard * N + j];
        }
        return;
    }
    if (M >= 2 * N || (M >= 32 * threads() && M >= N / 4)) {
        parallel_for(
            M, 1, [&](std::size_t i0, std::size_t i1, std::size_t) { part(i0, i1, 0, N); }, 16);
    } else {
        parallel_for(
            N, 1, [&](std::size_t j0, std::size_t j1, std::size_t) { part(0, M, j0, j1); }, 16);
    }
}

/// C = op(A) op(B) + beta C for matrices whose rows lie one behind the other.
template <class T>
void gemm(op op_a, op op_b, std::size_t M, std::size_t N, std::size_t K, const T* A, const T* B, T beta, T* C)
{
    gemm(op_a, op_b, M, N, K, A, op_a == op::plain ? K : M, B, op_b == op::plain ? N : K, beta, C, N);
}

}  // namespace heed::blas
