// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/many_queries.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::random;

// Normalizers with a history, long enough for tiles: equal to one query after another, forward and backward.

namespace {

template <class Score, class Mask, class Normalize = normalize::temporal>
void check(const Score& score, const Mask& mask, const lengths& real, std::size_t S, std::size_t T,
           const Normalize& normalize = Normalize{})
{
    CHECK(support::distance_from_one_by_one(attention{score, normalize, combine::weighted_sum{}}, mask, real, S, T) <
          1e-11);
}

/// Sankaran et al. 2016, eq. 6-8, as printed, without logarithms.
std::vector<double> as_printed(const array<double, 3>& h, const array<double, 3>& q)
{
    const std::size_t S = q.shape()[1], T = h.shape()[1], D = h.shape()[2];
    std::vector<double> past(T, 0), contexts(S * D, 0);
    for (std::size_t s = 0; s < S; ++s) {
        std::vector<double> b(T);
        double all = 0;
        for (std::size_t t = 0; t < T; ++t) {
            double e = 0;
            for (std::size_t i = 0; i < D; ++i) e += q(0, s, i) * h(0, t, i);
            b[t] = s == 0 ? std::exp(e) : std::exp(e) / past[t];
            past[t] += std::exp(e);
            all += b[t];
        }
        for (std::size_t t = 0; t < T; ++t)
            for (std::size_t i = 0; i < D; ++i) contexts[s * D + i] += b[t] / all * h(0, t, i);
    }
    return contexts;
}

}  // namespace

TEST_CASE("the printed equations")
{
    const auto h = random({1, 150, 4}, 1), q = random({1, 131, 4}, 2);
    const attention attend{score::dot{}, normalize::temporal{}, combine::weighted_sum{}};
    const auto is = attend(attend.on(h), q);
    const auto must = as_printed(h, q);
    double worst = 0;
    for (std::size_t i = 0; i < must.size(); ++i) worst = std::max(worst, std::abs(is.data()[i] - must[i]));
    CHECK(worst < 1e-12);
}

TEST_CASE("any lengths, masks, functions and tables")
{
    const lengths real({150, 33, 0});
    check(score::scaled_dot{}, no_mask{}, real, 60, 150);
    check(score::scaled_dot{}, causal{}, real, 60, 150);
    check(score::scaled_dot{}, causal{}, lengths({70, 70}), 70, 70);
    check(score::general{random({4, 4}, 9)}, no_mask{}, lengths({70, 33, 0}), 130, 70);
    check(score::scaled_dot{}, lengths({5, 70, 2}), lengths({70, 71, 9}), 97, 71);
    check(score::rotary{score::dot{}}, causal{} & sliding_window{9}, lengths({70, 33}), 70, 70);
    check(score::scaled_dot{}, causal{} & sliding_window{3}, lengths({500, 33}), 49, 500);
    check(score::scaled_dot{}, no_mask{}, lengths({7, 3}), 600, 7);
    const auto alibi = [](auto e, score_index p) { return 2 * e - 0.1 * abs(p.query - p.key) * (p.batch + 1); };
    const auto relative = [](auto e, score_index p, const auto& b) { return e + b(p.head, p.key - p.query + 10) * e; };
    check(score::modified{score::dot{}, alibi}, causal{}, real, 60, 150);
    check(score::modified{score::scaled_dot{}, random({1, 21}, 11), relative}, causal{} & sliding_window{20}, real, 60,
          150);
    check(score::scaled_dot{}, no_mask{}, real, 60, 150, normalize::decayed_temporal<>{.strength = 0.7, .decay = 0.2});
    check(score::scaled_dot{}, no_mask{}, real, 60, 150, normalize::decayed_temporal<>{.strength = -0.5, .decay = 0});
    check(score::scaled_dot{}, no_mask{}, real, 60, 150,
          normalize::decayed_temporal<>{.strength = 1, .decay = std::numeric_limits<double>::infinity()});
}

TEST_CASE("wide keys")
{
    const attention attend{score::scaled_dot{}, normalize::temporal{}, combine::weighted_sum{}};
    for (const std::size_t width : {1u, 37u, 128u})
        CHECK(support::distance_from_one_by_one(attend, causal{}, lengths({150, 33}), 60, 150, width) < 1e-11);
}

TEST_CASE("in chunks of any size, then one by one: the state continues, and gradients flow back through it")
{
    const lengths real({150, 33});
    const auto h = random({2, 150, 4}, 1), q = random({2, 200, 4}, 2), w = random({2, 200, 4}, 3);
    auto of_history = random({2, 150}, 4);
    std::fill_n(of_history.data() + 183, 117, 0.0);  // the history of padding is not used
    const attention attend{score::scaled_dot{}, normalize::temporal{}, combine::weighted_sum{}};
    const auto gradients = [&](const std::vector<std::size_t>& chunks) {
        ad::tape<double> on;
        const auto H = on.parameter(h);
        const auto memory = attend.on(H, real);
        std::vector<ad::var<double, 2>> contexts;
        auto state = attend.read_all(memory, on.constant(support::words_of(q, 0, chunks[0])), attend.start(memory));
        const auto keep = [&](const auto& some) {
            for (std::size_t s = 0; s < some.shape()[1]; ++s) contexts.push_back(ops::step_of(some, s));
        };
        keep(state.contexts);
        for (std::size_t nth = 1, from = chunks[0]; nth < chunks.size(); from += chunks[nth++]) {
            state = attend.read_all(memory, on.constant(support::words_of(q, from, chunks[nth])), state.state);
            keep(state.contexts);
        }
        const auto loss = ops::add(ops::dot(ops::swap_axes(ops::stack(contexts)), w),
                                   ops::dot(ops::tanh(state.state.normalize.history), of_history));
        on.backward(loss);
        const auto g = on.gradient(H);
        std::vector<double> result(g.data, g.data + g.size());
        result.push_back(loss.value().data[0]);
        return result;
    };
    const auto whole = gradients({200}), parts = gradients({49, 100, 48, 3});
    double worst = 0, most = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
        worst = std::max(worst, std::abs(whole[i] - parts[i]));
        most = std::max(most, std::abs(whole[i]));
    }
    CHECK(most > 1e-2);
    CHECK(worst < 1e-11);
}

TEST_CASE("padding is not read, and scores do not overflow")
{
    auto h = random({2, 150, 4}, 1);
    const lengths real({150, 33});
    const attention attend{score::dot{}, normalize::temporal{}, combine::weighted_sum{}};
    const auto q = random({2, 60, 4}, 2);
    const auto clean = attend(attend.on(h, real), q);
    for (std::size_t t = 33; t < 150; ++t)
        for (std::size_t i = 0; i < 4; ++i) h(1, t, i) = std::numeric_limits<double>::quiet_NaN();
    const auto dirty = attend(attend.on(h, real), q);
    CHECK(std::equal(clean.data(), clean.data() + clean.size(), dirty.data()));

    array<float, 3> keys(shape_of_rank<3>{1, 100, 2}), asked(shape_of_rank<3>{1, 60, 2});
    for (std::size_t i = 0; i < keys.size(); ++i) keys.data()[i] = static_cast<float>(i % 7) * 10.F - 30.F;
    for (std::size_t i = 0; i < asked.size(); ++i) asked.data()[i] = static_cast<float>(i % 5) - 2.F;  // scores to ±180
    const auto contexts = attend(attend.on(keys), asked);
    CHECK(std::all_of(contexts.data(), contexts.data() + contexts.size(), [](float x) { return std::isfinite(x); }));
    array<double, 3> wide(shape_of_rank<3>{1, 100, 2}), wide_asked(shape_of_rank<3>{1, 60, 2});
    std::copy_n(keys.data(), keys.size(), wide.data());
    std::copy_n(asked.data(), asked.size(), wide_asked.data());
    const auto must = attend(attend.on(wide), wide_asked);
    for (std::size_t i = 0; i < must.size(); ++i)
        CHECK(contexts.data()[i] == doctest::Approx(must.data()[i]).epsilon(1e-4));
}

TEST_CASE("values may be wider than keys, and a history of more positions is rejected")
{
    const auto h = random({2, 150, 4}, 1), v = random({2, 150, 19}, 5), q = random({2, 60, 4}, 2);
    const attention attend{score::dot{}, normalize::temporal{}, combine::weighted_sum{}};
    const auto memory = attend.on(h, v);
    const auto is = attend(memory, q);
    auto state = attend.start(memory);
    for (std::size_t s = 0; s < 60; ++s) {
        const auto next = attend.step(memory, ops::step_of(q, s), state);
        for (std::size_t i = 0; i < 19; ++i) CHECK(is(1, s, i) == doctest::Approx(next.context(1, i)).epsilon(1e-12));
        state = next.state;
    }
    const auto after = attend.read_all(memory, q, attend.start(memory)).state;
    CHECK(after.step == 60);
    for (std::size_t j = 0; j < 300; ++j)
        CHECK(after.normalize.history.data()[j] == doctest::Approx(state.normalize.history.data()[j]).epsilon(1e-12));
    const auto longer = attend.start(attend.on(random({2, 151, 4}, 1)));
    CHECK_THROWS_WITH_AS(attend.read_all(memory, q, longer),
                         doctest::Contains("the state is [2,151] but must be [2,150]"), shape_error);
}

TEST_CASE("queries in order: the definition in scalar loops, and its gradient")
{
    const ops::modulated_by_past past{0.8, 0.1};
    const ops::attend_in_order_op attend{kernels::tiles::unmodified{}, kernels::tiles::unmasked{}, past};
    const lengths real{5, 3};
    const auto queries = random({2, 7, 3}, 1), keys = random({2, 5, 3}, 2), values = random({2, 5, 2}, 3);
    const auto history = random({2, 5}, 4);
    const array<double, 0> no_table;
    const ops::heads_of how{1, 1, 0.7};
    const auto [contexts, after] = attend(queries, keys, values, history, no_table, real, how);
    for (std::size_t b = 0; b < 2; ++b) {
        std::vector<double> L(5);
        for (std::size_t j = 0; j < 5; ++j) L[j] = history(b, j);
        for (std::size_t s = 0; s < 7; ++s) {
            double whole = 0, sums[2] = {};
            for (std::size_t j = 0; j < real[b]; ++j) {
                double e = 0;
                for (std::size_t i = 0; i < 3; ++i) e += 0.7 * queries(b, s, i) * keys(b, j, i);
                const double weight = std::exp(e - 0.8 * L[j]);
                whole += weight;
                for (std::size_t d = 0; d < 2; ++d) sums[d] += weight * values(b, j, d);
                L[j] = std::log(std::exp(L[j] - 0.1) + std::exp(e));
            }
            for (std::size_t d = 0; d < 2; ++d) CHECK(contexts(b, s, d) == support::approx(sums[d] / whole));
        }
        for (std::size_t j = 0; j < 5; ++j) CHECK(after(b, j) == support::approx(L[j]));
    }
    CHECK_GRADIENT(
        [&](const auto& q, const auto& k, const auto& v, const auto& h) {
            const auto [c, next] = attend(q, k, v, h, no_table, real, how);
            return ops::add(ops::sum_last(ops::sum_last(ops::square(c))), ops::sum_last(ops::square(next)));
        },
        queries, keys, values, history);
    CHECK(support::message_of<shape_error>([&] {
              (void)attend(queries, keys, values, random({2, 4}, 1), no_table, real, how);
          }) == "attend_in_order: the history is [2,4] but must be [2,5] (one number for each key)");
}
