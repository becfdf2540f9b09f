// SPDX-License-Identifier: BSD-3-Clause
//
// step_into does not allocate after the first call. A separate program, because it replaces operator new.

#include <doctest/doctest.h>

#include <heed/heed.hpp>
#include <support/allocations.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::allocations;
using support::random;

namespace {

template <class T>
void check(const auto& attend, const auto& query)
{
    const auto memory = attend.on(random<T>({3, 20, 33}, 4), lengths{20, 0, 7});
    const auto start = attend.start(memory);
    decltype(attend.step(memory, query, start)) result;
    for (const std::size_t count : {1u, 2u}) {
        set_threads(count);
        attend.step_into(result, memory, query, start);
        attend.step_into(result, memory, query, result.state);
        const void* const context = result.context.data();
        const std::size_t before = allocations;
        for (int s = 0; s < 10; ++s) attend.step_into(result, memory, query, result.state);
        CHECK(allocations - before == 0);
        CHECK(result.context.data() == context);
    }
    set_threads(1);
}

template <class T>
void check_all()
{
    const auto W = random<T>({12, 40}, 1), U = random<T>({33, 40}, 2), V = random<T>({40, 33}, 3),
               Y = random<T>({5, 40}, 4);
    const auto v = random<T>({40}, 5);
    const auto s = random<T>({3, 12}, 6);
    const state_and_word with_word{s, random<T>({3, 5}, 7)};
    const score::additive additive{W, U, v};
    const score::additive_per_dimension per_dimension{W, U, V};
    const normalize::softmax softmax;
    const normalize::temporal temporal;
    check<T>(attention{additive, softmax, combine::weighted_sum{}}, s);
    check<T>(attention{additive, temporal, combine::weighted_sum{}}, s);
    check<T>(attention{score::with_word{additive, Y}, softmax, combine::weighted_sum{}}, with_word);
    check<T>(attention{score::with_word{additive, Y}, temporal, combine::weighted_sum{}}, with_word);
    check<T>(attention{per_dimension, softmax, combine::elementwise_sum{}}, s);
    check<T>(attention{score::with_word{per_dimension, Y}, softmax, combine::elementwise_sum{}}, with_word);

    const auto wide = random<T>({3, 33}, 8);
    check<T>(attention{score::dot{}, softmax, combine::weighted_sum{}}, wide);
    check<T>(attention{score::scaled_dot{}, softmax, combine::weighted_sum{}}, wide);
    check<T>(attention{score::general{random<T>({12, 33}, 9)}, softmax, combine::weighted_sum{}}, s);
    check<T>(attention{score::dot{}, normalize::local_m{4}, combine::weighted_sum{}}, wide);
}

}  // namespace

TEST_CASE("allocations are counted")
{
    const std::size_t before = allocations;
    CHECK(random({3, 4}, 1).size() == 12);
    CHECK(allocations > before);
}

TEST_CASE("a fused step into existing results does not allocate")
{
    check_all<float>();
    check_all<double>();
}
