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
/// Each is a *rank*, 0 to size - 1, and runs the same program. What they need of each other is little: bytes from one
/// to all, sums over all, bytes from all to all. The concept `ranks` says so; `alone` is one process without any
/// engine, and `mpi` (mpi.hpp) the engine for the rest. Nothing here includes MPI.
///
/// Every rank makes the same calls in the same order: a call returns when the others have made it, too.
namespace heed::inline HEED_TARGET::distributed {

/// What the ranks gave to gather(): rank r's bytes are of(r). Kept from call to call, it allocates nothing.
struct gathered {
    std::vector<std::byte> bytes;
    std::vector<std::size_t> ends;  ///< of each rank's bytes

    /// What this rank gave.
    std::span<const std::byte> of(std::size_t rank) const
    {
        const std::size_t first = rank == 0 ? 0 : ends[rank - 1];
        return {bytes.data() + first, ends[rank] - first};
    }
};

/// An engine that lets processes work together.
///
///     rank(), size()            which process this is, and of how many
///     broadcast(bytes, from)    every rank has the bytes of rank `from`, as many everywhere
///     sum(numbers)              every rank has x_0 + x_1 + … + x_{n-1}, added in this order: the same bits
///     gather(mine, all)         every rank has the bytes of each, of any sizes
///     gather(mine)              the same, as a vector for each rank
///     barrier()                 every rank has come here
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

/// An engine whose sums may run while the program computes: begin_sum(numbers) returns at once, progress() moves what
/// has been begun along, and finish() returns when all of it is done. Until then nobody touches the numbers.
template <class R>
concept sums_meanwhile = ranks<R> && requires(R& r, std::span<float> f, std::span<double> d)
{
    r.begin_sum(f);
    r.begin_sum(d);
    r.progress();
    r.finish();
};

namespace detail {

/// Engines that cannot sum meanwhile do it at once.
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

/// What each rank gave to gather(), as a vector each.
inline std::vector<std::vector<std::byte>> separated(const gathered& all)
{
    std::vector<std::vector<std::byte>> each;
    for (std::size_t r = 0; r < all.ends.size(); ++r) each.emplace_back(all.of(r).begin(), all.of(r).end());
    return each;
}

/// One rank, and no engine: what it would get from the others it has already.
class alone {
public:
    std::size_t rank() const { return 0; }  ///< which process this is
    std::size_t size() const { return 1; }  ///< of how many

    /// Nothing: all have the bytes.
    void broadcast(std::span<std::byte>, std::size_t) {}
    /// Nothing: the sum of one.
    void sum(std::span<float>) {}
    void sum(std::span<double>) {}
    /// A copy.
    void gather(std::span<const std::byte> mine, gathered& all)
    {
        all.bytes.assign(mine.begin(), mine.end());
        all.ends.assign(1, mine.size());
    }
    std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine)
    {
        return {std::vector<std::byte>(mine.begin(), mine.end())};
    }
    /// Nothing: all are here.
    void barrier() {}

    /// Nothing, as sum().
    void begin_sum(std::span<float>) {}
    void begin_sum(std::span<double>) {}
    /// Nothing to do.
    void progress() {}
    /// Nothing to wait for.
    void finish() {}
};

/// Any engine behind one type, for code that is compiled once: refers to an engine, which must outlive it. Copies refer
/// to the same.
class any_ranks {
public:
    template <ranks R>
        requires(!std::same_as<R, any_ranks>)
    any_ranks(R& engine) : to_(std::make_shared<engine_of<R>>(engine)) {}

    std::size_t rank() const { return to_->rank(); }  ///< which process this is
    std::size_t size() const { return to_->size(); }  ///< of how many

    /// As the engine does it.
    void broadcast(std::span<std::byte> bytes, std::size_t from) { to_->broadcast(bytes, from); }
    /// As the engine does it.
    void sum(std::span<float> numbers) { to_->sum(numbers); }
    void sum(std::span<double> numbers) { to_->sum(numbers); }
    /// As the engine does it.
    void gather(std::span<const std::byte> mine, gathered& all) { to_->gather(mine, all); }
    std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine)
    {
        gathered all;
        gather(mine, all);
        return separated(all);
    }
    /// As the engine does it.
    void barrier() { to_->barrier(); }

    /// As the engine does it; at once if it knows no other way.
    void begin_sum(std::span<float> numbers) { to_->begin_sum(numbers); }
    void begin_sum(std::span<double> numbers) { to_->begin_sum(numbers); }
    /// As the engine does it.
    void progress() { to_->progress(); }
    /// As the engine does it.
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

/// Some of the items of a list: those from `first` to before `last`.
struct share {
    std::size_t first = 0, last = 0;

    std::size_t size() const { return last - first; }  ///< how many
};

/// This rank's share of so many items: shares are contiguous, in the order of the ranks, and differ by one at most.
/// With fewer items than ranks some are empty.
template <ranks R>
share share_of(const R& over, std::size_t count)
{
    const std::size_t n = over.size(), r = over.rank(), each = count / n, more = count % n;
    const std::size_t first = r * each + std::min(r, more);
    return {first, first + each + (r < more ? 1 : 0)};
}

/// Every rank has rank 0's number, or another value that is copied byte by byte.
template <ranks R, class Value>
    requires(std::is_trivially_copyable_v<Value> && !parameterised<Value>)
void broadcast(R& over, Value& value) { over.broadcast(std::as_writable_bytes(std::span<Value, 1>(&value, 1)), 0); }

/// Every rank has rank 0's text, bytes or numbers, as many as it has.
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

/// Every rank has rank 0's parameters. Throws heed::error on every rank, and changes nothing, if the models differ in
/// the number or the sizes of their parameters.
template <class T, ranks R, parameterised M>
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
                        " are not as many, or not of the same sizes, as those of rank 0");
    }
    for (const auto& each : all)
        over.broadcast(std::as_writable_bytes(std::span(each.numbers.data, each.numbers.size())), 0);
}

}  // namespace heed::inline HEED_TARGET::distributed
