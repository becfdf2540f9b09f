// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <support/gradients.hpp>
#include <support/tensors.hpp>

#include <cmath>
#include <utility>
#include <vector>

using namespace heed;
using support::distance;
using support::random;

namespace {

constexpr std::size_t B = 3, T = 9, S = 4, N = 4;

const auto far = random({B, std::size_t{13}}, 3);
const auto f = [](auto e, place p, const auto& bias) {
    return e * bias(p.batch, p.key) + bias(0, p.key - p.query + 4);
};
const lengths real({T, 5, 1});

auto by(const auto& normalize)
{
    return attention{score::modified{score::dot{}, far, f}, normalize, combine::weighted_sum{}};
}

/// Contexts of softmax over the keys begin … end − 1 of each query and sentence, number by number.
array<double, 3> within(const array<double, 3>& h, const array<double, 3>& q, const auto& window)
{
    array<double, 3> contexts({B, S, N});
    for (std::size_t b = 0; b < B; ++b) {
        for (std::size_t s = 0; s < S; ++s) {
            const auto [begin, end] = window(b, s);
            double sum = 0;
            std::vector<double> context(N, 0.0);
            for (std::size_t t = begin; t < end; ++t) {
                double e = 0;
                for (std::size_t i = 0; i < N; ++i) e += q(b, s, i) * h(b, t, i);
                const double p = std::exp(e * far(b, t) + far(0, t + 4 - s));
                sum += p;
                for (std::size_t i = 0; i < N; ++i) context[i] += p * h(b, t, i);
            }
            for (std::size_t i = 0; i < N; ++i) contexts(b, s, i) = sum == 0 ? 0 : context[i] / sum;
        }
    }
    return contexts;
}

}  // namespace

TEST_CASE("a function of places, one query after the other: within a window, and without one")
{
    const auto h = random({B, T, N}, 1), q = random({B, S, N}, 2);
    const std::size_t reach = 2;
    const auto near = by(normalize::local_m{reach});
    const auto centred = [&](std::size_t b, std::size_t s) {
        const auto found = near.normalize.stretch_at(s, real[b]);
        return std::pair(found.first, found.first + found.count);
    };
    CHECK(distance(near(near.on(h, real), q), within(h, q, centred)) < 1e-12);
    const auto all = by(normalize::softmax{});
    const auto everywhere = [&](std::size_t b, std::size_t) { return std::pair(std::size_t{0}, real[b]); };
    const auto memory = all.on(h, real);
    auto state = all.start(memory);
    const auto contexts = within(h, q, everywhere);
    for (std::size_t s = 0; s < S; ++s) {
        auto next = all.step(memory, ops::step_of(q, s), state);
        CHECK(distance(next.context, ops::step_of(contexts, s)) < 1e-12);
        state = next.state;
    }
}

TEST_CASE("what goes back through a window")
{
    const auto h = random({B, T, N}, 1), q = random({B, S, N}, 2);
    CHECK_GRADIENT(
        [](const auto& table, const auto& queries, const auto& annotations) {
            const attention near{score::modified{score::dot{}, table, f}, normalize::local_m{2},
                                 combine::weighted_sum{}};
            return near(near.on(annotations, real), queries);
        },
        far, q, h);
}
