// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace heed::inline HEED_TARGET {

namespace detail {

inline constexpr std::size_t alignment = 64;  // a cache line, and the widest vector register

struct free_aligned {
    void operator()(void* memory) const { ::operator delete (memory, std::align_val_t{alignment}); }
};
template <class T>
using aligned_memory = std::unique_ptr<T, free_aligned>;

/// Memory for so many elements, not set to anything.
template <class T>
aligned_memory<T> new_aligned(std::size_t count)
{
    return aligned_memory<T>(static_cast<T*>(::operator new (count * sizeof(T), std::align_val_t{alignment})));
}

}  // namespace detail

/// Memory that is handed out piece by piece and taken back all at once. It keeps its blocks from step to step, so that
/// after the first steps nothing is allocated.
class arena {
public:
    static constexpr std::size_t alignment = detail::alignment;

    /// Memory for so many bytes, aligned for any register; valid until its place is released.
    void* allocate(std::size_t bytes)
    {
        bytes = (bytes + alignment - 1) / alignment * alignment;
        if (current_ == blocks_.size() || used_ + bytes > blocks_[current_].size) next_block(bytes);
        std::byte* piece = blocks_[current_].memory.get() + used_;
        used_ += bytes;
        return piece;
    }

    /// Memory for so many elements, not set to anything.
    template <class T>
    T* array_of(std::size_t count)
    {
        return static_cast<T*>(allocate(count * sizeof(T)));
    }

    /// A place to come back to: what is allocated after mark() is free again after release().
    struct position {
        std::size_t block, used;
    };
    position mark() const { return {current_, used_}; }  // where the next memory will be
    /// Gives back all memory since `to` was marked.
    void release(position to)
    {
        current_ = to.block;
        used_ = to.used;
    }

    /// Everything is free again; the memory stays. Several blocks become one, so that large pieces find room.
    void clear()
    {
        if (blocks_.size() > 1) {
            const std::size_t total = capacity();
            blocks_.clear();
            blocks_.emplace_back(total);
        }
        current_ = used_ = 0;
    }

    /// Bytes that the arena holds, used or not.
    std::size_t capacity() const
    {
        std::size_t total = 0;
        for (const block& b : blocks_) total += b.size;
        return total;
    }

private:
    struct block {
        explicit block(std::size_t bytes) : memory(detail::new_aligned<std::byte>(bytes)), size(bytes) {}
        detail::aligned_memory<std::byte> memory;
        std::size_t size;
    };

    /// Moves to the next block with enough room, or allocates one. Not inlined, since it is rarely called.
    [[gnu::noinline, gnu::cold]] void next_block(std::size_t bytes)
    {
        used_ = 0;
        if (current_ < blocks_.size()) ++current_;
        while (current_ < blocks_.size() && bytes > blocks_[current_].size) ++current_;
        if (current_ < blocks_.size()) return;
        const std::size_t least = std::size_t{1} << 20;
        std::size_t size = blocks_.empty() ? least : 2 * blocks_.back().size;
        if (size < bytes) size = bytes;
        blocks_.emplace_back(size);
    }

    std::vector<block> blocks_;
    std::size_t current_ = 0, used_ = 0;
};

}  // namespace heed::inline HEED_TARGET
