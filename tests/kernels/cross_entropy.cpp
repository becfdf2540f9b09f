// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/cross_entropy.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <support/approx.hpp>
#include <support/kernels.hpp>
#include <support/special_rows.hpp>

namespace {

using namespace heed;
using namespace heed::kernels;
using namespace heed::test;

}  // namespace

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
    const double total = cross_entropy_in_place<float>(1, 3, x.data(), target.data(), nullptr, 0.0f, loss.data());
    CHECK(loss[0] == support::approx(std::log(2.0F)));
    CHECK(total == static_cast<double>(loss[0]));  // without weights, each row counts once
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

TEST_CASE_TEMPLATE("cross-entropy and its gradient", T, float, double)
{
    each_row<T>([](const list<T>& x) {
        const std::uint32_t target = 0;
        list<T> y = x;
        T loss = 0;
        kernels::cross_entropy_in_place<T>(1, x.size(), y.data(), &target, nullptr, T(0), &loss);
        const double top = static_cast<double>(greatest(x));
        list<double> gradient(x.size());
        double sum = 0;
        for (std::size_t i = 0; i < x.size(); ++i) { sum += gradient[i] = std::exp(static_cast<double>(x[i]) - top); }
        for (double& e : gradient) e /= sum;
        gradient[0] -= 1;
        require_equal(y.data(), gradient);
        require_equal(&loss, {std::log(sum) - (static_cast<double>(x[0]) - top)});
    });
}
