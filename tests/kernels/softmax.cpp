// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/softmax.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <heed/core/dual_number.hpp>
#include <support/kernels.hpp>
#include <support/special_rows.hpp>

namespace {

using namespace heed;
using namespace heed::kernels;
using namespace heed::test;

}  // namespace

TEST_CASE_TEMPLATE("softmax: plain loops agree, padding is not read, rows are independent", T, float, double)
{
    for (const std::size_t positions : awkward<T>()) {
        const counts lengths{positions, positions / 2, 0, positions > 2 ? positions - 1 : positions};
        const std::size_t batch = lengths.size();
        list<T> x = some<T>(batch * positions, 7, 5), w(batch * positions, T(9));
        poison(x, lengths, positions);
        softmax(batch, positions, lengths.data(), x.data(), w.data());
        list<double> want(w.size(), 0);
        for (std::size_t b = 0; b < batch; ++b) {
            const list<double> row =
                plain_softmax(lengths[b], 1, [&](std::size_t i) { return static_cast<double>(x[b * positions + i]); });
            std::copy(row.begin(), row.end(), want.begin() + static_cast<std::ptrdiff_t>(b * positions));
        }
        CHECK(far(w, want) <= tolerance<T>);
        for (std::size_t b = 0; b < batch; ++b) {
            list<T> alone(lengths[b]);
            softmax<T>(1, lengths[b], nullptr, x.data() + b * positions, alone.data());
            CHECK(same_bits(alone.data(), w.data() + b * positions, lengths[b]));
            for (std::size_t t = lengths[b]; t < positions; ++t) CHECK(w[b * positions + t] == 0);
        }
        list<T> place = x;
        softmax(batch, positions, lengths.data(), place.data(), place.data());
        CHECK(place == w);
    }
}

TEST_CASE("softmax: large scores, only -inf, very long rows")
{
    const list<float> x{1e4f, -1e4f, 1e4f - 1, 9990};
    list<float> w(4);
    softmax<float>(1, 4, nullptr, x.data(), w.data());
    const double sum = 1 + std::exp(-1.0) + std::exp(-10.0);
    CHECK(far(w, {1 / sum, 0, std::exp(-1.0) / sum, std::exp(-10.0) / sum}) <= 2e-7);

    const list<float> none(5, -std::numeric_limits<float>::infinity());
    list<float> zero(5, 1);
    softmax<float>(1, 5, nullptr, none.data(), zero.data());
    CHECK(zero == list<float>(5, 0));
    softmax_per_dimension<float>(1, 5, 1, nullptr, none.data(), zero.data());
    CHECK(zero == list<float>(5, 0));

    const std::size_t n = 3 << 20;  // one running float sum per lane would be off by far more than the tolerance
    list<float> mixed(n);
    for (std::size_t i = 0; i < n; ++i) mixed[i] = i % 3 == 0 ? 0.0f : -1.1f;
    list<float> share(n);
    softmax<float>(1, n, nullptr, mixed.data(), share.data());
    const double whole = static_cast<double>(n / 3) * (1 + 2 * std::exp(static_cast<double>(-1.1f)));
    CHECK(std::fabs(static_cast<double>(share[12345]) * whole - 1) <= 1e-6);
}

TEST_CASE_TEMPLATE("log softmax of a row: plain loops agree, a masked score stays masked", T, float, double)
{
    constexpr T none = -std::numeric_limits<T>::infinity();
    for (const std::size_t n : awkward<T>()) {
        list<T> x = some<T>(n, 7, 5), y(n);
        if (n > 2) x[1] = none;
        kernels::detail::log_softmax_row(n, x.data(), y.data());
        const list<double> w = plain_softmax(n, 1, [&](std::size_t i) { return static_cast<double>(x[i]); });
        for (std::size_t i = 0; i < n; ++i) {
            if (x[i] == none) CHECK(y[i] == none);
            if (x[i] != none) CHECK(std::fabs(static_cast<double>(y[i]) - std::log(w[i])) <= 10 * tolerance<T>);
        }
    }
}

TEST_CASE("log softmax of a row: gradient")
{
    constexpr std::size_t L = simd::lanes<double>;
    for (const std::size_t n : {std::size_t{1}, L, 2 * L + 3}) {
        list<double> x = some<double>(n, 1, 2), dx(n, 0.25), y(n);
        const list<double> g = some<double>(n, 2);
        if (n > 2) x[1] = -std::numeric_limits<double>::infinity();
        const auto loss = [&] {
            list<double> now(n);
            kernels::detail::log_softmax_row(n, x.data(), now.data());
            for (double& e : now) e = std::isfinite(e) ? e : 0;
            return dot(now, g);
        };
        kernels::detail::log_softmax_row(n, x.data(), y.data());
        kernels::detail::log_softmax_row_backward(n, y.data(), g.data(), dx.data());
        check_gradient("dx", x, loss, dx, 0.25);
    }
}

TEST_CASE("softmax per dimension: very many positions")
{
    const std::size_t n = 300000;  // one float sum would be off by far more than the tolerance
    list<float> x(2 * n, -1.1F), w(2 * n);
    for (std::size_t t = 0; t < n; t += 3) x[2 * t] = 0;
    softmax_per_dimension<float>(1, n, 2, nullptr, x.data(), w.data());
    const double whole = static_cast<double>(n / 3) * (1 + 2 * std::exp(static_cast<double>(-1.1F)));
    CHECK(std::fabs(static_cast<double>(w[0]) * whole - 1) <= 1e-6);
    CHECK(std::fabs(static_cast<double>(w[2 * n - 1]) * static_cast<double>(n) - 1) <= 1e-6);
}

TEST_CASE("softmax: gradient")
{
    const counts lengths{9, 0, 4};
    const std::size_t batch = 3, positions = 9;
    list<double> x = some<double>(27, 1, 2), g = some<double>(27, 2);
    poison(g, lengths, positions);
    const auto loss = [&] {
        list<double> w(27), seen = g;
        for (double& d : seen) d = std::isfinite(d) ? d : 0;
        softmax(batch, positions, lengths.data(), x.data(), w.data());
        return dot(w, seen);
    };
    list<double> w(27), dx(27, 0.25);
    softmax(batch, positions, lengths.data(), x.data(), w.data());
    poison(w, lengths, positions);
    softmax_backward(batch, positions, lengths.data(), w.data(), g.data(), dx.data());
    check_gradient("dx", x, loss, dx, 0.25);
}

TEST_CASE("softmax: gradient of very many positions")
{
    const std::size_t n = (std::size_t{1} << 20) + 3;  // one float sum would be off by far more than the tolerance
    const list<float> w(n, 1 / static_cast<float>(n)), g(n, 1);
    list<float> dx(n);
    softmax_backward<float>(1, n, nullptr, w.data(), g.data(), dx.data());
    CHECK(std::fabs(dx[12345]) * static_cast<float>(n) <= 1e-6F);
}

TEST_CASE_TEMPLATE("softmax per dimension: plain loops agree, padding is not read, rows are independent", T, float,
                   double)
{
    for (const std::size_t width : awkward<T>()) {
        for (const std::size_t positions : {1u, 3u, 8u, 21u}) {
            const counts lengths{positions, positions / 2, 0};
            const std::size_t batch = lengths.size(), block = positions * width;
            list<T> x = some<T>(batch * block, 7, 5), w(batch * block, T(9));
            x[0] = sizeof(T) == 4 ? T(1e4) : T(3);
            poison(x, lengths, positions, width);
            softmax_per_dimension(batch, positions, width, lengths.data(), x.data(), w.data());
            list<double> want(w.size(), 0);
            for (std::size_t b = 0; b < batch; ++b) {
                for (std::size_t d = 0; d < width; ++d) {
                    const list<double> column = plain_softmax(
                        lengths[b], width, [&](std::size_t i) { return static_cast<double>(x[b * block + i + d]); });
                    for (std::size_t t = 0; t < lengths[b]; ++t) want[b * block + t * width + d] = column[t];
                }
            }
            CHECK(far(w, want) <= tolerance<T>);
            for (std::size_t b = 0; b < batch; ++b) {
                list<T> alone(lengths[b] * width);
                softmax_per_dimension<T>(1, lengths[b], width, nullptr, x.data() + b * block, alone.data());
                CHECK(same_bits(alone.data(), w.data() + b * block, alone.size()));
            }
        }
    }
}

TEST_CASE("softmax per dimension: gradient")
{
    const counts lengths{5, 0, 3};
    const std::size_t batch = 3, positions = 5, width = 11, n = batch * positions * width;
    list<double> x = some<double>(n, 1, 2), g = some<double>(n, 2);
    const list<double> clean = g;
    poison(g, lengths, positions, width);
    const auto loss = [&] {
        list<double> w(n);
        softmax_per_dimension(batch, positions, width, lengths.data(), x.data(), w.data());
        return dot(w, clean);
    };
    list<double> w(n), dx(n, 0.25);
    softmax_per_dimension(batch, positions, width, lengths.data(), x.data(), w.data());
    poison(w, lengths, positions, width);
    softmax_per_dimension_backward(batch, positions, width, lengths.data(), w.data(), g.data(), dx.data());
    check_gradient("dx", x, loss, dx, 0.25);
}

TEST_CASE_TEMPLATE("softmax of a row", T, float, double)
{
    each_row<T>([](const list<T>& x) {
        CHECK(kernels::detail::max_of(x.size(), x.data()) == greatest(x));
        list<T> y(x.size());
        kernels::softmax<T>(1, x.size(), nullptr, x.data(), y.data());
        require_equal(y.data(), expected_softmax(x));
    });
}

TEST_CASE_TEMPLATE("the maximum of a row at any position", T, float, double)
{
    constexpr std::size_t L = simd::lanes<T>;
    for (const std::size_t n : {std::size_t{1}, L, 4 * L, 9 * L + L / 2}) {
        for (std::size_t i = 0; i < n; ++i) {
            list<T> x(n, T(-3));
            x[i] = T(-2);
            CHECK(kernels::detail::max_of(n, x.data()) == T(-2));
        }
    }
}

TEST_CASE("softmax: weights without a gradient add nothing")
{
    const list<double> w{0.25, 0.75}, g{1, 2};
    list<double> dx{3, 4};
    softmax_backward<double>(1, 2, nullptr, w.data(), nullptr, dx.data());
    softmax_per_dimension_backward<double>(1, 2, 1, nullptr, w.data(), nullptr, dx.data());
    softmax_backward<double>(1, 2, nullptr, w.data(), g.data(), nullptr);
    softmax_per_dimension_backward<double>(1, 2, 1, nullptr, w.data(), g.data(), nullptr);
    CHECK(dx == list<double>{3, 4});
}

TEST_CASE_TEMPLATE("a masked score has weight 0 and gradient 0, for any other scores and incoming gradient", T, float,
                   double)
{
    check_hidden<T>(
        [](std::size_t n, const T* x, T* y) { kernels::softmax<T>(1, n, nullptr, x, y); },
        [](std::size_t n, const T* y, const T* dy, T* dx) { kernels::softmax_backward<T>(1, n, nullptr, y, dy, dx); });
    check_hidden<T>([](std::size_t n, const T* x, T* y) { kernels::softmax_per_dimension<T>(1, n, 1, nullptr, x, y); },
                    [](std::size_t n, const T* y, const T* dy, T* dx) {
                        kernels::softmax_per_dimension_backward<T>(1, n, 1, nullptr, y, dy, dx);
                    });
}

TEST_CASE_TEMPLATE("softmax of a column does not change other columns", T, float, double)
{
    each_row<T>([](const list<T>& x) {
        const std::size_t n = x.size(), positions = 9;
        list<T> table(positions * n, T(0.25)), y(table.size());
        for (std::size_t d = 0; d < n; ++d) table[(d % positions) * n + d] = x[d];
        kernels::softmax_per_dimension<T>(1, positions, n, nullptr, table.data(), y.data());
        list<double> want(table.size());
        for (std::size_t d = 0; d < n; ++d) {
            list<T> column(positions, T(0.25));
            column[d % positions] = x[d];
            const list<double> weights = expected_softmax(column);
            for (std::size_t t = 0; t < positions; ++t) want[t * n + d] = weights[t];
        }
        require_equal(y.data(), want);
    });
}

TEST_CASE("softmax of many dual numbers is as accurate as that of plain numbers")
{
    std::vector<dual_number<float>> x(20000, dual_number<float>(0.1F, 0.3F)), y(20000);
    kernels::detail::softmax_row(x.size(), static_cast<const dual_number<float>*>(x.data()), y.data());
    CHECK(y[7].value == doctest::Approx(1.0 / 20000).epsilon(1e-6));
    CHECK(std::abs(y[7].slope) < 1e-10F);
}
