// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include <heed/core/errors.hpp>
#include <heed/core/workspace.hpp>
#include <heed/ops/rows.hpp>
#include <heed/policy/weigh.hpp>

/// Attention in chunks: a softmax over the w positions up to each position, and the weighted sum of all these
/// softmaxes.
namespace heed::inline HEED_TARGET::ops {

namespace detail {

/// N sums Σ_i exp(t_i) x_i with a common factor: exp(top) · sum, where top is the maximum t_i. -inf: empty.
template <class T, std::size_t N>
struct sums_of_exp {
    T top;
    T sum[N];

    static sums_of_exp none() { return {-std::numeric_limits<T>::infinity(), {}}; }

    bool empty() const { return top == -std::numeric_limits<T>::infinity(); }

    void join(const sums_of_exp& more)
    {
        using std::exp;
        if (more.empty()) return;
        if (empty()) {
            *this = more;
        } else if (more.top <= top) {
            const T by = exp(more.top - top);
            for (std::size_t i = 0; i < N; ++i) sum[i] += by * more.sum[i];
        } else {
            const T by = exp(top - more.top);
            for (std::size_t i = 0; i < N; ++i) sum[i] = by * sum[i] + more.sum[i];
            top = more.top;
        }
    }
};

/// tell(k, at(k−w+1) + … + at(k)) for k = 0 … n−1, with fewer terms at the beginning. Nothing is subtracted from a sum:
/// a window joins the end of one block of w positions and the beginning of the next, so a position is added three
/// times.
template <class T, std::size_t N>
void moving_sums(std::size_t n, std::size_t w, const auto& at, const auto& tell)
{
    scratch here;
    using sums = sums_of_exp<T, N>;
    sums* const ends = here.take<sums>(std::min(n, w));  // of the previous block, starting at each of its positions
    for (std::size_t begin = 0; begin < n; begin += w) {
        const std::size_t count = std::min(w, n - begin);
        sums some = sums::none();
        for (std::size_t i = 0; i < count; ++i) {
            some.join(at(begin + i));
            sums window = some;
            if (begin > 0 && i + 1 < w) window.join(ends[i + 1]);
            tell(begin + i, window);
        }
        if (begin + count == n) break;
        some = sums::none();
        for (std::size_t i = w; i-- > 0;) {
            some.join(at(begin + i));
            ends[i] = some;
        }
    }
}

}  // namespace detail

/// Each position k distributes its weight α_k over the chunk of w positions ending at k, by a softmax of u_j = s e_j:
///
///     P_{k,j} = exp(u_j) / Σ_{l=k−w+1}^{k} exp(u_l),  β_j = Σ_{k=j}^{j+w−1} α_k P_{k,j}
///     h_k = Σ_j P_{k,j} ∂β_j,  ∂α_k += h_k,  ∂u_j = Σ_k α_k P_{k,j} (∂β_j − h_k),  ∂e_j += s ∂u_j,  ∂s += Σ_j e_j ∂u_j
///
/// α, e [B,T] or [B,T,D], each dimension separately; s [1]. After the real positions of a row, and where e_j is -inf,
/// β_j is 0. Each sum is relative to the maximum u of its window, so that a window does not underflow next to another
/// one. Throws heed::error if w is 0.
struct mocha_op : operation<mocha_op> {
    static constexpr ranks takes{2, 3};

    static auto shape(const auto& alpha, const auto& e, const auto& factor, std::size_t w, const lengths_view& real)
    {
        if (w == 0) throw error("chunkwise: a chunk of 0 positions; give at least 1");
        require_shape("chunkwise", "the scale", factor.shape, {1}, "one number for all scores");
        require_shape("chunkwise", "the alignment", alpha.shape, e.shape, "the shape of the scores");
        real.require("chunkwise", e.shape[0], e.shape[1]);
        return e.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> alpha, in<T, R> e, in<T, 1> factor, std::size_t w, const lengths_view& real,
                        out<T, R> beta)
    {
        using one = detail::sums_of_exp<T, 1>;
        const std::size_t N = detail::width_of(e.shape), row = e.shape[1] * N;
        detail::each_row(e.shape[0], 64 * row, [=, s = factor.data[0], &real](std::size_t b) {
            const std::size_t n = real[b];
            for (std::size_t d = 0; d < N; ++d) {
                scratch here;
                one* const shares = here.take<one>(n);  // α_k / Σ exp(u)
                const auto place = [=](std::size_t j) { return b * row + j * N + d; };
                const auto score = [=](std::size_t j) -> one {
                    const T x = e.data[place(j)];
                    return hidden(x) ? one::none() : one{scaled(s, x), {1}};
                };
                detail::moving_sums<T, 1>(n, w, score, [=](std::size_t k, const one& z) {
                    const T a = alpha.data[place(k)];
                    shares[k] = a == 0 || z.empty() ? one::none() : one{-z.top, {a / z.sum[0]}};
                });
                const auto from_behind = [=](std::size_t i) { return shares[n - 1 - i]; };
                detail::moving_sums<T, 1>(n, w, from_behind, [=](std::size_t i, const one& y) {
                    using std::exp;
                    const std::size_t j = place(n - 1 - i);
                    const T x = e.data[j];
                    beta.data[j] = hidden(x) || y.empty() ? T(0) : exp(scaled(s, x) + y.top) * y.sum[0];
                });
            }
            kernels::detail::zero(beta.data + b * row + n * N, row - n * N);
        });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> alpha, in<T, R> e, in<T, 1> factor, std::size_t w, const lengths_view& real, in<T, R>,
                         in<T, R> d_beta, adjoint<T, R> d_alpha, adjoint<T, R> d_e, adjoint<T, 1> d_factor)
    {
        using two = detail::sums_of_exp<T, 2>;
        scratch kept;
        T* const of_row = kept.take<T>(e.shape[0]);  // ∂s, summed in row order, independent of the number of threads
        const std::size_t N = detail::width_of(e.shape), row = e.shape[1] * N;
        detail::each_row(e.shape[0], 64 * row, [=, s = factor.data[0], &real](std::size_t b) {
            const std::size_t n = real[b];
            in_double<T> sum = 0;
            for (std::size_t d = 0; d < N; ++d) {
                scratch here;
                two* const shares = here.take<two>(n);  // α_k / Σ exp(u), and that times h_k
                const auto place = [=](std::size_t j) { return b * row + j * N + d; };
                const auto score = [=](std::size_t j) -> two {
                    const T x = e.data[place(j)];
                    return hidden(x) ? two::none() : two{scaled(s, x), {1, d_beta.data[place(j)]}};
                };
                detail::moving_sums<T, 2>(n, w, score, [=](std::size_t k, const two& z) {
                    shares[k] = two::none();
                    if (z.empty()) return;
                    const T h = z.sum[1] / z.sum[0], a = alpha.data[place(k)];
                    if (d_alpha) d_alpha.data[place(k)] += h;
                    if (a != 0) shares[k] = two{-z.top, {a / z.sum[0], a / z.sum[0] * h}};
                });
                const auto from_behind = [=](std::size_t i) { return shares[n - 1 - i]; };
                detail::moving_sums<T, 2>(n, w, from_behind, [=, &sum](std::size_t i, const two& y) {
                    using std::exp;
                    const std::size_t j = place(n - 1 - i);
                    const T x = e.data[j];
                    if (hidden(x) || y.empty()) return;
                    const T d_u = exp(scaled(s, x) + y.top) * (y.sum[0] * d_beta.data[j] - y.sum[1]);
                    if (d_e) d_e.data[j] += s * d_u;
                    sum += static_cast<in_double<T>>(finite(x) * d_u);
                });
            }
            of_row[b] = static_cast<T>(sum);
        });
        if (!d_factor) return;
        for (std::size_t b = 0; b < e.shape[0]; ++b) d_factor.data[0] += of_row[b];
    }

private:
    static bool hidden(auto e) { return e == -std::numeric_limits<decltype(e)>::infinity(); }
    static auto finite(auto x)
    {
        using limits = std::numeric_limits<decltype(x)>;
        return std::clamp(x, limits::lowest(), limits::max());
    }
    /// u = s e; infinities become the largest finite number, as their difference would be NaN.
    static auto scaled(auto s, auto e) { return finite(s * finite(e)); }
};
inline constexpr mocha_op mocha{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::normalize {

/// Monotonic chunkwise attention (MoChA): from where a monotonic scan stops, a softmax attends to the last w positions.
///
///     β_{i,j} = Σ_{k=j}^{j+w−1} α_{i,k} exp(u_{i,j}) / Σ_{l=k−w+1}^{k} exp(u_{i,l})      Chiu & Raffel 2018, §2.3
///
///     chunkwise{w, s, monotonic{r}}                            for training
///     chunkwise{w, s, noisy{1, seed, monotonic{r}}}            for training with the paper's noise on the energies
///     chunkwise{w, s, monotonic_hard{r}}                       the trained model: the softmax of one chunk
///
/// α are the weights of any normalizer, and the state is the state of that normalizer; the paper's is `monotonic`. At
/// the beginning of a sentence chunks are shorter. The sum of the weights is the sum of α. Linear time for any w. Also
/// works per dimension. Throws heed::error if w is 0.
///
/// Deviation: the paper's chunk energies u are a second score with separate parameters. Here u = s e with a learned
/// number s [1], which sets how sharp the softmax of a chunk is (0: its mean); the scan uses e + r
/// (docs/explanation/decisions.md).
template <class Vector, class Inner>
struct chunkwise {
    std::size_t width = 2;  // w
    Vector s;               // [1]
    HEED_NO_UNIQUE_ADDRESS Inner inner;

    using wraps = Inner;

    auto operator()(const tensor auto& scores, const auto& state, const auto& at) const  // [B,T] or [B,T,D]
    {
        return ops::mocha(weigh(inner, scores, state, at), at.visible(scores), s, width, at.real);
    }

    auto advance(const tensor auto& scores, const tensor auto&, const auto& state, const auto& at) const
    {
        return next_of(inner, scores, weigh(inner, scores, state, at), state,
                       at);  // its state is computed from α, not β
    }

    /// Weights and state from a single α.
    auto weigh_and_advance(const tensor auto& scores, const auto& state, const auto& at) const
    {
        auto scanned = weigh_with_next(inner, scores, state, at);
        auto weights = ops::mocha(scanned.weights, at.visible(scores), s, width, at.real);
        return weights_and_next{std::move(weights), std::move(scanned.next)};
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return normalize::chunkwise{self.width, visit("s", self.s), visit("inner", self.inner)};
    }
};

template <class Vector, class Inner>
chunkwise(std::size_t, Vector, Inner) -> chunkwise<Vector, Inner>;

}  // namespace heed::inline HEED_TARGET::normalize
