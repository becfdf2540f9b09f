// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>

#include "harness.hpp"
#include "rounds.hpp"
#include "search.hpp"

/// Mechanisms of many queries, as columns that take turns.
namespace bench {

using namespace heed;

struct size {
    std::size_t batch, heads, length, width;

    double pairs() const { return static_cast<double>(batch * heads * length * length); }
    double operations(bool backward) const { return (backward ? 14.0 : 4.0) * static_cast<double>(width) * pairs(); }
    ops::heads_of how() const { return {heads, heads, 1 / std::sqrt(static_cast<double>(width))}; }
};

inline array<float, 3> numbers(const size& z, unsigned seed)
{
    array<float, 3> x(shape_of_rank<3>{z.batch, z.length, z.heads * z.width});
    fill(x.data(), x.size(), seed, 1.0F);
    return x;
}

/// The seconds of one call.
template <class Run>
std::function<double()> timed(int threads, Run run)
{
    return [threads, run] {
        const double begin = search::now(threads);
        run();
        return search::now(threads) - begin;
    };
}

/// A mechanism of one head, forward, or forward and backward.
template <class Attention, class Mask>
column mechanism(int threads, const std::string& name, const size& z, bool backward, const Attention& attend,
                 const Mask& mask)
{
    struct kept {
        array<float, 3> q, h, d;
        ad::tape<float> tape;
    };
    const std::shared_ptr<kept> s(new kept{numbers(z, 1), numbers(z, 2), numbers(z, 4), {}});
    return {name, timed(threads, [=] {
                if (!backward) {
                    benchmark::DoNotOptimize(attend(attend.on(s->h), s->q, mask));
                } else {
                    s->tape.clear();
                    const auto q = s->tape.parameter(s->q), h = s->tape.parameter(s->h);
                    const auto lifted = ad::lift(s->tape, attend);
                    s->tape.backward(ops::dot(lifted(lifted.on(h), q, mask), s->d));
                    benchmark::DoNotOptimize(s->tape.gradient(q));
                }
            })};
}

template <class Score = score::scaled_dot, class Normalize = normalize::softmax>
auto made(const Score& score = {}, const Normalize& normalize = {})
{
    return attention{score, normalize, combine::weighted_sum{}};
}

}  // namespace bench
