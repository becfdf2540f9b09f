// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX  // the C bindings only
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX
#endif
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <heed/core/errors.hpp>
#include <heed/kernels/rows.hpp>
#include <heed_mpi/ranks.hpp>

/// MPI for heed::distributed: `mpirun -n 4 program` starts four ranks, on one host or on many.
///
/// **Sums.** Each rank owns a part of the numbers. It receives this part from all other ranks, adds the values in rank
/// order, and sends the result to all ranks:
///
///     s_i = ((x_{0,i} + x_{1,i}) + x_{2,i}) + …                      2 (n-1)/n numbers sent and received for each one
///
/// All messages are point to point, so the order of a sum does not depend on the MPI implementation. Each number is
/// added once, by one rank, so that all have the same bits. Rabenseifner 2004 calls this a reduce-scatter and an
/// all-gather; it sends the minimum possible amount.
///
/// **Waiting.** A waiting rank polls for messages, at first continuously, then with pauses of up to a millisecond,
/// which leaves its core to other work.
///
/// **Failures.** If a rank is killed, mpirun terminates the others. If a rank exits with an exception, or ends while
/// others wait for it, the waiting ranks throw heed::error. MPI alone would wait forever.
namespace heed::inline HEED_TARGET::distributed {

/// The ranks started by an MPI launcher; a single rank in a program started without one.
///
/// The constructor starts MPI and the destructor ends it, unless the program has started MPI itself. Only one object
/// may exist at a time, and only one thread at a time may call its functions.
///
///     int main()
///     {
///         distributed::mpi ranks;
///         …
///     }
class mpi {
public:
    /// Starts MPI. `world`: the communicator, for a subset of the ranks.
    explicit mpi(MPI_Comm world = MPI_COMM_WORLD) : exceptions_(std::uncaught_exceptions())
    {
        int started = 0;
        MPI_Initialized(&started);
        int over = 0;
        MPI_Finalized(&over);
        if (over != 0)
            throw error(
                "MPI can be started only once per process and has already ended; keep one distributed::mpi in main");
        if (started == 0) {
            int provided = 0;
            require(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
            ours_ = true;
        }
        require(MPI_Comm_dup(world, &comm_),
                "MPI_Comm_dup");  // separates these messages from those of the program
        require(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
        int rank = 0, size = 1;
        require(MPI_Comm_rank(comm_, &rank), "MPI_Comm_rank");
        require(MPI_Comm_size(comm_, &size), "MPI_Comm_size");
        rank_ = static_cast<std::size_t>(rank);
        size_ = static_cast<std::size_t>(size);
        left_.assign(size_, 0);
        listen();
    }
    mpi(const mpi&) = delete;
    mpi& operator=(const mpi&) = delete;

    /// Ends MPI when all ranks have arrived. During an exception, notifies the other ranks and does not wait for them.
    ~mpi()
    {
        const bool failing = std::uncaught_exceptions() > exceptions_;
        say_goodbye(failing ? failed : ended);
        if (failing) {
            // Without MPI_Finalize, which would wait for the others. The launcher terminates them when this process
            // ends.
            return;
        }
        pause waiting;
        try {
            while (!all_left()) {
                hear();
                if (first_failed() < size_) return;
                waiting();
            }
        } catch (const error&) {
            return;
        }
        if (listening_ != MPI_REQUEST_NULL) {
            MPI_Cancel(&listening_);
            MPI_Wait(&listening_, MPI_STATUS_IGNORE);
        }
        MPI_Comm_free(&comm_);
        if (ours_) MPI_Finalize();
    }

    /// Whether a launcher (mpirun, mpiexec, srun with PMI) has started this process. Does not start MPI.
    static bool launched()
    {
        for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "MPI_LOCALNRANKS"})
            if (std::getenv(name) != nullptr) return true;
        return false;
    }

    std::size_t rank() const { return rank_; }  ///< number of this process
    std::size_t size() const { return size_; }  ///< number of processes

    /// Copies the bytes of rank `from` to every rank.
    void broadcast(std::span<std::byte> bytes, std::size_t from)
    {
        require_rank(from);
        for (std::size_t first = 0; first < bytes.size(); first += most_bytes) {
            const std::size_t count = std::min(most_bytes, bytes.size() - first);
            MPI_Request request = MPI_REQUEST_NULL;
            require(MPI_Ibcast(bytes.data() + first, static_cast<int>(count), MPI_BYTE, static_cast<int>(from), comm_,
                               &request),
                    "MPI_Ibcast");
            wait(request, "a broadcast");
        }
    }

    /// Replaces the numbers on every rank with their sum over all ranks, added in rank order.
    void sum(std::span<float> numbers)
    {
        begin_sum(numbers);
        finish();
    }
    void sum(std::span<double> numbers)
    {
        begin_sum(numbers);
        finish();
    }

    /// Starts a sum. The numbers must not be accessed until finish() returns.
    void begin_sum(std::span<float> numbers) { begin(numbers); }
    void begin_sum(std::span<double> numbers) { begin(numbers); }

    /// Advances the sums that have been started.
    void progress()
    {
        for (std::size_t i = 0; i < sums_.size(); ++i) {
            if (sums_[i]->active) advance(*sums_[i]);
        }
    }

    /// Returns when all started sums are complete.
    void finish()
    {
        pause waiting;
        for (;;) {
            progress();
            const bool busy = std::any_of(sums_.begin(), sums_.end(), [](const auto& each) { return each->active; });
            if (!busy) return;
            check_others("a sum", waiting.since());
            waiting();
        }
    }

    /// Gathers the bytes of each rank on every rank.
    void gather(std::span<const std::byte> mine, gathered& all)
    {
        counts_.assign(size_, 0);
        std::uint64_t count = mine.size();
        MPI_Request request = MPI_REQUEST_NULL;
        require(MPI_Iallgather(&count, 1, MPI_UINT64_T, counts_.data(), 1, MPI_UINT64_T, comm_, &request),
                "MPI_Iallgather");
        wait(request, "a gathering");
        all.ends.resize(size_);
        std::size_t total = 0;
        for (std::size_t r = 0; r < size_; ++r) all.ends[r] = total += static_cast<std::size_t>(counts_[r]);
        all.bytes.resize(total);
        if (total <= most_bytes) {
            lengths_.resize(size_);
            starts_.resize(size_);
            for (std::size_t r = 0; r < size_; ++r) {
                lengths_[r] = static_cast<int>(counts_[r]);
                starts_[r] = static_cast<int>(all.ends[r] - counts_[r]);
            }
            require(MPI_Iallgatherv(mine.data(), static_cast<int>(mine.size()), MPI_BYTE, all.bytes.data(),
                                    lengths_.data(), starts_.data(), MPI_BYTE, comm_, &request),
                    "MPI_Iallgatherv");
            wait(request, "a gathering");
            return;
        }
        for (std::size_t r = 0; r < size_; ++r) {
            const std::size_t first = all.ends[r] - static_cast<std::size_t>(counts_[r]);
            if (r == rank_) std::copy(mine.begin(), mine.end(), all.bytes.data() + first);
            broadcast({all.bytes.data() + first, static_cast<std::size_t>(counts_[r])}, r);
        }
    }
    std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine)
    {
        gathered all;
        gather(mine, all);
        return separated(all);
    }

    /// Returns when every rank has called it.
    void barrier()
    {
        MPI_Request request = MPI_REQUEST_NULL;
        require(MPI_Ibarrier(comm_, &request), "MPI_Ibarrier");
        wait(request, "a barrier");
    }

private:
    static constexpr std::size_t most_bytes = std::size_t{1} << 30;   // per message: MPI counts in int
    static constexpr std::size_t small_bytes = std::size_t{1} << 12;  // smaller sums are sent whole to all: one phase
    static constexpr int last_tag = 32000, goodbye_tag = 32001;       // every MPI supports tags up to 32767
    enum : unsigned char { here = 0, ended = 1, failed = 2 };

    /// Polls continuously at first, and rarely later, which leaves the core to other work.
    class pause {
    public:
        void operator()()
        {
            ++looks_;
            if (looks_ < 200) return;
            if (looks_ == 200) start_ = std::chrono::steady_clock::now();
            const auto waited = since();
            if (waited < std::chrono::milliseconds(1)) {
                std::this_thread::yield();
            } else {
                // MPI progresses only when polled, so long pauses are used only in long waits.
                const bool busy = waited < std::chrono::milliseconds(500);
                std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(
                    waited / 20, busy ? std::chrono::microseconds(20) : std::chrono::microseconds(1000)));
            }
        }
        /// Waiting time so far; 0 at first.
        std::chrono::nanoseconds since() const
        {
            return looks_ < 200 ? std::chrono::nanoseconds(0) : std::chrono::steady_clock::now() - start_;
        }

    private:
        std::size_t looks_ = 0;
        std::chrono::steady_clock::time_point start_{};
    };

    /// A sum in progress: parts are collected, then results are sent; or all numbers are sent to all ranks, and each
    /// adds.
    struct summing {
        bool active = false, doubles = false, small = false, collected = false;
        void* numbers = nullptr;
        std::size_t count = 0;
        int tag = 0;
        std::vector<MPI_Request> requests{};
        std::vector<std::byte> arrived{};  // [size,longest]
    };

    void require(int result, const char* call) const
    {
        if (result == MPI_SUCCESS) return;
        std::array<char, MPI_MAX_ERROR_STRING> text{};
        int length = 0;
        MPI_Error_string(result, text.data(), &length);
        throw error("rank " + std::to_string(rank_) + " of " + std::to_string(size_) + ": " + call +
                    " failed: " + std::string(text.data(), static_cast<std::size_t>(length)));
    }

    void require_rank(std::size_t rank) const
    {
        if (rank >= size_)
            throw error("there is no rank " + std::to_string(rank) + ", only " + counted(size_, "rank") + " from 0 on");
    }

    // ---- sums ----

    /// The first number of a rank's part.
    std::size_t part(std::size_t count, std::size_t rank) const
    {
        return count / size_ * rank + std::min(rank, count % size_);
    }
    std::size_t longest(const summing& s) const { return s.small ? s.count : (s.count + size_ - 1) / size_; }

    template <class T>
    void begin(std::span<T> numbers)
    {
        if (size_ == 1) return;
        const std::size_t most = most_bytes / sizeof(T);
        for (std::size_t first = 0; first < numbers.size(); first += most)
            begin_piece(numbers.subspan(first, std::min(most, numbers.size() - first)));
    }

    template <class T>
    void begin_piece(std::span<T> numbers)
    {
        auto free = std::find_if(sums_.begin(), sums_.end(), [](const auto& each) { return !each->active; });
        if (free == sums_.end()) free = sums_.insert(sums_.end(), std::make_unique<summing>());
        summing& s = **free;
        s.doubles = std::is_same_v<T, double>;
        s.small = numbers.size_bytes() <= small_bytes;
        s.collected = false;
        s.numbers = numbers.data();
        s.count = numbers.size();
        s.tag = next_tag_;
        next_tag_ = next_tag_ + 2 >= last_tag ? 0 : next_tag_ + 2;
        if (const std::size_t bytes = size_ * longest(s) * sizeof(T); s.arrived.size() < bytes) s.arrived.resize(bytes);
        s.requests.clear();
        s.active = true;
        for (std::size_t r = 0; r < size_; ++r) {
            if (r == rank_) continue;
            T* const from_r = reinterpret_cast<T*>(s.arrived.data()) + r * longest(s);
            if (s.small) {
                receive(s, from_r, s.count, r, s.tag);
                send(s, numbers.data(), s.count, r, s.tag);
            } else {
                const std::size_t mine = part(s.count, rank_), its = part(s.count, r);
                receive(s, from_r, part(s.count, rank_ + 1) - mine, r, s.tag);
                send(s, numbers.data() + its, part(s.count, r + 1) - its, r, s.tag);
            }
        }
        advance(s);
    }

    template <class T>
    void receive(summing& s, T* to, std::size_t count, std::size_t from, int tag)
    {
        if (count == 0) return;
        s.requests.push_back(MPI_REQUEST_NULL);
        require(MPI_Irecv(to, static_cast<int>(count * sizeof(T)), MPI_BYTE, static_cast<int>(from), tag, comm_,
                          &s.requests.back()),
                "MPI_Irecv");
    }
    template <class T>
    void send(summing& s, const T* from, std::size_t count, std::size_t to, int tag)
    {
        if (count == 0) return;
        s.requests.push_back(MPI_REQUEST_NULL);
        require(MPI_Isend(from, static_cast<int>(count * sizeof(T)), MPI_BYTE, static_cast<int>(to), tag, comm_,
                          &s.requests.back()),
                "MPI_Isend");
    }

    void advance(summing& s)
    {
        int done = 0;
        require(MPI_Testall(static_cast<int>(s.requests.size()), s.requests.data(), &done, MPI_STATUSES_IGNORE),
                "MPI_Testall");
        if (done == 0) return;
        if (s.doubles) {
            arrived<double>(s);
        } else {
            arrived<float>(s);
        }
    }

    /// All messages of this phase are complete.
    template <class T>
    void arrived(summing& s)
    {
        T* const numbers = static_cast<T*>(s.numbers);
        if (s.collected) {
            s.active = false;
            return;
        }
        const std::size_t first = s.small ? 0 : part(s.count, rank_);
        const std::size_t count = s.small ? s.count : part(s.count, rank_ + 1) - first;
        add_in_order(s, numbers + first, count);
        if (s.small) {
            s.active = false;
            return;
        }
        s.collected = true;
        s.requests.clear();
        for (std::size_t r = 0; r < size_; ++r) {
            if (r == rank_) continue;
            const std::size_t its = part(s.count, r);
            receive(s, numbers + its, part(s.count, r + 1) - its, r, s.tag + 1);
            send(s, numbers + first, count, r, s.tag + 1);
        }
        advance(s);
    }

    /// own ← ((x_0 + x_1) + x_2) + …, in blocks that fit in the cache.
    template <class T>
    void add_in_order(summing& s, T* own, std::size_t count)
    {
        constexpr std::size_t block = 4096;
        T* const all = reinterpret_cast<T*>(s.arrived.data());
        for (std::size_t i = 0; i < count; i += block) {
            const std::size_t width = std::min(block, count - i);
            const auto of = [&](std::size_t r) { return (r == rank_ ? own : all + r * longest(s)) + i; };
            T* const total = of(0);
            for (std::size_t r = 1; r < size_; ++r) kernels::add(width, total, of(r));
            if (rank_ != 0) std::copy_n(total, width, own + i);
        }
    }

    // ---- waiting ----

    void wait(MPI_Request& request, const char* what)
    {
        pause waiting;
        for (;;) {
            int done = 0;
            require(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
            if (done != 0) return;
            progress();
            check_others(what, waiting.since());
            waiting();
        }
    }

    /// Throws heed::error if a rank that this rank waits for has left. Messages that it sent before may still arrive,
    /// so this rank waits a little longer after the notice.
    void check_others(const char* what, std::chrono::nanoseconds waited)
    {
        if (waited < std::chrono::milliseconds(1)) return;
        hear();
        if (const std::size_t bad = first_failed(); bad < size_)
            throw error("rank " + std::to_string(bad) + " of " + std::to_string(size_) + " ended with an error; rank " +
                        std::to_string(rank_) + ", which waits for it in " + what + ", ends as well");
        for (std::size_t r = 0; r < size_; ++r) {
            if (left_[r] == ended && waited > std::chrono::seconds(2))
                throw error("rank " + std::to_string(r) + " of " + std::to_string(size_) + " has ended, but rank " +
                            std::to_string(rank_) + " waits for it in " + what +
                            "; every rank must make the same calls in the same order");
        }
    }

    // ---- other ranks that leave ----

    void listen()
    {
        if (size_ > 1)
            require(MPI_Irecv(&heard_, 1, MPI_BYTE, MPI_ANY_SOURCE, goodbye_tag, comm_, &listening_), "MPI_Irecv");
    }

    /// Records the ranks that have left.
    void hear()
    {
        while (listening_ != MPI_REQUEST_NULL) {
            int done = 0;
            MPI_Status status{};
            require(MPI_Test(&listening_, &done, &status), "MPI_Test");
            if (done == 0) return;
            left_[static_cast<std::size_t>(status.MPI_SOURCE)] = heard_;
            listen();
        }
    }

    void say_goodbye(unsigned char how) noexcept
    {
        goodbye_ = how;
        left_[rank_] = how;
        for (std::size_t r = 0; r < size_; ++r) {
            if (r == rank_) continue;
            MPI_Request request = MPI_REQUEST_NULL;
            if (MPI_Isend(&goodbye_, 1, MPI_BYTE, static_cast<int>(r), goodbye_tag, comm_, &request) == MPI_SUCCESS)
                MPI_Request_free(&request);  // one byte: it is in transit
        }
    }

    bool all_left() const { return std::find(left_.begin(), left_.end(), here) == left_.end(); }
    std::size_t first_failed() const
    {
        for (std::size_t r = 0; r < size_; ++r)
            if (r != rank_ && left_[r] == failed) return r;
        return size_;
    }

    int exceptions_;  // in transit when this began
    bool ours_ = false;
    MPI_Comm comm_ = MPI_COMM_NULL;
    std::size_t rank_ = 0, size_ = 1;
    std::vector<std::unique_ptr<summing>> sums_{};
    int next_tag_ = 0;
    std::vector<std::uint64_t> counts_{};
    std::vector<int> lengths_{}, starts_{};
    std::vector<unsigned char> left_{};
    unsigned char heard_ = here, goodbye_ = here;
    MPI_Request listening_ = MPI_REQUEST_NULL;
};

}  // namespace heed::inline HEED_TARGET::distributed
