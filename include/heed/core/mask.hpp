// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/compiled.hpp>
#include <heed/core/tensor.hpp>

/// Which source positions exist, and which a query may attend to: lengths, masks, windows. True = attend.
namespace heed::inline HEED_TARGET {

class lengths;
class lengths_view;

namespace detail {
/// Reports why `real` are not the lengths of `batch` rows of at most `positions`.
[[noreturn, gnu::cold]] HEED_COMPILED_FUNCTION void throw_wrong_lengths(const char* where, const lengths_view& real,
                                                                        std::size_t batch, std::size_t positions);
}  // namespace detail

/// A view of the lengths of all rows of a batch, or of consecutive rows; policies read it as `at.real`.
class lengths_view {
public:
    constexpr lengths_view() = default;
    constexpr lengths_view(const std::size_t* counts, std::size_t batch, std::size_t first_row = 0,
                           std::size_t heads = 1)
        : counts_(counts), batch_(batch), first_row_(first_row), heads_(heads)
    {}
    lengths_view(const lengths& all);  // not explicit: callers pass lengths directly

    std::size_t batch() const { return batch_; }
    std::size_t operator[](std::size_t row) const { return counts_[row]; }
    const std::size_t* data() const { return counts_; }

    /// The index of row 0 in the whole batch: 0 unless these are the lengths of a slice.
    std::size_t first_row() const { return first_row_; }

    /// The number of rows for each sentence: one for each head, consecutive.
    std::size_t heads() const { return heads_; }
    /// The sentence of a row, by its index in the whole batch.
    std::size_t sentence_of(std::size_t row) const { return (first_row_ + row) / heads_; }
    /// The head of a row, by its index in the whole batch.
    std::size_t head_of(std::size_t row) const { return (first_row_ + row) % heads_; }

    /// The lengths of `count` rows from `first` on.
    lengths_view rows(std::size_t first, std::size_t count) const
    {
        return {counts_ + first, count, first_row_ + first, heads_};
    }

    /// Throws shape_error unless there is one length per row and none above `positions`.
    void require(const char* where, std::size_t batch, std::size_t positions) const
    {
        std::size_t row = 0;
        while (row < batch_ && counts_[row] <= positions) ++row;
        if (batch_ != batch || row != batch) detail::throw_wrong_lengths(where, *this, batch, positions);
    }
    void require(const char* where, const shape_of_rank<2>& shape) const { require(where, shape[0], shape[1]); }

private:
    const std::size_t* counts_ = nullptr;
    std::size_t batch_ = 0, first_row_ = 0, heads_ = 1;
};

#if !defined(HEED_CALLS_COMPILED) || defined(HEED_DEFINES_COMPILED)
namespace detail {
HEED_COMPILED_FUNCTION void throw_wrong_lengths(const char* where, const lengths_view& real, std::size_t batch,
                                                std::size_t positions)
{
    if (real.batch() != batch) {
        throw_shape_error({where, ": ", number_of{real.batch(), "length"}, " for a batch of ", number_of{batch, "row"},
                           "; give one length per row"});
    }
    std::size_t row = 0;
    while (real[row] <= positions) ++row;
    throw_shape_error(
        {where, ": the length of row ", row, " is ", real[row], " but there are only ", positions, " positions"});
}
}  // namespace detail
#endif

/// The number of real positions of each sentence of a batch; the rest is padding.
class lengths {
public:
    lengths() = default;
    lengths(std::initializer_list<std::size_t> counts) : counts_(counts) {}
    explicit lengths(std::vector<std::size_t> counts) : counts_(std::move(counts)) {}
    /// From any list or tensor of integers. Throws shape_error for a negative one.
    template <class Counts>
        requires(std::integral<std::remove_cvref_t<decltype(*std::data(std::declval<const Counts&>()))>>)
    explicit lengths(const Counts& counts)
    {
        for (std::size_t b = 0; b < std::size(counts); ++b) {
            const auto count = std::data(counts)[b];
            if (count < 0) {
                detail::throw_shape_error({"lengths: the length of row ", b, " is -",
                                           0 - static_cast<std::size_t>(count), "; a length must not be negative"});
            }
            counts_.push_back(static_cast<std::size_t>(count));
        }
    }
    lengths(const lengths_view& of)  // not explicit: a copy
        : counts_(of.data(), of.data() + of.batch()), heads_(of.heads())
    {}

    /// A batch without padding.
    static lengths full(std::size_t batch, std::size_t positions)
    {
        return lengths(std::vector<std::size_t>(batch, positions));
    }

    std::size_t batch() const { return counts_.size(); }
    std::size_t operator[](std::size_t row) const { return counts_[row]; }
    const std::size_t* data() const { return counts_.data(); }
    /// The number of rows for each sentence: one for each head.
    std::size_t heads() const { return heads_; }

    /// These lengths with `heads` rows for each sentence.
    lengths for_heads(std::size_t heads) const
    {
        lengths all(std::vector<std::size_t>(counts_.size() * heads));
        for (std::size_t i = 0; i < all.counts_.size(); ++i) all.counts_[i] = counts_[i / heads];
        all.heads_ = heads;
        return all;
    }
    /// These lengths, with each group of `heads` rows as the heads of one sentence.
    lengths rows_of_heads(std::size_t heads) const
    {
        auto same = *this;
        same.heads_ = heads;
        return same;
    }

    /// The lengths of these rows. Throws shape_error if a row does not exist.
    lengths rows(const std::vector<std::size_t>& which) const
    {
        std::vector<std::size_t> counts(which.size());
        for (std::size_t i = 0; i < which.size(); ++i) {
            if (which[i] >= counts_.size()) {
                detail::throw_shape_error(
                    {"lengths::rows: row ", which[i], " of a batch of ", counts_.size(), "; rows count from 0"});
            }
            counts[i] = counts_[which[i]];
        }
        lengths some(std::move(counts));
        some.heads_ = heads_;
        return some;
    }

    /// Throws shape_error unless there is one length per row and none above `positions`.
    void require(const char* where, std::size_t batch, std::size_t positions) const
    {
        lengths_view(*this).require(where, batch, positions);
    }
    void require(const char* where, const shape_of_rank<2>& shape) const { require(where, shape[0], shape[1]); }

private:
    std::vector<std::size_t> counts_;
    std::size_t heads_ = 1;
};

inline lengths_view::lengths_view(const lengths& all) : lengths_view(all.data(), all.batch(), 0, all.heads()) {}

/// Every real position.
struct no_mask {};

/// A view of a boolean mask, whole or of consecutive rows.
template <std::size_t N>
class boolean_mask_view {
public:
    boolean_mask_view(const std::uint8_t* attend, const shape_of_rank<N>& shape) : attend_(attend), shape_(shape) {}

    const shape_of_rank<N>& shape() const { return shape_; }
    const std::uint8_t* data() const { return attend_; }
    std::uint8_t operator[](std::size_t i) const { return attend_[i]; }

    /// The mask of `count` rows from `first` on.
    boolean_mask_view rows(std::size_t first, std::size_t count) const
    {
        const std::size_t row = tensor_view<const bool, N>{nullptr, shape_}.size() / (shape_[0] == 0 ? 1 : shape_[0]);
        auto shape = shape_;
        shape[0] = count;
        return {attend_ + first * row, shape};
    }

    /// Throws shape_error unless the mask has the shape `must`.
    void require(const char* where, const shape_of_rank<N>& must) const
    {
        require_shape(where, "the boolean mask", shape_, must, "one truth value for each position, true = attend");
    }

private:
    const std::uint8_t* attend_;
    shape_of_rank<N> shape_;
};

/// One truth value for each query and source position, true = attend: [S,T], [B,S,T] or [B,H,S,T]; an axis of size 1 is
/// broadcast. For one query, [B,T] or [B,H,T].
template <std::size_t N>
class boolean_mask {
public:
    static_assert(N >= 2 && N <= 4, "heed: a boolean mask is [S,T], [B,S,T] or [B,H,S,T], with a row for each query");

    boolean_mask() = default;
    template <class Truth>
        requires(std::is_same_v<Truth, array<bool, N>>)
    explicit boolean_mask(const Truth& attend) : boolean_mask(attend.shape())
    {
        for (std::size_t i = 0; i < attend.size(); ++i) (*attend_)[i] = attend.data()[i] ? 1 : 0;
    }
    /// All false, until `operator[]` sets an entry.
    explicit boolean_mask(const shape_of_rank<N>& shape)
        : shape_(shape),
          attend_(std::make_shared<values>(values(tensor_view<const bool, N>{nullptr, shape}.size() + 3)))
    {}

    const shape_of_rank<N>& shape() const { return shape_; }
    const std::uint8_t* data() const { return attend_ == nullptr ? nullptr : attend_->data(); }
    std::uint8_t& operator[](std::size_t i)
    {
        if (attend_.use_count() > 1) attend_ = std::make_shared<values>(values(*attend_));
        return (*attend_)[i];
    }
    std::uint8_t operator[](std::size_t i) const { return (*attend_)[i]; }

    operator boolean_mask_view<N>() const { return {data(), shape_}; }

    using values = std::vector<std::uint8_t>;
    /// The values, and 3 more bytes, which registers may read. Copies of a mask share them until one is changed.
    const std::shared_ptr<values>& shared_values() const { return attend_; }

    /// Throws shape_error unless the mask has the shape `must`.
    void require(const char* where, const shape_of_rank<N>& must) const
    {
        boolean_mask_view<N>(*this).require(where, must);
    }

private:
    shape_of_rank<N> shape_{};
    std::shared_ptr<values> attend_;
};
template <std::size_t N>
boolean_mask(const array<bool, N>&) -> boolean_mask<N>;

/// The existing positions of each sentence, [B,T], for every query: a boolean_mask of many queries would read it as
/// [S,T].
struct present : boolean_mask<2> {
    using boolean_mask<2>::boolean_mask;
    explicit present(boolean_mask<2> mask) : boolean_mask<2>(std::move(mask)) {}
};

/// Numbers that are added to the scores, after any modulation; -inf = do not attend. Shapes as for boolean_mask. They
/// may be learned: gradients flow into them.
template <tensor Bias>
struct additive_mask {
    Bias bias;

    static_assert(rank_of<Bias> >= 2 && rank_of<Bias> <= 4,
                  "heed: an additive mask is [S,T], [B,S,T] or [B,H,S,T]; a row for all queries is [1,T]");
};
template <tensor Bias>
additive_mask(Bias) -> additive_mask<Bias>;

/// Query s of S attends to no later position: the last query sees every real position of its row, the query before it
/// all but the last, and so on, even if S differs from T: `attend(memory, queries, causal{})`.
struct causal {};

/// Query s, counted by the state from the first query, attends to no key after the s-th, as in PyTorch's
/// causal_upper_left: the first query sees one key.
struct causal_upper_left {};

/// Query s, counted by the state, attends to the first `past` keys and to the next s + 1 keys.
struct causal_after {
    std::size_t past = 0;
};

/// `count` consecutive positions of a row, starting at `first`.
struct position_range {
    std::size_t first = 0;
    std::size_t count = 0;

    /// The positions of a row of n within `reach` of a center.
    static position_range around(std::size_t center, std::size_t reach, std::size_t n)
    {
        const std::size_t first = center > reach ? center - reach : 0;
        const std::size_t last = std::min(center + reach + 1, n);
        return first < last ? position_range{first, last - first} : position_range{};
    }
};

/// A view of a window, of all rows of a batch or of consecutive rows.
struct window_view {
    const std::size_t* begin = nullptr;  // [B]
    lengths_view count;                  // [B]
    std::size_t width = 0;

    /// The window of `n` rows from `first` on.
    window_view rows(std::size_t first, std::size_t n) const { return {begin + first, count.rows(first, n), width}; }
};

/// count[b] consecutive positions of row b, at most `width`, starting at begin[b].
struct window {
    std::vector<std::size_t> begin;  // [B]
    lengths count;                   // [B]
    std::size_t width = 0;

    /// Throws shape_error unless each row has both a begin and a count.
    operator window_view() const
    {
        require_shape<1>("window", "the list of first positions", {begin.size()}, {count.batch()},
                         "one for each row, like the counts");
        return {begin.data(), count, width};
    }
};

}  // namespace heed::inline HEED_TARGET
