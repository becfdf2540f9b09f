// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/gemm/blas.hpp>
#include <support/tensors.hpp>

#include <atomic>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

// During products BLAS uses one thread, for any number of threads that compute products; afterwards it has the
// number that the program set. These tests set that number themselves and ignore the environment.

using namespace heed;
using blas::detail::one_blas_thread;
using support::random;

namespace {

constexpr int several = 3;

int blas_threads()
{
    return blas::detail::openblas_get_num_threads != nullptr ? blas::detail::openblas_get_num_threads() : 1;
}

void set_blas_threads(int count)
{
    if (blas::detail::openblas_set_num_threads != nullptr) blas::detail::openblas_set_num_threads(count);
}

/// Sets the number of BLAS threads, and restores it.
struct with_blas_threads {
    int before = blas_threads();

    explicit with_blas_threads(int count) { set_blas_threads(count); }
    ~with_blas_threads() { set_blas_threads(before); }
};

/// Whether the number of threads can be set: only with OpenBLAS, built with threads.
bool blas_takes_threads()
{
    const with_blas_threads scope(several);
    return blas_threads() == several;
}

}  // namespace

TEST_CASE("one BLAS thread from the first guard to the last, in any order of destruction")
{
    if (!blas_takes_threads()) return;
    const with_blas_threads scope(several);
    std::optional<one_blas_thread> first, second;
    first.emplace();
    CHECK(blas_threads() == 1);
    second.emplace();
    CHECK(blas_threads() == 1);
    first.reset();
    CHECK(blas_threads() == 1);  // the second guard still exists
    first.emplace();
    second.reset();
    CHECK(blas_threads() == 1);
    first.reset();
    CHECK(blas_threads() == several);
}

TEST_CASE("guards in two threads")
{
    if (!blas_takes_threads()) return;
    const with_blas_threads scope(several);
    std::optional<one_blas_thread> first;
    first.emplace();
    std::atomic<int> stage = 0;
    const auto wait_for = [&stage](int wanted) {
        while (stage != wanted) std::this_thread::yield();
    };
    int alone = 0;
    std::thread other([&] {
        const one_blas_thread second;
        stage = 1;
        wait_for(2);
        alone = blas_threads();
    });
    wait_for(1);
    first.reset();
    stage = 2;
    other.join();
    CHECK(alone == 1);
    CHECK(blas_threads() == several);
}

TEST_CASE("nested guards, and an exception")
{
    if (!blas_takes_threads()) return;
    const with_blas_threads scope(several);
    try {
        const one_blas_thread outer;
        {
            const one_blas_thread inner;
            CHECK(blas_threads() == 1);
        }
        CHECK(blas_threads() == 1);
        throw std::runtime_error("out");
    } catch (const std::runtime_error&) {}
    CHECK(blas_threads() == several);
}

TEST_CASE("a number that the program sets in between is restored")
{
    if (!blas_takes_threads()) return;
    const with_blas_threads scope(several);
    {
        const one_blas_thread guard;
    }
    set_blas_threads(2);
    {
        const one_blas_thread guard;
        CHECK(blas_threads() == 1);
    }
    CHECK(blas_threads() == 2);
    set_blas_threads(1);
    {
        const one_blas_thread guard;
        set_blas_threads(several);  // not allowed, but the last setting applies
    }
    CHECK(blas_threads() == several);
    {
        const one_blas_thread guard;
        set_blas_threads(2);
        const one_blas_thread second;
        CHECK(blas_threads() == 1);
    }
    CHECK(blas_threads() == 2);
}

TEST_CASE("four threads with short-lived guards always see one BLAS thread")
{
    if (!blas_takes_threads()) return;
    const with_blas_threads scope(several);
    std::atomic<int> wrong = 0;
    const auto come_and_go = [&wrong] {
        for (int round = 0; round < 20000; ++round) {
            const one_blas_thread guard;
            if (blas_threads() != 1) ++wrong;
            if (round % 64 == 0) std::this_thread::yield();
            if (blas_threads() != 1) ++wrong;
        }
    };
    std::vector<std::thread> others;
    for (int i = 0; i < 3; ++i) others.emplace_back(come_and_go);
    come_and_go();
    for (std::thread& other : others) other.join();
    CHECK(wrong.load() == 0);
    CHECK(blas_threads() == several);
}

TEST_CASE("products of two threads are bitwise equal, with any number of BLAS threads")
{
    const with_blas_threads scope(several);
    constexpr std::size_t M = 96, N = 80, K = 112;
    const auto A = random<float>({M, K}, 1), B = random<float>({K, N}, 2), x = random<float>({1, 1000}, 3),
               W = random<float>({1000, 600}, 4);
    struct results {
        array<float, 2> product{shape_of_rank<2>{M, N}}, row{shape_of_rank<2>{1, 600}};
    };
    const auto compute = [&](results& to) {
        blas::gemm(blas::op::plain, blas::op::plain, M, N, K, A.data(), B.data(), 0.0f, to.product.data());
        blas::gemm(blas::op::plain, blas::op::plain, 1, 600, 1000, x.data(), W.data(), 0.0f, to.row.data());
    };
    results must;
    compute(must);
    std::atomic<int> different = 0;
    const auto again = [&] {
        results now;
        for (int round = 0; round < 10000; ++round) {
            compute(now);
            different += !support::same_bits(now.product, must.product) || !support::same_bits(now.row, must.row);
        }
    };
    std::thread other(again);
    again();
    other.join();
    CHECK(different.load() == 0);
}
