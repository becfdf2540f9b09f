// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>

#include <heed/core/workspace.hpp>
#include <heed/gemm/blas.hpp>
#include <heed/kernels/block_sums.hpp>
#include <heed/simd/simd.hpp>

/// Sums over the past in linear time, a chunk of rows at a time.
///
///     y_i = Σ_{j ≤ i + shift} f(j, i + shift) (x_i · k_j) v_j          Katharopoulos et al. 2020, eq. 8-12
///
/// f(j, p) is the decay of row j at row p, f(j, p) f(p, r) = f(j, r): γ^{p−j}, or a product of gates. The rows before a
/// chunk are summed in one matrix A = Σ_j f(j, p) k_j v_jᵀ; within a chunk all pairs are compared. The derivatives have
/// the same form, with permuted x, k and v and rows counted from the last. `reference::sums_over_past` of
/// kernels/tiles/reference.hpp computes the same in a plain loop over rows; tests compare the two.
namespace heed::inline HEED_TARGET::kernels {

/// Rows of a chunk.
inline constexpr std::size_t rows_of_chunk = 64;

/// Beyond this number of rows, chunks are added with compensation: very many would cost digits.
inline constexpr std::size_t rows_added_plainly = 4096;

/// The powers 1, γ, … γ^n.
template <class T>
const T* pow_table(double base, std::size_t n, scratch& here)
{
    T* const result = here.take<T>(n + 1);
    double power = 1;
    for (std::size_t i = 0; i <= n; ++i, power *= base) result[i] = static_cast<T>(power);
    return result;
}

/// f(j, p) = γ^{p−j}
template <class T>
class fading_with_age {
public:
    fading_with_age(double gamma, scratch& here) : decay(gamma), few(pow_table<T>(gamma, rows_of_chunk, here)) {}

    bool none() const { return decay == 1; }
    T operator()(std::size_t from, std::size_t to) const
    {
        const std::size_t by = to - from;
        return by <= rows_of_chunk ? few[by] : static_cast<T>(std::pow(decay, static_cast<double>(by)));
    }
    /// row[i] *= f(first + i, to)
    void operator()(std::size_t n, T* row, std::size_t first, std::size_t to) const
    {
        for (std::size_t i = 0; i < n; ++i) row[i] *= (*this)(first + i, to);
    }

private:
    double decay;
    const T* few;
};

/// f(j, p) = exp(c_j − c_p) with nondecreasing c: a product of gates is a difference of sums of logarithms, and at most
/// 1.
template <class T>
struct fading_by_gates {
    const T* c;

    static bool none() { return false; }
    T operator()(std::size_t from, std::size_t to) const
    {
        using std::exp;
        return c[from] < c[to] ? exp(c[from] - c[to]) : T(1);
    }
    /// row[i] *= f(first + i, to)
    void operator()(std::size_t n, T* row, std::size_t first, std::size_t to) const
    {
        simd::transform(
            n, row,
            [end = simd::splat(c[to])](auto x, auto from) {
                return x * simd::exp(simd::min(from - end, decltype(x){}));
            },
            row, c + first);
    }
};

namespace detail {

/// A = left · A + more, where `lost` keeps the rounding error for the next sum (Kahan 1965).
template <class T>
void add_faded(std::size_t n, T left, const T* more, T* lost, T* A)
{
    using namespace simd;
    each_register<T>(n, [&](std::size_t i, std::size_t count) {
        const vec<T> f = splat(left), before = f * load_first(A + i, count),
                     x = load_first(more + i, count) + f * load_first(lost + i, count), sum = before + x,
                     rest = lost_in_sum(before, x, sum);
        store_first(lost + i, select(rest == rest, rest, vec<T>{}), count);
        store_first(A + i, sum, count);
    });
}

}  // namespace detail

/// A = Σ_j f(j, last) k_j v_jᵀ over the rows added so far. Uses the memory of a scratch.
template <class T, class Fading>
class sum_over_rows {
public:
    sum_over_rows(std::size_t width, std::size_t depth, const Fading& fading, scratch& memory)
        : width_(width), depth_(depth), fading_(fading), memory_(memory), A_(memory.take<T>(width * depth))
    {}

    std::size_t rows() const { return rows_; }

    /// Adds the next n rows, at most rows_of_chunk; overwrites k.
    void add(std::size_t n, T* k, const T* v)
    {
        using blas::op;
        if (n == 0) return;
        const std::size_t last = rows_ + n - 1;
        fade(n, k, [&](std::size_t r) { return fading_(rows_ + r, last); });
        const T left = rows_ > 0 ? fading_(rows_ - 1, last) : T(0);
        if (rows_ <= rows_added_plainly) {
            blas::gemm(op::transposed, op::plain, width_, depth_, n, k, width_, v, depth_, left, A_, depth_);
        } else {
            const std::size_t size = width_ * depth_;
            if (lost_ == nullptr) { more_ = memory_.take<T>(size), lost_ = detail::filled(memory_, size, T(0)); }
            blas::gemm(op::transposed, op::plain, width_, depth_, n, k, width_, v, depth_, T(0), more_, depth_);
            detail::add_faded(size, left, more_, lost_, A_);
        }
        rows_ += n;
    }

    /// y_r += f(last, at(r)) x_r A for n rows; overwrites x.
    void read(std::size_t n, T* x, const auto& at, T* y) const
    {
        if (rows_ == 0) return;
        fade(n, x, [&](std::size_t r) { return fading_(rows_ - 1, at(r)); });
        blas::gemm(blas::op::plain, blas::op::plain, n, depth_, width_, x, width_, A_, depth_, T(1), y, depth_);
    }

private:
    std::size_t width_, depth_, rows_ = 0;
    const Fading& fading_;
    scratch& memory_;
    T *A_, *more_ = nullptr, *lost_ = nullptr;  // the sum of a chunk, and the rounding error of adding it to A

    void fade(std::size_t n, T* rows, const auto& left) const
    {
        for (std::size_t r = 0; r < n && !fading_.none(); ++r) {
            T* const row = rows + r * width_;
            simd::transform(
                width_, row, [f = left(r)](auto number) { return f * number; }, row);
        }
    }
};

/// `outputs` rows y, from `inputs` rows k and v. x, k and v are functions (first, count, to) that write rows; y is a
/// function (first, count, from) that receives them. Rows have width `width` (x, k) and `depth` (v, y).
template <class T>
void sums_over_past(std::size_t outputs, std::size_t inputs, std::ptrdiff_t shift, std::size_t width, std::size_t depth,
                    const auto& fading, const auto& x, const auto& k, const auto& v, const auto& y)
{
    using blas::op;
    constexpr std::size_t C = rows_of_chunk;
    scratch here;
    T *const xs = here.take<T>(C * width), *const ks = here.take<T>(C * width), *const vs = here.take<T>(C * depth);
    T *const pairs = here.take<T>(C * C), *const ys = here.take<T>(C * depth);
    sum_over_rows<T, std::remove_cvref_t<decltype(fading)>> behind(width, depth, fading, here);
    // The number of rows visible to row i, not yet capped at `inputs`.
    const auto ahead = [&](std::size_t i) {
        return static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(i) + shift + 1));
    };
    const std::size_t before_first = std::min(inputs, ahead(0) - (ahead(0) > 0 ? 1 : 0));
    while (behind.rows() < before_first) {
        const std::size_t n = std::min(C, before_first - behind.rows());
        k(behind.rows(), n, ks);
        v(behind.rows(), n, vs);
        behind.add(n, ks, vs);
    }
    for (std::size_t i = 0; i < outputs; i += C) {
        const std::size_t n = std::min(C, outputs - i), begin = behind.rows();
        const std::size_t own = std::max(begin, std::min(inputs, ahead(i + n - 1))) - begin;
        x(i, n, xs);
        if (own > 0) {
            k(begin, own, ks);
            v(begin, own, vs);
            blas::gemm(op::plain, op::transposed, n, own, width, xs, width, ks, width, T(0), pairs, own);
            for (std::size_t r = 0; r < n; ++r) {
                const std::size_t seen = ahead(i + r), of_own = std::min(own, seen > begin ? seen - begin : 0);
                T* const row = pairs + r * own;
                if (of_own > 0 && !fading.none()) fading(of_own, row, begin, seen - 1);
                std::fill(row + of_own, row + own, T(0));
            }
        }
        blas::gemm(op::plain, op::plain, n, depth, own, pairs, own, vs, depth, T(0), ys, depth);
        behind.read(
            n, xs, [&](std::size_t r) { return ahead(i + r) - 1; }, ys);  // every row sees all of these
        y(i, n, ys);
        behind.add(own, ks, vs);
    }
}

}  // namespace heed::inline HEED_TARGET::kernels
