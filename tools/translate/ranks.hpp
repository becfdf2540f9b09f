// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <heed/core/errors.hpp>
#include <heed/seq2seq/decoding.hpp>
#include <heed_mpi/ranks.hpp>
#include <heed_translator/load.hpp>
#include <heed_translator/system.hpp>

#include "../support/misuse.hpp"
#include "library.hpp"
#include "sums_over.hpp"

/// One command in several processes: `mpirun -n 4 translate train …`. Only rank 0 reads standard input, writes files
/// and prints.
namespace translation {

using heed::distributed::any_ranks;

/// Runs work(ranks) in each process that a launcher has started, or in this process only, and returns its status.
/// Throws heed::error in each process if there are several and this program is built without MPI.
int with_ranks(const std::function<int(any_ranks&)>& work);

/// A single process.
any_ranks& alone();

/// An error that every rank throws: rank 0 prints it.
struct error_of_all : heed::error {
    using heed::error::error;
};

/// Runs work(), which may fail in a single rank: then all ranks throw the error of the first one that failed.
template <class F>
void agree(any_ranks& over, F&& work)
{
    if (over.size() == 1) {
        work();
        return;
    }
    std::string problem;
    try {
        work();
    } catch (const program::misuse&) {
        throw;  // in all ranks, which have the same command line
    } catch (const std::bad_alloc&) {
        problem = "out of memory; use smaller --batch, --hidden or --embedding, or fewer processes per host";
    } catch (const std::exception& reason) {
        problem = *reason.what() == '\0' ? "failed" : reason.what();
    }
    const auto all = over.gather(std::as_bytes(std::span(problem)));
    for (std::size_t r = 0; r < all.size(); ++r) {
        if (all[r].empty()) continue;
        const std::string text(reinterpret_cast<const char*>(all[r].data()), all[r].size());
        throw error_of_all(r == 0 ? text : fmt::format("rank {}: {}", r, text));
    }
}

/// The signal that any of the ranks received, or 0; every rank gets the same result.
int interrupted(any_ranks& over);

/// Whether `here` is true in any rank.
bool any_of(any_ranks& over, bool here);

/// Throws heed::error in each rank unless all ranks have the same number; `what` names it in the message.
void require_same(any_ranks& over, std::uint64_t hash, const std::string& what);

/// A hash of all parameters of a system.
std::uint64_t hash_of(const system& of);

/// Exits with a message if this process received a signal and no step completes afterwards: mpirun sends a signal when
/// another process has died, and kills shortly after. While an object of this class exists, a thread monitors this.
/// `advice` ends the message.
class end_with_the_others {
public:
    end_with_the_others(const any_ranks& over, std::string advice);
    ~end_with_the_others();
    end_with_the_others(const end_with_the_others&) = delete;
    end_with_the_others& operator=(const end_with_the_others&) = delete;

    /// Reports that a step has completed, so this process and the others are alive.
    void step();
    /// Stops monitoring; all ranks have agreed to end.
    void end();

private:
    struct watch;
    watch* watch_ = nullptr;
};

// ---- values as bytes

/// Values packed consecutively.
class packed_values {
public:
    void put(const std::string& text)
    {
        put(text.size());
        put_bytes(text.data(), text.size());
    }
    void put(const std::vector<bool>& flags)
    {
        put(flags.size());
        for (const bool each : flags) put(static_cast<unsigned char>(each));
    }
    template <class T>
    void put(const std::vector<T>& all)
    {
        put(all.size());
        if constexpr (std::is_trivially_copyable_v<T>) {
            put_bytes(all.data(), all.size() * sizeof(T));
        } else {
            for (const T& each : all) put(each);
        }
    }
    template <class T>
        requires(std::is_arithmetic_v<T>)
    void put(T value) { put_bytes(&value, sizeof value); }
    void put(const heed::seq2seq::translation<float>& x)
    {
        each_member(x, [this](const auto& member) { put(member); });
    }
    void put(const heed::seq2seq::translated& x)
    {
        each_member(x, [this](const auto& member) { put(member); });
    }

    std::span<const std::byte> bytes() const { return bytes_; }
    std::vector<std::byte>& memory() { return bytes_; }

    static void each_member(auto& x, auto&& f) requires requires { x.pieces; }
    {
        f(x.text), f(x.score), f(x.log_probability), f(x.words), f(x.unknown), f(x.pieces), f(x.ids), f(x.alignment),
            f(x.piece_alignment);
    }
    static void each_member(auto& x, auto&& f) requires requires { x.weights; }
    {
        f(x.words), f(x.weights), f(x.log_probability), f(x.score);
    }

private:
    void put_bytes(const void* from, std::size_t count)
    {
        const std::size_t at = bytes_.size();
        bytes_.resize(at + count);
        if (count > 0) std::memcpy(bytes_.data() + at, from, count);
    }

    std::vector<std::byte> bytes_;
};

/// The inverse of packed_values; reads the bytes of one.
class unpacked_values {
public:
    explicit unpacked_values(std::span<const std::byte> bytes) : rest_(bytes) {}

    bool empty() const { return rest_.empty(); }

    template <class T>
    T take()
    {
        T value{};
        take(value);
        return value;
    }
    void take(std::string& text)
    {
        text.resize(take<std::size_t>());
        take_bytes(text.data(), text.size());
    }
    void take(std::vector<bool>& flags)
    {
        flags.resize(take<std::size_t>());
        for (std::size_t i = 0; i < flags.size(); ++i) flags[i] = take<unsigned char>() != 0;
    }
    template <class T>
    void take(std::vector<T>& all)
    {
        all.resize(take<std::size_t>());
        if constexpr (std::is_trivially_copyable_v<T>) {
            take_bytes(all.data(), all.size() * sizeof(T));
        } else {
            for (T& each : all) take(each);
        }
    }
    template <class T>
        requires(std::is_arithmetic_v<T>)
    void take(T& value) { take_bytes(&value, sizeof value); }
    void take(heed::seq2seq::translation<float>& x)
    {
        packed_values::each_member(x, [this](auto& member) { take(member); });
    }
    void take(heed::seq2seq::translated& x)
    {
        packed_values::each_member(x, [this](auto& member) { take(member); });
    }

private:
    void take_bytes(void* to, std::size_t count)
    {
        if (count > rest_.size()) throw heed::error("a message from another process is too short");
        if (count > 0) std::memcpy(to, rest_.data(), count);
        rest_ = rest_.subspan(count);
    }

    std::span<const std::byte> rest_;
};

/// Gives every rank the items of all ranks, for items that are empty elsewhere: has(item) returns whether this rank has
/// it.
template <class T>
void share_items(any_ranks& over, std::vector<T>& all, auto&& has)
{
    if (over.size() == 1) return;
    packed_values mine;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!has(all[i])) continue;
        mine.put(i);
        mine.put(all[i]);
    }
    heed::distributed::gathered theirs;
    over.gather(mine.bytes(), theirs);
    for (std::size_t r = 0; r < over.size(); ++r) {
        if (r == over.rank()) continue;
        for (unpacked_values from(theirs.of(r)); !from.empty();) from.take(all.at(from.take<std::size_t>()));
    }
}

}  // namespace translation
