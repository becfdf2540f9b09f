// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace heed::inline HEED_TARGET {

namespace detail {

inline constexpr std::size_t alignment = 64;  // a cache line, and the widest vector register

struct free_aligned {
    void operator()(void* memory) const { ::operator delete (memory, std::align_val_t{alignment}); }
};
template <class T>
using aligned_memory = std::unique_ptr<T, free_aligned>;

/// Uninitialized memory for n elements.
template <class T>
aligned_memory<T> new_aligned(std::size_t count)
{
    return aligned_memory<T>(static_cast<T*>(::operator new (count * sizeof(T), std::align_val_t{alignment})));
}

}  // namespace detail

/// Memory that is handed out in parts and released all at once. It keeps its blocks from step to step, so that nothing
/// is allocated after the first steps.
class arena {
    /// The header of a block, in a linked list of blocks; the block's memory follows it. A std::vector of blocks would
    /// make every file compile its functions.
    struct alignas(detail::alignment) block {
        block* next;
        std::size_t size;

        std::byte* memory() { return reinterpret_cast<std::byte*>(this + 1); }
    };

public:
    static constexpr std::size_t alignment = detail::alignment;

    arena() = default;
    arena(arena&& other) noexcept { *this = std::move(other); }
    arena& operator=(arena&& other) noexcept
    {
        std::swap(first_, other.first_);
        std::swap(current_, other.current_);
        std::swap(used_, other.used_);
        return *this;
    }
    ~arena() { free(); }

    /// Allocates `bytes` bytes, aligned for any register; valid until its position is released.
    void* allocate(std::size_t bytes)
    {
        bytes = (bytes + alignment - 1) / alignment * alignment;
        if (current_ == nullptr || used_ + bytes > current_->size) next_block(bytes);
        std::byte* piece = current_->memory() + used_;
        used_ += bytes;
        return piece;
    }

    /// Uninitialized memory for n elements.
    template <class T>
    T* array_of(std::size_t count)
    {
        return static_cast<T*>(allocate(count * sizeof(T)));
    }

    /// A mark: memory that was allocated after mark() is free again after release().
    class position {
        friend arena;
        block* in;
        std::size_t used;

        position(block* which, std::size_t bytes) : in(which), used(bytes) {}
    };
    position mark() const { return {current_, used_}; }  // the position of the next allocation
    /// Releases all memory that was allocated since `to` was marked.
    void release(position to)
    {
        current_ = to.in;
        used_ = to.used;
    }

    /// Frees all memory for reuse; the arena keeps it. Several blocks become one, so that large requests fit.
    void clear()
    {
        if (first_ != nullptr && first_->next != nullptr) {
            const std::size_t total = capacity();
            free();
            first_ = new_block(total);
        }
        current_ = first_;
        used_ = 0;
    }

    /// Bytes in use, including those left free at the end of a full block.
    std::size_t used() const
    {
        std::size_t total = used_;
        for (const block* each = first_; current_ != nullptr && each != current_; each = each->next)
            total += each->size;
        return total;
    }

    /// Bytes that the arena holds, used or not.
    std::size_t capacity() const
    {
        std::size_t total = 0;
        for (const block* each = first_; each != nullptr; each = each->next) total += each->size;
        return total;
    }

private:
    static block* new_block(std::size_t bytes)
    {
        return ::new (::operator new (sizeof(block) + bytes, std::align_val_t{alignment})) block{nullptr, bytes};
    }

    void free()
    {
        while (first_ != nullptr) detail::free_aligned{}(std::exchange(first_, first_->next));
    }

    /// Moves to the next block with enough room, or allocates one. Not inlined, since it is rarely called.
    [[gnu::noinline, gnu::cold]] void next_block(std::size_t bytes)
    {
        block** next = current_ == nullptr ? &first_ : &current_->next;
        std::size_t size = current_ == nullptr ? std::size_t{1} << 20 : 2 * current_->size;
        for (; *next != nullptr && bytes > (*next)->size; next = &(*next)->next) size = 2 * (*next)->size;
        if (*next == nullptr) *next = new_block(size < bytes ? bytes : size);
        current_ = *next;
        used_ = 0;
    }

    block *first_ = nullptr, *current_ = nullptr;
    std::size_t used_ = 0;
};

}  // namespace heed::inline HEED_TARGET
