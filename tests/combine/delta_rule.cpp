// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/attention/execute/linear.hpp>
#include <heed/heed.hpp>
#include <heed/verify.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/many_queries.hpp>

#include <cmath>
#include <cstddef>
#include <vector>

using namespace heed;
using support::random;
using support::words_of;

namespace {

constexpr std::size_t N = 4;
const auto w = random({N, 1}, 21), w_gate = random({N, 1}, 23);
const auto b = random({1}, 22), b_gate = random({1}, 24);

auto delta(double decay = 1, double most = 1)
{
    return attention{score::cosine{}, normalize::retention{decay}, combine::delta_rule{w, b, most}};
}
auto gated()
{
    return attention{score::gated_decay{score::cosine{}, w_gate, b_gate}, normalize::retention{},
                     combine::delta_rule{w, b}};
}

/// Contexts of the recurrence S_t = a_t S_{t−1} (I − β_t k_t k_tᵀ) + β_t v_t k_tᵀ, c_t = S_t q_t, for keys and queries
/// of length 1 and values v, with a_t = decay, or gates.
array<double, 3> recurrence(const array<double, 3>& x, const array<double, 3>& v, const array<double, 3>& q,
                            double decay, double most, bool gates)
{
    const std::size_t T = x.shape()[1];
    array<double, 3> c(x.shape());
    const auto sigmoid_of = [&](const auto& W, const auto& bias, std::size_t s, std::size_t t) {
        double sum = bias(0);
        for (std::size_t i = 0; i < N; ++i) sum += W(i, 0) * x(s, t, i);
        return 1 / (1 + std::exp(-sum));
    };
    const auto unit = [](const auto& from, std::size_t s, std::size_t t) {
        std::vector<double> to(N);
        double square = 0;
        for (std::size_t i = 0; i < N; ++i) square += from(s, t, i) * from(s, t, i);
        for (std::size_t i = 0; i < N; ++i) to[i] = from(s, t, i) / std::sqrt(square);
        return to;
    };
    for (std::size_t s = 0; s < x.shape()[0]; ++s) {
        std::vector<double> S(N * N, 0.0);
        for (std::size_t t = 0; t < T; ++t) {
            const auto key = unit(x, s, t), query = unit(q, s, t);
            const double beta = most * sigmoid_of(w, b, s, t);
            const double left = gates ? sigmoid_of(w_gate, b_gate, s, t) : decay;
            for (std::size_t d = 0; d < N; ++d) {
                double old = 0;
                for (std::size_t i = 0; i < N; ++i) old += (S[d * N + i] *= left) * key[i];
                for (std::size_t i = 0; i < N; ++i) S[d * N + i] += beta * (v(s, t, d) - old) * key[i];
                c(s, t, d) = 0;
                for (std::size_t i = 0; i < N; ++i) c(s, t, d) += S[d * N + i] * query[i];
            }
        }
    }
    return c;
}

}  // namespace

TEST_CASE("contexts are those of the recurrence, all at once and one by one")
{
    for (const std::size_t T : {std::size_t{5}, std::size_t{130}}) {
        const auto x = random({2, T, N}, 1), v = random({2, T, N}, 2), q = random({2, T, N}, 3);
        CHECK(support::distance(delta()(delta().on(x, v), q, causal{}), recurrence(x, v, q, 1, 1, false)) < 1e-12);
        CHECK(support::distance(delta(0.9, 2)(delta(0.9, 2).on(x, v), q, causal{}),
                                recurrence(x, v, q, 0.9, 2, false)) < 1e-12);
        CHECK(support::distance(gated()(gated().on(x, v), q, causal{}), recurrence(x, v, q, 1, 1, true)) < 1e-12);
    }
    const lengths real({70, 33, 0});
    CHECK(support::distance_from_one_by_one(delta(0.95), causal{}, real, 70, 70) < 1e-11);
    CHECK(support::distance_from_one_by_one(gated(), causal{}, real, 70, 70) < 1e-11);
    CHECK(support::distance_from_one_by_one(delta(), no_mask{}, real, 3, 70) < 1e-11);
}

TEST_CASE("a stream of words equals all at once, and trains")
{
    const std::size_t T = 23;
    const auto h = random({2, T, N}, 1), q = random({2, T, N}, 2);
    const auto each = [&](const auto& attend) {
        const auto must = attend(attend.on(h), q, causal{});
        for (const std::size_t chunk : {std::size_t{1}, std::size_t{7}})
            CHECK(support::distance_as_a_stream(attend, h, q, must, 3, chunk) < 1e-12);
    };
    each(delta());
    each(delta(0.9));
    each(gated());
    const auto trained = [&](const auto& words, const auto& query, const auto& W, const auto& bias) {
        const attention attend{score::cosine{}, normalize::retention{0.9}, combine::delta_rule{W, bias}};
        const streaming generate{attend};
        const auto state = generate.start(attend.on(words, lengths{5, 3}));
        return generate.answer(generate.extend(state, words), query);
    };
    CHECK_GRADIENT(trained, random({2, 5, N}, 1), random({2, N}, 2), w, b);
}

TEST_CASE("gradients with respect to everything, in linear time and pair by pair")
{
    for (const std::size_t T : {std::size_t{3}, std::size_t{66}}) {
        const auto f = [&](const auto& h, const auto& q, const auto& W, const auto& bias) {
            const attention attend{score::gated_decay{score::cosine{}, random({2, 1}, 5), random({1}, 6)},
                                   normalize::retention{}, combine::delta_rule{W, bias}};
            return attend(attend.on(h), q, causal{});
        };
        CHECK_GRADIENT(f, random({1, T, 2}, 1), random({1, T, 2}, 2), random({2, 1}, 3), random({1}, 4));
    }
}

TEST_CASE("a hidden position stores nothing; heads; the contracts; errors")
{
    const auto x = random({1, 4, N}, 1);
    const auto q = random({1, N}, 2);
    boolean_mask<2> mask(shape_of_rank<2>{1, 4});
    for (std::size_t t = 0; t < 4; ++t) mask[t] = t != 1;
    array<double, 3> less(shape_of_rank<3>{1, 3, N});
    for (std::size_t t = 0; t < 3; ++t)
        for (std::size_t i = 0; i < N; ++i) less(0, t, i) = x(0, t == 0 ? 0 : t + 1, i);
    const auto attend = delta();
    const auto of = [&](const auto& memory) { return attend.step(memory, q, attend.start(memory)).context; };
    const auto must = of(attend.on(less));
    CHECK(support::distance(of(attend.on(x, mask)), must) < 1e-15);
    const streaming generate{attend};
    const auto none = generate.start(attend.on(words_of(x, 0, 0)));
    CHECK(support::distance(generate.answer(generate.extend(none, x, mask), q), must) < 1e-15);

    const std::size_t T = 40;
    const auto h = random({2, T, N}, 1), queries = random({2, T, N}, 2);
    const std::vector heads{
        attention{score::cosine{}, normalize::retention{}, combine::delta_rule{random({3, 1}, 7), b}},
        attention{score::cosine{}, normalize::retention{}, combine::delta_rule{random({3, 1}, 8), b}}};
    const multi_head all{heads, random({N, 6}, 3), random({N, 6}, 4), random({N, 6}, 5), random({6, N}, 6)};
    CHECK(support::distance_from_one_by_one(all, causal{}, lengths{T, 17}, T, T) < 1e-11);

    const auto W = random({5, 1}, 11);
    for (const auto& report :
         {verify(attention{score::cosine{}, normalize::retention{}, combine::delta_rule{W, b}},
                 {.query = 5, .width = 5}),
          verify(attention{score::gated_decay{score::cosine{}, random({5, 1}, 12), b_gate}, normalize::retention{},
                           combine::gated{random({5, 1}, 13), random({1}, 14), combine::delta_rule{W, b}}},
                 {.query = 5, .width = 5})})
        CHECK_MESSAGE(bool(report), report.text());
    CHECK_THROWS_WITH_AS((void)attend.extend(attend.on(h), h),
                         "attention::extend: the combiner computes values from all positions before them: "
                         "heed::streaming keeps a state instead of a memory",
                         error);
    const attention twice{score::gated_decay{score::cosine{}, w_gate, b_gate}, normalize::retention{0.5},
                          combine::delta_rule{w, b}};
    CHECK_THROWS_WITH_AS((void)twice.on(h),
                         "combine::delta_rule: the decay of normalize::retention must be 1 with the gates of "
                         "score::gated_decay",
                         error);
}
