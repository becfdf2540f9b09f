// SPDX-License-Identifier: BSD-3-Clause
//
// The tests of heed::distributed, on two engines: threads of one process, or MPI if mpirun starts this program.
//
//     mpirun -n 3 distributed                    the tests
//     mpirun -n 3 distributed --end throws       one rank ends in this way, see ends.sh

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <algorithm>
#include <barrier>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "engines.hpp"

#ifdef HEED_DISTRIBUTED
#include <heed_mpi/mpi.hpp>
#endif

using heed::distributed::any_ranks;

namespace {

/// State shared by cooperating threads: a slot through which each thread shows data to the others.
struct meeting {
    explicit meeting(std::size_t ranks) : all(static_cast<std::ptrdiff_t>(ranks)), shown(ranks) {}

    std::barrier<> all;
    std::vector<std::span<const std::byte>> shown;
};

/// A rank that is a thread. It cannot overlap sums with computation.
class thread_rank {
public:
    thread_rank(meeting& with, std::size_t rank) : with_(with), rank_(rank) {}

    std::size_t rank() const { return rank_; }
    std::size_t size() const { return with_.shown.size(); }

    void broadcast(std::span<std::byte> bytes, std::size_t from)
    {
        show(bytes);
        const auto got = with_.shown[from];
        CHECK(got.size() == bytes.size());
        if (rank_ != from) std::copy(got.begin(), got.end(), bytes.begin());
        barrier();
    }
    void sum(std::span<float> numbers) { sum_of(numbers); }
    void sum(std::span<double> numbers) { sum_of(numbers); }
    void gather(std::span<const std::byte> mine, heed::distributed::gathered& all)
    {
        show(mine);
        all.bytes.clear();
        all.ends.clear();
        for (const auto& each : with_.shown) {
            all.bytes.insert(all.bytes.end(), each.begin(), each.end());
            all.ends.push_back(all.bytes.size());
        }
        barrier();
    }
    std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine)
    {
        heed::distributed::gathered all;
        gather(mine, all);
        return heed::distributed::separated(all);
    }
    void barrier() { with_.all.arrive_and_wait(); }

private:
    void show(std::span<const std::byte> bytes)
    {
        with_.shown[rank_] = bytes;
        barrier();
    }

    template <class T>
    void sum_of(std::span<T> numbers)
    {
        show(std::as_bytes(numbers));
        std::vector<T> total(numbers.size());
        for (std::size_t r = 0; r < size(); ++r) {
            const auto* const x = reinterpret_cast<const T*>(with_.shown[r].data());
            CHECK(with_.shown[r].size() == numbers.size_bytes());
            for (std::size_t i = 0; i < total.size(); ++i) total[i] = r == 0 ? x[i] : total[i] + x[i];
        }
        barrier();
        std::copy(total.begin(), total.end(), numbers.begin());
    }

    meeting& with_;
    std::size_t rank_;
};

static_assert(heed::distributed::ranks<thread_rank> && !heed::distributed::sums_meanwhile<thread_rank>);

std::unique_ptr<any_ranks> started;  // the ranks of mpirun

#ifdef HEED_DISTRIBUTED

static_assert(heed::distributed::sums_meanwhile<heed::distributed::mpi>);

/// Ends the last rank as `how` states while the others wait for it.
int end(heed::distributed::mpi& ranks, const std::string& how)
{
    float one = 1;
    ranks.sum({&one, 1});
    if (how == "throws-amid") {  // for example in the backward pass, while sums are in progress
        std::vector<float> many(1 << 22, 1.0f), more(1 << 10, 1.0f);
        ranks.begin_sum(many);
        ranks.begin_sum(more);
        if (ranks.rank() + 1 == ranks.size()) throw heed::error("the memory of this rank is full");
        ranks.finish();
    }
    if (ranks.rank() + 1 == ranks.size()) {
        if (how == "killed") std::raise(SIGKILL);
        if (how == "throws") throw heed::error("the disk of this rank is full");
        if (how == "returns") return 0;
        if (how == "exits") std::_Exit(3);
    }
    for (;;) ranks.sum({&one, 1});
}

#endif

}  // namespace

void support::on_ranks(const std::function<void(any_ranks&)>& f)
{
    if (started) {
        f(*started);
        return;
    }
    for (std::size_t n = 1; n <= 4; ++n) {
        meeting with(n);
        std::vector<std::thread> threads;
        for (std::size_t r = 0; r < n; ++r) {
            threads.emplace_back([&with, &f, r] {
                try {
                    thread_rank mine(with, r);
                    any_ranks any(mine);
                    f(any);
                } catch (const std::exception& problem) {
                    std::fprintf(stderr, "rank %zu: %s\n", r, problem.what());
                    std::_Exit(1);  // the others wait
                }
            });
        }
        for (std::thread& each : threads) each.join();
    }
}

bool support::by_mpi() { return started != nullptr; }

int main(int argc, char** argv)
{
#ifdef HEED_DISTRIBUTED
    if (heed::distributed::mpi::launched()) {
        try {
            heed::distributed::mpi ranks;
            if (argc > 2 && std::string(argv[1]) == "--end") return end(ranks, argv[2]);
            started = std::make_unique<any_ranks>(ranks);
            const int failed = doctest::Context(argc, argv).run();
            started.reset();
            return failed;
        } catch (const std::exception& problem) {
            std::fprintf(stderr, "%s\n", problem.what());
            return 1;
        }
    }
#endif
    return doctest::Context(argc, argv).run();
}
