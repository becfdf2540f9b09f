// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/rows.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include <support/kernels.hpp>
#include <support/special_rows.hpp>

namespace {

using namespace heed;
using namespace heed::kernels;
using namespace heed::test;

}  // namespace

TEST_CASE_TEMPLATE("sums of a row, products of two rows", T, float, double)
{
    each_row<T>([](const list<T>& x) {
        const std::size_t n = x.size();
        const list<T> ones(n, T(1)), zeros(n, T(0));
        double sum = 0, squares = 0;
        for (const T e : x) {
            sum += static_cast<double>(e);
            squares += static_cast<double>(e) * static_cast<double>(e);
        }
        const T product = kernels::dot(n, x.data(), ones.data());
        require_equal(&product, {sum});
        const T distance = kernels::squared_distance(n, x.data(), zeros.data());
        require_equal(&distance, {static_cast<double>(static_cast<T>(squares))});
    });
}

TEST_CASE_TEMPLATE("products and sums of rows: plain loops agree, also for very long rows", T, float, double)
{
    counts sizes = awkward<T>();
    sizes.push_back(70001);
    for (const std::size_t n : sizes) {
        CAPTURE(n);
        const list<T> a = some<T>(n, 1), b = some<T>(n, 2);
        double product = 0, sum = 0, distance = 0, size = 1;
        for (std::size_t i = 0; i < n; ++i) {
            const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
            product += x * y;
            sum += x;
            distance += (x - y) * (x - y);
            size += std::fabs(x * y) + std::fabs(x);
        }
        CHECK(std::fabs(static_cast<double>(kernels::dot(n, a.data(), b.data())) - product) <= tolerance<T> * size);
        CHECK(std::fabs(static_cast<double>(sum_of(n, a.data())) - sum) <= tolerance<T> * size);
        const double is = static_cast<double>(squared_distance(n, a.data(), b.data()));
        CHECK(std::fabs(is - distance) <= 10 * tolerance<T> * distance);
    }
    // Close to each other and far from 0, only differences are accurate.
    const list<T> far(9, T(1000)), near(9, T(1000.5));
    CHECK(squared_distance(far.size(), far.data(), near.data()) == T(2.25));
}

TEST_CASE_TEMPLATE("additions to a row: plain loops agree, and numbers after the row do not change", T, float, double)
{
    for (const std::size_t n : awkward<T>()) {
        const std::size_t rows = 5;
        const list<T> x = some<T>(rows * n, 1), y = some<T>(n, 2), start = some<T>(n + 1, 3);
        list<T> scaled = start, apart = start, moved = start, plain = start, columns = start;
        add_scaled(n, scaled.data(), T(0.75), x.data());
        add_scaled_difference(n, apart.data(), T(0.75), x.data(), y.data());
        add_constant(n, moved.data(), T(0.5));
        add(n, plain.data(), x.data());
        add_columns(rows, n, columns.data(), x.data());
        list<double> want[5];
        for (auto& each : want) each.assign(start.begin(), start.end());
        for (std::size_t i = 0; i < n; ++i) {
            const double v = static_cast<double>(x[i]);
            want[0][i] += 0.75 * v;
            want[1][i] += 0.75 * (v - static_cast<double>(y[i]));
            want[2][i] += 0.5;
            want[3][i] += v;
            for (std::size_t r = 0; r < rows; ++r) want[4][i] += static_cast<double>(x[r * n + i]);
        }
        CHECK(far(scaled, want[0]) <= few_roundings<T>);
        CHECK(far(apart, want[1]) <= few_roundings<T>);
        CHECK(far(moved, want[2]) <= few_roundings<T>);
        CHECK(far(plain, want[3]) <= few_roundings<T>);
        CHECK(far(columns, want[4]) <= few_roundings<T>);
    }
}
