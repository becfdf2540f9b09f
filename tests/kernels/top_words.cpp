// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/top_words.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <heed/core/random.hpp>
#include <support/approx.hpp>

using namespace heed;

TEST_CASE_TEMPLATE("the fused log-softmax finds what sorting finds, at every size", T, float, double)
{
    auto draw = [drawn = std::uint64_t{0}]() mutable { return static_cast<T>(uniform(3, drawn++) * 8 - 4); };
    for (const std::size_t V : {1u, 2u, 7u, 15u, 16u, 17u, 31u, 64u, 100u, 257u, 1000u}) {
        for (const std::size_t most : {0u, 1u, 2u, 5u, 12u, 40u, 300u}) {
            if (most > V) continue;
            const std::size_t R = 3;
            std::vector<T> logits(R * V), bias(V);
            for (T& x : logits) x = draw();
            for (T& x : bias) x = draw();
            if (V > 20) logits[V + 20] = logits[V + 3] = logits[V + 11] = T(9);  // equal ones: in order of their ids
            if (V > 4) logits[2] = -std::numeric_limits<T>::infinity();
            for (const bool biased : {false, true}) {
                std::vector<std::uint32_t> words(R * most), also{0, static_cast<std::uint32_t>(V - 1), 1000};
                std::vector<T> log_p(R * most), log_p_also(R);
                kernels::log_softmax_top<T>(R, V, logits.data(), biased ? bias.data() : nullptr,
                                            {most, also.data(), words.data(), log_p.data(), log_p_also.data()});
                for (std::size_t r = 0; r < R; ++r) {
                    std::vector<T> x(V);
                    double sum = 0;
                    for (std::size_t i = 0; i < V; ++i) {
                        x[i] = logits[r * V + i] + (biased ? bias[i] : T(0));
                        sum += std::exp(static_cast<double>(x[i]));
                    }
                    std::vector<std::uint32_t> order(V);
                    for (std::size_t i = 0; i < V; ++i) order[i] = static_cast<std::uint32_t>(i);
                    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return x[a] > x[b]; });
                    for (std::size_t k = 0; k < most; ++k) {
                        CHECK(words[r * most + k] == order[k]);
                        const double expected = static_cast<double>(x[order[k]]) - std::log(sum);
                        if (std::isinf(expected)) {
                            CHECK(std::isinf(log_p[r * most + k]));
                        } else {
                            CHECK(log_p[r * most + k] == support::approx(expected, support::tolerance<T>));
                        }
                    }
                    if (also[r] < V) {
                        CHECK(log_p_also[r] ==
                              support::approx(static_cast<double>(x[also[r]]) - std::log(sum), support::tolerance<T>));
                    } else {
                        CHECK(log_p_also[r] == -std::numeric_limits<T>::infinity());
                    }
                }
            }
        }
    }
}
