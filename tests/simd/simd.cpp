// SPDX-License-Identifier: BSD-3-Clause
#include <heed/simd/simd.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <vector>

namespace {

using namespace heed;

}  // namespace

TEST_CASE_TEMPLATE("an element's result does not depend on its position", T, float, double)
{
    constexpr std::size_t n = 257;
    std::vector<T> x(n), all(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = T(0.37) * static_cast<T>(i) - T(40);
    const auto f = [](auto a, auto b) {
        return simd::exp(simd::tanh(a) * simd::sigmoid(b)) + simd::sin(b * a * a * a) - simd::cos(b * b * b);
    };  // some sines far from 0
    simd::transform(n, all.data(), f, x.data(), x.data());
    for (std::size_t first = 0; first < n; first += 7) {
        for (const std::size_t count : {std::size_t{1}, std::size_t{3}, simd::lanes<T>}) {
            if (first + count > n) continue;
            std::vector<T> some(count);
            simd::transform(count, some.data(), f, x.data() + first, x.data() + first);
            REQUIRE(std::memcmp(some.data(), all.data() + first, count * sizeof(T)) == 0);
        }
    }
    std::vector<T> place = x;
    simd::transform(n, place.data(), f, place.data(), place.data());
    CHECK(place == all);
}

TEST_CASE_TEMPLATE("a square of registers is transposed", T, float, double)
{
    constexpr std::size_t n = simd::lanes<T>;
    T x[n][n], y[n][n];
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) x[i][j] = static_cast<T>(n * i + j);
    simd::vec<T> rows[n];
    for (std::size_t i = 0; i < n; ++i) rows[i] = simd::load(x[i]);
    simd::transpose<T>(rows);
    for (std::size_t i = 0; i < n; ++i) simd::store(y[i], rows[i]);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) CHECK(y[i][j] == x[j][i]);
}

TEST_CASE_TEMPLATE("sums of four registers at once", T, float, double)
{
    constexpr std::size_t n = simd::lanes<T>;
    simd::vec<T> four[4] = {};
    for (std::size_t lane = 0; lane < n; ++lane) {
        for (std::size_t i = 0; i < 4; ++i) four[i][lane] = static_cast<T>((i + 1) * (lane * lane + 3));
    }
    T sums[4];
    simd::sums(four[0], four[1], four[2], four[3], sums);
    for (std::size_t i = 0; i < 4; ++i) CHECK(sums[i] == simd::sum(four[i]));  // integers: exact in any order
}

TEST_CASE("parallel_transform equals transform for every thread count")
{
    const std::size_t n = 200003;
    const auto tanh = [](auto x) { return simd::tanh(x); };
    std::vector<float> x(n), expected(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i % 1000) * 0.01f - 5.0f;
    simd::transform(n, expected.data(), tanh, x.data());
    for (const std::size_t threads : {1u, 2u, 3u}) {
        set_threads(threads);
        std::vector<float> y(n);
        simd::parallel_transform(n, y.data(), tanh, x.data());
        CHECK(y == expected);
    }
    set_threads(1);
}
