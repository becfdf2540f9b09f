// SPDX-License-Identifier: BSD-3-Clause
#include <heed/core/random.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace heed;

TEST_CASE("mix is the finalizer of splitmix64")
{
    // The published first outputs of splitmix64 seeded with 0 and with 1234567; the generator adds the constant that
    // mix adds.
    CHECK(mix(0) == 0xe220a8397b1dcdafu);
    CHECK(mix(0x9e3779b97f4a7c15u) == 0x6e789e6aa1b965f4u);
    CHECK(mix(1234567) == 6457827717110365317u);
    static_assert(mix(1) != mix(2));
}

TEST_CASE("the numbers of a stream never change, since models and runs depend on them")
{
    random_source source{42};
    const std::uint64_t stream = source.next_stream();
    CHECK(source.streams == 1);
    CHECK(stream == 0x7eb3b394ac9efc29u);
    CHECK(uniform(stream, 0) == 0.15456411881005983);
    CHECK(uniform(stream, 1) == 0.83918880434521714);
    CHECK(normal(stream, 0) == doctest::Approx(0.3080071746673454).epsilon(1e-14));
    CHECK(below(1000, stream, 0) == 154);
    CHECK(source.next_stream() == 0x1db2233eb3bcaeb3u);
}

TEST_CASE("a source is two integers, and resumes from them")
{
    random_source source{7};
    for (int i = 0; i < 5; ++i) source.next_stream();
    random_source resumed{7, 5};
    CHECK(resumed.next_stream() == source.next_stream());
    CHECK(random_source{8}.next_stream() != random_source{7}.next_stream());
}

TEST_CASE("uniform numbers are uniform, normal numbers are normal, and streams are independent")
{
    // A hundred thousand numbers of a fixed stream: the bounds are five standard errors wide.
    constexpr int n = 100000;
    const std::uint64_t one = random_source{1}.next_stream(), two = random_source{2}.next_stream();
    double sum = 0, squares = 0, mixed = 0, normal_sum = 0, normal_squares = 0, normal_fourth = 0, neighbors = 0;
    std::vector<int> counts(10, 0);
    for (std::uint64_t i = 0; i < n; ++i) {
        const double u = uniform(one, i), z = normal(one, i);
        CHECK_MESSAGE((u >= 0 && u < 1), u);
        sum += u;
        squares += u * u;
        mixed += (u - 0.5) * (uniform(two, i) - 0.5);
        neighbors += (u - 0.5) * (uniform(one, i + 1) - 0.5);
        normal_sum += z;
        normal_squares += z * z;
        normal_fourth += z * z * z * z;
        const std::size_t k = below(10, two, i);
        REQUIRE(k < 10);
        ++counts[k];
    }
    const double root = std::sqrt(double(n));
    CHECK(std::abs(sum / n - 0.5) < 5 * std::sqrt(1.0 / 12) / root);
    CHECK(std::abs(squares / n - 1.0 / 3) < 5 * std::sqrt(4.0 / 45) / root);
    CHECK(std::abs(mixed / n) < 5.0 / 12 / root);
    CHECK(std::abs(neighbors / n) < 5.0 / 12 / root);
    CHECK(std::abs(normal_sum / n) < 5 / root);
    CHECK(std::abs(normal_squares / n - 1) < 5 * std::sqrt(2.0) / root);
    CHECK(std::abs(normal_fourth / n - 3) < 5 * std::sqrt(96.0) / root);
    for (const int count : counts) CHECK(std::abs(count - n / 10) < 5 * std::sqrt(n * 0.09));
}

TEST_CASE("below covers exactly its range")
{
    CHECK(below(1, 5, 9) == 0);
    std::vector<bool> seen(7, false);
    for (std::uint64_t i = 0; i < 200; ++i) seen.at(below(7, 3, i)) = true;
    for (const bool s : seen) CHECK(s);
}
