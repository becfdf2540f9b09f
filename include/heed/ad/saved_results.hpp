// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include <heed/core/arena.hpp>

/// The results of operations that a row-wise program saves for the backward pass.
///
/// The backward pass recomputes a sentence (by_rows.hpp), except for the results of the program, which are already on
/// the tape, and for results much smaller than their operation's arguments, such as scores [T] from keys [T,A], which
/// cost more to recompute than to store.
///
/// A run of the program on zero rows, once per step, selects these operations: those that read at least eight times as
/// many elements per row as they write. Together their results may be as large as the program's.
namespace heed::inline HEED_TARGET::ad {

template <class T>
struct slot;

/// One result of an operation, and where it is saved.
template <class T>
struct saved_result {
    std::size_t call = 0;           // index of the operation, in execution order
    std::size_t results = 0;        // of the operation
    std::size_t size = 0;           // elements per row, at most
    bool small = false;             // much smaller than the arguments
    const slot<T>* made = nullptr;  // in the run on zero rows
    T* first = nullptr;             // row b is at first + b stride
    std::size_t stride = 0;
};

/// The list of saved results, and their locations.
template <class T>
class saved_list {
public:
    /// The next operation of a run on zero rows. Returns the number of its first result, counted from 1; 0 if the list
    /// is full.
    template <std::size_t N>
    std::size_t add(std::size_t call, std::size_t reads, const std::array<std::size_t, N>& makes)
    {
        if (count_ + N > items_.size()) return 0;
        std::size_t all = 0;
        for (const std::size_t n : makes) all += n;
        const std::size_t first = count_ + 1;
        for (const std::size_t n : makes) items_[count_++] = {call, N, n, 8 * all <= reads};
        return first;
    }
    saved_result<T>& operator[](std::size_t i) { return items_[i]; }

    /// `made` is a result of the program; its rows are stored from `first` on.
    void is_result(const slot<T>& made, T* first, std::size_t stride)
    {
        for (std::size_t i = 0; i < count_; ++i) {
            if (items_[i].made != &made || items_[i].first != nullptr) continue;
            items_[i].first = first;
            items_[i].stride = stride;
        }
    }

    /// Saves the operations whose results are all either small or results of the program, as long as the small ones
    /// have at most `most` elements per row. Allocates memory for `rows` rows.
    std::span<const saved_result<T>> keep(arena& memory, std::size_t rows, std::size_t most)
    {
        std::size_t more = 0;
        auto* const saved = memory.template array_of<saved_result<T>>(count_);
        std::size_t count = 0;
        for (std::size_t i = 0, end = 0; i < count_; i = end) {
            std::size_t needs = 0;
            bool wanted = true;
            for (end = i; end < count_ && items_[end].call == items_[i].call; ++end) {
                if (items_[end].first != nullptr) continue;
                needs += items_[end].size;
                wanted = wanted && items_[end].small;
            }
            if (!wanted || more + needs > most) continue;
            more += needs;
            for (std::size_t j = i; j < end; ++j) saved[count++] = items_[j];
        }
        T* next = memory.template array_of<T>(rows * more);
        for (std::size_t i = 0; i < count; ++i) {
            if (saved[i].first != nullptr) continue;
            saved[i].first = next;
            saved[i].stride = more;
            next += saved[i].size;
        }
        return {saved, count};
    }

private:
    std::array<saved_result<T>, 24> items_{};
    std::size_t count_ = 0;
};

/// One run of a program, on one row or on zero rows.
template <class T>
class saved_results {
public:
    /// On zero rows: makes the list.
    explicit saved_results(saved_list<T>& list) : list_(&list) {}
    /// On a row; in the backward pass its results are already `known`.
    saved_results(std::span<const saved_result<T>> saved, std::size_t row, bool known)
        : saved_(saved), row_(row), known_(known)
    {}

    /// The locations of an operation's results and saved elements; null: the tape's memory.
    template <std::size_t N>
    struct places {
        std::array<T*, N> at{};
        bool known = false;      // the results are already there
        std::size_t listed = 0;  // see saved_list::add
    };

    /// For the next operation, which reads `reads` elements per row and writes `makes` of each result. After an
    /// operation with a different number of results than in the run on zero rows, nothing is saved: a single row may
    /// run other operations, such as a slice instead of a copy.
    template <std::size_t N>
    places<N> next(std::size_t reads, const std::array<std::size_t, N>& makes)
    {
        places<N> found;
        const std::size_t call = call_++;
        if (list_ != nullptr) {
            found.listed = list_->add(call, reads, makes);
            return found;
        }
        if (item_ == saved_.size() || saved_[item_].call != call) return found;
        if (saved_[item_].results != N) {
            item_ = saved_.size();
            return found;
        }
        bool fits = true;
        for (std::size_t i = 0; i < N; ++i) fits = fits && makes[i] <= saved_[item_ + i].size;
        for (std::size_t i = 0; fits && i < N; ++i) {
            found.at[i] = saved_[item_ + i].first + row_ * saved_[item_ + i].stride;
        }
        found.known = fits && known_;
        item_ += N;
        return found;
    }

    /// For zero rows: stores where result i of the operation is.
    void made(std::size_t listed, std::size_t i, const slot<T>& result)
    {
        if (listed != 0) (*list_)[listed - 1 + i].made = &result;
    }

private:
    saved_list<T>* list_ = nullptr;
    std::span<const saved_result<T>> saved_;
    std::size_t row_ = 0;
    bool known_ = false;
    std::size_t call_ = 0, item_ = 0;
};

}  // namespace heed::inline HEED_TARGET::ad
