// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <atomic>
#include <memory>
#include <new>
#include <utility>

#include <heed/core/parallel.hpp>

/// Objects of a process that its fork() must not destroy.
namespace heed::inline HEED_TARGET::detail {

inline std::atomic<unsigned> forks{0};

/// The number of forks between the process of the first call and this one. An object that was made at a different
/// number belongs to another process. Throws std::bad_alloc if it cannot count.
inline unsigned forks_so_far()
{
    static const bool counted = in_each_child([] { forks.fetch_add(1); });
    if (!counted) throw std::bad_alloc();
    return forks.load(std::memory_order_relaxed);
}

/// An object of the parent process that its child must not destroy. It stays reachable, so it is not a leak.
struct left_object {
    std::shared_ptr<void> object;
    left_object* before;
};
inline std::atomic<left_object*> left_objects{nullptr};

inline void leave_undestroyed(std::shared_ptr<void> object)
{
    auto* const one = new left_object{std::move(object), left_objects.load()};
    while (!left_objects.compare_exchange_weak(one->before, one)) {}
}

}  // namespace heed::inline HEED_TARGET::detail
