// SPDX-License-Identifier: BSD-3-Clause
// A key-value cache: attention::extend with both, rows of unequal length, selected rows and dropped positions, compared
// with each row alone with all its positions.

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::random;

namespace {

constexpr std::size_t N = 6, D = 5;

auto with(const auto& score) { return attention{score, normalize::softmax{}, combine::weighted_sum{}}; }
auto by(const auto& normalize) { return attention{score::scaled_dot{}, normalize, combine::weighted_sum{}}; }
auto additive() { return score::additive{random({N, 4}, 1), random({N, 4}, 2), random({4}, 3)}; }
auto heads(const auto& score)
{
    return multi_head{std::vector(2, with(score)), random({N, 4}, 4), random({N, 4}, 5), random({D, 6}, 6),
                      random({6, 3}, 7)};
}

/// The expected row of the batch: all its positions, the number of dropped positions, and its state.
template <class State>
struct row_alone {
    array<double, 3> keys, values;  // [1,n,.]
    std::size_t dropped;
    State state;
};

/// The first `count` positions of row b.
array<double, 3> positions(const array<double, 3>& x, std::size_t b, std::size_t count)
{
    const std::size_t width = x.shape()[2];
    array<double, 3> some(shape_of_rank<3>{1, count, width});
    std::copy_n(x.data() + b * x.shape()[1] * width, count * width, some.data());
    return some;
}

/// `count` positions of all rows, from `first` on.
array<double, 3> between(const array<double, 3>& x, std::size_t first, std::size_t count)
{
    return ops::slice(x, 1, first, first + count);
}

enum class drops { none, some };

/// Checks random chunks, selected rows and, if `dropping`, dropped positions; after each, a query continues the state.
template <drops dropping = drops::some>
void check(const auto& attend)
{
    std::uint64_t seed = 0;
    const auto drawn = [&](std::size_t below) { return heed::below(below, 11, seed++); };
    for (std::size_t round = 0; round < 4; ++round) {
        const std::vector<std::size_t> first{drawn(4), 3, drawn(4)};
        const auto k = random({3, 3, N}, ++seed), v = random({3, 3, D}, ++seed);
        auto memory = with_cache(attend.on(k, v, lengths(first)));
        auto state = attend.start(memory);
        using alone = row_alone<decltype(attend.start(attend.on(k, v)))>;
        std::vector<alone> rows;
        for (std::size_t b = 0; b < 3; ++b) {
            auto of_keys = positions(k, b, first[b]), of_values = positions(v, b, first[b]);
            auto of_state = attend.start(attend.on(of_keys, of_values));
            rows.push_back({std::move(of_keys), std::move(of_values), 0, std::move(of_state)});
        }
        for (std::size_t act = 0; act < 14; ++act) {
            const std::size_t B = rows.size();
            const std::size_t what = drawn(dropping == drops::some ? 4 : 3);
            if (what < 2) {
                const std::size_t t = 1 + drawn(5);
                const auto more_k = random({B, t, N}, ++seed), more_v = random({B, t, D}, ++seed);
                std::vector<std::size_t> counts(B, t);
                if (what == 0)
                    for (std::size_t& count : counts) count = drawn(t + 1);
                memory = what == 0 ? attend.extend(memory, more_k, more_v, lengths(counts))
                                   : attend.extend(memory, more_k, more_v);
                for (std::size_t b = 0; b < B; ++b) {
                    rows[b].keys = ops::append(rows[b].keys, positions(more_k, b, counts[b]));
                    rows[b].values = ops::append(rows[b].values, positions(more_v, b, counts[b]));
                }
            } else if (what == 2) {
                std::vector<std::size_t> chosen(2 + drawn(2));
                std::vector<alone> some;
                for (std::size_t& b : chosen) b = drawn(B), some.push_back(rows[b]);
                memory = memory.rows(chosen);
                state = state.map([&](const auto& x) { return ops::rows_of(x, std::span<const std::size_t>(chosen)); });
                rows = std::move(some);
            } else {
                std::vector<std::size_t> oldest(B);
                for (std::size_t b = 0; b < B; ++b) {
                    oldest[b] = drawn(rows[b].keys.shape()[1] - rows[b].dropped + 1);
                    rows[b].dropped += oldest[b];
                }
                memory = memory.without_oldest(lengths(oldest));
            }
            std::size_t longest = 0, next = 0;
            for (const alone& row : rows) {
                next = std::max(next, row.keys.shape()[1]);
                longest = std::max(longest, row.keys.shape()[1] - row.dropped);
            }
            REQUIRE(memory.positions() >= longest);
            REQUIRE(memory.next_position() >= next);
            if (next == 0) continue;
            // Each query is at the last position of its row.
            const auto queries = random({rows.size(), N}, ++seed);
            const auto is = attend.step(memory, queries, from_query(state, memory.next_position() - 1));
            const auto read = attend.read_all(memory, ops::reshaped(queries, shape_of_rank<3>{rows.size(), 1, N}),
                                              from_query(state, memory.next_position() - 1));
            for (std::size_t b = 0; b < rows.size(); ++b) {
                alone& row = rows[b];
                const std::size_t n = row.keys.shape()[1];
                boolean_mask<2> left(shape_of_rank<2>{1, n});
                for (std::size_t j = 0; j < n; ++j) left[j] = j >= row.dropped;
                array<double, 2> query(shape_of_rank<2>{1, N});
                std::copy_n(queries.data() + b * N, N, query.data());
                const auto all = attend.on(row.keys, row.values);
                auto must = attend.step(all, query, from_query(row.state, n == 0 ? 0 : n - 1), left);
                for (std::size_t i = 0; i < must.context.shape()[1]; ++i) {
                    CHECK(is.context(b, i) == support::approx(must.context(0, i)));
                    CHECK(read.contexts(b, 0, i) == support::approx(must.context(0, i)));
                }
                row.state = must.state;
            }
            state = is.state;
        }
    }
}

}  // namespace

TEST_CASE("chunks of keys and values, selected rows and dropped positions equal all at once")
{
    check(by(normalize::softmax{}));
    check(by(normalize::sparsemax{}));
    check(by(normalize::stick_breaking{}));
    check(by(normalize::retention{0.9}));
    check(with(additive()));
    check(with(score::rotary{score::scaled_dot{}}));
    check(with(score::rotary{score::general{random({N, N}, 8)}}));
    check(with(score::location{random({N, 90}, 9)}));
    check(by(normalize::temporal{}));
    check(by(normalize::decayed_temporal{0.7}));
    check(attention{score::rotary{additive()}, normalize::temporal{}, combine::weighted_sum{}});
    check(with(score::with_fertility{additive(), random({4}, 10), random({D}, 11)}));
    check(attention{score::gaussian_mixture{random({N, 4}, 16), random({4}, 17), random({N, 2}, 18), random({2}, 19)},
                    normalize::retention{}, combine::weighted_sum{}});
    check(by(normalize::recent_temporal{2, normalize::learned_temporal{array<double, 1>{0.6}}}));
    check(attention{score::additive_per_dimension{random({N, 4}, 20), random({N, 4}, 21), random({4, D}, 22)},
                    normalize::recent_temporal{3}, combine::elementwise_sum{}});
    check(heads(score::scaled_dot{}));
    check(heads(score::rotary{score::scaled_dot{}}));
    // These policies need all positions.
    check<drops::none>(with(score::forgetting{score::rotary{score::dot{}}, random({N, 1}, 12), random({1}, 13)}));
    check<drops::none>(attention{score::forgetting{score::dot{}, random({N, 1}, 12), random({1}, 13)},
                                 normalize::sigmoid{}, combine::weighted_sum{}});
    check<drops::none>(with(score::with_location{additive(), random({2, 3}, 14), random({2, 4}, 15)}));
}

TEST_CASE("a sliding window over a KV cache equals a mask over all positions")
{
    struct sizes {
        std::size_t T, window, t;
    };
    const auto compare = [&](const auto& attend, bool remembers = false) {
        for (const sizes& of : {sizes{60, 9, 1}, {60, 9, 4}, {480, 289, 16}}) {  // 16 queries run in tiles
            const std::size_t T = of.T, window = of.window, t = of.t;
            const auto k = random({2, T, N}, 1), v = random({2, T, D}, 2), queries = random({2, T, N}, 3);
            const auto reach = static_cast<std::int32_t>(window);
            const auto mask = causal{} & sliding_window{reach};
            const auto near = causal{} & [reach](score_index p) { return p.query - p.key < reach; };
            const auto must = attend(attend.on(k, v), queries, mask);
            auto memory = with_cache(attend.on(between(k, 0, t), between(v, 0, t)));
            auto before = attend.start(memory);
            for (std::size_t at = 0; at < T; at += t) {
                if (at > 0) memory = attend.extend(memory, between(k, at, t), between(v, at, t));
                const auto state = from_query(before, memory.next_position() - t);
                const auto asks = between(queries, at, t);
                const auto is = attend.read_all(memory, asks, state, mask);
                if (!remembers) CHECK(support::distance(is.contexts, between(must, at, t)) < 1e-12);
                CHECK(support::distance(attend.read_all(memory, asks, state, near).contexts, is.contexts) < 1e-12);
                const auto copy = gathered(memory);
                CHECK(support::distance(attend.read_all(copy, asks, state, near).contexts, is.contexts) < 1e-12);
                CHECK(support::distance(attend.weights_of(memory, asks, state, near),
                                        attend.weights_of(memory, asks, state, mask)) < 1e-12);
                before = is.state;
                CHECK(memory.positions() <= window - 1 + t);
                if (memory.positions() >= window) memory = memory.without_oldest(memory.positions() - (window - 1));
            }
            CHECK(memory.positions() == window - 1);
            CHECK(memory.next_position() == T);
        }
    };
    compare(by(normalize::softmax{}));
    compare(with(score::rotary{score::scaled_dot{}}));
    compare(with(score::rotary{additive()}));
    compare(heads(score::rotary{score::scaled_dot{}}));
    compare(by(normalize::temporal{}), true);  // its history includes masked positions
}

TEST_CASE("a cache without its oldest positions equals a new memory of the rest, and earlier copies do not change")
{
    const auto k = random({2, 7, N}, 1), v = random({2, 7, D}, 2);
    const auto query = random({2, N}, 3);
    const auto attend = with(additive());
    const auto memory = with_cache(attend.on(k, v, lengths{7, 5}));
    const auto before = gathered(memory);
    auto left = memory.without_oldest(3).without_oldest({0, 2});
    CHECK(left.positions() == 4);
    CHECK(left.next_position() == 7);
    CHECK(left.real[0] == 4);
    CHECK(left.real[1] == 0);
    CHECK(left.dropped[1] == 5);
    CHECK(left.keys.row(0) == memory.keys.row(0) + 3 * 4);  // no copy
    const auto made = attend.on(between(k, 3, 4), between(v, 3, 4), lengths{4, 0});
    CHECK(support::distance(attend.step(left, query, attend.start(left)).context,
                            attend.step(made, query, attend.start(made)).context) < 1e-13);
    const std::vector<std::size_t> rows{1, 0, 0};
    const shared_memory shared(left, rows);
    const auto asked = random({3, N}, 4);
    const auto copies = left.rows(rows);
    CHECK(copies.dropped[0] == 5);
    CHECK(support::distance(attend.step(shared, asked, attend.start(shared)).context,
                            attend.step(copies, asked, attend.start(copies)).context) < 1e-13);
    left = attend.extend(left, random({2, 30, N}, 5), random({2, 30, D}, 6));
    CHECK(support::same_bits(gathered(memory).keys, before.keys));
    CHECK(support::same_bits(gathered(memory).values, before.values));
    // A gathered copy keeps the indices of its positions.
    const auto turned = with(score::rotary{score::scaled_dot{}});
    const auto cache = with_cache(turned.on(k, v)).without_oldest(2);
    const auto plain = gathered(cache);
    CHECK(plain.next_position() == 7);
    const auto longer = turned.extend(plain, k, v), same = gathered(turned.extend(cache, k, v));
    CHECK(support::same_bits(longer.keys, same.keys));
    CHECK(support::same_bits(longer.values, same.values));
    CHECK(with_cache(longer).next_position() == 14);
    // So do states with a number per position, also on a tape.
    const auto remembers = by(normalize::temporal{});
    const auto all = with_cache(remembers.on(k, v));
    const auto some = all.without_oldest({2, 0});
    const auto first = remembers.step(all, query, remembers.start(all)).state;
    const auto is = remembers.step(some, query, first);
    const auto on_array = remembers.step(gathered(some), query, first);
    CHECK(support::same_bits(is.context, on_array.context));
    const auto next = remembers.step(some, query, is.state).context;
    CHECK(support::distance(remembers.step(gathered(some), query, on_array.state).context, next) < 1e-13);
    CHECK(support::distance(remembers.read_all(gathered(some), random({2, 1, N}, 8), on_array.state).contexts,
                            remembers.read_all(some, random({2, 1, N}, 8), is.state).contexts) < 1e-13);
    ad::tape<double> of;
    const auto asks = of.parameter(query);
    const auto one = remembers.step(gathered(some), asks, first);
    CHECK(support::distance(remembers.step(gathered(some), asks, one.state).context.value(), next) < 1e-13);
}

TEST_CASE("extend takes both keys and values, or annotations")
{
    const auto x = random({2, 3, N}, 1), v = random({2, 3, D}, 2), u = random({2, 3, N}, 3);
    const char* const says = "this memory was made from keys and values, `on(x, v)`, and must be extended by both: "
                             "extend(memory, keys, values)";
    const auto refused = [&](const auto& attend, const auto& memory) {
        CHECK_THROWS_WITH_AS((void)attend.extend(memory, x), doctest::Contains(says), error);
    };
    const auto attend = by(normalize::softmax{});
    const auto made = attend.on(x, v), padded = attend.on(x, v, lengths{3, 1});
    const std::vector<std::size_t> rows{1, 1};
    refused(attend, made);
    refused(attend, made.rows(rows));
    refused(attend, with_cache(padded));
    refused(attend, with_cache(padded).rows(rows).without_oldest(1));
    refused(attend, gathered(with_cache(made)));
    refused(attend, attend.extend(made, x, v));
    refused(attend, attend.extend(with_cache(made), x, v, {1, 0}));
    refused(attend, attend.extend(with_cache(attend.on(x)), x, u));
    refused(attend, attend.extend(attend.on(x), x, u));
    CHECK_THROWS_WITH_AS((void)attend.extend(with_cache(made), x, lengths{1, 1}), doctest::Contains(says), error);
    const auto several = heads(score::scaled_dot{});
    CHECK_THROWS_WITH_AS((void)several.extend(several.on(x, v), random({2, 1, D}, 4)), doctest::Contains(""), error);
    const auto square =
        multi_head{std::vector(2, attend), random({N, 4}, 4), random({N, 4}, 5), random({N, 4}, 6), random({4, 3}, 7)};
    refused(square, square.on(x, u));
    refused(square, with_cache(square.on(x, u)));
    // First annotations, then keys and values.
    const auto both = attend.extend(with_cache(attend.on(x)), u, x);
    const auto must = attend.on(ops::append(x, u), ops::append(x, x));
    CHECK(support::same_bits(gathered(both).keys, must.keys));
    CHECK(support::same_bits(gathered(both).values, must.values));
}

TEST_CASE("without a cache, extend copies keys and values, also on a tape")
{
    const auto k = random({2, 2, N}, 1), v = random({2, 2, D}, 2);
    const auto check = [&](const auto& attend) {
        const auto f = [&](const auto& some, const auto& others) {
            auto memory = with_cache(attend.on(some, others));
            memory = attend.extend(memory, ops::scale(some, 2), ops::scale(others, 3));
            return attend(memory, some);
        };
        CHECK_GRADIENT(f, k, v);
        const auto all = attend.on(ops::append(k, ops::scale(k, 2)), ops::append(v, ops::scale(v, 3)));
        CHECK(support::distance(f(k, v), attend(all, k)) < 1e-13);
        const auto plain = attend.extend(attend.on(k, v), ops::scale(k, 2), ops::scale(v, 3), lengths{2, 2});
        CHECK(support::distance(attend(plain, k), attend(all, k)) < 1e-13);
    };
    check(by(normalize::softmax{}));
    check(with(additive()));
    check(with(score::rotary{score::scaled_dot{}}));
    check(heads(score::rotary{score::scaled_dot{}}));
}

TEST_CASE("a policy that needs all positions rejects a cache that dropped some")
{
    const auto refused = [](const auto& attend, const char* which) {
        const auto memory = with_cache(attend.on(random({2, 4, N}, 1), random({2, 4, N}, 2))).without_oldest({1, 0});
        const auto state = from_query(attend.start(memory), 3);
        const std::string says =
            std::string("row 0 of this memory has dropped its oldest 1 position, but the ") + which + " needs all";
        const auto query = random({2, N}, 3);
        CHECK_THROWS_WITH_AS((void)attend.step(memory, query, state), doctest::Contains(says.c_str()), error);
        const auto whole = memory.rows(std::vector<std::size_t>{1, 1});  // without dropped positions
        CHECK_NOTHROW((void)attend.step(whole, query, from_query(attend.start(whole), 3)));
        CHECK_THROWS_WITH_AS((void)attend.read(memory, query, state), doctest::Contains(says.c_str()), error);
        CHECK_THROWS_WITH_AS((void)attend.step(gathered(memory), query, state), doctest::Contains(says.c_str()), error);
        CHECK_THROWS_WITH_AS((void)attend.read_all(memory, random({2, 2, N}, 3), state),
                             doctest::Contains(says.c_str()), error);
    };
    const array<double, 1> r{-0.5};
    refused(
        with(score::modified{score::scaled_dot{}, [](auto e, score_index p) { return e + 0.1 * (p.key - p.query); }}),
        "score");
    refused(with(score::relative{score::scaled_dot{}, random({N, 5}, 4)}), "score");
    refused(with(score::rotary{score::with_positions{additive(), random({3, 4}, 4)}}), "score");
    refused(with(score::with_neighbors{additive(), random({3, 4}, 4)}), "score");
    refused(with(score::with_location{additive(), random({2, 3}, 4), random({2, 4}, 5)}), "score");
    refused(with(score::forgetting{score::dot{}, random({N, 1}, 4), random({1}, 5)}), "score");
    refused(with(score::contextual_positions{score::dot{}, random({N, 3}, 4)}), "score");
    refused(with(score::dynamic_convolution{random({N, 3}, 4)}), "score");
    refused(by(normalize::monotonic{r}), "normalizer");
    refused(by(normalize::monotonic_hard{r}), "normalizer");
    refused(by(normalize::chunkwise{2, r, normalize::monotonic_hard{r}}), "normalizer");
    refused(by(normalize::local_m{1}), "normalizer");
    refused(by(normalize::dropout{0.1, 1, normalize::local_m{1}}), "normalizer");
    refused(attention{score::scaled_dot{}, normalize::softmax{}, combine::relative{random({3, N}, 4)}}, "combiner");
    refused(attention{score::scaled_dot{}, normalize::softmax{},
                      combine::attentional{random({2 * N, 3}, 4), combine::relative{random({3, N}, 4)}}},
            "combiner");
}

TEST_CASE("arguments that do not fit are rejected in one sentence")
{
    const auto attend = by(normalize::softmax{});
    const auto memory = with_cache(attend.on(random({2, 3, N}, 1), random({2, 3, D}, 2), lengths{3, 1}));
    const auto says = [&](const char* must, const auto& f) { CHECK(support::message_of<shape_error>(f) == must); };
    const auto k = random({2, 2, N}, 3), v = random({2, 2, D}, 4);
    says("attention::extend: the annotations are [3,2,6] but must be [2,2,6] (one row for each row of the memory)",
         [&] {
             (void)attend.extend(memory, random({3, 2, N}, 1), random({3, 2, D}, 1));
         });
    says("attention::extend: the values are [2,1,5] but must be [2,2,5] (one for each annotation)", [&] {
        (void)attend.extend(memory, k, random({2, 1, D}, 1));
    });
    says("attention::extend: the values are [2,2,4] but must be [2,2,5] (the same rows and width as in the memory, "
         "[2,3,5])",
         [&] {
             (void)attend.extend(memory, k, random({2, 2, 4}, 1));
         });
    says("attention::extend: the keys are [2,2,4] but must be [2,2,6] (the same rows and width as in the memory, "
         "[2,3,6])",
         [&] {
             (void)attend.extend(memory, random({2, 2, 4}, 1), v);
         });
    says("attention::extend: the length of row 1 is 3 but there are only 2 positions", [&] {
        (void)attend.extend(memory, k, v, lengths{2, 3});
    });
    says("attention::extend: 3 lengths for a batch of 2 rows; give one length per row", [&] {
        (void)attend.extend(memory, k, v, lengths{1, 1, 1});
    });
    says("without_oldest: 2 positions of row 1, which has 1; a count is at most the length of its row",
         [&] { (void)memory.without_oldest(2); });
    says("without_oldest: 3 lengths for a batch of 2 rows; give the number of positions to drop for each row", [&] {
        (void)memory.without_oldest({0, 0, 0});
    });
    const auto plain = attend.on(k, v);
    says("attention::extend: row 1 gets 1 position of 2; only a KV cache, with_cache(memory), may have rows of "
         "different lengths",
         [&] {
             (void)attend.extend(plain, k, v, lengths{2, 1});
         });
    says("attention::extend: row 1 of the memory has 1 real position of 2; a memory is extended after its last "
         "position, so it must have no padding, or be a KV cache: with_cache(memory)",
         [&] {
             (void)attend.extend(attend.on(k, v, lengths{2, 1}), k, v);
         });
    const auto several = heads(score::rotary{score::scaled_dot{}});
    const auto of_heads = with_cache(several.on(k, v));
    says("multi_head::extend: the annotations are [1,2,6] but must be [2,2,6] (one row for each row of the memory)",
         [&] {
             (void)several.extend(of_heads, random({1, 2, N}, 1), random({1, 2, D}, 1));
         });
    says("multi_head::extend: row 0 gets 1 position of 2; only a KV cache, with_cache(memory), may have rows of "
         "different lengths",
         [&] {
             (void)several.extend(several.on(k, v), k, v, lengths{1, 2});
         });
    says("without_oldest: 3 positions of row 0, which has 2; a count is at most the length of its row",
         [&] { (void)of_heads.without_oldest(3); });
    // The state of a memory with more dropped positions, or with fewer positions.
    const auto remembers = by(normalize::temporal{});
    const auto all = with_cache(remembers.on(k, v));
    const auto less = all.without_oldest(1), longer = remembers.extend(all, k, v);
    const auto query = random({2, N}, 5);
    CHECK_THROWS_WITH_AS(
        (void)remembers.step(all, query, remembers.start(less)),
        doctest::Contains("remembers position 1 of row 0 and none before it, but the memory begins with position 0"),
        shape_error);
    CHECK_THROWS_WITH_AS((void)remembers.step(less, query, remembers.start(longer)),
                         doctest::Contains("remembers position 2 of row 0, but the memory has 2"), shape_error);
}
