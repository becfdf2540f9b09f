// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/many_queries.hpp>

#include <cmath>
#include <vector>

using namespace heed;
using support::random;
using support::words_of;

// Linear time: the same as one query after the other, forward and backward, all at once, in chunks and one by one.

namespace {

constexpr std::size_t D = 4;

template <class Score, class Normalize, class Mask>
void check(const Score& score, const Normalize& normalize, const Mask& mask, const lengths& real, std::size_t S,
           std::size_t T)
{
    CHECK(support::distance_from_one_by_one(attention{score, normalize, combine::weighted_sum{}}, mask, real, S, T) <
          1e-11);
}

/// Is the linear form the one that is used?
template <class Attention>
bool is_linear(const Attention& attend, std::size_t T)
{
    const auto memory = attend.on(random({1, T, D}, 1));
    return detail::linear<decltype(attend.score), decltype(attend.normalize), decltype(attend.combine),
                          decltype(attend.project(random({1, T, D}, 1))), std::remove_cvref_t<decltype(memory)>,
                          causal> &&
           detail::worth_sums({1, T, D}, T, D);
}

}  // namespace

TEST_CASE("one query after the other, and all at once")
{
    const lengths real({70, 33, 0});
    const score::kernel elu{score::elu_plus_one{}};
    const score::kernel drawn{score::positive_random{random({D, 6}, 9)}};
    CHECK(is_linear(attention{elu, normalize::ratio{}, combine::weighted_sum{}}, 70));
    const auto each = [&](const auto& score, const auto& normalize) {
        check(score, normalize, no_mask{}, real, 60, 70);
        check(score, normalize, causal{}, real, 70, 70);
        check(score, normalize, causal{}, real, 20, 70);
        check(score, normalize, lengths({5, 70, 2}), real, 30, 70);
        check(score, normalize, causal{}, lengths({3, 2}), 3, 3);  // too short for sums
    };
    each(elu, normalize::ratio{});
    each(elu, normalize::ratio{0.9});
    each(drawn, normalize::ratio{});
    each(drawn, normalize::retention{0.8});
    each(score::scaled_dot{}, normalize::retention{0.9});
    each(score::general{random({D, D}, 5)}, normalize::retention{});
}

TEST_CASE("with other masks, and with softmax, scores of features are compared pair by pair")
{
    const lengths real({70, 33, 0});
    const score::kernel elu{score::elu_plus_one{}};
    boolean_mask<2> odd(shape_of_rank<2>{3, 70});
    for (std::size_t i = 1; i < 210; i += 2) odd[i] = 1;
    check(elu, normalize::ratio{}, odd, real, 60, 70);
    check(elu, normalize::softmax{}, causal{}, real, 70, 70);
    check(elu, normalize::sparsemax{}, causal{}, real, 70, 70);
}

TEST_CASE("random features are softmax on average")
{
    const auto h = random({1, 5, D}, 1), q = random({1, 3, D}, 2);
    const attention exact{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto must = exact(exact.on(h), q);
    random_source seed{3};
    const attention drawn{score::kernel{score::positive_random{nn::gaussian<double>(seed, D, 60000, 1)}},
                          normalize::ratio{}, combine::weighted_sum{}};
    const auto is = drawn(drawn.on(h), q);
    for (std::size_t i = 0; i < is.size(); ++i) CHECK(is.data()[i] == doctest::Approx(must.data()[i]).epsilon(0.05));
}

TEST_CASE("features")
{
    const auto elu = [](const auto& x) { return ops::elu_plus_one(x); };
    CHECK_GRADIENT(elu, random({3, 5}, 1, 2));
    const array<double, 2> x{{-1, 0, 2}};
    const auto y = ops::elu_plus_one(x);
    CHECK(y(0, 0) == support::approx(std::exp(-1.0)));
    CHECK(y(0, 1) == 1);
    CHECK(y(0, 2) == 3);
    const auto drawn = [](const auto& at, const auto& Omega) { return score::positive_random{Omega}(at); };
    CHECK_GRADIENT(drawn, random({2, 3, D}, 1), random({D, 5}, 2));
    CHECK_GRADIENT(drawn, random({2, D}, 1), random({D, 5}, 2));
    // φ(x)_i = exp(ω_i · x / √2 − ‖x‖² / 4) / √m for D = 4
    const auto phi = drawn(array<double, 2>{{1, -1, 0.5, 0}}, array<double, 2>{{1, 2}, {0.5, 1}, {0, 1}, {3, 4}});
    CHECK(phi(0, 0) == support::approx(std::exp(0.5 / std::sqrt(2.0) - 2.25 / 4) / std::sqrt(2.0)));
    CHECK(phi(0, 1) == support::approx(std::exp(1.5 / std::sqrt(2.0) - 2.25 / 4) / std::sqrt(2.0)));
}

TEST_CASE("a stream of words: in chunks and one by one as all at once, and it trains")
{
    const std::size_t T = 23;
    const auto h = random({2, T, D}, 1), q = random({2, T, D}, 2);
    const auto each = [&](const auto& attend) {
        const auto must = attend(attend.on(h), q, causal{});
        for (const std::size_t chunk : {std::size_t{1}, std::size_t{7}}) {
            const streaming generate{attend};
            auto sums = generate.start(attend.on(words_of(h, 0, 0)));
            double worst = 0;
            for (std::size_t t = 0; t < T; t += chunk) {
                const std::size_t n = std::min(chunk, T - t);
                sums = generate.extend(sums, attend.on(words_of(h, t, n)));
                const auto context = generate.answer(sums, ops::step_of(q, t + n - 1));
                for (std::size_t b = 0; b < 2; ++b)
                    for (std::size_t i = 0; i < D; ++i)
                        worst = std::max(worst, std::abs(context(b, i) - must(b, t + n - 1, i)));
            }
            CHECK(worst < 1e-12);
        }
        const auto trained = [&](const auto& words, const auto& query) {
            const streaming generate{attend};
            const auto sums = generate.start(attend.on(words, lengths{5, 3}));
            return generate.answer(generate.extend(sums, attend.on(words)), query);
        };
        CHECK_GRADIENT(trained, random({2, 5, D}, 1), random({2, D}, 2));
    };
    each(attention{score::kernel{score::elu_plus_one{}}, normalize::ratio{0.9}, combine::weighted_sum{}});
    each(attention{score::kernel{score::positive_random{random({D, 6}, 9)}}, normalize::ratio{},
                   combine::weighted_sum{}});
    each(attention{score::scaled_dot{}, normalize::retention{0.8}, combine::weighted_sum{}});
}

TEST_CASE("heads")
{
    const std::size_t T = 40;
    const auto h = random({2, T, D}, 1), q = random({2, T, D}, 2);
    const multi_head attend{
        std::vector(2, attention{score::kernel{score::elu_plus_one{}}, normalize::ratio{0.9}, combine::weighted_sum{}}),
        random({D, 6}, 3), random({D, 6}, 4), random({D, 6}, 5), random({6, D}, 6)};
    const auto memory = attend.on(h);
    const auto is = attend(memory, q, causal{});
    auto state = attend.start(memory);
    for (std::size_t s = 0; s < T; ++s) {
        auto next = attend.step(memory, ops::step_of(q, s), state, lengths({s + 1, s + 1}));
        for (std::size_t i = 0; i < D; ++i) CHECK(is(1, s, i) == support::approx(next.context(1, i)));
        state = std::move(next.state);
    }
}
