// SPDX-License-Identifier: BSD-3-Clause
#include <heed/core/parallel.hpp>

#include <doctest/doctest.h>

#include <heed/core/random.hpp>
#include <heed/core/workspace.hpp>
#include <heed/gemm/blas.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <memory>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

using namespace heed;

namespace {

/// Sets the number of threads for a scope.
struct with_threads {
    explicit with_threads(std::size_t count) { set_threads(count); }
    ~with_threads() { set_threads(1); }
};

struct shard {
    std::size_t begin, end, number;
};

std::vector<shard> shards_of(std::size_t count, std::size_t grain, std::size_t align = 1)
{
    std::mutex lock;
    std::vector<shard> all;
    parallel_for(
        count, grain,
        [&](std::size_t begin, std::size_t end, std::size_t number) {
            const std::lock_guard<std::mutex> guard(lock);
            all.push_back({begin, end, number});
        },
        align);
    std::sort(all.begin(), all.end(), [](const shard& a, const shard& b) { return a.begin < b.begin; });
    return all;
}

}  // namespace

TEST_CASE("one thread by default; 0 uses all")
{
    CHECK(threads() == 1);
    {
        const with_threads scope(3);
        CHECK(threads() == 3);
    }
    CHECK(threads() == 1);
    const with_threads scope(0);
    CHECK(threads() == std::max(1u, std::thread::hardware_concurrency()));
}

TEST_CASE("every element once, in contiguous shards that begin at multiples of align")
{
    for (const std::size_t thread_count : {1u, 2u, 3u}) {
        const with_threads scope(thread_count);
        for (const std::size_t count : {0u, 1u, 2u, 3u, 15u, 16u, 17u, 64u, 1000u}) {
            for (const std::size_t align : {1u, 4u, 16u}) {
                CAPTURE(thread_count);
                CAPTURE(count);
                CAPTURE(align);
                const auto shards = shards_of(count, 1, align);
                std::size_t next = 0;
                for (const shard& s : shards) {
                    CHECK(s.begin == next);
                    CHECK(s.end > s.begin);
                    CHECK(s.begin % align == 0);
                    CHECK(s.number < thread_count);
                    next = s.end;
                }
                CHECK(next == count);
                CHECK(shards.size() <= thread_count);
            }
        }
        CHECK(shards_of(1000, 1).size() == thread_count);
    }
}

TEST_CASE("too little work is not split")
{
    const with_threads scope(3);
    CHECK(shards_of(100, 100).size() == 1);
    CHECK(shards_of(100, 1000).size() == 1);
    CHECK(shards_of(101, 100).size() == 2);
    CHECK(shards_of(200, 100).size() == 2);
    CHECK(shards_of(201, 100).size() == 3);
    CHECK(shards_of(1000, 100).size() == 3);
    CHECK(shards_of(100, 0).size() == 3);
}

TEST_CASE("shards are the same every time, and run on separate threads")
{
    const with_threads scope(2);
    for (int again = 0; again < 20; ++again) {
        const auto shards = shards_of(101, 1);
        REQUIRE(shards.size() == 2);
        CHECK(shards[0].end == 50);
        CHECK(shards[0].number == 0);
        CHECK(shards[1].number == 1);
    }
    std::vector<std::thread::id> ids(2);
    parallel_for(2, 1, [&](std::size_t, std::size_t, std::size_t number) { ids[number] = std::this_thread::get_id(); });
    CHECK(ids[0] == std::this_thread::get_id());
    CHECK(ids[0] != ids[1]);
}

TEST_CASE("many rounds: writes of a round are visible in the next")
{
    const with_threads scope(3);
    std::vector<int> x(300, 0), before;
    for (int round = 0; round < 600; ++round) {
        before = x;
        parallel_for(x.size(), 1, [&](std::size_t begin, std::size_t end, std::size_t) {
            for (std::size_t i = begin; i < end; ++i) x[i] = before[(i + 150) % 300] + 1;
        });
    }
    CHECK(std::all_of(x.begin(), x.end(), [](int v) { return v == 600; }));
}

TEST_CASE("sleeping workers wake up")
{
    const with_threads scope(2);
    std::atomic<int> done{0};
    for (int round = 0; round < 3; ++round) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        parallel_for(2, 1, [&](std::size_t, std::size_t, std::size_t) { ++done; });
    }
    CHECK(done == 6);
}

TEST_CASE("nested work inside a shard is not split")
{
    const with_threads scope(2);
    std::vector<std::vector<shard>> inner(2);
    parallel_for(2, 1, [&](std::size_t, std::size_t, std::size_t number) {
        const auto here = std::this_thread::get_id();
        parallel_for(10, 1, [&](std::size_t begin, std::size_t end, std::size_t n) {
            CHECK(std::this_thread::get_id() == here);
            inner[number].push_back({begin, end, n});
        });
    });
    for (const auto& shards : inner) {
        REQUIRE(shards.size() == 1);
        CHECK(shards[0].begin == 0);
        CHECK(shards[0].end == 10);
    }
    CHECK(shards_of(10, 1).size() == 2);  // outside, work is split again
}

TEST_CASE("two user threads at once: each completes its own work")
{
    const with_threads scope(2);
    const auto work = [](std::vector<int>& x) {
        for (int round = 0; round < 200; ++round) {
            parallel_for(x.size(), 1, [&](std::size_t begin, std::size_t end, std::size_t) {
                for (std::size_t i = begin; i < end; ++i) ++x[i];
            });
        }
    };
    std::vector<int> a(100, 0), b(100, 0);
    std::thread other([&] { work(a); });
    work(b);
    other.join();
    CHECK(std::all_of(a.begin(), a.end(), [](int v) { return v == 200; }));
    CHECK(std::all_of(b.begin(), b.end(), [](int v) { return v == 200; }));
}

TEST_CASE("an exception in a shard is rethrown once, and the pool remains usable")
{
    const with_threads scope(2);
    const auto throwing = [](std::size_t which) {
        std::string text;
        try {
            parallel_for(2, 1, [&](std::size_t, std::size_t, std::size_t number) {
                if (which == 2 || number == which) throw std::runtime_error("shard " + std::to_string(number));
            });
        } catch (const std::runtime_error& e) {
            text = e.what();
        }
        return text;
    };
    CHECK(throwing(0) == "shard 0");
    CHECK(throwing(1) == "shard 1");
    CHECK(throwing(2) == "shard 0");  // both throw: the first exception is rethrown
    CHECK(throwing(3) == "");         // the other is not rethrown later
    CHECK(shards_of(10, 1).size() == 2);
}

TEST_CASE("an exception with one thread, and from a call inside a shard")
{
    CHECK_THROWS_AS(parallel_for(5, 1, [](std::size_t, std::size_t, std::size_t) { throw std::runtime_error("x"); }),
                    std::runtime_error);
    const with_threads scope(2);
    CHECK_THROWS_AS(parallel_for(2, 1,
                                 [](std::size_t, std::size_t, std::size_t) {
                                     parallel_for(2, 1, [](std::size_t, std::size_t, std::size_t) {
                                         throw std::runtime_error("x");
                                     });
                                 }),
                    std::runtime_error);
    CHECK(shards_of(10, 1).size() == 2);
}

// Program exit, and child processes.

// In a child of fork(), memory of the parent's other threads is unreachable, which is not a leak.
static bool is_child = false;
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() { return is_child ? 1 : 0; }

namespace {

#if defined(__has_feature)
constexpr bool has_thread_sanitizer = __has_feature(thread_sanitizer);
#elif defined(__SANITIZE_THREAD__)
constexpr bool has_thread_sanitizer = true;
#else
constexpr bool has_thread_sanitizer = false;
#endif
constexpr bool threads_after_fork = !has_thread_sanitizer;  // ThreadSanitizer forbids them

/// How a child process ends: its exit status, or 128 plus the signal that ended it; SIGALRM if it hangs.
int end_of_child(const std::function<void()>& what)
{
    std::fflush(nullptr);  // or the child writes it as well
    std::cout.flush();
    const ::pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        is_child = true;
        ::alarm(20);
        what();
        std::exit(0);  // with the destructors of static objects
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void require_in_child(bool good, int number)
{
    if (!good) ::_exit(number);
}

/// A sum in workspaces, in at most two shards.
int sum_of_1000()
{
    std::atomic<int> sum{0};
    parallel_for(1000, 1, [&](std::size_t begin, std::size_t end, std::size_t) {
        const scratch here;
        int* const numbers = scratch().take<int>(end - begin);
        for (std::size_t i = begin; i < end; ++i) numbers[i - begin] = 1;
        sum += std::accumulate(numbers, numbers + (end - begin), 0);
    });
    return sum;
}

struct kept_for_test final : detail::kept_by_thread {
    std::vector<double> numbers = std::vector<double>(1000, 1.0);

private:
    std::size_t size() const override { return numbers.size() * sizeof(double); }
    void release() override { numbers = {}; }
};

/// Uses heed in its destructor, in a child of the test.
struct late_user {
    bool used = false;

    ~late_user()
    {
        if (!used) return;
        for (int again = 0; again < 2; ++again) {
            require_in_child(sum_of_1000() == 1000, 3);
            set_threads(3);
            const detail::kept_between_calls<kept_for_test> kept;
            require_in_child((*kept).numbers.size() == 1000 && (*kept).numbers[999] == 1.0, 4);
            require_in_child(workspace_size() >= 8000, 5);
            release_workspace();
        }
    }
};
late_user late;  // older than the pool and than the workspace of this thread

void use_all()
{
    require_in_child(sum_of_1000() == 1000, 1);
    const detail::kept_between_calls<kept_for_test> kept;
    require_in_child(workspace_size() >= 8000, 2);
}

}  // namespace

TEST_CASE("a child of fork() computes on one thread and exits")
{
    const with_threads scope(2);
    CHECK(sum_of_1000() == 1000);
    CHECK(end_of_child([] {}) == 0);
    CHECK(end_of_child([] {
              require_in_child(threads() == 1, 1);
              require_in_child(sum_of_1000() == 1000, 2);
              if (!threads_after_fork) return;
              set_threads(2);
              require_in_child(shards_of(10, 1).size() == 2, 3);
              require_in_child(end_of_child([] { require_in_child(sum_of_1000() == 1000, 2); }) == 0, 4);
          }) == 0);
    CHECK(threads() == 2);
    CHECK(shards_of(10, 1).size() == 2);
}

TEST_CASE("a static object may compute in its destructor, after the pool and the workspaces are destroyed")
{
    for (const std::size_t count : {1u, 2u}) {
        CAPTURE(count);
        CHECK(end_of_child([count] {
                  if (count > 1 && !threads_after_fork) return;
                  late.used = true;
                  set_threads(count);
                  use_all();
              }) == 0);
    }
}

TEST_CASE("a thread_local object may compute in its destructor")
{
    std::thread([] {
        static thread_local std::unique_ptr<int, void (*)(int*)> late_one(nullptr, [](int* sum) {
            *sum = sum_of_1000();
            release_workspace();
            delete sum;
        });
        late_one.reset(new int(0));
        use_all();
    }).join();
}

TEST_CASE("std::exit in a shard ends the program, in any thread")
{
    for (const std::size_t which : {0u, 1u}) {
        CAPTURE(which);
        CHECK(end_of_child([which] {
                  if (!threads_after_fork) std::exit(7);
                  set_threads(2);
                  parallel_for(2, 1, [which](std::size_t, std::size_t, std::size_t number) {
                      if (number == which) std::exit(7);
                  });
              }) == 7);
    }
}

namespace {

template <class T>
std::vector<T> numbers(std::size_t count, std::uint64_t seed)
{
    std::vector<T> all(count);
    for (std::size_t i = 0; i < count; ++i) all[i] = static_cast<T>(2 * uniform(seed, i) - 1);
    return all;
}

template <class T>
bool same_bits(const T* left, const T* right, std::size_t count)
{
    return std::memcmp(left, right, count * sizeof(T)) == 0;
}

/// The rows of [most,K] x [K,N] as one product, as products of a few rows each, and as plain sums.
template <class T>
void check_rows(blas::op op_a, blas::op op_b, std::size_t most, std::size_t N, std::size_t K, T beta,
                std::initializer_list<std::size_t> at_a_time)
{
    const std::vector<T> A = numbers<T>(most * K, 1), B = numbers<T>(K * N, 2), before = numbers<T>(most * N, 3);
    const std::size_t lda = op_a == blas::op::plain ? K : most, ldb = op_b == blas::op::plain ? N : K;
    const auto multiply = [&](std::size_t first, std::size_t rows, std::vector<T>& C) {
        blas::gemm(op_a, op_b, rows, N, K, A.data() + (op_a == blas::op::plain ? first * K : first), lda, B.data(), ldb,
                   beta, C.data() + first * N, N);
    };
    const batch_invariant guard;
    std::vector<T> at_once = before;
    multiply(0, most, at_once);
    for (const std::size_t rows : at_a_time) {
        std::vector<T> parts = before;
        for (std::size_t r = 0; r < most; r += rows) multiply(r, std::min(rows, most - r), parts);
        CAPTURE(rows);
        CHECK(same_bits(parts.data(), at_once.data(), parts.size()));
    }
    const std::size_t down = op_a == blas::op::plain ? K : 1, along = op_a == blas::op::plain ? 1 : most;
    const std::size_t deep = op_b == blas::op::plain ? N : 1, across = op_b == blas::op::plain ? 1 : K;
    const T *const a = A.data(), *const b = B.data();
    double furthest = 0;
    for (std::size_t i = 0; i < most; ++i) {
        for (std::size_t j = 0; j < N; ++j) {
            double sum = static_cast<double>(beta) * static_cast<double>(before[i * N + j]);
            for (std::size_t k = 0; k < K; ++k)
                sum += static_cast<double>(a[i * down + k * along]) * static_cast<double>(b[k * deep + j * across]);
            furthest = std::max(furthest, std::abs(static_cast<double>(at_once[i * N + j]) - sum));
        }
    }
    CHECK(furthest < (sizeof(T) == 4 ? 1e-4 : 1e-11));
}

}  // namespace

TEST_CASE_TEMPLATE("a row of a product has the same bits in any batch of rows, on any number of threads", T, float,
                   double)
{
    for (const blas::op a : {blas::op::plain, blas::op::transposed}) {
        for (const blas::op b : {blas::op::plain, blas::op::transposed}) {
            check_rows<T>(a, b, 33, 19, 300, T(0), {1, 2, 5, 6, 7, 16, 31});
            check_rows<T>(a, b, 40, 70, 7, T(1), {1, 2, 5, 6, 7, 16, 31});
        }
    }
    for (const std::size_t threads : std::vector<std::size_t>{1, 3}) {  // enough work to split by rows,
        set_threads(threads);
        check_rows<T>(blas::op::plain, blas::op::plain, 100, 62, 260, T(0), {7, 31});
        check_rows<T>(blas::op::plain, blas::op::plain, 40, 190, 260, T(0), {31});  // and by columns, also for 31 rows
    }
    set_threads(1);
    const std::vector<T> A = numbers<T>(50 * 260, 4), B = numbers<T>(260 * 120, 5);
    std::vector<T> one(50 * 120), three(50 * 120);
    const batch_invariant guard;
    blas::gemm(blas::op::plain, blas::op::plain, 50, 120, 260, A.data(), B.data(), T(0), one.data());
    set_threads(3);
    blas::gemm(blas::op::plain, blas::op::plain, 50, 120, 260, A.data(), B.data(), T(0), three.data());
    set_threads(1);
    CHECK(same_bits(one.data(), three.data(), one.size()));
}

TEST_CASE("batch_invariant ends with its scope, may be nested, and applies to the threads that share its work")
{
    const auto batch_invariant_here = [] { return detail::own_products_here != nullptr; };
    CHECK_FALSE(batch_invariant_here());
    {
        const batch_invariant outer;
        CHECK(batch_invariant_here());
        {
            const batch_invariant inner, unwanted(false);
            CHECK(batch_invariant_here());
        }
        CHECK(batch_invariant_here());
        set_threads(3);
        std::atomic<int> with{0}, without{0};
        parallel_for(3, 1, [&](std::size_t, std::size_t, std::size_t) { ++(batch_invariant_here() ? with : without); });
        CHECK(with == 3);
        CHECK(without == 0);
    }
    CHECK_FALSE(batch_invariant_here());
    const batch_invariant unwanted(false);
    CHECK_FALSE(batch_invariant_here());
    std::atomic<int> with{0};
    parallel_for(3, 1, [&](std::size_t, std::size_t, std::size_t) { with += batch_invariant_here(); });
    CHECK(with == 0);
    set_threads(1);
}
