// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ad/ad.hpp>
#include <heed/ad/coverage.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <cmath>

using namespace heed;
using support::random;

// The operations of scores with a memory, one by one.

namespace {

constexpr auto gru = [](const auto& y, const auto& a, const auto& w, const auto& u, const auto& c) {
    return ops::coverage_gru(y, a, w, u, c);
};

/// Number by number, from SPEC V2.
array<double, 3> scalar_gru(const array<double, 2>& y, const array<double, 2>& a, const array<double, 1>& w,
                            const array<double, 3>& u, const array<double, 3>& c)
{
    const auto [B, T, N] = c.shape();
    array<double, 3> next(c.shape());
    const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
    for (std::size_t b = 0; b < B; ++b) {
        for (std::size_t t = 0; t < T; ++t) {
            for (std::size_t i = 0; i < N; ++i) {
                const double z = sigmoid(y(b, i) + a(b, t) * w(i) + u(b, t, i));
                const double r = sigmoid(y(b, N + i) + a(b, t) * w(N + i) + u(b, t, N + i));
                const double fresh = std::tanh(y(b, 2 * N + i) + a(b, t) * w(2 * N + i) + r * u(b, t, 2 * N + i));
                next(b, t, i) = z * c(b, t, i) + (1 - z) * fresh;
            }
        }
    }
    return next;
}

}  // namespace

TEST_CASE("a step of coverage is its equations, and has their gradient")
{
    for (const std::size_t N : {std::size_t{1}, std::size_t{3}, std::size_t{19}}) {
        const auto y = random({2, 3 * N}, 1), a = random({2, 4}, 2);
        const auto w = random({3 * N}, 3);
        const auto u = random({2, 4, 3 * N}, 4), c = random({2, 4, N}, 5);
        CHECK(support::distance(gru(y, a, w, u, c), scalar_gru(y, a, w, u, c)) < 1e-14);
        const auto check = [](const ad::grad_check_result& found) { CHECK_MESSAGE(bool(found), found.text()); };
        check(support::gradient_of<0b11111>(gru, y, a, w, u, c));
        check(support::gradient_of<0b00001>(gru, y, a, w, u, c));
        check(support::gradient_of<0b00010>(gru, y, a, w, u, c));
        check(support::gradient_of<0b00100>(gru, y, a, w, u, c));
        check(support::gradient_of<0b01000>(gru, y, a, w, u, c));
        check(support::gradient_of<0b10000>(gru, y, a, w, u, c));
    }
    // Nothing to remember, no position, no row.
    CHECK(
        gru(random({2, 3}, 1), random({2, 0}, 2), random({3}, 3), random({2, 0, 3}, 4), random({2, 0, 1}, 5)).size() ==
        0);
    CHECK(
        gru(random({0, 3}, 1), random({0, 2}, 2), random({3}, 3), random({0, 2, 3}, 4), random({0, 2, 1}, 5)).size() ==
        0);
    // From -1e4 to 1e4 the gates are open or shut, and float is finite.
    const auto far = gru(random<float>({2, 9}, 1, 1e4), random<float>({2, 4}, 2), random<float>({9}, 3, 1e4),
                         random<float>({2, 4, 9}, 4, 1e4), random<float>({2, 4, 3}, 5));
    CHECK(support::all_finite(far));
}

TEST_CASE("the results and gradients of coverage do not depend on the number of threads")
{
    const std::size_t N = 64;
    const auto y = random({9, 3 * N}, 1), a = random({9, 40}, 2);
    const auto w = random({3 * N}, 3);
    const auto u = random({9, 40, 3 * N}, 4), c = random({9, 40, N}, 5);
    const auto all = [&] {
        ad::tape<double> on;
        const auto vy = on.parameter(y), va = on.parameter(a);
        const auto vw = on.parameter(w);
        const auto vu = on.parameter(u), vc = on.parameter(c);
        const auto next = gru(vy, va, vw, vu, vc);
        on.backward(ops::inner(next, support::uneven(next.shape())));
        return std::tuple{copy_of(next.value()),    copy_of(on.gradient(vy)), copy_of(on.gradient(va)),
                          copy_of(on.gradient(vw)), copy_of(on.gradient(vu)), copy_of(on.gradient(vc))};
    };
    const auto one = all();
    set_threads(3);
    const auto three = all();
    set_threads(1);
    CHECK(one == three);
}

TEST_CASE("add_outer, add_share")
{
    const auto outer = [](const auto& k, const auto& x, const auto& v) { return ops::add_outer(k, x, v); };
    CHECK_GRADIENT(outer, random({2, 3, 5}, 1), random({2, 3}, 2), random({5}, 3));
    CHECK_GRADIENT(outer, random({1, 1, 1}, 1), random({1, 1}, 2), random({1}, 3));
    CHECK(support::distance(outer(random({1, 2, 2}, 1), array<double, 2>{{2.0, 3.0}}, array<double, 1>{10.0, 100.0}),
                            array<double, 3>(random({1, 2, 2}, 1) + array<double, 3>{{{20.0, 200.0}, {30.0, 300.0}}})) <
          1e-15);

    const auto share = [](const auto& c, const auto& a, const auto& f) { return ops::add_share(c, a, f); };
    array<double, 2> fertility = random({2, 3}, 3);
    for (double& f : fertility) f = 0.5 + std::abs(f);
    CHECK_GRADIENT(share, random({2, 3}, 1), random({2, 3}, 2), fertility);
    CHECK(share(array<double, 2>{{1.0}}, array<double, 2>{{0.5}}, array<double, 2>{{2.0}})(0, 0) == 1.25);
    // A fertility that has underflowed: a great number, never a division by 0.
    CHECK(share(array<double, 2>{{0.0, 0.0}}, array<double, 2>{{0.0, 0.5}}, array<double, 2>{{0.0, 0.0}}) ==
          array<double, 2>{{0.0, 0.5 / 1e-6}});
    ad::tape<double> on;
    const array<double, 2> none{{0.0}}, half{{0.5}};
    const auto f = on.parameter(none), a = on.parameter(half);
    on.backward(ops::inner(share(none, a, f), array<double, 2>{{1.0}}));
    CHECK(on.gradient(f).data[0] == 0);
    CHECK(on.gradient(a).data[0] == doctest::Approx(1e6));

    const auto message = [](auto&& act) { return support::message_of<shape_error>(act); };
    CHECK(support::contains(message([&] {
                                outer(random({2, 3, 5}, 1), random({2, 4}, 2), random({5}, 3));
                            }),
                            "add_outer: x is [2,4] but must be [2,3]"));
    CHECK(support::contains(message([&] {
                                outer(random({2, 3, 5}, 1), random({2, 3}, 2), random({4}, 3));
                            }),
                            "v is [4] but must be [5]"));
    CHECK(support::contains(message([&] {
                                share(random({2, 3}, 1), random({2, 4}, 2), fertility);
                            }),
                            "the weights is [2,4] but must be [2,3]"));
}

TEST_CASE("neighbourhood and convolve")
{
    const auto near = [](const auto& x) { return ops::neighbourhood(x, std::size_t{1}); };
    CHECK(near(array<double, 2>{{1.0, 2.0, 3.0}}) ==
          array<double, 3>{{{0.0, 1.0, 2.0}, {1.0, 2.0, 3.0}, {2.0, 3.0, 0.0}}});
    CHECK(ops::neighbourhood(array<double, 2>{{5.0}}, std::size_t{2}) == array<double, 3>{{{0.0, 0.0, 5.0, 0.0, 0.0}}});
    CHECK(ops::neighbourhood(array<double, 2>{{5.0, 6.0}}, std::size_t{0}) == array<double, 3>{{{5.0}, {6.0}}});
    CHECK_GRADIENT(near, random({2, 5}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::neighbourhood(x, std::size_t{4}); }, random({2, 3}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::neighbourhood(x, std::size_t{2}); }, random({1, 1}, 1));

    // Convolving is a product with the neighbourhood, of any width, wider than the sentence too.
    const auto slide = [](const auto& x, const auto& F) { return ops::convolve(x, F); };
    for (const std::size_t reach : {std::size_t{0}, std::size_t{1}, std::size_t{4}, std::size_t{20}}) {
        const auto x = random({2, 7}, 1), F = random({3, 2 * reach + 1}, 2);
        array<double, 2> columns(shape_of_rank<2>{2 * reach + 1, 3});
        for (std::size_t n = 0; n < 3; ++n) {
            for (std::size_t i = 0; i < 2 * reach + 1; ++i) columns(i, n) = F(n, i);
        }
        CHECK(support::distance(slide(x, F), ops::linear(ops::neighbourhood(x, reach), columns)) < 1e-14);
    }
    CHECK(slide(array<double, 2>{{0.0, 1.0, 0.0}}, array<double, 2>{{1.0, 2.0, 3.0}}) ==
          array<double, 3>{{{3.0}, {2.0}, {1.0}}});
    CHECK_GRADIENT(slide, random({2, 5}, 1), random({3, 3}, 2));
    CHECK_GRADIENT(slide, random({2, 2}, 1), random({1, 7}, 2));
    CHECK_GRADIENT(slide, random({1, 1}, 1), random({1, 1}, 2));
    CHECK(slide(random({2, 0}, 1), random({3, 5}, 2)).size() == 0);
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                slide(random({2, 5}, 1), random({3, 4}, 2));
                            }),
                            "convolve: the filters are [3,4], but their width must be odd"));
}
