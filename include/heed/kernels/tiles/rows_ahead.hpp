// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <heed/kernels/tiles/changes.hpp>
#include <heed/kernels/tiles/tiles.hpp>

/// Rows that are needed soon, asked of memory while something else is computed.
///
/// Heads lie side by side, so that a head's rows are short and far apart, and no processor guesses the next one. To ask
/// for all of them at once would wait for memory as reading them does; a few at a time cost nothing.
namespace heed::kernels::tiles {

/// Rows [begin, end) of `width` numbers.
template <class T>
class rows_ahead {
public:
    rows_ahead() = default;
    rows_ahead(const rows<T>& of, const range& wanted, std::size_t width)
    {
        if (of.data == nullptr || wanted.empty()) return;
        at_ = reinterpret_cast<const char*>(of[wanted.begin]);
        stride_ = of.stride * sizeof(T);
        bytes_ = width * sizeof(T);
        left_ = wanted.size();
    }

    /// Asks for so many lines more.
    HEED_SIMD_INLINE void ask(std::size_t lines)
    {
        for (; left_ > 0 && lines > 0; --lines) {
            __builtin_prefetch(at_ + seen_);
            seen_ += line;
            if (seen_ < bytes_) continue;
            seen_ = 0;
            at_ += stride_;
            --left_;
        }
    }

private:
    static constexpr std::size_t line = 64;

    const char* at_ = nullptr;
    std::size_t stride_ = 0, bytes_ = 0, left_ = 0, seen_ = 0;
};

/// What will be needed behind a tile of a block of n queries from s on: keys that no block has read before, and the
/// queries of the next block, be it of this head or of the next one.
template <std::size_t registers, class T>
class coming {
public:
    coming(const head<T>& of, std::size_t s, std::size_t n, const changes<T>& what)
        : of_(of), next_(s + n < of.queries_count ? &of : of.next)
    {
        const auto end_of_block = [&](std::size_t first) {
            const std::size_t last = std::min(first + width, of.queries_count) - 1;
            const std::int32_t end = what.reach(of.place_of(first), of.place_of(last)).end;
            return std::min(of.positions, static_cast<std::size_t>(std::max(0, end)));
        };
        end_ = end_of_block(s);
        fresh_ = {s < width ? 0 : end_of_block(s - width), next_ == &of ? std::max(end_, end_of_block(s + n)) : end_};
        if (next_ == nullptr) return;
        const std::size_t first = next_ == &of ? s + n : 0;
        queries_ = {first, std::min(first + width, next_->queries_count)};
    }

    rows_ahead<const T> queries() const
    {
        return next_ == nullptr ? rows_ahead<const T>{} : rows_ahead<const T>{next_->queries, queries_, next_->width};
    }
    rows_ahead<const T> keys(std::size_t first) const
    {
        return behind_all(first) ? rows_ahead<const T>{next_->keys, first_keys(), next_->width}
                                 : of_keys(of_.keys, first, of_.width);
    }
    rows_ahead<const T> values(std::size_t first) const
    {
        return behind_all(first) ? rows_ahead<const T>{next_->values, first_keys(), next_->value_width}
                                 : of_keys(of_.values, first, of_.value_width);
    }

    /// Rows of x that belong to the queries of the next block, if it is one of this head.
    template <class U>
    rows_ahead<U> of_queries(const rows<U>& x, std::size_t row_width) const
    {
        return next_ == &of_ ? rows_ahead<U>{x, queries_, row_width} : rows_ahead<U>{};
    }
    /// Rows of x that belong to the keys of the tile which begins with the first-th one.
    template <class U>
    rows_ahead<U> of_keys(const rows<U>& x, std::size_t first, std::size_t row_width) const
    {
        return {x, {std::max(fresh_.begin, first), std::min(fresh_.end, first + tiles::keys)}, row_width};
    }

private:
    static constexpr std::size_t width = lanes<T, registers>;

    bool behind_all(std::size_t first) const { return first >= end_ && next_ != nullptr && next_ != &of_; }
    range first_keys() const { return {0, std::min(tiles::keys, next_->positions)}; }

    const head<T>& of_;
    const head<T>* next_;
    range queries_, fresh_;
    std::size_t end_;
};

}  // namespace heed::kernels::tiles
