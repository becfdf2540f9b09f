// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/tiles.hpp>

#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

using namespace heed;
using support::random;

namespace {

struct size {
    std::size_t B, S, T, heads, groups, d, D;
    bool causal;
};

/// The definition in scalar loops.
std::vector<double> by_hand(const array<double, 3>& q, const array<double, 3>& k, const array<double, 3>& v,
                            const lengths& real, const size& z, double scale)
{
    std::vector<double> all(z.B * z.S * z.heads * z.D, 0.0);
    for (std::size_t b = 0; b < z.B; ++b) {
        for (std::size_t h = 0; h < z.heads; ++h) {
            const std::size_t g = h / (z.heads / z.groups);
            for (std::size_t s = 0; s < z.S; ++s) {
                std::vector<double> e;
                for (std::size_t t = 0; t < real[b]; ++t) {
                    if (z.causal && t + z.S > real[b] + s) break;
                    double sum = 0;
                    for (std::size_t i = 0; i < z.d; ++i) sum += q(b, s, h * z.d + i) * k(b, t, g * z.d + i);
                    e.push_back(scale * sum);
                }
                double top = -1e300, total = 0;
                for (const double x : e) top = std::max(top, x);
                for (double& x : e) total += x = std::exp(x - top);
                for (std::size_t t = 0; t < e.size(); ++t) {
                    for (std::size_t i = 0; i < z.D; ++i)
                        all[((b * z.S + s) * z.heads + h) * z.D + i] += e[t] / total * v(b, t, g * z.D + i);
                }
            }
        }
    }
    return all;
}

auto answers_of(const auto& q, const auto& k, const auto& v, const lengths& real, const size& z)
{
    const ops::heads_of how{z.heads, z.groups, 0.7};
    if (z.causal) return ops::attend_tiled_op{kernels::tiles::unmodified{}, not_behind{}}(q, k, v, real, how);
    return ops::attend_tiled(q, k, v, real, how);
}

}  // namespace

TEST_CASE("contexts match the definition, for any size")
{
    for (const size& z : {size{2, 3, 5, 1, 1, 4, 3, false},
                          {1, 70, 200, 2, 1, 5, 17, false},
                          {2, 65, 97, 4, 2, 16, 16, true},
                          {1, 5, 130, 1, 1, 1, 40, true},
                          {3, 9, 4, 2, 2, 3, 70, true},
                          {1, 130, 130, 1, 1, 64, 64, true},
                          {2, 270, 331, 4, 2, 8, 16, true}}) {
        const auto q = random({z.B, z.S, z.heads * z.d}, 1), k = random({z.B, z.T, z.groups * z.d}, 2);
        auto v = random({z.B, z.T, z.groups * z.D}, 3);
        std::vector<std::size_t> counts(z.B, z.T);
        if (z.B > 1) counts[1] = z.T / 2;
        if (z.B > 2) counts[2] = 0;
        const lengths real(counts);
        for (std::size_t t = z.B > 1 ? counts[1] : z.T; t < z.T; ++t)
            v(1, t, 0) = std::numeric_limits<double>::quiet_NaN();
        const auto wanted = by_hand(q, k, v, real, z, 0.7);
        const auto c = answers_of(q, k, v, real, z);
        double worst = 0;
        for (std::size_t i = 0; i < wanted.size(); ++i) worst = std::max(worst, std::abs(c.data()[i] - wanted[i]));
        CHECK(worst < 1e-13);
    }
}

TEST_CASE("gradients")
{
    for (const size& z :
         {size{2, 3, 5, 2, 1, 2, 3, false}, {1, 4, 4, 1, 1, 3, 2, true}, {1, 9, 5, 1, 1, 9, 17, false}}) {
        std::vector<std::size_t> counts(z.B, z.T);
        if (z.B > 1) counts[1] = 3;
        const lengths real(counts);
        for (const std::size_t threads : {1u, 3u}) {
            set_threads(threads);
            const auto f = [&](const auto& q, const auto& k, const auto& v) { return answers_of(q, k, v, real, z); };
            CHECK_GRADIENT(f, random({z.B, z.S, z.heads * z.d}, 1), random({z.B, z.T, z.groups * z.d}, 2),
                           random({z.B, z.T, z.groups * z.D}, 3));
        }
        set_threads(1);
    }
}

TEST_CASE("a score_mod and predicate masks: compared with finite differences and scalar loops")
{
    const size z{2, 19, 23, 2, 2, 3, 2, false};
    const lengths real({23, 20});
    const auto change = [](auto e, score_index p) {
        return 3 * tanh((e - 0.1 * abs(p.query - p.key) * (p.head + 1)) / 3);
    };
    const auto document = [](const auto& at) { return at / 7; };
    const auto seen =
        causal{} & sliding_window{12} & [&](score_index p) { return document(p.key) == document(p.diagonal); };
    const ops::attend_tiled_op attend{change, seen};
    using cube = ops::in<double, 3>;
    using taken = std::remove_const_t<decltype(attend)>;
    static_assert(ops::detail::takes<taken, double, cube, cube, cube, lengths_view, ops::heads_of>());
    static_assert(!ops::detail::takes<taken, double, cube, cube, ops::in<double, 2>, lengths_view, ops::heads_of>());
    const auto q = random({z.B, z.S, z.heads * z.d}, 1), k = random({z.B, z.T, z.heads * z.d}, 2);
    const auto v = random({z.B, z.T, z.heads * z.D}, 3);
    const auto f = [&](const auto& x, const auto& y, const auto& w) {
        return attend(x, y, w, real, ops::heads_of{z.heads, z.groups, 0.7});
    };
    CHECK_GRADIENT(f, q, k, v);
    const auto contexts = f(q, k, v);
    double worst = 0;
    for (std::size_t b = 0; b < z.B; ++b) {
        for (std::size_t h = 0; h < z.heads; ++h) {
            for (std::size_t s = 0; s < z.S; ++s) {
                const int at = static_cast<int>(real[b] - z.S + s);
                std::vector<double> c(z.D, 0.0);
                double total = 0;
                for (int t = 0; t <= at; ++t) {
                    if (at - t >= 12 || t / 7 != at / 7) continue;
                    double e = 0;
                    for (std::size_t i = 0; i < z.d; ++i)
                        e += 0.7 * q(b, s, h * z.d + i) * k(b, static_cast<std::size_t>(t), h * z.d + i);
                    e = 3 * std::tanh((e - 0.1 * std::abs(static_cast<int>(s) - t) * static_cast<double>(h + 1)) / 3);
                    total += std::exp(e);
                    for (std::size_t i = 0; i < z.D; ++i)
                        c[i] += std::exp(e) * v(b, static_cast<std::size_t>(t), h * z.D + i);
                }
                for (std::size_t i = 0; i < z.D; ++i)
                    worst = std::max(worst, std::abs(c[i] / total - contexts(b, s, h * z.D + i)));
            }
        }
    }
    CHECK(worst < 1e-13);
}

namespace {

/// Weights of a row, by the definition.
std::vector<double> weights_by_hand(const kernels::tiles::softmax&, const std::vector<double>& e)
{
    std::vector<double> w;
    double all = 0;
    for (const double x : e) all += std::exp(x);
    for (const double x : e) w.push_back(std::exp(x) / all);
    return w;
}
std::vector<double> weights_by_hand(const kernels::tiles::sigmoid& rule, const std::vector<double>& e)
{
    std::vector<double> w;
    for (const double x : e) w.push_back(1 / (1 + std::exp(-x - rule.bias)));
    return w;
}
template <int power>
std::vector<double> weights_by_hand(const kernels::tiles::sparse_weights<power>&, const std::vector<double>& e)
{
    static_assert(power == 1 || power == 2);
    const auto weight = [](double x, double tau) {
        const double above = std::max(x / power - tau, 0.0);
        return power == 1 ? above : above * above;
    };
    double high = *std::max_element(e.begin(), e.end()) / power, low = high - 1;  // of tau
    for (int i = 0; i < 60; ++i) {
        const double tau = (low + high) / 2;
        double all = 0;
        for (const double x : e) all += weight(x, tau);
        (all > 1 ? low : high) = tau;
    }
    std::vector<double> w;
    for (const double x : e) w.push_back(weight(x, low));
    return w;
}
std::vector<double> weights_by_hand(const kernels::tiles::top_k& rule, const std::vector<double>& e)
{
    std::vector<double> w, sorted = e;
    std::sort(sorted.begin(), sorted.end(), std::greater<>{});
    const double last = sorted[std::min(rule.k, e.size()) - 1];
    double all = 0;
    for (const double x : e) {
        w.push_back(x >= last ? std::exp(x) : 0);
        all += w.back();
    }
    for (double& x : w) x /= all;
    return w;
}

/// `spread` scales the scores: small values make nearly all weights equal. `sees(at, key)`: the mask.
template <class Rule, class Mask = causal>
void check_rule(
    const Rule& rule, double spread, const Mask& seen = {},
    bool (*sees)(std::size_t, std::size_t) = [](std::size_t at, std::size_t key) { return key <= at; })
{
    const std::size_t S = 70, T = 400, d = 3, D = 5;
    const lengths real({400, 333});
    const auto q = random({2, S, d}, 1), k = random({2, T, d}, 2), v = random({2, T, D}, 3);
    const ops::attend_tiled_op attend{kernels::tiles::unmodified{}, detail::as_predicate(seen), rule};
    const auto c = attend(q, k, v, real, ops::heads_of{.scale = spread});
    double worst = 0;
    for (std::size_t b = 0; b < 2; ++b) {
        for (std::size_t s = 0; s < S; ++s) {
            std::vector<double> e;
            std::vector<std::size_t> keys;
            for (std::size_t t = 0; t < real[b]; ++t) {
                if (!sees(real[b] - S + s, t)) continue;
                keys.push_back(t);
                e.push_back(0);
                for (std::size_t i = 0; i < d; ++i) e.back() += spread * q(b, s, i) * k(b, t, i);
            }
            const auto w = weights_by_hand(rule, e);
            for (std::size_t i = 0; i < D; ++i) {
                double sum = 0;
                for (std::size_t t = 0; t < e.size(); ++t) sum += w[t] * v(b, keys[t], i);
                worst = std::max(worst, std::abs(sum - c(b, s, i)));
            }
        }
    }
    CHECK(worst < 1e-12 * static_cast<double>(T));
    const auto short_queries = random({2, 4, d}, 4), few_keys = random({2, 9, d}, 5), few = random({2, 9, D}, 6);
    const auto f = [&](const auto& x, const auto& y, const auto& z) {
        return attend(x, y, z, lengths({9, 5}), ops::heads_of{.scale = spread});
    };
    CHECK_GRADIENT(f, short_queries, few_keys, few);
}

}  // namespace

TEST_CASE("other normalizers than softmax: compared with the definition and finite differences")
{
    check_rule(kernels::tiles::softmax{}, 1);
    check_rule(kernels::tiles::sigmoid{}, 1);
    check_rule(kernels::tiles::sigmoid{-2}, 3);
    check_rule(kernels::tiles::sparse_weights<1>{}, 3);
    check_rule(kernels::tiles::sparse_weights<1>{}, 1e-4);
    check_rule(kernels::tiles::sparse_weights<2>{}, 3);
    check_rule(kernels::tiles::sparse_weights<2>{}, 1e-4);
    check_rule(kernels::tiles::top_k{1}, 1);
    check_rule(kernels::tiles::top_k{5}, 1);
    check_rule(kernels::tiles::top_k{100}, 1);
}

TEST_CASE("a number for each head: every head of every sentence equals one head with its number, with gradients")
{
    constexpr std::size_t B = 2, S = 3, T = 5, H = 2, d = 3, D = 4;
    const auto q = random({B, S, H * d}, 1), k = random({B, T, H * d}, 2), v = random({B, T, H * D}, 3);
    const array<double, 1> biases{-0.5, 1.5}, none(shape_of_rank<1>{0}), table{0.0};
    const lengths real{5, 4};
    const auto both = [&](const auto& queries, const auto& keys, const auto& values, const auto& numbers) {
        const ops::attend_tiled_op attend{kernels::tiles::unmodified{},
                                          detail::as_predicate(kernels::tiles::unmasked{}),
                                          kernels::tiles::learned_sigmoid{}};
        return attend(queries, keys, values, none, numbers, table, real, ops::heads_of{.heads = H, .groups = H});
    };
    const array<double, 3> c = both(q, k, v, biases);
    for (std::size_t h = 0; h < H; ++h) {
        const ops::attend_tiled_op attend{kernels::tiles::unmodified{},
                                          detail::as_predicate(kernels::tiles::unmasked{}),
                                          kernels::tiles::sigmoid{biases(h)}};
        const array<double, 3> alone =
            attend(ops::slice_columns(q, h * d, (h + 1) * d), ops::slice_columns(k, h * d, (h + 1) * d),
                   ops::slice_columns(v, h * D, (h + 1) * D), real, ops::heads_of{});
        for (std::size_t i = 0; i < alone.size(); ++i)
            CHECK(c.data()[(i / D * H + h) * D + i % D] == support::approx(alone.data()[i]));
    }
    CHECK_GRADIENT(both, q, k, v, biases);
}

TEST_CASE("range masks with each normalizer of heed::compiled: compared with the definition and finite differences")
{
    const auto each = [](const auto& rule) {
        check_rule(rule, 1, kernels::tiles::unmasked{}, [](std::size_t, std::size_t) { return true; });
        check_rule(rule, 1, sliding_window{30},
                   [](std::size_t at, std::size_t key) { return key < at + 30 && at < key + 30; });
        check_rule(rule, 1, causal{} & sliding_window{100},
                   [](std::size_t at, std::size_t key) { return key <= at && at < key + 100; });
    };
    each(kernels::tiles::softmax{});
    each(kernels::tiles::sigmoid{});
    each(kernels::tiles::sparse_weights<1>{});
    each(kernels::tiles::sparse_weights<2>{});
}

TEST_CASE("numbers of heads that do not fit are refused, 0 included")
{
    const auto q = random({1, 3, 4}, 1), k = random({1, 5, 4}, 2);
    for (const ops::heads_of& how : {ops::heads_of{.heads = 0},
                                     {.groups = 0},
                                     {.heads = 0, .groups = 0},
                                     {.sharing = 0},
                                     {.heads = 3, .groups = 2}})
        CHECK_THROWS_AS((void)ops::attend_tiled(q, k, k, lengths{5}, how), shape_error);
}
