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

/// Sums over the past, or the future, in linear time, a chunk of rows at a time.
///
///     y_i = Σ_{j ≤ i} f(j, i) (x_i · k_j) v_j          Katharopoulos et al. 2020, eq. 8-12
///
/// f(j, p) is the decay of position j at position p, f(j, p) f(p, r) = f(j, r): γ^{p−j}, or a product of gates. The
/// rows before a chunk are summed in one matrix A = Σ_j f(j, p) k_j v_jᵀ; within a chunk all pairs are compared. The
/// derivatives have the same form, with permuted x, k and v; those of keys and values are sums over later rows.
/// `reference::sums_over_past` of kernels/tiles/reference.hpp computes the same in a plain loop over rows; tests
/// compare the two.
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
    void from_each(std::size_t n, T* row, std::size_t first, std::size_t to) const
    {
        for (std::size_t i = 0; i < n; ++i) row[i] *= (*this)(first + i, to);
    }
    /// row[i] *= f(from, first + i)
    void to_each(std::size_t n, T* row, std::size_t from, std::size_t first) const
    {
        for (std::size_t i = 0; i < n; ++i) row[i] *= (*this)(from, first + i);
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
    void from_each(std::size_t n, T* row, std::size_t first, std::size_t to) const
    {
        fade(n, row, c + first, [end = simd::splat(c[to])](auto from) { return from - end; });
    }
    /// row[i] *= f(from, first + i)
    void to_each(std::size_t n, T* row, std::size_t from, std::size_t first) const
    {
        fade(n, row, c + first, [begin = simd::splat(c[from])](auto to) { return begin - to; });
    }

private:
    static void fade(std::size_t n, T* row, const T* sums, const auto& exponent)
    {
        simd::transform(
            n, row, [&](auto x, auto sum) { return x * simd::exp(simd::min(exponent(sum), decltype(x){})); }, row,
            sums);
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

/// Which rows an output row sees: those at earlier positions, or at later ones.
enum class sees { past, future };

/// The positions of rows: output i is at i + output_at and input j at j + input_at, which is not negative for any row
/// that is seen.
struct rows_seen {
    std::size_t outputs, inputs;
    std::ptrdiff_t output_at = 0, input_at = 0;
    bool itself = true;  // does an output see the input at its own position?

    /// The number of inputs at positions before output i, or up to it.
    std::size_t before(std::size_t i, bool with_own) const
    {
        const std::ptrdiff_t n = static_cast<std::ptrdiff_t>(i) + output_at - input_at + (with_own ? 1 : 0);
        return std::min(inputs, static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, n)));
    }
    std::size_t output(std::size_t i) const { return i + static_cast<std::size_t>(output_at); }
    std::size_t input(std::size_t j) const { return j + static_cast<std::size_t>(input_at); }
};

/// A = Σ_j f k_j v_jᵀ over consecutive rows, added from the first to the last (past) or from the last to the first
/// (future), where f is the decay between j and the row that was added last.
template <sees which, class T, class Fading>
class sum_over_rows {
public:
    /// `memory` provides A, and C rows of width `width` for copies.
    sum_over_rows(std::size_t width, std::size_t depth, const Fading& fading, scratch& memory)
        : width_(width),
          depth_(depth),
          fading_(fading),
          memory_(memory),
          A_(memory.take<T>(width * depth)),
          copy_(memory.take<T>(rows_of_chunk * width))
    {}

    /// Adds the next n rows, at most rows_of_chunk, of which the first is at position `first`.
    void add(std::size_t n, std::size_t first, const T* k, const T* v)
    {
        using blas::op;
        if (n == 0) return;
        const std::size_t last = which == sees::past ? first + n - 1 : first;
        const T* const faded = faded_rows(n, k, [&](std::size_t r) { return left(first + r, last); });
        const std::size_t size = width_ * depth_;
        const T old = rows_ > 0 ? left(last_, last) : T(0);
        if (rows_ <= rows_added_plainly) {
            if (old != T(0) && old != T(1))
                simd::transform(
                    size, A_, [old](auto x) { return old * x; }, static_cast<const T*>(A_));
            blas::small_gemm(op::transposed, op::plain, width_, depth_, n, faded, width_, v, depth_,
                             T(old == T(0) ? 0 : 1), A_, depth_);
        } else {
            if (lost_ == nullptr) more_ = memory_.take<T>(size), lost_ = detail::filled(memory_, size, T(0));
            blas::small_gemm(op::transposed, op::plain, width_, depth_, n, faded, width_, v, depth_, T(0), more_,
                             depth_);
            detail::add_faded(size, old, more_, lost_, A_);
        }
        rows_ += n;
        last_ = last;
    }

    /// y_r += f x_r A for n rows at positions at(r).
    void read(std::size_t n, const T* x, const auto& at, T* y)
    {
        if (rows_ == 0) return;
        const T* const faded = faded_rows(n, x, [&](std::size_t r) { return left(last_, at(r)); });
        blas::small_gemm(blas::op::plain, blas::op::plain, n, depth_, width_, faded, width_, A_, depth_, T(1), y,
                         depth_);
    }

private:
    std::size_t width_, depth_, rows_ = 0, last_ = 0;
    const Fading& fading_;
    scratch& memory_;
    T *A_, *copy_, *more_ = nullptr, *lost_ = nullptr;  // the sum of a chunk, and the rounding error of adding it to A

    T left(std::size_t from, std::size_t to) const
    {
        return which == sees::past ? fading_(from, to) : fading_(to, from);
    }
    const T* faded_rows(std::size_t n, const T* rows, const auto& by) const
    {
        if (fading_.none()) return rows;
        for (std::size_t r = 0; r < n; ++r)
            simd::transform(
                width_, copy_ + r * width_, [f = by(r)](auto number) { return f * number; }, rows + r * width_);
        return copy_;
    }
};

/// y_i = Σ_j f (x_i · k_j) v_j over the rows that i sees. x, k and v are functions (first, count, to) that return a
/// pointer to rows, written to `to` or elsewhere; y is a function (first, count, from) that receives them. Rows have
/// width `width` (x, k) and `depth` (v, y).
template <sees which, class T>
void sums_of_seen(const rows_seen& rows, std::size_t width, std::size_t depth, const auto& fading, const auto& x,
                  const auto& k, const auto& v, const auto& y)
{
    using blas::op;
    constexpr std::size_t C = rows_of_chunk;
    constexpr bool past = which == sees::past;
    scratch here;
    T *const xs = here.take<T>(C * width), *const ks = here.take<T>(C * width), *const vs = here.take<T>(C * depth);
    T *const pairs = here.take<T>(C * C), *const ys = here.take<T>(C * depth);
    sum_over_rows<which, T, std::remove_cvref_t<decltype(fading)>> sum(width, depth, fading, here);
    const auto add = [&](std::size_t begin, std::size_t end) {
        sum.add(end - begin, rows.input(begin), k(begin, end - begin, ks), v(begin, end - begin, vs));
    };
    // Inputs before `seen` (past), or from it on (future), are seen by output i.
    const auto seen = [&](std::size_t i) { return rows.before(i, past == rows.itself); };
    if (rows.outputs == 0) return;
    // The inputs that are in the sum: those before `edge`, or from it on.
    std::size_t edge = past ? 0 : rows.inputs;
    const std::size_t all = seen(past ? 0 : rows.outputs - 1);  // every output sees these
    while (past ? edge + 1 < all : all + 1 < edge) {
        const std::size_t n = std::min(C, past ? all - 1 - edge : edge - all - 1);
        past ? add(edge, edge + n) : add(edge - n, edge);
        edge = past ? edge + n : edge - n;
    }
    for (std::size_t done = 0; done < rows.outputs; done += C) {
        const std::size_t n = std::min(C, rows.outputs - done), i = past ? done : rows.outputs - done - n;
        const std::size_t far = seen(past ? i + n - 1 : i);
        const std::size_t begin = past ? edge : std::min(edge, far), end = past ? std::max(edge, far) : edge;
        const T* const of_x = x(i, n, xs);
        const std::size_t own = end - begin;
        const T *of_k = nullptr, *of_v = nullptr;
        if (own > 0) {
            of_k = k(begin, own, ks);
            of_v = v(begin, own, vs);
            blas::small_gemm(op::plain, op::transposed, n, own, width, of_x, width, of_k, width, T(0), pairs, own);
            for (std::size_t r = 0; r < n; ++r) {
                const std::size_t to = std::clamp(seen(i + r), begin, end) - begin;
                T* const row = pairs + r * own;
                if constexpr (past) {
                    if (to > 0 && !fading.none()) fading.from_each(to, row, rows.input(begin), rows.output(i + r));
                    std::fill(row + to, row + own, T(0));
                } else {
                    std::fill(row, row + to, T(0));
                    if (to < own && !fading.none())
                        fading.to_each(own - to, row + to, rows.output(i + r), rows.input(begin + to));
                }
            }
        }
        blas::small_gemm(op::plain, op::plain, n, depth, own, pairs, own, of_v, depth, T(0), ys, depth);
        sum.read(
            n, of_x, [&](std::size_t r) { return rows.output(i + r); }, ys);
        y(i, n, static_cast<const T*>(ys));
        if (own > 0) sum.add(own, rows.input(begin), of_k, of_v);
        edge = past ? end : begin;
    }
}

}  // namespace heed::inline HEED_TARGET::kernels
