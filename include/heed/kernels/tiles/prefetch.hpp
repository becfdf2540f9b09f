// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <heed/kernels/tiles/score_mod.hpp>
#include <heed/kernels/tiles/tiles.hpp>

/// Software prefetch: rows that the next tile or the next block of queries reads, requested from memory a few cache
/// lines at a time while a tile is computed. The rows of a head are short and far apart, and no processor predicts the
/// next one.
namespace heed::inline HEED_TARGET::kernels::tiles {

/// Requests the rows [begin, end) of `width` numbers, a few cache lines at a time.
template <class T>
class prefetch {
public:
    prefetch() = default;
    prefetch(const rows<T>& of, const range& wanted, std::size_t width)
    {
        if (of.data == nullptr || wanted.empty()) return;
        at_ = reinterpret_cast<const char*>(of[wanted.begin]);
        stride_ = of.stride * sizeof(T);
        bytes_ = width * sizeof(T);
        rows_left_ = wanted.size();
    }

    /// Requests this many further lines.
    HEED_SIMD_INLINE void lines(std::size_t count)
    {
        for (; rows_left_ > 0 && count > 0; --count) {
            __builtin_prefetch(at_ + offset_);
            offset_ += line_bytes;
            if (offset_ < bytes_) continue;
            offset_ = 0;
            at_ += stride_;
            --rows_left_;
        }
    }

    /// Have all rows been requested?
    bool done() const { return rows_left_ == 0; }

private:
    static constexpr std::size_t line_bytes = 64;

    const char* at_ = nullptr;
    std::size_t stride_ = 0, bytes_ = 0, rows_left_ = 0, offset_ = 0;
};

/// The rows that are read after a tile of a block of queries: keys that no earlier block has read, and the queries of
/// the next block, of this head or the next.
template <std::size_t registers, class T>
class next_rows {
public:
    explicit next_rows(const query_block<T>& block)
        : of_(block.of), next_(block.s + block.n < block.of.queries_count ? &block.of : block.of.next)
    {
        const std::size_t s = block.s, after = block.s + block.n;
        end_ = end_of_block(s, block.n, block.mod);
        new_keys_ = {s < block.n ? 0 : end_of_block(s - block.n, block.n, block.mod),
                     next_ == &of_ ? std::max(end_, end_of_block(after, block.n, block.mod)) : end_};
        if (next_ == nullptr) return;
        const std::size_t first = next_ == &of_ ? after : 0;
        queries_ = {first, std::min(first + block.n, next_->queries_count)};
    }

    prefetch<const T> queries() const
    {
        return next_ == nullptr ? prefetch<const T>{} : prefetch<const T>{next_->queries, queries_, next_->width};
    }
    prefetch<const T> keys(std::size_t first) const { return after_tile(first, &head<T>::keys, &head<T>::width); }
    prefetch<const T> values(std::size_t first) const
    {
        return after_tile(first, &head<T>::values, &head<T>::value_width);
    }

    /// Rows of x for the queries of the next block, if it belongs to this head.
    template <class U>
    prefetch<U> of_queries(const rows<U>& x, std::size_t row_width) const
    {
        return next_ == &of_ ? prefetch<U>{x, queries_, row_width} : prefetch<U>{};
    }
    /// Rows of x for the keys of the tile that begins with key `first`.
    template <class U>
    prefetch<U> of_keys(const rows<U>& x, std::size_t first, std::size_t row_width) const
    {
        return {x, {std::max(new_keys_.begin, first), std::min(new_keys_.end, first + tiles::keys)}, row_width};
    }

private:
    /// The end of the keys that the n queries from `first` on may see.
    std::size_t end_of_block(std::size_t first, std::size_t n, const score_mod<T>& mod) const
    {
        const std::size_t last = std::min(first + n, of_.queries_count) - 1;
        const std::int32_t end = mod.visible_range(of_.diagonal_of(first), of_.diagonal_of(last)).end;
        return std::min(of_.positions, static_cast<std::size_t>(std::max(0, end)));
    }

    /// Rows from index `first` on; after the last key, the first rows of the next head.
    prefetch<const T> after_tile(std::size_t first, rows<const T> head<T>::*x, std::size_t head<T>::*row_width) const
    {
        if (first < end_ || next_ == nullptr || next_ == &of_) return of_keys(of_.*x, first, of_.*row_width);
        return {next_->*x, {0, std::min(tiles::keys, next_->positions)}, next_->*row_width};
    }

    const head<T>& of_;
    const head<T>* next_;
    range queries_, new_keys_;
    std::size_t end_;
};

}  // namespace heed::inline HEED_TARGET::kernels::tiles
