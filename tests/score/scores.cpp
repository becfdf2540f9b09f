// SPDX-License-Identifier: BSD-3-Clause
#include <support/contracts.hpp>
#include <support/gradients.hpp>
#include <support/mechanism_tests.hpp>

#include <limits>
#include <numeric>

// The scores besides additive, dot and general: their equations as plain loops, gradients, contracts, and the
// identities between them.

using namespace heed;
using support::random;
namespace scalar = support::scalar;

namespace {

using scalar::matrix;
using scalar::numbers;

numbers plus(numbers a, const numbers& b)
{
    for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
}

double length(const numbers& a) { return std::sqrt(scalar::inner(a, a)); }

double cosine_of(const numbers& a, const numbers& b) { return scalar::inner(a, b) / (length(a) * length(b)); }

double nearness(const numbers& a, numbers b)
{
    for (double& x : b) x = -x;
    return 1 / (1 + length(plus(a, b)));
}

/// vᵀ tanh(W [h; h_j]), of the joined vector
scalar::score concat(matrix W, numbers v)
{
    return [=](const std::vector<numbers>& q, const numbers& h) {
        numbers joined = q[0];
        joined.insert(joined.end(), h.begin(), h.end());
        return numbers{scalar::inner(v, scalar::hidden({scalar::times(joined, W)}))};
    };
}

/// f(name, score, equation, describe) for each of them; Q = 3, D = 5 but where both must be the same.
template <class F>
void each_score(std::size_t Q, std::size_t D, F&& f)
{
    using support::plain_query, support::query_with_word;
    const std::size_t A = 4, E = 2;
    const auto W = random({Q + D, A}, 41), P = random({Q, D}, 42), Y = random({E, D}, 43);
    const auto v = random({A}, 44), b = random({D}, 45);
    const auto rows = [](const auto& m) { return scalar::matrix_of(m); };
    f("concat", score::concat{W, v, Q}, concat(rows(W), scalar::vector_of(v)), plain_query{Q});
    const auto U = random({D, A}, 46), W_q = random({Q, A}, 47);
    const auto bias = random({A}, 48);
    f(
        "additive with a bias", score::additive{W_q, U, v, bias},
        [W = rows(W_q), U = rows(U), v = scalar::vector_of(v), b = scalar::vector_of(bias)](const auto& q,
                                                                                            const auto& h) {
            return numbers{scalar::inner(v, scalar::hidden({scalar::times(q[0], W), scalar::times(h, U), b}))};
        },
        plain_query{Q});
    f(
        "scaled dot", score::scaled_dot{},
        [](const auto& q, const auto& h) {
            return numbers{scalar::inner(q[0], h) / std::sqrt(static_cast<double>(h.size()))};
        },
        plain_query{D});
    f(
        "cosine", score::cosine<>{.scale = 3},
        [](const auto& q, const auto& h) { return numbers{3 * cosine_of(q[0], h)}; }, plain_query{D});
    f(
        "match", score::match{}, [](const auto& q, const auto& h) { return numbers{nearness(q[0], h)}; },
        plain_query{D});
    f(
        "conv_s2s", score::conv_s2s{P, b},
        [P = rows(P), b = scalar::vector_of(b)](const auto& q, const auto& h) {
            return numbers{scalar::inner(plus(plus(scalar::times(q[0], P), b), q[1]), h)};
        },
        query_with_word{Q, D});
    // A target word over bases that do not project the query, and over one that does.
    f(
        "scaled dot with word", score::with_word{score::scaled_dot{.scale = 0.5}, Y},
        [Y = rows(Y)](const auto& q, const auto& h) {
            return numbers{0.5 * scalar::inner(plus(q[0], scalar::times(q[1], Y)), h)};
        },
        query_with_word{D, E});
    f(
        "cosine, its scale learned", score::cosine{array<double, 1>{3}},
        [](const auto& q, const auto& h) { return numbers{3 * cosine_of(q[0], h)}; }, plain_query{D});
    f(
        "cosine with word", score::with_word{score::cosine{}, Y},
        [Y = rows(Y)](const auto& q, const auto& h) {
            return numbers{cosine_of(plus(q[0], scalar::times(q[1], Y)), h)};
        },
        query_with_word{D, E});
}

/// The same for scores whose equation takes two steps: f(name, score, describe).
template <class F>
void each_of_the_rest(F&& f)
{
    using support::plain_query, support::query_with_word;
    const auto L = random({3, 9}, 51), Y = random({2, 9}, 52), Z = random({2, 5}, 53), W = random({8, 5}, 54);
    const auto v = random({5}, 55);
    f("location", score::location{L}, plain_query{3});
    f("location with word", score::with_word{score::location{L}, Y}, query_with_word{3, 2});
    f("match with word", score::with_word{score::match{}, Z}, query_with_word{5, 2});
    f("dot with word", score::with_word{score::dot{}, Z}, query_with_word{5, 2});
    f("concat with word", score::with_word{score::concat{W, v, 3}, Z}, query_with_word{3, 2});
}

template <class Score>
auto soft(Score score)
{
    return attention<Score, normalize::softmax, combine::weighted_sum>{std::move(score), {}, {}};
}
template <class Score>
auto temporal(Score score)
{
    return attention<Score, normalize::temporal, combine::weighted_sum>{std::move(score), {}, {}};
}

void says(auto&& f, const std::string& part)
{
    const std::string message = support::message_of<shape_error>(f);
    CHECK_MESSAGE(support::contains(message, part), message);
}

}  // namespace

TEST_CASE("values are those of the equations")
{
    const auto check = [](std::size_t Q, std::size_t D) {
        each_score(Q, D, [&](const std::string& name, const auto& score, const auto& equation, auto describe) {
            support::about(name, [&] {
                support::check_values(soft(score), equation, false, describe, D);
                support::check_values(temporal(score), equation, true, describe, D);
            });
        });
    };
    check(3, 5);
    check(7, 19);
}

TEST_CASE("gradients are those of finite differences, through history")
{
    each_score(3, 5, [](const std::string& name, const auto& score, const auto&, auto describe) {
        support::about(name, [&] { support::check_gradients(temporal(score), describe, 5); });
    });
    each_of_the_rest([](const std::string& name, const auto& score, auto describe) {
        support::about(name, [&] { support::check_gradients(temporal(score), describe, 5); });
    });
}

TEST_CASE("the contracts are kept")
{
    const auto check = [](const std::string& name, const auto& attend, auto describe) {
        support::check_report(name, verify(attend, {.width = 5}, describe));
    };
    each_score(3, 5, [&](const std::string& name, const auto& score, const auto&, auto describe) {
        check(name + ", softmax", soft(score), describe);
        check(name + ", temporal", temporal(score), describe);
    });
    each_of_the_rest([&](const std::string& name, const auto& score, auto describe) {
        check(name + ", softmax", soft(score), describe);
        check(name + ", temporal", temporal(score), describe);
    });
}

TEST_CASE("concat is additive with W cut in two: values and gradients")
{
    for (const auto& [Q, D] : {std::pair<std::size_t, std::size_t>{3, 5}, {4, 4}}) {
        const auto W = random({Q + D, 7}, 1), q = random({2, Q}, 3);
        const auto h = random({2, 6, D}, 2);
        const auto v = random({7}, 4);
        array<double, 2> above(shape_of_rank<2>{Q, 7}), below(shape_of_rank<2>{D, 7});
        std::copy_n(W.data(), Q * 7, above.data());
        std::copy_n(W.data() + Q * 7, D * 7, below.data());
        // Two equal halves need no argument.
        const auto one = Q == D ? score::concat{W, v} : score::concat{W, v, Q};
        const score::additive two{above, below, v};

        ad::tape<double> on;
        const auto joined = temporal(ad::lift(on, one));
        const auto split = temporal(ad::lift(on, two));
        const auto loss_of = [&](const auto& attend) {
            const auto memory = attend.on(h, lengths{6, 4});
            const auto first = attend.compose(memory, q, attend.start(memory));
            const auto second = attend.compose(memory, ops::scale(q, -2), first.state);
            return ops::add(ops::inner(first.context, support::uneven(first.context.shape())),
                            ops::inner(second.weights, support::uneven(second.weights.shape())));
        };
        const auto a = loss_of(joined), b = loss_of(split);
        CHECK(*a.data() == doctest::Approx(*b.data()).epsilon(1e-14));
        on.backward(ops::add(a, b));
        const auto whole = on.gradient(joined.score.W);
        const auto up = on.gradient(split.score.W), down = on.gradient(split.score.U);
        double most = 0;
        for (std::size_t i = 0; i < whole.size(); ++i) {
            const double must = i < up.size() ? up.data[i] : down.data[i - up.size()];
            CHECK(whole.data[i] == doctest::Approx(must).epsilon(1e-12));
            most = std::max(most, std::abs(must));
        }
        CHECK(most > 1e-3);
        CHECK(support::distance(on.gradient(joined.score.v), on.gradient(split.score.v)) < 1e-13);
    }
}

TEST_CASE("concat: where W is cut")
{
    const auto v = random({7}, 1);
    says(
        [&] {
            soft(score::concat{random({9, 7}, 2), v}).on(random({2, 6, 5}, 3));
        },
        "score::concat: W is [9,7] and the query has half of its rows; W has Q + D rows: say how many belong to the "
        "query, concat{W, v, Q}");
    says([&] { soft(score::concat{random({9, 7}, 2), v, 10}).on(random({2, 6, 5}, 3)); }, "10 of its rows");
    says(
        [&] {
            soft(score::concat{random({8, 7}, 2), v}).on(random({2, 6, 5}, 3));
        },
        "linear: x is [2,6,5] and the matrix is [4,7]");
    const auto attend = soft(score::concat{random({8, 7}, 2), v, 3});
    const auto memory = attend.on(random({2, 6, 5}, 3));
    says(
        [&] {
            attend.step(memory, random({2, 4}, 4), attend.start(memory));
        },
        "linear: x is [2,4] and the matrix is [3,7]");
}

TEST_CASE("additive and concat have the paper's parameters, all of them and no others")
{
    // A peer's additive attention is Σ_i v_i tanh(q_i + k_i), without W and U; another has biases that no paper has.
    const auto W = random({3, 4}, 1), U = random({5, 4}, 2), joined = random({8, 4}, 3);
    const auto v = random({4}, 4);
    const auto names_of = [](const auto& score) {
        std::string names;
        for_each_parameter(score, [&](const std::string& name, const auto& x) {
            names += name + " " + shape_text(shape_of(x)) + " ";
        });
        return names;
    };
    CHECK(names_of(score::additive{W, U, v}) == "W [3,4] U [5,4] v [4] ");
    CHECK(names_of(score::concat{joined, v, 3}) == "W [8,4] v [4] ");
    const auto zeros = [](std::size_t rows, std::size_t n) { return filled<double, 2>({rows, n}, 0.0); };
    const array<double, 3> nothing = filled<double, 3>({1, 2, 5}, 0.0);
    const auto h = random({1, 2, 5}, 5);
    const auto check = [&](const auto& score) {
        // tanh(0) = 0: a bias before or after it would show.
        const auto none = score(zeros(1, 3), score.prepare(nothing));
        CHECK(none(0, 0) == 0);
        CHECK(none(0, 1) == 0);
        // Both sides go through their matrices: another W, or another U, gives another score.
        const auto e = score(random({1, 3}, 6), score.prepare(h));
        auto other = score;
        other.W(0, 1) += 1;
        CHECK(other(random({1, 3}, 6), score.prepare(h))(0, 0) != e(0, 0));
    };
    check(score::additive{W, U, v});
    check(score::concat{joined, v, 3});
    auto other = U;
    other(1, 1) += 1;
    CHECK(score::additive{W, other, v}.prepare(h)(0, 0, 1) != score::additive{W, U, v}.prepare(h)(0, 0, 1));
}

TEST_CASE("a bias is one more row of W, met by a query with a 1: values and gradients, step by step and in tiles")
{
    constexpr std::size_t B = 2, T = 70, Q = 3, D = 6, A = 5;
    const auto W = random({Q, A}, 1), U = random({D, A}, 2), V = random({A, D}, 3),
               V_2 = random({A, std::size_t{2}}, 4);
    const auto v = random({A}, 5), b = random({A}, 6);
    const auto h = random({B, T, D}, 7);
    const lengths real{T, 33};
    const auto above = [](const array<double, 2>& one, const auto& two) {
        array<double, 2> both(shape_of_rank<2>{one.shape()[0] + two.size() / A, A});
        std::copy_n(two.data(), two.size(), std::copy_n(one.data(), one.size(), both.data()));
        return both;
    };
    const auto W_1 = above(W, b);

    const auto check = [&](const auto& one, const auto& other) {
        for (const std::size_t S : {std::size_t{2}, std::size_t{70}}) {
            const auto q = random({B, S, Q}, 8);
            const auto q_1 = ops::concat(q, filled<double, 3>({B, S, 1}, 1.0));
            ad::tape<double> on;
            const auto with = ad::lift(on, one);
            const auto without = ad::lift(on, other);
            const auto memory = with.on(h, real);
            const auto its_memory = without.on(h, real);
            const auto contexts = with(memory, q);
            const auto must = without(its_memory, q_1);
            CHECK(support::distance(contexts, must) < 1e-13);
            const auto step = with.step(memory, ops::step_of(q, 1), with.start(memory));
            CHECK(support::distance(step.context, ops::step_of(contexts, 1)) < 1e-13);
            const auto composed = with.compose(memory, ops::step_of(q, 1), with.start(memory));
            CHECK(support::distance(composed.context, ops::step_of(contexts, 1)) < 1e-13);

            on.backward(ops::add(ops::inner(contexts, support::uneven(contexts.shape())),
                                 ops::inner(must, support::uneven(must.shape()))));
            const auto of_bias = on.gradient(with.score.b);
            const auto of_other = on.gradient(without.score.W);
            double most = 0;
            for (std::size_t i = 0; i < A; ++i) {
                CHECK(std::abs(of_bias.data[i] - of_other.data[Q * A + i]) < 1e-12);
                most = std::max(most, std::abs(of_bias.data[i]));
            }
            CHECK(most > 1e-3);
        }
    };
    const normalize::softmax soft;
    const combine::weighted_sum sum;
    check(attention{score::additive{W, U, v, b}, soft, sum}, attention{score::additive{W_1, U, v}, soft, sum});
    check(attention{score::concat{above(W, U), v, Q, b}, soft, sum},
          attention{score::concat{above(W_1, U), v, Q + 1}, soft, sum});
    check(attention{score::additive_per_dimension{W, U, V, b}, soft, combine::elementwise_sum{}},
          attention{score::additive_per_dimension{W_1, U, V}, soft, combine::elementwise_sum{}});
    check(attention{score::additive_grouped{W, U, V_2, b}, soft, combine::grouped_sum{}},
          attention{score::additive_grouped{W_1, U, V_2}, soft, combine::grouped_sum{}});

    std::string names;
    const score::concat joined{above(W, U), v, Q, b};
    for_each_parameter(joined,
                       [&](const std::string& name, const auto& x) { names += name + " " + shape_text(shape_of(x)); });
    CHECK(names == "W [9,5]v [5]b [5]");
    const attention wrong{score::additive{W, U, v, random({4}, 1)}, soft, sum};
    const auto memory = wrong.on(h, real);
    says(
        [&] {
            (void)wrong.step(memory, random({B, Q}, 9), wrong.start(memory));
        },
        "score::additive: the query [2,3] does not fit W [3,5], U [6,5], v [5], b [4]");
}

TEST_CASE("scaled dot: d from the shapes, or a given scale")
{
    const auto q = random({2, 16}, 1);
    const auto k = random({2, 3, 16}, 2);
    CHECK(support::same_bits(score::scaled_dot{}(q, k), ops::dot_each(ops::scale(q, 0.25), k)));
    CHECK(support::same_bits(score::scaled_dot{2.0}(q, k), ops::dot_each(ops::scale(q, 2), k)));
    CHECK(support::distance(score::scaled_dot{1.0}(q, k), score::dot{}(q, k)) == 0);
    // The scale is not a parameter, but is copied with the score.
    CHECK(parameter_count(score::scaled_dot{2.0}) == 0);
    const auto copied = [](const auto& score) {
        return transform_parameters(score, [](const std::string&, const auto& x) { return x; });
    };
    CHECK(copied(score::with_word{score::scaled_dot{2.0}, random({2, 16}, 3)}).base.scale == 2.0);
    CHECK(copied(score::with_word{score::cosine{7.0}, random({2, 16}, 3)}).base.scale == 7.0);
    CHECK(copied(score::concat{random({8, 7}, 1), random({7}, 2), 3}).query == 3);
}

TEST_CASE("location: the query alone says where, whatever is there")
{
    const auto W = random({3, 7}, 1), q = random({2, 3}, 2);
    const auto attend = soft(score::location{W});
    const auto check = [&](std::size_t T, const lengths& real) {
        const auto h = random({2, T, 5}, 3);
        const auto memory = attend.on(h, real);
        const auto now = attend.step(memory, q, attend.start(memory));
        for (std::size_t b = 0; b < 2; ++b) {
            numbers e(T);
            double sum = 0;
            for (std::size_t j = 0; j < real[b]; ++j) {
                for (std::size_t i = 0; i < 3; ++i) e[j] += q(b, i) * W(i, j);
                sum += std::exp(e[j]);
            }
            for (std::size_t j = 0; j < T; ++j) {
                CHECK(now.weights(b, j) == doctest::Approx(j < real[b] ? std::exp(e[j]) / sum : 0.0).epsilon(1e-14));
            }
        }
        const auto elsewhere = attend.on(random({2, T, 5}, 4), real);
        CHECK(support::same_bits(attend.step(elsewhere, q, attend.start(elsewhere)).weights, now.weights));
    };
    check(7, {7, 3});
    check(4, {2, 0});
    check(1, {1, 1});

    says(
        [&] {
            attend.on(random({2, 8, 5}, 3));
        },
        "score::location: 8 positions but W is [3,7], a column for each of at most 7; make W as wide as the longest "
        "sentence, or cut the annotations");

    const auto some = [&](std::size_t T) { return attend.on(random({2, T, 5}, 3)); };
    const auto whole = some(7),
               grown = attend.extend(attend.extend(some(2), random({2, 4, 5}, 5)), random({2, 1, 5}, 6));
    CHECK(support::same_bits(attend.step(grown, q, attend.start(grown)).weights,
                             attend.step(whole, q, attend.start(whole)).weights));
    says(
        [&] {
            (void)attend.extend(grown, random({2, 1, 5}, 7));
        },
        "score::location: 8 positions but W is [3,7], a column for each of at most 7; make W as wide as the longest "
        "sentence, or cut the annotations");

    // Part of the keys gives the same part of the scores: inside a window, a position keeps its own.
    const auto keys = attend.score.prepare(random({2, 7, 5}, 3));
    window where;
    where.begin = {2, 6};
    where.count = lengths{3, 1};
    where.width = 3;
    const auto e = attend.score(q, keys), part = attend.score(q, ops::window_of(keys, where));
    for (std::size_t j = 0; j < 3; ++j) CHECK(part(0, j) == e(0, 2 + j));
    CHECK(part(1, 0) == e(1, 6));
}

TEST_CASE("cosine: scores of -scale to scale, and 0 for a vector without direction")
{
    const score::cosine<> cosine{.scale = 10};
    const array<double, 2> q{{3, 4}, {0, 0}, {1e200, 0}};
    const array<double, 3> h{{{6, 8}, {-3e-200, -4e-200}, {0, 0}}, {{1, 2}, {0, 0}, {5, 5}}, {{1, 1}, {-2, 0}, {0, 1}}};
    const auto e = cosine(q, cosine.prepare(h));
    const array<double, 2> must{{10, -10, 0}, {0, 0, 0}, {10 / std::sqrt(2.0), -10, 0}};
    CHECK(support::distance(e, must) < 1e-15);

    ad::tape<double> on;
    const auto query = on.parameter(q);
    const auto annotations = on.parameter(h);
    const auto memory = soft(cosine).on(annotations);
    const auto now = soft(cosine).step(memory, query, soft(cosine).start(memory));
    on.backward(ops::inner(now.weights, support::uneven(now.weights.shape())));
    CHECK(support::all_finite(on.gradient(query)));
    CHECK(support::all_finite(on.gradient(annotations)));
    CHECK(on.gradient(query).data[2] == 0);
    CHECK(on.gradient(query).data[3] == 0);
    CHECK(on.gradient(annotations).data[4] == 0);  // the zero annotation of the first row
    CHECK(on.gradient(annotations).data[5] == 0);
    CHECK(on.gradient(annotations).data[0] != 0);
}

TEST_CASE("match: one at the annotation itself, and its matrix is ops::match_matrix")
{
    const auto x = random({2, 3, 5}, 1), y = random({2, 4, 5}, 2);
    const auto A = ops::match_matrix(x, y);
    for (std::size_t s = 0; s < 3; ++s) {
        const auto e = score::match{}(ops::step_of(x, s), y);
        for (std::size_t b = 0; b < 2; ++b) {
            for (std::size_t t = 0; t < 4; ++t) CHECK(e(b, t) == A(b, s, t));
        }
    }
    CHECK(score::match{}(ops::step_of(x, 1u), x)(1, 1) == 1);
}

TEST_CASE("conv_s2s: keys z, values z + x")
{
    const std::size_t Q = 3, D = 5;
    const auto W = random({Q, D}, 1), h = random({2, Q}, 2), g = random({2, D}, 3);
    const auto b = random({D}, 4);
    const auto z = random({2, 6, D}, 5), x = random({2, 6, D}, 6);
    const lengths real{6, 2};
    const auto attend = soft(score::conv_s2s{W, b});
    const auto memory = attend.on(z, ops::add(z, x), real);
    const auto now = attend.step(memory, state_and_word{h, g}, attend.start(memory));
    for (std::size_t row = 0; row < 2; ++row) {
        numbers d(D), a(real[row]), c(D);
        for (std::size_t k = 0; k < D; ++k) {
            d[k] = b(k) + g(row, k);
            for (std::size_t i = 0; i < Q; ++i) d[k] += h(row, i) * W(i, k);
        }
        for (std::size_t j = 0; j < real[row]; ++j) {
            for (std::size_t k = 0; k < D; ++k) a[j] += d[k] * z(row, j, k);
            a[j] = std::exp(a[j]);
        }
        const double sum = std::accumulate(a.begin(), a.end(), 0.0);
        for (std::size_t j = 0; j < real[row]; ++j) {
            CHECK(now.weights(row, j) == doctest::Approx(a[j] / sum).epsilon(1e-13));
            for (std::size_t k = 0; k < D; ++k) c[k] += a[j] / sum * (z(row, j, k) + x(row, j, k));
        }
        for (std::size_t k = 0; k < D; ++k) CHECK(now.context(row, k) == doctest::Approx(c[k]).epsilon(1e-13));
    }

    // Gradients with respect to all of them: keys and values differ.
    support::inputs<array<double, 2>, array<double, 1>, array<double, 3>, array<double, 3>, array<double, 2>,
                    array<double, 2>>
        all{{W, b, z, x, h, g}};
    const auto found = ad::grad_check(all, [&](auto&, const auto& lifted) {
        const auto& [W_, b_, z_, x_, h_, g_] = lifted.at;
        const auto taped = temporal(score::conv_s2s{W_, b_});
        const auto there = taped.on(z_, ops::add(z_, x_), real);
        const auto first = taped.step(there, state_and_word{h_, g_}, taped.start(there));
        const auto second = taped.step(there, state_and_word{ops::tanh(h_), g_}, first.state);
        return ops::inner(second.context, support::uneven(second.context.shape()));
    });
    CHECK_MESSAGE(bool(found), found.text());

    says([&] { attend.step(memory, state_and_word{h, random({2, D + 1}, 7)}, attend.start(memory)); }, "add");
    says(
        [&] {
            attend.step(memory, state_and_word{random({2, Q + 1}, 7), g}, attend.start(memory));
        },
        "linear: x is [2,4] and the matrix is [3,5]");
}

TEST_CASE("a word over a score that adds one by itself: two words, each in its own way")
{
    const auto W = random({3, 5}, 1), Y = random({2, 5}, 2), Z = random({4, 5}, 3);
    const auto b = random({5}, 4);
    const auto h = random({2, 4, 5}, 5), s = random({2, 6, 3}, 6), g = random({2, 6, 5}, 7), y = random({2, 6, 2}, 8),
               before = random({2, 6, 4}, 9);
    const lengths real{4, 2};
    const auto check = [&](const auto& both, const auto& asked, const auto& one, const auto& must) {
        const auto memory = both.on(h, real), other = one.on(h, real);
        CHECK(support::distance(both(memory, asked), one(other, must)) < 1e-13);
        CHECK(support::distance(both.step(memory, asked.step(2), both.start(memory)).weights,
                                one.step(other, must.step(2), one.start(other)).weights) < 1e-13);
    };
    // W h + b + g + Y y
    check(soft(score::with_word{score::conv_s2s{W, b}, Y}), state_and_word{state_and_word{s, g}, y},
          soft(score::conv_s2s{W, b}), state_and_word{s, ops::add(g, ops::linear(y, Y))});
    // W s + Y y_{t-1} + Z y_{t-2}
    const auto nearest = score::with_word{score::general{W}, Y};
    check(soft(score::with_word{nearest, Z}), state_and_word{state_and_word{s, y}, before}, soft(nearest),
          state_and_projected_word{s, ops::add(ops::linear(y, Y), ops::linear(before, Z))});
}

TEST_CASE("a word over dot is a word over general with the identity")
{
    array<double, 2> eye = filled<double, 2>({5, 5}, 0.0);
    for (std::size_t i = 0; i < 5; ++i) eye(i, i) = 1;
    const auto Y = random({2, 5}, 1), s = random({3, 5}, 2), y = random({3, 2}, 3);
    const auto h = random({3, 4, 5}, 4);
    const auto a = soft(score::with_word{score::dot{}, Y});
    const auto b = soft(score::with_word{score::general{eye}, Y});
    const auto memory = a.on(h, lengths{4, 1, 0});
    const auto is = a.step(memory, state_and_word{s, y}, a.start(memory));
    const auto must = b.step(b.on(h, lengths{4, 1, 0}), state_and_word{s, y}, b.start(memory));
    CHECK(support::distance(is.weights, must.weights) < 1e-15);
    const auto projected = a.step(memory, state_and_projected_word{s, a.score.project_words(y)}, a.start(memory));
    CHECK(support::same_bits(projected.weights, is.weights));
}
