// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>

#include <heed/heed.hpp>
#include <support/tensors.hpp>

// Scores of all pairs, before and after a mask, compared with a loop.

using namespace heed;
using support::random;

namespace {

constexpr std::size_t B = 2, S = 3, T = 5, N = 4;
constexpr double infinity = std::numeric_limits<double>::infinity();
const lengths real{5, 3};

double by_hand(const array<double, 3>& q, const array<double, 3>& h, std::size_t b, std::size_t s, std::size_t t)
{
    double sum = 0;
    for (std::size_t i = 0; i < N; ++i) sum += q(b, s, i) * h(b, t, i);
    return std::tanh(sum / 2) + 0.1 * static_cast<double>(t);
}

}  // namespace

TEST_CASE("scores after their function, with -inf at masked positions, under any normalizer")
{
    const auto h = random({B, T, N}, 1), q = random({B, S, N}, 2);
    const auto check = [&](const auto& normalize) {
        const attention attend{
            score::modified{score::scaled_dot{}, [](auto e, score_index p) { return tanh(e) + 0.1 * p.key; }},
            normalize, combine::weighted_sum{}};
        const auto memory = attend.on(h, real);
        const auto all = attend.scores_of(memory, q), seen = attend.scores_of(memory, q, causal_upper_left{});
        for (std::size_t b = 0; b < B; ++b) {
            for (std::size_t s = 0; s < S; ++s) {
                for (std::size_t t = 0; t < T; ++t) {
                    const double e = by_hand(q, h, b, s, t);
                    if (t < real[b]) CHECK(all(b, s, t) == doctest::Approx(e).epsilon(1e-14));
                    if (t >= real[b]) CHECK(all(b, s, t) == -infinity);
                    CHECK(seen(b, s, t) == (t <= s ? all(b, s, t) : -infinity));
                }
            }
        }
    };
    check(normalize::softmax{});
    check(normalize::temporal{});
    check(normalize::local_m{1});
}

TEST_CASE("a score that compares query by query, additive masks, heads, and gradients")
{
    const auto h = random({B, T, N}, 1), q = random({B, S, N}, 2), w = random({B, S, T}, 3);
    const attention attend{score::additive{random({N, 3}, 4), random({N, 3}, 5), random({3}, 6)}, normalize::softmax{},
                           combine::weighted_sum{}};
    const auto memory = attend.on(h);
    const auto bias = random({S, T}, 7);
    const auto is = attend.scores_of(memory, q, additive_mask{bias});
    const auto weights = attend.weights_of(memory, q, additive_mask{bias});
    CHECK(support::distance(ops::softmax(is), weights) < 1e-14);

    const auto loss = [&](const auto& H, const auto& Q) { return ops::dot(attend.scores_of(attend.on(H), Q), w); };
    ad::tape<double> on;
    const auto H = on.parameter(h), Q = on.parameter(q);
    on.backward(loss(H, Q));
    for (std::size_t i = 0; i < h.size(); i += 3) {
        auto up = h, down = h;
        up.data()[i] += 1e-5;
        down.data()[i] -= 1e-5;
        CHECK(on.gradient(H).data[i] ==
              doctest::Approx((loss(up, q).data()[0] - loss(down, q).data()[0]) / 2e-5).epsilon(1e-8).scale(1));
    }

    const attention dots{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto k = ops::reshaped(h, B, 1, T, N), asked = ops::reshaped(q, B, 1, S, N);
    const auto of_heads = dots.scores_of(dots.on(k), asked);
    CHECK(support::same_bits(ops::reshaped(of_heads, B, S, T), dots.scores_of(dots.on(h), q)));
}
