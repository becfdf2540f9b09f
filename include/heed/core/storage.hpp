// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <heed/core/tensor.hpp>

/// Large temporaries of plain tensors. The allocator gives large pieces back to the system, and the next step touches
/// each of their pages for the first time again, which costs more than many an operation does. A thread keeps some of
/// them instead: a step asks for the same sizes as the one before.
namespace heed {

namespace detail {

template <class T, std::size_t N>
class spare_storage {
public:
    static constexpr std::size_t least = std::size_t{1} << 16;  // bytes; below, the allocator is as fast
    static constexpr std::size_t pieces = 8, most = std::size_t{1} << 26;

    bool take(const shape_of_rank<N>& shape, std::size_t size, array<T, N>& into)
    {
        for (std::size_t i = kept_.size(); i-- > 0;) {
            if (kept_[i].size() != size) continue;
            into = std::move(kept_[i]);
            if (into.shape() != shape) into.resize(shape);  // of one size: nothing is allocated
            kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
            bytes_ -= size * sizeof(T);
            return true;
        }
        return false;
    }

    void give(array<T, N>&& x)
    {
        const std::size_t bytes = x.size() * sizeof(T);
        if (bytes > most) return;
        while (!kept_.empty() && (kept_.size() >= pieces || bytes_ + bytes > most)) {
            bytes_ -= kept_.front().size() * sizeof(T);
            kept_.erase(kept_.begin());
        }
        kept_.push_back(std::move(x));
        bytes_ += bytes;
    }

    static spare_storage& of_this_thread()
    {
        static thread_local spare_storage storage;
        return storage;
    }

private:
    std::vector<array<T, N>> kept_;
    std::size_t bytes_ = 0;
};

}  // namespace detail

/// A new tensor whose elements are not set yet; a large one from what this thread has given back.
template <class T, std::size_t N>
array<T, N> storage_for(const shape_of_rank<N>& shape)
{
    const std::size_t size = tensor_view<T, N>{nullptr, shape}.size();
    if (size * sizeof(T) >= detail::spare_storage<T, N>::least) {
        array<T, N> x;
        if (detail::spare_storage<T, N>::of_this_thread().take(shape, size, x)) return x;
    }
    return array<T, N>(shape);
}

/// x is not needed any more: what is large about it is kept for storage_for. Whatever is no plain tensor is left alone.
template <class X>
void give_back(X&)
{}
template <class T, std::size_t N>
void give_back(array<T, N>& x)
{
    if (x.size() * sizeof(T) < detail::spare_storage<T, N>::least) return;
    detail::spare_storage<T, N>::of_this_thread().give(std::move(x));
}

}  // namespace heed
