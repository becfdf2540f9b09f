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
using support::distance;
using support::random;
using support::words_of;

namespace {

constexpr std::size_t D = 5, n = 2, K = 3, R = 2, C = 4, V = 3, O = 6;

const auto W_Q = random({D, n*K}, 1), W_QR = random({D, n*R}, 2), W_DKV = random({D, C}, 3), W_KR = random({D, R}, 4),
           W_UK = random({n * K, C}, 5), W_UV = random({n * C, V}, 6), W_O = random({n * V, O}, 7);

auto with(latent_form form, const auto& normalize)
{
    return latent_heads{n, W_Q, W_QR, W_DKV, W_KR, W_UK, W_UV, W_O, normalize, ops::rotation{}, form};
}
auto with(latent_form form = latent_form::cheaper) { return with(form, normalize::softmax{}); }

using numbers = std::vector<double>;

numbers times(const numbers& x, const array<double, 2>& M)
{
    numbers y(M.shape()[1]);
    for (std::size_t i = 0; i < x.size(); ++i)
        for (std::size_t j = 0; j < y.size(); ++j) y[j] += x[i] * M(i, j);
    return y;
}
numbers word(const array<double, 3>& x, std::size_t b, std::size_t t)
{
    numbers y;
    for (std::size_t i = 0; i < D; ++i) y.push_back(x(b, t, i));
    return y;
}
/// Two numbers, rotated by the angle p.
numbers turned(numbers x, std::size_t p)
{
    const double c = std::cos(static_cast<double>(p)), s = std::sin(static_cast<double>(p));
    return {c * x[0] - s * x[1], s * x[0] + c * x[1]};
}

/// Equations 9 to 19 in scalar loops: query s of sentence b, which sees the keys 0 … last.
numbers by_hand(const array<double, 3>& x, const array<double, 3>& q, std::size_t b, std::size_t s, std::size_t last)
{
    numbers all;
    const numbers content = times(word(q, b, s), W_Q), position = times(word(q, b, s), W_QR);
    for (std::size_t h = 0; h < n; ++h) {
        const numbers qR = turned({position[h * R], position[h * R + 1]}, s);
        numbers o(V);
        double sum = 0;
        for (std::size_t j = 0; j <= last; ++j) {
            const numbers c = times(word(x, b, j), W_DKV), kR = turned(times(word(x, b, j), W_KR), j);
            double e = qR[0] * kR[0] + qR[1] * kR[1];
            for (std::size_t i = 0; i < K; ++i) {
                double k = 0;
                for (std::size_t m = 0; m < C; ++m) k += W_UK(h * K + i, m) * c[m];
                e += content[h * K + i] * k;
            }
            const double weight = std::exp(e / std::sqrt(double{K + R}));
            sum += weight;
            for (std::size_t i = 0; i < V; ++i)
                for (std::size_t m = 0; m < C; ++m) o[i] += weight * W_UV(h * C + m, i) * c[m];
        }
        for (const double v : o) all.push_back(v / sum);
    }
    return times(all, W_O);
}

}  // namespace

TEST_CASE("the equations in scalar loops, absorbed and expanded, with and without tiles")
{
    for (const std::size_t T : {std::size_t{6}, std::size_t{66}}) {
        const auto x = random({2, T, D}, 8), q = random({2, T, D}, 9);
        for (const auto form : {latent_form::absorbed, latent_form::expanded, latent_form::cheaper}) {
            const auto attend = with(form);
            const auto memory = attend.on(x);
            CHECK(shape_of(memory.latent) == shape_of_rank<3>{2, T, C + R});
            const auto is = attend(memory, q, causal{});
            for (std::size_t s = 0; s < T; s += 7) {
                const auto must = by_hand(x, q, 1, s, s);
                for (std::size_t o = 0; o < O; ++o) CHECK(is(1, s, o) == support::approx(must[o]));
            }
        }
    }
}

TEST_CASE("a slice of the rotated part may stay unrotated")
{
    // Two more dimensions per head, which queries do not read: the contexts do not change if only the first two are
    // rotated.
    const double scale = std::sqrt(double{K + R + 2} / double{K + R});
    auto wide_KR = random({D, R + 2}, 10);
    auto wide_QR = filled<double, 2>({D, n * (R + 2)}, 0);
    for (std::size_t d = 0; d < D; ++d) {
        for (std::size_t i = 0; i < R; ++i) {
            wide_KR(d, i) = W_KR(d, i);
            for (std::size_t h = 0; h < n; ++h) wide_QR(d, h * (R + 2) + i) = scale * W_QR(d, h * R + i);
        }
    }
    const auto x = random({2, 6, D}, 8), q = random({2, 6, D}, 9);
    for (const auto form : {latent_form::absorbed, latent_form::expanded}) {
        const latent_heads attend{n,
                                  ops::scale(W_Q, scale),
                                  wide_QR,
                                  W_DKV,
                                  wide_KR,
                                  W_UK,
                                  W_UV,
                                  W_O,
                                  normalize::softmax{},
                                  ops::rotation{10000, ops::turned_pairs::halves, R},
                                  form};
        CHECK(distance(attend(attend.on(x), q, causal{}), with(form)(with(form).on(x), q, causal{})) < 1e-12);
    }
}

TEST_CASE("a step equals that of the expanded heads, including weights, with masks and lengths")
{
    const std::size_t T = 6;
    const auto x = random({2, T, D}, 8);
    const auto q = random({2, D}, 9);
    const auto attend = with();
    const auto check = [&](const auto& memory, const auto& mask) {
        auto state = attend.start(memory);
        state.step = 3;
        const auto one = attend.step(memory, q, state, mask), must = attend.compose(memory, q, state, mask);
        CHECK(shape_of(one.weights) == shape_of_rank<3>{2, n, T});
        CHECK(distance(one.weights, must.weights) < 1e-12);
        CHECK(distance(one.context, must.context) < 1e-12);
        CHECK(one.state.step == 4);
        auto into = attend.step(memory, q, attend.start(memory));
        attend.step_into(into, memory, q, state, mask);
        CHECK(distance(into.context, one.context) == 0);
    };
    boolean_mask<2> mask(shape_of_rank<2>{2, T});
    for (std::size_t i = 0; i < 2 * T; ++i) mask[i] = i % 3 != 1;
    check(attend.on(x), no_mask{});
    check(attend.on(x, lengths{6, 4}), no_mask{});
    check(attend.on(x, lengths{6, 4}), lengths{2, 5});
    check(attend.on(x, mask), no_mask{});
    check(attend.on(x), mask);
    const auto none = attend.step(attend.on(x, lengths{6, 0}), q, attend.start(attend.on(x)));
    for (std::size_t o = 0; o < O; ++o) CHECK(none.context(1, o) == 0);
}

TEST_CASE("all at once, one by one, and over a growing memory")
{
    const auto grow = [](const auto& attend, std::size_t T, const auto& begin) {
        const auto x = random({2, T, D}, 8), q = random({2, T, D}, 9);
        const auto all = attend(attend.on(x), q, causal{});
        for (const std::size_t chunk : {std::size_t{1}, std::size_t{5}}) {
            auto known = begin(attend.on(words_of(x, 0, chunk)));
            auto state = attend.start(known);
            for (std::size_t t = 0; t < T; t += chunk) {
                const std::size_t m = std::min(chunk, T - t);
                if (t > 0) known = attend.extend(known, words_of(x, t, m));
                auto some = attend.read_all(known, words_of(q, t, m), state, causal{});
                CHECK(distance(some.contexts, words_of(all, t, m)) < 1e-11);
                if (chunk == 1) {
                    const auto one = attend.read(known, ops::step_of(q, t), state);
                    CHECK(distance(one.context, ops::step_of(all, t)) < 1e-11);
                }
                state = std::move(some.state);
            }
            CHECK(state.step == T);
        }
    };
    const auto check = [&](const auto& attend, std::size_t T) {
        grow(attend, T, [](auto memory) { return memory; });
        grow(attend, T, [](const auto& memory) { return with_cache(memory); });
    };
    for (const std::size_t T : {std::size_t{7}, std::size_t{70}}) {
        check(with(), T);
        check(with(latent_form::absorbed, normalize::sigmoid{-1}), T);
    }
}

TEST_CASE("a KV cache: hypotheses share their common prefix, without copies")
{
    const auto attend = with();
    const auto x = random({2, 6, D}, 8);
    const auto q = random({3, D}, 9);
    const auto begun = with_cache(attend.on(words_of(x, 0, 5)));
    const std::vector<std::size_t> chosen{1, 0, 1};
    const auto beam = begun.rows(chosen);
    CHECK(beam.latent.row(0) == begun.latent.row(1));
    CHECK(beam.latent.row(2) == begun.latent.row(1));
    const auto more = ops::rows_of(words_of(x, 5, 1), std::vector<std::size_t>{0, 0, 1});
    const auto next = attend.extend(beam, more);
    const auto plain = attend.extend(attend.on(words_of(x, 0, 5)).rows(chosen), more);
    CHECK(distance(gathered(next).latent, plain.latent) < 1e-13);
    CHECK(distance(gathered(begun).latent, attend.on(words_of(x, 0, 5)).latent) == 0);  // unchanged
    const auto state = attend.start(next);
    const auto is = attend.step(next, q, state), must = attend.step(plain, q, state);
    CHECK(distance(is.context, must.context) < 1e-13);
    CHECK(distance(is.weights, must.weights) < 1e-13);
    CHECK(distance(attend.compose(next, q, state).context, must.context) < 1e-12);
    // Capacity doubles: another word does not move the earlier ones.
    auto one = with_cache(attend.on(words_of(x, 0, 1)));
    const auto* const score_index = one.latent.row(0);
    for (std::size_t t = 1; t < 6; ++t) one = attend.extend(one, words_of(x, t, 1));
    CHECK(one.latent.row(0) == score_index);
    CHECK(distance(gathered(one).latent, attend.on(x).latent) < 1e-13);
}

TEST_CASE("a sliding window over a KV cache equals a mask over all positions")
{
    constexpr std::size_t T = 30, window = 5;
    const auto attend = with();
    const auto x = random({2, T, D}, 8), q = random({2, T, D}, 9);
    const auto mask = causal{} & sliding_window{window};
    const auto must = attend(attend.on(x), q, mask);
    auto known = with_cache(attend.on(words_of(x, 0, 2)));
    auto state = attend.start(known);
    for (std::size_t t = 0; t < T; t += 2) {
        if (t > 0) known = attend.extend(known, words_of(x, t, 2));
        const std::vector<std::size_t> same{0, 1};
        known = known.rows(same);
        CHECK(known.next_position() == t + 2);
        auto some = attend.read_all(known, words_of(q, t, 2), state, mask);
        CHECK(distance(some.contexts, words_of(must, t, 2)) < 1e-11);
        const auto copy = gathered(known);
        CHECK(distance(attend.extend(copy, words_of(x, 0, 1)).latent,
                       gathered(attend.extend(known, words_of(x, 0, 1))).latent) < 1e-13);
        state = std::move(some.state);
        if (known.positions() >= window) known = known.without_oldest(known.positions() - (window - 1));
        const auto seen = attend.step(known, ops::step_of(q, t), state);
        CHECK(seen.weights.shape()[2] == known.positions());
        CHECK(distance(attend.compose(known, ops::step_of(q, t), state).context, seen.context) < 1e-11);
    }
    CHECK_THROWS_WITH_AS((void)known.without_oldest(5), doctest::Contains("5 positions of row 0, which has 4"),
                         shape_error);
}

TEST_CASE("gradients with respect to input and every matrix, in both forms and by steps")
{
    for (const auto form : {latent_form::absorbed, latent_form::expanded}) {
        const auto f = [form](const auto& x, const auto& W) {  // W [5,8] in all roles
            const auto part = [&W](std::size_t rows, std::size_t columns, double by) {
                return ops::scale(ops::slice_columns(ops::slice_rows(W, 0, rows), 0, columns), by);
            };
            const latent_heads attend{std::size_t{1},
                                      part(5, 3, 1),
                                      part(5, 2, -1),
                                      part(5, 4, 0.5),
                                      part(5, 2, 0.7),
                                      part(3, 4, 1.5),
                                      part(4, 3, -2),
                                      part(3, 6, 1),
                                      normalize::softmax{},
                                      ops::rotation{},
                                      form};
            return attend(attend.on(x), x, causal{});
        };
        CHECK_GRADIENT(f, random({2, 4, D}, 8), random({D, 8}, 9));
    }
    const auto attend = with();
    ad::tape<double> on;
    const auto x = random({2, 6, D}, 8), q = random({2, 6, D}, 9), w = random({2, 6, O}, 10);
    const auto gradients = [&](bool at_once) {
        on.clear();
        const auto X = on.parameter(x), Q = on.parameter(q);
        const auto lifted = ad::lift(on, attend);
        const auto memory = lifted.on(X);
        const auto contexts = [&] {
            if (at_once) return lifted(memory, Q, causal{});
            std::vector<ad::var<double, 2>> all;
            auto state = lifted.start(memory);
            for (std::size_t s = 0; s < 6; ++s) {
                auto next = lifted.step(memory, ops::step_of(Q, s), state, lengths{s + 1, s + 1});
                all.push_back(next.context);
                state = next.state;
            }
            return ops::swap_axes(ops::stack(all));
        }();
        const auto loss = ops::dot(contexts, w);
        on.backward(loss);
        return support::gradients_after(on, loss.value().data[0], lifted, X, Q);
    };
    const auto is = gradients(true), must = gradients(false);
    CHECK(is.size() ==
          1 + 2 * 60 + W_Q.size() + W_QR.size() + W_DKV.size() + W_KR.size() + W_UK.size() + W_UV.size() + W_O.size());
    for (std::size_t i = 0; i < is.size(); ++i) CHECK(is[i] == support::approx(must[i]));
}

TEST_CASE("the norm of c_j, as in the published models")
{
    // Against heads without a norm whose c_j are normalized beforehand: x = [c; rotated part], with matrices that
    // select the two.
    const auto gain = random({C}, 31);
    const auto x = random({2, 7, D}, 8), q = random({2, 7, D}, 9);
    array<double, 3> made(shape_of_rank<3>{2, 7, C + R}, 0.0);
    for (std::size_t b = 0; b < 2; ++b)
        for (std::size_t t = 0; t < 7; ++t) {
            numbers c = times(word(x, b, t), W_DKV);
            const numbers k = times(word(x, b, t), W_KR);
            double squares = 0;
            for (const double v : c) squares += v * v;
            for (std::size_t i = 0; i < C; ++i) made(b, t, i) = gain(i) * c[i] / std::sqrt(squares / double{C} + 1e-6);
            for (std::size_t i = 0; i < R; ++i) made(b, t, C + i) = k[i];
        }
    array<double, 2> cut_c(shape_of_rank<2>{C + R, C}, 0.0), cut_k(shape_of_rank<2>{C + R, R}, 0.0);
    for (std::size_t i = 0; i < C; ++i) cut_c(i, i) = 1;
    for (std::size_t i = 0; i < R; ++i) cut_k(C + i, i) = 1;
    const latent_heads without{n, W_Q, W_QR, cut_c, cut_k, W_UK, W_UV, W_O};
    for (const auto form : {latent_form::absorbed, latent_form::expanded}) {
        const latent_heads attend{
            n, W_Q, W_QR, W_DKV, W_KR, W_UK, W_UV, W_O, normalize::softmax{}, ops::rotation{}, form, latent_norm{gain}};
        CHECK(distance(attend(attend.on(x), q, causal{}), without(without.on(made), q, causal{})) < 1e-12);
        const auto grown = attend.extend(attend.on(words_of(x, 0, 4)), words_of(x, 4, 3));
        CHECK(distance(grown.latent, attend.on(x).latent) < 1e-13);
    }
    const auto f = [&](const auto& words, const auto& by) {
        const latent_heads attend{n,
                                  same_family(by, W_Q),
                                  same_family(by, W_QR),
                                  same_family(by, W_DKV),
                                  same_family(by, W_KR),
                                  same_family(by, W_UK),
                                  same_family(by, W_UV),
                                  same_family(by, W_O),
                                  normalize::softmax{},
                                  ops::rotation{},
                                  latent_form::cheaper,
                                  latent_norm{by}};
        return attend(attend.on(words), words, causal{});
    };
    CHECK_GRADIENT(f, random({1, 3, D}, 4), gain);
    // Its gain is an additional parameter.
    const latent_heads attend{n,
                              W_Q,
                              W_QR,
                              W_DKV,
                              W_KR,
                              W_UK,
                              W_UV,
                              W_O,
                              normalize::softmax{},
                              ops::rotation{},
                              latent_form::cheaper,
                              latent_norm{gain}};
    std::size_t count = 0;
    (void)map_parameters(attend, [&](const auto& v) {
        ++count;
        return v;
    });
    CHECK(count == 8);
}

TEST_CASE("misfits are reported with names and numbers")
{
    auto attend = with();
    const auto x = random({2, 4, D}, 8);
    const auto memory = attend.on(x, lengths{4, 3});
    CHECK_THROWS_WITH_AS((void)attend.extend(memory, x), doctest::Contains("must have no padding"), shape_error);
    attend.W_UV = random({n * C + 1, V}, 6);
    CHECK_THROWS_WITH_AS((void)attend.on(x), doctest::Contains("W_UV is [9,3] but must be [8,3]"), shape_error);
    attend = with();
    attend.W_DKV = random({D, C + 1}, 6);
    attend.W_UK = random({n * K, C + 1}, 6);
    attend.W_UV = random({n * (C + 1), V}, 6);
    CHECK_THROWS_WITH_AS((void)attend(memory, x), doctest::Contains("C + R = 7"), shape_error);
}
