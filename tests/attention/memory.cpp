// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <vector>

#include <heed/heed.hpp>
#include <heed/ops/parts.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::random;

namespace {

using matrix = array<double, 2>;
using scores = score::additive<matrix, array<double, 1>>;

scores additive() { return {random({3, 4}, 1), random({5, 4}, 2), random({4}, 3)}; }

/// A memory of three sentences that is laid out anew for each row, and one that rows share: the same in every bit.
template <class Attention, class Ask>
void compare(const Attention& attend, const Ask& ask)
{
    const auto memory = attend.on(random({3, 6, 5}, 4), lengths{6, 2, 0});
    for (const std::vector<std::size_t>& rows : {std::vector<std::size_t>{0, 0, 1, 1, 1, 2},
                                                 {1},
                                                 {2, 0, 1, 0},
                                                 {2, 1, 0},
                                                 {},
                                                 std::vector<std::size_t>(30, 1)}) {
        const std::remove_cvref_t<decltype(memory)> tiled{ops::rows_of(memory.values, std::span(rows)),
                                                          ops::rows_of(memory.keys, std::span(rows)),
                                                          memory.real.rows(rows), no_mask{}};
        const shared_memory shared(memory, rows);
        CHECK(shared.batch() == rows.size());
        CHECK(shared.positions() == 6);
        CHECK(shared.width() == 5);
        auto state = attend.start(tiled);
        for (std::uint64_t step = 0; step < 3; ++step) {
            const auto query = ask(rows.size(), 10 + step);
            const auto seen = attend.step(tiled, query, state), same = attend.step(shared, query, state);
            CHECK(support::same_bits(seen.context, same.context));
            CHECK(support::same_bits(seen.weights, same.weights));
            if constexpr (requires { state.normalize.history; }) {
                CHECK(support::same_bits(seen.state.normalize.history, same.state.normalize.history));
            }
            CHECK(support::same_bits(attend.read(shared, query, state).context, seen.context));
            auto kept = attend.step(tiled, ask(rows.size(), 99), attend.start(tiled));  // of the same shapes
            attend.step_into(kept, shared, query, state);
            CHECK(support::same_bits(kept.context, seen.context));
            CHECK(support::same_bits(kept.weights, seen.weights));
            if constexpr (requires { state.normalize.history; }) {
                CHECK(support::same_bits(kept.state.normalize.history, seen.state.normalize.history));
            }
            state = same.state;
        }
        if constexpr (requires { ask.all(rows.size()); }) {
            const auto queries = ask.all(rows.size());
            CHECK(support::same_bits(attend(shared, queries), attend(tiled, queries)));
        }
    }
}

struct plain_query {
    auto operator()(std::size_t rows, std::uint64_t seed) const { return random({rows, 3}, seed); }
    auto all(std::size_t rows) const { return random({rows, 4, 3}, 50); }
};

}  // namespace

TEST_CASE("rows that share a sentence's memory see what they see in copies of it")
{
    const std::size_t before = threads();
    for (const std::size_t count : {1u, 3u}) {
        set_threads(count);
        compare(attention{additive(), normalize::softmax{}, combine::weighted_sum{}}, plain_query{});
        compare(attention{additive(), normalize::temporal{}, combine::weighted_sum{}}, plain_query{});
        compare(attention{score::forgetting{additive(), random({5, 1}, 6), random({1}, 7)}, normalize::sigmoid{},
                          combine::weighted_sum{}},
                plain_query{});
        // Many queries of a memory that is not shared are products, which round otherwise.
        const auto one = [](std::size_t rows, std::uint64_t seed) { return random({rows, 3}, seed); };
        compare(attention{score::contextual_positions{score::general{random({3, 5}, 8)}, random({5, 3}, 9)},
                          normalize::softmax{}, combine::weighted_sum{}},
                one);
        compare(
            attention{score::dynamic_convolution{random({3, 3}, 8)}, normalize::retention{}, combine::weighted_sum{}},
            one);
        compare(
            attention{score::with_word{additive(), random({2, 4}, 5)}, normalize::temporal{}, combine::weighted_sum{}},
            [](std::size_t rows, std::uint64_t seed) {
                return state_and_word{random({rows, 3}, seed), random({rows, 2}, seed + 100)};
            });
    }
    set_threads(before);
}

TEST_CASE("a row that asks about no sentence is refused")
{
    const attention attend{additive(), normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(random({2, 6, 5}, 4));
    CHECK(support::message_of<shape_error>([&] {
              shared_memory(memory, {0, 2});
          }) == "lengths::rows: row 2 of a batch of 2; rows count from 0");
    shared_memory shared(memory, {0, 1, 1});
    shared.sentence[2] = 7;
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                attend.step(shared, random({3, 3}, 6), attend.start(shared));
                            }),
                            "a row asks about sentence 7 of 2; sentences count from 0"));
    shared.sentence[2] = 1;
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                attend.step(shared, random({2, 3}, 6), attend.start(shared));
                            }),
                            "the projected query"));
}
