// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::random;

// Scores that are great, infinite or NaN, tile by tile: what the composed form makes of them, forward and backward.

namespace {

constexpr double none = -std::numeric_limits<double>::infinity(),
                 not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Any function of a score, so that one kernel is compiled for all of them.
template <class T>
struct any_function {
    std::function<pack<T>(const pack<T>&, const place&)> value;
    std::function<dual<T>(const dual<T>&, const place&)> with_slope;

    any_function(const auto& f)
        : value([f](const pack<T>& e, const place& p) { return pack<T>(f(e, p)); }),
          with_slope([f](const dual<T>& e, const place& p) { return dual<T>(f(e, p)); })
    {}
    pack<T> operator()(const pack<T>& e, const place& p) const { return value(e, p); }
    dual<T> operator()(const dual<T>& e, const place& p) const { return with_slope(e, p); }
};

/// Contexts of 40 causal queries over sentences of 110 and 37 keys, and a loss's gradients.
template <class T>
struct answers {
    std::vector<T> contexts, d_queries, d_annotations;
};

template <class T>
answers<T> answers_of(const auto& normalize, const any_function<T>& f, bool composed)
{
    constexpr std::size_t S = 40;
    const lengths real({110, 37});
    const attention attend{score::modified{score::scaled_dot{}, f}, normalize, combine::weighted_sum{}};
    ad::tape<T> on;
    // Halves, so that scores and their sums with great numbers are exact in float, too.
    const auto halves = [](auto x) {
        for (T& each : x) each = std::round(2 * each) / 2;
        return x;
    };
    const auto h = halves(random<T>({2, 110, 4}, 1)), q = halves(random<T>({2, S, 4}, 2));
    const auto H = on.parameter(h), Q = on.parameter(q);
    const auto memory = attend.on(H, real);
    const auto contexts = [&]() -> ad::var<T, 3> {
        if (!composed) return attend(memory, Q, causal{});
        std::vector<ad::var<T, 2>> all;
        auto state = ad::lift(on, attend).start(memory);
        for (std::size_t s = 0; s < S; ++s) {
            std::vector<std::size_t> seen;  // not a boolean mask: beside a NaN, softmax gives its -inf weights, too
            for (std::size_t b = 0; b < 2; ++b) seen.push_back(real[b] + s + 1 > S ? real[b] + s + 1 - S : 0);
            auto next = attend.compose(memory, ops::step_of(Q, s), state, lengths(seen));
            all.push_back(next.context);
            state = std::move(next.state);
        }
        return ops::swap_axes(ops::stack(all));
    }();
    on.backward(ops::inner(contexts, random<T>({2, S, 4}, 3)));
    const auto numbers = [](const auto& x) { return std::vector<T>(x.data, x.data + x.size()); };
    return {numbers(contexts.value()), numbers(on.gradient(Q)), numbers(on.gradient(H))};
}

/// The greatest |a − b| / (1 + |b|); infinite if only one of them is NaN or infinite.
template <class T>
double distance(const std::vector<T>& a, const std::vector<T>& b)
{
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
        if (x == y || (std::isnan(y) && std::isnan(x))) continue;
        const double off = std::abs(x - y) / (1 + std::abs(y));
        worst = off >= 0 ? std::max(worst, off) : std::numeric_limits<double>::infinity();
    }
    return worst;
}

template <class T>
void check(const auto& normalize, const any_function<T>& f, double most)
{
    const auto is = answers_of<T>(normalize, f, false), must = answers_of<T>(normalize, f, true);
    CHECK(distance(is.contexts, must.contexts) < most);
    CHECK(distance(is.d_queries, must.d_queries) < most);
    CHECK(distance(is.d_annotations, must.d_annotations) < most);
}

}  // namespace

TEST_CASE_TEMPLATE("great scores: nothing is rounded away on the way back", T, float, double)
{
    const auto each = [](const auto& normalize) {
        const double most = sizeof(T) == 4 ? 1e-5 : 1e-12;
        for (const double shift : {1e4, -1e4, -1e30})
            check<T>(
                normalize, [=](auto e, place) { return e + shift; }, most);
        check<T>(
            normalize, [](auto e, place) { return 0 * e + 7; }, most);
    };
    each(normalize::softmax{});
    each(normalize::softmax_with_sink{array<T, 1>{T(-1e4)}});
    each(normalize::top_k{3});
    each(normalize::temporal{});
}

TEST_CASE_TEMPLATE("scores that are infinite or NaN, and slopes that are: the same places are NaN", T, float, double)
{
    constexpr double most = sizeof(T) == 4 ? 1e-5 : 1e-10;
    int nth = 0;
    const auto each = [&](const auto& normalize) {
        CAPTURE(nth++);
        int function = 0;
        const auto compare = [&](const auto& f) {
            CAPTURE(function++);
            check<T>(normalize, f, most);
        };
        const auto one = [](place p) { return (p.query == 3) & (p.key == 5); };
        compare([](auto e, place) { return e; });
        compare([=](auto e, place p) { return select(one(p), not_a_number, e); });
        compare([](auto e, place p) { return select((p.query == 3) & (p.key == 0), not_a_number, e); });
        compare([](auto e, place p) { return select(p.query == 3, not_a_number, e); });
        compare([=](auto e, place p) { return select(one(p), not_a_number * e, e); });
        compare([=](auto e, place p) { return select(one(p), -none, e); });
        compare([](auto e, place p) { return select((p.query == 3) & (p.key <= 1), -none, e); });
        compare([](auto e, place p) { return select(p.query == 3, -none, e); });
        compare([=](auto e, place p) { return select(one(p), none, e); });
        compare([](auto e, place p) { return select(p.query % 2 == 0, none, e); });
        compare([](auto e, place) { return 0 * e + none; });
        compare([](auto e, place) { return log(select(e > 0, e, 0 * e)); });
        compare([](auto e, place) { return log(e + 3); });
        compare([=](auto e, place p) { return select(one(p), log(0 * e) * 0, e); });
        compare([](auto e, place p) { return select(p.key > p.query + 70, not_a_number * e, e); });
    };
    each(normalize::softmax{});
    each(normalize::softmax_with_sink{array<T, 1>{T(0.7)}});
    each(normalize::sigmoid{-1});
    each(normalize::sparsemax{});
    each(normalize::entmax15{});
    each(normalize::entmax{array<T, 1>{T(0.3)}});
    each(normalize::top_k{3});
    each(normalize::stick_breaking{});
    each(normalize::temporal{});
    each(normalize::fading_temporal{0.7, 0.2});
}
