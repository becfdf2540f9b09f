// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <heed/core/parallel.hpp>
#include <heed/core/workspace.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/simd/simd.hpp>

/// The greatest log-probabilities of a softmax, without the softmax: all that a search needs from a row of logits.
///
///     log p_w = x_w − log Σ_i exp(x_i)       for the few words w of greatest x_w, and for one requested word
///
/// A first pass over a row finds its maximum and a bound that the wanted words must reach; a second one the sum and the
/// few words above the bound.
namespace heed::kernels {

/// The wanted results of each row, and their destinations.
template <class T>
struct top_words {
    std::size_t most = 0;                 // how many words of each row; at most V
    const std::uint32_t* also = nullptr;  // [R] a word of each row whose log-probability is always returned, or
                                          // nullptr. It is -inf for a word not below V
    std::uint32_t* words = nullptr;       // [R,most] the most probable first; of equal ones, the lower word first
    T* log_p = nullptr;                   // [R,most]
    T* log_p_also = nullptr;              // [R]
};

namespace detail {

/// f(i) for the places i of a register (among its first `count`) where v reaches the bound.
template <class T, class F>
HEED_SIMD_INLINE void each_reaching(simd::vec<T> v, T bound, std::size_t count, F&& f)
{
#if defined(HEED_SIMD_AVX512)
    unsigned bits;
    if constexpr (sizeof(T) == 4) {
        bits = _mm512_cmp_ps_mask(v, simd::splat(bound), _CMP_GE_OQ);
    } else {
        bits = _mm512_cmp_pd_mask(v, simd::splat(bound), _CMP_GE_OQ);
    }
    if (count < simd::lanes<T>) bits &= (1u << count) - 1u;
    for (; bits != 0; bits &= bits - 1) {
        const auto i = static_cast<std::size_t>(__builtin_ctz(bits));
        f(i, v[i]);
    }
#else
    if (count == simd::lanes<T> && !simd::any(v >= simd::splat(bound))) return;
    for (std::size_t i = 0; i < count; ++i) {
        if (v[i] >= bound) f(i, v[i]);
    }
#endif
}

/// One row: its words of greatest x_w in order, as pairs (x_w, w), their maximum `top`, and Σ_i exp(x_i − top). With a
/// bias, x = row + bias.
template <class T>
class row_search {
public:
    using found = std::pair<T, std::uint32_t>;

    void look(std::size_t V, const T* row, const T* bias, std::size_t most)
    {
        using namespace simd;
        const auto x = [=](std::size_t i) { return bias == nullptr ? load(row + i) : load(row + i) + load(bias + i); };
        const auto x_of = [=](std::size_t i, std::size_t n) {
            return bias == nullptr ? load(row + i, n) : load(row + i, n) + load(bias + i, n);
        };
        constexpr T lowest = -std::numeric_limits<T>::infinity();
        const std::size_t full = V / lanes<T>, rest = V % lanes<T>;
        // The maxima of enough disjoint groups of words: at least as many words as there are groups reach the least.
        const std::size_t groups = std::min(std::max<std::size_t>((2 * most + lanes<T> - 1) / lanes<T>, 1), full + 1);
        maxima_.resize(groups * lanes<T>);
        top_ = lowest;
        for (std::size_t g = 0; g < groups; ++g) {
            const std::size_t end = full * (g + 1) / groups;
            vec<T> a = splat(lowest), b = a;
            std::size_t i = full * g / groups;
            for (; i + 2 <= end; i += 2) {
                a = max(x(i * lanes<T>), a);
                b = max(x((i + 1) * lanes<T>), b);
            }
            if (i < end) a = max(x(i * lanes<T>), a);
            a = max(a, b);
            if (g + 1 == groups && rest != 0) a = max(fill_behind<T>(x_of(full * lanes<T>, rest), rest, lowest), a);
            store(maxima_.data() + g * lanes<T>, a);
            top_ = std::max(top_, max(a));
        }
        T bound = lowest;
        if (most == 1) {
            bound = top_;
        } else if (most > 0 && most <= maxima_.size()) {
            std::nth_element(maxima_.begin(), maxima_.begin() + static_cast<std::ptrdiff_t>(most - 1), maxima_.end(),
                             [](T a, T b) { return a > b; });
            bound = maxima_[most - 1];
        }
        found_.clear();
        const vec<T> shift = splat(top_ == lowest ? T(0) : top_);
        long_sum<T> sum;
        const auto take = [&](std::size_t first, vec<T> v, std::size_t count) {
            each_reaching<T>(v, bound, count, [&](std::size_t i, T value) {
                found_.emplace_back(value, static_cast<std::uint32_t>(first + i));
            });
        };
        for (std::size_t i = 0; i < full; ++i) {
            const vec<T> v = x(i * lanes<T>);
            sum.add(exp(v - shift));
            if (most > 0) take(i * lanes<T>, v, lanes<T>);
        }
        if (rest != 0) {
            const vec<T> v = x_of(full * lanes<T>, rest);
            sum.add(fill_behind<T>(exp(v - shift), rest, T(0)));
            if (most > 0) take(full * lanes<T>, v, rest);
        }
        const std::size_t kept = std::min(most, found_.size());
        std::partial_sort(found_.begin(), found_.begin() + static_cast<std::ptrdiff_t>(kept), found_.end(),
                          [](const found& a, const found& b) {
                              return a.first != b.first ? a.first > b.first : a.second < b.second;
                          });
        sum_ = sum.get();
    }

    const std::vector<found>& words() const { return found_; }
    T top() const { return top_; }
    T sum() const { return sum_; }  // Σ_i exp(x_i − top)

private:
    std::vector<T> maxima_;
    std::vector<found> found_;
    T top_ = 0, sum_ = 0;
};

template <class T>
void put_top_words(std::size_t r, std::size_t V, const row_search<T>& search, T log_sum, const top_words<T>& wanted)
{
    constexpr T lowest = -std::numeric_limits<T>::infinity();
    for (std::size_t k = 0; k < wanted.most; ++k) {
        // A row of NaN has no words to find: those returned are V.
        const bool there = k < search.words().size();
        wanted.words[r * wanted.most + k] = there ? search.words()[k].second : static_cast<std::uint32_t>(V);
        wanted.log_p[r * wanted.most + k] = there ? search.words()[k].first - log_sum : lowest;
    }
}

}  // namespace detail

/// logits [R,V], without the bias [V] if one is given. If fewer than `most` numbers of a row are not NaN, the missing
/// words are V and their log-probabilities -inf.
template <class T>
void log_softmax_top(std::size_t rows, std::size_t V, const T* logits, const T* bias, const top_words<T>& wanted)
{
    constexpr T lowest = -std::numeric_limits<T>::infinity();
    parallel_for(rows, detail::rows_a_shard(V), [&](std::size_t begin, std::size_t end, std::size_t) {
        const heed::detail::kept_between_calls<detail::row_search<T>> kept;
        detail::row_search<T>& search = *kept;
        for (std::size_t r = begin; r < end; ++r) {
            const T* row = logits + r * V;
            search.look(V, row, bias, wanted.most);
            const T log_sum = search.top() + std::log(search.sum());
            detail::put_top_words(r, V, search, log_sum, wanted);
            if (wanted.also != nullptr) {
                const std::size_t w = wanted.also[r];
                wanted.log_p_also[r] = w < V ? row[w] + (bias == nullptr ? T(0) : bias[w]) - log_sum : lowest;
            }
        }
    });
}

/// The same for an ensemble of models: logits[m] [R,V], biases included.
///
///     arithmetic   p = 1/M Σ_m softmax(x_m)                    geometric   p = softmax(1/M Σ_m x_m)
///
/// The geometric mean of the probabilities, normalized to sum to 1, is the softmax of the mean logits.
template <class T>
void mean_softmax_top(std::size_t rows, std::size_t V, const std::vector<const T*>& logits, bool geometric,
                      const top_words<T>& wanted)
{
    using namespace simd;
    constexpr T lowest = -std::numeric_limits<T>::infinity();
    const T share = T(1) / static_cast<T>(logits.size());
    parallel_for(rows, detail::rows_a_shard(V * logits.size()), [&](std::size_t begin, std::size_t end, std::size_t) {
        const heed::detail::kept_between_calls<detail::row_search<T>> kept;
        detail::row_search<T>& search = *kept;
        std::vector<T> mean(V);
        for (std::size_t r = begin; r < end; ++r) {
            std::fill(mean.begin(), mean.end(), T(0));
            for (const T* const of_model : logits) {
                const T* row = of_model + r * V;
                if (geometric) {
                    add_scaled(V, mean.data(), share, row);
                } else {
                    search.look(V, row, nullptr, 0);
                    const vec<T> shift = splat(search.top()), scale = splat(share / search.sum());
                    transform(
                        V, mean.data(), [shift, scale](auto sum, auto x) { return fma(exp(x - shift), scale, sum); },
                        mean.data(), row);
                }
            }
            search.look(V, mean.data(), nullptr, wanted.most);
            const T log_sum = geometric ? search.top() + std::log(search.sum()) : T(0);
            detail::put_top_words(r, V, search, log_sum, wanted);
            if (!geometric) {
                for (std::size_t k = 0; k < wanted.most; ++k) {
                    T& p = wanted.log_p[r * wanted.most + k];
                    p = p == lowest ? lowest : std::log(p);
                }
            }
            if (wanted.also != nullptr) {
                const std::size_t w = wanted.also[r];
                wanted.log_p_also[r] = w >= V ? lowest : geometric ? mean[w] - log_sum : std::log(mean[w]);
            }
        }
    });
}

}  // namespace heed::kernels
