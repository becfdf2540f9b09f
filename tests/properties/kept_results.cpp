// SPDX-License-Identifier: BSD-3-Clause
//
// step_into of inner-product scores is implemented separately; large temporaries are kept for the next step.

#include <doctest/doctest.h>

#include <heed/heed.hpp>
#include <support/tensors.hpp>

#include <cmath>
#include <string>
#include <utility>

using namespace heed;
using support::random;
using support::same_bits;

namespace {

/// Checks that step_into equals step, bit for bit: with rows of all lengths, NaN in their padding, and both thread
/// counts.
template <class Attend>
void check(const Attend& attend, std::size_t T, std::size_t query_width)
{
    memory<array<double, 3>, array<double, 3>> source{
        random({3, T, 19}, 1), random({3, T, 19}, 2), {T, 0, (T + 1) / 2}};
    for (std::size_t t = (T + 1) / 2; t < T; ++t) source.values(2, t, 0) = source.keys(2, t, 3) = std::nan("");
    for (const std::size_t count : {1u, 2u}) {
        set_threads(count);
        auto state = attend.start(source);
        auto kept = attend.step(source, random({3, query_width}, 99), state);
        kept.state = state;
        for (std::uint64_t s = 0; s < T + 3; ++s) {
            const auto query = random({3, query_width}, 10 + s);
            auto must = attend.step(source, query, state);
            attend.step_into(kept, source, query, kept.state);
            CHECK(same_bits(kept.context, must.context));
            CHECK(same_bits(kept.weights, must.weights));
            CHECK(kept.state.step == must.state.step);
            state = must.state;
        }
    }
    set_threads(1);
}

template <class Score>
void check_all(const Score& score, std::size_t query_width)
{
    for (const std::size_t T : {1u, 2u, 9u, 40u}) {
        check(attention{score, normalize::softmax{}, combine::weighted_sum{}}, T, query_width);
        for (const std::size_t reach : {std::size_t{0}, std::size_t{3}, std::size_t(-1)}) {
            check(attention{score, normalize::local_m{reach}, combine::weighted_sum{}}, T, query_width);
        }
    }
}

}  // namespace

TEST_CASE("a step into existing results equals a step")
{
    check_all(score::dot{}, 19);
    check_all(score::scaled_dot{}, 19);
    check_all(score::scaled_dot{0.3}, 19);
    check_all(score::general{random({7, 19}, 3)}, 7);
}

TEST_CASE("a query that does not fit is rejected before anything is written")
{
    const auto attend = attention{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto source = attend.on(random({2, 4, 5}, 1));
    auto kept = attend.step(source, random({2, 5}, 2), attend.start(source));
    const auto before = kept;
    for (const auto& query : {random({2, 6}, 3), random({3, 5}, 3)}) {
        CHECK_THROWS_AS(attend.step_into(kept, source, query, kept.state), shape_error);
    }
    CHECK(same_bits(kept.context, before.context));
    CHECK(same_bits(kept.weights, before.weights));
    CHECK(kept.state.step == before.state.step);
}
