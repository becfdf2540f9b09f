// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include <heed/kernels/additive.hpp>
#include <heed/kernels/cross_entropy.hpp>
#include <heed/kernels/optimizers.hpp>
#include <heed/kernels/per_dimension.hpp>
#include <heed/kernels/recurrent.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/kernels/weighted_sum.hpp>

#include <support/approx.hpp>

// Each kernel against plain loops in double, written independently from the equations; each backward against finite
// differences; the padding is poisoned.

namespace {

using namespace heed;
using namespace heed::kernels;

template <class T>
using list = std::vector<T>;
using counts = std::vector<std::size_t>;

template <class T>
list<T> some(std::size_t n, unsigned seed, double size = 1)
{
    std::uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
    list<T> x(n);
    for (T& element : x) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        element = static_cast<T>(size * (static_cast<double>(state >> 33) / 1073741824.0 - 1.0));
    }
    return x;
}

/// Fills the padding of each row with NaN and infinities in turn.
template <class T>
void poison(list<T>& x, const counts& lengths, std::size_t positions, std::size_t width = 1)
{
    const T bad[] = {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(),
                     -std::numeric_limits<T>::infinity()};
    for (std::size_t b = 0; b < lengths.size(); ++b) {
        for (std::size_t i = lengths[b] * width; i < positions * width; ++i) x[b * positions * width + i] = bad[i % 3];
    }
}

template <class T>
bool same_bits(const T* a, const T* b, std::size_t n)
{
    return n == 0 || std::memcmp(a, b, n * sizeof(T)) == 0;
}

template <class T>
double far(const list<T>& got, const list<double>& want)
{
    REQUIRE(got.size() == want.size());
    double most = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        const double off = std::fabs(static_cast<double>(got[i]) - want[i]) / std::max(1.0, std::fabs(want[i]));
        if (!(off <= most)) most = off;  // NaN counts as far
    }
    return most;
}

template <class T>
constexpr double tolerance = sizeof(T) == 4 ? 4e-6 : 1e-13;

/// gradient = base + d loss / d x, by central differences.
void check_gradient(const char* what, list<double>& x, const std::function<double()>& loss,
                    const list<double>& gradient, double base)
{
    INFO(what);
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (!std::isfinite(x[i])) {
            CHECK(gradient[i] == base);
            continue;
        }
        const double before = x[i], h = 1e-5;
        x[i] = before + h;
        const double up = loss();
        x[i] = before - h;
        const double down = loss();
        x[i] = before;
        const double slope = (up - down) / (2 * h);
        CAPTURE(i);
        CHECK(std::fabs(gradient[i] - base - slope) <= 1e-7 * std::max(1.0, std::fabs(slope)));
    }
}

template <class T>
double dot(const list<T>& a, const list<T>& b)
{
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (b[i] != 0) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    }
    return sum;
}

struct with_threads {
    explicit with_threads(std::size_t count) { set_threads(count); }
    ~with_threads() { set_threads(1); }
};

template <class T>
counts awkward()
{
    constexpr std::size_t n = simd::lanes<T>;
    return {1, 3, n - 1, n, n + 1, 257};
}

/// softmax over t of x[t * stride], t < n, in double
list<double> plain_softmax(std::size_t n, std::size_t stride, const std::function<double(std::size_t)>& x)
{
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    for (std::size_t t = 0; t < n; ++t) top = std::max(top, x(t * stride));
    list<double> y(n);
    for (std::size_t t = 0; t < n; ++t) sum += y[t] = std::exp(x(t * stride) - top);
    for (double& e : y) e /= sum;
    return y;
}

}  // namespace

TEST_CASE_TEMPLATE("softmax: plain loops agree, padding is not read, rows stand alone", T, float, double)
{
    for (const std::size_t positions : awkward<T>()) {
        const counts lengths{positions, positions / 2, 0, positions > 2 ? positions - 1 : positions};
        const std::size_t batch = lengths.size();
        list<T> x = some<T>(batch * positions, 7, 5), w(batch * positions, T(9));
        poison(x, lengths, positions);
        softmax(batch, positions, lengths.data(), x.data(), w.data());
        list<double> want(w.size(), 0);
        for (std::size_t b = 0; b < batch; ++b) {
            const list<double> row =
                plain_softmax(lengths[b], 1, [&](std::size_t i) { return static_cast<double>(x[b * positions + i]); });
            std::copy(row.begin(), row.end(), want.begin() + static_cast<std::ptrdiff_t>(b * positions));
        }
        CHECK(far(w, want) <= tolerance<T>);
        for (std::size_t b = 0; b < batch; ++b) {
            list<T> alone(lengths[b]);
            softmax<T>(1, lengths[b], nullptr, x.data() + b * positions, alone.data());
            CHECK(same_bits(alone.data(), w.data() + b * positions, lengths[b]));
            for (std::size_t t = lengths[b]; t < positions; ++t) CHECK(w[b * positions + t] == 0);
        }
        list<T> place = x;
        softmax(batch, positions, lengths.data(), place.data(), place.data());
        CHECK(place == w);
    }
}

TEST_CASE("softmax: large scores, nothing but -inf, very long rows")
{
    const list<float> x{1e4f, -1e4f, 1e4f - 1, 9990};
    list<float> w(4);
    softmax<float>(1, 4, nullptr, x.data(), w.data());
    const double sum = 1 + std::exp(-1.0) + std::exp(-10.0);
    CHECK(far(w, {1 / sum, 0, std::exp(-1.0) / sum, std::exp(-10.0) / sum}) <= 2e-7);

    const list<float> none(5, -std::numeric_limits<float>::infinity());
    list<float> zero(5, 1);
    softmax<float>(1, 5, nullptr, none.data(), zero.data());
    CHECK(zero == list<float>(5, 0));
    softmax_per_dimension<float>(1, 5, 1, nullptr, none.data(), zero.data());
    CHECK(zero == list<float>(5, 0));

    const std::size_t n = 3 << 20;  // one running float sum per lane would be off by far more than the tolerance
    list<float> mixed(n);
    for (std::size_t i = 0; i < n; ++i) mixed[i] = i % 3 == 0 ? 0.0f : -1.1f;
    list<float> share(n);
    softmax<float>(1, n, nullptr, mixed.data(), share.data());
    const double whole = static_cast<double>(n / 3) * (1 + 2 * std::exp(static_cast<double>(-1.1f)));
    CHECK(std::fabs(static_cast<double>(share[12345]) * whole - 1) <= 1e-6);
}

TEST_CASE("softmax: gradient")
{
    const counts lengths{9, 0, 4};
    const std::size_t batch = 3, positions = 9;
    list<double> x = some<double>(27, 1, 2), g = some<double>(27, 2);
    poison(g, lengths, positions);
    const auto loss = [&] {
        list<double> w(27), seen = g;
        for (double& d : seen) d = std::isfinite(d) ? d : 0;
        softmax(batch, positions, lengths.data(), x.data(), w.data());
        return dot(w, seen);
    };
    list<double> w(27), dx(27, 0.25);
    softmax(batch, positions, lengths.data(), x.data(), w.data());
    poison(w, lengths, positions);
    softmax_backward(batch, positions, lengths.data(), w.data(), g.data(), dx.data());
    check_gradient("dx", x, loss, dx, 0.25);
}

TEST_CASE_TEMPLATE("softmax per dimension: plain loops agree, padding is not read, rows stand alone", T, float, double)
{
    for (const std::size_t width : awkward<T>()) {
        for (const std::size_t positions : {1u, 3u, 8u, 21u}) {
            const counts lengths{positions, positions / 2, 0};
            const std::size_t batch = lengths.size(), block = positions * width;
            list<T> x = some<T>(batch * block, 7, 5), w(batch * block, T(9));
            x[0] = sizeof(T) == 4 ? T(1e4) : T(3);
            poison(x, lengths, positions, width);
            softmax_per_dimension(batch, positions, width, lengths.data(), x.data(), w.data());
            list<double> want(w.size(), 0);
            for (std::size_t b = 0; b < batch; ++b) {
                for (std::size_t d = 0; d < width; ++d) {
                    const list<double> column = plain_softmax(
                        lengths[b], width, [&](std::size_t i) { return static_cast<double>(x[b * block + i + d]); });
                    for (std::size_t t = 0; t < lengths[b]; ++t) want[b * block + t * width + d] = column[t];
                }
            }
            CHECK(far(w, want) <= tolerance<T>);
            for (std::size_t b = 0; b < batch; ++b) {
                list<T> alone(lengths[b] * width);
                softmax_per_dimension<T>(1, lengths[b], width, nullptr, x.data() + b * block, alone.data());
                CHECK(same_bits(alone.data(), w.data() + b * block, alone.size()));
            }
        }
    }
}

TEST_CASE("softmax per dimension: gradient")
{
    const counts lengths{5, 0, 3};
    const std::size_t batch = 3, positions = 5, width = 11, n = batch * positions * width;
    list<double> x = some<double>(n, 1, 2), g = some<double>(n, 2);
    const list<double> clean = g;
    poison(g, lengths, positions, width);
    const auto loss = [&] {
        list<double> w(n);
        softmax_per_dimension(batch, positions, width, lengths.data(), x.data(), w.data());
        return dot(w, clean);
    };
    list<double> w(n), dx(n, 0.25);
    softmax_per_dimension(batch, positions, width, lengths.data(), x.data(), w.data());
    poison(w, lengths, positions, width);
    softmax_per_dimension_backward(batch, positions, width, lengths.data(), w.data(), g.data(), dx.data());
    check_gradient("dx", x, loss, dx, 0.25);
}

// ---------------------------------------------------------------------------------------------------------------------

namespace {

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
        list<T> workspace(additive_backward_scratch(step()), std::numeric_limits<T>::quiet_NaN());
        additive_backward(step(), scores.data(), weights.data(), d_context.data(), d_weights.data(),
                          temporal ? d_next.data() : nullptr, d.query.data(), d.keys.data(), d.v.data(),
                          d.values.data(), history.empty() ? nullptr : d.history.data(), workspace.data());
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

    /// The head of kernels/additive.hpp in plain loops.
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

TEST_CASE_TEMPLATE("additive step: a sentence alone, in a batch, and with any number of threads is the same", T, float,
                   double)
{
    for (int kind = 0; kind < 3; ++kind) {
        for (const std::size_t batch : {2u, 13u}) {
            counts lengths(batch, 150);
            lengths[1] = 77;
            additive_case<T> x(257, 259, 150, lengths, kind);
            x.forward();
            const auto d = x.backward();
            for (const std::size_t threads : {2u, 3u}) {
                const with_threads scope(threads);
                additive_case<T> y(257, 259, 150, lengths, kind);
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

TEST_CASE("additive step: each gradient may be left out, and so may each incoming one")
{
    additive_case<double> x(18, 21, 5, {5, 2}, 2);
    x.forward();
    const auto all = x.backward();
    list<double> workspace(additive_backward_scratch(x.step()));
    for (int wanted = 0; wanted < 5; ++wanted) {
        list<double> q(x.query.size()), k(x.keys.size()), v(x.v.size()), h(x.values.size()), l(x.history.size());
        additive_backward(x.step(), x.scores.data(), x.weights.data(), x.d_context.data(), x.d_weights.data(),
                          x.d_next.data(), wanted == 0 ? q.data() : nullptr, wanted == 1 ? k.data() : nullptr,
                          wanted == 2 ? v.data() : nullptr, wanted == 3 ? h.data() : nullptr,
                          wanted == 4 ? l.data() : nullptr, workspace.data());
        if (wanted == 0) CHECK(q == all.query);
        if (wanted == 1) CHECK(k == all.keys);
        if (wanted == 2) CHECK(v == all.v);
        if (wanted == 3) CHECK(h == all.values);
        if (wanted == 4) CHECK(l == all.history);
    }
    // The backward is linear in the incoming gradients: the three parts add up to the whole.
    list<double> v(x.v.size());
    for (int part = 0; part < 3; ++part) {
        additive_backward<double>(x.step(), x.scores.data(), x.weights.data(), part == 0 ? x.d_context.data() : nullptr,
                                  part == 1 ? x.d_weights.data() : nullptr, part == 2 ? x.d_next.data() : nullptr,
                                  nullptr, nullptr, v.data(), nullptr, nullptr, workspace.data());
    }
    CHECK(far(v, all.v) <= 1e-13);
    list<double> zero(x.keys.size());
    additive_backward<double>(x.step(), x.scores.data(), x.weights.data(), nullptr, nullptr, nullptr, nullptr,
                              zero.data(), nullptr, nullptr, nullptr, workspace.data());
    CHECK(zero == list<double>(zero.size(), 0));
}

TEST_CASE("additive step: scores of 1e4 are exact, with history and without")
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

TEST_CASE("weighted sum: gradient of either side alone, and the composed step equals the fused one")
{
    additive_case<double> x(9, 21, 7, {7, 0, 3}, 0);
    x.forward();
    const auto all = x.backward();
    list<double> e(x.scores.size(), 5), c(x.context.size(), 5), w(x.weights.size(), 5);
    additive_scores(x.batch, x.positions, x.alignment, x.lengths.data(), x.query.data(), x.keys.data(), x.v.data(),
                    e.data());
    softmax(x.batch, x.positions, x.lengths.data(), e.data(), w.data());
    weighted_sum(x.batch, x.positions, x.width, x.lengths.data(), w.data(), x.values.data(), c.data());
    CHECK(e == x.scores);
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
    list<double> dv(x.v.size()), scratch(additive_scores_backward_scratch(x.alignment));
    additive_scores_backward<double>(x.batch, x.positions, x.alignment, x.lengths.data(), x.query.data(), x.keys.data(),
                                     x.v.data(), de.data(), nullptr, nullptr, dv.data(), scratch.data());
    CHECK(far(dv, all.v) <= 1e-13);
}

// ---------------------------------------------------------------------------------------------------------------------

namespace {

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
        list<T> workspace(per_dimension_scratch(step()), std::numeric_limits<T>::quiet_NaN());
        per_dimension_forward(step(), with_weights ? weights.data() : nullptr, context.data(), normalizer.data(),
                              workspace.data());
    }

    struct gradients {
        list<T> query, keys, V, values;
    };
    gradients backward(bool with_weights, T base = T(0), int only = -1)
    {
        gradients d{list<T>(query.size(), base), list<T>(keys.size(), base), list<T>(V.size(), base),
                    list<T>(values.size(), base)};
        list<T> workspace(per_dimension_backward_scratch(step()), std::numeric_limits<T>::quiet_NaN());
        const auto wanted = [only](int which, list<T>& x) { return only < 0 || only == which ? x.data() : nullptr; };
        per_dimension_backward(step(), normalizer.data(), d_context.data(), with_weights ? d_weights.data() : nullptr,
                               wanted(0, d.query), wanted(1, d.keys), wanted(2, d.V), wanted(3, d.values),
                               workspace.data());
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

TEST_CASE_TEMPLATE("per-dimension step: plain loops agree, returning weights changes nothing", T, float, double)
{
    for (const std::size_t n : awkward<T>()) {
        per_dimension_case<T>(n, 5, 6, {6, 0, 3, 1}).check_forward();
        per_dimension_case<T>(5, n, 6, {6, 0, 3, 1}).check_forward();
        per_dimension_case<T>(7, 5, n, {n, n / 2, n - 1}).check_forward();
    }
    per_dimension_case<T>(3, 7, 5, {0, 0}).check_forward();
    // Several blocks, of unequal sentences.
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
    x.forward();  // the check left the normalizer of its last probe
    for (int only = 0; only < 4; ++only) {
        const auto one = x.backward(true, 0, only);
        CHECK(one.query == (only == 0 ? d.query : list<double>(d.query.size(), 0)));
        CHECK(one.keys == (only == 1 ? d.keys : list<double>(d.keys.size(), 0)));
        CHECK(one.V == (only == 2 ? d.V : list<double>(d.V.size(), 0)));
        CHECK(one.values == (only == 3 ? d.values : list<double>(d.values.size(), 0)));
    }
    list<double> dV(x.V.size()), workspace(per_dimension_backward_scratch(x.step()));
    const double* const nothing = nullptr;
    per_dimension_backward<double>(x.step(), x.normalizer.data(), x.d_context.data(), nothing, nullptr, nullptr,
                                   dV.data(), nullptr, workspace.data());
    per_dimension_backward<double>(x.step(), x.normalizer.data(), nothing, x.d_weights.data(), nullptr, nullptr,
                                   dV.data(), nullptr, workspace.data());
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
        per_dimension_case<T> y(40, 259, 150, lengths);
        y.forward();
        const auto dy = y.backward(true);
        // BLAS may choose another kernel for another number of rows: equal to rounding only.
        CHECK(far(y.weights, wide(x.weights)) <= 10 * tolerance<T>);
        CHECK(far(y.context, wide(x.context)) <= 10 * tolerance<T>);
        CHECK(far(dy.query, wide(d.query)) <= 100 * tolerance<T>);
        CHECK(far(dy.V, wide(d.V)) <= 100 * tolerance<T>);
        CHECK(far(dy.values, wide(d.values)) <= 10 * tolerance<T>);
        per_dimension_case<T> again(40, 259, 150, lengths);
        again.forward();
        CHECK(again.context == y.context);
        CHECK(again.backward(true).V == dy.V);
    }
    // Only the length counts, not the amount of padding: the bits stay the same.
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

TEST_CASE("per-dimension step: scores of 1e4 are exact, forward and back")
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

// ---------------------------------------------------------------------------------------------------------------------

namespace {

template <class T>
struct gru_case {
    std::size_t B, H, stride;
    counts lengths;
    list<T> inputs, recurrent, recurrent_h, hidden, saved, reset, next;

    gru_case(std::size_t H_, counts lengths_)
        : B(lengths_.size()),
          H(H_),
          stride(3 * H + 2),
          lengths(std::move(lengths_)),
          inputs(some<T>(B * stride, 1, 2)),
          recurrent(some<T>(B * 2 * H, 2, 2)),
          recurrent_h(some<T>(B * H, 3, 2)),
          hidden(some<T>(B * H, 4)),
          saved(B * 3 * H),
          reset(B * H),
          next(B * H)
    {}

    gru_step<T> step() const { return {B, H, inputs.data(), stride, hidden.data(), lengths.data(), 2}; }
    void forward()
    {
        gru_gates(step(), recurrent.data(), saved.data(), reset.data());
        gru_blend(step(), recurrent_h.data(), saved.data(), next.data());
    }
};

}  // namespace

TEST_CASE_TEMPLATE("GRU: plain loops agree, finished rows keep their state", T, float, double)
{
    for (const std::size_t H : awkward<T>()) {
        gru_case<T> x(H, {3, 2, 9, 0});
        for (std::size_t i = 0; i < H; ++i) x.inputs[3 * x.stride + i] = std::numeric_limits<T>::quiet_NaN();
        x.forward();
        list<double> next(x.B * H), reset(x.B * H, 0);
        for (std::size_t b = 0; b < x.B; ++b) {
            for (std::size_t i = 0; i < H; ++i) {
                const auto in = [&](std::size_t part) {
                    return static_cast<double>(x.inputs[b * x.stride + part * H + i]);
                };
                const auto back = [&](std::size_t part) {
                    return static_cast<double>(x.recurrent[b * 2 * H + part * H + i]);
                };
                const double h = static_cast<double>(x.hidden[b * H + i]);
                next[b * H + i] = h;
                if (x.lengths[b] <= 2) continue;
                const double z = 1 / (1 + std::exp(-in(0) - back(0))), r = 1 / (1 + std::exp(-in(1) - back(1)));
                const double fresh = std::tanh(in(2) + static_cast<double>(x.recurrent_h[b * H + i]));
                reset[b * H + i] = r * h;
                next[b * H + i] = (1 - z) * h + z * fresh;
            }
        }
        CHECK(far(x.next, next) <= tolerance<T>);
        CHECK(far(x.reset, reset) <= tolerance<T>);
        CHECK(same_bits(x.next.data() + H, x.hidden.data() + H, H));
    }
}

TEST_CASE("GRU: gradients")
{
    gru_case<double> x(11, {3, 2, 9});
    const list<double> g = some<double>(x.B * x.H, 9), gr = some<double>(x.B * x.H, 10);
    // A loss in which r ⊙ h has a part of its own, as it has through the second product.
    const auto loss = [&] {
        x.forward();
        return dot(x.next, g) + dot(x.reset, gr);
    };
    loss();
    list<double> sums(x.B * x.stride, 7), dh(x.B * x.H, 0.5);
    gru_blend_backward(x.step(), x.saved.data(), g.data(), sums.data(), x.stride, dh.data());
    gru_gates_backward(x.step(), x.saved.data(), gr.data(), sums.data(), x.stride, dh.data());
    for (std::size_t b = 0; b < x.B; ++b) {
        for (std::size_t i = 3 * x.H; i < x.stride; ++i) {
            CHECK(sums[b * x.stride + i] == 7);  // nothing is written between the rows of a slice
            sums[b * x.stride + i] = 0;
        }
    }
    check_gradient("hidden", x.hidden, loss, dh, 0.5);
    check_gradient("inputs", x.inputs, loss, sums, 0);
    list<double> of_gates(x.recurrent.size()), of_candidate(x.recurrent_h.size());
    for (std::size_t b = 0; b < x.B; ++b) {
        for (std::size_t i = 0; i < 2 * x.H; ++i) of_gates[b * 2 * x.H + i] = sums[b * x.stride + i];
        for (std::size_t i = 0; i < x.H; ++i) of_candidate[b * x.H + i] = sums[b * x.stride + 2 * x.H + i];
    }
    check_gradient("recurrent", x.recurrent, loss, of_gates, 0);
    check_gradient("recurrent_h", x.recurrent_h, loss, of_candidate, 0);

    list<double> none(x.B * 3 * x.H, 7);
    gru_blend_backward<double>(x.step(), x.saved.data(), nullptr, none.data(), 3 * x.H, nullptr);
    gru_gates_backward<double>(x.step(), x.saved.data(), nullptr, none.data(), 3 * x.H, nullptr);
    CHECK(none == list<double>(none.size(), 0));
}

TEST_CASE("GRU: the same for any number of threads")
{
    const counts lengths(64, 3);
    gru_case<float> x(1000, lengths);
    x.forward();
    const with_threads scope(3);
    gru_case<float> y(1000, lengths);
    y.forward();
    CHECK(x.next == y.next);
    CHECK(x.saved == y.saved);
}

// ---------------------------------------------------------------------------------------------------------------------

TEST_CASE_TEMPLATE("cross-entropy: plain loops agree; rows of weight 0 are not read", T, float, double)
{
    for (const std::size_t V : awkward<T>()) {
        for (const T smoothing : {T(0), T(0.1)}) {
            const std::size_t rows = 5;
            list<T> x = some<T>(rows * V, 3, 4);
            const list<std::uint32_t> targets{0, static_cast<std::uint32_t>(V - 1), static_cast<std::uint32_t>(V / 2),
                                              4000000000u, 0};
            const list<T> weights{1, T(0.5), 2, 0, T(0.25)};
            for (std::size_t i = 0; i < V; ++i) x[3 * V + i] = std::numeric_limits<T>::quiet_NaN();
            list<double> losses(rows, 0), gradient(rows * V, 0);
            double total = 0;
            for (std::size_t r = 0; r < rows; ++r) {
                if (weights[r] == 0) continue;
                const list<double> p =
                    plain_softmax(V, 1, [&](std::size_t i) { return static_cast<double>(x[r * V + i]); });
                for (std::size_t i = 0; i < V; ++i) {
                    const double q = static_cast<double>(smoothing) / static_cast<double>(V) +
                                     (i == targets[r] ? 1 - static_cast<double>(smoothing) : 0);
                    losses[r] -= q * std::log(p[i]);
                    gradient[r * V + i] = (p[i] - q) * static_cast<double>(weights[r]);
                }
                total += losses[r] * static_cast<double>(weights[r]);
            }
            list<T> got(rows, 9), again(rows, 9);
            const list<T> before = x;
            CHECK(cross_entropy(rows, V, x.data(), targets.data(), weights.data(), smoothing, got.data()) ==
                  doctest::Approx(total).epsilon(tolerance<T>));
            CHECK(same_bits(before.data(), x.data(), x.size()));
            cross_entropy_in_place(rows, V, x.data(), targets.data(), weights.data(), smoothing, again.data());
            CHECK(got == again);
            CHECK(far(got, losses) <= 2 * tolerance<T>);
            CHECK(far(x, gradient) <= 2 * tolerance<T>);
            for (std::size_t i = 0; i < V; ++i) CHECK(x[3 * V + i] == 0);
        }
    }
}

TEST_CASE("cross-entropy: large logits, and any number of threads")
{
    list<float> x{1e4f, -1e4f, 1e4f};
    const list<std::size_t> target{0};
    list<float> loss(1);
    cross_entropy_in_place<float>(1, 3, x.data(), target.data(), nullptr, 0.0f, loss.data());
    CHECK(loss[0] == support::approx(std::log(2.0F)));
    CHECK(x == list<float>{-0.5f, 0, 0.5f});

    const std::size_t rows = 40, V = 4001;
    const list<float> logits = some<float>(rows * V, 5, 6);
    const list<std::uint32_t> targets(rows, 17);
    list<float> first, first_losses;
    for (const std::size_t threads : {1u, 2u, 3u}) {
        const with_threads scope(threads);
        list<float> y = logits, losses(rows);
        cross_entropy_in_place<float>(rows, V, y.data(), targets.data(), nullptr, 0.1f, losses.data());
        if (threads == 1) {
            first = y;
            first_losses = losses;
        }
        CHECK(y == first);
        CHECK(losses == first_losses);
    }
}

// ---------------------------------------------------------------------------------------------------------------------

TEST_CASE_TEMPLATE("Adam: plain loops agree over several steps", T, float, double)
{
    const adam_settings settings{0.01, 0.8, 0.95, 1e-6};
    for (const std::size_t n : awkward<T>()) {
        list<T> x = some<T>(n, 1), m(n, 0), v(n, 0);
        list<double> want(x.begin(), x.end()), first(n, 0), second(n, 0);
        for (std::size_t t = 1; t <= 4; ++t) {
            const list<T> g = some<T>(n, static_cast<unsigned>(t) + 10);
            adam(n, settings, t, T(0.5), g.data(), m.data(), v.data(), x.data());
            for (std::size_t i = 0; i < n; ++i) {
                const double d = 0.5 * static_cast<double>(g[i]), power = static_cast<double>(t);
                first[i] = 0.8 * first[i] + (1 - 0.8) * d;
                second[i] = 0.95 * second[i] + (1 - 0.95) * d * d;
                want[i] -= 0.01 * (first[i] / (1 - std::pow(0.8, power))) /
                           (std::sqrt(second[i] / (1 - std::pow(0.95, power))) + 1e-6);
            }
        }
        CHECK(far(x, want) <= 4 * tolerance<T>);
        CHECK(far(m, first) <= 4 * tolerance<T>);
        CHECK(far(v, second) <= 4 * tolerance<T>);
    }
}

TEST_CASE("Adam on some rows: as on the whole table where rows are touched, nothing elsewhere; any thread count")
{
    const std::size_t N = 504, width = 131;
    const adam_settings settings;
    const list<float> table = some<float>(N * width, 1), g = some<float>(N * width, 2);
    list<float> x = table, m(N * width), v(N * width);
    adam(N * width, settings, 1, 1.0f, g.data(), m.data(), v.data(), x.data());
    list<std::uint32_t> rows;
    for (std::uint32_t row = 0; row < N; row += 2) rows.push_back(row ^ 6u);  // even rows, in no particular order
    list<float> packed;
    for (const std::uint32_t row : rows) {
        packed.insert(packed.end(), g.begin() + static_cast<std::ptrdiff_t>(row * width),
                      g.begin() + static_cast<std::ptrdiff_t>((row + 1) * width));
    }
    for (const std::size_t threads : {1u, 2u, 3u}) {
        const with_threads scope(threads);
        for (const gradient_rows layout : {gradient_rows::packed, gradient_rows::in_place}) {
            list<float> y = table, my(N * width), vy(N * width);
            adam_rows(rows.size(), rows.data(), width, settings, 1, 1.0f,
                      layout == gradient_rows::packed ? packed.data() : g.data(), layout, my.data(), vy.data(),
                      y.data());
            for (std::size_t row = 0; row < N; ++row) {
                const std::size_t at = row * width;
                if (row % 2 == 0) {
                    REQUIRE(same_bits(y.data() + at, x.data() + at, width));
                    REQUIRE(same_bits(vy.data() + at, v.data() + at, width));
                } else {
                    REQUIRE(same_bits(y.data() + at, table.data() + at, width));
                    REQUIRE(std::all_of(my.data() + at, my.data() + at + width, [](float e) { return e == 0; }));
                }
            }
        }
        list<float> whole = table, mw(N * width), vw(N * width);
        adam(N * width, settings, 1, 1.0f, g.data(), mw.data(), vw.data(), whole.data());
        CHECK(whole == x);
    }
}

TEST_CASE_TEMPLATE("squared norm", T, float, double)
{
    for (const std::size_t n :
         {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{257}, std::size_t{300001}}) {
        const list<T> x = some<T>(n, 3, 1e3);
        double want = 0;
        for (const T e : x) want += static_cast<double>(e) * static_cast<double>(e);
        for (const std::size_t threads : {1u, 2u, 3u}) {
            const with_threads scope(threads);
            CHECK(squared_norm(n, x.data()) == doctest::Approx(want).epsilon(1e-12));
            CHECK(squared_norm(n, x.data()) == squared_norm(n, x.data()));
        }
    }
    const with_threads scope(20);
    const list<T> ones(1 << 20, 1);
    CHECK(squared_norm(ones.size(), ones.data()) == static_cast<double>(1 << 20));
    const list<T> large(5, T(1e30));  // its square overflows a float
    const double square = static_cast<double>(large[0]) * static_cast<double>(large[0]);
    CHECK(squared_norm(5, large.data()) == support::approx(5 * square));
}
