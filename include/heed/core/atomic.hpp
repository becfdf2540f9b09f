// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

namespace heed::for_all_targets {

/// A number that several threads read and change: the part of std::atomic that heed's most included headers need, with
/// its `load`, `store`, `fetch_add` and `fetch_sub`. <atomic> takes g++ a fiftieth of the time of xtensor. `order` is
/// one of the compiler's constants, such as
/// __ATOMIC_ACQUIRE. Always inlined, so that files compiled for different targets share no function.
template <class T>
class atomic {
public:
    constexpr atomic(T value) : value_(value) {}
    atomic& operator=(atomic&&) = delete;

    [[gnu::always_inline]] T load(int order = __ATOMIC_SEQ_CST) const { return __atomic_load_n(&value_, order); }
    [[gnu::always_inline]] void store(T value, int order = __ATOMIC_SEQ_CST)
    {
        __atomic_store_n(&value_, value, order);
    }
    [[gnu::always_inline]] T fetch_add(T by, int order) { return __atomic_fetch_add(&value_, by, order); }
    [[gnu::always_inline]] T fetch_sub(T by, int order) { return __atomic_fetch_sub(&value_, by, order); }

    /// Changes `expected` to `wanted`; if the value differs, writes it to `expected` and returns false.
    [[gnu::always_inline]] bool compare_exchange(T& expected, T wanted)
    {
        return __atomic_compare_exchange_n(&value_, &expected, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }

private:
    T value_;
};

}  // namespace heed::for_all_targets
