// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/nn/layer_norm.hpp>
#include <support/gradients.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// Sums over many positions in float, compared with double. All numbers have the same sign and nearly the same size, so
// the rounding errors of a single running sum would not cancel but cost two digits.

using namespace heed;

namespace {

constexpr std::size_t P = 100000;

/// 0.1 to 0.3, without a period that could match a block.
template <std::size_t N>
array<float, N> positive(const shape_of_rank<N>& shape, unsigned seed, double size = 1)
{
    array<float, N> x(shape);
    std::uint32_t state = seed * 2654435761u + 1;
    for (std::size_t i = 0; i < x.size(); ++i) {
        state = state * 1664525u + 1013904223u;
        x.data()[i] = static_cast<float>(size * (0.1 + 0.2 * static_cast<double>(state >> 8) / 16777216.0));
    }
    return x;
}

template <std::size_t N>
array<double, N> in_double_of(const array<float, N>& x)
{
    array<double, N> wide(shape_of(x));
    std::copy(x.begin(), x.end(), wide.begin());
    return wide;
}

/// max |a − b| / max |b|
double off(const auto& a, const auto& b)
{
    double apart = 0, most = 1e-300;
    const auto x = view_of(a);
    const auto y = view_of(b);
    for (std::size_t i = 0; i < y.size(); ++i) {
        apart = std::max(apart, std::abs(static_cast<double>(x.data[i]) - y.data[i]));
        most = std::max(most, std::abs(y.data[i]));
        if (!std::isfinite(x.data[i])) return INFINITY;
    }
    return apart / most;
}

/// f(x...) and the gradients of its sum.
template <class T, class F, std::size_t... N>
auto values_and_gradients(const F& f, const array<T, N>&... x)
{
    ad::tape<T> on;
    return std::apply(
        [&](const auto&... v) {
            const auto y = f(v...);
            on.backward(ops::dot(y, filled<T, rank_of<decltype(y)>>(y.shape(), T(1))));
            return std::tuple{copy_of(y.value()), copy_of(on.gradient(v))...};
        },
        std::tuple{on.parameter(x)...});
}

constexpr double enough = 1e-6;

/// Checks that values and gradients in float agree with those in double.
template <class F, std::size_t... N>
void check(const std::string& name, const F& f, double bound, const array<float, N>&... x)
{
    CAPTURE(name);
    const auto is = values_and_gradients<float>(f, x...);
    const auto must = values_and_gradients<double>(f, in_double_of(x)...);
    [&]<std::size_t... i>(std::index_sequence<i...>)
    {
        (
            [&] {
                const std::size_t which = i;
                CAPTURE(which);
                CHECK(off(std::get<i>(is), std::get<i>(must)) < bound);
            }(),
            ...);
    }
    (std::make_index_sequence<sizeof...(N) + 1>{});
}

const lengths all{P};

}  // namespace

TEST_CASE("contexts of very long memories")
{
    const auto values = positive<3>({1, P, 5}, 1), each = positive<3>({1, P, 5}, 2, 1.0 / P);
    const auto weights = positive<2>({1, P}, 3, 1.0 / P);
    check(
        "weighted_sum", [](const auto& w, const auto& h) { return ops::weighted_sum(w, h); }, enough, weights, values);
    check(
        "weighted_sum, a register wide", [](const auto& w, const auto& h) { return ops::weighted_sum(w, h); }, enough,
        weights, positive<3>({1, P, simd::lanes<float>}, 4));
    check(
        "elementwise_sum", [](const auto& w, const auto& h) { return ops::elementwise_sum(w, h); }, enough, each,
        values);
    check(
        "grouped_sum", [](const auto& w, const auto& h) { return ops::grouped_sum(w, h); }, enough,
        positive<3>({1, P, 2}, 5, 1.0 / P), positive<3>({1, P, 4}, 6));
    std::vector<float> context(5);
    kernels::weighted_sum<float>(1, P, 5, nullptr, weights.data(), values.data(), context.data());
    const auto must = ops::weighted_sum(in_double_of(weights), in_double_of(values));
    CHECK(off(tensor_view<const float, 1>{context.data(), {5}}, tensor_view<const double, 1>{must.data(), {5}}) <
          enough);
}

TEST_CASE("weights of very long memories")
{
    const auto e = positive<2>({1, P}, 1);
    const auto each = positive<3>({1, P, 5}, 2);
    // The gradient of a weight is a small difference from the mean: only the weights are compared.
    const auto forward = [](const std::string& name, const auto& f, const auto& x) {
        CAPTURE(name);
        CHECK(off(f(x), f(in_double_of(x))) < enough);
    };
    forward(
        "softmax", [](const auto& x) { return ops::softmax(x, all); }, e);
    forward(
        "softmax of each dimension", [](const auto& x) { return ops::softmax(x, all); }, each);
    forward(
        "weights_by_sum",
        [](const auto& x) {
            return ops::weights_by_sum(x, all, ops::rule_of_sums{1.0, true});
        },
        e);
}

TEST_CASE("gradients that are sums over many positions")
{
    const auto x = positive<3>({1, P, 5}, 1), d = positive<3>({1, P, 5}, 2);
    const auto row = positive<2>({1, 5}, 3);
    const auto v = positive<1>({5}, 4), w = positive<1>({5}, 5);
    const auto d_in_double = in_double_of(d), x_in_double = in_double_of(x);
    const auto times = [&](const auto& y) {
        using T = plain_number<element_of<decltype(y)>>;
        if constexpr (std::is_same_v<T, float>) {
            return ops::multiply(y, d);
        } else {
            return ops::multiply(y, d_in_double);
        }
    };
    check(
        "matvec", [](const auto& a, const auto& b) { return ops::matvec(a, b); }, enough, x, v);
    check(
        "dot_per_position", [](const auto& a, const auto& b) { return ops::dot_per_position(a, b); }, enough, row, x);
    check(
        "add_per_position", [&](const auto& a, const auto& b) { return times(ops::add_per_position(a, b)); }, enough, x,
        row);
    check(
        "a row for all", [&](const auto& a, const auto& b) { return times(ops::add(a, b)); }, enough, x, v);
    check(
        "a number for all", [&](const auto& a, const auto& b) { return times(ops::multiply(a, b)); }, enough, x,
        positive<1>({1}, 6));
    check(
        "linear", [&](const auto& a, const auto& W, const auto& b) { return times(ops::linear(a, W, b)); }, enough, x,
        positive<2>({5, 5}, 7), v);
    check(
        "rms_norm", [&](const auto& a, const auto& g) { return times(ops::rms_norm(a, g, 1e-3)); }, enough, x, v);
    check(
        "layer_norm, its gain and bias",
        [&](const auto& g, const auto& b) {
            using T = element_of<decltype(g)>;
            if constexpr (std::is_same_v<T, float>) {
                return times(ops::layer_norm(x, g, b, 1e-3));
            } else {
                return times(ops::layer_norm(x_in_double, g, b, 1e-3));
            }
        },
        3e-6, v, w);
    check(
        "dot", [](const auto& a, const auto& b) { return ops::dot(a, b); }, enough, x, d);
    check(
        "sum_last", [](const auto& a) { return ops::sum_last(a); }, enough, positive<2>({1, P}, 8));
    word_ids words(P, 1, 1);
    check(
        "lookup", [&](const auto& E) { return times(ops::swap_axes(ops::lookup(E, words))); }, enough,
        positive<2>({2, 5}, 9));
}

TEST_CASE("whole steps over very long memories")
{
    const auto keys = positive<3>({1, P, 3}, 1), values = positive<3>({1, P, 5}, 2);
    const auto query = positive<2>({1, 3}, 3);
    const auto forward = [&](const std::string& name, const auto& f) {
        CAPTURE(name);
        const auto is = f(query, keys, values);
        const auto must = f(in_double_of(query), in_double_of(keys), in_double_of(values));
        CHECK(off(is, must) < enough);
    };
    forward("dot_step",
            [&](const auto& q, const auto& k, const auto& h) { return ops::dot_step(q, k, h, all).context; });
    forward("additive_step", [&](const auto& q, const auto& k, const auto& h) {
        using T = element_of<decltype(q)>;
        return ops::additive_step(q, k, array<T, 1>{T(0.5), T(0.25), T(0.125)}, h, all).context;
    });
    forward("per_dimension_step", [&](const auto& q, const auto& k, const auto& h) {
        using T = element_of<decltype(q)>;
        return ops::per_dimension_step(q, k, filled<T, 2>({3, 5}, T(0.25)), h, all, ops::weights_of_step::left_out)
            .context;
    });
    forward("temporal attention", [&](const auto& q, const auto& k, const auto&) {
        const attention attend{score::dot{}, normalize::temporal{}, combine::weighted_sum{}};
        const auto memory = attend.on(k, all);
        auto seen = attend.step(memory, q, attend.start(memory));
        seen = attend.step(memory, q, seen.state);
        return seen.context;
    });
    const auto as_queries = [](const auto& q) { return ops::reshaped(q, 1, 1, 3); };
    // The gradient of a query is a small difference.
    check(
        "attend_tiled",
        [&](const auto& h) {
            using T = element_of<decltype(h)>;
            if constexpr (std::is_same_v<T, float>) {
                return ops::attend_tiled(as_queries(query), keys, h, all, ops::heads_of{1, 1});
            } else {
                return ops::attend_tiled(as_queries(in_double_of(query)), in_double_of(keys), h, all,
                                         ops::heads_of{1, 1});
            }
        },
        enough, values);
    forward("attend_in_order", [&](const auto& q, const auto& k, const auto& h) {
        using T = element_of<decltype(q)>;
        const ops::attend_in_order_op attend{kernels::tiles::unmodified{}, kernels::tiles::unmasked{},
                                             ops::modulated_by_past{1.0, 0.0}};
        return std::get<0>(attend(as_queries(q), k, h, filled<T, 2>({1, P}, T(0)), q, all, ops::heads_of{}));
    });
    forward("linear_attention", [&](const auto& q, const auto& k, const auto& h) {
        return ops::linear_attention(as_queries(q), k, h, all, false, ops::rule_of_sums{1.0, true});
    });
    forward("add_to_sums", [&](const auto& q, const auto& k, const auto& h) {
        using T = element_of<decltype(q)>;
        return ops::add_to_sums(filled<T, 3>({1, 3, 6}, T(0)), k, h, all, 1.0);
    });
}
