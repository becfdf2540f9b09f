// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/top_k_words.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <heed/core/random.hpp>
#include <support/kernels.hpp>
#include <support/special_rows.hpp>

using namespace heed;
using namespace heed::kernels;
using namespace heed::test;

namespace {

/// The indices of the `most` largest numbers by sorting; ties in order.
template <class T>
std::vector<std::uint32_t> by_sorting(const list<T>& x, std::size_t most)
{
    std::vector<std::uint32_t> order;
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (x[i] > -std::numeric_limits<T>::infinity()) order.push_back(static_cast<std::uint32_t>(i));
    }
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return x[a] > x[b]; });
    order.resize(std::min(order.size(), most));
    return order;
}

template <class T>
void compare(kernels::top_k<T>& found, const list<T>& x, std::size_t most)
{
    found.begin(most);
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (x[i] > found.bound()) found.insert(x[i], static_cast<std::uint32_t>(i));
    }
    const auto expected = by_sorting(x, most);
    REQUIRE(found.size() == expected.size());
    for (std::size_t k = 0; k < expected.size(); ++k) {
        CHECK(found.place(k) == expected[k]);
        CHECK(found.value(k) == x[expected[k]]);
    }
    if (found.size() == most && most > 0) CHECK(found.bound() == x[expected[most - 1]]);
}

/// Checks that find(x, top_k_words) finds the words of each row x that admit(logit), in order, with their
/// log-probabilities. Rows without a possible word are also passed, but not compared.
template <class T>
void check_order(const auto& find, const auto& admit)
{
    each_row<T>([&](const list<T>& x) {
        const std::size_t V = x.size(), most = std::min<std::size_t>(V, 3);
        list<std::uint32_t> words(most);
        list<T> log_p(most);
        find(x, kernels::top_k_words<T>{most, nullptr, words.data(), log_p.data(), nullptr});
        const double top = static_cast<double>(greatest(x));
        if (!(top > -infinity<double>)) return;
        double sum = 0;
        for (const T e : x) sum += std::exp(static_cast<double>(e) - top);
        const list<std::uint32_t> want = in_order(x, most, admit);
        for (std::size_t k = 0; k < most; ++k) {
            CAPTURE(k);
            CHECK(words[k] == (k < want.size() ? want[k] : V));
            require_equal(&log_p[k], {k < want.size() ? static_cast<double>(x[want[k]]) - top - std::log(sum)
                                                      : -infinity<double>});
        }
    });
}

}  // namespace

TEST_CASE_TEMPLATE("words ordered by their logits: NaN is not a word, and makes every probability NaN", T, float,
                   double)
{
    check_order<T>(
        [](const list<T>& x, const kernels::top_k_words<T>& wanted) {
            if (greatest(x) > -infinity<T>) kernels::log_softmax_top<T>(1, x.size(), x.data(), nullptr, wanted);
        },
        [](T e) { return !std::isnan(e); });
}

TEST_CASE_TEMPLATE("numbers that reach a bound are found in each lane, and NaN does not", T, float, double)
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
                if (bound == -infinity<T>) continue;  // the other lanes also reach it
                CHECK(reaching == (value >= bound ? list<std::size_t>{lane} : list<std::size_t>{}));
            }
        }
    }
}

TEST_CASE_TEMPLATE("the most probable words of a row, and of several models, match sorting", T, float, double)
{
    counts sizes = awkward<T>();
    sizes.push_back(1003);
    for (const std::size_t V : sizes) {
        const std::size_t rows = 3, most = std::min<std::size_t>(V, 4);
        CAPTURE(V);
        list<T> models[2] = {some<T>(rows * V, 1, 4), some<T>(rows * V, 2, 4)};
        for (T& x : models[0]) x = std::round(x);  // with ties
        const list<T> bias = some<T>(V, 3);
        const list<std::uint32_t> also{0, static_cast<std::uint32_t>(V - 1), static_cast<std::uint32_t>(V)};
        list<std::uint32_t> words(rows * most);
        list<T> log_p(rows * most), log_p_also(rows);
        const top_k_words<T> wanted{most, also.data(), words.data(), log_p.data(), log_p_also.data()};
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

TEST_CASE_TEMPLATE("words of a product ordered by their logits: NaN is not a word, and makes every probability NaN", T,
                   float, double)
{
    check_order<T>(
        [](const list<T>& x, const kernels::top_k_words<T>& wanted) {  // the same logits as a product: 1 · x + 0
            const std::size_t V = x.size();
            kernels::panels<T> W;
            W.pack(1, V, x.data(), V);
            list<T> bias(W.columns_of_panels(), -infinity<T>);
            std::fill_n(bias.begin(), V, T(0));
            const T t = 1;
            kernels::output_top_k<T>(1, &t, W, bias.data(), wanted);
        },
        [](T e) { return e > -infinity<T>; });
}

TEST_CASE_TEMPLATE("the words of a product equal those of its logits, with the same bits in any batch and with threads",
                   T, float, double)
{
    const std::size_t rows = 20, K = 9, V = 501, most = 3;
    const list<T> t = some<T>(rows * K, 1), w = some<T>(K * V, 2), b = some<T>(V, 3);
    kernels::panels<T> W;
    W.pack(K, V, w.data(), V);
    list<T> bias(W.columns_of_panels(), -infinity<T>);
    std::copy(b.begin(), b.end(), bias.begin());
    list<std::uint32_t> also(rows, 7), words(rows * most), expected(rows * most);
    also[1] = static_cast<std::uint32_t>(V);
    list<T> log_p(rows * most), log_p_also(rows), logits(rows * V);
    output_top_k<T>(rows, t.data(), W, bias.data(), {most, also.data(), words.data(), log_p.data(), log_p_also.data()});
    W.multiply(rows, t.data(), K, logits.data(), V, false);
    list<T> must(rows * most), must_also(rows);
    log_softmax_top<T>(rows, V, logits.data(), b.data(),
                       {most, also.data(), expected.data(), must.data(), must_also.data()});
    CHECK(words == expected);
    CHECK(far(log_p, list<double>(must.begin(), must.end())) <= 4 * tolerance<T>);
    for (std::size_t r = 0; r < rows; ++r)
        if (r != 1) CHECK(std::fabs(static_cast<double>(log_p_also[r] - must_also[r])) <= 40 * tolerance<T>);
    CHECK(log_p_also[1] == -infinity<T>);
    for (const std::size_t threads : {1u, 2u, 3u}) {
        const with_threads scope(threads);
        for (std::size_t r = 0; r < rows; ++r) {
            list<std::uint32_t> word(most);
            list<T> alone(most), other(1);
            output_top_k<T>(1, t.data() + r * K, W, bias.data(),
                            {most, also.data() + r, word.data(), alone.data(), other.data()});
            CHECK(same_bits(alone.data(), log_p.data() + r * most, most));
            CHECK(std::equal(word.begin(), word.end(), words.begin() + static_cast<std::ptrdiff_t>(r * most)));
            CHECK(same_bits(other.data(), log_p_also.data() + r, 1));
        }
    }
}

TEST_CASE_TEMPLATE("threads that share the columns of a large matrix find the same words, with the same bits", T, float,
                   double)
{
    const std::size_t rows = 4, K = 32, V = 8200, most = 5;
    const list<T> t = some<T>(rows * K, 1), w = some<T>(K * V, 2), b = some<T>(V, 3);
    kernels::panels<T> W;
    W.pack(K, V, w.data(), V);
    list<T> bias(W.columns_of_panels(), -infinity<T>);
    std::copy(b.begin(), b.end(), bias.begin());
    const list<std::uint32_t> also{0, 2500, 5000, static_cast<std::uint32_t>(V - 1)};
    const auto search = [&](std::size_t threads, list<std::uint32_t>& words) {
        const with_threads scope(threads);
        list<T> log_p(rows * most), log_p_also(rows);
        words.assign(rows * most, 0);
        output_top_k<T>(rows, t.data(), W, bias.data(),
                        {most, also.data(), words.data(), log_p.data(), log_p_also.data()});
        log_p.insert(log_p.end(), log_p_also.begin(), log_p_also.end());
        return log_p;
    };
    list<std::uint32_t> must, words;
    const list<T> one = search(1, must);
    for (const std::size_t threads : {2u, 3u, 4u}) {
        CHECK(same_bits(search(threads, words), one));
        CHECK(words == must);
    }
}

TEST_CASE_TEMPLATE("a row with fewer numbers than requested words: the missing words are V", T, float, double)
{
    const std::size_t V = 3, most = 3;
    const list<T> x{std::numeric_limits<T>::quiet_NaN(), 2, std::numeric_limits<T>::quiet_NaN()};
    kernels::panels<T> W;
    W.pack(1, V, x.data(), V);
    list<T> bias(W.columns_of_panels(), -infinity<T>);
    std::fill_n(bias.begin(), V, T(0));
    const T t = 1;
    for (const bool of_product : {false, true}) {
        list<std::uint32_t> words(most);
        list<T> log_p(most);
        const top_k_words<T> wanted{most, nullptr, words.data(), log_p.data(), nullptr};
        if (of_product)
            output_top_k<T>(1, &t, W, bias.data(), wanted);
        else
            log_softmax_top<T>(1, V, x.data(), nullptr, wanted);
        CHECK(words == list<std::uint32_t>{1, V, V});
        CHECK(log_p[1] == -infinity<T>);
        CHECK(log_p[2] == -infinity<T>);
    }
}

TEST_CASE_TEMPLATE("the top words of low logits, after a row of high ones", T, float, double)
{
    constexpr std::size_t L = simd::lanes<T>, V = 12 * L + 1;
    for (const std::size_t most : {std::size_t{1}, L, 2 * L + 1}) {
        list<T> x(2 * V);
        for (std::size_t i = 0; i < V; ++i) {
            x[i] = static_cast<T>(100 + i);
            x[V + i] = static_cast<T>(i * 7 % V) - 1000;
        }
        list<std::uint32_t> words(2 * most);
        list<T> log_p(2 * most);
        log_softmax_top<T>(2, V, x.data(), nullptr, {most, nullptr, words.data(), log_p.data(), nullptr});
        for (std::size_t r = 0; r < 2; ++r) {
            const list<T> row(x.begin() + static_cast<std::ptrdiff_t>(r * V),
                              x.begin() + static_cast<std::ptrdiff_t>((r + 1) * V));
            const auto order = in_order(row, most, [](T) { return true; });
            CHECK(std::equal(order.begin(), order.end(), words.begin() + static_cast<std::ptrdiff_t>(r * most)));
        }
    }
}

TEST_CASE_TEMPLATE("the largest numbers match sorting, in order", T, float, double)
{
    std::uint64_t drawn = 0;
    kernels::top_k<T> found;  // reused: the contents of an earlier row do not matter
    for (const std::size_t most : {0u, 1u, 2u, 7u, 8u, 9u, 13u, 16u, 17u, 40u}) {
        for (const std::size_t count : {0u, 1u, 5u, 12u, 100u, 1000u}) {
            std::vector<T> x(count), few(count);
            for (T& each : x) each = static_cast<T>(uniform(2, drawn++) * 20 - 10);
            for (T& each : few) each = static_cast<T>(static_cast<int>(uniform(2, drawn++) * 5));  // with ties
            compare(found, x, most);
            compare(found, few, most);
            std::sort(x.begin(), x.end());  // each number is inserted
            compare(found, x, most);
            if (count > 5) {
                x[count - 1] = std::numeric_limits<T>::infinity();
                x[2] = std::numeric_limits<T>::quiet_NaN();
                x[3] = -std::numeric_limits<T>::infinity();
                compare(found, x, most);
            }
        }
    }
}

TEST_CASE_TEMPLATE("lanes above a bound: NaN is detected, but not included", T, float, double)
{
    constexpr std::size_t n = 2, lanes = simd::lanes<T>;
    T x[n * lanes];
    const auto registers = [&x](simd::vec<T>(&v)[n]) {
        for (std::size_t i = 0; i < n; ++i) v[i] = simd::load(x + i * lanes);
    };
    for (std::size_t at = 0; at < n * lanes; ++at) {
        for (const T value : {T(3), T(1), std::numeric_limits<T>::quiet_NaN()}) {
            std::fill_n(x, n * lanes, T(-1));
            x[at] = value;
            simd::vec<T> v[n];
            registers(v);
            std::vector<std::size_t> found;
            kernels::detail::each_above(v, T(1), [&](std::size_t i) { found.push_back(i); });
            CHECK(found == (value == T(3) ? std::vector<std::size_t>{at} : std::vector<std::size_t>{}));
            CHECK(kernels::detail::any_above(simd::max(v[0], v[0]), T(1)) == (at < lanes && value != T(1)));
        }
    }
}

TEST_CASE_TEMPLATE("the bound of a search: numbers above it, and NaN, are detected in each lane", T, float, double)
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
                list<std::size_t> above;
                kernels::detail::each_above(v, bound, [&](std::size_t i) { above.push_back(i); });
                CHECK(above == (value > bound ? list<std::size_t>{lane} : list<std::size_t>{}));
            }
        }
    }
}
