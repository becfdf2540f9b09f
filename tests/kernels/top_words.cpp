// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/top_words.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <support/kernels.hpp>
#include <support/special_rows.hpp>

using namespace heed;
using namespace heed::kernels;
using namespace heed::test;

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
    });
}

TEST_CASE_TEMPLATE("numbers that reach a bound are noticed in each lane, NaN is not one", T, float, double)
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
                list<std::size_t> reaching;
                kernels::detail::each_reaching<T>(v[0], bound, n, [&](std::size_t i, T) { reaching.push_back(i); });
                if (bound == -infinity<T>) continue;  // the other lanes reach it, too
                CHECK(reaching == (value >= bound ? list<std::size_t>{lane} : list<std::size_t>{}));
            }
        }
    }
}

TEST_CASE_TEMPLATE("the most probable words of a row, and of several models: sorting agrees", T, float, double)
{
    counts sizes = awkward<T>();
    sizes.push_back(1003);
    for (const std::size_t V : sizes) {
        const std::size_t rows = 3, most = std::min<std::size_t>(V, 4);
        CAPTURE(V);
        list<T> models[2] = {some<T>(rows * V, 1, 4), some<T>(rows * V, 2, 4)};
        for (T& x : models[0]) x = std::round(x);  // equal ones, too
        const list<T> bias = some<T>(V, 3);
        const list<std::uint32_t> also{0, static_cast<std::uint32_t>(V - 1), static_cast<std::uint32_t>(V)};
        list<std::uint32_t> words(rows * most);
        list<T> log_p(rows * most), log_p_also(rows);
        const top_words<T> wanted{most, also.data(), words.data(), log_p.data(), log_p_also.data()};
        const auto check = [&](const auto& logits_of) {  // logits or log-probabilities of a row, in double
            for (std::size_t r = 0; r < rows; ++r) {
                const list<double> x = logits_of(r);
                double sum = 0;
                for (const double each : x) sum += std::exp(each);
                const auto order = in_order(x, most, [](double) { return true; });
                for (std::size_t k = 0; k < most; ++k) {
                    const double is = static_cast<double>(log_p[r * most + k]);
                    CHECK(std::fabs(x[words[r * most + k]] - x[order[k]]) <= 10 * tolerance<T>);
                    CHECK(std::fabs(is - (x[order[k]] - std::log(sum))) <= 10 * tolerance<T>);
                }
                const double other = static_cast<double>(log_p_also[r]);
                if (also[r] == V) CHECK(other == -infinity<double>);
                if (also[r] < V) CHECK(std::fabs(other - (x[also[r]] - std::log(sum))) <= 10 * tolerance<T>);
            }
        };
        const auto row = [&](const list<T>& x, std::size_t r) {
            const auto first = x.begin() + static_cast<std::ptrdiff_t>(r * V);
            return list<double>(first, first + static_cast<std::ptrdiff_t>(V));
        };
        log_softmax_top(rows, V, models[0].data(), static_cast<const T*>(nullptr), wanted);
        for (std::size_t r = 0; r < rows; ++r) {
            const auto order = in_order(row(models[0], r), most, [](double) { return true; });
            for (std::size_t k = 0; k < most; ++k) CHECK(words[r * most + k] == order[k]);
        }
        check([&](std::size_t r) { return row(models[0], r); });
        log_softmax_top(rows, V, models[1].data(), bias.data(), wanted);
        check([&](std::size_t r) {
            list<double> x = row(models[1], r);
            for (std::size_t i = 0; i < V; ++i) x[i] += static_cast<double>(bias[i]);
            return x;
        });
        for (const bool geometric : {false, true}) {
            mean_softmax_top<T>(rows, V, {models[0].data(), models[1].data()}, geometric, wanted);
            check([&](std::size_t r) {
                const list<double> a = row(models[0], r), b = row(models[1], r);
                const list<double> p = test::plain_softmax(V, 1, [&](std::size_t i) { return a[i]; }),
                                   q = test::plain_softmax(V, 1, [&](std::size_t i) { return b[i]; });
                list<double> x(V);
                for (std::size_t i = 0; i < V; ++i) x[i] = geometric ? (a[i] + b[i]) / 2 : std::log((p[i] + q[i]) / 2);
                return x;
            });
        }
    }
}
