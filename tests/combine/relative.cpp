// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/papers/positions.hpp>
#include <heed/verify.hpp>
#include <support/gradients.hpp>
#include <support/many_queries.hpp>
#include <support/relative_positions.hpp>
#include <support/tensors.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

using namespace heed;
using support::distance;
using support::random;
using support::relative_by_hand;

namespace {

constexpr std::size_t N = 6, R = 3;

/// Distances for keys and for values.
auto with(const auto& distances, const auto& of_values)
{
    return attention{score::relative{score::scaled_dot{}, distances}, normalize::softmax{},
                     combine::relative{of_values}};
}

}  // namespace

TEST_CASE("relative vectors for values: the paper's sum, step by step and all at once")
{
    const auto d = random({N, 2 * R + 1}, 5);
    for (const std::size_t most : {std::size_t{0}, std::size_t{2}, std::size_t{100}}) {
        const auto a = random({2 * most + 1, N}, 6);
        const auto attend = with(d, a);
        for (const std::size_t T : {std::size_t{1}, std::size_t{5}, std::size_t{90}}) {
            const auto h = random({3, T, N}, 1), q = random({3, T, N}, 2);
            const lengths real({T, T / 2, 1});
            CHECK(distance(attend(attend.on(h, real), q), relative_by_hand(h, q, d, real, false, a)) < 1e-12);
            CHECK(distance(attend(attend.on(h), q, causal{}), relative_by_hand(h, q, d, lengths({T, T, T}), true, a)) <
                  1e-12);
            const auto memory = attend.on(h, real);
            auto state = attend.start(memory);
            const auto must = relative_by_hand(h, q, d, real, false, a);
            for (std::size_t s = 0; s < T; ++s) {
                const auto next = attend.step(memory, ops::step_of(q, s), state);
                CHECK(distance(next.context, ops::step_of(must, s)) < 1e-12);
                state = next.state;
            }
        }
    }
    // A preset, other scores and normalizers, inside a gate, masks, empty sentences and every derivative.
    const auto h = random({2, 9, N}, 1);
    const auto a = random({5, N}, 6);
    const auto preset = papers::shaw2018::relative(d, a);
    CHECK(support::same_bits(preset(preset.on(h), h), with(d, a)(with(d, a).on(h), h)));
    const auto narrow = random({5, std::size_t{4}}, 7);
    const auto off = [&](const auto& attend, const auto& mask) {
        return support::distance_from_one_by_one(attend, mask, lengths({70, 33, 0}), 70, 70);
    };
    const combine::relative sum{narrow};
    CHECK(off(attention{score::dot{}, normalize::sigmoid{}, sum}, causal{} & sliding_window{7}) < 1e-9);
    CHECK(off(attention{score::dot{}, normalize::temporal{}, sum}, no_mask{}) < 1e-9);
    CHECK(off(attention{score::dot{}, normalize::softmax{}, combine::gated{random({4, 1}, 8), random({1}, 9), sum}},
              causal{}) < 1e-9);
    const auto report = verify(attention{score::dot{}, normalize::softmax{}, sum}, {.width = 4});
    CHECK_MESSAGE(bool(report), report.text());
}

TEST_CASE("relative vectors for values: a growing memory, heads, derivatives")
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
    const auto of_keys = random({2, 3}, 5), of_values = random({3, 2}, 6);
    const auto words = random({2, 4, 2}, 1);
    for (const auto& found : {support::gradient_of<0b111>(f, of_keys, of_values, words),
                              support::gradient_of<0b010>(f, of_keys, of_values, words),
                              support::gradient_of<0b100>(f, of_keys, of_values, words)})
        CHECK_MESSAGE(bool(found), found.text());

    // In heads, values are those after W_V: each head is an attention over its slice of the columns.
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

TEST_CASE("relative vectors for values that do not fit are rejected")
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
    refused(random({5, 3}, 5), "and 6 columns, the width of the values");
}
