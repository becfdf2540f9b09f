// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/recurrent.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

using namespace heed;

namespace {

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

/// Forward and backward, number by number, at every width; row 1 has ended.
template <class T>
void check(double bound)
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

TEST_CASE("a step and its backward pass are their equations, at every width")
{
    check<double>(1e-13);
    check<float>(2e-6);
}
