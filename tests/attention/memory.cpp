// SPDX-License-Identifier: BSD-3-Clause
#include <heed/attention/memory.hpp>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/ops/shape.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include <support/allocations.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::random;

namespace {

using matrix = array<double, 2>;
using scores = score::additive<matrix, array<double, 1>>;

scores additive() { return {random({3, 4}, 1), random({5, 4}, 2), random({4}, 3)}; }

/// Checks that a memory copied for each row and a memory that rows share give the same bits.
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

TEST_CASE("rows that share a sentence's memory give the same results as copies of it")
{
    const std::size_t before = threads();
    for (const std::size_t count : {1u, 3u}) {
        set_threads(count);
        compare(attention{additive(), normalize::softmax{}, combine::weighted_sum{}}, plain_query{});
        compare(attention{additive(), normalize::temporal{}, combine::weighted_sum{}}, plain_query{});
        compare(attention{score::forgetting{additive(), random({5, 1}, 6), random({1}, 7)}, normalize::sigmoid{},
                          combine::weighted_sum{}},
                plain_query{});
        // Many queries of a memory that is not shared are matrix products, which round differently.
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

TEST_CASE("a row with a nonexistent sentence is rejected")
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
                            "a row of queries reads sentence 7 of 2; sentences count from 0"));
    shared.sentence[2] = 1;
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                attend.step(shared, random({2, 3}, 6), attend.start(shared));
                            }),
                            "the projected query"));
}

namespace memories_that_grow {

//
// Growing memories. A separate program, because it replaces operator new.
using support::allocations;
using support::random;
using support::same_bits;

namespace {

constexpr std::size_t N = 6;

/// The positions [first, first + count) of these rows.
array<double, 3> part(const array<double, 3>& x, std::size_t first, std::size_t count,
                      std::vector<std::size_t> rows = {})
{
    if (rows.empty()) {
        for (std::size_t b = 0; b < x.shape()[0]; ++b) rows.push_back(b);
    }
    array<double, 3> some(shape_of_rank<3>{rows.size(), count, x.shape()[2]});
    for (std::size_t b = 0; b < rows.size(); ++b) {
        for (std::size_t t = 0; t < count; ++t) {
            for (std::size_t i = 0; i < x.shape()[2]; ++i) some(b, t, i) = x(rows[b], first + t, i);
        }
    }
    return some;
}

auto with(const auto& score) { return attention{score, normalize::softmax{}, combine::weighted_sum{}}; }

score::additive<array<double, 2>, array<double, 1>> additive()
{
    return {random({N, 5}, 74), random({N, 5}, 75), random({5}, 76)};
}

auto heads()
{
    return multi_head{std::vector(2, with(score::rotary{score::scaled_dot{}})), random({N, 4}, 77), random({N, 2}, 78),
                      random({N, 2}, 79), random({4, N}, 80)};
}

constexpr auto no_change = [](auto e, score_index p) { return e + 0.1 * (p.key - p.query); };

enum class masks { none, some };

/// Compares a memory made in chunks with a memory of all words at once; bit for bit if `bits`.
template <masks asked = masks::none>
void check_chunks(const auto& attend, bool bits)
{
    constexpr std::size_t T = 41;
    const auto near = [&](const auto& a, const auto& b) {
        return bits ? same_bits(a, b) : support::distance(a, b) < 1e-13;
    };
    for (const std::size_t B : {1u, 3u}) {
        const auto words = random({B, T, N}, 71), queries = random({B, 9, N}, 72);
        const auto whole = attend.on(words);
        for (const std::size_t chunk : {1u, 5u, 40u}) {
            auto memory = with_cache(attend.on(part(words, 0, 1)));
            for (std::size_t t = 1; t < T; t += chunk)
                memory = attend.extend(memory, part(words, t, std::min(chunk, T - t)));
            CHECK(memory.batch() == B);
            CHECK(memory.positions() == T);
            for (const std::size_t threads : {1u, 3u}) {
                set_threads(threads);
                auto state = attend.start(memory), same = attend.start(whole);
                for (std::size_t s = 0; s < 3; ++s) {
                    const auto query = ops::step_of(queries, s);
                    auto is = attend.step(memory, query, state), must = attend.step(whole, query, same);
                    CHECK(near(is.context, must.context));
                    CHECK(near(is.weights, must.weights));
                    CHECK(support::distance(attend.compose(memory, query, state).context, must.context) < 1e-13);
                    state = is.state;
                    same = must.state;
                }
                CHECK(near(attend(memory, queries), attend(whole, queries)));
                const auto last = part(queries, 8, 1);
                CHECK(support::distance(attend(memory, last), attend(whole, last)) < 1e-13);
                if constexpr (asked == masks::some) {
                    CHECK(near(attend(memory, queries, causal{}), attend(whole, queries, causal{})));
                    const auto window = causal{} & sliding_window{7};
                    CHECK(near(attend(memory, queries, window), attend(whole, queries, window)));
                    CHECK(support::distance(attend(memory, last, causal{}), attend(whole, last, causal{})) < 1e-13);
                    CHECK(support::distance(attend(memory, last, window), attend(whole, last, window)) < 1e-13);
                    const auto two = sliding_window{4} | [](score_index p) { return p.key < 2; };  // two ranges
                    CHECK(support::distance(attend(memory, last, two), attend(whole, last, two)) < 1e-13);
                }
            }
            set_threads(1);
        }
    }
}

}  // namespace

TEST_CASE("any chunks equal all at once")
{
    check_chunks<masks::some>(with(score::dot{}), true);
    check_chunks(with(score::rotary{score::scaled_dot{}}), true);
    check_chunks<masks::some>(attention{score::dot{}, normalize::temporal{}, combine::weighted_sum{}}, true);
    check_chunks(attention{score::dot{}, normalize::sparsemax{}, combine::weighted_sum{}}, true);
    check_chunks<masks::some>(with(score::modified{score::dot{}, no_change}), true);
    check_chunks<masks::some>(with(additive()), false);
    check_chunks(with(score::rotary{score::general{random({N, N}, 73)}}), false);  // products of some rows and of all
    check_chunks<masks::some>(with(score::location{random({N, 50}, 81)}), true);
    check_chunks<masks::some>(with(score::forgetting{score::rotary{score::dot{}}, random({N, 1}, 82), random({1}, 83)}),
                              false);
    check_chunks(attention{score::forgetting{score::dot{}, random({N, 1}, 82), random({1}, 83)}, normalize::sigmoid{},
                           combine::weighted_sum{}},
                 false);
    check_chunks<masks::some>(heads(), false);
}

TEST_CASE("an older copy never sees positions that another copy appended")
{
    const auto words = random({2, 40, N}, 1), others = random({2, 40, N}, 2);
    const auto query = random({2, N}, 3);
    const auto check = [&](const auto& attend) {
        const auto same = [&](const auto& memory, const array<double, 3>& must) {
            const auto all = attend.on(must);
            return support::distance(attend.step(memory, query, attend.start(memory)).context,
                                     attend.step(all, query, attend.start(all)).context) < 1e-13;
        };
        const auto old = with_cache(attend.on(part(words, 0, 3)));
        auto a = old, b = old;
        array<double, 3> in_a = part(words, 0, 3), in_b = in_a;
        for (std::size_t t = 3; t < 40; ++t) {
            a = attend.extend(a, part(words, t, 1));
            b = attend.extend(b, part(others, t, 1));
            in_a = ops::append(in_a, part(words, t, 1));
            in_b = ops::append(in_b, part(others, t, 1));
            CHECK(same(old, part(words, 0, 3)));
            CHECK(same(a, in_a));
            CHECK(same(b, in_b));
        }
    };
    check(with(score::dot{}));
    check(with(additive()));
    check(heads());
}

TEST_CASE("a beam selects hypotheses, which continue with different words")
{
    const auto check = [&](const auto& attend) {
        array<double, 3> words = random({3, 2, N}, 1);
        auto memory = with_cache(attend.on(words));
        const std::vector<std::vector<std::size_t>> beams{{1, 1, 0}, {0, 1, 2}, {2, 2, 2}, {0, 2, 1}, {1}, {0, 0}};
        for (std::size_t step = 0; step < 30; ++step) {
            const auto& chosen = beams[step < beams.size() ? step : beams.size() - 1];
            const auto next = random({chosen.size(), 1, N}, 10 + step), query = random({chosen.size(), 1, N}, 90);
            memory = attend.extend(memory.rows(chosen), next);
            words = ops::append(part(words, 0, words.shape()[1], chosen), next);
            CHECK(support::distance(attend(memory, query), attend(attend.on(words), query)) < 1e-13);
        }
    };
    check(with(score::dot{}));
    check(with(additive()));
    check(heads());
    // Selecting does not copy numbers.
    const auto memory = with_cache(with(score::dot{}).on(random({3, 2, N}, 1)));
    const std::vector<std::size_t> chosen{2, 2, 0};
    const auto some = memory.rows(chosen);
    CHECK(some.keys.row(0) == memory.keys.row(2));
    CHECK(some.values.row(2) == memory.values.row(0));
    // Memories without a cache have the same function.
    const auto plain = with(score::dot{}).on(random({3, 2, N}, 1), lengths{2, 1, 0}).rows(chosen);
    CHECK(plain.real[0] == 0);
    CHECK(plain.real[2] == 2);
    CHECK(
        same_bits(plain.keys, part(with(score::dot{}).on(random({3, 2, N}, 1), lengths{2, 1, 0}).keys, 0, 2, chosen)));
    const array<bool, 2> mask{{true, false}, {true, true}, {false, true}};
    const auto masked = with(score::dot{}).on(random({3, 2, N}, 1), boolean_mask(mask)).rows(chosen);
    CHECK(masked.mask[0] == 0);
    CHECK(masked.mask[3] == 1);
    CHECK(masked.mask[4] == 1);
    CHECK(masked.mask[5] == 0);
}

TEST_CASE("sentences of different lengths grow together, and give the same results as each alone")
{
    const auto check = [&](const auto& attend) {
        const auto words = random({3, 60, N}, 1);
        std::vector<std::size_t> has{4, 1, 0};
        auto memory = with_cache(attend.on(part(words, 0, 4), lengths(has)));
        for (std::size_t step = 0; step < 12; ++step) {
            std::vector<std::size_t> some{step % 3, 2, step < 6 ? 0u : 3u};
            array<double, 3> more = random({3, 3, N}, 9);  // any padding
            for (std::size_t b = 0; b < 3; ++b) {
                for (std::size_t t = 0; t < some[b]; ++t) {
                    for (std::size_t i = 0; i < N; ++i) more(b, t, i) = words(b, has[b] + t, i);
                }
                has[b] += some[b];
            }
            memory = attend.extend(memory, more, lengths(some));
            const auto query = random({3, 1, N}, 20 + step);
            const auto context = attend(memory, query);
            for (std::size_t b = 0; b < 3; ++b) {
                const auto alone = attend.on(part(words, 0, has[b], {b}));
                CHECK(support::distance(part(context, 0, 1, {b}), attend(alone, part(query, 0, 1, {b}))) < 1e-13);
                const auto& queries = random({3, 4, N}, 30);
                CHECK(support::distance(part(attend(memory, queries), 0, 4, {b}),
                                        attend(alone, part(queries, 0, 4, {b}))) < 1e-13);
            }
        }
    };
    check(with(score::dot{}));
    check(with(score::general{random({N, N}, 73)}));
    check(with(additive()));
    check(multi_head{std::vector(2, with(score::scaled_dot{})), random({N, 4}, 77), random({N, 4}, 78),
                     random({N, 4}, 79), random({4, N}, 80)});
}

TEST_CASE("sentences of different lengths: each query has the position of its sentence")
{
    const std::vector<std::size_t> first{5, 1, 3};
    const auto check = [&](const auto& attend) {
        const auto words = random({3, 30, N}, 1), queries = random({3, 30, N}, 2);
        // The result of sentence b alone: query i is at word i.
        const auto alone = [&](std::size_t b, std::size_t i) {
            const auto memory = attend.on(part(words, 0, i + 1, {b}));
            return attend.step(memory, ops::step_of(part(queries, i, 1, {b}), 0), from_query(attend.start(memory), i))
                .context;
        };
        auto memory = with_cache(attend.on(part(words, 0, 5), lengths(first)));
        auto has = first;
        std::vector<std::size_t> row{0, 1, 2};
        for (std::size_t step = 0; step < 9; ++step) {
            if (step == 3) row = {2, 0, 0}, has = {has[2], has[0], has[0]}, memory = memory.rows(row);
            if (step == 6)
                row = {row[0], row[0], row[2]}, has = {has[0], has[0], has[2]},
                memory = memory.rows(std::vector<std::size_t>{0, 0, 2});
            std::vector<std::size_t> some{step % 3, step == 4 ? 0u : 2u, 1};
            auto more = random({3, 2, N}, 9);  // any padding
            for (std::size_t b = 0; b < 3; ++b) {
                for (std::size_t t = 0; t < some[b]; ++t)
                    for (std::size_t i = 0; i < N; ++i) more(b, t, i) = words(row[b], has[b] + t, i);
                has[b] += some[b];
            }
            memory = attend.extend(memory, more, lengths(some));
            array<double, 3> at_word(shape_of_rank<3>{3, 1, N}), last_two(shape_of_rank<3>{3, 2, N});
            for (std::size_t b = 0; b < 3; ++b)
                for (std::size_t i = 0; i < N; ++i) {
                    at_word(b, 0, i) = queries(row[b], has[b] - 1, i);
                    for (std::size_t s = 0; s < 2; ++s) last_two(b, s, i) = queries(row[b], has[b] - 2 + s, i);
                }
            const auto state = from_query(attend.start(memory), memory.positions() - 1);
            const auto before = from_query(attend.start(memory), memory.positions() - 2);
            const auto one = attend.step(memory, ops::step_of(at_word, 0), state).context;
            const auto read = attend.read_all(memory, at_word, state, sliding_window{100}).contexts;
            for (const std::size_t b : {0u, 1u, 2u}) {
                const auto must = alone(row[b], has[b] - 1);
                CHECK(support::distance(ops::step_of(part(read, 0, 1, {b}), 0), must) < 1e-12);
                for (std::size_t i = 0; i < N; ++i) CHECK(one(b, i) == support::approx(must(0, i)));
            }
            if (*std::min_element(has.begin(), has.end()) < 2) continue;
            const auto both = attend.read_all(memory, last_two, before, causal{}).contexts;
            for (const std::size_t b : {0u, 1u, 2u})
                for (const std::size_t s : {0u, 1u})
                    CHECK(support::distance(ops::step_of(part(both, s, 1, {b}), 0), alone(row[b], has[b] - 2 + s)) <
                          1e-12);
        }
        return memory;
    };
    const auto turned = with(score::rotary{score::scaled_dot{}});
    const auto memory = check(turned);
    check(with(score::rotary{score::general{random({N, N}, 73)}}));
    check(with(score::forgetting{score::rotary{score::dot{}}, random({N, 1}, 21), random({1}, 22)}));
    check(with(score::forgetting{additive(), random({N, 1}, 21), random({1}, 22)}));
    check(with(score::modified{score::forgetting{score::dot{}, random({N, 1}, 21), random({1}, 22)},
                               [](auto e, score_index) { return 2 * tanh(e / 2); }}));
    check(attention{score::forgetting{score::dot{}, random({N, 1}, 21), random({1}, 22)}, normalize::retention{0.9},
                    combine::weighted_sum{}});
    check(heads());
    // Rows that share a sentence have its query position.
    const shared_memory shared(memory, {2, 0, 1, 0});
    const auto now = from_query(turned.start(shared), memory.positions() - 1);
    const auto asked = random({4, N}, 3);
    const auto copies = memory.rows(std::vector<std::size_t>{2, 0, 1, 0});
    CHECK(same_bits(turned.step(shared, asked, now).context,
                    turned.step(copies, asked, from_query(turned.start(copies), memory.positions() - 1)).context));
    // A query position below 0, and a policy that takes one position for all sentences.
    const auto query = random({3, N}, 5);
    CHECK_THROWS_WITH_AS(turned.step(memory, query, turned.start(memory)),
                         doctest::Contains("memory.next_position() - 1"), shape_error);
    CHECK_THROWS_WITH_AS(turned.compose(memory, query, from_query(turned.start(memory), 99)),
                         doctest::Contains("differ in length"), error);
    CHECK_THROWS_WITH_AS(
        turned.weights_of(memory, random({3, 2, N}, 1), from_query(turned.start(memory), 99), causal{}),
        doctest::Contains("differ in length"), error);
}

TEST_CASE("a state with a number per position grows with the memory")
{
    // One by one over a memory that grows by some words before each query, compared with a mask over the whole memory.
    const auto check = [&](const auto& attend) {
        for (const std::size_t chunk : {1u, 3u}) {
            const auto words = random({2, 16, N}, 1), queries = random({2, 5, N}, 2);
            const auto whole = attend.on(words);
            auto plain = attend.on(part(words, 0, 1));
            auto memory = with_cache(plain);
            auto state = attend.start(memory), beside = attend.start(plain), kept = attend.start(plain);
            auto must = attend.start(whole);
            auto result = attend.step(plain, ops::step_of(queries, 0), beside);
            for (std::size_t s = 0; s < 5; ++s) {
                const auto query = ops::step_of(queries, s);
                const std::size_t seen = 1 + s * chunk;
                auto is = attend.step(memory, query, state);
                auto also = attend.step(plain, query, beside);
                auto whole_is = attend.step(whole, query, must, lengths({seen, seen}));
                CHECK(support::distance(is.context, whole_is.context) < 1e-13);
                CHECK(support::distance(also.context, whole_is.context) < 1e-13);
                CHECK(support::distance(attend.compose(memory, query, state).context, whole_is.context) < 1e-13);
                attend.step_into(result, memory, query, kept);
                CHECK(support::distance(result.context, whole_is.context) < 1e-13);
                kept = result.state;
                state = is.state;
                beside = also.state;
                must = whole_is.state;
                memory = attend.extend(memory, part(words, seen, chunk));
                plain = attend.extend(plain, part(words, seen, chunk));
            }
            // A beam continues with shorter sentences: the dropped positions had no weight.
            auto mixed = with_cache(attend.on(part(words, 0, 4), lengths{2, 4}));
            auto wide = attend.step(mixed, ops::step_of(queries, 0), from_query(attend.start(mixed), 3));
            const std::vector<std::size_t> chosen{0, 0};
            const auto rows = [&](const auto& x) { return ops::rows_of(x, chosen); };
            const auto less = attend.step(mixed.rows(chosen), ops::step_of(queries, 1), wide.state.map(rows));
            CHECK(less.weights.shape()[1] == 2);
            const auto as_before = attend.step(mixed, ops::step_of(queries, 1), wide.state);
            CHECK(less.weights(0, 0) == doctest::Approx(as_before.weights(0, 0)).epsilon(1e-12));
            CHECK(less.weights(0, 1) == doctest::Approx(as_before.weights(0, 1)).epsilon(1e-12));
        }
    };
    const auto by = [](const auto& normalize) { return attention{score::dot{}, normalize, combine::weighted_sum{}}; };
    const array<double, 1> r{-0.5}, s{0.7};
    check(by(normalize::monotonic{r}));
    check(by(normalize::chunkwise{2, s, normalize::monotonic_hard{r}}));
    check(attention{score::forgetting{additive(), random({N, 1}, 21), random({1}, 22)}, normalize::monotonic{r},
                    combine::weighted_sum{}});
    // With gradients: the memory grows on the tape.
    const auto f = [&](const auto& words, const auto& bias) {
        const attention attend{score::dot{}, normalize::monotonic{bias}, combine::weighted_sum{}};
        auto memory = attend.on(words);
        const auto query = random({2, N}, 3);
        const auto one = attend.step(memory, query, attend.start(memory));
        memory = attend.extend(memory, ops::scale(words, 2));
        const auto two = attend.step(memory, query, one.state);
        return ops::add(one.context, two.context);
    };
    CHECK_GRADIENT(f, random({2, 3, N}, 1), r);
    // The state of another memory does not fit this memory.
    const auto attend = by(normalize::monotonic{array<double, 1>{-9}});
    const auto longer = attend.on(random({2, 5, N}, 1)), shorter = attend.on(random({2, 3, N}, 1));
    const auto query = random({2, N}, 3);
    const auto after = attend.step(longer, query, attend.start(longer)).state;
    CHECK_THROWS_AS(attend.step(shorter, query, attend.start(longer)), shape_error);
    CHECK_THROWS_WITH_AS(attend.step(with_cache(shorter), query, attend.step(longer, query, after).state),
                         doctest::Contains("remembers position 3 of row 0, but the memory has 3"), shape_error);
}

TEST_CASE("rows may share the sentences of a KV cache")
{
    const auto attend = with(additive());
    auto memory = with_cache(attend.on(random({2, 3, N}, 1), lengths{3, 2}));
    memory = attend.extend(memory, random({2, 1, N}, 2));
    const std::vector<std::size_t> rows{1, 0, 1, 1};
    const auto query = random({4, N}, 3);
    const auto copies = memory.rows(rows);
    const shared_memory shared(memory, rows);
    CHECK(same_bits(attend.step(shared, query, attend.start(shared)).context,
                    attend.step(copies, query, attend.start(copies)).context));
}

TEST_CASE("a thousand words: the memory moves seven times, and appending a word allocates the same late as early")
{
    const auto check = [&](const auto& attend, const auto& address) {
        const auto word = random({2, 1, N}, 1);
        auto memory = with_cache(attend.on(word));
        std::size_t moves = 0, early = 0, late = 0;
        for (std::size_t t = 1; t < 1000; ++t) {
            const auto* const before = address(memory);
            const std::size_t allocated = allocations;
            memory = attend.extend(memory, word);
            if (t == 20) early = allocations - allocated;
            if (t == 990) late = allocations - allocated;
            moves += address(memory) != before ? 1 : 0;
        }
        CHECK(moves >= 1);
        CHECK(moves <= 7);
        CHECK(early > 0);
        CHECK(late == early);
    };
    const auto keys = [](const auto& memory) { return memory.keys.row(1); };
    check(with(score::dot{}), keys);
    check(with(additive()), keys);
    check(heads(), [](const auto& memory) { return memory.of[0].values.row(1); });
}

TEST_CASE("a step into existing results does not allocate, at any length of the memory")
{
    const auto attend = with(score::dot{});
    auto memory = with_cache(attend.on(random({2, 30, N}, 1), lengths{30, 7}));
    memory = attend.extend(memory, random({2, 1, N}, 2));
    const auto query = random({2, N}, 3);
    auto result = attend.step(memory, query, attend.start(memory));
    attend.step_into(result, memory, query, result.state);
    const std::size_t before = allocations;
    for (int s = 0; s < 10; ++s) attend.step_into(result, memory, query, result.state);
    CHECK(allocations - before == 0);
}

TEST_CASE("extending a memory on a tape copies it, with gradients")
{
    const auto words = random({2, 2, N}, 1);
    const auto check = [&](const auto& attend) {
        const auto f = [&](const auto& some) {
            auto memory = with_cache(attend.on(some));
            memory = attend.extend(memory, ops::scale(some, 2));
            memory = attend.extend(memory, ops::scale(some, 3));
            return attend(memory, some);
        };
        CHECK_GRADIENT(f, words);
        const auto all = ops::append(ops::append(words, ops::scale(words, 2)), ops::scale(words, 3));
        CHECK(support::distance(f(words), attend(attend.on(all), words)) < 1e-13);
    };
    check(with(score::dot{}));
    check(with(additive()));
    check(with(score::rotary{score::scaled_dot{}}));
    check(heads());
}

TEST_CASE("no sentence, no position; tensors that cannot be appended")
{
    const auto attend = with(score::dot{});
    auto none = with_cache(attend.on(random({0, 3, N}, 1)));
    none = attend.extend(none, random({0, 1, N}, 1));
    CHECK(attend(none, random({0, 1, N}, 1)).shape() == shape_of_rank<3>{0, 1, N});
    auto empty = with_cache(attend.on(random({2, 0, N}, 1)));
    CHECK(same_bits(attend(empty, random({2, 1, N}, 1)), filled<double, 3>({2, 1, N}, 0)));
    empty = attend.extend(empty, random({2, 2, N}, 1));
    const auto query = random({2, 1, N}, 2);
    CHECK(same_bits(attend(empty, query), attend(with_cache(attend.on(random({2, 2, N}, 1))), query)));
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                attend.extend(empty, random({3, 1, N}, 1));
                            }),
                            "[3,1,6] but must be [2,1,6]"));
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                attend.step(empty, random({3, N}, 1), attend.start(empty));
                            }),
                            "the projected query is [3,6] but must be [2,6]"));
}

}  // namespace memories_that_grow
