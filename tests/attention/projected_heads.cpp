// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <vector>

#include <heed/heed.hpp>
#include <support/tensors.hpp>

// Projected heads, compared with a loop over sentences and heads, each of which is one attention.

using namespace heed;
using support::random;

namespace {

constexpr std::size_t B = 2, H = 4, S = 66, T = 70, d = 6, D = 5;
const lengths real{T, 43};

array<double, 4> heads(std::size_t n, std::size_t rows, std::size_t width, unsigned seed)
{
    return ops::reshaped(random({B * n, rows, width}, seed), B, n, rows, width);
}
/// Head h of sentence b: [1,rows,width].
array<double, 3> one_of(const array<double, 4>& x, std::size_t b, std::size_t h)
{
    const auto shape = x.shape();
    array<double, 3> y(shape_of_rank<3>{1, shape[2], shape[3]});
    std::copy_n(x.data() + (b * shape[1] + h) * y.size(), y.size(), y.data());
    return y;
}
array<double, 3> query_of(const array<double, 4>& x, std::size_t s)
{
    return ops::reshaped(ops::slice(x, 2, s, s + 1), B, x.shape()[1], x.shape()[3]);
}

/// Contexts and weights, sentence by sentence and head by head.
array<double, 4> one_by_one(const auto& attend, const array<double, 4>& q, const array<double, 4>& k,
                            const array<double, 4>& v, const auto& mask, std::size_t G)
{
    array<double, 4> all(shape_of_rank<4>{B, H, q.shape()[2], v.shape()[3]});
    for (std::size_t b = 0; b < B; ++b) {
        for (std::size_t h = 0; h < H; ++h) {
            const auto memory = attend.on(one_of(k, b, h * G / H), one_of(v, b, h * G / H), lengths{real[b]});
            const auto c = attend(memory, one_of(q, b, h), mask);
            std::copy_n(c.data(), c.size(), all.data() + (b * H + h) * c.size());
        }
    }
    return all;
}

/// Checks many queries, steps, reads, compositions, a cache, and gradients. `cache` is false for scores that number
/// queries by the longest sentence of a cache.
void check(const auto& attend, std::size_t G, bool cache = true)
{
    constexpr double most = 1e-13;
    const auto q = heads(H, S, d, 1), k = heads(G, T, d, 2), v = heads(G, T, D, 3), w = heads(H, S, D, 4);
    const auto memory = attend.on(k, v, real);
    const lengths shorter{50, 21};
    if constexpr (!cuts_windows<std::remove_cvref_t<decltype(attend.normalize)>>)  // a window ends with its row
        CHECK(support::distance(attend(memory, q, shorter), attend(memory, q, lengths{50, 21} & causal_after{T})) <
              most);
    for (const bool hides : {false, true}) {
        const auto must = hides ? one_by_one(attend, q, k, v, causal{}, G) : one_by_one(attend, q, k, v, no_mask{}, G);
        const auto is = hides ? attend(memory, q, causal{}) : attend(memory, q);
        CHECK(support::distance(is, must) < most);
        if (!cache) continue;
        const auto cached = with_cache(memory);
        CHECK(support::distance(hides ? attend(cached, q, causal{}) : attend(cached, q), must) < most);
    }
    const auto whole = attend.read_all(memory, q, attend.start(memory));
    const auto weights = attend.weights_of(memory, q);
    CHECK(shape_of(weights) == shape_of_rank<4>{B, H, S, T});
    const auto cached = with_cache(memory);
    auto state = attend.start(memory), composed = state;
    auto in_cache = attend.start(cached);
    auto kept = attend.step(memory, query_of(q, 0), state);
    for (std::size_t s = 0; s < 3; ++s) {
        const auto one = attend.step(memory, query_of(q, s), state);
        const auto must = ops::reshaped(ops::slice(whole.contexts, 2, s, s + 1), B, H, D);
        CHECK(support::distance(one.context, must) < most);
        CHECK(support::distance(one.weights, ops::reshaped(ops::slice(weights, 2, s, s + 1), B, H, T)) < most);
        CHECK(support::distance(attend.read(memory, query_of(q, s), state).context, must) < most);
        const auto specified = attend.compose(memory, query_of(q, s), composed);
        CHECK(support::distance(specified.context, must) < most);
        if (cache) {
            const auto grown = attend.step(cached, query_of(q, s), in_cache);
            CHECK(support::distance(grown.context, must) < most);
            in_cache = grown.state;
        }
        attend.step_into(kept, memory, query_of(q, s), state);
        CHECK(support::same_bits(kept.context, one.context));
        state = one.state;
        composed = specified.state;
    }

    // Gradients equal those of heads with separate keys, summed over the heads that share keys.
    const auto third = query_of(q, 2);
    const auto slopes = [&](const array<double, 4>& keys, const array<double, 4>& values) {
        ad::tape<double> on;
        const auto Q = on.parameter(q), K = on.parameter(keys), V = on.parameter(values);
        const auto there = attend.on(K, V, real);
        const auto all = attend(there, Q, causal{});
        const auto next = attend.step(there, on.constant(third), attend.start(there)).context;
        on.backward(ops::add(ops::dot(all, w), ops::dot(next, query_of(w, 1))));
        return std::tuple{copy_of(on.gradient(Q)), copy_of(on.gradient(K)), copy_of(on.gradient(V))};
    };
    const auto own = [&](const array<double, 4>& x) {
        std::vector<std::size_t> which(B * H);
        for (std::size_t i = 0; i < B * H; ++i) which[i] = i / H * G + i % H * G / H;
        const auto shape = x.shape();
        const auto rows = ops::rows_of(ops::reshaped(x, B * G, shape[2] * shape[3]), which);
        return ops::reshaped(rows, B, H, shape[2], shape[3]);
    };
    const auto [d_q, d_k, d_v] = slopes(k, v);
    const auto [own_q, own_k, own_v] = slopes(own(k), own(v));
    CHECK(support::distance(d_q, own_q) < most);
    const auto added = [&](const array<double, 4>& x) {
        const auto shape = x.shape();
        array<double, 4> sum(shape_of_rank<4>{B, G, shape[2], shape[3]}, 0.0);
        const std::size_t n = shape[2] * shape[3];
        for (std::size_t i = 0; i < x.size(); ++i)
            sum.data()[(i / n / H * G + i / n % H * G / H) * n + i % n] += x.data()[i];
        return sum;
    };
    CHECK(support::distance(d_k, added(own_k)) < 10 * most);
    CHECK(support::distance(d_v, added(own_v)) < 10 * most);
}

}  // namespace

TEST_CASE("each head of each sentence is a separate attention, and groups share keys and values")
{
    for (const std::size_t G : {1u, 2u, 4u})
        check(attention{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}}, G);
}
TEST_CASE("in blocks, of a score with parameters, with a history, in a window")
{
    check(attention{score::dot{}, normalize::stick_breaking{}, combine::weighted_sum{}}, 2);
    check(attention{score::general{random({d, d}, 5)}, normalize::sparsemax{}, combine::weighted_sum{}}, 2);
    check(attention{score::scaled_dot{}, normalize::temporal{}, combine::weighted_sum{}}, 2);
    check(attention{score::additive{random({d, 3}, 6), random({d, 3}, 7), random({3}, 8)}, normalize::local_m{9},
                    combine::weighted_sum{}},
          4);
}
TEST_CASE("gates of keys that heads share")
{
    check(attention{score::forgetting{score::scaled_dot{}, random({d, 1}, 5), random({1}, 6)}, normalize::softmax{},
                    combine::weighted_sum{}},
          2, false);
}
TEST_CASE("rotary positions count per sentence")
{
    check(attention{score::rotary{score::scaled_dot{}}, normalize::softmax{}, combine::weighted_sum{}}, 2, false);
}

TEST_CASE("functions of scores and masks read the true indices of sentence and head")
{
    const auto f = [](auto e, score_index p) {
        return e * (1 + 0.3 * p.head) - 0.02 * (p.batch + 1) * abs(p.query - p.key);
    };
    const auto sees = [](score_index p) { return (p.key + 2 * p.query + 3 * p.head + 5 * p.batch) % 4 != 0; };
    const std::size_t G = 2;
    const auto q = heads(H, S, d, 1), k = heads(G, T, d, 2), v = heads(G, T, D, 3);
    const auto run = [&](const auto& normalize) {
        const attention attend{score::modified{score::dot{}, f}, normalize, combine::weighted_sum{}};
        const auto memory = attend.on(k, v, real);
        const auto is = attend(memory, q, mask_mod{sees});
        const auto weights = attend.weights_of(memory, q, mask_mod{sees});
        double worst = 0;
        for (std::size_t b = 0; b < B; ++b) {
            for (std::size_t h = 0; h < H; ++h) {
                const auto factor = 1 + 0.3 * static_cast<double>(h), fall = 0.02 * static_cast<double>(b + 1);
                const attention alone{
                    score::modified{score::dot{},
                                    [=](auto e, score_index p) { return e * factor - fall * abs(p.query - p.key); }},
                    normalize, combine::weighted_sum{}};
                const auto i = static_cast<std::int32_t>(h), n = static_cast<std::int32_t>(b);
                const auto own = alone.on(one_of(k, b, h / 2), one_of(v, b, h / 2), lengths{real[b]});
                const mask_mod mask{[=](score_index p) { return (p.key + 2 * p.query + 3 * i + 5 * n) % 4 != 0; }};
                worst =
                    std::max({worst, support::distance(one_of(is, b, h), alone(own, one_of(q, b, h), mask)),
                              support::distance(one_of(weights, b, h), alone.weights_of(own, one_of(q, b, h), mask))});
                auto state = attend.start(memory);
                state.step = 3;
                auto of_one = alone.start(own);
                of_one.step = 3;
                const auto one = attend.step(memory, query_of(q, 2), state, mask_mod{sees}).context;
                const auto must =
                    alone.step(own, ops::reshaped(ops::slice(one_of(q, b, h), 1, 2, 3), 1, d), of_one, mask);
                for (std::size_t j = 0; j < D; ++j)
                    worst = std::max(worst, std::abs(one(b, h, j) - must.context(0, j)));
            }
        }
        CHECK(worst < 1e-12);
    };
    run(normalize::softmax{});
    run(normalize::stick_breaking{});
    run(normalize::temporal{});
}

TEST_CASE("tensor masks from [S,T] to [B,H,S,T], and masks of one query, [B,T] and [B,H,T]")
{
    const auto q = heads(H, S, d, 1), k = heads(2, T, d, 2), v = heads(2, T, D, 3);
    const attention attend{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(k, v, real);
    boolean_mask<4> mask(shape_of_rank<4>{1, H, S, T});
    for (std::size_t i = 0; i < H * S * T; ++i) mask[i] = i % 7 != 2;
    const auto bias = heads(H, 1, T, 5);
    const auto is = attend(memory, q, causal{} & mask & additive_mask{bias});
    const auto by_index = [&](score_index p) {
        lane_mask seen(false);
        for (std::size_t i = 0; i < lane_count; ++i) {
            const auto s = static_cast<std::size_t>(std::clamp(p.query.at[i], 0, int(S) - 1)),
                       t = static_cast<std::size_t>(std::clamp(p.key.at[i], 0, int(T) - 1));
            seen.at[i] = mask[(static_cast<std::size_t>(p.head) * S + s) * T + t] != 0 ? -1 : 0;
        }
        return seen;
    };
    const attention with_bias{
        score::modified{score::scaled_dot{}, bias,
                        [](auto e, score_index p, const auto& b) { return e + b(p.batch, p.head, 0, p.key); }},
        normalize::softmax{}, combine::weighted_sum{}};
    CHECK(support::distance(is, with_bias(with_bias.on(k, v, real), q, causal{} & mask_mod{by_index})) < 1e-13);

    boolean_mask<2> of_sentences(shape_of_rank<2>{B, T});
    for (std::size_t i = 0; i < B * T; ++i) of_sentences[i] = i % 3 != 1;
    boolean_mask<3> of_heads(shape_of_rank<3>{B, H, T});
    for (std::size_t i = 0; i < B * H * T; ++i) of_heads[i] = of_sentences[i / T / H * T + i % T];
    const auto state = attend.start(memory);
    const auto one = attend.step(memory, query_of(q, 1), state, of_sentences),
               same = attend.step(memory, query_of(q, 1), state, of_heads);
    CHECK(support::same_bits(one.context, same.context));
    const auto kept = attend.on(k, v, of_sentences);
    const auto must = attend.step(kept, query_of(q, 1), attend.start(kept), real);
    CHECK(support::distance(one.context, must.context) < 1e-14);
    CHECK(support::distance(attend(memory, q, present(of_sentences)), attend(kept, q, real)) < 1e-14);
    CHECK(support::same_bits(attend(memory, q, lengths{20, 9}), attend(attend.on(k, v, lengths{20, 9}), q)));
}

TEST_CASE("split_heads is read in place, and join_heads restores the layout")
{
    const auto q = random({B, S, H * d}, 1), k = random({B, T, 2 * d}, 2), v = random({B, T, 2 * D}, 3),
               w = random({B, S, H * D}, 4);
    const auto apart = [](const array<double, 3>& x, std::size_t n) {
        const auto [b, s, width] = x.shape();
        return ops::permuted(ops::reshaped(x, b, s, n, width / n), 0, 2, 1, 3);
    };
    const auto run = [&](const auto& attend) {
        const auto memory = attend.on(split_heads(k, 2), split_heads(v, 2), real);
        const auto is = join_heads(attend(memory, split_heads(q, H), causal{}));
        const auto must = attend(attend.on(apart(k, 2), apart(v, 2), real), apart(q, H), causal{});
        CHECK(support::distance(is, join_heads(must)) < 1e-13);
        // Every function, with both layouts of the queries.
        CHECK(split_heads(k, 2).shape() == shape_of_rank<4>{B, 2, T, d});
        CHECK(support::same_bits(split_heads(k, 2).apart(), apart(k, 2)));
        const auto rows = attend.on(apart(k, 2), apart(v, 2), real);
        const auto q4 = apart(q, H);
        const auto state = attend.start(memory);
        const auto one = attend.step(memory, query_of(q4, 3), state);
        CHECK(support::same_bits(one.context, attend.step(rows, query_of(q4, 3), attend.start(rows)).context));
        CHECK(support::same_bits(attend.read(memory, query_of(q4, 3), state).context, one.context));
        CHECK(support::distance(attend.compose(memory, query_of(q4, 3), state).context, one.context) < 1e-13);
        CHECK(support::same_bits(attend.weights_of(memory, split_heads(q, H)), attend.weights_of(rows, q4)));
        CHECK(support::same_bits(attend.scores_of(memory, q4), attend.scores_of(rows, q4)));
        CHECK(support::distance(attend(memory, q4, causal{}), must) < 1e-13);
        CHECK(support::same_bits(join_heads(attend(rows, split_heads(q, H), causal{})), join_heads(must)));
        CHECK(explain(attend, memory, split_heads(q, H)) == explain(attend, rows, q4));
        ad::tape<double> on;
        const auto Q = on.parameter(q), K = on.parameter(k), V = on.parameter(v);
        const auto there = attend.on(split_heads(K, 2), split_heads(V, 2), real);
        on.backward(ops::dot(join_heads(attend(there, split_heads(Q, H), causal{})), w));
        const auto d_q = copy_of(on.gradient(Q)), d_k = copy_of(on.gradient(K)), d_v = copy_of(on.gradient(V));
        on.clear();
        const auto k4 = apart(k, 2), v4 = apart(v, 2);
        const auto Q4 = on.parameter(q4), K4 = on.parameter(k4), V4 = on.parameter(v4);
        on.backward(ops::dot(join_heads(attend(attend.on(K4, V4, real), Q4, causal{})), w));
        CHECK(support::distance(apart(d_q, H), copy_of(on.gradient(Q4))) < 1e-13);
        CHECK(support::distance(apart(d_k, 2), copy_of(on.gradient(K4))) < 1e-12);
        CHECK(support::distance(apart(d_v, 2), copy_of(on.gradient(V4))) < 1e-12);
    };
    run(attention{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}});
    run(attention{score::scaled_dot{0.3}, normalize::softmax{}, combine::weighted_sum{}});
    run(attention{score::dot{}, normalize::sparsemax{}, combine::weighted_sum{}});
    run(attention{score::general{random({d, d}, 5)}, normalize::softmax{}, combine::weighted_sum{}});
    run(attention{score::dot{}, normalize::stick_breaking{}, combine::weighted_sum{}});
}

TEST_CASE("NaN stays in its head")
{
    auto k = heads(2, T, d, 2), v = heads(2, T, D, 3);
    const auto q = heads(H, S, d, 1);
    k(1, 0, 3, 2) = std::numeric_limits<double>::quiet_NaN();
    v(0, 1, 5, 1) = std::numeric_limits<double>::infinity();
    const attention attend{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto is = attend(attend.on(k, v), q);
    for (std::size_t b = 0; b < B; ++b) {
        for (std::size_t h = 0; h < H; ++h) {
            bool finite = true;
            const auto one = one_of(is, b, h);
            for (const double x : one) finite = finite && std::isfinite(x);
            CHECK(finite == !((b == 1 && h < 2) || (b == 0 && h >= 2)));
        }
    }
}

TEST_CASE("views are not copied, and sentences can be selected")
{
    const auto q = heads(H, S, d, 1), k = heads(H, T, d, 2), v = heads(H, T, D, 3);
    const attention attend{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(view_of(k), view_of(v));
    CHECK(view_of(memory.each.values).data == v.data());
    CHECK(view_of(memory.each.keys).data == k.data());
    auto given = v;
    const double* const there = given.data();
    const auto owns = attend.on(k, std::move(given));
    CHECK(view_of(owns.each.values).data == there);
    const auto all = attend(owns, q);
    const std::vector<std::size_t> which{1, 1, 0};
    const auto some = attend(owns.rows(which), ops::rows_of(q, which));
    CHECK(support::same_bits(some, ops::rows_of(all, which)));
}

TEST_CASE("a key-value cache of heads: any chunks equal all at once")
{
    const std::size_t G = 2, steps = 12;
    const auto q = heads(H, steps, d, 1), k = heads(G, steps, d, 2), v = heads(G, steps, D, 3);
    const auto part = [](const auto& x, std::size_t from, std::size_t to) { return ops::slice(x, 2, from, to); };
    const auto run = [&](const auto& attend) {
        const auto must = attend(attend.on(k, v), q, causal{});
        for (const std::size_t chunk : {1u, 3u, 5u}) {
            auto memory = with_cache(attend.on(part(k, 0, 2), part(v, 0, 2)));
            auto state = attend.read_all(memory, part(q, 0, 2), attend.start(memory), causal{}).state;
            for (std::size_t s = 2; s < steps; s += chunk) {
                const std::size_t end = std::min(steps, s + chunk);
                memory = attend.extend(memory, part(k, s, end), part(v, s, end));
                auto now = attend.read_all(memory, part(q, s, end), state, causal{});
                CHECK(support::distance(now.contexts, part(must, s, end)) < 1e-13);
                state = now.state;
            }
            CHECK(memory.positions() == steps);
            CHECK(memory.heads == G);
        }
        // Rows of unequal length, selected, and without the oldest positions.
        auto memory = with_cache(attend.on(part(k, 0, 4), part(v, 0, 4), lengths{4, 2}));
        memory =
            attend.extend(memory, part(k, 4, 6), part(v, 4, 6), lengths{2, 1}).rows(std::vector<std::size_t>{1, 0, 1});
        CHECK(memory.each.real[1] == 3);
        CHECK(memory.each.real[3] == 6);
        memory = memory.without_oldest(2);
        CHECK(memory.positions() == 4);
        CHECK(memory.next_position() == 6);
        const auto left = attend.on(part(k, 2, 6), part(v, 2, 6));
        const auto query = query_of(q, 5);
        const auto state = from_query(attend.start(memory), 5);
        const auto is = attend.step(memory, ops::rows_of(query, std::vector<std::size_t>{1, 0, 1}), state).context;
        const auto of_first = attend.step(left, query, attend.start(left)).context;
        if constexpr (!score_traits_of<std::remove_cvref_t<decltype(attend.score)>>().reads_query_position)
            CHECK(support::distance(ops::rows_of(is, std::vector<std::size_t>{1}),
                                    ops::rows_of(of_first, std::vector<std::size_t>{0})) < 1e-13);
    };
    run(attention{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}});
    run(attention{score::rotary{score::scaled_dot{}}, normalize::softmax{}, combine::weighted_sum{}});
}

TEST_CASE("a memory returns its keys and values as heads")
{
    const attention attend{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto k = heads(2, 6, d, 2), v = heads(2, 6, D, 3);
    const auto memory = attend.on(k, v);
    CHECK(support::same_bits(memory.keys(), k));
    CHECK(support::same_bits(memory.values(), v));
    const auto grown = attend.extend(with_cache(memory), heads(2, 1, d, 4), heads(2, 1, D, 5));
    CHECK(support::same_bits(ops::slice(grown.keys(), 2, 0, 6), k));
    CHECK(support::same_bits(ops::slice(grown.values(), 2, 6, 7), heads(2, 1, D, 5)));
}

TEST_CASE("weights of a cache have the positions of the cache")
{
    const attention attend{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto cache = with_cache(attend.on(heads(2, 6, d, 2), heads(2, 6, D, 3), lengths{2, 3}));
    const auto q = heads(H, 5, d, 1);
    CHECK(cache.positions() == 6);
    CHECK(shape_of(attend.weights_of(cache, q, additive_mask{zeros<double>(1, 6)})) == shape_of_rank<4>{B, H, 5, 6});
}

TEST_CASE("views of constants, in scores that wrap others")
{
    const auto q = heads(H, S, d, 1), k = heads(H, T, d, 2), v = heads(H, T, D, 3);
    const auto run = [&](const auto& attend) {
        CHECK(support::same_bits(attend(attend.on(view_of(k), view_of(v)), q), attend(attend.on(k, v), q)));
    };
    run(attention{score::modified{score::dot{}, [](auto e, score_index) { return 0.5 * e; }}, normalize::softmax{},
                  combine::weighted_sum{}});
    run(attention{score::rotary{score::dot{}}, normalize::softmax{}, combine::weighted_sum{}});
}

TEST_CASE("explain names the executor of heads")
{
    const auto q = heads(H, S, d, 1), k = heads(2, T, d, 2), own = heads(H, T, d, 2);
    const auto says = [&](const auto& attend, const auto& keys) { return explain(attend, attend.on(keys), q); };
    const attention tiled{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    CHECK(says(tiled, k).starts_with("tiled:"));
    CHECK(explain(tiled, with_cache(tiled.on(k)), q).starts_with("tiled:"));
    CHECK(explain(tiled, tiled.on(k), ops::slice(q, 2, 0, 1)).starts_with("stepwise:"));
    const attention linear{score::kernel{score::elu_plus_one{}}, normalize::ratio{}, combine::weighted_sum{}};
    CHECK(says(linear, own).starts_with("linear:"));
    CHECK(says(linear, k).starts_with("linear:"));
    const auto f = [](auto e, score_index) { return 0.5 * e; };
    const attention blocked{score::modified{score::modified{score::dot{}, f}, f}, normalize::softmax{},
                            combine::weighted_sum{}};
    CHECK(says(blocked, k).starts_with("blocked:"));
    const attention with_history{score::scaled_dot{}, normalize::temporal{}, combine::weighted_sum{}};
    CHECK(says(with_history, k).starts_with("tiled_with_state:"));
}

TEST_CASE("heads that do not fit are rejected")
{
    const attention attend{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(heads(2, T, d, 2), heads(2, T, D, 3));
    const auto says = [](const auto& f) { return support::message_of<shape_error>(f); };
    CHECK(says([&] { (void)attend(memory, heads(3, S, d, 1)); }) ==
          "attention: queries [2,3,66,6] with 3 heads do not fit keys of 2 sentences with 2 heads; the number of "
          "sentences must be the same, and the number of query heads a multiple of the number of key heads");
    CHECK(says([&] { (void)attend.on(heads(2, T, d, 2), heads(4, T, D, 3)); }) ==
          "attention::on: keys of 2 sentences with 2 heads, but [2,4,70,5] has 2 sentences with 4 heads; these numbers "
          "must be the same");
    CHECK(says([&] {
              (void)attend.on(heads(2, T, d, 2), heads(2, T, D, 3), lengths{3, 71});
          }) == "attention::on: the length of row 1 is 71 but there are only 70 positions");
    CHECK(says([&] { (void)attend.extend(memory, heads(4, 1, d, 2), heads(4, 1, D, 3)); }) ==
          "attention::extend: keys of 2 sentences with 2 heads, but [2,4,1,6] has 2 sentences with 4 heads; these "
          "numbers must be the same");
    CHECK(says([&] {
              (void)attend.extend(with_cache(memory), heads(2, 2, d, 2), heads(2, 2, D, 3), lengths{1, 3});
          }) == "attention::extend: the length of row 1 is 3 but there are only 2 positions");
    const auto q = heads(2, S, d, 1);
    CHECK(says([&] {
              (void)attend(memory, q, boolean_mask<3>(shape_of_rank<3>{2, S, T}));
          }) == "attention: the boolean mask [2,66,70] may be of 2 heads or of the same number of sentences; give it "
                "four axes, [B,1,S,T] "
                "or [1,H,S,T]");
    CHECK(says([&] {
              (void)attend(memory, q, lengths{1, 2, 3});
          }) == "attention: the mask: 3 lengths for a batch of 2 rows; give one length per row");
}
