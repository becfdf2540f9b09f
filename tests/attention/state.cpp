// SPDX-License-Identifier: BSD-3-Clause
#include <heed/attention/state.hpp>

#include <heed/heed.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <type_traits>

#include <support/mechanisms.hpp>

using namespace heed;
using support::random;

// The state of a mechanism without history is only the index of the next query and of the head.
static_assert(sizeof(attention_state<no_state>) == 2 * sizeof(std::size_t));
static_assert(std::is_empty_v<normalize::temporal> && std::is_empty_v<combine::weighted_sum>);

TEST_CASE("a state of another batch is rejected in every executor")
{
    constexpr std::size_t D = 4;
    const auto each = [](const char* what, const auto& attend, std::size_t T) {
        const auto memory = attend.on(random({3, T, D}, 1), lengths{T, 3, T});
        const auto right = attend.start(memory);
        const auto query = random({3, D}, 2);
        const auto queries = random({3, 8, D}, 3);
        auto result = attend.step(memory, query, right);
        for (const std::size_t B : {std::size_t{1}, std::size_t{2}, std::size_t{4}}) {
            const auto other = attend.on(random({B, T, D}, 4));
            const auto first = attend.start(other);
            for (const auto& state : {first, attend.step(other, random({B, D}, 5), first).state}) {
                CAPTURE(what);
                CAPTURE(B);
                CAPTURE(T);
                const auto refuses = [&](auto&& ask) {
                    CHECK_THROWS_WITH_AS(ask(), doctest::Contains(("is [" + std::to_string(B)).c_str()), shape_error);
                };
                refuses([&] { return attend.step(memory, query, state); });
                refuses([&] { return attend.read(memory, query, state); });
                refuses([&] { return attend.compose(memory, query, state); });
                refuses([&] { return attend.step(memory, query, state, lengths{2, 2, 2}); });
                refuses([&] { return attend.step(with_cache(memory), query, state); });
                refuses([&] { return attend.step(shared_memory(memory, {0, 1, 2}), query, state); });
                refuses([&] { attend.step_into(result, memory, query, state); });
                refuses([&] { return attend.read_all(memory, queries, state); });
                refuses([&] { return attend.weights_of(memory, queries, state, no_mask{}); });
            }
        }
        CHECK_NOTHROW(attend.read_all(memory, queries, right));
        CHECK_NOTHROW(attend.weights_of(memory, queries, result.state, no_mask{}));
    };
    const auto plain = [] { return score::scaled_dot{}; };
    const score::additive add{random({D, 3}, 1), random({D, 3}, 2), random({3}, 3)};
    const combine::weighted_sum sum{};
    for (const std::size_t T : {std::size_t{6}, std::size_t{600}}) {  // 600: tile by tile
        each("temporal", attention{plain(), normalize::temporal{}, sum}, T);
        each("a kernel, temporal", attention{add, normalize::temporal{}, sum}, T);
        each("monotonic", attention{plain(), normalize::monotonic{random({1}, 6)}, sum}, T);
        each("local_m, temporal", attention{plain(), normalize::local_m{1, normalize::temporal{}}, sum}, T);
        // The score would compute a new state from the keys and ignore the one given.
        each("forgetting",
             attention{score::forgetting{plain(), random({D, 1}, 7), random({1}, 8)}, normalize::softmax{}, sum}, T);
        each("with_neighbors", attention{score::with_neighbors{add, random({3, 3}, 9)}, normalize::softmax{}, sum}, T);
    }
}

namespace family_of_a_step {

using support::random;

namespace {

const attention attend{score::additive{random({3, 4}, 1), random({5, 4}, 2), random({4}, 3)}, normalize::softmax{},
                       combine::weighted_sum{}};
const auto annotations = random({2, 6, 5}, 4);

}  // namespace

TEST_CASE("one taped tensor is enough: parameters, annotations or the query")
{
    const auto query = random({2, 3}, 5);
    const auto memory = attend.on(annotations, lengths{6, 2});
    const auto must = attend.step(memory, query, attend.start(memory));
    ad::tape<double> on;
    const auto check = [&](const auto& a, const auto& h, const auto& q) {
        const auto m = a.on(h, lengths{6, 2});
        const auto now = a.compose(m, q, a.start(m));
        static_assert(rank_of<decltype(now.context)> == 2 && !plain_tensor<decltype(now.context)>);
        CHECK(support::distance(now.context, must.context) < 1e-14);
        const auto loss = ops::dot(now.context, support::uneven(shape_of(must.context)));
        on.backward(loss);
    };
    const auto model = ad::lift(on, attend);
    const auto h = on.parameter(annotations);
    const auto q = on.parameter(query);
    SUBCASE("parameters")
    {
        check(model, annotations, query);
        CHECK(on.gradient(model.score.W).data[0] != 0);
    }
    SUBCASE("annotations")
    {
        check(attend, h, query);
        CHECK(on.gradient(h).data[0] != 0);
    }
    SUBCASE("the query")
    {
        check(attend, annotations, q);
        CHECK(on.gradient(q).data[0] != 0);
    }
    SUBCASE("parameters and the query")
    {
        check(model, annotations, q);
        CHECK(on.gradient(q).data[0] != 0);
    }
    SUBCASE("all three")
    {
        check(model, h, q);
        CHECK(on.gradient(h).data[0] != 0);
    }
}

}  // namespace family_of_a_step
