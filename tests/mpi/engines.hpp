// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include <heed_mpi/ranks.hpp>

namespace support {

/// f(ranks) on every rank: under mpirun once, on its ranks; otherwise on 1, 2, 3 and 4 ranks that are threads of this
/// process.
void on_ranks(const std::function<void(heed::distributed::any_ranks&)>& f);

/// Whether the ranks are MPI processes.
bool by_mpi();

/// Wraps an engine and counts its calls.
class noting {
public:
    explicit noting(heed::distributed::any_ranks to) : to_(std::move(to)) {}

    std::size_t begun = 0;     // sums started by begin_sum()
    std::size_t moved_on = 0;  // calls of progress() after the first of these

    std::size_t rank() const { return to_.rank(); }
    std::size_t size() const { return to_.size(); }
    void broadcast(std::span<std::byte> bytes, std::size_t from) { to_.broadcast(bytes, from); }
    void sum(std::span<float> numbers) { to_.sum(numbers); }
    void sum(std::span<double> numbers) { to_.sum(numbers); }
    void gather(std::span<const std::byte> mine, heed::distributed::gathered& all) { to_.gather(mine, all); }
    std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine) { return to_.gather(mine); }
    void barrier() { to_.barrier(); }
    void begin_sum(std::span<float> numbers) { begin(numbers); }
    void begin_sum(std::span<double> numbers) { begin(numbers); }
    void progress()
    {
        if (begun > 0) ++moved_on;
        to_.progress();
    }
    void finish() { to_.finish(); }

private:
    template <class T>
    void begin(std::span<T> numbers)
    {
        ++begun;
        to_.begin_sum(numbers);
    }

    heed::distributed::any_ranks to_;
};

}  // namespace support
