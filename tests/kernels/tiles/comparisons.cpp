// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/tiles/comparisons.hpp>

#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/core/family.hpp>
#include <heed/kernels/tiles/relative_comparison.hpp>
#include <heed/ops/tiles.hpp>
#include <support/exhaustive.hpp>
#include <support/gradients.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <vector>

using namespace heed;
using support::random;

// Comparisons of tiles other than inner products, by the definition and finite differences.

namespace {

using kernels::tiles::unmasked;
using kernels::tiles::unmodified;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct size {
    std::size_t B, S, T, heads, groups, d, D;
    bool causal;
};

/// The score of a query and a key, [d] each, in a head, at a distance.
using comparison = std::function<double(const double*, const double*, std::size_t, std::size_t, long)>;

comparison additive_by_hand(const array<double, 1>& v)
{
    return [v = v.data()](const double* q, const double* k, std::size_t d, std::size_t head, long) {
        double sum = 0;
        for (std::size_t i = 0; i < d; ++i) sum += v[head * d + i] * std::tanh(q[i] + k[i]);
        return sum;
    };
}
/// D of a head, [d,2R+1].
comparison distances_by_hand(const array<double, 1>& D, long reach)
{
    return [D = D.data(), reach](const double* q, const double* k, std::size_t d, std::size_t head, long away) {
        const auto columns = static_cast<std::size_t>(2 * reach + 1);
        const auto r = static_cast<std::size_t>(std::clamp(away, -reach, reach) + reach);
        double sum = 0;
        for (std::size_t i = 0; i < d; ++i) sum += q[i] * (k[i] + D[(head * d + i) * columns + r]);
        return sum;
    };
}
double closeness_by_hand(const double* q, const double* k, std::size_t d, std::size_t, long)
{
    double sum = 0;
    for (std::size_t i = 0; i < d; ++i) sum += (q[i] - k[i]) * (q[i] - k[i]);
    return 1 / (1 + std::sqrt(sum));
}

/// The definition in scalar loops.
array<double, 3> by_hand(const comparison& compare, const array<double, 3>& q, const array<double, 3>& k,
                         const array<double, 3>& v, const lengths& real, const size& z, double scale)
{
    array<double, 3> all(shape_of_rank<3>{z.B, z.S, z.heads * z.D}, 0.0);
    for (std::size_t b = 0; b < z.B; ++b) {
        for (std::size_t h = 0; h < z.heads; ++h) {
            const std::size_t g = h / (z.heads / z.groups);
            const double *const keys = k.data() + (b * z.T * z.groups + g) * z.d, *const values =
                                                                                      v.data() +
                                                                                      (b * z.T * z.groups + g) * z.D;
            for (std::size_t s = 0; s < z.S; ++s) {
                std::vector<double> e;
                for (std::size_t t = 0; t < real[b]; ++t) {
                    if (z.causal && t + z.S > real[b] + s) break;
                    e.push_back(scale * compare(&q(b, s, h * z.d), keys + t * z.groups * z.d, z.d, h,
                                                static_cast<long>(t) - static_cast<long>(s)));
                }
                double top = -1e300, total = 0;
                for (const double x : e) top = std::max(top, x);
                for (double& x : e) total += x = std::exp(x - top);
                double* const to = &all(b, s, h * z.D);
                for (std::size_t t = 0; t < e.size(); ++t) {
                    const double weight = e[t] / total, *const value = values + t * z.groups * z.D;
                    for (std::size_t i = 0; i < z.D; ++i) to[i] += weight * value[i];
                }
            }
        }
    }
    return all;
}

/// softmax with any comparison; `factors` for comparisons that have some.
template <class Compare, class Mask = unmasked>
auto answers_of(const auto& q, const auto& k, const auto& v, const auto& factors, const lengths& real,
                const ops::heads_of& how, const Mask& mask = {})
{
    if constexpr (Compare::has_factors) {
        const ops::attend_tiled_op attend{unmodified{}, mask, kernels::tiles::softmax{}, Compare{}};
        return attend(q, k, v, factors,
                      constant_like(q, shape_of_rank<1>{how.heads}, -std::numeric_limits<double>::infinity()),
                      constant_like(q, shape_of_rank<1>{1}, 0), real, how);
    } else {
        return ops::attend_tiled_op{unmodified{}, mask, kernels::tiles::softmax{}, Compare{}}(q, k, v, real, how);
    }
}

lengths lengths_for(const size& z)
{
    std::vector<std::size_t> counts(z.B, z.T);
    if (z.B > 1) counts[1] = z.T / 2;
    if (z.B > 2) counts[2] = 0;
    return lengths(counts);
}

/// The maximum difference from the definition, |a − b| / (1 + |b|), in numbers of type T; keys and values of the
/// padding are NaN.
template <class T, class Compare>
double distance_from_hand(const size& z, double spread, const comparison& compare, const array<double, 1>& factors)
{
    const auto q = random({z.B, z.S, z.heads * z.d}, 1, spread);
    auto k = random({z.B, z.T, z.groups * z.d}, 2, spread), v = random({z.B, z.T, z.groups * z.D}, 3);
    const lengths real = lengths_for(z);
    const auto must = by_hand(compare, q, k, v, real, z, 0.7);
    for (std::size_t b = 0; b < z.B; ++b) {
        for (std::size_t t = real[b]; t < z.T; ++t) {
            k(b, t, 0) = nan;
            v(b, t, 0) = nan;
        }
    }
    const ops::heads_of how{z.heads, z.groups, 0.7};
    const auto Q = support::converted<T>(q), K = support::converted<T>(k), V = support::converted<T>(v);
    const auto F = support::converted<T>(factors);
    const auto is = z.causal ? answers_of<Compare>(Q, K, V, F, real, how, not_behind{})
                             : answers_of<Compare>(Q, K, V, F, real, how);
    return support::distance(support::converted<double>(is), must);
}

const size sizes[] = {{2, 3, 5, 1, 1, 4, 3, false},   {1, 70, 200, 2, 1, 5, 17, false}, {2, 65, 97, 4, 2, 16, 16, true},
                      {1, 5, 130, 1, 1, 1, 40, true}, {3, 9, 4, 2, 2, 3, 70, true},     {1, 33, 30, 1, 1, 64, 64, true},
                      {1, 17, 9, 1, 1, 256, 2, false}};

}  // namespace

TEST_CASE("contexts match the definition, for any size")
{
    constexpr std::size_t all_reaches[] = {0, 3, 40, 300};
    std::size_t half = 0;  // alternating half of the reaches
    for (const size& z : sizes) {
        half = 1 - half;
        const auto v = random({z.heads * z.d}, 7);
        CHECK(distance_from_hand<double, kernels::tiles::additive>(z, 1, additive_by_hand(v), v) < 1e-13);
        CHECK(distance_from_hand<double, kernels::tiles::closeness>(z, 1, closeness_by_hand, v) < 1e-13);
        for (std::size_t r = 0; r < std::size(all_reaches); ++r) {
            const std::size_t reach = all_reaches[r];
            if (r % 2 != half && !support::exhaustive()) continue;
            const auto D = random({z.heads * z.d * (2 * reach + 1)}, 8);
            const auto hand = distances_by_hand(D, static_cast<long>(reach));
            CHECK(distance_from_hand<double, kernels::tiles::inner_product_with_distances>(z, 1, hand, D) < 1e-13);
        }
    }
}

TEST_CASE("in float")
{
    for (const size& z : sizes) {
        const auto v = support::converted<double>(support::converted<float>(random({z.heads * z.d}, 7)));
        CHECK(distance_from_hand<float, kernels::tiles::additive>(z, 1, additive_by_hand(v), v) < 1e-5);
        CHECK(distance_from_hand<float, kernels::tiles::closeness>(z, 1, closeness_by_hand, v) < 1e-5);
        const auto D = support::converted<double>(support::converted<float>(random({z.heads * z.d * 7}, 8)));
        CHECK(distance_from_hand<float, kernels::tiles::inner_product_with_distances>(z, 1, distances_by_hand(D, 3),
                                                                                      D) < 1e-5);
    }
}

TEST_CASE("numbers beyond the range of the exponentials, a few or nearly all")
{
    const size z{2, 70, 101, 1, 1, 5, 3, true};
    const auto v = random({z.d}, 7);
    for (const double spread : {30.0, 200.0, 1e4}) {  // the limit is 80 in double, 10 in float
        CHECK(distance_from_hand<double, kernels::tiles::additive>(z, spread, additive_by_hand(v), v) < 1e-12);
        CHECK(distance_from_hand<double, kernels::tiles::closeness>(z, spread, closeness_by_hand, v) < 1e-13);
    }
    for (const double spread : {4.0, 30.0})  // the numbers themselves are rounded to 2e-6
        CHECK(distance_from_hand<float, kernels::tiles::additive>(z, spread, additive_by_hand(v), v) < 2e-5);
}

TEST_CASE("gradients")
{
    for (const size& z :
         {size{2, 3, 5, 2, 1, 2, 3, false}, {1, 4, 6, 1, 1, 3, 2, true}, {1, 1, 9, 1, 1, 1, 1, false}}) {
        std::vector<std::size_t> counts(z.B, z.T);
        if (z.B > 1) counts[1] = 3;
        const lengths real(counts);
        const ops::heads_of how{z.heads, z.groups, 0.7};
        const auto q = random({z.B, z.S, z.heads * z.d}, 1), k = random({z.B, z.T, z.groups * z.d}, 2),
                   v = random({z.B, z.T, z.groups * z.D}, 3);
        const auto factors = random({z.heads * z.d}, 4);
        for (const std::size_t threads : {1u, 3u}) {
            set_threads(threads);
            const auto additive = [&](const auto& x, const auto& y, const auto& w, const auto& f) {
                return answers_of<kernels::tiles::additive>(x, y, w, f, real, how, not_behind{});
            };
            CHECK_GRADIENT(additive, q, k, v, factors);
            const auto distances = [&](const auto& x, const auto& y, const auto& w, const auto& f) {
                return answers_of<kernels::tiles::inner_product_with_distances>(x, y, w, f, real, how, not_behind{});
            };
            CHECK_GRADIENT(distances, q, k, v, random({z.heads * z.d * 5}, 4));
            const auto close = [&](const auto& x, const auto& y, const auto& w) {
                return answers_of<kernels::tiles::closeness>(x, y, w, factors, real, how);
            };
            CHECK_GRADIENT(close, q, k, v);
        }
        set_threads(1);
    }
}

namespace {

template <class T>
struct gradients {
    array<T, 3> q, k, v;
    array<T, 1> factors;
};

template <class Compare, class T>
gradients<T> gradients_of(const array<T, 3>& q, const array<T, 3>& k, const array<T, 3>& v, const array<T, 1>& factors,
                          const lengths& real, const ops::heads_of& how)
{
    ad::tape<T> on;
    const auto Q = on.parameter(q), K = on.parameter(k), V = on.parameter(v);
    const auto F = on.parameter(factors);
    const auto c = answers_of<Compare>(Q, K, V, F, real, how, not_behind{});
    on.backward(ops::dot(c, support::uneven<T>(c.shape())));
    const auto gradient = [&](const auto& x) { return copy_of(on.gradient(x)); };
    return {gradient(Q), gradient(K), gradient(V), gradient(F)};
}

template <class T>
bool same_bits(const gradients<T>& a, const gradients<T>& b)
{
    return support::same_bits(a.q, b.q) && support::same_bits(a.k, b.k) && support::same_bits(a.v, b.v) &&
           support::same_bits(a.factors, b.factors);
}

}  // namespace

TEST_CASE("both forms of tanh, and both types, have the same gradient")
{
    // Shifting queries and keys in opposite directions keeps the sums, but exceeds the range.
    const size z{1, 37, 50, 1, 1, 5, 3, true};
    const auto q = random({z.B, z.S, z.d}, 1), k = random({z.B, z.T, z.d}, 2), v = random({z.B, z.T, z.D}, 3);
    const auto factors = random({z.d}, 4);
    const lengths real = lengths::full(z.B, z.T);
    const ops::heads_of how{.scale = 0.7};
    auto far_q = q, far_k = k;
    for (std::size_t i = 0; i < q.size(); ++i) far_q.data()[i] += 128;
    for (std::size_t i = 0; i < k.size(); ++i) far_k.data()[i] -= 128;
    const auto must = gradients_of<kernels::tiles::additive>(q, k, v, factors, real, how);
    const auto far = gradients_of<kernels::tiles::additive>(far_q, far_k, v, factors, real, how);
    CHECK(support::distance(far.q, must.q) < 1e-11);
    CHECK(support::distance(far.k, must.k) < 1e-11);
    CHECK(support::distance(far.v, must.v) < 1e-11);
    CHECK(support::distance(far.factors, must.factors) < 1e-11);
    const auto in_float = gradients_of<kernels::tiles::additive>(
        support::converted<float>(q), support::converted<float>(k), support::converted<float>(v),
        support::converted<float>(factors), real, how);
    CHECK(support::distance(support::converted<double>(in_float.q), must.q) < 1e-5);
    CHECK(support::distance(support::converted<double>(in_float.k), must.k) < 1e-5);
    CHECK(support::distance(support::converted<double>(in_float.v), must.v) < 1e-5);
    CHECK(support::distance(support::converted<double>(in_float.factors), must.factors) < 1e-5);
}

TEST_CASE("gradients are the same bits in every run, at any number of threads")
{
    const size z{2, 70, 130, 2, 1, 5, 3, true};
    const auto q = random({z.B, z.S, z.heads * z.d}, 1), k = random({z.B, z.T, z.d}, 2), v = random({z.B, z.T, z.D}, 3);
    const auto factors = random({z.heads * z.d}, 4);
    const lengths real({130, 61});
    const ops::heads_of how{2, 1, 0.7};
    for (const std::size_t threads : {1u, 2u, 3u}) {
        set_threads(threads);
        const auto once = gradients_of<kernels::tiles::additive>(q, k, v, factors, real, how);
        CHECK(same_bits(once, gradients_of<kernels::tiles::additive>(q, k, v, factors, real, how)));
        using distances = kernels::tiles::inner_product_with_distances;
        const auto D = random({z.heads * z.d * 31}, 4);
        const auto also = gradients_of<distances>(q, k, v, D, real, how);
        CHECK(same_bits(also, gradients_of<distances>(q, k, v, D, real, how)));
    }
    set_threads(1);
}

TEST_CASE("a sentence has the same result next to a sentence beyond the range")
{
    const size z{2, 20, 30, 1, 1, 5, 3, false};
    auto q = random({z.B, z.S, z.d}, 1), k = random({z.B, z.T, z.d}, 2);
    const auto v = random({z.B, z.T, z.D}, 3);
    const auto factors = random({z.d}, 4);
    const auto answer = [&] {
        return answers_of<kernels::tiles::additive>(q, k, v, factors, lengths({30, 20}), ops::heads_of{});
    };
    const auto before = answer();
    for (std::size_t i = 0; i < z.S * z.d; ++i) q.data()[i] *= 1e3;
    for (std::size_t i = 0; i < z.T * z.d; ++i) k.data()[i] *= 1e3;
    for (std::size_t t = 20; t < 30; ++t) k(1, t, 0) = 1e3;
    const auto after = answer();
    for (std::size_t i = z.S * z.D; i < 2 * z.S * z.D; ++i) CHECK(after.data()[i] == before.data()[i]);
}

TEST_CASE("a query equal to a key: the kink of the distance has a gradient of 0")
{
    array<double, 3> q(shape_of_rank<3>{1, 2, 3}, 0.5), k(shape_of_rank<3>{1, 2, 3}, 0.5);
    k(0, 1, 1) = 0.75;
    const auto v = random({1, 2, 2}, 3);
    const auto got = gradients_of<kernels::tiles::closeness>(q, k, v, array<double, 1>{0.0}, lengths({2}), {});
    for (const std::size_t s : {0u, 1u}) {
        CHECK(got.q(0, s, 0) == 0);
        CHECK(std::isfinite(got.q(0, s, 1)));
        CHECK(got.q(0, s, 2) == 0);
    }
    CHECK(got.q(0, 1, 1) != 0);
    for (std::size_t i = 0; i < 3; ++i) CHECK(got.k(0, 0, i) == 0);
}

TEST_CASE("lanes without a query do not contribute to sums, even if their weights are infinite")
{
    // Three queries. A lane of zeros has scores 2000 · tanh(k), with an infinite exponential.
    const auto q = random({1, 3, 2}, 1), v = random({1, 9, 2}, 3);
    auto k = random({1, 9, 2}, 2);
    for (std::size_t i = 0; i < k.size(); ++i) k.data()[i] = 3 + 0.01 * k.data()[i];
    const array<double, 1> factors{2000, 1};
    const auto f = [&](const auto& x, const auto& y, const auto& z) {
        return answers_of<kernels::tiles::additive>(x, y, z, factors, lengths({9}), ops::heads_of{});
    };
    CHECK_GRADIENT(f, q, k, v);
    const auto shifted = [](auto e, score_index p, const auto& table) { return 0.01 * e + 2000 + table(p.key); };
    const ops::attend_tiled_op attend{shifted, unmasked{}, kernels::tiles::softmax{}, kernels::tiles::additive{}};
    const auto table = random({9}, 6, 0.001);
    const auto learns = [&](const auto& x, const auto& by) {
        return attend(x, k, v, factors, constant_like(x, shape_of_rank<1>{1}, -std::numeric_limits<double>::infinity()),
                      by, lengths({9}), ops::heads_of{});
    };
    CHECK_GRADIENT(learns, q, table);
    const auto raised = [](auto e, score_index p, const auto& t) { return e + 2000 + t(p.key); };
    const ops::attend_tiled_op products{raised, unmasked{}, kernels::tiles::softmax{}};
    const auto of_products = [&](const auto& x, const auto& by) {
        return products(x, k, v, factors,
                        constant_like(x, shape_of_rank<1>{1}, -std::numeric_limits<double>::infinity()), by,
                        lengths({9}), ops::heads_of{});
    };
    CHECK_GRADIENT(of_products, q, table);
}

TEST_CASE("factors that do not fit are rejected")
{
    const auto q = random({1, 3, 4}, 1), k = random({1, 5, 4}, 2);
    CHECK_THROWS_WITH_AS(answers_of<kernels::tiles::additive>(q, k, k, random({3}, 4), lengths({5}), ops::heads_of{}),
                         doctest::Contains("the factors of the score"), shape_error);
    using distances = kernels::tiles::inner_product_with_distances;
    for (const std::size_t wrong : {8u, 13u})  // an even number of columns; not a multiple of the width
        CHECK_THROWS_WITH_AS(answers_of<distances>(q, k, k, random({wrong}, 4), lengths({5}), ops::heads_of{}),
                             doctest::Contains("the factors of the score"), shape_error);
}

TEST_CASE("a key that no query sees may be NaN: parameters get the same gradient as without it")
{
    // The sums for queries are NaN then, and the backward pass restarts with masking.
    const auto q = random({1, 20, 3}, 1), v = random({1, 20, 2}, 3);
    const auto D = random({3 * 5}, 4);
    auto k = random({1, 20, 3}, 2);
    const mask_mod others{[](score_index p) { return p.key != 4; }};
    const auto of_distances = [&] {
        ad::tape<double> on;
        const auto Q = on.parameter(q), K = on.parameter(k);
        const auto F = on.parameter(D);
        const auto c = answers_of<kernels::tiles::inner_product_with_distances>(Q, K, v, F, lengths({20}),
                                                                                ops::heads_of{}, others);
        on.backward(ops::dot(c, support::uneven<double>(c.shape())));
        return std::pair{copy_of(on.gradient(Q)), copy_of(on.gradient(F))};
    };
    const auto of_bias = [&] {
        const array<double, 1> bias{0.3}, nothing{-std::numeric_limits<double>::infinity()};
        ad::tape<double> on;
        const auto Q = on.parameter(q), K = on.parameter(k);
        const auto b = on.parameter(bias);
        const ops::attend_tiled_op attend{unmodified{}, others, kernels::tiles::learned_sigmoid{}};
        const auto c = attend(Q, K, v, on.constant(nothing), b, on.constant(nothing), lengths({20}), ops::heads_of{});
        on.backward(ops::dot(c, support::uneven<double>(c.shape())));
        return std::pair{copy_of(on.gradient(Q)), copy_of(on.gradient(b))};
    };
    const auto [q_by_distance, by_distance] = of_distances();
    const auto [q_by_bias, by_bias] = of_bias();
    for (std::size_t i = 0; i < 3; ++i) k(0, 4, i) = std::numeric_limits<double>::quiet_NaN();
    const auto [q_with_nan, with_nan] = of_distances();
    const auto [q_bias_with_nan, bias_with_nan] = of_bias();
    CHECK(support::distance(q_with_nan, q_by_distance) < 1e-14);
    CHECK(support::distance(with_nan, by_distance) < 1e-14);
    CHECK(support::distance(q_bias_with_nan, q_by_bias) < 1e-14);
    CHECK(support::distance(bias_with_nan, by_bias) < 1e-14);
    CHECK(by_bias(0) != 0);
}
