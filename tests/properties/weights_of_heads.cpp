// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <support/tensors.hpp>

// The weights [B,n,S,T] of every head for many queries.

namespace {

using namespace heed;
using support::random;

constexpr std::size_t B = 3, S = 5, T = 7, Q = 6, D = 4, n = 2, K = 3;

struct problem {
    array<double, 3> annotations = random({B, T, D}, 1), queries = random({B, S, Q}, 2);
    array<double, 2> W_Q = random({Q, n*K}, 3), W_K = random({D, n*K}, 4), W_V = random({D, n*K}, 5),
                     W_O = random({n * K, D}, 6);
    lengths real{7, 4, 0};
};

/// Columns [first, last) of x W, by plain loops: [B,P,last-first].
array<double, 3> part(const array<double, 3>& x, const array<double, 2>& W, std::size_t first, std::size_t last)
{
    array<double, 3> y(shape_of_rank<3>{x.shape()[0], x.shape()[1], last - first});
    for (std::size_t b = 0; b < x.shape()[0]; ++b) {
        for (std::size_t p = 0; p < x.shape()[1]; ++p) {
            for (std::size_t j = first; j < last; ++j) {
                double sum = 0;
                for (std::size_t i = 0; i < x.shape()[2]; ++i) sum += x(b, p, i) * W(i, j);
                y(b, p, j - first) = sum;
            }
        }
    }
    return y;
}

/// Head i's weights of all queries, one query after another: the head is evaluated alone, with its projections.
void check_head(const auto& head, std::size_t i, std::size_t group, const problem& of, const auto& weights,
                const auto& mask_of)
{
    const auto keys = part(of.annotations, of.W_K, group * K, (group + 1) * K),
               values = part(of.annotations, of.W_V, group * K, (group + 1) * K),
               queries = part(of.queries, of.W_Q, i * K, (i + 1) * K);
    const auto memory = head.on(keys, values, of.real);
    auto state = head.start(memory);
    for (std::size_t s = 0; s < S; ++s) {
        auto seen = head.compose(memory, ops::step_of(queries, s), state, mask_of(s));
        double worst = 0, sum = 0;
        for (std::size_t b = 0; b < B; ++b) {
            for (std::size_t t = 0; t < T; ++t) {
                worst = std::max(worst, std::abs(weights(b, i, s, t) - seen.weights(b, t)));
                sum += weights(b, i, s, t);
            }
        }
        CHECK(worst < 1e-13);
        CHECK(sum > 0.9);  // in at least one row
        state = seen.state;
    }
}

auto no_mask_of(std::size_t) { return no_mask{}; }

auto over(const auto& score, const auto& normalize) { return attention{score, normalize, combine::weighted_sum{}}; }

}  // namespace

TEST_CASE("each head has the same weights as when it is evaluated alone")
{
    const problem of;
    const auto check = [&of](const auto& head) {
        const multi_head attend{std::vector(n, head), of.W_Q, of.W_K, of.W_V, of.W_O};
        const auto memory = attend.on(of.annotations, of.real);
        const auto weights = attend.weights_of(memory, of.queries);
        REQUIRE(shape_of(weights) == shape_of_rank<4>{B, n, S, T});
        for (std::size_t i = 0; i < n; ++i) check_head(head, i, i, of, weights, no_mask_of);

        const auto of_causal = attend.weights_of(memory, of.queries, causal{});
        const auto seen = [&of](std::size_t s) {  // the last query sees all real positions
            std::vector<std::size_t> counts;
            for (std::size_t b = 0; b < B; ++b) {
                const std::size_t behind = S - 1 - s;
                counts.push_back(of.real[b] > behind ? of.real[b] - behind : 0);
            }
            return lengths(counts);
        };
        for (std::size_t i = 0; i < n; ++i) check_head(head, i, i, of, of_causal, seen);
    };
    check(over(score::scaled_dot{}, normalize::softmax{}));  // at once
    check(
        over(score::additive{random({K, 4}, 7), random({K, 4}, 8), random({4}, 9)}, normalize::temporal{}));  // in turn
}

TEST_CASE("heads of different kinds, and heads that share keys")
{
    problem of;
    const auto first = over(score::dot{}, normalize::sparsemax{});
    const auto second = over(score::scaled_dot{}, normalize::temporal{});
    const multi_head different{std::tuple{first, second}, of.W_Q, of.W_K, of.W_V, of.W_O};
    const auto weights = different.weights_of(different.on(of.annotations, of.real), of.queries);
    check_head(first, 0, 0, of, weights, no_mask_of);
    check_head(second, 1, 1, of, weights, no_mask_of);

    of.W_K = random({D, K}, 14);
    of.W_V = random({D, K}, 15);
    const multi_head shared{std::vector(n, first), of.W_Q, of.W_K, of.W_V, of.W_O};
    const auto of_shared = shared.weights_of(shared.on(of.annotations, of.real), of.queries);
    for (std::size_t i = 0; i < n; ++i) check_head(first, i, 0, of, of_shared, no_mask_of);
}

TEST_CASE("the weights of all queries equal those of step, from any state, and do not change the context")
{
    const problem of;
    const multi_head attend{std::vector(n, over(score::scaled_dot{}, normalize::temporal{})), of.W_Q, of.W_K, of.W_V,
                            of.W_O};
    const auto memory = attend.on(of.annotations, of.real);
    auto state = attend.step(memory, ops::step_of(of.queries, 4), attend.start(memory)).state;
    const auto weights = attend.weights_of(memory, of.queries, state, no_mask{});
    for (std::size_t s = 0; s < S; ++s) {
        auto seen = attend.step(memory, ops::step_of(of.queries, s), state);
        double worst = 0;
        for (std::size_t b = 0; b < B; ++b) {
            for (std::size_t i = 0; i < n; ++i) {
                for (std::size_t t = 0; t < T; ++t)
                    worst = std::max(worst, std::abs(weights(b, i, s, t) - seen.weights(b, i, t)));
            }
        }
        CHECK(worst < 1e-14);
        state = seen.state;
    }
    const array<double, 3> none(shape_of_rank<3>{B, 0, Q});
    CHECK(shape_of(attend.weights_of(memory, none)) == shape_of_rank<4>{B, n, 0, T});
}

TEST_CASE("gradients of the weights, by finite differences")
{
    problem of;
    const auto by = random({B, n, S, T}, 21);
    multi_head attend{std::vector(n, over(score::scaled_dot{}, normalize::softmax{})), of.W_Q, of.W_K, of.W_V, of.W_O};
    const auto found = ad::grad_check(attend, [&](auto& tape, const auto& lifted) {
        const auto memory = lifted.on(tape.constant(of.annotations), of.real);
        return ops::dot(lifted.weights_of(memory, tape.constant(of.queries)), by);
    });
    CHECK_MESSAGE(bool(found), found.text());
    CHECK(found.worst < 1e-8);
}

namespace {

/// The weights of many queries against those of `step`, one query after another, from any state and with masks.
void check_steps(const auto& attend, const auto& memory, const problem& of)
{
    const auto check = [&](const auto& first, const auto& weights, const auto& mask_of) {
        REQUIRE(shape_of(weights) == shape_of_rank<4>{B, n, S, T});
        auto state = first;
        for (std::size_t s = 0; s < S; ++s) {
            const auto seen = attend.step(memory, ops::step_of(of.queries, s), state, mask_of(s));
            double worst = 0, sum = 0;
            for (std::size_t b = 0; b < B; ++b)
                for (std::size_t i = 0; i < n; ++i)
                    for (std::size_t t = 0; t < T; ++t) {
                        worst = std::max(worst, std::abs(weights(b, i, s, t) - seen.weights(b, i, t)));
                        sum += std::abs(weights(b, i, s, t));
                    }
            CHECK(worst < 1e-12);
            CHECK(sum > 0.1);
            state = seen.state;
        }
    };
    check(attend.start(memory), attend.weights_of(memory, of.queries), no_mask_of);
    const auto later = from_query(attend.start(memory), 3);
    check(later, attend.weights_of(memory, of.queries, later, no_mask{}), no_mask_of);
    const lengths some{5, 2, 0};
    check(attend.start(memory), attend.weights_of(memory, of.queries, some), [&](std::size_t) { return some; });
    check(attend.start(memory), attend.weights_of(memory, of.queries, causal{}), [&](std::size_t s) {
        std::vector<std::size_t> counts;
        for (std::size_t b = 0; b < B; ++b) counts.push_back(of.real[b] > S - 1 - s ? of.real[b] - (S - 1 - s) : 0);
        return lengths(counts);
    });
    CHECK(shape_of(attend.weights_of(memory, random({B, 0, Q}, 1))) == shape_of_rank<4>{B, n, 0, T});
}

template <class Attend, class X>
struct asked_on_tape {
    Attend attend;
    X annotations, queries;

    static auto parameters(auto& self, auto&& visit)
    {
        auto attend = visit("attend", self.attend);
        auto annotations = visit("annotations", self.annotations);
        auto queries = visit("queries", self.queries);
        return asked_on_tape<decltype(attend), decltype(queries)>{std::move(attend), std::move(annotations),
                                                                  std::move(queries)};
    }
};
template <class Attend, class X>
asked_on_tape(Attend, X, X) -> asked_on_tape<Attend, X>;

void check_gradients(const auto& attend, const problem& of)
{
    asked_on_tape module{attend, of.annotations, of.queries};
    const auto found = ad::grad_check(module, [&](auto&, const auto& lifted) {
        const auto weights =
            lifted.attend.weights_of(lifted.attend.on(lifted.annotations, of.real), lifted.queries, causal{});
        const auto flat = ops::reshaped(weights, -1);
        return ops::dot(flat, support::uneven(shape_of(flat)));
    });
    CHECK_MESSAGE(found, found.text());
}

}  // namespace

TEST_CASE("talking heads return the mixed weights, equal to those of step")
{
    const problem of;
    const multi_head base{std::vector(n, over(score::scaled_dot{}, normalize::softmax{})), of.W_Q, of.W_K, of.W_V,
                          of.W_O};
    const talking_heads attend{base, random({n, n}, 21), random({n, n}, 22)};
    check_steps(attend, attend.on(of.annotations, of.real), of);
    check_gradients(attend, of);
    // With identity matrices, the weights of the heads do not change.
    const array<double, 2> unit{{1, 0}, {0, 1}};
    const talking_heads silent{base, unit, unit};
    CHECK(support::distance(silent.weights_of(silent.on(of.annotations, of.real), of.queries, causal{}),
                            base.weights_of(base.on(of.annotations, of.real), of.queries, causal{})) < 1e-13);
}

TEST_CASE("latent heads have the weights of step, also over a growing memory")
{
    problem of;
    constexpr std::size_t C = 4, R = 2;
    const latent_heads attend{n,
                              of.W_Q,
                              random({Q, n * R}, 31),
                              random({D, C}, 32),
                              random({D, R}, 33),
                              random({n * K, C}, 34),
                              random({n * C, 3}, 35),
                              random({n * 3, D}, 36)};
    check_steps(attend, attend.on(of.annotations, of.real), of);
    check_gradients(attend, of);
    const auto plain = attend.on(of.annotations);
    CHECK(support::distance(attend.weights_of(with_cache(plain), of.queries, causal{}),
                            attend.weights_of(plain, of.queries, causal{})) < 1e-13);
}
