// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/core/parallel.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace heed;

namespace {

/// The number of threads while it lives.
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

TEST_CASE("one thread until somebody asks for more; 0 asks for all")
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

TEST_CASE("too little work is not shared out")
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

TEST_CASE("shards are the same every time, and run on threads of their own")
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

TEST_CASE("many rounds: what one wrote is there for the next")
{
    const with_threads scope(3);
    std::vector<int> x(300, 0);
    for (int round = 0; round < 2000; ++round) {
        parallel_for(x.size(), 1, [&](std::size_t begin, std::size_t end, std::size_t) {
            for (std::size_t i = begin; i < end; ++i) x[i] += x[(i + 150) % 300] >= 0 ? 1 : 0;
        });
    }
    CHECK(std::all_of(x.begin(), x.end(), [](int v) { return v == 2000; }));
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

TEST_CASE("inside a shard, work stays where it is")
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
    CHECK(shards_of(10, 1).size() == 2);  // and outside, it is shared out again
}

TEST_CASE("two user threads at once: each gets its own work done")
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

TEST_CASE("an exception in a shard comes out, once, and leaves the pool in order")
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
    CHECK(throwing(2) == "shard 0");  // both throw: the first one's is told
    CHECK(throwing(3) == "");         // and the other's does not come out later
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
