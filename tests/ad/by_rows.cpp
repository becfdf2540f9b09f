// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ad/by_rows.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <cstddef>
#include <tuple>
#include <utility>

using namespace heed;
using support::random;

// The results that a program by rows saves and recomputes, and its gradients, which are the same either way.

namespace {

/// y = 2 x, with a count of its runs on rows.
struct doubled_op : ops::operation<doubled_op> {
    static inline std::size_t runs = 0;

    static auto shape(const auto& x) { return x.shape; }
    template <class T, std::size_t N>
    static void forward(ops::in<T, N> x, ops::out<T, N> y)
    {
        runs += x.shape[0];
        for (std::size_t i = 0; i < x.size(); ++i) y.data[i] = 2 * x.data[i];
    }
    template <class T, std::size_t N>
    static void backward(ops::in<T, N> x, ops::in<T, N>, ops::in<T, N> d_y, ops::adjoint<T, N> d_x)
    {
        for (std::size_t i = 0; d_x && i < x.size(); ++i) d_x.data[i] += 2 * d_y.data[i];
    }
};
constexpr doubled_op doubled{};

/// y_b = Σ x_b², [B,N] -> [B,1]. Saves a number per row, and counts its runs.
struct squares_op : ops::operation<squares_op> {
    static inline std::size_t runs = 0;

    static shape_of_rank<2> shape(const auto& x) { return {x.shape[0], 1}; }
    static std::size_t saved(const auto& x) { return x.shape[0]; }
    template <class T>
    static void forward(ops::in<T, 2> x, ops::out<T, 2> y, T* saved)
    {
        runs += x.shape[0];
        const std::size_t n = x.shape[1];
        for (std::size_t b = 0; b < x.shape[0]; ++b) {
            y.data[b] = 0;
            for (std::size_t i = 0; i < n; ++i) y.data[b] += x.data[b * n + i] * x.data[b * n + i];
            saved[b] = 2;
        }
    }
    template <class T>
    static void backward(ops::in<T, 2> x, ops::in<T, 2>, ops::in<T, 2> d_y, const T* saved, ops::adjoint<T, 2> d_x)
    {
        const std::size_t n = x.shape[1];
        for (std::size_t i = 0; d_x && i < x.size(); ++i) d_x.data[i] += saved[i / n] * d_y.data[i / n] * x.data[i];
    }
};
constexpr squares_op squares{};

constexpr std::size_t batch = 5;

/// Checks that f(x, w) and its derivatives by rows equal those of the whole batch: x [B,N], w [N,N].
template <class F>
void check(const F& f, std::size_t width = 40)
{
    const auto x = random({batch, width}, 1), w = random({width, width}, 2, 0.1);
    for (const std::size_t count : {1u, 2u}) {
        set_threads(count);
        ad::tape<double> whole, rows;
        const auto run = [&](ad::tape<double>& on, auto apply) {
            const auto lifted_x = on.parameter(x);
            const auto lifted_w = on.parameter(w);
            const auto y = apply(lifted_x, lifted_w);
            on.backward(ops::dot(y, support::uneven(y.shape())));
            return std::tuple{copy_of(y.value()), copy_of(on.gradient(lifted_x)), copy_of(on.gradient(lifted_w))};
        };
        const auto [y, d_x, d_w] = run(whole, f);
        const auto [y_rows, d_x_rows, d_w_rows] = run(rows, [&](const auto& a, const auto& b) {
            return heed::detail::apply_by_rows(f, 1, std::tie(a), std::tie(b));
        });
        // Not bitwise: a product of one row may sum in a different order than a product of five.
        CHECK(support::distance(y, y_rows) <= 1e-12);
        CHECK(support::distance(d_x, d_x_rows) <= 1e-12);
        CHECK(support::distance(d_w, d_w_rows) <= 1e-12);
    }
    set_threads(1);
}

/// How often f's operations run per row, forward and backward.
template <class F>
std::pair<double, double> runs_per_row(const F& f, std::size_t width = 40)
{
    const auto x = random({batch, width}, 1);
    ad::tape<double> on;
    doubled_op::runs = squares_op::runs = 0;
    const auto lifted = on.parameter(x);
    const auto y = heed::detail::apply_by_rows(f, 1, std::tie(lifted), std::tuple<>{});
    on.backward(ops::dot(y, support::uneven(y.shape())));
    const auto each = [](std::size_t runs) { return static_cast<double>(runs) / static_cast<double>(batch); };
    return {each(doubled_op::runs), each(squares_op::runs)};
}

}  // namespace

TEST_CASE("the backward pass recomputes a row, except for saved results")
{
    // Once: the program's result, and results much smaller than their arguments. Twice: the others.
    const auto last = [](const auto& x) { return doubled(x); };
    CHECK(runs_per_row(last) == std::pair{1.0, 0.0});
    const auto inside = [](const auto& x) { return ops::tanh(doubled(x)); };
    CHECK(runs_per_row(inside) == std::pair{2.0, 0.0});
    const auto little = [](const auto& x) {
        const auto sum = squares(doubled(x));
        return ops::tanh(ops::concat(sum, sum));
    };
    CHECK(runs_per_row(little) == std::pair{2.0, 1.0});
    // A result is saved only if its arguments are at least eight times as large; seven are not.
    CHECK(runs_per_row(little, 7) == std::pair{2.0, 2.0});
    // At most as many numbers are saved as the result has, three: one of the sums with its saved number.
    const auto many = [](const auto& x) {
        return ops::tanh(ops::concat(squares(x), ops::tanh(ops::concat(squares(doubled(x)), squares(x)))));
    };
    CHECK(runs_per_row(many) == std::pair{2.0, 5.0});
}

TEST_CASE("gradients of a program by rows equal those of the whole batch")
{
    check([](const auto& x, const auto& w) { return ops::tanh(ops::linear(doubled(x), w)); });
    check([](const auto& x, const auto& w) { return squares(ops::linear(x, w)); });
    check([](const auto& x, const auto& w) {
        const auto sum = squares(ops::linear(doubled(x), w));
        return ops::tanh(ops::concat(sum, ops::scale(sum, 0.5)));
    });
}

TEST_CASE("another operation reads the result")
{
    check([](const auto& x, const auto& w) {
        const auto y = doubled(ops::linear(x, w));
        (void)ops::tanh(y);
        return y;
    });
}

TEST_CASE("more operations than the list can hold")
{
    check([](const auto& x, const auto& w) {
        auto y = ops::linear(x, w);
        for (int i = 0; i < 40; ++i) y = ops::tanh(y);
        return squares(y);
    });
}

TEST_CASE("a program that runs different operations on rows than without rows")
{
    // The list is made by a run without rows. If it does not match, results are recomputed, not confused.
    check([](const auto& x, const auto& w) {
        auto y = ops::linear(x, w);
        if (shape_of(x)[0] == 0) return doubled(y);
        y = doubled(doubled(y));
        return ops::tanh(y);
    });
    check([](const auto& x, const auto& w) {
        auto y = ops::linear(x, w);
        if (shape_of(x)[0] != 0) y = ops::tanh(y);
        return doubled(doubled(y));
    });
}

TEST_CASE("a program within a program")
{
    check([](const auto& x, const auto& w) {
        const auto inner = [](const auto& a, const auto& b) { return ops::tanh(ops::linear(doubled(a), b)); };
        return doubled(heed::detail::apply_by_rows(inner, 1, std::tie(x), std::tie(w)));
    });
}

TEST_CASE("release_workspace frees the tape of a row")
{
    release_workspace();
    CHECK(workspace_size() == 0);
    (void)runs_per_row([](const auto& x) { return ops::tanh(doubled(x)); });
    CHECK(workspace_size() > detail::workspace_of_this_thread().capacity());
    release_workspace();
    CHECK(workspace_size() == 0);
    (void)runs_per_row([](const auto& x) { return ops::tanh(doubled(x)); });
    CHECK(workspace_size() > 0);
}
