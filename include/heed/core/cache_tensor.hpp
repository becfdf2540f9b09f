// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heed/core/arena.hpp>
#include <heed/core/atomic.hpp>
#include <heed/core/mask.hpp>
#include <heed/core/tensor.hpp>

/// Growing tensors, for KV caches.
namespace heed::inline HEED_TARGET {

/// A plain tensor [B,T,N] with rows that grow along the second axis. Appending n positions costs amortized O(n·N).
///
/// Each row has spare room after its last position. Copies share it but behave as values: the first copy to grow takes
/// the spare room permanently. A copy that grows later, or needs more room, moves to its own allocation, twice as
/// large. Contents that a copy shows never change. Selecting rows copies no numbers. Dropping the oldest positions
/// copies numbers only when room runs out: amortized O(N) for each appended position.
///
/// Rows may differ in length. T is the length of the longest row; the rest of a shorter row is unspecified, but finite
/// if all numbers are. While one thread grows a copy, others may read copies with rows of equal length.
///
/// Rows are stored apart: kernels take one row at a time, `gathered` copies the rows into one array, and `view_of`
/// takes at most one row.
template <class T>
class cache_tensor {
public:
    cache_tensor() = default;

    /// The first real[b] positions of each row of x [B,T,N]. Throws shape_error unless the lengths fit.
    cache_tensor(const tensor_view<const T, 3>& x, const lengths_view& real)
        : rows_(x.shape[0]), positions_(x.shape[1]), width_(x.shape[2])
    {
        real.require("cache_tensor", x.shape[0], x.shape[1]);
        for (std::size_t b = 0; b < rows_.size(); ++b) rows_[b].extend(x[b].data, real[b], positions_, width_);
    }

    shape_of_rank<3> shape() const { return {rows_.size(), positions_, width_}; }

    /// The number of positions in row b.
    std::size_t length(std::size_t b) const { return rows_[b].length; }

    /// The positions of row b, [T,N].
    const T* row(std::size_t b) const
    {
        return rows_[b].place == nullptr ? nullptr : rows_[b].place->numbers() + rows_[b].begin * width_;
    }

    /// Throws shape_error if there are several rows, which are not contiguous.
    tensor_view<const T, 3> view() const
    {
        if (rows_.size() > 1) {
            detail::throw_shape_error({"a cache tensor ", shape(),
                                       " has rows that are not contiguous, so it cannot be viewed; pass "
                                       "gathered(x), a copy of it"});
        }
        return {rows_.empty() ? nullptr : row(0), shape()};
    }

    /// Appends the first real[b] positions of each row of more [B,t,N] to the rows of this tensor. Throws shape_error
    /// unless B, N and the lengths fit.
    void append(const tensor_view<const T, 3>& more, const lengths_view& real)
    {
        require_shape("cache_tensor::append", "the appended part", more.shape, {rows_.size(), more.shape[1], width_},
                      "the batch and the width of this tensor, ", shape());
        real.require("cache_tensor::append", more.shape[0], more.shape[1]);
        for (std::size_t b = 0; b < rows_.size(); ++b) positions_ = std::max(positions_, length(b) + real[b]);
        for (std::size_t b = 0; b < rows_.size(); ++b) rows_[b].extend(more[b].data, real[b], positions_, width_);
    }

    /// These rows, in this order: a row may occur several times or not at all. Throws shape_error if a row does not
    /// exist.
    cache_tensor rows(std::span<const std::size_t> which) const
    {
        cache_tensor some;
        some.width_ = width_;
        some.rows_.reserve(which.size());
        for (const std::size_t b : which) {
            if (b >= rows_.size()) {
                detail::throw_shape_error({"cache_tensor::rows: row ", b, " of ", shape(), "; rows count from 0"});
            }
            some.rows_.push_back(rows_[b]);
            some.positions_ = std::max(some.positions_, length(b));
        }
        return some;
    }

    /// A copy without the first counts[b] positions of each row. Throws shape_error if a row has fewer.
    cache_tensor without_oldest(const lengths_view& counts) const
    {
        const std::size_t B = rows_.size();
        if (counts.batch() != B) {
            detail::throw_shape_error({"without_oldest: ", detail::number_of{counts.batch(), "length"},
                                       " for a batch of ", detail::number_of{B, "row"},
                                       "; give the number of positions to drop for each row"});
        }
        cache_tensor some = *this;
        some.positions_ = 0;
        for (std::size_t b = 0; b < B; ++b) {
            if (counts[b] > length(b)) {
                detail::throw_shape_error({"without_oldest: ", detail::number_of{counts[b], "position"}, " of row ", b,
                                           ", which has ", length(b), "; a count is at most the length of its row"});
            }
            some.positions_ = std::max(some.positions_, length(b) - counts[b]);
        }
        for (std::size_t b = 0; b < B; ++b) some.rows_[b].drop(counts[b], some.positions_, width_);
        return some;
    }

private:
    /// Room for positions, and the number taken by the longest copy.
    class room {
    public:
        room(std::size_t positions, std::size_t width, std::size_t taken)
            : numbers_(detail::new_aligned<T>(positions * width)), positions_(positions), taken_(taken)
        {
            std::fill_n(numbers_.get(), positions * width, T(0));
        }

        T* numbers() const { return numbers_.get(); }
        std::size_t positions() const { return positions_; }

        /// Takes `count` positions after the first `length`, unless another copy already has.
        bool take(std::size_t length, std::size_t count)
        {
            return length + count <= positions_ && taken_.compare_exchange(length, length + count);
        }

    private:
        detail::aligned_memory<T> numbers_;
        std::size_t positions_;
        for_all_targets::atomic<std::size_t> taken_;
    };

    struct one_row {
        std::shared_ptr<room> place;
        std::size_t begin = 0, length = 0;  // the first position in the room, and the number of positions

        /// Appends `count` positions, with room for at least `positions`.
        void extend(const T* more, std::size_t count, std::size_t positions, std::size_t width)
        {
            if (!has_room(positions) || (count > 0 && !place->take(begin + length, count)))
                move(positions, length + count, width);
            std::copy_n(more, count * width, place->numbers() + (begin + length) * width);
            length += count;
        }

        /// Drops the first `count` positions, with room for at least `positions`.
        void drop(std::size_t count, std::size_t positions, std::size_t width)
        {
            begin += count;
            length -= count;
            if (!has_room(positions)) move(positions, length, width);
        }

    private:
        bool has_room(std::size_t positions) const
        {
            return place != nullptr && begin + positions <= place->positions();
        }

        /// Moves to a new room of which `taken` positions are taken.
        void move(std::size_t positions, std::size_t taken, std::size_t width)
        {
            const std::size_t least = 16;
            auto larger = std::make_shared<room>(std::max({positions, 2 * length, least}), width, taken);
            if (place != nullptr) std::copy_n(place->numbers() + begin * width, length * width, larger->numbers());
            place = std::move(larger);
            begin = 0;
        }
    };

    std::vector<one_row> rows_;
    std::size_t positions_ = 0, width_ = 0;
};

template <class T>
struct tensor_traits<cache_tensor<T>> : tensor_traits<tensor_view<T, 3>> {};

/// Is this type a cache_tensor?
template <class X>
inline constexpr bool is_cache = false;
template <class T>
inline constexpr bool is_cache<cache_tensor<T>> = true;

/// A copy in one array [B,T,N], with zeros after the last position of each row.
template <class T>
array<T, 3> gathered(const cache_tensor<T>& x)
{
    const auto [B, P, N] = x.shape();
    auto all = filled<T, 3>({B, P, N}, T(0));
    for (std::size_t b = 0; b < B; ++b) std::copy_n(x.row(b), x.length(b) * N, all.data() + b * P * N);
    return all;
}

}  // namespace heed::inline HEED_TARGET
