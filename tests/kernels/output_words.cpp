// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/output_words.hpp>

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

TEST_CASE_TEMPLATE("the words of a product: as of its logits; the same bits beside other rows and with threads", T,
                   float, double)
{
    const std::size_t rows = 20, K = 9, V = 501, most = 3;
    const list<T> t = some<T>(rows * K, 1), w = some<T>(K * V, 2), b = some<T>(V, 3);
    kernels::panels<T> W;
    W.pack(K, V, w.data(), V);
    list<T> bias(W.count() * W.width, -infinity<T>);
    std::copy(b.begin(), b.end(), bias.begin());
    list<std::uint32_t> also(rows, 7), words(rows * most), expected(rows * most);
    also[1] = static_cast<std::uint32_t>(V);
    list<T> log_p(rows * most), log_p_also(rows), logits(rows * V);
    output_words<T>(rows, t.data(), W, bias.data(), {most, also.data(), words.data(), log_p.data(), log_p_also.data()});
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
            output_words<T>(1, t.data() + r * K, W, bias.data(),
                            {most, also.data() + r, word.data(), alone.data(), other.data()});
            CHECK(same_bits(alone.data(), log_p.data() + r * most, most));
            CHECK(std::equal(word.begin(), word.end(), words.begin() + static_cast<std::ptrdiff_t>(r * most)));
            CHECK(same_bits(other.data(), log_p_also.data() + r, 1));
        }
    }
}
