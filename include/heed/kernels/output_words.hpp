// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <heed/core/parallel.hpp>
#include <heed/kernels/leaders.hpp>
#include <heed/kernels/panels.hpp>
#include <heed/kernels/top_words.hpp>

/// The output layer together with a search's selection of words: x = t W + b is scanned tile by tile while it is in
/// registers and first-level cache, and never stored.
namespace heed::kernels {

namespace detail {

/// The state of a row after some of its columns.
template <class T>
struct row_so_far {
    // Exponentials are relative to the maximum of the first tile, and to a new one only if a logit exceeds it by so
    // much that the sum could overflow: a running maximum would cost one more exponential for every four.
    static constexpr T room = sizeof(T) == 4 ? T(40) : T(300);

    simd::vec<T> sum{};
    T shift = -std::numeric_limits<T>::infinity();
    T also = -std::numeric_limits<T>::infinity();
    leaders<T> found;

    void begin(std::size_t most)
    {
        sum = simd::vec<T>{};
        shift = also = -std::numeric_limits<T>::infinity();
        found.begin(most);
    }

    /// The next tile: logits without bias, and their bias.
    void add(const T* tile, const T* bias, std::size_t column)
    {
        using namespace simd;
        constexpr std::size_t n = panels<T>::registers;
        vec<T> x[n];
        unrolled<n>([&](auto i) { x[i] = load(tile + i * lanes<T>) + load(bias + i * lanes<T>); });
        vec<T> top = x[0];
        unrolled<n>([&](auto i) { top = max(x[i], top); });
        // After the first tiles, few have anything above the bound.
        if (any_above(top, std::min(found.bound(), shift + room))) {
            const T greatest = max(top);
            if (greatest > shift + room) {
                sum = sum * splat(std::exp(shift - greatest));
                shift = greatest;
            }
            each_above(x, found.bound(), [&](std::size_t i) {
                const T value = tile[i] + bias[i];
                if (value > found.bound()) found.insert(value, static_cast<std::uint32_t>(column + i));
            });
        }
        const vec<T> c = splat(shift == -std::numeric_limits<T>::infinity() ? T(0) : shift);
        vec<T> part{};
        unrolled<n>([&](auto i) { part += exp(x[i] - c); });
        sum += part;
    }

    /// Merges the state of later columns.
    void add(const row_so_far& later)
    {
        const T greatest = std::max(shift, later.shift);
        if (greatest == -std::numeric_limits<T>::infinity()) {
            sum += later.sum;
        } else {
            sum = sum * simd::splat(std::exp(shift - greatest)) +
                  later.sum * simd::splat(std::exp(later.shift - greatest));
            shift = greatest;
        }
        if (!(later.also == -std::numeric_limits<T>::infinity())) also = later.also;
        for (std::size_t k = 0; k < later.found.size() && later.found.value(k) > found.bound(); ++k)
            found.insert(later.found.value(k), later.found.place(k));
    }
};

}  // namespace detail

/// log_softmax_top of t W + b: t [R,K]; `bias` [panels · width], -inf past the last column.
template <class T>
void output_words(std::size_t rows, const T* t, const panels<T>& W, const T* bias, const top_words<T>& wanted)
{
    using row = detail::row_so_far<T>;
    constexpr std::size_t width = panels<T>::width, block = panels<T>::most_rows;
    constexpr T lowest = -std::numeric_limits<T>::infinity();
    const std::size_t K = W.rows(), V = W.columns();
    const auto look = [&](std::size_t begin, std::size_t end, std::size_t p0, std::size_t p1, row* states) {
        alignas(64) T tile[block * width];
        for (std::size_t p = p0; p < p1; ++p) {
            for (std::size_t first = begin; first < end; first += block) {
                const std::size_t n = std::min(block, end - first);
                W.multiply(n, p, t + first * K, K, tile);
                for (std::size_t r = 0; r < n; ++r) {
                    row& state = states[first - begin + r];
                    state.add(tile + r * width, bias + p * width, p * width);
                    if (wanted.also != nullptr && wanted.also[first + r] / width == p && wanted.also[first + r] < V) {
                        const std::size_t at = wanted.also[first + r] % width;
                        state.also = tile[r * width + at] + bias[p * width + at];
                    }
                }
            }
        }
    };
    const auto tell = [&](std::size_t r, const row& state) {
        const T log_sum = state.shift + std::log(simd::sum(state.sum));
        for (std::size_t k = 0; k < wanted.most; ++k) {
            const bool there = k < state.found.size();
            wanted.words[r * wanted.most + k] = there ? state.found.place(k) : static_cast<std::uint32_t>(V);
            wanted.log_p[r * wanted.most + k] = there ? state.found.value(k) - log_sum : lowest;
        }
        if (wanted.also != nullptr) wanted.log_p_also[r] = state.also == lowest ? lowest : state.also - log_sum;
    };
    const auto begun = [&](std::size_t count) {
        static thread_local std::vector<row> states;
        if (states.size() < count) states.resize(count);
        for (std::size_t r = 0; r < count; ++r) states[r].begin(wanted.most);
        return states.data();
    };
    constexpr std::size_t worth_sharing = std::size_t{1} << 18;
    if (threads() > 1 && rows <= block * (2 * threads() - 1)) {
        // Few rows: reading W dominates, and each thread reads a part of it.
        row* const states = begun(threads() * rows);
        parallel_for(
            W.count(), worth_sharing / (K * width * rows + 1) + 1,
            [&](std::size_t p0, std::size_t p1, std::size_t shard) { look(0, rows, p0, p1, states + shard * rows); });
        for (std::size_t r = 0; r < rows; ++r) {
            for (std::size_t shard = 1; shard < threads(); ++shard) states[r].add(states[shard * rows + r]);
            tell(r, states[r]);
        }
        return;
    }
    parallel_for(
        rows, worth_sharing / (K * V + 1) + 1,
        [&](std::size_t begin, std::size_t end, std::size_t) {
            row* const states = begun(end - begin);
            look(begin, end, 0, W.count(), states);
            for (std::size_t r = begin; r < end; ++r) tell(r, states[r - begin]);
        },
        block);
}

}  // namespace heed::kernels
