// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/simd/simd.hpp>

/// The few greatest of many numbers, in one pass.
namespace heed::kernels {

namespace detail {

/// v, shifted up by one lane; the first lane becomes the last lane of `before`.
template <class V, std::size_t... i>
HEED_SIMD_INLINE V moved_on(V before, V v, std::index_sequence<i...>)
{
    return __builtin_shufflevector(before, v, (sizeof...(i) - 1 + i)...);
}

/// Whether a lane exceeds the bound or is NaN.
template <class T>
HEED_SIMD_INLINE bool any_above(simd::vec<T> v, T bound)
{
    return simd::any(~(v <= simd::splat(bound)));
}

/// f(i) for each place i in these registers whose number exceeds the bound.
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

/// The `most` greatest in order, with their places; of equal ones, the earlier one first. A number is inserted into
/// whole registers without a branch, which would be mispredicted.
template <class T>
class leaders {
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
    /// Their count: `most`, or the count of numbers above -inf so far if that is less.
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

}  // namespace heed::kernels
