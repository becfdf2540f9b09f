// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/errors.hpp>
#include <heed/core/parameters.hpp>

/// Several processes that train, search or evaluate together, on one machine or on many.
///
/// Each process is a *rank*, 0 to size - 1, and runs the same program. Ranks use three operations: broadcast, sum and
/// gather. The concept `ranks` describes them; `alone` implements them for a single process, and `mpi` (mpi.hpp) for
/// several. This header does not include MPI.
///
/// Every rank makes the same calls in the same order: a call returns when the others have made it as well.
namespace heed::inline HEED_TARGET::distributed {

/// The result of gather(): the bytes of rank r are of(r). Reused from call to call, it does not allocate.
struct gathered {
    std::vector<std::byte> bytes;
    std::vector<std::size_t> ends;  ///< bytes per rank

    /// The bytes of this rank.
    std::span<const std::byte> of(std::size_t rank) const
    {
        const std::size_t first = rank == 0 ? 0 : ends[rank - 1];
        return {bytes.data() + first, ends[rank] - first};
    }
};

/// The operations between ranks.
///
///     rank(), size()            number of this process, and of all processes
///     broadcast(bytes, from)    copies the bytes of rank `from` to every rank; equal sizes on all ranks
///     sum(numbers)              every rank gets x_0 + x_1 + … + x_{n-1}, added in this order: equal bits
///     gather(mine, all)         every rank gets the bytes of each rank, of any sizes
///     gather(mine)              as above, returned as a vector per rank
///     barrier()                 returns when every rank has called it
template <class R>
concept ranks = requires(R& r, std::span<std::byte> bytes, std::span<const std::byte> mine, gathered& all,
                         std::span<float> f, std::span<double> d)
{
    {
        r.rank()
        } -> std::convertible_to<std::size_t>;
    {
        r.size()
        } -> std::convertible_to<std::size_t>;
    r.broadcast(bytes, std::size_t{0});
    r.sum(f);
    r.sum(d);
    r.gather(mine, all);
    {
        r.gather(mine)
        } -> std::same_as<std::vector<std::vector<std::byte>>>;
    r.barrier();
};

/// Ranks whose sums may run while the program computes: begin_sum(numbers) returns immediately, progress() advances
/// started sums, and finish() returns when all sums are complete. Until then, the numbers must not be accessed.
template <class R>
concept sums_meanwhile = ranks<R> && requires(R& r, std::span<float> f, std::span<double> d)
{
    r.begin_sum(f);
    r.begin_sum(d);
    r.progress();
    r.finish();
};

namespace detail {

/// Ranks that cannot sum asynchronously sum immediately.
template <class R, class T>
void begin_sum(R& over, std::span<T> numbers)
{
    if constexpr (sums_meanwhile<R>) {
        over.begin_sum(numbers);
    } else {
        over.sum(numbers);
    }
}
template <class R>
void progress(R& over)
{
    if constexpr (sums_meanwhile<R>) over.progress();
}
template <class R>
void finish(R& over)
{
    if constexpr (sums_meanwhile<R>) over.finish();
}

}  // namespace detail

/// The bytes of each rank from gather(), one vector per rank.
inline std::vector<std::vector<std::byte>> separated(const gathered& all)
{
    std::vector<std::vector<std::byte>> each;
    for (std::size_t r = 0; r < all.ends.size(); ++r) each.emplace_back(all.of(r).begin(), all.of(r).end());
    return each;
}

/// A single rank: every operation is local.
class alone {
public:
    std::size_t rank() const { return 0; }  ///< number of this process
    std::size_t size() const { return 1; }  ///< number of processes

    /// No effect: all ranks have the bytes.
    void broadcast(std::span<std::byte>, std::size_t) {}
    /// No effect: the sum over one rank.
    void sum(std::span<float>) {}
    void sum(std::span<double>) {}
    /// Copies the bytes.
    void gather(std::span<const std::byte> mine, gathered& all)
    {
        all.bytes.assign(mine.begin(), mine.end());
        all.ends.assign(1, mine.size());
    }
    std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine)
    {
        return {std::vector<std::byte>(mine.begin(), mine.end())};
    }
    /// No effect: all ranks are here.
    void barrier() {}

    /// No effect, as sum().
    void begin_sum(std::span<float>) {}
    void begin_sum(std::span<double>) {}
    /// No effect.
    void progress() {}
    /// No effect.
    void finish() {}
};

/// Type-erased ranks, for code that is compiled once. Refers to an object that must outlive it; copies refer to the
/// same object.
class any_ranks {
public:
    template <ranks R>
        requires(!std::same_as<R, any_ranks>)
    any_ranks(R& engine) : to_(std::make_shared<engine_of<R>>(engine)) {}

    std::size_t rank() const { return to_->rank(); }  ///< number of this process
    std::size_t size() const { return to_->size(); }  ///< number of processes

    /// Forwards to the object.
    void broadcast(std::span<std::byte> bytes, std::size_t from) { to_->broadcast(bytes, from); }
    /// Forwards to the object.
    void sum(std::span<float> numbers) { to_->sum(numbers); }
    void sum(std::span<double> numbers) { to_->sum(numbers); }
    /// Forwards to the object.
    void gather(std::span<const std::byte> mine, gathered& all) { to_->gather(mine, all); }
    std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine)
    {
        gathered all;
        gather(mine, all);
        return separated(all);
    }
    /// Forwards to the object.
    void barrier() { to_->barrier(); }

    /// Forwards to the object; synchronous if it does not support asynchronous sums.
    void begin_sum(std::span<float> numbers) { to_->begin_sum(numbers); }
    void begin_sum(std::span<double> numbers) { to_->begin_sum(numbers); }
    /// Forwards to the object.
    void progress() { to_->progress(); }
    /// Forwards to the object.
    void finish() { to_->finish(); }

private:
    struct interface {
        virtual ~interface() = default;
        virtual std::size_t rank() const = 0;
        virtual std::size_t size() const = 0;
        virtual void broadcast(std::span<std::byte>, std::size_t) = 0;
        virtual void sum(std::span<float>) = 0;
        virtual void sum(std::span<double>) = 0;
        virtual void gather(std::span<const std::byte>, gathered&) = 0;
        virtual void barrier() = 0;
        virtual void begin_sum(std::span<float>) = 0;
        virtual void begin_sum(std::span<double>) = 0;
        virtual void progress() = 0;
        virtual void finish() = 0;
    };

    template <class R>
    struct engine_of final : interface {
        R& engine;

        explicit engine_of(R& to) : engine(to) {}

        std::size_t rank() const override { return static_cast<std::size_t>(engine.rank()); }
        std::size_t size() const override { return static_cast<std::size_t>(engine.size()); }
        void broadcast(std::span<std::byte> bytes, std::size_t from) override { engine.broadcast(bytes, from); }
        void sum(std::span<float> numbers) override { engine.sum(numbers); }
        void sum(std::span<double> numbers) override { engine.sum(numbers); }
        void gather(std::span<const std::byte> mine, gathered& all) override { engine.gather(mine, all); }
        void barrier() override { engine.barrier(); }
        void begin_sum(std::span<float> numbers) override { detail::begin_sum(engine, numbers); }
        void begin_sum(std::span<double> numbers) override { detail::begin_sum(engine, numbers); }
        void progress() override { detail::progress(engine); }
        void finish() override { detail::finish(engine); }
    };

    std::shared_ptr<interface> to_;
};

/// A range of the items of a list: from `first` to before `last`.
struct share {
    std::size_t first = 0, last = 0;

    std::size_t size() const { return last - first; }  ///< number of items
};

/// This rank's share of the items: shares are contiguous, in rank order, and differ in size by at most one. With fewer
/// items than ranks, some shares are empty.
template <ranks R>
share share_of(const R& over, std::size_t count)
{
    const std::size_t n = over.size(), r = over.rank(), each = count / n, more = count % n;
    const std::size_t first = r * each + std::min(r, more);
    return {first, first + each + (r < more ? 1 : 0)};
}

/// Copies a number, or another trivially copyable value, of rank 0 to every rank.
template <ranks R, class Value>
    requires(std::is_trivially_copyable_v<Value> && !parameterized<Value>)
void broadcast(R& over, Value& value) { over.broadcast(std::as_writable_bytes(std::span<Value, 1>(&value, 1)), 0); }

/// Copies the text, bytes or numbers of rank 0 to every rank, including the size.
template <ranks R, class Values>
    requires requires(Values& v)
    {
        v.resize(std::size_t{0});
        requires std::is_trivially_copyable_v<typename Values::value_type>;
    }
void broadcast(R& over, Values& values)
{
    std::size_t count = values.size();
    broadcast(over, count);
    values.resize(count);
    over.broadcast(std::as_writable_bytes(std::span(values.data(), count)), 0);
}

/// Copies the parameters of rank 0 to every rank. Throws heed::error on every rank, without changes, if the models
/// differ in the number or the sizes of their parameters.
template <class T, ranks R, parameterized M>
void broadcast_parameters(R& over, M& model)
{
    const auto all = numbers_of<T>(model);
    std::vector<std::size_t> sizes;
    for (const auto& each : all) sizes.push_back(each.numbers.size());
    const auto mine = std::as_bytes(std::span<const std::size_t>(sizes));
    gathered outlines;
    over.gather(mine, outlines);
    for (std::size_t r = 1; r < over.size(); ++r) {
        const auto first = outlines.of(0), other = outlines.of(r);
        if (!std::equal(first.begin(), first.end(), other.begin(), other.end()))
            throw error("the ranks have different models: the parameters of rank " + std::to_string(r) +
                        " differ in number or size from those of rank 0");
    }
    for (const auto& each : all)
        over.broadcast(std::as_writable_bytes(std::span(each.numbers.data, each.numbers.size())), 0);
}

}  // namespace heed::inline HEED_TARGET::distributed
