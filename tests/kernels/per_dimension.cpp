// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/per_dimension.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <support/kernels.hpp>
#include <support/special_rows.hpp>

namespace {

using namespace heed;
using namespace heed::kernels;
using namespace heed::test;

template <class T>
struct per_dimension_case {
    std::size_t batch, positions, alignment, width;
    counts lengths;
    list<T> query, keys, V, values, weights, context, normalizer, d_context, d_weights;

    per_dimension_case(std::size_t A, std::size_t D, std::size_t positions_, counts lengths_)
        : batch(lengths_.size()),
          positions(positions_),
          alignment(A),
          width(D),
          lengths(std::move(lengths_)),
          query(some<T>(batch * A, 1)),
          keys(some<T>(batch * positions * A, 2)),
          V(some<T>(A * D, 3)),
          values(some<T>(batch * positions * D, 4)),
          d_context(some<T>(batch * D, 5)),
          d_weights(some<T>(batch * positions * D, 6))
    {
        poison(keys, lengths, positions, A);
        poison(values, lengths, positions, D);
        poison(d_weights, lengths, positions, D);
    }

    per_dimension_step<T> step() const
    {
        return {batch, positions, alignment, width, lengths.data(), query.data(), keys.data(), V.data(), values.data()};
    }

    void forward(bool with_weights = true)
    {
        weights.assign(with_weights ? batch * positions * width : 0, T(77));
        context.assign(batch * width, T(77));
        normalizer.assign(2 * batch * width, T(77));
        per_dimension_forward(step(), with_weights ? weights.data() : nullptr, context.data(), normalizer.data());
    }

    struct gradients {
        list<T> query, keys, V, values;
    };
    gradients backward(bool with_weights, T base = T(0), int only = -1)
    {
        gradients d{list<T>(query.size(), base), list<T>(keys.size(), base), list<T>(V.size(), base),
                    list<T>(values.size(), base)};
        const auto wanted = [only](int which, list<T>& x) { return only < 0 || only == which ? x.data() : nullptr; };
        per_dimension_backward(step(), normalizer.data(), d_context.data(), with_weights ? d_weights.data() : nullptr,
                               wanted(0, d.query), wanted(1, d.keys), wanted(2, d.V), wanted(3, d.values));
        return d;
    }

    double loss(bool with_weights)
    {
        forward();
        double sum = dot(context, d_context);
        for (std::size_t b = 0; with_weights && b < batch; ++b) {
            const std::size_t at = b * positions * width;
            for (std::size_t i = at; i < at + lengths[b] * width; ++i) {
                sum += static_cast<double>(weights[i]) * static_cast<double>(d_weights[i]);
            }
        }
        return sum;
    }

    void check_forward()
    {
        forward();
        list<double> w(weights.size(), 0), c(context.size(), 0);
        for (std::size_t b = 0; b < batch; ++b) {
            list<double> e(lengths[b] * width, 0);
            for (std::size_t t = 0; t < lengths[b]; ++t) {
                for (std::size_t a = 0; a < alignment; ++a) {
                    const double h = std::tanh(static_cast<double>(query[b * alignment + a]) +
                                               static_cast<double>(keys[(b * positions + t) * alignment + a]));
                    for (std::size_t d = 0; d < width; ++d)
                        e[t * width + d] += h * static_cast<double>(V[a * width + d]);
                }
            }
            for (std::size_t d = 0; d < width; ++d) {
                const list<double> column = plain_softmax(lengths[b], width, [&](std::size_t i) { return e[i + d]; });
                for (std::size_t t = 0; t < lengths[b]; ++t) {
                    const std::size_t at = (b * positions + t) * width + d;
                    w[at] = column[t];
                    c[b * width + d] += column[t] * static_cast<double>(values[at]);
                }
            }
        }
        CHECK(far(weights, w) <= 10 * tolerance<T>);
        CHECK(far(context, c) <= 10 * tolerance<T>);
        const list<T> with = context;
        forward(false);
        CHECK(context == with);
    }
};

}  // namespace

TEST_CASE_TEMPLATE("per-dimension step: plain loops agree, and returning weights changes nothing", T, float, double)
{
    for (const std::size_t n : awkward<T>()) {
        per_dimension_case<T>(n, 5, 6, {6, 0, 3, 1}).check_forward();
        per_dimension_case<T>(5, n, 6, {6, 0, 3, 1}).check_forward();
        per_dimension_case<T>(7, 5, n, {n, n / 2, n - 1}).check_forward();
    }
    per_dimension_case<T>(3, 7, 5, {0, 0}).check_forward();
    // Several blocks, of sentences with different lengths.
    per_dimension_case<T>(3, 70, 400, {400, 399, 0, 400, 1, 400, 250, 400, 400, 2}).check_forward();
}

TEST_CASE("per-dimension step: gradients, over one block and over several")
{
    for (const bool with_weights : {false, true}) {
        CAPTURE(with_weights);
        per_dimension_case<double> x(9, 18, 5, {5, 0, 3, 1});
        x.forward();
        const auto d = x.backward(with_weights, 0.5);
        const auto loss = [&] { return x.loss(with_weights); };
        check_gradient("query", x.query, loss, d.query, 0.5);
        check_gradient("keys", x.keys, loss, d.keys, 0.5);
        check_gradient("V", x.V, loss, d.V, 0.5);
        check_gradient("values", x.values, loss, d.values, 0.5);
    }
    per_dimension_case<double> x(2, 3, 900, {900, 900, 850, 0, 3});
    x.forward();
    const auto d = x.backward(true);
    check_gradient(
        "query", x.query, [&] { return x.loss(true); }, d.query, 0);
    check_gradient(
        "V", x.V, [&] { return x.loss(true); }, d.V, 0);
    x.forward();  // the check left the state of its last probe
    for (int only = 0; only < 4; ++only) {
        const auto one = x.backward(true, 0, only);
        CHECK(one.query == (only == 0 ? d.query : list<double>(d.query.size(), 0)));
        CHECK(one.keys == (only == 1 ? d.keys : list<double>(d.keys.size(), 0)));
        CHECK(one.V == (only == 2 ? d.V : list<double>(d.V.size(), 0)));
        CHECK(one.values == (only == 3 ? d.values : list<double>(d.values.size(), 0)));
    }
    list<double> dV(x.V.size());
    const double* const nothing = nullptr;
    per_dimension_backward<double>(x.step(), x.normalizer.data(), x.d_context.data(), nothing, nullptr, nullptr,
                                   dV.data(), nullptr);
    per_dimension_backward<double>(x.step(), x.normalizer.data(), nothing, x.d_weights.data(), nullptr, nullptr,
                                   dV.data(), nullptr);
    CHECK(far(dV, d.V) <= 1e-12);
}

TEST_CASE_TEMPLATE("per-dimension step: alone, in a batch, with any number of threads", T, float, double)
{
    const counts lengths{150, 77, 0, 150, 149, 150, 150, 150, 150, 20, 150, 150};
    per_dimension_case<T> x(40, 259, 150, lengths);
    x.forward();
    const auto d = x.backward(true);
    const auto wide = [](const list<T>& y) { return list<double>(y.begin(), y.end()); };
    for (const std::size_t threads : {2u, 3u}) {
        const with_threads scope(threads);
        auto y = x;
        y.forward();
        const auto dy = y.backward(true);
        // BLAS may use another kernel for a different number of rows: equal only up to rounding.
        CHECK(far(y.weights, wide(x.weights)) <= 10 * tolerance<T>);
        CHECK(far(y.context, wide(x.context)) <= 10 * tolerance<T>);
        CHECK(far(dy.query, wide(d.query)) <= 100 * tolerance<T>);
        CHECK(far(dy.V, wide(d.V)) <= 100 * tolerance<T>);
        CHECK(far(dy.values, wide(d.values)) <= 10 * tolerance<T>);
        if (threads < 3) continue;
        auto again = x;
        again.forward();
        CHECK(again.context == y.context);
        CHECK(again.backward(true).V == dy.V);
    }
    // Only the length matters, not the amount of padding: the bits are the same.
    per_dimension_case<T> other = x;
    for (std::size_t b = 0; b < lengths.size(); ++b) {
        for (std::size_t i = lengths[b] * 40; i < 150 * 40; ++i) other.keys[b * 150 * 40 + i] = T(1);
        for (std::size_t i = lengths[b] * 259; i < 150 * 259; ++i) other.values[b * 150 * 259 + i] = T(1);
    }
    other.forward();
    CHECK(other.context == x.context);
    CHECK(other.weights == x.weights);
    const auto d_other = other.backward(true);
    CHECK(d_other.query == d.query);
    CHECK(d_other.V == d.V);
    CHECK(d_other.keys == d.keys);
}

TEST_CASE("per-dimension step: scores of 1e4 are exact, forward and backward")
{
    per_dimension_case<float> x(1, 2, 3, {3});
    x.query = {0};
    x.keys = {30, -30, 30};
    x.V = {1e4f, -1e4f};  // e = ±1e4
    x.values = {1, 2, 3, 4, 5, 6};
    x.forward();
    CHECK(x.weights == list<float>{0.5f, 0, 0, 1, 0.5f, 0});
    CHECK(x.context == list<float>{3, 4});
    const auto d = x.backward(false);
    CHECK(d.values[0] == 0.5f * x.d_context[0]);
    CHECK(d.values[3] == x.d_context[1]);
    for (const float element : d.V) CHECK(std::isfinite(element));
}

TEST_CASE_TEMPLATE("per-dimension step: special values in a column do not change the others", T, float, double)
{
    each_row<T>([](const list<T>& x) {
        const std::size_t n = x.size(), positions = 9;
        list<T> table(positions * n, T(0.25));
        for (std::size_t d = 0; d < n; ++d) table[(d % positions) * n + d] = x[d];
        list<double> want(table.size());
        for (std::size_t d = 0; d < n; ++d) {
            list<T> column(positions, T(0.25));
            column[d % positions] = x[d];
            const list<double> weights = expected_softmax(column);
            for (std::size_t t = 0; t < positions; ++t) want[t * n + d] = weights[t];
        }
        list<T> top(n), scale(n), context(n), again(table.size());
        kernels::detail::per_dimension_piece<T>(positions, n, table.data(), table.data(), 0, n, top.data(),
                                                scale.data(), context.data(), again.data());
        require_equal(again.data(), want);
    });
}
