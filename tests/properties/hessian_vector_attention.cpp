// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <support/curvature.hpp>

#include <cstddef>
#include <tuple>
#include <vector>

// Second-order derivatives of mechanisms, step by step and in tiles, with respect to parameters, annotations and
// queries.

using namespace heed;
using support::random;
using support::uneven;

namespace {

constexpr std::size_t Q = 4, D = 4, A = 5;

/// Checks H v of loss(mechanism, annotations, queries), where `make(x...)` makes the mechanism, with respect to
/// annotations [B,T,D], queries [B,S,Q] and all x... The check is compiled once for all mechanisms of tensors with the
/// same ranks.
template <class... X>
void check(const auto& make, const auto& loss, const array<double, 3>& annotations, const array<double, 3>& queries,
           double h, const X&... x)
{
    support::inputs<array<double, 3>, array<double, 3>, X...> all{{annotations, queries, x...}};
    const auto of = [&](const auto& lifted) {
        return std::apply([&](const auto& a, const auto& q, const auto&... each) { return loss(make(each...), a, q); },
                          lifted.at);
    };
    CHECK_SECOND_ORDER(all, support::detail::loss_of_inputs<array<double, 3>, array<double, 3>, X...>{of, of}, h);
}

/// A loss of the contexts and weights of three successive queries.
auto loss_of_steps(const auto& attend, const auto& annotations, const auto& queries)
{
    const auto memory = attend.on(annotations, lengths({7, 3, 0}));
    auto state = attend.start(memory);
    auto total = ops::dot(ops::square(queries), uneven(shape_of_rank<3>{3, 3, Q}));
    for (std::size_t s = 0; s < 3; ++s) {
        auto next = attend.step(memory, ops::step_of(queries, s), state);
        state = next.state;
        total = ops::add(total, ops::dot(ops::square(next.context), uneven(next.context.shape())));
        total = ops::add(total, ops::dot(ops::square(next.weights), uneven(next.weights.shape())));
    }
    return total;
}

auto of_softmax(const auto& score) { return attention{score, normalize::softmax{}, combine::weighted_sum{}}; }
auto of_dot(const auto& normalize) { return attention{score::dot{}, normalize, combine::weighted_sum{}}; }

void check_steps(const auto& make, double h, const auto&... x)
{
    check(
        make, [](const auto&... read) { return loss_of_steps(read...); }, random({3, 7, D}, 31), random({3, 3, Q}, 32),
        h, x...);
}
/// Checks `score(x...)` under softmax.
void check_score(const auto& score, const auto&... x)
{
    check_steps([&](const auto&... of) { return of_softmax(score(of...)); }, 1e-4, x...);
}
/// Checks `normalize(x...)` over inner products.
void check_normalizer(const auto& normalize, double h, const auto&... x)
{
    check_steps([&](const auto&... of) { return of_dot(normalize(of...)); }, h, x...);
}

/// Checks many queries, tile by tile.
struct tiles {
    std::size_t queries = 60;
    double h = 1e-4;
};
void check_tiles(const auto& make, const auto& mask, const tiles& how, const auto&... x)
{
    check(
        make,
        [&](const auto& attend, const auto& annotations, const auto& queries) {
            const auto c = attend(attend.on(annotations, lengths({70, 33})), queries, mask);
            return ops::dot(ops::add(c, ops::square(c)), uneven(c.shape()));
        },
        random({2, 70, D}, 41, 0.7), random({2, how.queries, Q}, 42, 0.7), how.h, x...);
}

const auto W = random({Q, A}, 1), U = random({D, A}, 2);
const auto v = random({A}, 3);
constexpr auto additive = [](const auto& w, const auto& u, const auto& out) { return score::additive{w, u, out}; };
const array<double, 1> number{0.3};

}  // namespace

TEST_CASE("scores step by step")
{
    check_score(additive, W, U, v);
    check_score([] { return score::dot{}; });
    check_score([] { return score::scaled_dot{}; });
    check_score([](const auto& w) { return score::general{w}; }, random({Q, D}, 4));
    check_score([] { return score::cosine{2.0}; });
    check_score([](const auto& x) { return score::contextual_positions{score::scaled_dot{}, x}; }, random({D, 3}, 7));
    check_score([](const auto& w) { return score::dynamic_convolution{w}; }, random({Q, 3}, 7));
    check_score(
        [](const auto& w, const auto& out) {
            return score::concat{w, out};
        },
        random({Q + D, A}, 5), random({A}, 6));
    check_score(
        [](const auto& w, const auto& u, const auto& out, const auto& f, const auto& u_f) {
            return score::with_location{additive(w, u, out), f, u_f};
        },
        W, U, v, random({3, 3}, 7), random({3, A}, 8));
    check_score([] {
        return score::modified{score::dot{},
                               [](auto e, score_index p) { return 3 * tanh(e / 3) - 0.1 * abs(p.query - p.key); }};
    });
}

TEST_CASE("normalizers step by step")
{
    check_steps(
        [](const auto&... x) {
            return attention{additive(x...), normalize::temporal{}, combine::weighted_sum{}};
        },
        1e-4, W, U, v);
    check_normalizer([] { return normalize::temporal{}; }, 1e-4);
    check_normalizer([] { return normalize::sparsemax{}; }, 1e-4);
    check_normalizer([] { return normalize::entmax15{}; }, 1e-5);
    check_normalizer([] { return normalize::sigmoid{}; }, 1e-4);
    check_normalizer([] { return normalize::stick_breaking{}; }, 1e-4);
    check_normalizer([] { return normalize::top_k{2}; }, 1e-4);
    check_normalizer([](const auto& sink) { return normalize::softmax_with_sink{sink}; }, 1e-4, number);
    check_normalizer(
        [](const auto& w, const auto& x) {
            return normalize::local_p{w, x, 2};
        },
        1e-4, random({Q, 3}, 5), random({3}, 6));
}

TEST_CASE("tiles: functions of scores, tables, masks and sinks")
{
    const auto none = no_mask{};
    const auto plain = [] { return of_softmax(score::scaled_dot{}); };
    check_tiles(plain, none, {});
    check_tiles(plain, none, {.queries = 300});  // more than one block
    check_tiles([](const auto& w) { return of_softmax(score::general{w}); }, causal{}, {}, random({Q, D}, 9));
    const auto change = [](auto e, score_index p) {
        return 3 * tanh(e / 3) + sin(e) * exp(-sigmoid(e)) - 0.1 * abs(p.query - p.key) * (p.batch + 1);
    };
    check_tiles(
        [&] {
            return of_softmax(score::modified{score::scaled_dot{}, change});
        },
        causal{} & sliding_window{9}, {});
    const auto look_up = [](auto e, score_index p, const auto& b) {
        return e * b(p.head, p.key - p.query + 10) + tanh(b(0, p.key - p.key / 7 * 7 + 1) * e);
    };
    check_tiles(
        [&](const auto& bias) {
            return of_softmax(score::modified{score::dot{}, bias, look_up});
        },
        causal{}, {}, random({1, 21}, 11));
    const auto add = [](auto e, score_index p, const auto& b) { return e + b(p.key); };
    check_tiles(
        [&](const auto& bias, const auto& sink) {
            return attention{score::modified{score::dot{}, bias, add}, normalize::softmax_with_sink{sink},
                             combine::weighted_sum{}};
        },
        none, {}, random({70}, 12), number);
}

TEST_CASE("tiles: other normalizers of rows")
{
    const auto scaled = [](auto e, score_index p) { return 2 * e - 0.02 * abs(p.query - p.key); };
    const auto by_place = [&](const auto& normalize) {
        return attention{score::modified{score::dot{}, scaled}, normalize, combine::weighted_sum{}};
    };
    const auto plain = [](const auto& normalize) {
        return attention{score::scaled_dot{}, normalize, combine::weighted_sum{}};
    };
    // Small steps, so that no position enters or leaves a support within a finite difference.
    const tiles small{.h = 1e-7};
    check_tiles([&] { return by_place(normalize::sigmoid{-1}); }, causal{}, {});
    check_tiles(
        [&](const auto& scale, const auto& bias) {
            return attention{score::modified{score::cosine{scale}, scaled},
                             normalize::temperature{0.6, normalize::sigmoid{bias}}, combine::weighted_sum{}};
        },
        causal{}, {}, array<double, 1>{2}, array<double, 1>{-1});
    check_tiles([&] { return by_place(normalize::sparsemax{}); }, causal{}, small);
    check_tiles([&] { return by_place(normalize::entmax15{}); }, causal{}, small);
    check_tiles([&] { return plain(normalize::entmax15{}); }, no_mask{}, small);
    check_tiles([&] { return by_place(normalize::top_k{3}); }, causal{}, small);
    check_tiles([&] { return by_place(normalize::stick_breaking{}); }, causal{}, {});
    check_tiles([&] { return by_place(normalize::temporal{}); }, causal{}, {});
    check_tiles([&] { return plain(normalize::temporal{}); }, no_mask{}, {});
    check_tiles([&](const auto& a) { return plain(normalize::entmax{a}); }, no_mask{}, small, array<double, 1>{0.4});
    check_tiles([&](const auto& a) { return by_place(normalize::entmax{a}); }, causal{}, {.h = 1e-6},
                array<double, 1>{-0.5});
}

TEST_CASE("tiles: other comparisons")
{
    check_tiles([](const auto&... x) { return of_softmax(additive(x...)); }, causal{}, {}, W, U, v);
    check_tiles([] { return of_softmax(score::cosine{2.0}); }, no_mask{}, {});
    check_tiles(
        [](const auto& w, const auto& b) {
            return of_softmax(score::forgetting{score::scaled_dot{}, w, b});
        },
        causal{}, {}, random({D, 1}, 7), random({1}, 8));
}

TEST_CASE("linear time")
{
    const auto over = [](const auto& score, const auto& normalize) {
        return attention{score, normalize, combine::weighted_sum{}};
    };
    check_tiles([&] { return over(score::kernel{score::elu_plus_one{}}, normalize::ratio{0.9}); }, causal{}, {});
    check_tiles(
        [&](const auto& Omega) { return over(score::kernel{score::positive_random{Omega}}, normalize::ratio{}); },
        no_mask{}, {}, random({D, 6}, 9));
    check_tiles([&] { return over(score::scaled_dot{}, normalize::retention{0.9}); }, causal{}, {});
    check_tiles(
        [&](const auto& w, const auto& b) {
            return over(score::gated_decay{score::scaled_dot{}, w, b}, normalize::retention{});
        },
        causal{}, {}, random({D, 1}, 7), random({1}, 8));
}

TEST_CASE("several heads")
{
    const auto make = [](const auto&... projections) {
        return multi_head{std::vector(2, of_softmax(score::scaled_dot{})), projections...};
    };
    const auto loss = [](const auto& attend, const auto& annotations, const auto& queries) {
        const auto c = attend(attend.on(annotations, lengths({70, 33})), queries, causal{});
        return ops::dot(ops::square(c), uneven(c.shape()));
    };
    check(make, loss, random({2, 70, D}, 5), random({2, 60, Q}, 6), 1e-4, random({Q, 6}, 1), random({D, 6}, 2),
          random({D, 6}, 3), random({6, Q}, 4));
}
