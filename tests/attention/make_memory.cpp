// SPDX-License-Identifier: BSD-3-Clause
#include <heed/attention/make_memory.hpp>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include <support/allocations.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/tensors.hpp>

//
// The copies that `on` makes. A separate program, because it replaces operator new.
using namespace heed;
using support::random;
using support::same_bits;

namespace {

constexpr std::size_t B = 3, T = 40, D = 64;
constexpr std::size_t bytes = B * T * D * sizeof(float);

/// The number of blocks at least as large as the annotations that f() allocates.
template <class F>
std::size_t large_blocks(F&& f)
{
    support::count_from = bytes;
    const std::size_t before = support::large;
    f();
    support::count_from = 0;
    return support::large - before;
}

const attention by_dot{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};

auto by_network()
{
    return attention{score::additive{random<float>({D, 4}, 1), random<float>({D, 4}, 2), random<float>({4}, 3)},
                     normalize::softmax{}, combine::weighted_sum{}};
}

boolean_mask<2> mask_of(bool last)
{
    array<bool, 2> attend(shape_of_rank<2>{B, T}, true);
    attend(1, 3) = last;
    return boolean_mask<2>(attend);
}

}  // namespace

TEST_CASE("a view is not copied unless padding has to be cleared, and then once")
{
    const auto x = random<float>({B, T, D}, 4);
    const auto network = by_network();
    const auto view = view_of(x);
    const lengths full{T, T, T}, some{T, 7, T};
    CHECK(large_blocks([&] { CHECK(by_dot.on(view).values.data() == x.data()); }) == 0);
    CHECK(large_blocks([&] { CHECK(by_dot.on(view).keys.data() == x.data()); }) == 0);
    CHECK(large_blocks([&] { CHECK(by_dot.on(view, full).keys.data() == x.data()); }) == 0);
    CHECK(large_blocks([&] { CHECK(by_dot.on(view, mask_of(true)).values.data() == x.data()); }) == 0);
    CHECK(large_blocks([&] { CHECK(network.on(view, full).values.data() == x.data()); }) == 0);
    CHECK(large_blocks([&] { CHECK(network.on(view, view, full).values.data() == x.data()); }) == 0);
    CHECK(large_blocks([&] { CHECK(by_dot.on(view, some).values.data() != x.data()); }) == 1);
    CHECK(large_blocks([&] { CHECK(network.on(view, mask_of(false)).values.data() != x.data()); }) == 1);
    // Copying a memory of views does not copy numbers.
    const auto memory = by_dot.on(view, some);
    CHECK(large_blocks([&] {
              const auto copy = memory;
              CHECK(copy.values.data() == memory.values.data());
          }) == 0);
}

TEST_CASE("a moved array is cleared in place; an lvalue is copied once for the values")
{
    const auto network = by_network();
    auto x = random<float>({B, T, D}, 4);
    const auto before = x;
    const float* const at = x.data();
    CHECK(large_blocks([&] {
              const auto memory = network.on(std::move(x), lengths{T, 7, 0});
              CHECK(memory.values.data() == at);
              CHECK(memory.values(1, 6, 0) == before(1, 6, 0));
              CHECK(memory.values(1, 7, 0) == 0);
              CHECK(memory.values(2, 0, 0) == 0);
          }) == 0);
    CHECK(large_blocks([&] { (void)network.on(before, lengths{T, 7, 0}); }) == 1);
    CHECK(large_blocks([&] { (void)network.on(before); }) == 1);
    CHECK(large_blocks([&] { (void)by_dot.on(before); }) == 2);  // values and keys
    auto y = before;
    CHECK(large_blocks([&] { (void)by_dot.on(std::move(y)); }) == 1);  // keys
    CHECK(same_bits(before, random<float>({B, T, D}, 4)));
}

TEST_CASE("heads read annotations without a copy")
{
    const auto x = random<float>({B, T, D}, 4);
    const auto W = random<float>({D, 8}, 5);
    const multi_head heads{
        std::vector(2, attention{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}}), W, W, W,
        random<float>({8, 8}, 6)};
    CHECK(large_blocks([&] { (void)heads.on(x, lengths{T, T, T}); }) == 0);
    CHECK(large_blocks([&] { (void)heads.on(x, lengths{T, 3, T}); }) == 1);
}

TEST_CASE("memories of views, moved and copied arrays give the same bits, with any padding")
{
    auto x = random<float>({B, T, D}, 4);
    for (std::size_t d = 0; d < D; ++d) x(1, 9, d) = std::numeric_limits<float>::quiet_NaN();
    const auto query = random<float>({B, D}, 7);
    const lengths real{T, 9, 1};
    const auto copied = by_dot.on(x, real);
    const auto must = by_dot.compose(copied, query, by_dot.start(copied));
    const auto look = [&](const auto& memory) {
        const auto found = by_dot.compose(memory, query, by_dot.start(memory));
        CHECK(same_bits(found.context, must.context));
        CHECK(same_bits(found.weights, must.weights));
        const std::vector<std::size_t> which{1, 0};
        const auto rows = memory.rows(which);
        CHECK(rows.real[0] == 9);
        CHECK(rows.values(0, 8, 1) == x(1, 8, 1));
    };
    look(by_dot.on(view_of(x), real));
    auto y = x;
    look(by_dot.on(std::move(y), real));
}

TEST_CASE("extending a memory of views appends copies and leaves the views unchanged")
{
    const auto x = random<float>({B, T, D}, 4), more = random<float>({B, 2, D}, 5);
    const auto network = by_network();
    auto memory = network.on(view_of(x));
    memory = network.extend(memory, more);
    auto must = network.on(x);
    must = network.extend(must, more);
    CHECK(same_bits(memory.values, must.values));
    CHECK(same_bits(memory.keys, must.keys));
    // A memory that owns its values takes views.
    auto other = network.on(x);
    other = network.extend(other, view_of(more));
    CHECK(same_bits(other.values, must.values));
}

namespace states_of_grown_memories {

//
// States of growing memories: a new position starts as `start` initializes it, with the first query that sees it.
using support::random;

namespace {

constexpr std::size_t N = 6, E = 3;

using counts = std::vector<std::size_t>;

/// `count` positions of each row, after the first `behind`.
auto part_of(const array<double, 3>& x, const counts& behind, const counts& count)
{
    auto some = filled<double, 3>({x.shape()[0], *std::max_element(count.begin(), count.end()), x.shape()[2]},
                                  7.0);  // any padding
    for (std::size_t b = 0; b < x.shape()[0]; ++b)
        for (std::size_t t = 0; t < count[b]; ++t)
            for (std::size_t i = 0; i < x.shape()[2]; ++i) some(b, t, i) = x(b, behind[b] + t, i);
    return some;
}

/// x with the positions of `begun` after the first `known` of each row.
template <class X>
X begun_again(const X& x, const X& begun, const counts& known)
{
    X y = x;
    const auto shape = shape_of(x);
    const std::size_t width = x.size() / (shape[0] * shape[1]);
    for (std::size_t i = 0; i < x.size(); ++i)
        if (i / width % shape[1] >= known[i / width / shape[1]]) y.data()[i] = begun.data()[i];
    return y;
}

/// The number of positions of the two rows at each query.
const std::vector<std::vector<counts>> schedules{
    {{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}},  // one by one
    {{2, 2}, {4, 4}, {4, 4}, {9, 9}, {9, 9}},  // by two, by five
    {{0, 0}, {3, 3}, {3, 3}, {5, 5}, {9, 9}},  // from an empty memory
    {{3, 1}, {3, 2}, {4, 4}, {4, 4}, {5, 9}},  // of different lengths: a row grows, and the longest stays
    {{1, 4}, {1, 5}, {6, 5}, {7, 7}, {7, 9}},
};

enum class hidden { as_masked, begun_again };

/// Checks queries of a memory that grows between them, against a memory with all positions, of which queries see the
/// same number. `how`: whether a position that no query has seen counts as masked, or starts again.
template <bool with_word = false>
void check(const auto& attend, hidden how)
{
    const auto words = random({2, 9, N}, 1), queries = random({2, 5, N}, 2), targets = random({2, 5, E}, 3);
    const auto query = [&](std::size_t s) {
        if constexpr (with_word) {
            return state_and_word{ops::step_of(queries, s), ops::step_of(targets, s)};
        } else {
            return ops::step_of(queries, s);
        }
    };
    const auto whole = attend.on(words);
    for (const auto& seen : schedules) {
        CAPTURE(&seen - schedules.data());
        const bool even = std::all_of(seen.begin(), seen.end(), [](const counts& n) { return n[0] == n[1]; });
        auto memory = with_cache(attend.on(part_of(words, {0, 0}, seen[0]), lengths(seen[0])));
        auto plain = attend.on(part_of(words, {0, 0}, {seen[0][0], seen[0][0]}));
        auto state = attend.start(memory), composed = state, kept = state, read = state;
        auto beside = attend.start(plain), beside_all = beside, must = attend.start(whole);
        auto result = attend.step(memory, query(0), state);
        for (std::size_t s = 0; s < 5; ++s) {
            CAPTURE(s);
            if (s > 0) {
                const counts more{seen[s][0] - seen[s - 1][0], seen[s][1] - seen[s - 1][1]};
                const auto added = part_of(words, seen[s - 1], more);
                memory = attend.extend(memory, added, lengths(more));
                if (even) plain = attend.extend(plain, added);
                if (how == hidden::begun_again) {
                    const auto again = [&](const auto& x, const auto& begun) {
                        return begun_again(x, begun, seen[s - 1]);
                    };
                    const auto begun = attend.start(whole);
                    must.normalize = must.normalize.map(again, begun.normalize);
                    must.score = must.score.map(again, begun.score);
                }
            }
            const auto expected = attend.step(whole, query(s), must, lengths(seen[s]));
            const auto is = attend.step(memory, query(s), state);
            CHECK(support::distance(is.context, expected.context) < 1e-12);
            for (std::size_t b = 0; b < 2; ++b) {
                const std::size_t P = shape_of(is.weights)[1],
                                  row = is.weights.size() / (2 * std::max<std::size_t>(P, 1));
                for (std::size_t i = 0; i < seen[s][b] * row; ++i)
                    CHECK(std::abs(is.weights.data()[b * P * row + i] - expected.weights.data()[b * 9 * row + i]) <
                          1e-12);
            }
            const auto by_lines = attend.compose(memory, query(s), composed);
            CHECK(support::distance(by_lines.context, expected.context) < 1e-12);
            attend.step_into(result, memory, query(s), kept);
            CHECK(support::distance(result.context, expected.context) < 1e-12);
            if constexpr (!with_word) {
                const auto all = attend.read_all(memory, ops::slice(queries, 1, s, s + 1), read);
                CHECK(support::distance(ops::step_of(all.contexts, 0), expected.context) < 1e-12);
                read = all.state;
            }
            if (even) {
                const auto copied = attend.step(plain, query(s), beside);
                CHECK(support::distance(copied.context, expected.context) < 1e-12);
                beside = copied.state;
            }
            kept = result.state;
            composed = by_lines.state;
            state = is.state;
            must = expected.state;
            // A beam continues with the rows in a different order, then in the original order.
            const auto swapped = [](const auto& x) { return ops::rows_of(x, counts{1, 0}); };
            if (s == 2) memory = memory.rows(counts{1, 0}), state = state.map(swapped);
            if (s == 2) memory = memory.rows(counts{1, 0}), state = state.map(swapped);
        }
    }
}

constexpr std::size_t A = 4, C = 2;

score::additive<array<double, 2>, array<double, 1>> additive()
{
    return {random({N, A}, 74), random({N, A}, 75), random({A}, 76)};
}
auto by(const auto& normalize) { return attention{score::dot{}, normalize, combine::weighted_sum{}}; }
auto with(const auto& score) { return attention{score, normalize::softmax{}, combine::weighted_sum{}}; }

auto fertile() { return score::with_fertility{additive(), random({A}, 11), random({N}, 12)}; }
auto located() { return score::with_location{additive(), random({2, 3}, 13), random({2, A}, 14)}; }
auto covered()
{
    return score::with_coverage{additive(), random({C, A}, 15),
                                nn::coverage_gru{random({E, 3 * C}, 16), random({3 * C}, 17), random({C, 3 * C}, 18)}};
}
auto gated()
{
    return score::with_gated_coverage{additive(), random({C, A}, 19),
                                      nn::gated_coverage{random({N, 3 * C}, 20), random({N, 3 * C}, 21),
                                                         random({3 * C}, 22), random({C, 2 * C}, 23),
                                                         random({C, C}, 24)}};
}
auto recurrent()
{
    return score::with_recurrence{
        additive(), random({2, A}, 25),
        nn::gru{random({E + N, 6}, 26), random({6}, 27), random({2, 4}, 28), random({2, 2}, 29)}};
}
auto neighbors(const auto& base)
{
    return score::with_neighbors{score::with_neighbors{base, random({3, A}, 30), score::last_weights{}},
                                 random({5, A}, 31), score::all_weights{}};
}

}  // namespace

TEST_CASE("normalizers with a history per position")
{
    using namespace normalize;
    const array<double, 1> w{0.6};
    check(by(temporal{}), hidden::begun_again);
    check(by(recent_temporal{2, learned_temporal{w}}), hidden::begun_again);
    check(by(learned_temporal{w}), hidden::as_masked);
    check(by(learned_temporal{w, temperature{0.5, temporal{}}}), hidden::begun_again);
    check(by(hard{7, true}), hidden::as_masked);
    check(by(local_m{1, temporal{}}), hidden::begun_again);
    check(by(local_p{random({N, 3}, 51), random({3}, 52), 2, learned_temporal{w}, history::in_window{}}),
          hidden::as_masked);
    check(attention{additive(), temporal{}, combine::weighted_sum{}}, hidden::begun_again);
    check(by(chunkwise{2, w, monotonic{w}}), hidden::begun_again);
    check(by(noisy{0.5, 1, monotonic_hard{w}}), hidden::begun_again);
    const score::additive_per_dimension wide{random({N, A}, 55), random({N, A}, 56), random({A, N}, 57)};
    check(attention{wide, decayed_temporal{0.7, 0.3}, combine::elementwise_sum{}}, hidden::begun_again);
}

TEST_CASE("scores with a state per position")
{
    check(with(located()), hidden::as_masked);
    check(with(score::modified{neighbors(fertile()), [](auto e, score_index p) { return e + 0.1 * p.key; }}),
          hidden::as_masked);
    check<true>(with(recurrent()), hidden::as_masked);
    check(attention{gated(), normalize::temporal{}, combine::weighted_sum{}}, hidden::begun_again);
}

TEST_CASE("coverage: a position's embedding starts at the first query that sees it, which reads no word for it")
{
    const auto score = covered();
    const auto attend = with(score);
    const auto base = with(score.base);
    const auto words = random({2, 9, N}, 1), queries = random({2, 5, N}, 2), targets = random({2, 5, E}, 3);
    for (const auto& seen : schedules) {
        CAPTURE(&seen - schedules.data());
        auto memory = with_cache(attend.on(part_of(words, {0, 0}, seen[0]), lengths(seen[0])));
        auto state = attend.start(memory);
        auto coverage = filled<double, 3>({2, 9, C}, 0.0);
        auto alpha = filled<double, 2>({2, 9}, 0.0);
        for (std::size_t s = 0; s < 5; ++s) {
            CAPTURE(s);
            const auto query = ops::step_of(queries, s), word = ops::step_of(targets, s);
            if (s > 0) {
                const counts more{seen[s][0] - seen[s - 1][0], seen[s][1] - seen[s - 1][1]};
                memory = attend.extend(memory, part_of(words, seen[s - 1], more), lengths(more));
                const auto next = score.cell.step(word, alpha, coverage);
                coverage = begun_again(next, coverage, seen[s - 1]);
            }
            auto whole = base.on(words);
            whole.keys = ops::addmm(whole.keys, coverage, score.C);
            const auto expected = base.step(whole, query, base.start(whole), lengths(seen[s]));
            const auto is = attend.step(memory, state_and_word{query, word}, state);
            CHECK(support::distance(is.context, expected.context) < 1e-12);
            alpha = expected.weights;
            state = is.state;
        }
    }
}

TEST_CASE("positions: the length is the current number of positions")
{
    const auto attend =
        with(score::with_positions{score::with_word{additive(), random({E, A}, 32)}, random({3, A}, 33)});
    const auto words = random({2, 9, N}, 1), queries = random({2, 5, N}, 2), targets = random({2, 5, E}, 3);
    for (const auto& seen : schedules) {
        auto memory = with_cache(attend.on(part_of(words, {0, 0}, seen[0]), lengths(seen[0])));
        auto state = attend.start(memory);
        for (std::size_t s = 0; s < 5; ++s) {
            if (s > 0) {
                const counts more{seen[s][0] - seen[s - 1][0], seen[s][1] - seen[s - 1][1]};
                memory = attend.extend(memory, part_of(words, seen[s - 1], more), lengths(more));
            }
            const state_and_word query{ops::step_of(queries, s), ops::step_of(targets, s)};
            const auto plain = attend.on(part_of(words, {0, 0}, seen[s]), lengths(seen[s]));
            const auto is = attend.step(memory, query, state);
            CHECK(support::distance(is.context, attend.step(plain, query, from_query(attend.start(plain), s)).context) <
                  1e-12);
            state = is.state;
        }
    }
}

TEST_CASE("many queries and heads with history over a memory that grows between calls")
{
    const auto words = random({2, 9, N}, 1), queries = random({2, 40, N}, 2);
    const auto same = [&](const auto& attend) {
        for (const auto& seen : schedules) {
            auto memory = with_cache(attend.on(part_of(words, {0, 0}, seen[0]), lengths(seen[0])));
            auto state = attend.start(memory), one = state;
            for (std::size_t s = 0; s < 5; ++s) {
                if (s > 0) {
                    const counts more{seen[s][0] - seen[s - 1][0], seen[s][1] - seen[s - 1][1]};
                    memory = attend.extend(memory, part_of(words, seen[s - 1], more), lengths(more));
                }
                const auto all = attend.read_all(memory, ops::slice(queries, 1, 8 * s, 8 * s + 8), state);
                for (std::size_t i = 0; i < 8; ++i) {
                    const auto is = attend.step(memory, ops::step_of(queries, 8 * s + i), one);
                    CHECK(support::distance(ops::step_of(all.contexts, i), is.context) < 1e-12);
                    one = is.state;
                }
                state = all.state;
            }
        }
    };
    same(by(normalize::temporal{}));  // in tiles
    same(with(located()));
    same(multi_head{std::vector(2, by(normalize::temporal{})), random({N, 4}, 77), random({N, 4}, 78),
                    random({N, 4}, 79), random({4, N}, 80)});
}

namespace {

template <class Attend, class Words>
struct both {
    Attend attend;
    Words words;  // [2,6,N]

    static auto parameters(auto& self, auto&& visit)
    {
        auto attend = visit("attend", self.attend);
        auto words = visit("words", self.words);
        return both<decltype(attend), decltype(words)>{std::move(attend), std::move(words)};
    }
};
template <class Attend, class Words>
both(Attend, Words) -> both<Attend, Words>;

/// The contexts of successive queries of a memory that grows between them, on the tape, and without a tape in a memory
/// with shared blocks.
template <bool with_word>
void check_gradient(const auto& mechanism)
{
    const auto queries = random({2, 4, N}, 2), targets = random({2, 4, E}, 3);
    const std::size_t seen[] = {1, 2, 2, 6};
    const auto answers = [&](const auto& attend, const auto& words, const auto& memory_of) {
        const auto part = [&](std::size_t begin, std::size_t end) {
            return ops::slice(words, std::size_t{1}, begin, end);
        };
        auto memory = memory_of(attend.on(part(0, seen[0])));
        const auto query = [&](std::size_t s) {
            if constexpr (with_word) {
                return state_and_word{ops::step_of(queries, s), ops::step_of(targets, s)};
            } else {
                return ops::step_of(queries, s);
            }
        };
        auto state = attend.start(memory);
        auto first = attend.step(memory, query(0), state);
        std::vector<decltype(first.context)> contexts{first.context};
        auto now = first.state;
        for (std::size_t s = 1; s < 4; ++s) {
            if (seen[s] > seen[s - 1]) memory = attend.extend(memory, part(seen[s - 1], seen[s]));
            auto next = attend.step(memory, query(s), now);
            contexts.push_back(next.context);
            now = next.state;
        }
        return ops::stack(contexts);
    };
    both module{mechanism, random({2, 6, N}, 1)};
    const auto loss = [&](auto&, const auto& lifted) {
        const auto all = answers(lifted.attend, lifted.words, [](const auto& memory) { return memory; });
        CHECK(support::distance(copy_of(view_of(all)), answers(module.attend, module.words, [](const auto& memory) {
                                    return with_cache(memory);
                                })) < 1e-12);
        return ops::dot(all, support::uneven(shape_of(all)));
    };
    const auto found = ad::grad_check(module, loss);
    CHECK_MESSAGE(found, found.text());
}

}  // namespace

TEST_CASE("states also grow on a tape, with gradients")
{
    check_gradient<false>(by(normalize::recent_temporal{2, normalize::learned_temporal{array<double, 1>{0.6}}}));
    check_gradient<false>(with(neighbors(fertile())));
    check_gradient<false>(with(located()));
    check_gradient<false>(attention{gated(), normalize::temporal{}, combine::weighted_sum{}});
    check_gradient<true>(with(score::with_positions{covered(), random({3, A}, 33)}));
}

TEST_CASE("join_positions: the first positions of each row from one tensor, the others from another")
{
    const lengths known{2, 0, 3};
    const auto x = random({3, 3, 2}, 1), z = random({3, 5, 2}, 2);
    const auto y = ops::join_positions(x, z, known);
    CHECK(y.shape() == shape_of_rank<3>{3, 5, 2});
    for (std::size_t b = 0; b < 3; ++b)
        for (std::size_t t = 0; t < 5; ++t)
            for (std::size_t i = 0; i < 2; ++i) CHECK(y(b, t, i) == (t < known[b] ? x(b, t, i) : z(b, t, i)));
    CHECK_GRADIENT([&](const auto& a, const auto& b) { return ops::join_positions(a, b, known); }, x, z);
    CHECK_GRADIENT(
        [&](const auto& a, const auto& b) {
            return ops::join_positions(a, b, lengths{1, 0, 1});
        },
        random({3, 2}, 1), random({3, 1}, 2));
    CHECK_THROWS_WITH_AS(ops::join_positions(x, random({3, 5, 1}, 2), known),
                         doctest::Contains("except for its positions"), shape_error);
    CHECK_THROWS_AS(ops::join_positions(x, z, lengths({4, 0, 0})), shape_error);
}

}  // namespace states_of_grown_memories
