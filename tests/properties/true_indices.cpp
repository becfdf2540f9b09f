// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <support/approx.hpp>
#include <support/drawn_masks.hpp>
#include <support/exhaustive.hpp>
#include <support/many_queries.hpp>
#include <support/tensors.hpp>

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <list>
#include <string>
#include <tuple>
#include <vector>

using namespace heed;
using support::random;
using support::words_of;

// Masks and functions of scores that read the head, the query, the key and the batch, in every mechanism and executor,
// compared with a scalar loop.

namespace {

constexpr std::size_t D = 4, n = 3, K = 2, V = 2;

const auto W_Q = random({D, n*K}, 11), W_K = random({D, n*K}, 12), W_V = random({D, n*V}, 13),
           W_O = random({n * V, D}, 14), P_l = random({n, n}, 15), P_w = random({n, n}, 16);

// For latent heads.
constexpr std::size_t C = 3, R = 2;
const auto W_QR = random({D, n*R}, 17), W_DKV = random({D, C}, 18), W_KR = random({D, R}, 19),
           W_UK = random({n * K, C}, 20), W_UV = random({n * C, V}, 24);

/// The indices of one score as plain integers.
struct plain_place {
    int batch, head, query, key, diagonal;
};

/// A mask for both kinds of indices.
struct mask : predicate_mask {
    std::function<lane_mask(const score_index&)> lanes;
    std::function<bool(const plain_place&)> plain;

    mask(const auto& f)
        : lanes([f](const score_index& p) { return lane_mask(f(p)); }),
          plain([f](const plain_place& p) { return bool(f(p)); })
    {}
    lane_mask operator()(const score_index& p) const { return lanes(p); }
};

const mask everything([](const auto& p) { return p.key >= 0; });
const mask by_head([](const auto& p) { return (p.key >= 0) & (p.head != 2); });
const mask by_batch([](const auto& p) { return p.key % 2 == p.batch; });
const mask by_all([](const auto& p) { return (p.query + 2 * p.key + p.head + p.batch) % 3 != 0; });
const mask by_here([](const auto& p) { return (p.key <= p.diagonal) & ((p.key + p.head) % 2 == 0); });

/// A function of the score, for both kinds of scores and indices.
struct function {
    bool changes = true;

    auto operator()(const auto& e, const auto& p) const
    {
        using std::abs;
        return e * (1 + 0.2 * p.head) - 0.05 * (p.head + 1) * abs(p.query - p.key) +
               0.1 * (p.batch + 1) * (p.key % 3 - p.query % 2);
    }
};

/// Softmax without a tile rule: in blocks.
struct in_blocks {
    static constexpr normalizer_traits traits{.rowwise = true};

    auto operator()(const tensor auto& scores, const auto&, const auto& at) const
    {
        return ops::softmax(at.visible(scores), at.real);
    }
    static auto parameters(auto&, auto&&) { return in_blocks{}; }
};
/// Softmax without traits: one query after another.
struct one_by_one {
    auto operator()(const tensor auto& scores, const auto&, const auto& at) const
    {
        return ops::softmax(at.visible(scores), at.real);
    }
    static auto parameters(auto&, auto&&) { return one_by_one{}; }
};

/// The inputs, and the results of the scalar loop.
struct problem {
    lengths real;
    std::size_t S, T;
    array<double, 3> h = random({real.batch(), T, D}, 1), q = random({real.batch(), S, D}, 2);
};

/// A number and its derivative in one direction.
using X = dual_number<double>;
using cube = std::vector<std::vector<std::vector<X>>>;

cube zeros(std::size_t a, std::size_t b, std::size_t c)
{
    return cube(a, std::vector<std::vector<X>>(b, std::vector<X>(c, X(0))));
}

/// x, and a direction.
cube numbers_of(const array<double, 3>& x, std::uint64_t direction)
{
    const auto shape = x.shape();
    const auto d = random(shape, direction);
    auto y = zeros(shape[0], shape[1], shape[2]);
    for (std::size_t b = 0; b < shape[0]; ++b)
        for (std::size_t t = 0; t < shape[1]; ++t)
            for (std::size_t i = 0; i < shape[2]; ++i) y[b][t][i] = {x(b, t, i), d(b, t, i)};
    return y;
}
cube times(const cube& x, const array<double, 2>& W)
{
    auto y = zeros(x.size(), x[0].size(), W.shape()[1]);
    for (std::size_t b = 0; b < x.size(); ++b)
        for (std::size_t t = 0; t < x[b].size(); ++t)
            for (std::size_t i = 0; i < W.shape()[0]; ++i)
                for (std::size_t o = 0; o < W.shape()[1]; ++o) y[b][t][o] += x[b][t][i] * X(W(i, o));
    return y;
}

/// Mechanisms as the scalar loop implements them.
struct kind {
    bool changes = true;     // the score is `function`
    std::size_t heads = n;   // 0: a single attention over h and q
    std::size_t groups = n;  // heads of keys
    bool talks = false;      // P_l and P_w
    std::size_t hops = 1;
    bool latent = false;

    bool operator==(const kind&) const = default;
};

/// Keys or queries of latent heads: [B,T,n·K] and [B,T,R] or [B,T,n·R], which is rotated by its position.
cube beside_turned(const cube& content, const cube& position)
{
    auto y = zeros(content.size(), content[0].size(), n * (K + R));
    for (std::size_t b = 0; b < y.size(); ++b)
        for (std::size_t t = 0; t < y[b].size(); ++t)
            for (std::size_t i = 0; i < n; ++i) {
                for (std::size_t c = 0; c < K; ++c) y[b][t][i * (K + R) + c] = content[b][t][i * K + c];
                const X* const from = &position[b][t][position[b][t].size() == R ? 0 : i * R];
                const X cosine(std::cos(static_cast<double>(t))), sine(std::sin(static_cast<double>(t)));
                y[b][t][i * (K + R) + K] = cosine * from[0] - sine * from[1];
                y[b][t][i * (K + R) + K + 1] = sine * from[0] + cosine * from[1];
            }
    return y;
}

struct found {
    cube contexts;              // [B,S,D]
    std::vector<cube> weights;  // [n][B,S,T] of the last hop
};

/// Σ_j softmax(e)_j v_j, where query s is at real + s − S.
found by_loop(const problem& of, const kind& how, const mask& sees)
{
    const std::size_t B = of.real.batch(), heads = std::max<std::size_t>(1, how.heads),
                      k = how.latent       ? K + R
                          : how.heads == 0 ? D
                                           : K,
                      v = how.heads == 0 ? D : V, in_group = how.heads == 0 ? 1 : heads / how.groups;
    const auto h = numbers_of(of.h, 21);
    const auto latent = times(h, W_DKV);
    const auto keys = how.latent       ? beside_turned(times(latent, ops::transpose(W_UK)), times(h, W_KR))
                      : how.heads == 0 ? h
                                       : times(h, W_K);
    auto values = how.heads == 0 ? h : times(h, W_V);
    if (how.latent) {
        for (std::size_t i = 0; i < n; ++i) {
            const auto of_head = times(latent, copy_of(view_of(ops::slice_rows(W_UV, i * C, (i + 1) * C))));
            for (std::size_t b = 0; b < B; ++b)
                for (std::size_t t = 0; t < of.T; ++t)
                    for (std::size_t c = 0; c < V; ++c) values[b][t][i * V + c] = of_head[b][t][c];
        }
    }
    auto asked = numbers_of(of.q, 22);
    found all;
    for (std::size_t hop = 0; hop < how.hops; ++hop) {
        const auto queries = how.latent       ? beside_turned(times(asked, W_Q), times(asked, W_QR))
                             : how.heads == 0 ? asked
                                              : times(asked, W_Q);
        std::vector<cube> e(heads, zeros(B, of.S, of.T)), a = e;
        auto joined = zeros(B, of.S, heads * v);
        const auto at = [&](std::size_t b, std::size_t i, std::size_t s, std::size_t t) {
            return plain_place{int(b), int(i), int(s), int(t), int(of.real[b] + s) - int(of.S)};
        };
        const auto mixed = [&](auto& x, const array<double, 2>& P) {
            if (!how.talks) return;
            std::vector<cube> y(heads, zeros(B, of.S, of.T));
            for (std::size_t i = 0; i < heads; ++i)
                for (std::size_t o = 0; o < heads; ++o)
                    for (std::size_t b = 0; b < B; ++b)
                        for (std::size_t s = 0; s < of.S; ++s) {
                            const X part(P(i, o)), *const from = x[i][b][s].data();
                            X* const to = y[o][b][s].data();
                            for (std::size_t t = 0; t < of.real[b]; ++t) to[t] += part * from[t];
                        }
            x = y;
        };
        for (std::size_t i = 0; i < heads; ++i)
            for (std::size_t b = 0; b < B; ++b)
                for (std::size_t s = 0; s < of.S; ++s) {
                    const X* const query = queries[b][s].data() + i * k;
                    for (std::size_t t = 0; t < of.real[b]; ++t) {
                        const X* const key = keys[b][t].data() + i / in_group * k;
                        X sum(0);
                        for (std::size_t c = 0; c < k; ++c) sum += query[c] * key[c];
                        sum = sum / X(std::sqrt(static_cast<double>(k)));
                        e[i][b][s][t] = how.changes ? X(function{}(sum, at(b, i, s, t))) : sum;
                    }
                }
        mixed(e, P_l);
        for (std::size_t i = 0; i < heads; ++i)
            for (std::size_t b = 0; b < B; ++b)
                for (std::size_t s = 0; s < of.S; ++s) {
                    using std::exp;
                    const X* const row = e[i][b][s].data();
                    X* const weights = a[i][b][s].data();  // 0 at masked positions
                    X sum(0);
                    for (std::size_t t = 0; t < of.real[b]; ++t)
                        if (sees.plain(at(b, i, s, t))) sum += weights[t] = exp(row[t]);
                    for (std::size_t t = 0; t < of.real[b]; ++t)
                        if (weights[t].value > 0) weights[t] = weights[t] / sum;
                }
        mixed(a, P_w);
        for (std::size_t i = 0; i < heads; ++i)
            for (std::size_t b = 0; b < B; ++b)
                for (std::size_t s = 0; s < of.S; ++s) {
                    const X* const weights = a[i][b][s].data();
                    X* const context = joined[b][s].data() + i * v;
                    for (std::size_t t = 0; t < of.real[b]; ++t) {
                        const X* const value = values[b][t].data() + i / in_group * v;
                        for (std::size_t c = 0; c < v; ++c) context[c] += weights[t] * value[c];
                    }
                }
        all.contexts = how.heads == 0 ? joined : times(joined, W_O);
        all.weights = a;
        for (std::size_t b = 0; b < B; ++b)
            for (std::size_t s = 0; s < of.S; ++s)
                for (std::size_t i = 0; i < D; ++i) asked[b][s][i] += all.contexts[b][s][i];
    }
    return all;
}

/// The same, computed once for all mechanisms of a kind.
const found& known(const problem& of, const kind& how, const mask& sees)
{
    struct entry {
        const problem* of;
        kind how;
        const mask* sees;
        found all;
    };
    static std::list<entry> entries;
    for (const entry& each : entries)
        if (each.of == &of && each.how == how && each.sees == &sees) return each.all;
    entries.push_back({&of, how, &sees, by_loop(of, how, sees)});
    return entries.back().all;
}

/// The maximum difference, relative to numbers above 1.
double distance(const array<double, 3>& x, const cube& y)
{
    auto must = array<double, 3>({y.size(), y[0].size(), y[0][0].size()});
    for (std::size_t b = 0; b < y.size(); ++b)
        for (std::size_t s = 0; s < y[b].size(); ++s)
            for (std::size_t i = 0; i < y[b][s].size(); ++i) must(b, s, i) = y[b][s][i].value;
    return support::distance(x, must);
}

/// All queries at once, in two chunks, in a growing memory, with weights, and on a tape.
void check_many(const auto& attend, const problem& of, const kind& how, const mask& sees, bool reads_here = false)
{
    constexpr double most = support::tolerance<double>;
    const std::size_t B = of.real.batch();
    const found& must = known(of, how, sees);
    const auto memory = attend.on(of.h, of.real);
    CHECK(distance(attend(memory, of.q, sees), must.contexts) < most);
    if (!how.talks) CHECK(distance(attend(with_cache(memory), of.q, sees), must.contexts) < most);
    if (!reads_here) {
        const std::size_t first = of.S / 3;
        const auto before = attend.read_all(memory, words_of(of.q, 0, first), attend.start(memory), sees);
        const auto after = attend.read_all(memory, words_of(of.q, first, of.S - first), before.state, sees);
        auto rest = must.contexts;
        for (auto& row : rest) row.erase(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(first));
        CHECK(distance(after.contexts, rest) < most);
    }
    if constexpr (requires { attend.weights_of(memory, of.q, sees); }) {
        const auto weights = attend.weights_of(memory, of.q, sees);
        const auto view = view_of(weights);
        REQUIRE(view.size() == B * must.weights.size() * of.S * of.T);
        double worst = 0;
        const std::size_t heads = must.weights.size();
        for (std::size_t b = 0; b < B; ++b)
            for (std::size_t i = 0; i < heads; ++i)
                for (std::size_t s = 0; s < of.S; ++s)
                    for (std::size_t t = 0; t < of.T; ++t) {
                        const double is = view.data[((b * heads + i) * of.S + s) * of.T + t];
                        worst = std::max(worst, std::abs(is - must.weights[i][b][s][t].value));
                    }
        CHECK(worst < most);
    }
    // The directional derivative of a loss of the contexts, with respect to annotations and queries.
    ad::tape<double> on;
    const auto H = on.parameter(of.h), Q = on.parameter(of.q);
    const auto lifted = ad::lift(on, attend);
    const auto contexts = lifted(lifted.on(H, of.real), Q, sees);
    CHECK(distance(copy_of(contexts.value()), must.contexts) < most);
    const auto loss = random({B, of.S, D}, 23);
    on.backward(ops::dot(contexts, loss));
    double is = 0, slope = 0;
    for (std::size_t b = 0; b < B; ++b)
        for (std::size_t s = 0; s < of.S; ++s)
            for (std::size_t i = 0; i < D; ++i) slope += must.contexts[b][s][i].slope * loss(b, s, i);
    const auto along = [&](const auto& gradient, const array<double, 3>& direction) {
        for (std::size_t i = 0; i < direction.size(); ++i) is += gradient.data[i] * direction.data()[i];
    };
    along(on.gradient(H), random(of.h.shape(), 21));
    along(on.gradient(Q), random(of.q.shape(), 22));
    CHECK(is == support::approx(slope, support::gradient_tolerance<double>));
}

/// One query after another, by each function that takes one.
void check_steps(const auto& attend, const problem& of, const kind& how)
{
    constexpr double most = support::tolerance<double>;
    const found& must = known(of, how, everything);
    const auto memory = attend.on(of.h, of.real);
    auto stepped = attend.start(memory), read = stepped, composed = stepped;
    auto kept = attend.step(memory, ops::step_of(of.q, 0), stepped);
    kept.state = stepped;
    for (std::size_t s = 0; s < of.S; ++s) {
        auto step = zeros(1, of.real.batch(), D);
        for (std::size_t b = 0; b < of.real.batch(); ++b) step[0][b] = must.contexts[b][s];
        const auto as_cube = [](const array<double, 2>& x) {
            return ops::reshaped(x, shape_of_rank<3>{1, x.shape()[0], x.shape()[1]});
        };
        const auto query = ops::step_of(of.q, s);
        auto next = attend.step(memory, query, stepped);
        CHECK(distance(as_cube(next.context), step) < most);
        stepped = next.state;
        auto seen = attend.read(memory, query, read);
        CHECK(distance(as_cube(seen.context), step) < most);
        read = seen.state;
        attend.step_into(kept, memory, query, kept.state);
        CHECK(distance(as_cube(kept.context), step) < most);
        if constexpr (requires { attend.compose(memory, query, composed); }) {
            auto slow = attend.compose(memory, query, composed);
            CHECK(distance(as_cube(slow.context), step) < most);
            composed = slow.state;
        }
    }
}

const problem few{lengths({7, 4}), 5, 7}, some{lengths({110, 90}), 40, 110}, blocks{lengths({2016, 90}), 33, 2016};

/// Checks every mask, with plain and with modified scores; `make(score)` makes a mechanism. The longest problem runs
/// only the masks that read the most indices.
void check(const auto& make, kind how, const problem& of)
{
    const auto plain = make(score::scaled_dot{});
    how.changes = false;
    if (&of != &blocks || support::exhaustive())
        for (const mask* const sees : {&everything, &by_head, &by_batch, &by_all}) check_many(plain, of, how, *sees);
    check_many(plain, of, how, by_here, true);
    const auto changed = make(score::modified{score::scaled_dot{}, function{}});
    how.changes = true;
    if (&of != &blocks || support::exhaustive()) check_many(changed, of, how, everything);
    check_many(changed, of, how, by_all);
}

auto heads_of(const auto& head) { return multi_head{std::vector(n, head), W_Q, W_K, W_V, W_O}; }

/// The same heads, treated as different kinds.
auto tuple_of(const auto& head) { return multi_head{std::tuple{head, head, head}, W_Q, W_K, W_V, W_O}; }

template <class Normalize>
auto by(const Normalize& normalize)
{
    return [=](const auto& score) { return attention{score, normalize, combine::weighted_sum{}}; };
}

const score::modified changed{score::scaled_dot{}, function{}};

}  // namespace

TEST_CASE("a single attention")
{
    const kind how{.heads = 0};
    for (const problem* const of : {&few, &some}) check(by(normalize::softmax{}), how, *of);
    check(by(in_blocks{}), how, few);
    check(by(one_by_one{}), how, few);
    check_steps(by(normalize::softmax{})(changed), few, how);
}

TEST_CASE("heads of one kind, in tiles")
{
    const auto make = [](const auto& score) { return heads_of(by(normalize::softmax{})(score)); };
    for (const problem* const of : {&few, &some}) check(make, {}, *of);
    check_steps(make(changed), few, {});
}

TEST_CASE("heads of one kind, in blocks and one by one")
{
    const auto make = [](const auto& score) { return heads_of(by(in_blocks{})(score)); };
    for (const problem* const of : {&few, &blocks}) check(make, {}, *of);
    check([](const auto& score) { return heads_of(by(one_by_one{})(score)); }, {}, few);
    check_steps(heads_of(by(one_by_one{})(changed)), few, {});
}

TEST_CASE("heads of different kinds")
{
    const auto make = [](const auto& score) { return tuple_of(by(normalize::softmax{})(score)); };
    for (const problem* const of : {&few, &some}) check(make, {}, *of);
    check_steps(make(changed), few, {});
}

TEST_CASE("talking heads")
{
    const kind how{.talks = true};
    const auto make = [](const auto& score) {
        return talking_heads{heads_of(by(normalize::softmax{})(score)), P_l, P_w};
    };
    for (const problem* const of : {&few, &some, &blocks}) check(make, how, *of);
    check_steps(make(changed), few, how);
}

TEST_CASE("heads that share keys, and hops")
{
    const auto shared = [](const auto& score) {
        return multi_head{std::vector(n, by(normalize::softmax{})(score)), W_Q, ops::slice_columns(W_K, 0, K),
                          ops::slice_columns(W_V, 0, V), W_O};
    };
    check(shared, {.groups = 1}, some);
    // A hop is not a head.
    const kind twice{.heads = 0, .hops = 2};
    const auto alone = [](const auto& score) { return multi_hop{std::vector(2, by(normalize::softmax{})(score))}; };
    for (const problem* const of : {&few, &some}) check(alone, twice, *of);
    check_steps(alone(changed), few, twice);
}

TEST_CASE("latent heads")
{
    const kind how{.changes = false, .latent = true};
    for (const latent_form form : {latent_form::expanded, latent_form::absorbed}) {
        const latent_heads attend{n,   W_Q, W_QR, W_DKV, W_KR, W_UK, W_UV, W_O, normalize::softmax{}, ops::rotation{},
                                  form};
        for (const problem* const of : {&few, &some}) {
            for (const mask* const sees : {&everything, &by_head, &by_batch, &by_all})
                check_many(attend, *of, how, *sees);
            check_many(attend, *of, how, by_here, true);
        }
    }
    const latent_heads attend{n, W_Q, W_QR, W_DKV, W_KR, W_UK, W_UV, W_O};
    check_steps(attend, few, how);
}

TEST_CASE("one of several heads, with a history, and in blocks on a tape")
{
    const std::size_t S = some.S, T = some.T;
    // A multi_head's contexts before W_O, from heads that are evaluated one by one with a boolean mask.
    const auto history = [&](const auto& score) {
        const auto attend = by(normalize::temporal{})(score);
        auto several = heads_of(attend);
        several.W_O = array<double, 2>({n * V, n * V}, 0.0);
        for (std::size_t i = 0; i < n * V; ++i) several.W_O(i, i) = 1;
        const auto memory = several.on(some.h, some.real);
        const auto queries = ops::split_heads(ops::linear(some.q, W_Q), n);
        for (const mask* const sees : {&everything, &by_head, &by_all}) {
            const auto is = several(memory, some.q, *sees);
            for (std::size_t i = 0; i < n; ++i) {
                auto state = attend.start(memory.of[i]);
                state.head = i;
                const auto drawn = heed::detail::materialize_mask(*sees, some.real, 0, S, T, i);
                const auto must = attend.read_all(memory.of[i], queries[i], state, drawn).contexts;
                CHECK(support::distance(ops::slice_columns(is, i * V, (i + 1) * V), must) < 1e-12);
            }
        }
    };
    history(score::scaled_dot{});
    history(changed);

    const auto attend = by(in_blocks{})(changed);
    const auto keys = random({2, T, D}, 31), queries = random({2, S, D}, 32), loss = random({2, S, D}, 33);
    constexpr heed::detail::kept_scores little{1, 0};  // blocks of 32 queries
    const auto answer = [&](const auto& sees) {
        ad::tape<double> on;
        const auto H = on.parameter(keys), Q = on.parameter(queries);
        const auto memory = attend.on(H, some.real);
        const auto contexts = heed::detail::execute::blocked(attend.score, attend.normalize, attend.combine, memory, Q,
                                                             {0, 2, memory.real}, sees, little);
        on.backward(ops::dot(contexts, loss));
        const auto value = contexts.value(), slope = on.gradient(Q);
        std::vector<double> all(value.data, value.data + value.size());
        all.insert(all.end(), slope.data, slope.data + slope.size());
        return all;
    };
    const auto is = answer(heed::detail::predicate_of_queries<mask>{by_all, 0, S, T, 2}),
               must = answer(support::for_blocks(heed::detail::materialize_mask(by_all, some.real, 0, S, T, 2), 2));
    CHECK(is == must);
}
