// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/sparse.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <type_traits>
#include <vector>

#include <support/approx.hpp>
#include <support/kernels.hpp>
#include <support/special_rows.hpp>

namespace {

using namespace heed;
using namespace heed::kernels;
using namespace heed::test;

}  // namespace

TEST_CASE_TEMPLATE("sparse weights: NaN gives NaN, -inf has weight 0", T, float, double)
{
    each_row<T>([](const list<T>& x) {
        list<T> y(x.size());
        kernels::sparse_weights<1>(1, x.size(), 1, nullptr, x.data(), y.data());
        const T top = greatest(x);
        if (any_nan(x) || top == infinity<T>) {
            CHECK(any_nan(y));
            return;
        }
        double sum = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            CHECK((y[i] == 0 || x[i] >= top - 1));
            sum += static_cast<double>(y[i]);
        }
        CHECK(sum == support::approx(top == -infinity<T> ? 0 : 1, support::tolerance<T>));
    });
}

TEST_CASE_TEMPLATE("a masked score has weight 0 and gradient 0, for any other scores and incoming gradient", T, float,
                   double)
{
    check_hidden<T>([](std::size_t n, const T* x, T* y) { kernels::sparse_weights<1>(1, n, 1, nullptr, x, y); },
                    [](std::size_t n, const T* y, const T* dy, T* dx) {
                        kernels::sparse_weights_backward<1>(1, n, 1, nullptr, y, dy, dx);
                    });
    check_hidden<T>([](std::size_t n, const T* x, T* y) { kernels::sparse_weights<2>(1, n, 1, nullptr, x, y); },
                    [](std::size_t n, const T* y, const T* dy, T* dx) {
                        kernels::sparse_weights_backward<2>(1, n, 1, nullptr, y, dy, dx);
                    });
    check_hidden<T>(
        [](std::size_t n, const T* x, T* y) { kernels::greatest_weights<T>(1, n, 1, nullptr, 2, x, y); },
        [](std::size_t n, const T* y, const T* dy, T* dx) { kernels::softmax_backward<T>(1, n, nullptr, y, dy, dx); });
}

namespace {

/// max((e_j - top) / p - τ, 0)^p with τ by bisection.
list<double> by_bisection(int power, const list<double>& e)
{
    list<double> w(e.size(), 0);
    if (e.empty()) return w;
    const double top = *std::max_element(e.begin(), e.end());
    double low = -1, high = 0;
    for (int round = 0; round < 100; ++round) {
        const double tau = (low + high) / 2;
        double sum = 0;
        for (std::size_t j = 0; j < e.size(); ++j) {
            const double over = std::max((e[j] - top) / power - tau, 0.0);
            sum += w[j] = power == 1 ? over : over * over;
        }
        (sum > 1 ? low : high) = tau;
    }
    return w;
}

/// Softmax over the k largest of n distinct numbers.
list<double> of_greatest(std::size_t k, const list<double>& e)
{
    list<double> sorted = e, w(e.size(), 0);
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    double sum = 0;
    for (std::size_t j = 0; j < e.size(); ++j)
        if (k >= e.size() || e[j] >= sorted[k - 1]) sum += w[j] = std::exp(e[j] - sorted[0]);
    for (double& each : w) each /= sum;
    return w;
}

}  // namespace

TEST_CASE_TEMPLATE("sparse weights and top-k weights: plain loops agree, padding is not read", T, float, double)
{
    for (const std::size_t width : {std::size_t{1}, std::size_t{3}, 64 / sizeof(T) + 1}) {
        for (const std::size_t positions : awkward<T>()) {
            const counts lengths{positions, positions / 2, 0};
            list<T> x = some<T>(lengths.size() * positions * width, 3, 2);
            poison(x, lengths, positions, width);
            list<T> one(x.size(), T(9)), two = one, some_of = one;
            sparse_weights<1>(lengths.size(), positions, width, lengths.data(), x.data(), one.data());
            sparse_weights<2>(lengths.size(), positions, width, lengths.data(), x.data(), two.data());
            greatest_weights(lengths.size(), positions, width, lengths.data(), 4, x.data(), some_of.data());
            list<double> want_one(x.size(), 0), want_two = want_one, want_some = want_one;
            for (std::size_t b = 0; b < lengths.size(); ++b) {
                for (std::size_t d = 0; d < width; ++d) {
                    list<double> e;
                    const std::size_t at = b * positions * width + d;
                    for (std::size_t t = 0; t < lengths[b]; ++t) e.push_back(static_cast<double>(x[at + t * width]));
                    const auto first = by_bisection(1, e), second = by_bisection(2, e), third = of_greatest(4, e);
                    for (std::size_t t = 0; t < lengths[b]; ++t) {
                        want_one[at + t * width] = first[t];
                        want_two[at + t * width] = second[t];
                        want_some[at + t * width] = third[t];
                    }
                }
            }
            CHECK(far(one, want_one) <= tolerance<T>);
            CHECK(far(two, want_two) <= tolerance<T>);
            CHECK(far(some_of, want_some) <= tolerance<T>);
        }
    }
}

TEST_CASE("sparse weights: gradients")
{
    const auto check = [](const char* name, auto power, std::size_t width) {
        const counts lengths{6, 0, 4};
        list<double> x = some<double>(3 * 6 * width, 5), g = some<double>(x.size(), 6);
        const auto loss = [&] {
            list<double> w(x.size());
            sparse_weights<power>(3, 6, width, lengths.data(), x.data(), w.data());
            return dot(w, g);
        };
        list<double> w(x.size()), dx(x.size(), 0.25);
        sparse_weights<power>(3, 6, width, lengths.data(), x.data(), w.data());
        poison(w, lengths, 6, width);  // the backward pass does not read the padding
        sparse_weights_backward<power>(3, 6, width, lengths.data(), w.data(), g.data(), dx.data());
        check_gradient(name, x, loss, dx, 0.25);
    };
    for (const std::size_t width : {1u, 5u}) {
        check("sparsemax", std::integral_constant<int, 1>{}, width);
        check("1.5-entmax", std::integral_constant<int, 2>{}, width);
    }
}
