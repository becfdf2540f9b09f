// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <support/approx.hpp>
#include <support/drawn_masks.hpp>
#include <support/exhaustive.hpp>
#include <support/gradients.hpp>
#include <support/many_queries.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::random;

// Long enough for tiles: equal to one query after another, forward and backward, and to a matrix of all scores, which
// is faster to test, with any mask.

namespace {

/// The sizes: S queries, T annotations [width].
struct sizes {
    const lengths& real;
    std::size_t S, T, width = 4;
};

/// A function that computes the contexts of queries on the tape.
template <class Attention>
struct on_tape {
    using mechanism = decltype(ad::lift(std::declval<ad::tape<double>&>(), std::declval<const Attention&>()));
    using memory = decltype(std::declval<const mechanism&>().on(std::declval<const ad::var<double, 3>&>(),
                                                                std::declval<const lengths&>()));
    using answer = detail::function_ref<ad::var<double, 3>, const mechanism&, const memory&, const ad::var<double, 3>&>;
};

/// A loss of the contexts, and its derivatives with respect to annotations, queries and every parameter.
template <class Attention>
std::vector<double> derivatives(const Attention& attend, const sizes& of, typename on_tape<Attention>::answer contexts)
{
    const std::size_t B = of.real.batch();
    ad::tape<double> on;
    const auto h = random({B, of.T, of.width}, 1), q = random({B, of.S, of.width}, 2);
    const auto H = on.parameter(h), Q = on.parameter(q);
    const auto lifted = ad::lift(on, attend);
    const auto loss = ops::dot(contexts(lifted, lifted.on(H, of.real), Q), random({B, of.S, of.width}, 3));
    on.backward(loss);
    return support::gradients_after(on, loss.value().data[0], lifted, H, Q);
}

/// In tiles, at any length.
template <class Attention>
std::vector<double> in_tiles(const Attention& attend, const auto& mask, const sizes& of)
{
    return derivatives(attend, of, [&](const auto& lifted, const auto& memory, const auto& Q) {
        using memory_type = std::remove_cvref_t<decltype(memory)>;
        const auto projected = lifted.project(Q);
        static_assert(detail::plan<std::remove_cvref_t<decltype(lifted)>, std::remove_const_t<decltype(projected)>,
                                   memory_type, std::remove_cvref_t<decltype(mask)>>::tiled);
        return detail::execute::tiled(lifted.score, lifted.normalize, memory, projected, lifted.start(memory), mask);
    });
}

/// The same, by a matrix of all scores and a boolean mask.
template <class Attention>
std::vector<double> by_matrices(const Attention& attend, const boolean_mask<3>& seen, const sizes& of)
{
    return derivatives(attend, of, [&](const auto& lifted, const auto& memory, const auto& Q) {
        return detail::execute::blocked(lifted.score, lifted.normalize, lifted.combine, memory, lifted.project(Q),
                                        {0, 0, memory.real}, support::for_blocks(seen),
                                        {std::size_t{1} << 30, std::size_t{1} << 40});
    });
}

/// The visible keys of each query.
template <class Mask>
boolean_mask<3> drawn(const Mask& mask, const sizes& of)
{
    if constexpr (std::is_same_v<Mask, no_mask> || std::is_same_v<Mask, lengths>) {
        boolean_mask<3> all(shape_of_rank<3>{of.real.batch(), of.S, of.T});
        for (std::size_t i = 0; i < of.real.batch() * of.S * of.T; ++i) {
            if constexpr (std::is_same_v<Mask, no_mask>)
                all[i] = 1;
            else
                all[i] = i % of.T < mask[i / of.T / of.S];
        }
        return all;
    } else {
        return detail::materialize_mask(detail::as_predicate(mask), of.real, 0, of.S, of.T);
    }
}

template <class Score, class Mask, class Normalize = normalize::softmax>
void check(const Score& score, const Mask& mask, const lengths& real, std::size_t S, std::size_t T,
           const Normalize& normalize = Normalize{}, double most = 1e-12)
{
    REQUIRE(detail::worth_tiles(S, T));
    const sizes of{real, S, T};
    const attention attend{score, normalize, combine::weighted_sum{}};
    CHECK(support::greatest_difference(in_tiles(attend, mask, of), by_matrices(attend, drawn(mask, of), of)) < most);
}

const auto alibi = [](auto e, score_index p) { return 2 * e - 0.1 * abs(p.query - p.key) * (p.batch + 1); };
const auto capped = [](auto e, score_index) { return 3 * tanh(e / 3); };
const auto scaled = [](auto e, score_index p, const auto& b) { return e * b(p.query - p.key + 70); };

/// The first head sees the first keys, the second head the others.
struct halves_by_head : predicate_mask {
    lane_mask operator()(const score_index& p) const { return p.head == 0 ? p.key < 30 : p.key >= 30; }
};

/// The first three queries see no key.
struct later_queries : predicate_mask {
    lane_mask operator()(const score_index& p) const { return p.query > 2; }
};

}  // namespace

TEST_CASE("inner products, softmax, any lengths")
{
    const lengths real({70, 33, 0});
    check(score::scaled_dot{}, no_mask{}, real, 60, 70);
    check(score::scaled_dot{}, causal{}, real, 60, 70);
    check(score::general{random({4, 4}, 9)}, no_mask{}, real, 65, 70);
    check(score::scaled_dot{0.3}, lengths({5, 70, 2}), real, 130, 70);
}

TEST_CASE("one query after another: keys of width 1 and larger")
{
    for (const std::size_t width : {1u, 37u, 256u}) {
        const attention attend{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
        CHECK(support::distance_from_one_by_one(attend, causal{}, lengths({70, 33}), 65, 70, width) < 1e-12);
    }
}

TEST_CASE("predicate masks, for mechanisms with and without tiles")
{
    const lengths real({70, 33, 0});
    const auto even = [](score_index p) { return (p.query + p.key) - (p.query + p.key) / 2 * 2 == 0; };
    check(score::scaled_dot{}, sliding_window{9} | even, real, 60, 70);
    check(score::scaled_dot{}, !(causal{} & even), real, 70, 70);
    const attention with_tiles{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto window = causal{} & sliding_window{9};
    CHECK(support::distance_from_one_by_one(with_tiles, window, real, 60, 70) < 1e-12);
    CHECK(support::distance_from_one_by_one(with_tiles, causal{} & sliding_window{2}, lengths({5, 3, 1}), 4, 5) <
          1e-12);  // too short for tiles
    const attention two_functions{score::modified{score::modified{score::dot{}, capped}, alibi}, normalize::softmax{},
                                  combine::weighted_sum{}};
    CHECK(support::distance_from_one_by_one(two_functions, window, real, 60, 70) < 1e-12);
    // A window that contains all keys, up to the largest integer.
    for (const std::int32_t size : {100, std::numeric_limits<std::int32_t>::max()}) {
        const attention attend{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
        const auto memory = attend.on(random({3, 70, 4}, 1), real);
        const auto q = random({3, 60, 4}, 2);
        CHECK(support::same_bits(attend(memory, q, causal{} & sliding_window{size}), attend(memory, q, causal{})));
    }
}

TEST_CASE("functions of scores and indices")
{
    const lengths real({70, 33, 0});
    check(score::modified{score::scaled_dot{}, alibi}, no_mask{}, real, 60, 70);
    const score::modified far{score::general{random({4, 4}, 9)}, capped};
    check(far, causal{}, real, 60, 70);
    check(far, causal{} & sliding_window{5}, real, 60, 70);
}

TEST_CASE("normalizers with tile rules")
{
    const lengths real({70, 33, 0});
    const auto each = [&](const auto& normalize) {
        check(score::scaled_dot{}, no_mask{}, real, 60, 70, normalize);
        check(score::scaled_dot{}, causal{}, real, 60, 70, normalize);
        check(score::modified{score::scaled_dot{}, alibi}, causal{} & sliding_window{9}, real, 60, 70, normalize);
    };
    each(normalize::softmax{});
    each(normalize::sigmoid{-1});
    each(normalize::sparsemax{});
    each(normalize::entmax15{});
    each(normalize::top_k{3});
    each(normalize::top_k{500});
    each(normalize::stick_breaking{});
    each(normalize::softmax_with_sink{array<double, 1>{0.7}});
    for (const double a : {-40.0, -4.0, -1.5, -1.0, -0.3, 0.0, 0.5, 1.5, 40.0})
        each(normalize::entmax{array<double, 1>{a}});
}

TEST_CASE("normalizers that select, among more keys than the buffer holds")
{
    // Scores close to each other, so that nearly all have a weight, and scores far apart.
    const lengths real({5000});
    for (const double scale : {0.02, 3.0}) {
        check(score::scaled_dot{scale}, no_mask{}, real, 9, 5000, normalize::sparsemax{});
        check(score::scaled_dot{scale}, no_mask{}, lengths({4990}), 9, 5000, normalize::entmax15{});
        check(score::scaled_dot{scale}, no_mask{}, real, 9, 5000, normalize::top_k{150});
    }
    check(score::scaled_dot{}, no_mask{}, lengths({4990, 5000}), 9, 5000, normalize::top_k{3});
    check(score::scaled_dot{}, sliding_window{2000}, lengths({5000}), 9, 5000, normalize::entmax15{});
    for (const double a : {-5.0, 0.5}) {
        const normalize::entmax shaped{array<double, 1>{a}};
        check(score::scaled_dot{0.02}, no_mask{}, lengths({4990}), 9, 5000, shaped);
        check(score::scaled_dot{3.0}, sliding_window{2000}, lengths({5000}), 9, 5000, shaped);
    }
}

TEST_CASE("entmax in tiles: gradients, also of alpha, for one head and for several")
{
    const auto f = [](const auto& h, const auto& q, const auto& a) {
        const attention attend{score::dot{}, normalize::entmax{a}, combine::weighted_sum{}};
        return attend(attend.on(h, lengths({66})), q, causal{});
    };
    // With α < 1.5, so that the derivative changes smoothly where a position enters the support.
    for (const double a : {-2.0, -8.0, -0.4}) {
        if (a != -2 && !support::exhaustive()) continue;
        CHECK_GRADIENT(f, random({1, 70, 2}, 1), random({1, 60, 2}, 2), array<double, 1>{a});
    }

    const auto head = [](double a) {
        return attention{score::scaled_dot{}, normalize::entmax{array<double, 1>{a}}, combine::weighted_sum{}};
    };
    const multi_head attend{std::vector{head(-1), head(1)}, random({4, 4}, 1), random({4, 4}, 2), random({4, 4}, 3),
                            random({4, 4}, 4)};
    for (const std::size_t many : {1u, 2u}) {
        set_threads(many);
        CHECK(support::distance_from_one_by_one(attend, causal{}, lengths({150, 33}), 100, 150) < 1e-10);
    }
    set_threads(1);
}

TEST_CASE("entmax in tiles: floats, NaN in the padding, queries that see no key")
{
    constexpr std::size_t S = 20, T = 700, D = 5;
    const auto h = random({3, T, D}, 1), q = random({3, S, D}, 2, 3.0), w = random({3, S, D}, 3);
    const lengths real({600, 0, 3});
    const later_queries nothing_first;
    array<float, 3> h32(h.shape()), q32(q.shape()), w32(w.shape());
    for (std::size_t i = 0; i < h.size(); ++i) h32.data()[i] = static_cast<float>(h.data()[i]);
    for (std::size_t i = 0; i < q.size(); ++i) q32.data()[i] = static_cast<float>(q.data()[i]);
    for (std::size_t i = 0; i < w.size(); ++i) w32.data()[i] = static_cast<float>(w.data()[i]);
    for (std::size_t b = 0; b < 3; ++b)
        for (std::size_t t = real[b]; t < T; ++t)
            for (std::size_t i = 0; i < D; ++i) h32(b, t, i) = std::numeric_limits<float>::quiet_NaN();
    for (const double a : {-40.0, -3.0, -1.0, 0.0, 0.6, 3.0}) {
        const auto gradients = [&](auto& on, auto& H, auto& Q, auto& A, const auto& of_contexts) {
            const attention attend{score::scaled_dot{}, normalize::entmax{A}, combine::weighted_sum{}};
            const auto contexts = attend(attend.on(H, real), Q, nothing_first);
            on.backward(ops::dot(contexts, of_contexts));
            std::vector<double> all;
            const auto add = [&](const auto& x) {
                for (std::size_t i = 0; i < x.size(); ++i) all.push_back(static_cast<double>(x.data[i]));
            };
            add(contexts.value()), add(on.gradient(H)), add(on.gradient(Q)), add(on.gradient(A));
            return all;
        };
        ad::tape<float> on32;
        const array<float, 1> a32{static_cast<float>(a)};
        const auto H32 = on32.parameter(h32), Q32 = on32.parameter(q32);
        const auto A32 = on32.parameter(a32);
        const auto is = gradients(on32, H32, Q32, A32, w32);
        ad::tape<double> on;
        const array<double, 1> a64{a};
        const auto H = on.parameter(h), Q = on.parameter(q);
        const auto A = on.parameter(a64);
        const auto must = gradients(on, H, Q, A, w);
        CHECK(std::abs(must.back()) > 1e-10);
        CAPTURE(a);
        REQUIRE(is.size() == must.size());
        std::size_t close = 0;
        for (std::size_t i = 0; i < is.size(); ++i)
            close += std::abs(is[i] - must[i]) < 1e-5 * (1 + std::abs(must[i])) ? 1 : 0;
        CHECK(close == is.size());
        CHECK(std::count(is.begin(), is.begin() + 3 * D, 0.0) == 3 * D);  // queries that see no key
    }
}

TEST_CASE("stick-breaking over thousands of keys")
{
    check(score::scaled_dot{}, no_mask{}, lengths({5000, 3}), 9, 5000, normalize::stick_breaking{}, 1e-10);
    check(score::scaled_dot{}, causal{}, lengths({5000}), 9, 5000, normalize::stick_breaking{}, 1e-10);
}

TEST_CASE("stick-breaking is accurate in float: thousands of small weights, large scores and masked keys")
{
    constexpr std::size_t S = 9, T = 6000;
    constexpr double none = -std::numeric_limits<double>::infinity();
    // Depending on the key, fractions of 2⁻²⁶, each too small to change a float of 1, among fractions of 10⁻⁴; some
    // keys are masked, some take the whole rest.
    const auto scores = [=](int kind, std::size_t key) {
        if (kind == 2 && key % 3 == 0) return none;
        if (kind == 2 && (key == 50 || key == 2000)) return key == 50 ? 1e30 : 1e4;
        return kind == 0 ? -18.0 : key % 2 == 0 ? -18.0 : -9.0;
    };
    for (const int kind : {0, 1, 2}) {
        array<float, 1> table(shape_of_rank<1>{T});
        for (std::size_t j = 0; j < T; ++j) table[j] = static_cast<float>(scores(kind, j));
        const attention attend{
            score::modified{score::dot{}, table,
                            [](auto e, score_index p, const auto& b) { return 0.01 * e + b(p.key); }},
            normalize::stick_breaking{}, combine::weighted_sum{}};
        array<float, 3> h(shape_of_rank<3>{1, T, 3}), q(shape_of_rank<3>{1, S, 3}), w(shape_of_rank<3>{1, S, 3});
        for (std::size_t i = 0; i < h.size(); ++i) h.data()[i] = static_cast<float>(std::sin(1.0 + double(i)));
        for (std::size_t i = 0; i < q.size(); ++i) q.data()[i] = static_cast<float>(std::cos(2.0 * double(i)));
        for (std::size_t i = 0; i < w.size(); ++i) w.data()[i] = static_cast<float>(std::sin(3.0 * double(i)));
        for (std::size_t j = 0; j < T; ++j) h(0, j, 0) += 1;  // so that their sum does not vanish
        ad::tape<float> on;
        const auto H = on.parameter(h), Q = on.parameter(q);
        const auto contexts = attend(attend.on(H), Q);
        on.backward(ops::dot(contexts, w));
        const auto d_q = on.gradient(Q);
        for (std::size_t s = 0; s < S; ++s) {
            std::vector<double> e(T), weights(T), pulled(T);
            double rest = 1, d[3] = {}, c[3] = {}, before = 0;
            for (std::size_t j = T; j-- > 0;) {
                double dot = 0;
                for (std::size_t i = 0; i < 3; ++i) dot += double(q(0, s, i)) * double(h(0, j, i));
                e[j] = 0.01 * dot + scores(kind, j);
                weights[j] = rest / (1 + std::exp(-e[j]));
                rest /= 1 + std::exp(e[j]);
            }
            for (std::size_t j = 0; j < T; ++j) {
                double dw = 0;
                for (std::size_t i = 0; i < 3; ++i) {
                    c[i] += weights[j] * double(h(0, j, i));
                    dw += double(w(0, s, i)) * double(h(0, j, i));
                }
                const double part = 1 / (1 + std::exp(-e[j]));
                const double de = (1 - part) * weights[j] * dw - part * before;
                before += weights[j] * dw;
                for (std::size_t i = 0; i < 3; ++i) d[i] += 0.01 * de * double(h(0, j, i));
            }
            for (std::size_t i = 0; i < 3; ++i) {
                CHECK(std::abs(double(contexts.value().data[s * 3 + i]) - c[i]) < 2e-6 * (1 + std::abs(c[i])));
                CHECK(std::abs(double(d_q.data[s * 3 + i]) - d[i]) < 2e-6 * (1 + std::abs(d[i])));
            }
        }
    }
}

TEST_CASE("tables that functions look up get gradients, also with several lookups")
{
    const lengths real({70, 33, 0});
    const auto bias = random({1, 21}, 11);
    const auto relative = [](auto e, score_index p, const auto& b) { return e + b(p.head, p.key - p.query + 10); };
    const auto twice = [](auto e, score_index p, const auto& b) {
        return e * b(p.batch, 0) + tanh(b(0, p.key - p.key / 7 * 7 + 1) * e);
    };
    check(score::modified{score::scaled_dot{}, bias, relative}, no_mask{}, real, 60, 70);
    check(score::modified{score::scaled_dot{}, bias, twice}, causal{} & sliding_window{9}, real, 60, 70);
    check(score::modified{score::general{random({4, 4}, 9)}, random({5}, 12),
                          [](auto e, score_index p, const auto& b) { return e + b(p.key); }},
          causal{}, real, 60, 70, normalize::softmax_with_sink{array<double, 1>{0.3}});
    const score::modified each_distance{score::scaled_dot{}, random({141}, 11), scaled};
    check(each_distance, no_mask{}, real, 60, 70, normalize::entmax15{});
    check(each_distance, causal{}, real, 60, 70, normalize::entmax{array<double, 1>{0.3}});
    check(each_distance, causal{}, real, 60, 70, normalize::stick_breaking{});
    const attention few{
        score::modified{score::additive{random({4, 5}, 5), random({4, 5}, 6), random({5}, 7)}, bias, twice},
        normalize::softmax{}, combine::weighted_sum{}};
    CHECK(support::distance_from_one_by_one(few, no_mask{}, lengths({7, 3}), 6, 7) < 1e-12);
}

TEST_CASE("NaN in a table that only masked scores look up changes nothing")
{
    const lengths real({70, 33});
    const auto behind = causal{} & [](score_index p) { return p.key <= p.query + 5; };
    const auto each = [&](const auto& normalize) {
        const auto with = [&](const array<double, 1>& table) {
            return in_tiles(
                attention{score::modified{score::scaled_dot{}, table, scaled}, normalize, combine::weighted_sum{}},
                behind, {real, 65, 70});
        };
        const auto clean = random({141}, 11);
        auto dirty = clean;
        for (std::size_t i = 0; i < 65; ++i) dirty(i) = std::numeric_limits<double>::quiet_NaN();
        CHECK(with(clean) == with(dirty));
    };
    each(normalize::softmax{});
    each(normalize::entmax15{});
    each(normalize::stick_breaking{});
}

TEST_CASE("an empty table is rejected, and an index is clamped to the table")
{
    const std::vector<int> no_number;
    const array<double, 2> no_columns(shape_of_rank<2>{3, 0});
    CHECK_THROWS_WITH_AS(looked_up(no_number), doctest::Contains("the table is empty, [0]"), shape_error);
    CHECK_THROWS_WITH_AS(looked_up(no_columns), doctest::Contains("the table is empty, [3,0]"), shape_error);
    const auto h = random({1, 70, 4}, 1), q = random({1, 60, 4}, 2);
    const auto first = [](auto e, score_index p, const auto& b) { return e + b(p.key); };
    const attention none{score::modified{score::dot{}, array<double, 1>(shape_of_rank<1>{0}), first},
                         normalize::softmax{}, combine::weighted_sum{}};
    CHECK_THROWS_WITH_AS(none(none.on(h), q), doctest::Contains("the table is empty"), shape_error);
    CHECK_THROWS_WITH_AS(none(none.on(h), random({1, 2, 4}, 2)), doctest::Contains("the table is empty"), shape_error);
    const auto beyond = [](auto e, score_index p, const auto& b) {
        return e + b(p.key - 1000 * (p.key - p.key / 2 * 2));
    };
    const array<double, 1> table{0.5, 0, 0};
    const auto half = [](auto e, score_index p) {
        return e + select(p.key - p.key / 2 * 2 == 1, 0.5, select(p.key == 0, 0.5, 0.0 * e));
    };
    const attention is{score::modified{score::dot{}, table, beyond}, normalize::softmax{}, combine::weighted_sum{}};
    const attention must{score::modified{score::dot{}, half}, normalize::softmax{}, combine::weighted_sum{}};
    const auto a = is(is.on(h), q), b = must(must.on(h), q);
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a.data()[i] == support::approx(b.data()[i]));
}

TEST_CASE("the weights of all queries are the weights of the contexts")
{
    const lengths real({70, 33, 0});
    const auto h = random({3, 70, 4}, 1), q = random({3, 60, 4}, 2);
    const auto each = [&](const auto& score, const auto& normalize, const auto& mask, double most) {
        const attention attend{score, normalize, combine::weighted_sum{}};
        const auto memory = attend.on(h, real);
        const auto contexts = attend(memory, q, mask), weights = attend.weights_of(memory, q, mask);
        CHECK(shape_of(weights) == shape_of_rank<3>{3, 60, 70});
        double worst = 0;
        for (std::size_t b = 0; b < 3; ++b) {
            for (std::size_t s = 0; s < 60; ++s) {
                for (std::size_t i = 0; i < 4; ++i) {
                    double sum = 0;
                    for (std::size_t t = 0; t < 70; ++t) sum += weights(b, s, t) * memory.values(b, t, i);
                    worst = std::max(worst, std::abs(sum - contexts(b, s, i)));
                }
            }
        }
        CHECK(worst < most);
    };
    const auto slope = [](auto e, score_index p) { return e - 0.1 * abs(p.query - p.key); };
    each(score::scaled_dot{}, normalize::softmax{}, causal{}, 1e-12);
    each(score::modified{score::rotary{score::dot{}}, slope}, normalize::entmax15{}, causal{} & sliding_window{9},
         1e-12);
    each(score::cosine{}, normalize::temporal{}, no_mask{}, 1e-12);  // one after another
    ad::tape<double> on;
    const auto Q = on.parameter(q);
    const attention attend{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    on.backward(ops::dot(attend.weights_of(attend.on(on.constant(h)), Q), random({3, 60, 70}, 3)));
    CHECK(std::abs(on.gradient(Q).data[0]) > 1e-6);
}

TEST_CASE("no weights without queries or without sentences")
{
    const attention at_once{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const attention in_turn{score::dot{}, normalize::temporal{}, combine::weighted_sum{}};
    const auto h = random({2, 5, 4}, 1);
    const array<double, 3> none(shape_of_rank<3>{2, 0, 4}), nobody(shape_of_rank<3>{0, 3, 4});
    CHECK(shape_of(at_once.weights_of(at_once.on(h), none)) == shape_of_rank<3>{2, 0, 5});
    CHECK(shape_of(in_turn.weights_of(in_turn.on(h), none)) == shape_of_rank<3>{2, 0, 5});
    CHECK(shape_of(at_once.weights_of(at_once.on(array<double, 3>(shape_of_rank<3>{0, 5, 4})), nobody)) ==
          shape_of_rank<3>{0, 3, 5});
}

TEST_CASE("masks that differ by head: few queries see the same keys as many")
{
    const auto unchanged = [](auto e, score_index) { return e; };
    const attention one{score::modified{score::dot{}, unchanged}, normalize::softmax{}, combine::weighted_sum{}};
    const multi_head attend{std::vector(2, one), random({4, 4}, 1), random({4, 4}, 2), random({4, 4}, 3),
                            random({4, 4}, 4)};
    const halves_by_head mask;
    const auto memory = attend.on(random({1, 70, 4}, 5));
    const auto q = random({1, 70, 4}, 6);
    array<double, 3> some(shape_of_rank<3>{1, 5, 4});
    std::copy_n(q.data(), 20, some.data());
    const auto many = attend(memory, q, mask), few = attend(memory, some, mask);
    for (std::size_t i = 0; i < 20; ++i) CHECK(few.data()[i] == support::approx(many.data()[i]));
}
