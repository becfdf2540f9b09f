// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include <heed/core/arena.hpp>

/// Memory that a thread keeps between calls: an arena for the temporaries of a step, its workspace. It grows to the
/// size that the largest call needs, so that later steps allocate nothing.
namespace heed::inline HEED_TARGET {

namespace detail {

/// This thread's T, made at the first use. Null after the thread's end, when some destructors still run. `Purpose`
/// distinguishes several objects of one type.
template <class T, class Purpose = T>
T* kept_of_this_thread()
{
    // Neither has a destructor: they can be read until the thread ends.
    static constinit thread_local T* here = nullptr;
    static constinit thread_local bool over = false;
    if (here != nullptr) return here;
    if (over) return nullptr;
    struct holder {
        holder() { here = &kept; }
        ~holder()
        {
            here = nullptr;
            over = true;
        }
        holder& operator=(holder&&) = delete;

        T kept;
    };
    static thread_local holder only;
    return here;
}

/// A T that this thread keeps between calls, for the duration of one use; after the thread's end, a temporary T.
template <class T, class Purpose = T>
class kept_between_calls {
public:
    kept_between_calls() : kept_(kept_of_this_thread<T, Purpose>())
    {
        if (kept_ == nullptr) kept_ = &own_.emplace();
    }
    kept_between_calls& operator=(kept_between_calls&&) = delete;

    T& operator*() const { return *kept_; }

private:
    std::optional<T> own_;
    T* kept_;
};

/// The workspace for destructors that run after the thread's workspace has been destroyed. The last scratch frees it.
struct late_workspace {
    arena memory;
    std::size_t users = 0;
};
inline constinit thread_local late_workspace* late = nullptr;

/// The workspace, or null after the thread's end while no scratch exists.
inline arena* workspace_if_there()
{
    if (arena* const kept = kept_of_this_thread<arena>(); kept != nullptr) return kept;
    return late == nullptr ? nullptr : &late->memory;
}

[[gnu::noinline]] inline arena& workspace_of_this_thread()
{
    if (arena* const there = workspace_if_there(); there != nullptr) return *there;
    late = new late_workspace;
    return late->memory;
}

/// Another object that a thread keeps between calls. It is listed from its construction to the end of the thread.
class kept_by_thread {
public:
    kept_by_thread() : next_(first()) { first() = this; }
    kept_by_thread& operator=(kept_by_thread&&) = delete;

    static std::size_t total()
    {
        std::size_t bytes = 0;
        for (const kept_by_thread* each = first(); each != nullptr; each = each->next_) bytes += each->size();
        return bytes;
    }
    static void release_all()
    {
        for (kept_by_thread* each = first(); each != nullptr; each = each->next_) each->release();
    }

protected:
    ~kept_by_thread()
    {
        kept_by_thread** at = &first();
        while (*at != this) at = &(*at)->next_;
        *at = next_;
    }

private:
    virtual std::size_t size() const = 0;  // in bytes
    virtual void release() = 0;

    static kept_by_thread*& first()
    {
        static constinit thread_local kept_by_thread* list = nullptr;
        return list;
    }

    kept_by_thread* next_;
};

}  // namespace detail

/// Temporaries of one call: taken from this thread's workspace, returned at the end of the scope.
class scratch {
public:
    // Not inlined: each operation makes a scratch once, and a program has many operations.
    [[gnu::noinline]] scratch() : memory_(detail::workspace_of_this_thread()), before_(memory_.mark())
    {
        if (detail::late != nullptr) ++detail::late->users;
    }
    [[gnu::noinline]] ~scratch()
    {
        memory_.release(before_);
        if (detail::late != nullptr && --detail::late->users == 0) delete std::exchange(detail::late, nullptr);
    }
    scratch& operator=(scratch&&) = delete;

    /// Uninitialized memory for n elements, until this scope ends.
    template <class T>
    T* take(std::size_t count)
    {
        return memory_.array_of<T>(count);
    }

private:
    arena& memory_;
    arena::position before_;
};

/// The number of bytes that this thread keeps between calls.
inline std::size_t workspace_size()
{
    const arena* const there = detail::workspace_if_there();
    return (there == nullptr ? 0 : there->capacity()) + detail::kept_by_thread::total();
}

/// Frees the memory that this thread keeps between calls; the next call allocates it again. Must not be called while
/// this thread computes a step.
inline void release_workspace()
{
    if (arena* const there = detail::workspace_if_there(); there != nullptr) *there = arena();
    detail::kept_by_thread::release_all();
}

}  // namespace heed::inline HEED_TARGET
