// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/compiled.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/workspace.hpp>
#include <heed/gemm/panels.hpp>
#include <heed/gemm/weight_panels.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/simd/simd.hpp>

/// The top k log-probabilities of a softmax, without computing the softmax: enough for a search.
///
///     log p_w = x_w − log Σ_i exp(x_i)       for the top k words w by x_w, and for one requested word
///
/// A first pass over a row finds its maximum and a bound that the top k words must reach; a second pass finds the sum
/// and the few words above the bound. `output_top_k` scans the logits t W + b of an output layer tile by tile instead,
/// while they are in registers and first-level cache, and never stores them.
namespace heed::inline HEED_TARGET::kernels {

/// The requested results of each row, and their destinations.
template <class T>
struct top_k_words {
    std::size_t most = 0;                 // k, the number of words of each row; at most V
    const std::uint32_t* also = nullptr;  // [R] a word of each row whose log-probability is always returned, or
                                          // nullptr. It is -inf for a word not below V
    std::uint32_t* words = nullptr;       // [R,most] the most probable first; in case of a tie, the lower word first
    T* log_p = nullptr;                   // [R,most]
    T* log_p_also = nullptr;              // [R]
};

namespace detail {

/// f(i) for the positions i of a register (among its first `count`) where v reaches the bound.
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

/// One row: its top k words in order, the maximum `top`, and Σ_i exp(x_i − top). With a bias, x = row + bias.
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
        // The minimum of the maxima of N disjoint groups of words is reached by at least N words.
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

    std::size_t size() const { return found_.size(); }
    T value(std::size_t k) const { return found_[k].first; }
    std::uint32_t place(std::size_t k) const { return found_[k].second; }
    T top() const { return top_; }
    T sum() const { return sum_; }  // Σ_i exp(x_i − top)

private:
    std::vector<T> maxima_;
    std::vector<found> found_;
    T top_ = 0, sum_ = 0;
};

/// Writes the words found in a row: a row_search or top_k.
template <class T>
void put_top_words(std::size_t r, std::size_t V, const auto& found, T log_sum, const top_k_words<T>& wanted)
{
    for (std::size_t k = 0; k < wanted.most; ++k) {
        const bool there = k < found.size();  // a row of NaN has no top words: returns V
        wanted.words[r * wanted.most + k] = there ? found.place(k) : static_cast<std::uint32_t>(V);
        wanted.log_p[r * wanted.most + k] = there ? found.value(k) - log_sum : -std::numeric_limits<T>::infinity();
    }
}

}  // namespace detail

/// logits [R,V], without the bias [V] if one is given. If fewer than `most` numbers of a row are not NaN, the missing
/// words are V and their log-probabilities -inf.
template <class T>
void log_softmax_top(std::size_t rows, std::size_t V, const T* logits, const T* bias, const top_k_words<T>& wanted)
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

/// log_softmax_top for an ensemble of models: logits[m] [R,V], biases included.
///
///     arithmetic   p = 1/M Σ_m softmax(x_m)                    geometric   p = softmax(1/M Σ_m x_m)
///
/// The geometric mean of the probabilities, normalized to sum to 1, is the softmax of the mean logits.
template <class T>
void mean_softmax_top(std::size_t rows, std::size_t V, const std::vector<const T*>& logits, bool geometric,
                      const top_k_words<T>& wanted)
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

namespace detail {

/// v, shifted up by one lane; the first lane becomes the last lane of `before`.
template <class V, std::size_t... i>
HEED_SIMD_INLINE V moved_on(V before, V v, std::index_sequence<i...>)
{
    return __builtin_shufflevector(before, v, (sizeof...(i) - 1 + i)...);
}

/// Does any lane exceed the bound, or is any NaN?
template <class T>
HEED_SIMD_INLINE bool any_above(simd::vec<T> v, T bound)
{
    return simd::any(~(v <= simd::splat(bound)));
}

/// f(i) for each position i in these registers whose number exceeds the bound.
template <class T, std::size_t n, class F>
HEED_SIMD_INLINE void each_above(const simd::vec<T> (&x)[n], T bound, F&& f)
{
#if defined(HEED_SIMD_AVX512)
    std::uint64_t bits = 0;
    static_assert(n * simd::lanes<T> <= 64);
    simd::unrolled<n>([&](auto i) {
        if constexpr (sizeof(T) == 4) {
            bits |= std::uint64_t{_mm512_cmp_ps_mask(x[i], simd::splat(bound), _CMP_GT_OQ)} << (i * simd::lanes<T>);
        } else {
            bits |= std::uint64_t{_mm512_cmp_pd_mask(x[i], simd::splat(bound), _CMP_GT_OQ)} << (i * simd::lanes<T>);
        }
    });
    for (; bits != 0; bits &= bits - 1) f(static_cast<std::size_t>(__builtin_ctzll(bits)));
#else
    for (std::size_t i = 0; i < n * simd::lanes<T>; ++i) {
        if (x[i / simd::lanes<T>][i % simd::lanes<T>] > bound) f(i);
    }
#endif
}

}  // namespace detail

/// The top `most` numbers in order, with their positions; in case of a tie, the earlier one first. A number is inserted
/// into whole registers without a branch, which would be mispredicted.
template <class T>
class top_k {
public:
    void begin(std::size_t most)
    {
        most_ = most;
        count_ = 0;
        const std::size_t whole = (most + simd::lanes<T> - 1) / simd::lanes<T> * simd::lanes<T>;
        values_.assign(whole, lowest);
        places_.assign(whole, 0);
        bound_ = most == 0 ? -lowest : lowest;
    }

    /// The bound that a number must exceed to be inserted.
    T bound() const { return bound_; }
    /// The size: `most`, or the number of values above -inf so far if that is less.
    std::size_t size() const { return count_; }
    T value(std::size_t k) const { return values_[k]; }
    std::uint32_t place(std::size_t k) const { return static_cast<std::uint32_t>(places_[k]); }

    /// Inserts a number that exceeds the bound.
    void insert(T value, std::uint32_t place)
    {
        using namespace simd;
        constexpr auto all = std::make_index_sequence<lanes<T>>{};
        const vec<T> fresh = splat(value);
        const mask<T> fresh_place = mask<T>{} + static_cast<integer>(place);
        vec<T> before = splat(-lowest);
        mask<T> place_before{};
        for (std::size_t i = 0; i < values_.size(); i += lanes<T>) {
            const vec<T> old = load(values_.data() + i);
            mask<T> old_place;
            std::memcpy(&old_place, places_.data() + i, sizeof old_place);
            const vec<T> next = detail::moved_on(before, old, all);
            const mask<T> next_place = detail::moved_on(place_before, old_place, all);
            const mask<T> later = fresh > next, here = fresh > old;
            store(values_.data() + i, select(later, next, select(here, fresh, old)));
            const mask<T> chosen = select(later, next_place, select(here, fresh_place, old_place));
            std::memcpy(places_.data() + i, &chosen, sizeof chosen);
            before = old;
            place_before = old_place;
        }
        count_ += count_ < most_ ? 1 : 0;
        bound_ = values_[most_ - 1];
    }

private:
    using integer = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
    static constexpr T lowest = -std::numeric_limits<T>::infinity();

    std::vector<T> values_;
    std::vector<integer> places_;
    std::size_t most_ = 0, count_ = 0;
    T bound_ = lowest;
};

namespace detail {

/// Σ exp(x - shift) of some columns of a row, one sum per lane.
template <class T>
struct sum_so_far {
    simd::vec<T> sum{};
    T shift = -std::numeric_limits<T>::infinity();

    /// Adds the sum of later columns.
    void add(const sum_so_far& later)
    {
        const T greatest = std::max(shift, later.shift);
        if (greatest == -std::numeric_limits<T>::infinity()) {
            sum += later.sum;
        } else {
            sum = sum * simd::splat(std::exp(shift - greatest)) +
                  later.sum * simd::splat(std::exp(later.shift - greatest));
            shift = greatest;
        }
    }
};

/// The state of a row after some of its columns.
template <class T>
struct row_so_far {
    // Exponentials are relative to the maximum of the first tile, and to a new one only if a logit exceeds it by so
    // much that the sum could overflow: a running maximum would cost one more exponential for every four.
    static constexpr T room = sizeof(T) == 4 ? T(40) : T(300);

    sum_so_far<T> part;  // of the columns being scanned: independent of the columns before
    T also = -std::numeric_limits<T>::infinity();
    top_k<T> found;

    void begin(std::size_t most)
    {
        part = {};
        also = -std::numeric_limits<T>::infinity();
        found.begin(most);
    }

    /// The next tile: logits without bias, and their bias.
    void add(const T* tile, const T* bias, std::size_t column)
    {
        using namespace simd;
        constexpr std::size_t n = own::detail::registers;
        vec<T> x[n];
        unrolled<n>([&](auto i) { x[i] = load(tile + i * lanes<T>) + load(bias + i * lanes<T>); });
        vec<T> top = x[0];
        unrolled<n>([&](auto i) { top = max(x[i], top); });
        auto& [sum, shift] = part;
        // After the first tiles, few contain a number above the bound.
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
        vec<T> more{};
        unrolled<n>([&](auto i) { more += exp(x[i] - c); });
        sum += more;
    }

    /// Merges the results of later columns.
    void add(const row_so_far& later)
    {
        if (!(later.also == -std::numeric_limits<T>::infinity())) also = later.also;
        for (std::size_t k = 0; k < later.found.size() && later.found.value(k) > found.bound(); ++k)
            found.insert(later.found.value(k), later.found.place(k));
    }
};

}  // namespace detail

/// log_softmax_top of t W + b: t [R,K]; W panels of T, or int8_panels; `bias` [panels · width], -inf past the last
/// column. A row's sum has a fixed number of parts in a fixed order, so that it has the same bits in any batch and for
/// any number of threads.
template <class T, class Panels>
void output_top_k(std::size_t rows, const T* t, const Panels& W, const T* bias, const top_k_words<T>& wanted)
{
    using row = detail::row_so_far<T>;
    using sum = detail::sum_so_far<T>;
    constexpr std::size_t width = own::detail::width<T>, block = own::detail::most_rows;
    constexpr T lowest = -std::numeric_limits<T>::infinity();
    const std::size_t K = W.rows(), V = W.columns(), parts = std::min<std::size_t>(16, W.count());
    scratch here;
    const typename Panels::operand x = W.read(rows, t, K, here);
    // Scans parts [q0, q1) for rows [begin, end), and calls done(part, row - begin, its sum) after each.
    const auto look = [&](std::size_t begin, std::size_t end, std::size_t q0, std::size_t q1, row* states,
                          const auto& done) {
        alignas(64) T tile[block * width];
        for (std::size_t q = q0; q < q1; ++q) {
            for (std::size_t p = q * W.count() / parts; p < (q + 1) * W.count() / parts; ++p) {
                for (std::size_t first = begin; first < end; first += block) {
                    const std::size_t n = std::min(block, end - first);
                    W.multiply(n, p, x, first, tile);
                    for (std::size_t r = 0; r < n; ++r) {
                        row& state = states[first - begin + r];
                        state.add(tile + r * width, bias + p * width, p * width);
                        if (wanted.also != nullptr && wanted.also[first + r] / width == p &&
                            wanted.also[first + r] < V) {
                            const std::size_t at = wanted.also[first + r] % width;
                            state.also = tile[r * width + at] + bias[p * width + at];
                        }
                    }
                }
            }
            for (std::size_t r = 0; r < end - begin; ++r) done(q, r, std::exchange(states[r].part, sum{}));
        }
    };
    const auto tell = [&](std::size_t r, const row& state, const sum& whole) {
        const T log_sum = whole.shift + std::log(simd::sum(whole.sum));
        detail::put_top_words(r, V, state.found, log_sum, wanted);
        if (wanted.also != nullptr) wanted.log_p_also[r] = state.also == lowest ? lowest : state.also - log_sum;
    };
    const auto begun = [&](std::vector<row>& states, std::size_t count) {
        if (states.size() < count) states.resize(count);
        for (std::size_t r = 0; r < count; ++r) states[r].begin(wanted.most);
        return states.data();
    };
    constexpr std::size_t worth_sharing = std::size_t{1} << 18;
    if (threads() > 1 && rows <= block * (2 * threads() - 1)) {
        // Few rows: reading W dominates, and each thread reads some parts of W.
        const heed::detail::kept_between_calls<std::vector<row>> kept_states;
        row* const states = begun(*kept_states, threads() * rows);
        sum* const of_parts = detail::filled(here, parts * rows, sum{});
        parallel_for(parts, worth_sharing * parts / (K * V * rows + 1) + 1,
                     [&](std::size_t q0, std::size_t q1, std::size_t shard) {
                         look(0, rows, q0, q1, states + shard * rows,
                              [&](std::size_t q, std::size_t r, const sum& part) { of_parts[q * rows + r] = part; });
                     });
        for (std::size_t r = 0; r < rows; ++r) {
            sum whole;
            for (std::size_t q = 0; q < parts; ++q) whole.add(of_parts[q * rows + r]);
            for (std::size_t shard = 1; shard < threads(); ++shard) states[r].add(states[shard * rows + r]);
            tell(r, states[r], whole);
        }
        return;
    }
    parallel_for(
        rows, worth_sharing / (K * V + 1) + 1,
        [&](std::size_t begin, std::size_t end, std::size_t) {
            const heed::detail::kept_between_calls<std::vector<row>> kept_states;
            scratch memory;
            row* const states = begun(*kept_states, end - begin);
            sum* const whole = detail::filled(memory, end - begin, sum{});
            look(begin, end, 0, parts, states,
                 [&](std::size_t, std::size_t r, const sum& part) { whole[r].add(part); });
            for (std::size_t r = begin; r < end; ++r) tell(r, states[r - begin], whole[r - begin]);
        },
        block);
}

/// output_top_k with the panels in use.
template <class T>
void output_top_k(std::size_t rows, const T* t, const weight_panels<T>& W, const T* bias, const top_k_words<T>& wanted)
{
    W.with([&](const auto& panels) { kernels::output_top_k(rows, t, panels, bias, wanted); });
}

// clang-format off
#define HEED_KERNELS_OF_TOP_K_WORDS(X, T) \
    X(T, log_softmax_top, void, log_softmax_top, (std::size_t rows, std::size_t V, const T* logits, const T* bias, const top_k_words<T>& wanted), (rows, V, logits, bias, wanted)) \
    X(T, mean_softmax_top, void, mean_softmax_top, (std::size_t rows, std::size_t V, const std::vector<const T*>& logits, bool geometric, const top_k_words<T>& wanted), (rows, V, logits, geometric, wanted)) \
    X(T, output_top_k, void, output_top_k, (std::size_t rows, const T* t, const panels<T>& W, const T* bias, const top_k_words<T>& wanted), (rows, t, W, bias, wanted))
#define HEED_KERNELS_OF_TOP_K_INT8_WORDS(X, T) \
    X(T, output_top_k_int8, void, output_top_k, (std::size_t rows, const T* t, const int8_panels& W, const T* bias, const top_k_words<T>& wanted), (rows, t, W, bias, wanted))
// clang-format on
HEED_COMPILED_KERNELS(HEED_KERNELS_OF_TOP_K_WORDS)
HEED_COMPILED_KERNELS_OF_FLOATS(HEED_KERNELS_OF_TOP_K_INT8_WORDS)

}  // namespace heed::inline HEED_TARGET::kernels
