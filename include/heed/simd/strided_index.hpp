// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <heed/core/dual_number.hpp>
#include <heed/simd/simd.hpp>

/// How indices change from lane to lane, and from key to key.
///
///     index of lane i = first + i · per_lane;  for the next key + per_key
///
/// Such indices are closed under sums, differences and products with constants. A table is then read without an index
/// for each lane, and a function of one such index, such as a sine of the distance, is computed for some keys ahead.
/// Kernels set steps when they create indices; the compiler knows everything except `first`.
namespace heed::inline HEED_TARGET {

/// The number of floats in a register, for any T.
inline constexpr std::size_t lane_count = simd::register_bytes / sizeof(float);

/// A number computed from integers and fractions, such as 0.1 * p.key: as a double, and as a float for scores in float.
/// The compiler omits the one that is not used.
struct place_number {
    double exact;
    float near;
};

namespace detail {

/// Numbers that are computed ahead, or reused for the next key, while a thread runs functions through the tiles of a
/// call. The k-th use of such numbers has the k-th slot; a slot identifies its contents.
class lane_memo {
public:
    static constexpr std::size_t slots = 16;
    static constexpr std::uint64_t no_function = ~std::uint64_t{0};

    /// Numbers of a function or of a table, identified by one of the two.
    struct slot {
        std::uint64_t function = no_function;
        std::uint64_t table = 0, by = 0;  // the table's memory, and its steps
        std::int32_t first = 0, count = 0;
        float* numbers = nullptr;  // of a function
    };

    /// The size of a slot: all distances of these queries and keys, up to a maximum.
    static constexpr std::size_t numbers_for(std::size_t queries, std::size_t keys)
    {
        constexpr std::size_t most = 4096, least = lane_count * lane_count;
        const std::size_t all = (queries + keys + 256) / lane_count * lane_count;
        return all > most ? most : all < least ? least : all;
    }
    static constexpr std::size_t room_for(std::size_t queries, std::size_t keys)
    {
        return slots * numbers_for(queries, keys);
    }

    /// `room` has room_for(queries, keys) numbers.
    lane_memo(float* room, std::size_t queries, std::size_t keys)
        : count_(static_cast<std::int32_t>(numbers_for(queries, keys))),
          keys_(static_cast<std::int32_t>(keys < std::size_t(count_) ? keys : std::size_t(count_)))
    {
        for (std::size_t k = 0; k < slots; ++k) slot_[k].numbers = room + k * static_cast<std::size_t>(count_);
    }

    /// One call of the function.
    struct call {
        lane_memo& memo;
        std::size_t next = 0;
    };

    slot& at(std::size_t k) { return slot_[k]; }
    float* square_at(std::size_t k) { return square_[k]; }  // numbers of a table
    std::int32_t count() const { return count_; }           // of a slot
    std::int32_t keys() const { return keys_; }             // of a sentence, at most count()

private:
    slot slot_[slots];
    alignas(simd::register_bytes) float square_[slots][lane_count * lane_count];
    std::int32_t count_, keys_;
};

/// An integer index in steps: `first`, plus `per_lane` for each lane and `per_key` for each key.
struct strided_index {
    bool known = false;
    std::int32_t first = 0, per_lane = 0, per_key = 0;
    lane_memo::call* call = nullptr;  // null: nothing is kept

    static constexpr std::int32_t any = 1 << 30;  // per_key, if it is not known

    HEED_SIMD_INLINE std::int32_t lowest() const
    {
        return per_lane < 0 ? plus(first, per_lane * static_cast<std::int32_t>(lane_count - 1)) : first;
    }

    // Like lanes, these wrap around at the maximum.
    HEED_SIMD_INLINE static std::int32_t plus(std::int32_t a, std::int32_t b)
    {
        return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
    }
    HEED_SIMD_INLINE static std::int32_t times(std::int32_t a, std::int32_t b)
    {
        return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b));
    }

    HEED_SIMD_INLINE friend strided_index operator+(const strided_index& a, const strided_index& b)
    {
        return {a.known && b.known, plus(a.first, b.first), plus(a.per_lane, b.per_lane), plus(a.per_key, b.per_key),
                a.call != nullptr ? a.call : b.call};
    }
    HEED_SIMD_INLINE friend strided_index operator*(const strided_index& a, std::int32_t b)
    {
        return {a.known, times(a.first, b), times(a.per_lane, b), times(a.per_key, b), a.call};
    }
};

/// An integer index in steps, times a constant.
struct scaled_steps {
    strided_index steps{};
    double by = 0;
};

template <class>
struct no_steps {};
/// The steps that lanes of T carry.
template <class T>
using steps_of_lanes =
    std::conditional_t<std::is_same_v<T, std::int32_t>, strided_index,
                       std::conditional_t<std::is_same_v<T, place_number>, scaled_steps, no_steps<T>>>;

}  // namespace detail

}  // namespace heed::inline HEED_TARGET
