// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <heed/kernels/additive.hpp>
#include <heed/kernels/cross_entropy.hpp>
#include <heed/kernels/leaders.hpp>
#include <heed/kernels/optimizers.hpp>
#include <heed/kernels/output_words.hpp>
#include <heed/kernels/per_dimension.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/kernels/sparse.hpp>
#include <heed/kernels/top_words.hpp>
#include <heed/kernels/weighted_sum.hpp>

#include "support/special_values.hpp"
#include <support/approx.hpp>

// Each kernel that compares numbers or sums a row, with a special value in each place of a row, against plain loops:
// whether a NaN is noticed must depend neither on its place nor on the target's registers.

namespace {

using namespace heed;
using heed::test::special_values;

template <class T>
using list = std::vector<T>;

template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();

/// f(row), for rows of ordinary numbers with a special value in each place, with or without -inf in the next one.
template <class T, class F>
void each_row(F f)
{
    for (const std::size_t n : test::awkward_sizes(simd::lanes<T>)) {
        for (const T value : special_values<T>()) {
            for (std::size_t at = 0; at < n; ++at) {
                for (const bool masked : {false, true}) {
                    list<T> x(n);
                    for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<T>((i * 5 + 3) % 7) * T(0.5) - 1;
                    if (masked) x[(at + 1) % n] = -infinity<T>;
                    x[at] = value;
                    CAPTURE(n);
                    CAPTURE(at);
                    CAPTURE(value);
                    CAPTURE(masked);
                    f(x);
                }
            }
        }
    }
}

template <class T>
void require_equal(const T* got, const list<double>& want, double tolerance = sizeof(T) == 4 ? 4e-6 : 1e-13)
{
    for (std::size_t i = 0; i < want.size(); ++i) {
        const double is = static_cast<double>(got[i]);
        if (is == want[i] || (std::isnan(is) && std::isnan(want[i]))) continue;
        CAPTURE(i);
        CAPTURE(is);
        CAPTURE(want[i]);
        REQUIRE(std::fabs(is - want[i]) <= tolerance * std::max(1.0, std::fabs(want[i])));
    }
}

template <class T>
bool any_nan(const list<T>& x)
{
    return std::any_of(x.begin(), x.end(), [](T e) { return std::isnan(e); });
}

/// The greatest of the numbers.
template <class T>
T greatest(const list<T>& x)
{
    T top = -infinity<T>;
    for (const T e : x) top = e > top ? e : top;
    return top;
}

/// A score of -inf is hidden: its weight is 0 whatever the others are.
template <class T>
list<double> plain_softmax(const list<T>& x)
{
    const double top = static_cast<double>(greatest(x));
    list<double> y(x.size(), 0);
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
        if (x[i] != -infinity<T>) sum += y[i] = std::exp(static_cast<double>(x[i]) - top);
    for (std::size_t i = 0; i < x.size(); ++i)
        if (x[i] != -infinity<T>) y[i] /= sum;
    return y;
}

/// The places of the `most` greatest that are admitted; of equal ones, the first.
template <class T, class Admit>
list<std::uint32_t> in_order(const list<T>& x, std::size_t most, Admit admit)
{
    list<std::uint32_t> order;
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (admit(x[i])) order.push_back(static_cast<std::uint32_t>(i));
    }
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return x[a] > x[b]; });
    order.resize(std::min(order.size(), most));
    return order;
}

}  // namespace

TEST_CASE_TEMPLATE("softmax of a row", T, float, double)
{
    each_row<T>([](const list<T>& x) {
        CHECK(kernels::detail::max_of(x.size(), x.data()) == greatest(x));
        list<T> y(x.size());
        kernels::softmax<T>(1, x.size(), nullptr, x.data(), y.data());
        require_equal(y.data(), plain_softmax(x));
    });
}

TEST_CASE_TEMPLATE("what is hidden has weight 0 and gradient 0, whatever is beside it and comes back to it", T, float,
                   double)
{
    const auto check = [](const auto& forward, const auto& backward) {
        each_row<T>([&](const list<T>& x) {
            const std::size_t n = x.size();
            list<T> y(n), in_place = x, dy(n), with_zeros(n), dx(n), must(n);
            forward(n, x.data(), y.data());
            forward(n, in_place.data(), in_place.data());
            for (std::size_t i = 0; i < n; ++i) {
                if (x[i] == -infinity<T>) CHECK((y[i] == 0 && in_place[i] == 0));
                dy[i] = with_zeros[i] = T(0.5) + static_cast<T>(i % 3);
                if (y[i] == 0) dy[i] = std::numeric_limits<T>::quiet_NaN();
                if (y[i] == 0) with_zeros[i] = 0;
            }
            backward(n, y.data(), dy.data(), dx.data());
            backward(n, y.data(), with_zeros.data(), must.data());
            require_equal(dx.data(), list<double>(must.begin(), must.end()));
            for (std::size_t i = 0; i < n; ++i)
                if (y[i] == 0) CHECK(dx[i] == 0);
        });
    };
    check(
        [](std::size_t n, const T* x, T* y) { kernels::softmax<T>(1, n, nullptr, x, y); },
        [](std::size_t n, const T* y, const T* dy, T* dx) { kernels::softmax_backward<T>(1, n, nullptr, y, dy, dx); });
    check([](std::size_t n, const T* x, T* y) { kernels::softmax_per_dimension<T>(1, n, 1, nullptr, x, y); },
          [](std::size_t n, const T* y, const T* dy, T* dx) {
              kernels::softmax_per_dimension_backward<T>(1, n, 1, nullptr, y, dy, dx);
          });
    check([](std::size_t n, const T* x, T* y) { kernels::sparse_weights<1>(1, n, 1, nullptr, x, y); },
          [](std::size_t n, const T* y, const T* dy, T* dx) {
              kernels::sparse_weights_backward<1>(1, n, 1, nullptr, y, dy, dx);
          });
    check([](std::size_t n, const T* x, T* y) { kernels::sparse_weights<2>(1, n, 1, nullptr, x, y); },
          [](std::size_t n, const T* y, const T* dy, T* dx) {
              kernels::sparse_weights_backward<2>(1, n, 1, nullptr, y, dy, dx);
          });
    check(
        [](std::size_t n, const T* x, T* y) { kernels::greatest_weights<T>(1, n, 1, nullptr, 2, x, y); },
        [](std::size_t n, const T* y, const T* dy, T* dx) { kernels::softmax_backward<T>(1, n, nullptr, y, dy, dx); });
}

TEST_CASE_TEMPLATE("softmax of a column, among others that do not change", T, float, double)
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
            const list<double> weights = plain_softmax(column);
            for (std::size_t t = 0; t < positions; ++t) want[t * n + d] = weights[t];
        }
        require_equal(y.data(), want);
        list<T> top(n), scale(n), context(n), again(table.size());
        kernels::detail::per_dimension_piece<T>(positions, n, table.data(), table.data(), 0, n, top.data(),
                                                scale.data(), context.data(), again.data());
        require_equal(again.data(), want);
    });
}

TEST_CASE_TEMPLATE("sparse weights: a NaN shows up, -inf counts for nothing", T, float, double)
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

TEST_CASE_TEMPLATE("cross-entropy and its gradient", T, float, double)
{
    each_row<T>([](const list<T>& x) {
        const std::uint32_t target = 0;
        list<T> y = x;
        T loss = 0;
        kernels::cross_entropy_in_place<T>(1, x.size(), y.data(), &target, nullptr, T(0), &loss);
        const double top = static_cast<double>(greatest(x));
        list<double> gradient(x.size());
        double sum = 0;
        for (std::size_t i = 0; i < x.size(); ++i) { sum += gradient[i] = std::exp(static_cast<double>(x[i]) - top); }
        for (double& e : gradient) e /= sum;
        gradient[0] -= 1;
        require_equal(y.data(), gradient);
        require_equal(&loss, {std::log(sum) - (static_cast<double>(x[0]) - top)});
    });
}

TEST_CASE_TEMPLATE("the bound of a search: numbers above it, and NaN, are noticed in each lane", T, float, double)
{
    constexpr std::size_t n = simd::lanes<T>;
    for (const T bound : special_values<T>()) {
        if (std::isnan(bound)) continue;
        for (const T value : special_values<T>()) {
            for (std::size_t lane = 0; lane < n; ++lane) {
                simd::vec<T> v[1] = {simd::splat(-infinity<T>)};
                v[0][lane] = value;
                CAPTURE(bound);
                CAPTURE(value);
                CAPTURE(lane);
                CHECK(kernels::detail::any_above(v[0], bound) == !(value <= bound));
                list<std::size_t> above, reaching;
                kernels::detail::each_above(v, bound, [&](std::size_t i) { above.push_back(i); });
                CHECK(above == (value > bound ? list<std::size_t>{lane} : list<std::size_t>{}));
                kernels::detail::each_reaching<T>(v[0], bound, n, [&](std::size_t i, T) { reaching.push_back(i); });
                if (bound == -infinity<T>) continue;  // the other lanes reach it, too
                CHECK(reaching == (value >= bound ? list<std::size_t>{lane} : list<std::size_t>{}));
            }
        }
    }
}

TEST_CASE_TEMPLATE("words in order of their logits: NaN is not a word, and makes every probability NaN", T, float,
                   double)
{
    each_row<T>([](const list<T>& x) {
        const std::size_t V = x.size(), most = std::min<std::size_t>(V, 3);
        const double top = static_cast<double>(greatest(x));
        double sum = 0;
        for (const T e : x) sum += std::exp(static_cast<double>(e) - top);
        const auto check = [&](const list<std::uint32_t>& words, const list<T>& log_p, auto admit) {
            const list<std::uint32_t> want = in_order(x, most, admit);
            for (std::size_t k = 0; k < most; ++k) {
                CAPTURE(k);
                CHECK(words[k] == (k < want.size() ? want[k] : V));
                require_equal(&log_p[k], {k < want.size() ? static_cast<double>(x[want[k]]) - top - std::log(sum)
                                                          : -infinity<double>});
            }
        };
        list<std::uint32_t> words(most);
        list<T> log_p(most);
        const kernels::top_words<T> wanted{most, nullptr, words.data(), log_p.data(), nullptr};
        if (top > -infinity<double>) {  // a row in which nothing is possible is not tested
            kernels::log_softmax_top<T>(1, V, x.data(), nullptr, wanted);
            check(words, log_p, [](T e) { return !std::isnan(e); });
        }
        // The same logits as a product: 1 · x + 0.
        kernels::panels<T> W;
        W.pack(1, V, x.data(), V);
        list<T> bias(W.count() * W.width, -infinity<T>);
        std::fill_n(bias.begin(), V, T(0));
        const T t = 1;
        kernels::output_words<T>(1, &t, W, bias.data(), wanted);
        if (top > -infinity<double>) check(words, log_p, [](T e) { return e > -infinity<T>; });
    });
}

TEST_CASE_TEMPLATE("temporal attention: special values in the history, and a key that is NaN", T, float, double)
{
    each_row<T>([](const list<T>& history) {
        const std::size_t n = history.size();
        const T query = 0, v = 2;
        list<T> keys(n), values(n, T(1)), scores(n), weights(n), next(n), context(1);
        for (std::size_t j = 0; j < n; ++j) keys[j] = static_cast<T>(j % 3) - 1;
        keys[n / 2] = std::isnan(history[0]) ? std::numeric_limits<T>::quiet_NaN() : keys[n / 2];
        const kernels::additive_step<T> step{
            1, n, 1, 1, nullptr, &query, keys.data(), &v, values.data(), history.data(), true};
        kernels::additive_forward(step, scores.data(), weights.data(), context.data(), next.data());
        list<T> left(n);
        list<double> summed(n);
        for (std::size_t j = 0; j < n; ++j) {
            const T e = scores[j], L = history[j];
            left[j] = L == -infinity<T> ? e : e - L;
            const double high = static_cast<double>(e > L ? e : L), low = static_cast<double>(e > L ? L : e);
            summed[j] = L == -infinity<T> ? static_cast<double>(e) : high + std::log1p(std::exp(low - high));
        }
        require_equal(weights.data(), plain_softmax(left));
        require_equal(next.data(), summed);
    });
}

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
        const double norm = kernels::squared_norm(n, x.data());
        require_equal(&norm, {squares});
        const T distance = kernels::squared_distance(n, x.data(), zeros.data());
        require_equal(&distance, {static_cast<double>(static_cast<T>(squares))});
        T selected = 0;
        kernels::detail::selected_sum_row(n, 1, ones.data(), x.data(), &selected);
        require_equal(&selected, {sum});
        list<T> weights(n, T(1));
        for (std::size_t i = 0; i < n; ++i) weights[i] = std::isfinite(x[i]) ? T(1) : T(0);
        double finite = 0;
        for (const T e : x) finite += std::isfinite(e) ? static_cast<double>(e) : 0;
        kernels::detail::selected_sum_row(n, 1, weights.data(), x.data(), &selected);
        require_equal(&selected, {finite});
    });
}
