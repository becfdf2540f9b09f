// SPDX-License-Identifier: BSD-3-Clause
//
// step_into of scores by inner product has a form of its own; large temporaries are kept for the next step.

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

/// step_into is step, bit for bit: with rows of all lengths, values behind them that are no numbers, and both thread
/// counts.
template <class Attend>
void check(const Attend& attend, std::size_t T, std::size_t query_width)
{
    static_assert(kept_form<Attend>::exists);
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

TEST_CASE("a step into results that are there is a step")
{
    check_all(score::dot{}, 19);
    check_all(score::scaled_dot{}, 19);
    check_all(score::scaled_dot{0.3}, 19);
    check_all(score::general{random({7, 19}, 3)}, 7);
}

TEST_CASE("a query that does not fit is refused before anything is written")
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

TEST_CASE("what is given back is used again, if it is large and of the same size")
{
    const shape_of_rank<2> large{200, 300}, turned{300, 200}, small{2, 3};
    auto x = storage_for<double, 2>(large);
    const double* const where = x.data();
    give_back(x);
    auto y = storage_for<double, 2>(turned);
    CHECK(y.data() == where);
    CHECK(y.shape() == turned);
    CHECK(y(299, 199) == y.data()[y.size() - 1]);  // its strides fit, too
    CHECK(storage_for<double, 2>(large).data() != where);

    auto few = storage_for<double, 2>(small);
    give_back(few);
    CHECK(few.shape() == small);
}

TEST_CASE("an operation takes over the storage of a temporary, and of nothing else")
{
    const auto x = random({200, 300}, 1);
    const auto copy = x;
    auto y = ops::tanh(x);
    CHECK(same_bits(x, copy));
    const double* const where = y.data();
    auto z = ops::scale(y, 2.0);
    CHECK(y.data() == where);
    z = ops::scale(std::move(y), 2.0);
    CHECK(ops::tanh(x).data() == where);
    CHECK(same_bits(z, ops::scale(ops::tanh(x), 2.0)));
}
