// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/output_words.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <heed/core/random.hpp>
#include <heed/gemm/blas.hpp>
#include <support/approx.hpp>

using namespace heed;

namespace {

/// W [K,V] and b [V] in the panels' order.
template <class T>
struct laid_out {
    kernels::weight_panels<T> weights;
    std::vector<T> bias;  // -inf after the last word

    void pack(std::size_t K, std::size_t V, const T* W, const T* b)
    {
        weights.pack(K, V, W, V);
        bias.assign(weights.count() * kernels::weight_panels<T>::width, -std::numeric_limits<T>::infinity());
        std::copy_n(b, V, bias.begin());
    }
};

/// The same number; NaN is NaN.
bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

TEST_CASE_TEMPLATE("the output layer tile by tile returns the same as the whole", T, float, double)
{
    auto draw = [drawn = std::uint64_t{0}]() mutable { return static_cast<T>(uniform(4, drawn++) * 2 - 1); };
    for (const std::size_t V : {1u, 5u, 63u, 64u, 65u, 200u, 1000u}) {
        for (const std::size_t R : {1u, 5u, 6u, 7u, 13u}) {
            const std::size_t K = 9, most = std::min<std::size_t>(V, 12);
            std::vector<T> t(R * K), W(K * V), b(V), logits(R * V, T(0));
            for (auto* x : {&t, &W, &b}) {
                for (T& each : *x) each = draw();
            }
            if (V > 64) {
                for (std::size_t k = 0; k < K; ++k) W[k * V + 64] = 100 * t[k];  // far above the values before
                b[30] = -std::numeric_limits<T>::infinity();
            }
            blas::gemm(blas::op::plain, blas::op::plain, R, V, K, t.data(), W.data(), T(0), logits.data());
            laid_out<T> packed_W;
            std::vector<T> bias;
            packed_W.pack(K, V, W.data(), b.data());
            std::vector<std::uint32_t> also(R), words(R * most), as_whole(R * most);
            for (std::size_t r = 0; r < R; ++r) also[r] = static_cast<std::uint32_t>(r == 3 ? V : (31 * r) % V);
            std::vector<T> log_p(R * most), log_p_also(R), whole(R * most), whole_also(R);
            kernels::output_words<T>(R, t.data(), packed_W.weights, packed_W.bias.data(),
                                     {most, also.data(), words.data(), log_p.data(), log_p_also.data()});
            kernels::log_softmax_top<T>(R, V, logits.data(), b.data(),
                                        {most, also.data(), as_whole.data(), whole.data(), whole_also.data()});
            CHECK(words == as_whole);
            for (std::size_t i = 0; i < R * most; ++i)
                CHECK(log_p[i] == support::approx(whole[i], support::tolerance<T>));
            for (std::size_t r = 0; r < R; ++r) {
                if (std::isinf(whole_also[r])) {
                    CHECK(log_p_also[r] == whole_also[r]);
                } else {
                    CHECK(log_p_also[r] == support::approx(whole_also[r], support::tolerance<T>));
                }
            }
            std::vector<T> product(R * V, T(1));
            packed_W.weights.multiply(R, t.data(), K, product.data(), V, true);
            for (std::size_t i = 0; i < R * V; ++i)
                CHECK(product[i] == support::approx(logits[i] + 1, support::tolerance<T>));
        }
    }
    // Only NaN, and ties.
    const std::size_t V = 70;
    std::vector<T> t{1}, W(V, T(2)), b(V, T(0)), bias;
    laid_out<T> packed_W;
    packed_W.pack(1, V, W.data(), b.data());
    std::vector<std::uint32_t> words(3);
    std::vector<T> log_p(3), none(1);
    kernels::output_words<T>(1, t.data(), packed_W.weights, packed_W.bias.data(),
                             {3, nullptr, words.data(), log_p.data(), none.data()});
    CHECK(words == std::vector<std::uint32_t>{0, 1, 2});
    CHECK(log_p[0] == support::approx(-std::log(70.0), support::tolerance<T>));
    t[0] = std::numeric_limits<T>::quiet_NaN();
    kernels::output_words<T>(1, t.data(), packed_W.weights, packed_W.bias.data(),
                             {3, nullptr, words.data(), log_p.data(), none.data()});
    for (const T each : log_p) CHECK(!(each > -std::numeric_limits<T>::infinity()));
}

TEST_CASE_TEMPLATE("the output layer split among threads: few rows by columns, many by rows", T, float, double)
{
    constexpr T infinity = std::numeric_limits<T>::infinity();
    auto draw = [drawn = std::uint64_t{0}]() mutable { return static_cast<T>(uniform(5, drawn++) * 2 - 1); };
    const std::size_t K = 300, V = 3000, most = 13;
    std::vector<T> W(K * V), b(V);
    for (T& each : W) each = draw();
    for (T& each : b) each = draw();
    for (const std::size_t v : {7u, 8u, 1500u, 2999u}) {  // equal ones, in parts of different threads
        for (std::size_t k = 0; k < K; ++k) W[k * V + v] = W[k * V + 7];
        b[v] = 50;
    }
    b[20] = -infinity;
    b[2000] = -infinity;
    laid_out<T> packed_W;
    std::vector<T> bias;
    packed_W.pack(K, V, W.data(), b.data());
    for (const std::size_t R : {1u, 4u, 13u, 40u}) {
        std::vector<T> t(R * K);
        for (T& each : t) each = draw();
        if (R > 4) t[3 * K] = std::numeric_limits<T>::quiet_NaN();
        std::vector<std::uint32_t> also(R), words(R * most), expected_words;
        for (std::size_t r = 0; r < R; ++r) also[r] = static_cast<std::uint32_t>(r == 0 ? 2000 : 997 * r % V);
        std::vector<T> log_p(R * most), log_p_also(R), expected, expected_also;
        for (const std::size_t count : {1u, 2u, 3u}) {
            set_threads(count);
            kernels::output_words<T>(R, t.data(), packed_W.weights, packed_W.bias.data(),
                                     {most, also.data(), words.data(), log_p.data(), log_p_also.data()});
            set_threads(1);
            if (count == 1) {
                CHECK(std::vector<std::uint32_t>(words.begin(), words.begin() + 4) ==
                      std::vector<std::uint32_t>{7, 8, 1500, 2999});
                CHECK(log_p_also[0] == -infinity);
                if (R > 4) CHECK(std::isnan(log_p_also[3]));
                expected_words = words;
                expected = log_p;
                expected_also = log_p_also;
            }
            CHECK(words == expected_words);
            for (std::size_t i = 0; i < R * most; ++i) CHECK(same_number(log_p[i], expected[i]));
            for (std::size_t r = 0; r < R; ++r) CHECK(same_number(log_p_also[r], expected_also[r]));
            for (std::size_t r = 0; r < R; ++r) {  // alone, with as many threads: the same bits
                set_threads(count);
                kernels::output_words<T>(1, t.data() + r * K, packed_W.weights, packed_W.bias.data(),
                                         {most, also.data() + r, words.data(), log_p.data(), log_p_also.data()});
                set_threads(1);
                for (std::size_t i = 0; i < most; ++i) CHECK(same_number(log_p[i], expected[r * most + i]));
            }
        }
    }
}
