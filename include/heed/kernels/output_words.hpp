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
#include <heed/kernels/panels.hpp>
#include <heed/kernels/top_words.hpp>

/// The output layer and what a search wants of it in one: x = t W + b is looked at tile by tile while it is in
/// registers and first cache, and never written down.
namespace heed::kernels {

namespace detail {

/// What is known of a row after some of its columns.
template <class T>
struct row_so_far {
    // Exponentials are taken against the maximum of the first tile, and against a new one only where a logit exceeds
    // it by so much that the sum could overflow: a running maximum would cost an exponential more for every four.
    static constexpr T room = sizeof(T) == 4 ? T(40) : T(300);

    simd::vec<T> sum{};
    T shift = -std::numeric_limits<T>::infinity();
    T bound = -std::numeric_limits<T>::infinity();  // words of the search exceed it
    T also = -std::numeric_limits<T>::infinity();
    std::vector<std::pair<T, std::uint32_t>> found;

    void begin(std::size_t most)
    {
        sum = simd::vec<T>{};
        shift = also = -std::numeric_limits<T>::infinity();
        bound = most == 0 ? std::numeric_limits<T>::infinity() : shift;
        found.clear();
        found.reserve(most);
    }

    /// `found` stays in order, the greatest first; few words come this far once the first tiles are through.
    void insert(T value, std::uint32_t word, std::size_t most)
    {
        if (found.size() < most) found.emplace_back();
        std::size_t at = found.size() - 1;
        for (; at > 0 && found[at - 1].first < value; --at) found[at] = found[at - 1];
        found[at] = {value, word};
        if (found.size() == most) bound = found.back().first;
    }

    /// The next tile: logits without bias, and their bias.
    void add(const T* tile, const T* bias, std::size_t column, std::size_t most)
    {
        using namespace simd;
        constexpr std::size_t n = panels<T>::registers;
        vec<T> x[n];
        unrolled<n>([&](auto i) { x[i] = load(tile + i * lanes<T>) + load(bias + i * lanes<T>); });
        vec<T> top = x[0];
        unrolled<n>([&](auto i) { top = max(x[i], top); });
        if (any_above(top, std::min(bound, shift + room))) {
            const T greatest = max(top);
            if (greatest > shift + room) {
                sum = sum * splat(std::exp(shift - greatest));
                shift = greatest;
            }
            if (most > 0 && greatest > bound) {
                for (std::size_t i = 0; i < n; ++i) {
                    each_above(x[i], bound, [&](std::size_t lane, T value) {
                        if (value > bound)
                            insert(value, static_cast<std::uint32_t>(column + i * lanes<T> + lane), most);
                    });
                }
            }
        }
        const vec<T> c = splat(shift == -std::numeric_limits<T>::infinity() ? T(0) : shift);
        vec<T> part{};
        unrolled<n>([&](auto i) { part += exp(x[i] - c); });
        sum += part;
    }

private:
    HEED_SIMD_INLINE static bool any_above(simd::vec<T> v, T than)
    {
#if defined(__AVX512F__)
        if constexpr (sizeof(T) == 4) {
            return _mm512_cmp_ps_mask(v, simd::splat(than), _CMP_NLE_UQ) != 0;
        } else {
            return _mm512_cmp_pd_mask(v, simd::splat(than), _CMP_NLE_UQ) != 0;
        }
#else
        return !(simd::max(v) <= than);
#endif
    }
    template <class F>
    HEED_SIMD_INLINE static void each_above(simd::vec<T> v, T than, F&& f)
    {
#if defined(__AVX512F__)
        unsigned bits;
        if constexpr (sizeof(T) == 4) {
            bits = _mm512_cmp_ps_mask(v, simd::splat(than), _CMP_GT_OQ);
        } else {
            bits = _mm512_cmp_pd_mask(v, simd::splat(than), _CMP_GT_OQ);
        }
        for (; bits != 0; bits &= bits - 1) {
            const auto i = static_cast<std::size_t>(__builtin_ctz(bits));
            f(i, v[i]);
        }
#else
        for (std::size_t i = 0; i < simd::lanes<T>; ++i) {
            if (v[i] > than) f(i, v[i]);
        }
#endif
    }
};

}  // namespace detail

/// log_softmax_top of t W + b: t [R,K]; `bias` [panels · width], -inf behind the last column.
template <class T>
void output_words(std::size_t rows, const T* t, const panels<T>& W, const T* bias, const top_words<T>& wanted)
{
    using row = detail::row_so_far<T>;
    constexpr std::size_t width = panels<T>::width, block = panels<T>::most_rows;
    constexpr T lowest = -std::numeric_limits<T>::infinity();
    const std::size_t K = W.rows(), V = W.columns();
    parallel_for(
        rows, (std::size_t{1} << 18) / (K * V + 1) + 1,
        [&](std::size_t begin, std::size_t end, std::size_t) {
            static thread_local std::vector<row> states;
            if (states.size() < end - begin) states.resize(end - begin);
            for (std::size_t r = 0; r < end - begin; ++r) states[r].begin(wanted.most);
            alignas(64) T tile[block * width];
            for (std::size_t p = 0; p < W.count(); ++p) {
                for (std::size_t first = begin; first < end; first += block) {
                    const std::size_t n = std::min(block, end - first);
                    W.multiply(n, p, t + first * K, K, tile);
                    for (std::size_t r = 0; r < n; ++r) {
                        row& state = states[first - begin + r];
                        state.add(tile + r * width, bias + p * width, p * width, wanted.most);
                        if (wanted.also != nullptr && wanted.also[first + r] / width == p &&
                            wanted.also[first + r] < V) {
                            const std::size_t at = wanted.also[first + r] % width;
                            state.also = tile[r * width + at] + bias[p * width + at];
                        }
                    }
                }
            }
            for (std::size_t r = begin; r < end; ++r) {
                row& state = states[r - begin];
                const T log_sum = state.shift + std::log(simd::sum(state.sum));
                for (std::size_t k = 0; k < wanted.most; ++k) {
                    const bool there = k < state.found.size();
                    wanted.words[r * wanted.most + k] = there ? state.found[k].second : static_cast<std::uint32_t>(V);
                    wanted.log_p[r * wanted.most + k] = there ? state.found[k].first - log_sum : lowest;
                }
                if (wanted.also != nullptr) wanted.log_p_also[r] = state.also == lowest ? lowest : state.also - log_sum;
            }
        },
        block);
}

}  // namespace heed::kernels
