// SPDX-License-Identifier: BSD-3-Clause
#include <heed/heads/multi_head.hpp>

#include <heed/ad/ad.hpp>
#include <heed/heads/multi_hop.hpp>
#include <heed/heed.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/heads.hpp>
#include <support/mechanism_tests.hpp>

using namespace heed;
using namespace support::heads;
using support::check_close;
using support::random;
namespace scalar = support::scalar;
namespace running = support::running;

TEST_CASE("heads of the Transformer, in one line")
{
    const auto attend = with_projections(
        std::vector(3, attention{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}}), 3);
    const std::vector<loop> loops(3, scaled_dot_loop);
    check_values(
        attend, [&](const auto& p, const auto& at) { return expected_heads(loops, p, at); }, plainly);
    support::check_gradients(attend, plainly, D);
    CHECK(parameter_count(attend) == 3 * (Q * K + D * K + D * V + V * O));
}

TEST_CASE("heads with different parameters and histories: additive, temporal")
{
    const auto heads = additive_heads(2, normalize::temporal{});
    const auto attend = with_projections(heads, 2);
    const auto loops = additive_loops(heads, true);
    check_values(
        attend, [&](const auto& p, const auto& at) { return expected_heads(loops, p, at); }, plainly);
    check_contracts(attend, plainly);
    std::vector<std::string> names;
    for_each_parameter(attend, [&](const std::string& name, const auto&) { names.push_back(name); });
    CHECK(names == std::vector<std::string>{"heads.0.score.W", "heads.0.score.U", "heads.0.score.v", "heads.1.score.W",
                                            "heads.1.score.U", "heads.1.score.v", "W_Q", "W_K", "W_V", "W_O"});
}

TEST_CASE("heads of different kinds, and queries with a word")
{
    const auto Y = random({2, A}, 40);
    const auto additive = additive_heads(1, normalize::temporal{})[0];
    const attention first{score::with_word{additive.score, Y}, normalize::softmax{}, combine::weighted_sum{}};
    const attention second{score::with_word{additive.score, Y}, normalize::temporal{}, combine::weighted_sum{}};
    const auto attend = with_projections(std::tuple{first, second}, 2);
    const auto equation = scalar::additive_with_word(rows(additive.score.W), rows(additive.score.U),
                                                     scalar::vector_of(additive.score.v), rows(Y));
    const std::vector<loop> loops{{equation, false}, {equation, true}};
    const support::query_with_word describe{Q, 2};
    check_values(
        attend, [&](const auto& p, const auto& at) { return expected_heads(loops, p, at); }, describe);
    support::check_gradients(attend, describe, D);
}

TEST_CASE("one head with identity projections equals the mechanism")
{
    const auto check = [](const auto& plain) {
        const multi_head one{std::vector{plain}, identity(D), identity(D), identity(D), identity(D)};
        const support::plain_query describe{D};
        const auto [p, at] = support::made_up(plain, describe, {5, 2, 0, 1}, 5, 3, D);
        const auto [q, same] = support::made_up(one, describe, {5, 2, 0, 1}, 5, 3, D);
        check_close(running::results<running_form::step, double>(q, same),
                    running::results<running_form::step, double>(p, at), 1e-15);
        check_close(running::results<running_form::many_queries, double>(q, same),
                    running::results<running_form::many_queries, double>(p, at), 1e-15);
    };
    check(attention{score::dot{}, normalize::softmax{}, combine::weighted_sum{}});
    check(attention{score::dot{}, normalize::temporal{}, combine::weighted_sum{}});
    check(attention{score::additive{random({D, A}, 1), random({D, A}, 2), random({A}, 3)}, normalize::softmax{},
                    combine::weighted_sum{}});
}

TEST_CASE("masks apply to every head")
{
    const double none = -std::numeric_limits<double>::infinity();
    const auto heads = additive_heads(2, normalize::temporal{});
    const auto attend = with_projections(heads, 2);
    const auto annotations = random({2, 4, D}, 1), queries = random({2, 3, Q}, 2);
    const auto memory = attend.on(annotations, lengths{4, 3});
    // Steps with one mask each, compared with all at once with a mask for all.
    const auto check = [&](const auto& all, const auto& of_step) {
        auto state = attend.start(memory);
        const auto contexts = attend(memory, queries, all);
        for (std::size_t s = 0; s < 3; ++s) {
            const auto now = attend.step(memory, ops::step_of(queries, s), state, of_step(s));
            CHECK(support::distance(ops::step_of(contexts, s), now.context) < 1e-14);
            CHECK(now.weights.shape() == shape_of_rank<3>{2, 2, 4});
            state = now.state;
        }
        CHECK(state.step == 3);
    };
    const auto sees = [](std::size_t s, std::size_t b, std::size_t t) { return (s + 2 * b + t) % 3 != 0; };
    boolean_mask<3> each(shape_of_rank<3>{2, 3, 4});
    for (std::size_t i = 0; i < 24; ++i) each[i] = sees(i / 4 % 3, i / 12, i % 4);
    check(each, [&](std::size_t s) {
        boolean_mask<2> mask(shape_of_rank<2>{2, 4});
        for (std::size_t i = 0; i < 8; ++i) mask[i] = sees(s, i / 4, i % 4);
        return mask;
    });
    check(causal{}, [](std::size_t s) { return lengths{2 + s, 1 + s}; });
    const additive_mask bias{array<double, 2>{{0.5, none, 0, 1}, {none, 0, 0, 0}}};
    check(additive_mask{ops::reshaped(bias.bias, 2, 1, 4)}, [&](std::size_t) { return bias; });
    const auto now = attend.step(memory, ops::step_of(queries, 0u), attend.start(memory), bias);
    for (std::size_t head = 0; head < 2; ++head) {
        CHECK(now.weights(0, head, 1) == 0);
        CHECK(now.weights(1, head, 0) == 0);
        CHECK(now.weights(1, head, 3) == 0);
        CHECK(now.weights(0, head, 0) + now.weights(0, head, 2) + now.weights(0, head, 3) ==
              doctest::Approx(1).epsilon(1e-14));
    }

    // Positions that the batch's mask hides may be NaN; without the mask the sentence is the shorter one.
    auto broken = annotations;
    for (std::size_t d = 0; d < D; ++d) broken(0, 1, d) = broken(1, 1, d) = std::nan("");
    boolean_mask<2> hidden(shape_of_rank<2>{2, 4});
    for (const std::size_t i : {0u, 2u, 3u, 4u, 6u, 7u}) hidden[i] = 1;
    array<double, 3> cut(shape_of_rank<3>{2, 3, D});
    for (std::size_t b = 0; b < 2; ++b) {
        for (std::size_t t = 0; t < 3; ++t) {
            for (std::size_t d = 0; d < D; ++d) cut(b, t, d) = annotations(b, t == 0 ? 0 : t + 1, d);
        }
    }
    CHECK(support::distance(attend(attend.on(broken, hidden), queries), attend(attend.on(cut), queries)) < 1e-14);
}

TEST_CASE("keys and values from different annotations")
{
    const auto attend = with_projections(
        std::vector(2, attention{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}}), 2);
    const auto annotations = random({2, 4, D}, 1), values = random({2, 4, D}, 2);
    const auto asked = random({2, Q}, 3);
    const auto step = [&](const auto& memory) { return attend.step(memory, asked, attend.start(memory)); };
    const auto both = step(attend.on(annotations, values, lengths{4, 2}));
    const auto by_keys = step(attend.on(annotations, lengths{4, 2}));
    CHECK(support::same_bits(both.weights, by_keys.weights));
    const auto V_ = ops::split_heads(ops::linear(values, attend.W_V), 2u);
    for (std::size_t b = 0; b < 2; ++b) {
        scalar::numbers head_transform;
        for (std::size_t head = 0; head < 2; ++head) {
            for (std::size_t d = 0; d < V; ++d) {
                double sum = 0;
                for (std::size_t t = 0; t < 4; ++t) sum += both.weights(b, head, t) * V_[head](b, t, d);
                head_transform.push_back(sum);
            }
        }
        const auto must = scalar::times(head_transform, rows(attend.W_O));
        for (std::size_t k = 0; k < O; ++k) CHECK(both.context(b, k) == doctest::Approx(must[k]).epsilon(1e-13));
    }
}

TEST_CASE("a state of several heads can be reordered, as in a beam, and copied")
{
    const auto attend = with_projections(additive_heads(2, normalize::temporal{}), 2);
    const auto annotations = random({2, 4, D}, 1);
    const auto asked = random({2, Q}, 3);
    const auto swap = [](const auto& x) {
        auto y = x;
        const std::size_t n = x.size() / 2;
        for (std::size_t i = 0; i < x.size(); ++i) y.data()[i] = x.data()[(i + n) % x.size()];
        return y;
    };
    const auto memory = attend.on(annotations), swapped = attend.on(swap(annotations));
    const auto first = attend.step(memory, asked, attend.start(memory));
    const auto second = attend.step(memory, asked, first.state);
    const auto other = attend.step(swapped, swap(asked), first.state.map(swap));
    CHECK(support::distance(other.context, swap(second.context)) < 1e-15);
    CHECK(other.state.step == 2);
}

TEST_CASE("scores of +-1e4 in float")
{
    auto attend =
        with_projections(std::vector(2, attention{score::dot{}, normalize::temporal{}, combine::weighted_sum{}}), 2);
    for (double& x : attend.W_Q) x *= 1e3;
    const auto single = running::converted<float>(attend);
    const auto memory = single.on(random<float>({2, 4, D}, 1), lengths{4, 2});
    auto state = single.start(memory);
    for (std::size_t s = 0; s < 3; ++s) {
        const auto now = single.step(memory, random<float>({2, Q}, 5 + s), state);
        CHECK(support::all_finite(now.context));
        CHECK(support::all_finite(now.weights));
        state = now.state;
    }
}

TEST_CASE("misfits are reported with names and numbers")
{
    const auto attend =
        with_projections(std::vector(2, attention{score::dot{}, normalize::softmax{}, combine::weighted_sum{}}), 2);
    const auto annotations = random({2, 4, D}, 1);
    const auto message = [](auto&& f) { return support::message_of<error>(f); };
    auto odd = attend;
    odd.W_K = random({D, 7}, 1);
    CHECK(message([&] { odd.on(annotations); }) == "multi_head: 2 heads, W_Q [3,8], W_K [5,7] and W_V [5,4]; W_Q must "
                                                   "have columns for n heads, W_K and W_V for n or for a divisor of n");
    auto none = attend;
    none.heads.clear();
    CHECK(message([&] { none.on(annotations); }) == "multi_head: heads: the list is empty; give at least one");
    auto three = with_projections(std::vector(3, attend.heads[0]), 3);
    const auto memory = attend.on(annotations);
    CHECK(message([&] { three.start(memory); }) ==
          "multi_head: the memory has 2 heads of keys but there are 3; use the memory that this mechanism made");
    CHECK(support::contains(message([&] {
                                attend.step(memory, random({2, Q}, 1), three.start(three.on(annotations)));
                            }),
                            "multi_head: the state is for 3 mechanisms but there are 2"));
    CHECK(support::contains(message([&] {
                                attend.step(memory, random({2, Q + 1}, 1), attend.start(memory));
                            }),
                            "linear: x is [2,4] and the matrix is [3,8]"));
    CHECK(support::contains(message([&] {
                                attend.on(annotations, lengths{4, 5});
                            }),
                            "multi_head::on: the length of row 1"));
    CHECK(support::contains(message([&] {
                                attend.on(annotations, random({2, 3, D}, 1), lengths{4, 4});
                            }),
                            "multi_head::on: the values"));

    const score::general score{random({Q, D}, 60)};
    const attention hop{score, normalize::softmax{}, combine::weighted_sum{}};
    const multi_hop hops{std::vector{hop, hop}};
    const auto memories = hops.on(annotations);
    CHECK(message([&] {
              hops.step(memories, random({2, Q}, 1), hops.start(memories));
          }) == "multi_hop: the context is [2,5] but must be [2,3] (the shape of the query that it is added to; or "
                "give multi_hop a custom update)");
    const multi_hop no_hops{std::vector<std::remove_cvref_t<decltype(hop)>>{}};
    CHECK(message([&] { no_hops.on(annotations); }) == "multi_hop: hops: the list is empty; give at least one");
}

TEST_CASE("split_heads and concat_heads: values and gradients")
{
    const auto x = random({2, 3, 6}, 1);
    const auto parts = ops::split_heads(x, 3u);
    CHECK(parts.size() == 3);
    for (std::size_t b = 0; b < 2; ++b) {
        for (std::size_t t = 0; t < 3; ++t) {
            for (std::size_t k = 0; k < 6; ++k) CHECK(parts[k / 2](b, t, k % 2) == x(b, t, k));
        }
    }
    CHECK(support::same_bits(ops::concat_heads(parts), x));
    CHECK_GRADIENT(
        [](const auto& y) {
            const auto two = ops::split_heads(y, 3u);
            return ops::multiply(two[0], two[2]);  // the middle slice is not used
        },
        x);
    CHECK_GRADIENT([](const auto& y) { return ops::split_heads(y, 2u)[1]; }, random({3, 4}, 2));
    CHECK_GRADIENT(
        [](const auto& a) {
            return ops::concat_heads(std::vector{a, ops::scale(a, 2), a});
        },
        random({2, 3}, 3));
    CHECK(
        support::same_bits(ops::concat_heads(std::vector{array<double, 2>{{1, 2}, {3, 4}}, array<double, 2>{{5}, {6}}}),
                           array<double, 2>{{1, 2, 5}, {3, 4, 6}}));
    CHECK(support::contains(support::message_of<shape_error>([&] { ops::split_heads(x, 4u); }),
                            "[2,3,6] cannot be split into 4"));
    CHECK(
        support::contains(support::message_of<shape_error>([&] { ops::concat_heads(std::vector<array<double, 2>>{}); }),
                          "concat_heads: nothing to join"));
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                ops::concat_heads(std::vector{random({2, 3}, 1), random({3, 3}, 1)});
                            }),
                            "concat_heads: a part is [3,3] but must be [2,3]"));
}

TEST_CASE("a memory extended word by word equals that of all words at once")
{
    const auto words = random({2, 4, 6}, 71), queries = random({2, 3, 6}, 72);
    const auto part = [&](std::size_t first, std::size_t count) {
        array<double, 3> some(shape_of_rank<3>{2, count, 6});
        for (std::size_t b = 0; b < 2; ++b) {
            for (std::size_t i = 0; i < count * 6; ++i)
                some.data()[b * count * 6 + i] = words.data()[(b * 4 + first) * 6 + i];
        }
        return some;
    };
    const auto check = [&](const auto& attend) {
        auto memory = attend.on(part(0, 1));
        memory = attend.extend(memory, part(1, 2));
        memory = attend.extend(memory, part(3, 1));
        CHECK(support::distance(attend(memory, queries), attend(attend.on(words), queries)) < 1e-14);
    };
    const attention general{score::general{random({6, 6}, 73)}, normalize::softmax{}, combine::weighted_sum{}};
    check(general);
    check(attention{score::additive{random({6, 5}, 74), random({6, 5}, 75), random({5}, 76)}, normalize::softmax{},
                    combine::weighted_sum{}});
    check(multi_head{std::vector(2, attention{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}}),
                     random({6, 4}, 77), random({6, 4}, 78), random({6, 4}, 79), random({4, 6}, 80)});
    CHECK_THROWS_WITH_AS((void)general.extend(general.on(words, lengths{4, 3}), part(0, 1)),
                         "attention::extend: row 1 of the memory has 3 real positions of 4; a memory is extended after "
                         "its last position, so it must have no padding, or be a KV cache: with_cache(memory)",
                         shape_error);
}

// Heads that share keys and values.

namespace {

template <class X>
void check_near(const X& is, const X& must, double tolerance)
{
    REQUIRE(is.shape() == must.shape());
    double worst = 0;
    for (std::size_t i = 0; i < is.size(); ++i) worst = std::max(worst, std::abs(is.data()[i] - must.data()[i]));
    CHECK(worst <= tolerance);
}

}  // namespace

TEST_CASE("grouped heads equal heads with repeated keys and values")
{
    constexpr std::size_t n = 4, G = 2, B = 2, T = 7, S = 6;
    const auto head = attention{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto W_Q = random({Q, n * K}, 1), W_K = random({D, G * K}, 2), W_V = random({D, G * V}, 3),
               W_O = random({n * V, O}, 4);
    const auto repeated = [](const array<double, 2>& W, std::size_t width) {
        array<double, 2> all({W.shape()[0], n * width});
        for (std::size_t r = 0; r < W.shape()[0]; ++r)
            for (std::size_t i = 0; i < n * width; ++i) all(r, i) = W(r, i / width / (n / G) * width + i % width);
        return all;
    };
    const multi_head grouped{std::vector(n, head), W_Q, W_K, W_V, W_O};
    const multi_head all{std::vector(n, head), W_Q, repeated(W_K, K), repeated(W_V, V), W_O};
    const auto annotations = random({B, T, D}, 5), queries = random({B, S, Q}, 6);
    const lengths real({7, 4});
    const auto shared = grouped.on(annotations, real);
    const auto every = all.on(annotations, real);
    CHECK(shared.of.size() == G);
    check_near(grouped(shared, queries, causal{}), all(every, queries, causal{}), 1e-13);
    auto a = grouped.start(shared);
    auto b = all.start(every);
    for (std::size_t s = 0; s < S; ++s) {
        const auto x = grouped.step(shared, ops::step_of(queries, s), a);
        const auto y = all.step(every, ops::step_of(queries, s), b);
        check_near(x.context, y.context, 1e-13);
        check_near(x.weights, y.weights, 1e-13);
        a = x.state;
        b = y.state;
    }
    const auto f = [&](const auto& h, const auto& q) { return grouped(grouped.on(h, real), q); };
    CHECK_GRADIENT(f, annotations, queries);
    const auto u = random({B, S, O}, 7);
    const auto gradient_of_keys = [&](const auto& attend) {
        ad::tape<double> on;
        const auto lifted = ad::lift(on, attend);
        on.backward(ops::dot(lifted(lifted.on(annotations, real), queries), u));
        return copy_of(on.gradient(lifted.W_K));
    };
    const auto of_shared = gradient_of_keys(grouped), of_all = gradient_of_keys(all);
    for (std::size_t r = 0; r < D; ++r) {
        for (std::size_t i = 0; i < G * K; ++i) {
            const std::size_t at = i / K * (n / G) * K + i % K;
            CHECK(of_shared(r, i) == support::approx(of_all(r, at) + of_all(r, at + K)));
        }
    }
    const multi_head one{std::vector(n, head), W_Q, random({D, 3 * K}, 2), W_V, W_O};
    CHECK_THROWS_WITH_AS(
        (void)one.on(annotations, real),
        "multi_head: 4 heads, W_Q [3,16], W_K [5,12] and W_V [5,4]; W_Q must have columns for n heads, W_K "
        "and W_V for n or for a divisor of n",
        shape_error);
}

TEST_CASE("heads that share keys support a function of the score, and heads that prepare keys cannot share them")
{
    constexpr std::size_t n = 4, G = 2;
    const auto alibi = [](auto e, score_index p) { return e - 0.3 * (p.head + 1) * abs(p.query - p.key); };
    const auto annotations = random({1, 7, D}, 5), queries = random({1, 6, Q}, 6);
    const multi_head grouped{std::vector(n, attention{score::modified{score::scaled_dot{}, alibi}, normalize::softmax{},
                                                      combine::weighted_sum{}}),
                             random({Q, n * K}, 1), random({D, G * K}, 2), random({D, G * V}, 3),
                             random({n * V, O}, 4)};
    const auto memory = grouped.on(annotations);
    CHECK(memory.of.size() == G);
    CHECK(grouped(memory, queries).shape()[2] == O);

    // Keys of a different width than the queries: each head has its own matrix for them.
    const attention head{score::additive{random({K, A}, 7), random({K / 2, A}, 8), random({A}, 9)},
                         normalize::softmax{}, combine::weighted_sum{}};
    const multi_head narrow{std::vector(n, head), random({Q, n * K}, 1), random({D, n * K / 2}, 2),
                            random({D, n * V}, 3), random({n * V, O}, 4)};
    CHECK(narrow.on(annotations).of.size() == n);
    CHECK(narrow(narrow.on(annotations), queries).shape()[2] == O);
}

TEST_CASE("a function of the score reads the head's index, step by step and all at once")
{
    constexpr std::size_t n = 3, B = 2, T = 70, S = 60;
    const auto alibi = [](auto e, score_index p) { return e - 0.3 * (p.head + 1) * abs(p.query - p.key); };
    const multi_head attend{std::vector(n, attention{score::modified{score::scaled_dot{}, alibi}, normalize::softmax{},
                                                     combine::weighted_sum{}}),
                            random({Q, n * K}, 1), random({D, n * K}, 2), random({D, n * V}, 3), random({n * V, O}, 4)};
    const auto annotations = random({B, T, D}, 5), queries = random({B, S, Q}, 6);
    const auto memory = attend.on(annotations, lengths({70, 40}));
    const auto at_once = attend(memory, queries);
    auto state = attend.start(memory);
    const auto k = ops::linear(annotations, attend.W_K), q = ops::linear(queries, attend.W_Q);
    for (std::size_t s = 0; s < S; ++s) {
        const auto seen = attend.step(memory, ops::step_of(queries, s), state);
        state = seen.state;
        check_near(seen.context, ops::step_of(at_once, s), 1e-12);
        for (std::size_t h = 0; h < n; ++h) {  // by the definition
            double all = 0, first = 0;
            for (std::size_t t = 0; t < T; ++t) {
                double e = 0;
                for (std::size_t i = 0; i < K; ++i)
                    e += q(0, s, h * K + i) * k(0, t, h * K + i) / std::sqrt(static_cast<double>(K));
                e -= 0.3 * static_cast<double>(h + 1) * std::abs(static_cast<double>(s) - static_cast<double>(t));
                all += std::exp(e);
                if (t == 0) first = std::exp(e);
            }
            CHECK(seen.weights(0, h, 0) == support::approx(first / all));
        }
    }
}

namespace biases_of_projections {

// Biases of multi_head's projections, compared with weights of a column of ones appended to the input.
using support::random;

namespace {

constexpr std::size_t B = 2, T = 4, S = 3, D = 5, n = 2, G = 1, K = 3, V = 2, O = 4;

auto heads() { return std::vector(n, attention{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}}); }

/// x with a 1 appended to each row.
array<double, 3> with_one(const array<double, 3>& x)
{
    const auto [rows, columns, width] = shape_of(x);
    array<double, 3> y({rows, columns, width + 1}, 1.0);
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j)
            for (std::size_t k = 0; k < width; ++k) y(i, j, k) = x(i, j, k);
    return y;
}

/// W with b as its last row.
array<double, 2> with_row(const array<double, 2>& W, const array<double, 1>& b)
{
    array<double, 2> y({shape_of(W)[0] + 1, shape_of(W)[1]});
    std::copy(W.begin(), W.end(), y.begin());
    std::copy(b.begin(), b.end(), y.begin() + static_cast<std::ptrdiff_t>(W.size()));
    return y;
}

const auto W_Q = random({D, n*K}, 1), W_K = random({D, G*K}, 2), W_V = random({D, G*V}, 3), W_O = random({n * V, O}, 4);
const auto b_Q = random({n * K}, 5), b_K = random({G * K}, 6), b_V = random({G * V}, 7), b_O = random({O}, 8);

}  // namespace

TEST_CASE("a bias equals the weight of a constant input of 1")
{
    const multi_head with{heads(), W_Q, W_K, W_V, W_O, per_head::identity{}, biases{b_Q, b_K, b_V, b_O}};
    const multi_head without{heads(), with_row(W_Q, b_Q), with_row(W_K, b_K), with_row(W_V, b_V), W_O};
    const auto x = random({B, T, D}, 10), q = random({B, S, D}, 11);
    const lengths real{4, 2};
    const auto memory = with.on(x, real);
    const auto other = without.on(with_one(x), real);
    array<double, 3> must = without(other, with_one(q));
    for (std::size_t i = 0; i < must.size(); ++i) must.data()[i] += b_O(i % O);
    CHECK(support::distance(with(memory, q), must) < 1e-14);

    for (std::size_t s = 0; s < S; ++s) {
        const auto answer = with.step(memory, ops::step_of(q, s), with.start(memory));
        const auto expected = without.step(other, ops::step_of(with_one(q), s), without.start(other));
        CHECK(support::distance(answer.weights, expected.weights) < 1e-14);
        CHECK(support::distance(answer.context, ops::step_of(must, s)) < 1e-14);
        CHECK(support::distance(with.read(memory, ops::step_of(q, s), with.start(memory)).context,
                                ops::step_of(must, s)) < 1e-14);
        CHECK(support::distance(with.compose(memory, ops::step_of(q, s), with.start(memory)).context,
                                ops::step_of(must, s)) < 1e-14);
    }

    // A growing memory applies the biases as well.
    const auto sentence = random({1, T, D}, 12), asks = random({1, S, D}, 13);
    const auto grown =
        with.extend(with.on(ops::positions_between(sentence, 0, 3)), ops::positions_between(sentence, 3, 1));
    CHECK(support::distance(with(grown, asks), with(with.on(sentence), asks)) < 1e-14);
}

TEST_CASE("gradients and names of biases")
{
    multi_head model{heads(), W_Q, W_K, W_V, W_O, per_head::identity{}, biases{b_Q, b_K, b_V, b_O}};
    const auto x = random({B, T, D}, 10), q = random({B, S, D}, 11);
    const lengths real{4, 2};
    const auto found = ad::grad_check(model, [&](auto&, const auto& m) {
        const auto y = m(m.on(x, real), q);
        return ops::dot(y, support::uneven(y.shape()));
    });
    CHECK_MESSAGE(bool(found), found.text());
    std::vector<std::string> names;
    for_each_parameter(model, [&](const std::string& name, const auto&) { names.push_back(name); });
    CHECK(names ==
          std::vector<std::string>{"W_Q", "W_K", "W_V", "W_O", "bias.b_Q", "bias.b_K", "bias.b_V", "bias.b_O"});
}

TEST_CASE("a bias that does not fit, and the size of no_biases")
{
    const auto x = random({B, T, D}, 10), q = random({B, S, D}, 11);
    const multi_head wrong{heads(), W_Q, W_K, W_V, W_O, per_head::identity{}, biases{b_K, b_K, b_V, b_O}};
    CHECK(
        support::contains(support::message_of<shape_error>([&] { wrong(wrong.on(x), q); }), "linear: the bias is [3]"));
    static_assert(sizeof(no_biases) == 1);
}

TEST_CASE("a policy with or without a bias")
{
    const auto x = random({2, 3}, 1), W = random({3, 4}, 2);
    const auto b = random({4}, 3);
    CHECK(support::same_bits(detail::linear_with(x, W, b), ops::linear(x, W, b)));
    CHECK(support::same_bits(detail::linear_with(x, W, no_bias{}), ops::linear(x, W)));
    CHECK(parameter_count(score::additive{W, random({5, 4}, 4), b}) == 12 + 20 + 4);
    CHECK(parameter_count(score::additive{W, random({5, 4}, 4), b, b}) == 12 + 20 + 4 + 4);
}

}  // namespace biases_of_projections
