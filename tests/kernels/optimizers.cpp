// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/optimizers.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <support/approx.hpp>
#include <support/kernels.hpp>
#include <support/special_rows.hpp>

namespace {

using namespace heed;
using namespace heed::kernels;
using namespace heed::test;

}  // namespace

TEST_CASE_TEMPLATE("Adam: plain loops agree over several steps", T, float, double)
{
    const adam_settings settings{0.01, 0.8, 0.95, 1e-6};
    for (const std::size_t n : awkward<T>()) {
        list<T> x = some<T>(n, 1), m(n, 0), v(n, 0);
        list<double> want(x.begin(), x.end()), first(n, 0), second(n, 0);
        for (std::size_t t = 1; t <= 4; ++t) {
            const list<T> g = some<T>(n, static_cast<unsigned>(t) + 10);
            update_all(n, settings.update<T>(t, T(0.5)), g.data(), {m.data(), v.data()}, x.data());
            for (std::size_t i = 0; i < n; ++i) {
                const double d = 0.5 * static_cast<double>(g[i]), power = static_cast<double>(t);
                first[i] = 0.8 * first[i] + (1 - 0.8) * d;
                second[i] = 0.95 * second[i] + (1 - 0.95) * d * d;
                want[i] -= 0.01 * (first[i] / (1 - std::pow(0.8, power))) /
                           (std::sqrt(second[i] / (1 - std::pow(0.95, power))) + 1e-6);
            }
        }
        CHECK(far(x, want) <= 4 * tolerance<T>);
        CHECK(far(m, first) <= 4 * tolerance<T>);
        CHECK(far(v, second) <= 4 * tolerance<T>);
    }
}

TEST_CASE("Adam on some rows: equals Adam on the whole table in these rows, and leaves the others; any thread count")
{
    const std::size_t N = 504, width = 131;
    const adam_settings settings;
    const list<float> table = some<float>(N * width, 1), g = some<float>(N * width, 2);
    list<float> x = table, m(N * width), v(N * width);
    update_all(N * width, settings.update<float>(1, 1.0f), g.data(), {m.data(), v.data()}, x.data());
    list<std::uint32_t> rows;
    for (std::uint32_t row = 0; row < N; row += 2) rows.push_back(row ^ 6u);  // even rows, unordered
    list<float> packed;
    for (const std::uint32_t row : rows) {
        packed.insert(packed.end(), g.begin() + static_cast<std::ptrdiff_t>(row * width),
                      g.begin() + static_cast<std::ptrdiff_t>((row + 1) * width));
    }
    for (const std::size_t threads : {1u, 2u, 3u}) {
        const with_threads scope(threads);
        for (const gradient_rows layout : {gradient_rows::packed, gradient_rows::in_place}) {
            list<float> y = table, my(N * width), vy(N * width);
            update_rows(rows.size(), rows.data(), width, settings.update<float>(1, 1.0f),
                        layout == gradient_rows::packed ? packed.data() : g.data(), layout,
                        moments_of<float>{my.data(), vy.data()}, y.data());
            for (std::size_t row = 0; row < N; ++row) {
                const std::size_t at = row * width;
                if (row % 2 == 0) {
                    REQUIRE(same_bits(y.data() + at, x.data() + at, width));
                    REQUIRE(same_bits(vy.data() + at, v.data() + at, width));
                } else {
                    REQUIRE(same_bits(y.data() + at, table.data() + at, width));
                    REQUIRE(std::all_of(my.data() + at, my.data() + at + width, [](float e) { return e == 0; }));
                }
            }
        }
        list<float> whole = table, mw(N * width), vw(N * width);
        update_all(N * width, settings.update<float>(1, 1.0f), g.data(), {mw.data(), vw.data()}, whole.data());
        CHECK(whole == x);
    }
}

TEST_CASE_TEMPLATE("squared norm", T, float, double)
{
    for (const std::size_t n :
         {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{257}, std::size_t{300001}}) {
        const list<T> x = some<T>(n, 3, 1e3);
        double want = 0;
        for (const T e : x) want += static_cast<double>(e) * static_cast<double>(e);
        for (const std::size_t threads : {1u, 2u, 3u}) {
            const with_threads scope(threads);
            CHECK(squared_norm(n, x.data()) == doctest::Approx(want).epsilon(1e-12));
            CHECK(squared_norm(n, x.data()) == squared_norm(n, x.data()));
        }
    }
    const with_threads scope(20);
    const list<T> ones(1 << 20, 1);
    CHECK(squared_norm(ones.size(), ones.data()) == static_cast<double>(1 << 20));
    const list<T> large(5, T(1e30));  // its square overflows a float
    const double square = static_cast<double>(large[0]) * static_cast<double>(large[0]);
    CHECK(squared_norm(5, large.data()) == support::approx(5 * square));
}

TEST_CASE_TEMPLATE("gradient descent and AdaDelta: plain loops agree", T, float, double)
{
    for (const std::size_t n : widths) {
        const auto g = some<T>(n, 1), start = some<T>(n, 2), G = some<T>(n, 3), D = some<T>(n, 4);
        auto theta = start, squares = G, steps = D;
        for (T& each : squares) each = std::abs(each);
        for (T& each : steps) each = std::abs(each);
        const auto old_squares = squares, old_steps = steps;
        update_all(n, sgd_settings{0.5}.update<T>(1, T(2)), g.data(), moments_of<T>{}, theta.data());
        for (std::size_t i = 0; i < n; ++i) CHECK(std::abs(theta[i] - (start[i] - g[i])) <= few_roundings<T>);
        theta = start;
        update_all(n, adadelta_settings{0.9, 0.01, 0.5}.update<T>(1, T(2)), g.data(),
                   moments_of<T>{squares.data(), steps.data()}, theta.data());
        for (std::size_t i = 0; i < n; ++i) {
            const double slope = 2.0 * g[i], all = 0.9 * old_squares[i] + 0.1 * slope * slope;
            const double step = std::sqrt(old_steps[i] + 0.01) / std::sqrt(all + 0.01) * slope;
            CHECK(std::abs(squares[i] - all) <= few_roundings<T>);
            CHECK(std::abs(steps[i] - (0.9 * old_steps[i] + 0.1 * step * step)) <= 4 * few_roundings<T>);
            CHECK(std::abs(theta[i] - (start[i] - 0.5 * step)) <= 4 * few_roundings<T>);
        }
    }
}

TEST_CASE_TEMPLATE("squared norm of special values", T, float, double)
{
    each_row<T>([](const list<T>& x) {
        double squares = 0;
        for (const T e : x) squares += static_cast<double>(e) * static_cast<double>(e);
        require_equal(std::vector<double>{squared_norm(x.size(), x.data())}.data(), {squares});
    });
}
