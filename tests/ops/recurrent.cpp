// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <limits>
#include <vector>

using namespace heed;
using support::random;

// The operations of recurrent layers, one by one.

namespace {

const ops::sentence_ends no_end{};

/// One step written number by number, from the equations at the head of kernels/gru.hpp (Bahdanau et al. 2015).
array<double, 2> scalar_gru(const array<double, 2>& x, const array<double, 2>& h, const array<double, 2>& U,
                            const array<double, 2>& U_h)
{
    const std::size_t B = h.shape()[0], H = h.shape()[1];
    array<double, 2> next(h.shape());
    const auto sigmoid = [](double a) { return 1 / (1 + std::exp(-a)); };
    for (std::size_t b = 0; b < B; ++b) {
        std::vector<double> z(H), r(H);
        for (std::size_t i = 0; i < H; ++i) {
            double sum_z = x(b, i), sum_r = x(b, H + i);
            for (std::size_t k = 0; k < H; ++k) sum_z += h(b, k) * U(k, i), sum_r += h(b, k) * U(k, H + i);
            z[i] = sigmoid(sum_z);
            r[i] = sigmoid(sum_r);
        }
        for (std::size_t i = 0; i < H; ++i) {
            double sum = x(b, 2 * H + i);
            for (std::size_t k = 0; k < H; ++k) sum += r[k] * h(b, k) * U_h(k, i);
            next(b, i) = (1 - z[i]) * h(b, i) + z[i] * std::tanh(sum);
        }
    }
    return next;
}

constexpr auto coverage_gru = [](const auto& y, const auto& a, const auto& w, const auto& u, const auto& c) {
    return ops::coverage_gru(y, a, w, u, c);
};

/// The same written number by number, from the equations at the head of kernels/coverage.hpp (Mi et al. 2016).
array<double, 3> scalar_coverage_gru(const array<double, 2>& y, const array<double, 2>& a, const array<double, 1>& w,
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

TEST_CASE("linear_onto")
{
    const auto f = [](const auto& base, const auto& x, const auto& W) { return ops::linear_onto(base, x, W); };
    CHECK_GRADIENT(f, random({3, 5}, 1), random({3, 4}, 2), random({4, 5}, 3));
    CHECK_GRADIENT(f, random({1, 1}, 1), random({1, 1}, 2), random({1, 1}, 3));
    CHECK_GRADIENT(f, random({2, 3, 5}, 1), random({2, 3, 4}, 2), random({4, 5}, 3));
    CHECK(support::same_bits(f(random({2, 3}, 1), array<double, 2>({2, 0}), array<double, 2>({0, 3})),
                             random({2, 3}, 1)));
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                f(random({3, 6}, 1), random({3, 4}, 2), random({4, 5}, 3));
                            }),
                            "the base is [3,6] but must be [3,5]"));
}

TEST_CASE("repeat and maxout")
{
    CHECK_GRADIENT([](const auto& x) { return ops::repeat(x, std::size_t{3}); }, random({4}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::repeat(x, std::size_t{1}); }, random({1}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::maxout(x); }, random({3, 6}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::maxout(x); }, random({2, 1, 2}, 1));
    CHECK(support::contains(support::message_of<shape_error>([] { ops::maxout(random({2, 3}, 1)); }), "must be even"));
}

TEST_CASE("gated linear units: the first half times the sigmoid of the second")
{
    const auto glu = [](const auto& x) { return ops::glu(x); };
    for (const std::size_t N : {std::size_t{1}, std::size_t{3}, std::size_t{19}}) {
        const auto x = random({2, 2 * N}, 1);
        const auto y = glu(x);
        for (std::size_t b = 0; b < 2; ++b) {
            for (std::size_t i = 0; i < N; ++i)
                CHECK(y(b, i) == doctest::Approx(x(b, i) / (1 + std::exp(-x(b, N + i)))).epsilon(1e-14));
        }
        CHECK_GRADIENT(glu, x);
    }
    CHECK_GRADIENT(glu, random({2, 3, 4}, 2));
    CHECK(shape_of(glu(array<double, 2>({0, 4}))) == shape_of_rank<2>{0, 2});
    CHECK(support::contains(support::message_of<shape_error>([] { ops::glu(random({2, 3}, 1)); }), "must be even"));
}

TEST_CASE("a GRU step is its equations, and has their gradient")
{
    for (const std::size_t H : {std::size_t{1}, std::size_t{5}, std::size_t{19}}) {
        const auto x = random({3, 3 * H}, 1), h = random({3, H}, 2), U = random({H, 2 * H}, 3), U_h = random({H, H}, 4);
        const auto f = [](const auto& inputs, const auto& hidden, const auto& recurrent, const auto& of_candidate) {
            return ops::gru(inputs, hidden, recurrent, of_candidate, no_end);
        };
        CHECK(support::distance(f(x, h, U, U_h), scalar_gru(x, h, U, U_h)) < 1e-13);
        const auto check = [](const ad::grad_check_result& found) { CHECK_MESSAGE(bool(found), found.text()); };
        check(support::gradient_of<0b1111>(f, x, h, U, U_h));
        check(support::gradient_of<0b0001>(f, x, h, U, U_h));
        check(support::gradient_of<0b0010>(f, x, h, U, U_h));
        check(support::gradient_of<0b1100>(f, x, h, U, U_h));
    }
}

TEST_CASE("a GRU step of states with further axes is that of their rows")
{
    const std::size_t H = 3;
    const auto U = random({H, 2 * H}, 3), U_h = random({H, H}, 4);
    const auto x = random({2, 4, 3 * H}, 1), h = random({2, 4, H}, 2);
    array<double, 2> x_rows(shape_of_rank<2>{8, 3 * H}), h_rows(shape_of_rank<2>{8, H});
    std::copy(x.begin(), x.end(), x_rows.begin());
    std::copy(h.begin(), h.end(), h_rows.begin());
    const auto next = ops::gru(x, h, U, U_h, no_end);
    const auto must = scalar_gru(x_rows, h_rows, U, U_h);
    REQUIRE(shape_of(next) == shape_of(h));
    for (std::size_t i = 0; i < next.size(); ++i)
        CHECK(next.data()[i] == doctest::Approx(must.data()[i]).epsilon(1e-13));
    const auto f = [](const auto& inputs, const auto& hidden, const auto& recurrent, const auto& of_candidate) {
        return ops::gru(inputs, hidden, recurrent, of_candidate, no_end);
    };
    const auto check = [](const ad::grad_check_result& found) { CHECK_MESSAGE(bool(found), found.text()); };
    check(support::gradient_of<0b1111>(f, x, h, U, U_h));
    check(support::gradient_of<0b0010>(f, x, h, U, U_h));
    check(support::gradient_of<0b1100>(f, x, h, U, U_h));
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                ops::gru(random({2, 4, H}, 1), h, U, U_h, no_end);
                            }),
                            "gru: the input is [2,4,3] but must be [2,4,9]"));
}

TEST_CASE("a sentence that is over keeps its state, and its gradient passes")
{
    const lengths real{3, 1, 0, 2};
    const auto x = random({4, 9}, 1), h = random({4, 3}, 2), U = random({3, 6}, 3), U_h = random({3, 3}, 4);
    for (std::size_t step = 0; step < 3; ++step) {
        const ops::sentence_ends ends{&real, step};
        const auto next = ops::gru(x, h, U, U_h, ends);
        const auto free = ops::gru(x, h, U, U_h, no_end);
        for (std::size_t b = 0; b < 4; ++b) {
            for (std::size_t i = 0; i < 3; ++i) CHECK(next(b, i) == (step < real[b] ? free(b, i) : h(b, i)));
        }
        const auto f = [&](const auto& inputs, const auto& hidden, const auto& a, const auto& b) {
            return ops::gru(inputs, hidden, a, b, ends);
        };
        const auto found = support::gradient_of<0b1111>(f, x, h, U, U_h);
        CHECK_MESSAGE(bool(found), found.text());
    }
}

TEST_CASE("inputs of a GRU that somebody else uses, too: before it, after it, or another GRU")
{
    const auto x = random({2, 9}, 1), h = random({2, 3}, 2), U = random({3, 6}, 3), U_h = random({3, 3}, 4),
               V = random({3, 6}, 5), V_h = random({3, 3}, 6);
    const auto check = [](const ad::grad_check_result& found) { CHECK_MESSAGE(bool(found), found.text()); };
    check(support::gradient_of<0b111111>(
        [](const auto& inputs, const auto& hidden, const auto& a, const auto& b, const auto& c, const auto& d) {
            return ops::concat(ops::gru(inputs, hidden, a, b, no_end), ops::gru(inputs, hidden, c, d, no_end));
        },
        x, h, U, U_h, V, V_h));
    const auto with = [&](bool before) {
        return support::gradient_of<0b1111>(
            [before](const auto& inputs, const auto& hidden, const auto& a, const auto& b) {
                auto other = inputs;
                if (before) other = ops::multiply(inputs, inputs);
                const auto next = ops::gru(inputs, hidden, a, b, no_end);
                if (!before) other = ops::multiply(inputs, inputs);
                return ops::concat(next, other);
            },
            x, h, U, U_h);
    };
    check(with(true));
    check(with(false));
}

TEST_CASE("a recurrent layer over several steps")
{
    const auto x = random({4, 2, 9}, 1);
    const auto U = random({3, 6}, 2), U_h = random({3, 3}, 3);
    const auto h = random({3}, 4);
    const lengths real{4, 2};
    const auto found = support::gradient_of<0b1111>(
        [&](const auto& inputs, const auto& start, const auto& a, const auto& b) {
            auto state = ops::repeat(start, std::size_t{2});
            std::vector<decltype(state)> states;
            for (std::size_t s = 0; s < 4; ++s) {
                state = ops::gru(ops::block(inputs, s), state, a, b, ops::sentence_ends{&real, s});
                states.push_back(state);
            }
            return ops::stack(states);
        },
        x, h, U, U_h);
    CHECK_MESSAGE(bool(found), found.text());
}

TEST_CASE("lookup: repeated words, unused words, a table that was computed, and no word")
{
    word_ids words(3, 2);
    words.ids = {1, 4, 1, 0, 4, 1};
    CHECK_GRADIENT([&](const auto& E) { return ops::lookup(E, words); }, random({6, 3}, 1));
    CHECK_GRADIENT([&](const auto& E) { return ops::lookup(ops::tanh(E), words); }, random({6, 3}, 1));
    CHECK_GRADIENT([&](const auto& E) { return ops::add(ops::lookup(E, words), ops::lookup(E, words)); },
                   random({6, 3}, 1));
    CHECK_GRADIENT([&](const auto& E) { return ops::linear(ops::lookup(E, words), E); }, random({6, 6}, 1));
    ad::tape<double> on;
    const auto table = random({6, 3}, 1);
    const auto E = on.parameter(table);
    on.backward(ops::inner(ops::lookup(E, word_ids(0, 2)), array<double, 3>({0, 2, 3})));
    CHECK(on.gradient(E).data[0] == 0);
    words.ids[3] = 6;
    CHECK(support::message_of<error>([&] { ops::lookup(table, words); }) ==
          "lookup: word 6 of a table of 6 embeddings; ids count from 0");
    words.ids[3] = static_cast<std::uint32_t>(-1);
    CHECK(support::message_of<error>([&] { ops::lookup(table, words); }) ==
          "lookup: word 4294967295 of a table of 6 embeddings; ids count from 0");
    for (const std::size_t count : {std::size_t{5}, std::size_t{7}, std::size_t{600}}) {
        words.ids.assign(count, 1);
        const std::string reason = "lookup: " + std::to_string(count) +
                                   " word ids for 3 steps of 2 sentences; give one for each step of each sentence, 6";
        CHECK(support::message_of<shape_error>([&] { ops::lookup(table, words); }) == reason);
        CHECK(support::message_of<shape_error>([&] { ops::lookup(E, words); }) == reason);
        const scratch here;
        CHECK(support::message_of<shape_error>([&] { ops::lookup(transient(view_of(table)), words); }) == reason);
    }
}

TEST_CASE("a step of coverage is its equations, and has their gradient")
{
    for (const std::size_t N : {std::size_t{1}, std::size_t{3}, std::size_t{19}}) {
        const auto y = random({2, 3 * N}, 1), a = random({2, 4}, 2);
        const auto w = random({3 * N}, 3);
        const auto u = random({2, 4, 3 * N}, 4), c = random({2, 4, N}, 5);
        CHECK(support::distance(coverage_gru(y, a, w, u, c), scalar_coverage_gru(y, a, w, u, c)) < 1e-14);
        const auto check = [](const ad::grad_check_result& found) { CHECK_MESSAGE(bool(found), found.text()); };
        check(support::gradient_of<0b11111>(coverage_gru, y, a, w, u, c));
        check(support::gradient_of<0b00001>(coverage_gru, y, a, w, u, c));
        check(support::gradient_of<0b00010>(coverage_gru, y, a, w, u, c));
        check(support::gradient_of<0b00100>(coverage_gru, y, a, w, u, c));
        check(support::gradient_of<0b01000>(coverage_gru, y, a, w, u, c));
        check(support::gradient_of<0b10000>(coverage_gru, y, a, w, u, c));
    }
    // Nothing to remember, no position, no row.
    CHECK(coverage_gru(random({2, 3}, 1), random({2, 0}, 2), random({3}, 3), random({2, 0, 3}, 4), random({2, 0, 1}, 5))
              .size() == 0);
    CHECK(coverage_gru(random({0, 3}, 1), random({0, 2}, 2), random({3}, 3), random({0, 2, 3}, 4), random({0, 2, 1}, 5))
              .size() == 0);
    // From -1e4 to 1e4 the gates are open or shut, and float is finite.
    const auto far = coverage_gru(random<float>({2, 9}, 1, 1e4), random<float>({2, 4}, 2), random<float>({9}, 3, 1e4),
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
        const auto next = coverage_gru(vy, va, vw, vu, vc);
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
