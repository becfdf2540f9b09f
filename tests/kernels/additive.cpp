// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/additive.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <support/approx.hpp>
#include <support/kernels.hpp>
#include <support/special_rows.hpp>

namespace {

using namespace heed;
using namespace heed::kernels;
using namespace heed::test;

template <class T>
struct additive_case {
    std::size_t batch, positions, alignment, width;
    counts lengths;
    bool temporal;
    list<T> query, keys, v, values, history;
    list<T> scores, weights, context, next;
    list<T> d_context, d_weights, d_next;

    additive_case(std::size_t A, std::size_t D, std::size_t positions_, counts lengths_, int kind)
        : batch(lengths_.size()),
          positions(positions_),
          alignment(A),
          width(D),
          lengths(std::move(lengths_)),
          temporal(kind > 0),
          query(some<T>(batch * A, 1)),
          keys(some<T>(batch * positions * A, 2)),
          v(some<T>(A, 3)),
          values(some<T>(batch * positions * D, 4)),
          d_context(some<T>(batch * D, 5)),
          d_weights(some<T>(batch * positions, 6)),
          d_next(some<T>(batch * positions, 7))
    {
        if (kind == 2) {
            history = some<T>(batch * positions, 8, 2);
            history[0] = -std::numeric_limits<T>::infinity();
            poison(history, lengths, positions);
        }
        poison(keys, lengths, positions, A);
        poison(values, lengths, positions, D);
        poison(d_weights, lengths, positions);
        poison(d_next, lengths, positions);
    }

    additive_step<T> step() const
    {
        return {batch,        positions,   alignment, width,         lengths.data(),
                query.data(), keys.data(), v.data(),  values.data(), history.empty() ? nullptr : history.data(),
                temporal};
    }

    void forward()
    {
        scores.assign(batch * positions, T(77));
        weights.assign(batch * positions, T(77));
        context.assign(batch * width, T(77));
        next.assign(temporal ? batch * positions : 0, T(77));
        additive_forward(step(), scores.data(), weights.data(), context.data(), temporal ? next.data() : nullptr);
    }

    struct gradients {
        list<T> query, keys, v, values, history;
    };
    gradients backward(T base = T(0))
    {
        gradients d{list<T>(query.size(), base), list<T>(keys.size(), base), list<T>(v.size(), base),
                    list<T>(values.size(), base), list<T>(history.size(), base)};
        additive_backward(step(), scores.data(), weights.data(), d_context.data(), d_weights.data(),
                          temporal ? d_next.data() : nullptr, d.query.data(), d.keys.data(), d.v.data(),
                          d.values.data(), history.empty() ? nullptr : d.history.data());
        return d;
    }

    double loss()
    {
        forward();
        double sum = dot(context, d_context);
        for (std::size_t b = 0; b < batch; ++b) {
            for (std::size_t i = b * positions; i < b * positions + lengths[b]; ++i) {
                sum += static_cast<double>(weights[i]) * static_cast<double>(d_weights[i]);
                if (temporal) sum += static_cast<double>(next[i]) * static_cast<double>(d_next[i]);
            }
        }
        return sum;
    }

    /// The equations of kernels/additive.hpp in plain loops.
    void check_forward()
    {
        forward();
        list<double> e(batch * positions, 0), w(e), c(batch * width, 0), l(e.size(), 0);
        for (std::size_t b = 0; b < batch; ++b) {
            list<double> u(lengths[b]);
            for (std::size_t j = 0; j < lengths[b]; ++j) {
                const std::size_t at = b * positions + j;
                for (std::size_t a = 0; a < alignment; ++a) {
                    e[at] += static_cast<double>(v[a]) * std::tanh(static_cast<double>(query[b * alignment + a]) +
                                                                   static_cast<double>(keys[at * alignment + a]));
                }
                const double L =
                    history.empty() ? -std::numeric_limits<double>::infinity() : static_cast<double>(history[at]);
                u[j] = !temporal || std::isinf(L) ? e[at] : e[at] - L;
                l[at] = std::log(std::exp(L) + std::exp(e[at]));
            }
            const list<double> row = plain_softmax(lengths[b], 1, [&](std::size_t i) { return u[i]; });
            for (std::size_t j = 0; j < lengths[b]; ++j) {
                w[b * positions + j] = row[j];
                for (std::size_t d = 0; d < width; ++d) {
                    c[b * width + d] += row[j] * static_cast<double>(values[(b * positions + j) * width + d]);
                }
            }
        }
        CHECK(far(scores, e) <= 4 * tolerance<T>);
        CHECK(far(weights, w) <= 4 * tolerance<T>);
        CHECK(far(context, c) <= 4 * tolerance<T>);
        if (!temporal) return;
        for (std::size_t b = 0; b < batch; ++b) {
            for (std::size_t j = 0; j < positions; ++j) {
                const std::size_t at = b * positions + j;
                if (j < lengths[b]) {
                    CHECK(static_cast<double>(next[at]) == doctest::Approx(l[at]).epsilon(4 * tolerance<T>));
                } else {
                    CHECK(next[at] == -std::numeric_limits<T>::infinity());
                }
            }
        }
    }
};

}  // namespace

TEST_CASE_TEMPLATE("additive step: plain loops agree", T, float, double)
{
    for (int kind = 0; kind < 3; ++kind) {
        CAPTURE(kind);
        for (const std::size_t n : awkward<T>()) {
            additive_case<T>(n, 5, 6, {6, 0, 3, 1}, kind).check_forward();
            additive_case<T>(5, n, 6, {6, 0, 3, 1}, kind).check_forward();
            additive_case<T>(7, 5, n, {n, n / 2, n - 1}, kind).check_forward();
        }
    }
}

TEST_CASE("additive step: gradients")
{
    for (int kind = 0; kind < 3; ++kind) {
        CAPTURE(kind);
        additive_case<double> x(19, 10, 7, {7, 0, 3, 1}, kind);
        x.forward();
        const double base = 0.5;
        const auto d = x.backward(base);
        const auto loss = [&x] { return x.loss(); };
        check_gradient("query", x.query, loss, d.query, base);
        check_gradient("keys", x.keys, loss, d.keys, base);
        check_gradient("v", x.v, loss, d.v, base);
        check_gradient("values", x.values, loss, d.values, base);
        check_gradient("history", x.history, loss, d.history, base);
    }
}

TEST_CASE_TEMPLATE("additive step: a sentence alone, in a batch, and with any number of threads gives the same bits", T,
                   float, double)
{
    for (int kind = 0; kind < 3; ++kind) {
        for (const std::size_t batch : {2u, 13u}) {
            counts lengths(batch, 150);
            lengths[1] = 77;
            additive_case<T> x(257, 259, 150, lengths, kind);
            x.forward();
            const auto d = x.backward();
            {
                // All pairs of a kind, a size and a number of threads.
                const with_threads scope(2 + (static_cast<std::size_t>(kind) + batch / 13) % 2);
                auto y = x;
                y.forward();
                const auto dy = y.backward();
                CHECK(y.scores == x.scores);
                CHECK(y.weights == x.weights);
                CHECK(y.context == x.context);
                CHECK(y.next == x.next);
                CHECK(dy.query == d.query);
                CHECK(same_bits(dy.keys.data(), d.keys.data(), d.keys.size()));
                CHECK(dy.v == d.v);
                CHECK(dy.values == d.values);
                CHECK(dy.history == d.history);
            }
            additive_case<T> alone(257, 259, 77, {77}, kind);
            const auto row = [&](list<T>& to, const list<T>& from, std::size_t size, std::size_t taken) {
                std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(size), taken, to.begin());
            };
            row(alone.query, x.query, 257, 257);
            row(alone.keys, x.keys, 150 * 257, 77 * 257);
            row(alone.values, x.values, 150 * 259, 77 * 259);
            row(alone.d_context, x.d_context, 259, 259);
            row(alone.d_weights, x.d_weights, 150, 77);
            row(alone.d_next, x.d_next, 150, 77);
            if (kind == 2) row(alone.history, x.history, 150, 77);
            alone.forward();
            const auto da = alone.backward();
            CHECK(same_bits(alone.scores.data(), x.scores.data() + 150, 77));
            CHECK(same_bits(alone.weights.data(), x.weights.data() + 150, 77));
            CHECK(same_bits(alone.context.data(), x.context.data() + 259, 259));
            CHECK(same_bits(da.query.data(), d.query.data() + 257, 257));
            CHECK(same_bits(da.keys.data(), d.keys.data() + 150 * 257, 77 * 257));
            CHECK(same_bits(da.values.data(), d.values.data() + 150 * 259, 77 * 259));
            if (kind == 2) CHECK(same_bits(da.history.data(), d.history.data() + 150, 77));
            for (std::size_t i = 77 * 257; i < 150 * 257; ++i) REQUIRE(d.keys[150 * 257 + i] == 0);
        }
    }
}

TEST_CASE("additive step: each gradient is optional, and so is each incoming gradient")
{
    additive_case<double> x(18, 21, 5, {5, 2}, 2);
    x.forward();
    const auto all = x.backward();
    for (int wanted = 0; wanted < 5; ++wanted) {
        list<double> q(x.query.size()), k(x.keys.size()), v(x.v.size()), h(x.values.size()), l(x.history.size());
        additive_backward(x.step(), x.scores.data(), x.weights.data(), x.d_context.data(), x.d_weights.data(),
                          x.d_next.data(), wanted == 0 ? q.data() : nullptr, wanted == 1 ? k.data() : nullptr,
                          wanted == 2 ? v.data() : nullptr, wanted == 3 ? h.data() : nullptr,
                          wanted == 4 ? l.data() : nullptr);
        if (wanted == 0) CHECK(q == all.query);
        if (wanted == 1) CHECK(k == all.keys);
        if (wanted == 2) CHECK(v == all.v);
        if (wanted == 3) CHECK(h == all.values);
        if (wanted == 4) CHECK(l == all.history);
    }
    // The backward pass is linear in the incoming gradients: the three parts sum to the total.
    list<double> v(x.v.size());
    for (int part = 0; part < 3; ++part) {
        additive_backward<double>(x.step(), x.scores.data(), x.weights.data(), part == 0 ? x.d_context.data() : nullptr,
                                  part == 1 ? x.d_weights.data() : nullptr, part == 2 ? x.d_next.data() : nullptr,
                                  nullptr, nullptr, v.data(), nullptr, nullptr);
    }
    CHECK(far(v, all.v) <= 1e-13);
    list<double> zero(x.keys.size());
    additive_backward<double>(x.step(), x.scores.data(), x.weights.data(), nullptr, nullptr, nullptr, nullptr,
                              zero.data(), nullptr, nullptr, nullptr);
    CHECK(zero == list<double>(zero.size(), 0));
}

TEST_CASE("additive step: scores of 1e4 are exact, with and without history")
{
    // e = 1e4 tanh(k): with k = ±30 exactly ±1e4.
    additive_case<float> x(1, 2, 4, {4}, 2);
    x.v = {1e4f};
    x.query = {0};
    x.keys = {30, -30, 30, 0};
    x.history = {1e4f, -1e4f, -std::numeric_limits<float>::infinity(), 9999};
    x.forward();
    CHECK(x.scores == list<float>{1e4f, -1e4f, 1e4f, 0});
    CHECK(x.weights == list<float>{0, 0, 1, 0});  // u = 0, 0, 1e4, -9999
    CHECK(x.next[0] == support::approx(1e4 + std::log(2.0), 1e-7));
    CHECK(x.next[1] == support::approx(-1e4 + std::log(2.0), 1e-7));
    CHECK(x.next[2] == 1e4f);
    CHECK(x.next[3] == 9999);
    const auto d = x.backward();
    for (const list<float>* gradient : {&d.query, &d.keys, &d.v, &d.values, &d.history}) {
        for (const float element : *gradient) CHECK(std::isfinite(element));
    }
    // L' = log(exp L + exp e) with L = e: each gets half of the gradient.
    CHECK(d.history[0] == support::approx(0.5F * x.d_next[0]));
    CHECK(d.history[2] == 0);
    CHECK(d.history[3] == support::approx(x.d_next[3]));
}

TEST_CASE("weighted sum: gradients of each side separately, and the composed step equals the fused step")
{
    additive_case<double> x(9, 21, 7, {7, 0, 3}, 0);
    x.forward();
    const auto all = x.backward();
    list<double> e = x.scores, c(x.context.size(), 5), w(x.weights.size(), 5);
    softmax(x.batch, x.positions, x.lengths.data(), e.data(), w.data());
    weighted_sum(x.batch, x.positions, x.width, x.lengths.data(), w.data(), x.values.data(), c.data());
    CHECK(w == x.weights);
    CHECK(c == x.context);
    list<double> dw = x.d_weights, dh(x.values.size()), de(e.size()), dh_alone(dh), dw_alone = dw;
    weighted_sum_backward(x.batch, x.positions, x.width, x.lengths.data(), w.data(), x.values.data(),
                          x.d_context.data(), dw.data(), dh.data());
    weighted_sum_backward<double>(x.batch, x.positions, x.width, x.lengths.data(), w.data(), x.values.data(),
                                  x.d_context.data(), nullptr, dh_alone.data());
    weighted_sum_backward<double>(x.batch, x.positions, x.width, x.lengths.data(), w.data(), x.values.data(),
                                  x.d_context.data(), dw_alone.data(), nullptr);
    CHECK(dh == all.values);
    CHECK(dh_alone == dh);
    CHECK(same_bits(dw_alone.data(), dw.data(), dw.size()));
    softmax_backward(x.batch, x.positions, x.lengths.data(), w.data(), dw.data(), de.data());
    list<double> dv(x.v.size());
    additive_scores_backward<double>(x.step(), de.data(), nullptr, nullptr, dv.data());
    CHECK(far(dv, all.v) <= 1e-13);
}

TEST_CASE_TEMPLATE("temporal attention: special values in the history, and a key that is NaN", T, float, double)
{
    each_row<T>([](const list<T>& history) {
        const std::size_t n = history.size();
        const T query = 0, v = 2;
        list<T> keys(n), values(n, T(1)), scores(n), weights(n), next(n), context(1);
        for (std::size_t j = 0; j < n; ++j) keys[j] = static_cast<T>(j % 3) - 1;
        keys[n / 2] = std::isnan(history[0]) ? std::numeric_limits<T>::quiet_NaN() : keys[n / 2];
        const kernels::additive_step<T> step{
            1, n, 1, 1, nullptr, &query, keys.data(), &v, values.data(), history.data(), true};
        kernels::additive_forward(step, scores.data(), weights.data(), context.data(), next.data());
        list<T> left(n);
        list<double> summed(n);
        for (std::size_t j = 0; j < n; ++j) {
            const T e = scores[j], L = history[j];
            left[j] = L == -infinity<T> ? e : e - L;
            const double high = static_cast<double>(e > L ? e : L), low = static_cast<double>(e > L ? L : e);
            summed[j] = L == -infinity<T> ? static_cast<double>(e) : high + std::log1p(std::exp(low - high));
        }
        require_equal(weights.data(), expected_softmax(left));
        require_equal(next.data(), summed);
    });
}
