// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <heed/core/random.hpp>
#include <heed_mpi/ranks.hpp>
#include <support/allocations.hpp>

#include "engines.hpp"

using namespace heed;
using distributed::any_ranks;

static_assert(distributed::sums_meanwhile<distributed::alone>);
static_assert(distributed::sums_meanwhile<any_ranks>);

namespace {

/// The numbers of a rank, with very different sizes, so that a different order of addition changes the sum.
template <class T>
std::vector<T> numbers_of_rank(std::size_t rank, std::size_t count, std::uint64_t stream = 0)
{
    std::vector<T> x(count);
    for (std::size_t i = 0; i < count; ++i) {
        const double size = uniform(mix(stream + 2 * rank), i) < 0.5 ? 1e-4 : 1e3;
        x[i] = static_cast<T>(size * (uniform(mix(stream + 2 * rank + 1), i) - 0.5));
    }
    return x;
}

template <class T>
std::vector<T> sum_in_order(std::size_t ranks, std::size_t count, std::uint64_t stream = 0)
{
    std::vector<T> total = numbers_of_rank<T>(0, count, stream);
    for (std::size_t r = 1; r < ranks; ++r) {
        const std::vector<T> more = numbers_of_rank<T>(r, count, stream);
        for (std::size_t i = 0; i < count; ++i) total[i] += more[i];
    }
    return total;
}

template <class T>
void check_sums(any_ranks& over)
{
    // Small arrays, some with fewer numbers than ranks, use a different algorithm than large ones.
    for (const std::size_t count : {0u, 1u, 3u, 500u, 1024u, 1025u, 4099u, 100'001u}) {
        std::vector<T> x = numbers_of_rank<T>(over.rank(), count);
        over.sum(std::span<T>(x));
        CHECK(x == sum_in_order<T>(over.size(), count));
    }
    // Several arrays at once.
    const std::vector<std::size_t> counts{70'000, 5, 3000, 0, 70'001, 1200};
    std::vector<std::vector<T>> all;
    for (std::size_t k = 0; k < counts.size(); ++k) all.push_back(numbers_of_rank<T>(over.rank(), counts[k], k));
    for (auto& each : all) {
        over.begin_sum(std::span<T>(each));
        over.progress();
    }
    over.finish();
    for (std::size_t k = 0; k < counts.size(); ++k) CHECK(all[k] == sum_in_order<T>(over.size(), counts[k], k));
}

}  // namespace

TEST_CASE("sums depend on the order, so the test of sums can fail")
{
    std::vector<float> backwards = numbers_of_rank<float>(2, 500);
    for (const std::size_t r : {1u, 0u}) {
        const auto more = numbers_of_rank<float>(r, 500);
        for (std::size_t i = 0; i < 500; ++i) backwards[i] += more[i];
    }
    CHECK(backwards != sum_in_order<float>(3, 500));
}

TEST_CASE("numbers are added in the order of the ranks, bit for bit")
{
    support::on_ranks([](any_ranks& over) {
        check_sums<float>(over);
        check_sums<double>(over);
    });
}

TEST_CASE("a sum allocates no memory after the first one")
{
    support::on_ranks([&](any_ranks& over) {
        std::vector<float> mine(70'000, 1.0f), few(3, 1.0f);
        distributed::gathered all;
        const auto step = [&] {
            over.begin_sum(std::span<float>(mine));
            over.begin_sum(std::span<float>(few));
            over.finish();
            over.gather(std::as_bytes(std::span<const float>(few)), all);
        };
        for (int warm = 0; warm < 4; ++warm) step();
        over.barrier();
        const std::size_t before = support::allocations;
        for (int k = 0; k < 8; ++k) step();
        // Only for heed's engine: the engine of these tests allocates, and allocations inside MPI are not counted.
        if (support::by_mpi()) CHECK(support::allocations == before);
        over.barrier();
    });
}

TEST_CASE("bytes are broadcast and gathered")
{
    support::on_ranks([](any_ranks& over) {
        const std::size_t me = over.rank(), n = over.size();
        for (std::size_t from = 0; from < n; ++from) {
            std::vector<std::byte> bytes(5, static_cast<std::byte>(me));
            over.broadcast(bytes, from);
            CHECK(bytes == std::vector<std::byte>(5, static_cast<std::byte>(from)));
        }
        const std::vector<std::byte> mine(3 * me, static_cast<std::byte>(me + 1));  // rank 0 has no bytes
        const auto all = over.gather(mine);
        REQUIRE(all.size() == n);
        for (std::size_t r = 0; r < n; ++r)
            CHECK(all[r] == std::vector<std::byte>(3 * r, static_cast<std::byte>(r + 1)));
        over.barrier();

        double number = static_cast<double>(me) + 0.5;
        distributed::broadcast(over, number);
        CHECK(number == 0.5);
        std::string text = me == 0 ? "of rank 0" : "another";
        distributed::broadcast(over, text);
        CHECK(text == "of rank 0");
        std::vector<float> none(me, 1.0f);
        distributed::broadcast(over, none);
        CHECK(none.empty());
    });
}

TEST_CASE("shares cover the whole, do not overlap, and differ by at most one")
{
    support::on_ranks([](any_ranks& over) {
        for (const std::size_t count : {0u, 1u, 2u, 3u, 4u, 5u, 64u, 65u}) {
            const distributed::share mine = distributed::share_of(over, count);
            const auto all = over.gather(std::as_bytes(std::span<const distributed::share, 1>(&mine, 1)));
            std::size_t next = 0;
            for (const auto& each : all) {
                const auto other = *reinterpret_cast<const distributed::share*>(each.data());
                CHECK(other.first == next);
                CHECK(other.size() >= count / over.size());
                CHECK(other.size() <= count / over.size() + 1);
                next = other.last;
            }
            CHECK(next == count);
        }
    });
}

TEST_CASE("one rank works without an engine")
{
    distributed::alone one;
    CHECK(one.size() == 1);
    CHECK(one.rank() == 0);
    std::vector<float> x{1, 2};
    one.sum(x);
    one.begin_sum(x);
    one.finish();
    CHECK(x == std::vector<float>{1, 2});
    const auto all = one.gather(std::as_bytes(std::span<const float>(x)));
    REQUIRE(all.size() == 1);
    CHECK(all[0].size() == 2 * sizeof(float));
    CHECK(distributed::share_of(one, 7).size() == 7);
}
