// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <algorithm>
#include <complex>  // xflens uses it without including it
#include <concepts>
#include <cstddef>
#include <cstdint>

#include <sched.h>

#include <heed/core/atomic.hpp>
#include <heed/core/compiled.hpp>
#include <heed/core/dual_number.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/workspace.hpp>
#include <heed/gemm/gemm_kernel.hpp>
#include <heed/simd/simd.hpp>

// HEED_BLAS_NONE: there is no BLAS; heed's own products are used.
//
// xtensor-blas and <cblas.h> declare the same enumerations, so a file can include only one of the two: with
// HEED_BLAS_CBLAS it is <cblas.h>. Compilers continue after an #error, but stop at a file that does not exist.
#if defined(HEED_BLAS_NONE)
#elif defined(HEED_BLAS_CBLAS)
#if defined(CXXBLAS_DRIVERS_CBLAS_H)
#error "heed: HEED_BLAS_CBLAS uses <cblas.h>, which clashes with xtensor-blas, already included: use only one"
#include <heed/needs/one/CBLAS>
#elif !__has_include(<cblas.h>)
#error "heed: HEED_BLAS_CBLAS needs <cblas.h> (Debian: libopenblas-dev)"
#include <heed/needs/cblas.h>
#endif
#include <cblas.h>
#else
#if defined(CBLAS_H)
#error "heed: <cblas.h> clashes with xtensor-blas, which heed uses; define HEED_BLAS_CBLAS (CMake: HEED_BLAS=cblas)"
#include <heed/needs/one/CBLAS>
#elif !__has_include(<xflens/cxxblas/drivers/drivers.h>)
#error "heed needs xtensor-blas >= 0.20 (Debian: libxtensor-blas-dev); or define HEED_BLAS_CBLAS to use <cblas.h>"
#include <heed/needs/xtensor-blas>
#endif
// Defines HAVE_CBLAS. (xtensor-blas 0.21 to 0.23 do so themselves only after they have read cxxblas.)
#include <xtensor-blas/xblas_config.hpp>

// The part of <xflens/cxxblas/cxxblas.cxx> that declares the CBLAS functions.
#include <xflens/cxxblas/drivers/drivers.h>
#if !defined(CXXBLAS_DRIVERS_CBLAS_H)
#error "heed: xtensor-blas would use its own slow loops; define HAVE_CBLAS=1, and not XTENSOR_USE_FLENS_BLAS"
#include <heed/needs/HAVE_CBLAS>
#endif
#endif

#if __has_include(<omp.h>)
#include <omp.h>
#endif

/// Matrix products on plain row-major memory, through the BLAS that the program links (OpenBLAS).
///
/// They call the functions of CBLAS as declared by xtensor-blas or, if HEED_BLAS_CBLAS is defined, by <cblas.h>: one
/// choice for the whole program, with bit-identical results. `xt::linalg::dot` is not used: it returns wrong shapes for
/// products of views of one buffer.
namespace heed::for_all_targets {

// Per process, see one_blas_thread. Lower half: the number of users, and a bit that is set while OpenBLAS's number of
// threads is being changed. Upper half: a count of how often that number was restored, so that a thread that reads it
// between two equal states has the right value.
inline constinit atomic<std::uint64_t> blas_users{0};
inline int blas_threads_before = 1;  // read and written only while that bit is set

}  // namespace heed::for_all_targets

namespace heed::inline HEED_TARGET::blas {

/// How a product reads a matrix: unchanged or transposed.
enum class op { plain, transposed };

namespace detail {

/// heed's product: the bits of a row do not depend on the number of rows.
template <class T>
void gemm_kernel(op op_a, op op_b, std::size_t m, std::size_t n, std::size_t k, const T* a, std::size_t lda, const T* b,
                 std::size_t ldb, T beta, T* c, std::size_t ldc)
{
    const auto matrix = [](op which, const T* x, std::size_t stride) {
        const kernels::own::strided<T> plain{x, stride, 1};
        return which == op::plain ? plain : plain.transposed();
    };
    kernels::own::gemm(m, n, k, matrix(op_a, a, lda), matrix(op_b, b, ldb), beta, c, ldc);
}

/// The type of gemm_kernel<T>.
template <class T>
using product = void (*)(op, op, std::size_t, std::size_t, std::size_t, const T*, std::size_t, const T*, std::size_t, T,
                         T*, std::size_t);

}  // namespace detail

}  // namespace heed::inline HEED_TARGET::blas

namespace heed::inline HEED_TARGET {

/// Called through pointers, so that only programs that use batch_invariant compile these products.
namespace detail {
struct own_products {
    blas::detail::product<float> of_floats;
    blas::detail::product<double> of_doubles;
};
}  // namespace detail

/// While an object of this class exists, the products of its thread, and of heed's threads working for it, are heed's
/// own (gemm/gemm_kernel.hpp): a row of the result has the same bits in a batch of any size, and for any number of
/// threads. Can be nested.
///
///     const heed::batch_invariant guard;
///     model.translate(lines);      // the same bits for each line, for any grouping of the lines
///
/// A BLAS chooses the order of an element's terms by the number of rows; heed's kernels do not.
class batch_invariant {
public:
    template <std::same_as<bool> Bool = bool>  // a template, so that it is compiled only if it is called
    explicit batch_invariant(Bool wanted = true) : before_(detail::own_products_here)
    {
        static constexpr detail::own_products all{blas::detail::gemm_kernel<float>, blas::detail::gemm_kernel<double>};
        if (wanted) detail::own_products_here = &all;
    }
    ~batch_invariant() { detail::own_products_here = before_; }
    batch_invariant& operator=(batch_invariant&&) = delete;

private:
    const void* before_;
};

}  // namespace heed::inline HEED_TARGET

namespace heed::inline HEED_TARGET::blas {

namespace detail {

/// The product that this thread uses instead of the BLAS's; null if none.
template <class T>
product<T> own_product()
{
    const auto* const own = static_cast<const heed::detail::own_products*>(heed::detail::own_products_here);
    if (own == nullptr) return nullptr;
    if constexpr (std::same_as<T, float>) {
        return own->of_floats;
    } else {
        return own->of_doubles;
    }
}

#if defined(HEED_BLAS_NONE)
template <class T>
void gemm(op op_a, op op_b, int m, int n, int k, const T* a, int lda, const T* b, int ldb, T beta, T* c, int ldc)
{
    const auto size = [](int number) { return static_cast<std::size_t>(number); };
    gemm_kernel(op_a, op_b, size(m), size(n), size(k), a, size(lda), b, size(ldb), beta, c, size(ldc));
}
template <class T>
void gemv(op op_a, int m, int n, const T* a, int lda, const T* x, int incx, T beta, T* y)
{
    const kernels::own::strided<T> plain{a, static_cast<std::size_t>(lda), 1};
    const std::size_t rows = static_cast<std::size_t>(m), columns = static_cast<std::size_t>(n),
                      step = static_cast<std::size_t>(incx);
    if (op_a == op::plain) return kernels::own::gemv(rows, columns, plain, x, step, beta, y);
    kernels::own::gemv(columns, rows, plain.transposed(), x, step, beta, y);
}
#else
inline CBLAS_TRANSPOSE transpose(op which) { return which == op::plain ? CblasNoTrans : CblasTrans; }

inline void gemm(op op_a, op op_b, int m, int n, int k, const float* a, int lda, const float* b, int ldb, float beta,
                 float* c, int ldc)
{
    cblas_sgemm(CblasRowMajor, transpose(op_a), transpose(op_b), m, n, k, 1, a, lda, b, ldb, beta, c, ldc);
}
inline void gemm(op op_a, op op_b, int m, int n, int k, const double* a, int lda, const double* b, int ldb, double beta,
                 double* c, int ldc)
{
    cblas_dgemm(CblasRowMajor, transpose(op_a), transpose(op_b), m, n, k, 1, a, lda, b, ldb, beta, c, ldc);
}
inline void gemv(op op_a, int m, int n, const float* a, int lda, const float* x, int incx, float beta, float* y)
{
    cblas_sgemv(CblasRowMajor, transpose(op_a), m, n, 1, a, lda, x, incx, beta, y, 1);
}
inline void gemv(op op_a, int m, int n, const double* a, int lda, const double* x, int incx, double beta, double* y)
{
    cblas_dgemv(CblasRowMajor, transpose(op_a), m, n, 1, a, lda, x, incx, beta, y, 1);
}
#endif

// Weak: a BLAS without these functions is assumed to be single-threaded and safe to call from several threads.
extern "C" {
[[gnu::weak]] void openblas_set_num_threads(int count);
[[gnu::weak]] int openblas_get_num_threads();
[[gnu::weak]] int openblas_get_parallel();
#if __has_include(<omp.h>)
// With the types of <omp.h>: GNU's functions are noexcept, LLVM's are not.
[[gnu::weak]] decltype(::omp_set_num_threads) omp_set_num_threads;
[[gnu::weak]] decltype(::omp_get_max_threads) omp_get_max_threads;
#else
[[gnu::weak]] void omp_set_num_threads(int count);
[[gnu::weak]] int omp_get_max_threads();
#endif
}

/// How OpenBLAS was built: 0 without threads, 1 with its own threads, 2 with OpenMP's. 1 for any other CBLAS.
inline int kind_of_threads()
{
    static const int kind = openblas_get_parallel == nullptr ? 1 : openblas_get_parallel();
    return kind;
}

/// While an object of this class exists, OpenBLAS uses one thread in the thread that created it: heed's own threads
/// share the work.
///
/// OpenBLAS has one number of threads per process, so its users are counted: the first sets 1, the last restores the
/// number, unless the program has changed it. If built with OpenMP, OpenBLAS uses OpenMP's number, which is per thread.
class one_blas_thread {
public:
    one_blas_thread()
        : of_openmp_(kind_of_threads() == 2 && omp_get_max_threads != nullptr ? omp_get_max_threads() : 1),
          counted_(settable() && enter())
    {
        if (of_openmp_ != 1) omp_set_num_threads(1);
    }
    ~one_blas_thread()
    {
        if (counted_) leave();
        if (of_openmp_ != 1) omp_set_num_threads(of_openmp_);
    }
    one_blas_thread& operator=(one_blas_thread&&) = delete;

private:
    static constexpr std::uint64_t one_user = 1, changing = std::uint64_t{1} << 31, restored = std::uint64_t{1} << 32;
    static constexpr for_all_targets::atomic<std::uint64_t>& state = for_all_targets::blas_users;
    static constexpr int& before = for_all_targets::blas_threads_before;

    static std::uint64_t users(std::uint64_t now) { return now % changing; }

    static bool settable()
    {
        static const bool yes = openblas_get_num_threads != nullptr && openblas_set_num_threads != nullptr &&
                                heed::detail::in_each_child(forget_users);
        return yes;
    }

    // In a child of fork(), the other threads of the parent do not exist.
    static void forget_users() { state.store(0); }

    static std::uint64_t wait_until_changed()
    {
        std::uint64_t now = state.load(__ATOMIC_ACQUIRE);
        for (; (now & changing) != 0; now = state.load(__ATOMIC_ACQUIRE)) ::sched_yield();
        return now;
    }

    /// False if the program already uses one thread, so that nothing needs to be changed.
    static bool enter()
    {
        for (;;) {
            std::uint64_t now = wait_until_changed();
            const bool single = openblas_get_num_threads() == 1;
            if (single && users(now) == 0) {
                __atomic_thread_fence(__ATOMIC_ACQUIRE);
                if (state.load(__ATOMIC_RELAXED) == now) return false;
            } else if (state.compare_exchange(now, single ? now + one_user : now | changing)) {
                if (!single) {
                    before = openblas_get_num_threads();
                    openblas_set_num_threads(1);
                    state.store(now + one_user, __ATOMIC_RELEASE);
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
            if (!state.compare_exchange(now, (now - one_user) | (last ? changing : 0))) continue;
            if (last) {
                if (openblas_get_num_threads() == 1) openblas_set_num_threads(before);
                state.store(now - one_user + restored, __ATOMIC_RELEASE);
            }
            return;
        }
    }

    int of_openmp_;
    bool counted_;
};

/// OpenBLAS built without threads keeps global state: concurrent calls give wrong results.
inline bool callable_from_several_threads() { return kind_of_threads() != 0; }

// Below this, fork and join cost more than they save (about 10 us against 200 Gflop/s).
inline constexpr double worth_sharing = 3e6;

/// Values and slopes of a matrix of dual numbers, each contiguous; no slopes if all slopes are 0.
template <class T>
struct parts_of_matrix {
    T *value, *slope;

    parts_of_matrix(scratch& here, std::size_t rows, std::size_t columns, const dual_number<T>* x, std::size_t stride)
        : value(here.take<T>(rows * columns)), slope(here.take<T>(rows * columns))
    {
        for_all_targets::atomic<bool> constant{true};
        parallel_for(rows, (std::size_t{1} << 15) / (columns + 1) + 1,
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                         T any = 0;
                         for (std::size_t i = begin; i < end; ++i) {
                             const dual_number<T>* const from = x + i * stride;
                             T *const v = value + i * columns, *const s = slope + i * columns;
                             for (std::size_t j = 0; j < columns; ++j) {
                                 v[j] = from[j].value;
                                 s[j] = from[j].slope;
                             }
                             for (std::size_t j = 0; j < columns; ++j) any = s[j] != 0 ? T(1) : any;
                         }
                         if (any != 0) constant.store(false);
                     });
        if (constant.load()) slope = nullptr;
    }
};

/// Columns [j0, j1) of C = op(A) B + beta C, read in place: for few rows or short sums, where splitting the matrices
/// would cost more than the products. Element (i, k) of op(A) is A[i · down + k · along].
template <class T>
void multiply_in_place(std::size_t j0, std::size_t j1, std::size_t M, std::size_t K, const dual_number<T>* A,
                       std::size_t down, std::size_t along, const dual_number<T>* B, std::size_t ldb,
                       dual_number<T> beta, dual_number<T>* C, std::size_t ldc)
{
    using namespace simd;
    using D = dual_number<T>;
    constexpr std::size_t L = lanes<D>, most = register_bytes == 64 ? 4 : 2;
    const auto block = [&](auto rows, auto columns, std::size_t i, std::size_t j, std::size_t count) {
        const auto get = [&](const D* x) { return columns > 1 ? load(x) : load_first(x, count); };
        vec<D> sum[rows][columns];
        unrolled<rows>([&](auto r) {
            unrolled<columns>([&](auto c) {
                sum[r][c] = beta == D(0) ? vec<D>{} : vec<D>(beta) * get(C + (i + r) * ldc + j + c * L);
            });
        });
        for (std::size_t k = 0; k < K; ++k) {
            vec<D> b[columns];
            unrolled<columns>([&](auto c) { b[c] = get(B + k * ldb + j + c * L); });
            unrolled<rows>([&](auto r) {
                const vec<D> a = splat(A[(i + r) * down + k * along]);
                unrolled<columns>([&](auto c) { sum[r][c] = fma(a, b[c], sum[r][c]); });
            });
        }
        unrolled<rows>([&](auto r) {
            unrolled<columns>([&](auto c) {
                D* const to = C + (i + r) * ldc + j + c * L;
                columns > 1 ? store(to, sum[r][c]) : store_first(to, sum[r][c], count);
            });
        });
    };
    const auto strip = [&](auto columns, std::size_t j, std::size_t count) {
        in_groups<2>(0, M, [&](auto rows, std::size_t i) { block(rows, columns, i, j, count); });
    };
    std::size_t j = j0;
    for (; j + most * L <= j1; j += most * L) strip(std::integral_constant<std::size_t, most>{}, j, L);
    for (; j < j1; j += L) strip(std::integral_constant<std::size_t, 1>{}, j, std::min(L, j1 - j));
}

/// The same product with Bᵀ, for contiguous rows of op(A): inner products with the rows [j0, j1) of B, each of which is
/// read once, in chunks.
template <class T>
void multiply_by_rows(std::size_t j0, std::size_t j1, std::size_t M, std::size_t K, const dual_number<T>* A,
                      std::size_t lda, const dual_number<T>* B, std::size_t ldb, dual_number<T> beta, dual_number<T>* C,
                      std::size_t ldc)
{
    using namespace simd;
    using D = dual_number<T>;
    constexpr std::size_t L = lanes<D>, part = 256, ahead = bytes_ahead / (part * sizeof(D));
    for (std::size_t first = 0; first < K; first += part) {
        const std::size_t n = std::min(part, K - first);
        const D factor = first == 0 ? beta : D(1);
        for (std::size_t j = j0; j < j1; ++j) {
            const D* const b = B + j * ldb + first;
            if (j + ahead < j1) {  // hardware prefetch stops at the end of a chunk and restarts at each page
                for (std::size_t k = 0; k < n; k += 64 / sizeof(D)) __builtin_prefetch(b + ahead * ldb + k);
            }
            const auto rows = [&](auto count, std::size_t i) {
                vec<D> sums[count] = {};
                for (std::size_t k = 0; k < n; k += L) {
                    const std::size_t some = std::min(L, n - k);
                    const vec<D> y = load_first(b + k, some);
                    unrolled<count>(
                        [&](auto r) { sums[r] = fma(load_first(A + (i + r) * lda + first + k, some), y, sums[r]); });
                }
                unrolled<count>([&](auto r) {
                    D& c = C[(i + r) * ldc + j];
                    c = factor == D(0) ? sum(sums[r]) : factor * c + sum(sums[r]);
                });
            };
            in_groups<4>(0, M, rows);
        }
    }
}

inline constexpr std::size_t few_rows = 32, few_rows_across = 16, short_sum = 16;

/// The BLAS's product, on this thread. Not inlined: a product calls it in several places.
template <class T>
[[gnu::noinline]] void gemm_of_blas(op op_a, op op_b, std::size_t m, std::size_t n, std::size_t k, const T* a,
                                    std::size_t lda, const T* b, std::size_t ldb, T beta, T* c, std::size_t ldc)
{
    const auto integer = [](std::size_t number) { return static_cast<int>(number); };
    const one_blas_thread guard;
    if (m == 1) {  // gemm with one row is up to three times slower than gemv
        const bool plain = op_b == op::plain;
        detail::gemv(plain ? op::transposed : op::plain, integer(plain ? k : n), integer(plain ? n : k), b,
                     integer(ldb), a, op_a == op::plain ? 1 : integer(lda), beta, c);
        return;
    }
    detail::gemm(op_a, op_b, integer(m), integer(n), integer(k), a, integer(lda), b, integer(ldb), beta, c,
                 integer(ldc));
}

}  // namespace detail

/// C = op(A) op(B) + beta C, with op(A) [M,K], op(B) [K,N], C [M,N]; lda, ldb, ldc: row strides.
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
    const detail::product<T> own = detail::own_product<T>(), multiply = own ? own : detail::gemm_of_blas<T>;
    const auto part = [&](std::size_t i0, std::size_t i1, std::size_t j0, std::size_t j1) __attribute__((noinline))
    {
        multiply(op_a, op_b, i1 - i0, j1 - j0, K, A + (op_a == op::plain ? i0 * lda : i0), lda,
                 B + (op_b == op::plain ? j0 : j0 * ldb), ldb, beta, C + i0 * ldc + j0, ldc);
    };
    const double flops = 2.0 * static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K);
    if (threads() == 1 || flops < detail::worth_sharing || (!own && !detail::callable_from_several_threads())) {
        return part(0, M, 0, N);
    }
    if (!own && M == 1 && op_b == op::plain && K >= 64 * threads()) {
        // A vector times a matrix is bound by reading the matrix once: each thread reads consecutive rows. The threads'
        // sums are added at the end, always in the same order.
        scratch here;
        T* const sums = here.take<T>(threads() * N);
        std::fill_n(sums, threads() * N, T(0));  // inside another parallel_for all rows are one shard
        parallel_for(K, 1, [&](std::size_t k0, std::size_t k1, std::size_t shard) {
            detail::gemm_of_blas(op_a, op_b, 1, N, k1 - k0, A + (op_a == op::plain ? k0 : k0 * lda), lda, B + k0 * ldb,
                                 ldb, shard == 0 ? beta : T(0), shard == 0 ? C : sums + shard * N, ldc);
        });
        for (std::size_t shard = 1; shard < threads(); ++shard) {
            for (std::size_t j = 0; j < N; ++j) C[j] += sums[shard * N + j];
        }
        return;
    }
    const bool by_rows = M >= 2 * N || (M >= 32 * threads() && M >= N / 4);
    parallel_for(
        by_rows ? M : N, 1,
        [&](std::size_t begin, std::size_t end, std::size_t) {
            by_rows ? part(begin, end, 0, N) : part(0, M, begin, end);
        },
        16);
}

// Compiled into heed::compiled.
// clang-format off
#define HEED_KERNELS_OF_BLAS(X, T) \
    X(T, gemm, void, gemm, (op op_a, op op_b, std::size_t M, std::size_t N, std::size_t K, const T* A, std::size_t lda, const T* B, std::size_t ldb, T beta, T* C, std::size_t ldc), (op_a, op_b, M, N, K, A, lda, B, ldb, beta, C, ldc)) \
    X(T, gemm_kernel, void, detail::gemm_kernel, (op op_a, op op_b, std::size_t m, std::size_t n, std::size_t k, const T* a, std::size_t lda, const T* b, std::size_t ldb, T beta, T* c, std::size_t ldc), (op_a, op_b, m, n, k, a, lda, b, ldb, beta, c, ldc))
// clang-format on
HEED_COMPILED_KERNELS(HEED_KERNELS_OF_BLAS)

/// For dual numbers: C = A B + (A' B + A B') ε, three products, or two if one of the matrices is constant.
template <class T>
void gemm(op op_a, op op_b, std::size_t M, std::size_t N, std::size_t K, const dual_number<T>* A, std::size_t lda,
          const dual_number<T>* B, std::size_t ldb, dual_number<T> beta, dual_number<T>* C, std::size_t ldc)
{
    if (M == 0 || N == 0) return;
    scratch here;
    if (K == 0 || (op_b == op::plain && (M <= detail::few_rows || K <= detail::short_sum))) {
        const std::size_t down = op_a == op::plain ? lda : 1, along = op_a == op::plain ? 1 : lda;
        return parallel_for(
            N, (std::size_t{1} << 15) / (M * K + 1) + 1,
            [&](std::size_t j0, std::size_t j1, std::size_t) {
                detail::multiply_in_place(j0, j1, M, K, A, down, along, B, ldb, beta, C, ldc);
            },
            64);
    }
    if (op_b == op::transposed && M <= detail::few_rows_across) {
        const dual_number<T>* rows = A;
        if (op_a == op::transposed) {
            auto* const turned = here.take<dual_number<T>>(M * K);
            for (std::size_t i = 0; i < M; ++i)
                for (std::size_t k = 0; k < K; ++k) turned[i * K + k] = A[k * lda + i];
            rows = turned;
        }
        parallel_for(
            N, (std::size_t{1} << 15) / (M * K + 1) + 1,
            [&](std::size_t j0, std::size_t j1, std::size_t) {
                detail::multiply_by_rows(j0, j1, M, K, rows, op_a == op::plain ? lda : K, B, ldb, beta, C, ldc);
            },
            16);
        return;
    }
    const bool straight_a = op_a == op::plain, straight_b = op_b == op::plain;
    const detail::parts_of_matrix<T> a(here, straight_a ? M : K, straight_a ? K : M, A, lda);
    const detail::parts_of_matrix<T> b(here, straight_b ? K : N, straight_b ? N : K, B, ldb);
    T *const value = here.take<T>(M * N), *const slope = here.take<T>(M * N);
    const auto multiply = [&](const T* x, const T* y, T also, T* to) {
        gemm(op_a, op_b, M, N, K, x, straight_a ? K : M, y, straight_b ? N : K, also, to, N);
    };
    multiply(a.value, b.value, T(0), value);
    if (a.slope != nullptr) multiply(a.slope, b.value, T(0), slope);
    if (b.slope != nullptr) multiply(a.value, b.slope, T(a.slope != nullptr ? 1 : 0), slope);
    if (a.slope == nullptr && b.slope == nullptr) std::fill_n(slope, M * N, T(0));
    const bool fresh = beta == dual_number<T>(0);
    parallel_for(M, (std::size_t{1} << 15) / (N + 1) + 1, [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t i = begin; i < end; ++i) {
            dual_number<T>* const to = C + i * ldc;
            const T *const v = value + i * N, *const s = slope + i * N;
            if (fresh) {
                for (std::size_t j = 0; j < N; ++j) to[j] = {v[j], s[j]};
            } else {
                for (std::size_t j = 0; j < N; ++j) to[j] = beta * to[j] + dual_number<T>(v[j], s[j]);
            }
        }
    });
}

/// gemm of matrices that fit into the cache, of a few dozen rows: heed's own product, unless it would leave many lanes
/// of the last columns empty.
template <class T>
void small_gemm(op op_a, op op_b, std::size_t M, std::size_t N, std::size_t K, const T* A, std::size_t lda, const T* B,
                std::size_t ldb, T beta, T* C, std::size_t ldc)
{
    if constexpr (std::is_floating_point_v<T>) {
        constexpr std::size_t panel = kernels::own::detail::width<T>;
        if (M > 0 && N > 0 && K > 0 && (N + panel - 1) / panel * panel <= N + N / 4)
            return detail::gemm_kernel(op_a, op_b, M, N, K, A, lda, B, ldb, beta, C, ldc);
    }
    gemm(op_a, op_b, M, N, K, A, lda, B, ldb, beta, C, ldc);
}

/// C = op(A) op(B) + beta C for matrices with contiguous rows.
template <class T>
void gemm(op op_a, op op_b, std::size_t M, std::size_t N, std::size_t K, const T* A, const T* B, T beta, T* C)
{
    gemm(op_a, op_b, M, N, K, A, op_a == op::plain ? K : M, B, op_b == op::plain ? N : K, beta, C, N);
}

}  // namespace heed::inline HEED_TARGET::blas
