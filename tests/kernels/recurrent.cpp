// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/recurrent.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <support/kernels.hpp>

// LSTM: gradients against finite differences are in tests/ops/recurrent.cpp.

namespace {

using namespace heed;
using namespace heed::kernels;
using namespace heed::test;

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

template <class T>
std::vector<T> numbers(std::size_t count, double phase)
{
    std::vector<T> x(count);
    for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<T>(1.5 * std::sin(phase + 1.3 * static_cast<double>(i)));
    return x;
}

template <class T>
double off(T is, double must)
{
    return std::abs(static_cast<double>(is) - must) / (1 + std::abs(must));
}

/// Forward and backward in scalar loops, at every width; row 1 has ended.
template <class T>
void check_reset_after(double bound)
{
    constexpr std::size_t B = 3;
    const std::vector<std::size_t> lengths{5, 2, 3};
    for (std::size_t H = 1; H < 40; ++H) {
        CAPTURE(H);
        const auto x = numbers<T>(B * 3 * H, 1), u = numbers<T>(B * 3 * H, 2), h = numbers<T>(B * H, 3),
                   c = numbers<T>(H, 4), g = numbers<T>(B * H, 5);
        std::vector<T> saved(B * 4 * H, T(-7)), next(B * H), da(B * 3 * H), du(B * 3 * H), dh = numbers<T>(B * H, 6);
        const auto before = dh;
        const kernels::gru_step<T> step{B, H, x.data(), 3 * H, h.data(), lengths.data(), 2};
        kernels::gru_reset_after(step, u.data(), c.data(), saved.data(), next.data());
        kernels::gru_reset_after_backward(step, saved.data(), g.data(), da.data(), du.data(), dh.data());
        double worst = 0;
        for (std::size_t b = 0; b < B; ++b) {
            for (std::size_t j = 0; j < H; ++j) {
                const auto at = [&](const std::vector<T>& of, std::size_t gate) {
                    return static_cast<double>(of[b * 3 * H + gate * H + j]);
                };
                const auto sigmoid = [](double a) { return 1 / (1 + std::exp(-a)); };
                const double old = h[b * H + j], d = g[b * H + j], d_before = before[b * H + j];
                if (b == 1) {
                    CHECK(next[b * H + j] == h[b * H + j]);
                    CHECK(saved[b * 4 * H + j] == T(-7));
                    for (std::size_t gate = 0; gate < 3; ++gate)
                        worst = std::max({worst, off(at(da, gate), 0), off(at(du, gate), 0)});
                    worst = std::max(worst, off(dh[b * H + j], d_before + d));
                    continue;
                }
                const double z = sigmoid(at(x, 0) + at(u, 0)), r = sigmoid(at(x, 1) + at(u, 1));
                const double p = at(u, 2) + static_cast<double>(c[j]), fresh = std::tanh(at(x, 2) + r * p);
                const double d_z = d * (fresh - old) * z * (1 - z), d_h = d * z * (1 - fresh * fresh),
                             d_r = d_h * p * r * (1 - r);
                worst = std::max({worst, off(next[b * H + j], (1 - z) * old + z * fresh), off(at(da, 0), d_z),
                                  off(at(da, 1), d_r), off(at(da, 2), d_h), off(at(du, 0), d_z), off(at(du, 1), d_r),
                                  off(at(du, 2), d_h * r), off(dh[b * H + j], d_before + (1 - z) * d)});
            }
        }
        CHECK(worst < bound);

        // In place, and without the state's gradient.
        std::vector<T> state = h, again(B * 4 * H);
        const kernels::gru_step<T> in_place{B, H, x.data(), 3 * H, state.data(), lengths.data(), 2};
        kernels::gru_reset_after(in_place, u.data(), c.data(), again.data(), state.data());
        CHECK(state == next);
        std::vector<T> da_alone(B * 3 * H), du_alone(B * 3 * H);
        kernels::gru_reset_after_backward<T>(step, saved.data(), g.data(), da_alone.data(), du_alone.data(), nullptr);
        CHECK(da_alone == da);
        CHECK(du_alone == du);
    }
}

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
    // A loss that also reads r ⊙ h directly, as the second product does.
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

TEST_CASE("GRU: the same bits for any number of threads")
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

TEST_CASE("a step and its backward pass match their equations, at every width")
{
    check_reset_after<double>(1e-13);
    check_reset_after<float>(2e-6);
}

TEST_CASE_TEMPLATE("LSTM: plain loops agree, finished rows keep their state", T, float, double)
{
    constexpr std::size_t B = 4;
    const std::vector<std::size_t> lengths{3, 2, 9, 0};
    for (const std::size_t H : widths) {
        const auto x = some<T>(B * 4 * H, 1), u = some<T>(B * 4 * H, 2), h = some<T>(B * H, 3), c = some<T>(B * H, 4);
        const lstm_step<T> step{B, H, x.data(), h.data(), c.data(), lengths.data(), 2};
        std::vector<T> saved(5 * B * H), next_h(B * H), next_c(B * H), d_sums(4 * B * H), d_c(B * H), d_h(B * H);
        lstm_forward(step, u.data(), saved.data(), next_h.data(), next_c.data());
        const auto g_h = some<T>(B * H, 5), g_c = some<T>(B * H, 6);
        lstm_backward(step, saved.data(), g_h.data(), g_c.data(), d_sums.data(), d_h.data(), d_c.data());
        for (std::size_t b = 0; b < B; ++b) {
            for (std::size_t j = 0; j < H; ++j) {
                const std::size_t at = b * H + j;
                const auto near = [](T found, double must) { CHECK(std::abs(found - must) <= few_roundings<T>); };
                if (lengths[b] <= 2) {
                    CHECK(next_h[at] == h[at]);
                    CHECK(next_c[at] == c[at]);
                    CHECK(d_c[at] == g_c[at]);
                    CHECK(d_h[at] == g_h[at]);
                    for (std::size_t gate = 0; gate < 4; ++gate) CHECK(d_sums[(b * 4 + gate) * H + j] == 0);
                    continue;
                }
                double a[4];
                for (std::size_t gate = 0; gate < 4; ++gate) {
                    a[gate] = double(x[(b * 4 + gate) * H + j]) + double(u[(b * 4 + gate) * H + j]);
                }
                const double i = sigmoid(a[0]), f = sigmoid(a[1]), o = sigmoid(a[2]), g = std::tanh(a[3]);
                const double cell = f * c[at] + i * g, t = std::tanh(cell), d = g_c[at] + g_h[at] * o * (1 - t * t);
                near(next_c[at], cell);
                near(next_h[at], o * t);
                near(d_sums[b * 4 * H + j], d * g * i * (1 - i));
                near(d_sums[(b * 4 + 1) * H + j], d * c[at] * f * (1 - f));
                near(d_sums[(b * 4 + 2) * H + j], g_h[at] * t * o * (1 - o));
                near(d_sums[(b * 4 + 3) * H + j], d * i * (1 - g * g));
                near(d_c[at], d * f);
                CHECK(d_h[at] == 0);  // through the product, which the kernel does not compute
            }
        }
    }
}

TEST_CASE("LSTM: the same bits for any number of threads")
{
    constexpr std::size_t B = 37, H = 1000;
    const auto x = some<float>(B * 4 * H, 1), u = some<float>(B * 4 * H, 2), h = some<float>(B * H, 3),
               c = some<float>(B * H, 4);
    const auto all = [&] {
        std::vector<float> saved(5 * B * H), next_h(B * H), next_c(B * H), sums(4 * B * H), d_c(B * H);
        const lstm_step<float> step{B, H, x.data(), h.data(), c.data()};
        lstm_forward(step, u.data(), saved.data(), next_h.data(), next_c.data());
        lstm_backward(step, saved.data(), h.data(), c.data(), sums.data(), static_cast<float*>(nullptr), d_c.data());
        return list<list<float>>{next_h, next_c, sums, d_c};
    };
    const auto one = all();
    for (const std::size_t count : {std::size_t{2}, std::size_t{5}}) {
        set_threads(count);
        const auto several = all();
        for (std::size_t i = 0; i < one.size(); ++i) CHECK(same_bits(one[i], several[i]));
    }
    set_threads(1);
}
