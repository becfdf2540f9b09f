// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/papers/positions.hpp>
#include <heed/verify.hpp>
#include <support/gradients.hpp>
#include <support/many_queries.hpp>
#include <support/tensors.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

using namespace heed;
using support::distance;
using support::random;
using support::words_of;

namespace {

constexpr std::size_t N = 6, R = 3;

auto with(const auto& distances)
{
    return attention{score::relative{score::scaled_dot{}, distances}, normalize::softmax{}, combine::weighted_sum{}};
}

/// With vectors for values as well.
auto with(const auto& distances, const auto& of_values)
{
    return attention{score::relative{score::scaled_dot{}, distances}, normalize::softmax{},
                     combine::relative{of_values}};
}

/// Shaw et al. 2018, eq. 2 and 4, number by number; causal, or every key. With `of_values`, eq. 3.
array<double, 3> by_hand(const array<double, 3>& h, const array<double, 3>& q, const array<double, 2>& d,
                         const lengths& real, bool causal, const array<double, 2>& of_values = {})
{
    const auto [B, S, width] = q.shape();
    array<double, 3> contexts({B, S, width}, 0.0);
    const auto reach = static_cast<long>(d.shape()[1] / 2);
    for (std::size_t b = 0; b < B; ++b) {
        for (std::size_t s = 0; s < S; ++s) {
            const std::size_t n = causal ? std::min(real[b], h.shape()[1] - S + s + 1) : real[b];
            std::vector<double> weights;
            double sum = 0;
            for (std::size_t j = 0; j < n; ++j) {
                const long far = std::clamp(static_cast<long>(j) - static_cast<long>(s), -reach, reach);
                double e = 0;
                for (std::size_t i = 0; i < width; ++i)
                    e += q(b, s, i) * (h(b, j, i) + d(i, static_cast<std::size_t>(far + reach)));
                weights.push_back(std::exp(e / std::sqrt(static_cast<double>(width))));
                sum += weights.back();
            }
            for (std::size_t j = 0; j < n; ++j)
                for (std::size_t i = 0; i < width; ++i) contexts(b, s, i) += weights[j] / sum * h(b, j, i);
            if (of_values.size() == 0) continue;
            const auto most = static_cast<long>(of_values.shape()[0] / 2);
            for (std::size_t j = 0; j < n; ++j) {
                const long far = std::clamp(static_cast<long>(j) - static_cast<long>(s), -most, most);
                for (std::size_t i = 0; i < width; ++i)
                    contexts(b, s, i) += weights[j] / sum * of_values(static_cast<std::size_t>(far + most), i);
            }
        }
    }
    return contexts;
}

}  // namespace

TEST_CASE("relative positions, few and many queries: the paper's sum")
{
    const auto d = random({N, 2 * R + 1}, 5);
    const auto attend = with(d);
    for (const std::size_t T : {std::size_t{5}, std::size_t{90}}) {
        const auto h = random({3, T, N}, 1), q = random({3, T, N}, 2);
        const lengths real({T, T / 2, 1});
        CHECK(distance(attend(attend.on(h, real), q), by_hand(h, q, d, real, false)) < 1e-12);
        CHECK(distance(attend(attend.on(h), q, causal{}), by_hand(h, q, d, lengths({T, T, T}), true)) < 1e-12);
    }
    CHECK(support::distance_from_one_by_one(with(random({4, 2 * R + 1}, 6)), causal{}, lengths({70, 33, 0}), 70, 70) <
          1e-10);
    const attention general{score::relative{score::general{random({N, N}, 7)}, d}, normalize::sparsemax{},
                            combine::weighted_sum{}};
    const auto h = random({2, 70, N}, 1), q = random({2, 70, N}, 2);
    const auto memory = general.on(h);
    const auto all = general(memory, q);
    auto state = general.start(memory);
    for (std::size_t s = 0; s < 70; ++s) {
        const auto next = general.compose(memory, ops::step_of(q, s), state);
        CHECK(distance(next.context, ops::step_of(all, s)) < 1e-12);
        state = next.state;
    }
}

TEST_CASE("relative positions go on with a memory that grows, with a state, within a window")
{
    const auto attend = with(random({N, 2 * R + 1}, 5));
    const auto h = random({2, 80, N}, 1), q = random({2, 80, N}, 2);
    const auto all = attend(attend.on(h), q, causal{});
    for (const std::size_t chunk : {std::size_t{1}, std::size_t{30}})
        CHECK(support::distance_where_it_grows(attend, h, q, all, chunk) < 1e-12);
    const attention near{attend.score, normalize::local_m{2}, combine::weighted_sum{}};
    const auto memory = near.on(h);
    const auto of_window = near(memory, q);
    boolean_mask<3> band(shape_of_rank<3>{2, 80, 80});
    for (std::size_t b = 0; b < 2; ++b)
        for (std::size_t s = 0; s < 80; ++s)
            for (std::size_t t = 0; t < 80; ++t) band[(b * 80 + s) * 80 + t] = t + 2 >= s && t <= s + 2;
    CHECK(distance(of_window, attend(attend.on(h), q, band)) < 1e-12);
}

TEST_CASE("what goes back through relative positions, few queries and many")
{
    for (const std::size_t T : {std::size_t{4}, std::size_t{66}}) {
        const auto f = [](const auto& d, const auto& q, const auto& h) {
            const auto attend = with(d);
            return ops::step_of(attend(attend.on(h), q, causal{}), shape_of(q)[1] - 2);
        };
        CHECK_GRADIENT(f, random({2, 3}, 5), random({1, T, 2}, 2), random({1, T, 2}, 1));
    }
}

TEST_CASE("vectors for values: the paper's sum, step by step and all at once")
{
    const auto d = random({N, 2 * R + 1}, 5);
    for (const std::size_t most : {std::size_t{0}, std::size_t{2}, std::size_t{100}}) {
        const auto a = random({2 * most + 1, N}, 6);
        const auto attend = with(d, a);
        for (const std::size_t T : {std::size_t{1}, std::size_t{5}, std::size_t{90}}) {
            const auto h = random({3, T, N}, 1), q = random({3, T, N}, 2);
            const lengths real({T, T / 2, 1});
            CHECK(distance(attend(attend.on(h, real), q), by_hand(h, q, d, real, false, a)) < 1e-12);
            CHECK(distance(attend(attend.on(h), q, causal{}), by_hand(h, q, d, lengths({T, T, T}), true, a)) < 1e-12);
            const auto memory = attend.on(h, real);
            auto state = attend.start(memory);
            const auto must = by_hand(h, q, d, real, false, a);
            for (std::size_t s = 0; s < T; ++s) {
                const auto next = attend.step(memory, ops::step_of(q, s), state);
                CHECK(distance(next.context, ops::step_of(must, s)) < 1e-12);
                state = next.state;
            }
        }
    }
    // A preset; other scores and normalizers; laid under a gate; masks, empty sentences and every derivative.
    const auto h = random({2, 9, N}, 1);
    const auto a = random({5, N}, 6);
    const auto preset = papers::shaw2018::relative(d, a);
    CHECK(support::same_bits(preset(preset.on(h), h), with(d, a)(with(d, a).on(h), h)));
    const auto narrow = random({5, std::size_t{4}}, 7);
    const auto off = [&](const auto& attend, const auto& mask) {
        return support::distance_from_one_by_one(attend, mask, lengths({70, 33, 0}), 70, 70);
    };
    const combine::relative sum{narrow};
    CHECK(off(attention{score::dot{}, normalize::softmax{}, sum}, causal{}) < 1e-9);
    CHECK(off(attention{score::dot{}, normalize::sigmoid{}, sum}, causal{} & sliding_window{7}) < 1e-9);
    CHECK(off(attention{score::dot{}, normalize::temporal{}, sum}, no_mask{}) < 1e-9);
    CHECK(off(attention{score::dot{}, normalize::softmax{}, combine::gated{random({4, 1}, 8), random({1}, 9), sum}},
              no_mask{}) < 1e-9);
    const auto report = verify(attention{score::dot{}, normalize::softmax{}, sum}, {.width = 4});
    CHECK_MESSAGE(bool(report), report.text());
}

TEST_CASE("vectors for values: a memory that grows, heads, derivatives")
{
    const auto attend = with(random({N, 2 * R + 1}, 5), random({5, N}, 6));
    const auto h = random({2, 80, N}, 1), q = random({2, 80, N}, 2);
    const auto all = attend(attend.on(h), q, causal{});
    for (const std::size_t chunk : {std::size_t{1}, std::size_t{30}})
        CHECK(support::distance_where_it_grows(attend, h, q, all, chunk) < 1e-12);

    const auto f = [](const auto& d, const auto& a, const auto& x) {
        const auto near = with(d, a);
        return near(near.on(x), x, causal{});
    };
    CHECK_GRADIENT(f, random({2, 3}, 5), random({3, 2}, 6), random({2, 4, 2}, 1));

    // In heads, values are those after W_V: each head is an attention on its part of the columns.
    const auto x = random({2, 7, 4}, 1);
    const auto W_Q = random({4, 6}, 2), W_K = random({4, 6}, 3), W_V = random({4, 6}, 4), W_O = random({6, 4}, 5);
    const std::vector heads{with(random({3, 5}, 6), random({3, 3}, 7)), with(random({3, 5}, 8), random({3, 3}, 9))};
    const multi_head both{heads, W_Q, W_K, W_V, W_O};
    const auto columns = [](const array<double, 3>& y, std::size_t head) {
        array<double, 3> part(shape_of_rank<3>{2, 7, 3});
        for (std::size_t i = 0; i < 14; ++i)
            for (std::size_t k = 0; k < 3; ++k) part.data()[3 * i + k] = y.data()[6 * i + 3 * head + k];
        return part;
    };
    array<double, 3> joined(shape_of_rank<3>{2, 7, 6});
    for (std::size_t head = 0; head < 2; ++head) {
        const auto keys = columns(ops::linear(x, W_K), head), values = columns(ops::linear(x, W_V), head);
        const auto queries = columns(ops::linear(x, W_Q), head);
        const auto& d = heads[head].score.distances;
        const auto& a = heads[head].combine.distances;
        for (std::size_t b = 0; b < 2; ++b) {
            for (std::size_t s = 0; s < 7; ++s) {
                double weights[7], sum = 0;
                for (std::size_t j = 0; j < 7; ++j) {
                    const long far = std::clamp(static_cast<long>(j) - static_cast<long>(s), -2L, 2L) + 2;
                    double e = 0;
                    for (std::size_t k = 0; k < 3; ++k)
                        e += queries(b, s, k) * (keys(b, j, k) + d(k, static_cast<std::size_t>(far)));
                    sum += weights[j] = std::exp(e / std::sqrt(3.0));
                }
                for (std::size_t j = 0; j < 7; ++j) {
                    const long far = std::clamp(static_cast<long>(j) - static_cast<long>(s), -1L, 1L) + 1;
                    for (std::size_t k = 0; k < 3; ++k) {
                        if (j == 0) joined(b, s, 3 * head + k) = 0;
                        joined(b, s, 3 * head + k) +=
                            weights[j] / sum * (values(b, j, k) + a(static_cast<std::size_t>(far), k));
                    }
                }
            }
        }
    }
    CHECK(distance(both(both.on(x), x), ops::linear(joined, W_O)) < 1e-12);
}

TEST_CASE("vectors for values that do not fit are refused")
{
    const auto h = random({1, 3, N}, 1);
    const auto refused = [&](const array<double, 2>& a, const char* part) {
        const attention attend{score::dot{}, normalize::softmax{}, combine::relative{a}};
        const auto memory = attend.on(h);
        CHECK_THROWS_WITH_AS((void)attend(memory, h), doctest::Contains(part), shape_error);
        CHECK_THROWS_WITH_AS((void)attend.step(memory, ops::step_of(h, 0), attend.start(memory)),
                             doctest::Contains(part), shape_error);
    };
    refused(random({4, N}, 5), "combine::relative: the matrix of distances is [4,6]; it must have 2 R + 1 rows");
    refused(random({5, 3}, 5), "and 6 columns, as the values have");
}

TEST_CASE("an even number of distances is refused")
{
    const auto attend = with(random({N, 4}, 5));
    const auto h = random({1, 3, N}, 1);
    CHECK_THROWS_WITH_AS(
        attend(attend.on(h), h),
        "score::relative: the matrix of distances, [6,4], has 4 columns; it must have 2 R + 1, for the "
        "distances from -R to R",
        shape_error);
}
