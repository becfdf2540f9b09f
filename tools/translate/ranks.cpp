// SPDX-License-Identifier: BSD-3-Clause
#include "ranks.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <unistd.h>

#include <heed/core/random.hpp>

#ifdef HEED_DISTRIBUTED
#include <heed_mpi/mpi.hpp>
#endif

#include "../support/launched.hpp"
#include "interrupt.hpp"
#include "progress.hpp"

namespace translation {

any_ranks& alone()
{
    static heed::distributed::alone one;
    static any_ranks ranks(one);
    return ranks;
}

int with_ranks(const std::function<int(any_ranks&)>& work)
{
    const auto started = program::launched_as::of_environment();
    if (started.size <= 1) return work(alone());
#ifdef HEED_DISTRIBUTED
    heed::distributed::mpi engine;
    any_ranks ranks(engine);
    try {
        const int status = work(ranks);
        ranks.barrier();
        return status;
    } catch (const error_of_all& problem) {
        if (ranks.rank() == 0) say("translate: " + std::string(problem.what()));
        return 1;
    } catch (const program::misuse& problem) {
        if (ranks.rank() == 0) say("translate: " + std::string(problem.what()));
        return program::misuse_status;
    }
#else
    if (started.rank != 0) return 0;  // the launcher would terminate all processes
    throw heed::error(fmt::format("started as {} processes, but built without MPI: each would do all the work "
                                  "on the same files. Build it with MPI (Debian: libopenmpi-dev), or start it "
                                  "without mpirun",
                                  started.size));
#endif
}

int interrupted(any_ranks& over)
{
    const int here = interrupted();
    if (over.size() == 1) return here;
    double signals[2] = {static_cast<double>(here), here != 0 ? 1.0 : 0.0};
    over.sum(std::span<double>(signals));
    return signals[1] == 0 ? 0 : static_cast<int>(signals[0] / signals[1]);
}

bool any_of(any_ranks& over, bool here)
{
    double count = here ? 1 : 0;
    over.sum(std::span<double>(&count, 1));
    return count > 0;
}

void require_same(any_ranks& over, std::uint64_t hash, const std::string& what)
{
    if (over.size() == 1) return;
    const auto all = over.gather(std::as_bytes(std::span(&hash, 1)));
    for (std::size_t r = 1; r < all.size(); ++r) {
        if (all[r] != all[0])
            throw error_of_all(
                fmt::format("rank {} has a different {} than rank 0: every process must read the same files "
                            "and run the same program on the same kind of processor",
                            r, what));
    }
}

std::uint64_t hash_of(const system& of)
{
    std::uint64_t hash = 1;
    for (const auto& [name, values] : of.parameters()) {
        std::size_t i = 0;
        for (; i + 2 <= values.size(); i += 2) {
            std::uint64_t two = 0;
            std::memcpy(&two, values.data + i, sizeof two);
            hash = (hash ^ two) * 0x9e3779b97f4a7c15u;
            hash ^= hash >> 29;
        }
        std::uint32_t last = 0;
        if (i < values.size()) std::memcpy(&last, values.data + i, sizeof last);
        hash = heed::mix(hash ^ last);
    }
    return hash;
}

struct end_with_the_others::watch {
    std::atomic<std::size_t> steps{0};
    std::size_t rank = 0;
    std::string advice;
    double patience = 0;  // in seconds
    bool over = false;
    std::mutex mutex;
    std::condition_variable changed;
    std::thread thread;

    void look()
    {
        using namespace std::chrono_literals;
        std::unique_lock lock(mutex);
        clock::time_point since{};
        std::size_t before = 0;
        bool asked = false;
        while (!changed.wait_for(lock, 50ms, [this] { return over; })) {
            if (interrupted() == 0) continue;
            const std::size_t now = steps.load();
            if (!asked || now != before) {
                asked = true;
                before = now;
                since = clock::now();
            } else if (seconds_since(since) > patience) {
                const std::string text =
                    fmt::format("translate, rank {}: received signal {}, and no step completed within {:.1f} s: "
                                "another process has died, or a step takes longer than the launcher waits{}\n",
                                rank, interrupted(), patience, advice);
                // No flush, no destructors: the other thread may be at any point.
                if (::write(STDERR_FILENO, text.data(), text.size()) < 0) std::_Exit(1);
                std::_Exit(1);
            }
        }
    }
};

end_with_the_others::end_with_the_others(const any_ranks& over, std::string advice)
{
    if (over.size() == 1) return;
    watch_ = new watch;
    watch_->rank = over.rank();
    watch_->advice = std::move(advice);
    // mpirun kills this many seconds after its signal.
    const auto until_killed =
        static_cast<double>(program::number_of_environment("OMPI_MCA_odls_base_sigkill_timeout", 1));
    watch_->patience = std::max(0.5 * until_killed, until_killed - 1);
    watch_->thread = std::thread([this] { watch_->look(); });
}

end_with_the_others::~end_with_the_others() { end(); }

void end_with_the_others::end()
{
    if (watch_ == nullptr) return;
    {
        const std::lock_guard lock(watch_->mutex);
        watch_->over = true;
    }
    watch_->changed.notify_all();
    watch_->thread.join();
    delete watch_;
    watch_ = nullptr;
}

void end_with_the_others::step()
{
    if (watch_ != nullptr) watch_->steps.fetch_add(1);
}

}  // namespace translation
