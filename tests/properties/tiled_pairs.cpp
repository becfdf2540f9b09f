// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <support/approx.hpp>
#include <support/many_queries.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::random;

namespace mine {

// The example of docs/how_to/write_a_tile_score.md, which tests/quotes.cmake compares.
// section: squares
/// e = −Σ (q − k)²
struct squares {
    static constexpr bool has_factors = false, bends = false;
    static constexpr int outer = 2;  // a factor of both derivatives

    /// Adds the terms of one query and a few keys; V is a SIMD register.
    template <std::size_t few, class V>
    static void add(V (&sum)[few], V q, const V (&k)[few], V)
    {
        for (std::size_t i = 0; i < few; ++i) sum[i] -= (q - k[i]) * (q - k[i]);
    }
    template <class V>
    static V value(V sum, V)
    {
        return sum;
    }
    /// Adds to the gradients of query and keys, given d = ∂e; the caller multiplies by `outer`.
    template <std::size_t few, class V>
    static void back(V q, const V (&k)[few], const V (&d)[few], V& to_query, V (&to_keys)[few], V&)
    {
        for (std::size_t i = 0; i < few; ++i) {
            to_query -= d[i] * (q - k[i]);
            to_keys[i] += d[i] * (q - k[i]);
        }
    }
};
struct nearness_in_kernels {
    using in_tiles = kernels::tiles::sum_of<squares>;
};
struct nearness {
    using kernel_tag = nearness_in_kernels;
    static constexpr score_traits traits{.weights = weight_kind::per_position};
    auto operator()(const tensor auto& q, const tensor auto& k) const
    {
        return ops::scale(ops::sum_last(ops::square(ops::subtract_per_position(k, q))), -1);
    }
    static auto parameters(auto&, auto&&) { return mine::nearness{}; }
};
// end

}  // namespace mine

// Scores other than plain inner products, long enough for tiles: equal to one query after another, forward and
// backward.

namespace {

template <class Score, class Normalize, class Mask>
concept in_tiles = detail::plan<attention<Score, Normalize, combine::weighted_sum>, array<double, 3>,
                                memory<array<double, 3>, array<double, 3>>, Mask>::tiled;

template <class Score, class Mask, class Normalize = normalize::softmax>
void check(const Score& score, const Mask& mask, const lengths& real, std::size_t S, std::size_t T,
           const Normalize& normalize = Normalize{})
{
    static_assert(in_tiles<Score, Normalize, Mask>);
    REQUIRE(detail::worth_tiles(S, T));
    CHECK(support::distance_from_one_by_one(attention{score, normalize, combine::weighted_sum{}}, mask, real, S, T) <
          1e-12);
}

score::additive<array<double, 2>, array<double, 1>> additive(std::size_t width = 6)
{
    return {random({4, width}, 5), random({4, width}, 6), random({width}, 7)};
}

/// Queries with a state and a word, which is half of the state.
template <class Base>
struct with_word {
    Base base;

    auto on(const auto&... source) const { return base.on(source...); }
    auto start(const auto& memory) const { return base.start(memory); }
    auto read(const auto& memory, const auto& query, const auto& state, const auto& mask) const
    {
        return base.read(memory, both(query), state, mask);
    }
    auto operator()(const auto& memory, const auto& queries, const auto& mask) const
    {
        return base(memory, both(queries), mask);
    }
    static auto both(const auto& query) { return state_and_word{query, ops::scale(query, 0.5)}; }
    static auto parameters(auto& self, auto&& visit)
    {
        auto base = visit("base", self.base);
        return with_word<decltype(base)>{std::move(base)};
    }
};
template <class Base>
with_word(Base) -> with_word<Base>;

const lengths real({70, 33, 0});

const auto alibi = [](auto e, score_index p) { return e - 0.1 * abs(p.query - p.key) * (p.batch + 1); };

/// All keys; a function of scores within a window.
void plainly(const auto& score, const auto& normalize) { check(score, no_mask{}, real, 60, 70, normalize); }
void in_window(const auto& score, const auto& normalize)
{
    check(score::modified{score, alibi}, causal{} & sliding_window{9}, real, 60, 70, normalize);
}

}  // namespace

TEST_CASE("additive scores, closeness and cosine under softmax: masks, lengths and functions")
{
    const auto by_softmax = [](const auto& score) {
        plainly(score, normalize::softmax{});
        in_window(score, normalize::softmax{});
    };
    by_softmax(additive());
    by_softmax(score::match{});
    by_softmax(score::cosine{3});
    const auto even = [](score_index p) { return (p.query + p.key) - (p.query + p.key) / 2 * 2 == 0; };
    const auto each = [&](const auto& score) {
        check(score, causal{}, real, 60, 70);
        check(score, lengths({5, 70, 2}), real, 130, 70);
        check(score, sliding_window{9} | even, real, 60, 70);
        check(score, no_mask{}, lengths({700, 3}), 9, 700);
    };
    each(additive());
    each(score::match{});
    check(score::concat{random({8, 5}, 5), random({5}, 7)}, causal{}, real, 60, 70);
}

TEST_CASE("additive scores, closeness and cosine under other normalizers")
{
    const auto first = [](const auto& normalize) {
        plainly(additive(), normalize);
        in_window(score::match{}, normalize);
        plainly(score::cosine{3}, normalize);
    };
    const auto second = [](const auto& normalize) {
        in_window(additive(), normalize);
        plainly(score::match{}, normalize);
        in_window(score::cosine{3}, normalize);
    };
    first(normalize::sigmoid{-1});
    second(normalize::sparsemax{});
    first(normalize::entmax15{});
    second(normalize::top_k{3});
    first(normalize::softmax_with_sink{array<double, 1>{0.7}});
}

TEST_CASE("a learned scale and bias")
{
    const normalize::sigmoid learns{array<double, 1>{-1}};
    check(score::cosine{array<double, 1>{3}}, causal{}, real, 60, 70);
    check(score::modified{score::cosine{random({4}, 8)}, alibi}, no_mask{}, real, 60, 70, learns);
    check(additive(), causal{}, real, 60, 70, learns);
    const attention first{score::dot{}, learns, combine::weighted_sum{}};
    const attention second{score::dot{}, normalize::sigmoid{array<double, 1>{0.5}}, combine::weighted_sum{}};
    CHECK(support::distance_from_one_by_one(multi_head{std::vector{first, second}, random({4, 4}, 1), random({4, 4}, 2),
                                                       random({4, 4}, 3), random({4, 4}, 4)},
                                            causal{}, real, 64, 70) < 1e-12);
}

TEST_CASE("temperature, also below functions of scores and tables")
{
    const auto bias = random({1, 21}, 11);
    const auto relative = [](auto e, score_index p, const auto& b) { return e + b(p.head, p.key - p.query + 10); };
    const array<double, 1> number{0.7};
    check(score::dot{}, causal{}, real, 60, 70, normalize::temperature{0.3});
    check(additive(), no_mask{}, real, 60, 70, normalize::temperature{2.5, normalize::entmax{number}});
    check(score::modified{score::match{}, alibi}, causal{} & sliding_window{9}, real, 60, 70,
          normalize::temperature{0.3, normalize::top_k{5}});
    check(score::modified{score::cosine{4}, bias, relative}, causal{}, real, 60, 70,
          normalize::temperature{0.3, normalize::temperature{2, normalize::softmax_with_sink{number}}});
    static_assert(!in_tiles<score::dot, normalize::temperature<normalize::temporal>, no_mask>);
    const attention wrong{score::dot{}, normalize::temperature{-1}, combine::weighted_sum{}};
    const auto x = random({1, 70, 4}, 1);
    CHECK_THROWS_WITH_AS(wrong(wrong.on(x), x), doctest::Contains("tau is -1"), error);

    // Few queries are rows of two products.
    const auto few = [](const auto& normalize) {
        static_assert(rowwise<std::remove_cvref_t<decltype(normalize)>>);
        const attention attend{score::dot{}, normalize, combine::weighted_sum{}};
        CHECK(support::distance_from_one_by_one(attend, causal{}, lengths{6, 3, 0}, 5, 6) < 1e-13);
    };
    few(normalize::temperature{0.3});
    few(normalize::temperature{0.3, normalize::sigmoid{-1}});
}

TEST_CASE("stick-breaking, a learned entmax and temporal over scores that are not plain inner products")
{
    const auto each = [&](const auto& normalize) {
        check(additive(), causal{}, real, 60, 70, normalize);
        check(score::match{}, no_mask{}, real, 60, 70, normalize);
        check(score::cosine{3}, causal{}, real, 60, 70, normalize);
    };
    each(normalize::stick_breaking{});
    each(normalize::entmax{array<double, 1>{0.4}});
    check(score::cosine{3}, causal{}, real, 60, 70, normalize::temporal{});
}

TEST_CASE("a score with a query of a state and a word")
{
    const attention asks{score::conv_s2s{random({4, 4}, 5), random({4}, 6)}, normalize::softmax{},
                         combine::weighted_sum{}};
    CHECK(support::distance_from_one_by_one(with_word{asks}, causal{}, real, 60, 70) < 1e-12);
}

TEST_CASE("a custom comparison")
{
    check(mine::nearness{}, no_mask{}, real, 60, 70);
    check(mine::nearness{}, causal{}, real, 60, 70, normalize::entmax15{});
}

TEST_CASE("widths of an additive score")
{
    for (const std::size_t width : {1u, 3u, 17u, 64u, 256u}) check(additive(width), causal{}, real, 64, 70);
}

TEST_CASE("tables that functions look up, and rotations, over additive scores")
{
    const auto bias = random({1, 21}, 11);
    const auto relative = [](auto e, score_index p, const auto& b) { return e + b(p.head, p.key - p.query + 10); };
    check(score::modified{additive(), bias, relative}, no_mask{}, real, 60, 70);
    check(score::modified{additive(), bias, relative}, causal{}, real, 60, 70, normalize::entmax15{});
    check(score::modified{score::match{}, bias, relative}, causal{}, real, 60, 70);
    check(score::rotary{additive()}, causal{}, real, 60, 70);
}

TEST_CASE("a query or key of length 0")
{
    auto h = random({1, 70, 4}, 1), q = random({1, 64, 4}, 2);
    for (std::size_t i = 0; i < 4; ++i) h(0, 3, i) = q(0, 5, i) = 0;
    ad::tape<double> on;
    const auto H = on.parameter(h), Q = on.parameter(q);
    const attention attend{score::cosine{4}, normalize::softmax{}, combine::weighted_sum{}};
    const auto contexts = attend(attend.on(H), Q);
    for (std::size_t i = 0; i < 4; ++i) {
        double mean = 0;
        for (std::size_t t = 0; t < 70; ++t) mean += h(0, t, i) / 70;
        CHECK(copy_of(contexts.value())(0, 5, i) == support::approx(mean));
    }
    on.backward(ops::dot(contexts, random({1, 64, 4}, 3)));
    for (std::size_t i = 0; i < 4; ++i) CHECK(copy_of(on.gradient(Q))(0, 5, i) == 0);
    for (const double x : copy_of(on.gradient(H))) CHECK(std::isfinite(x));
}

TEST_CASE("heads of a multi_head with different additive scores")
{
    std::vector<
        attention<score::additive<array<double, 2>, array<double, 1>>, normalize::softmax, combine::weighted_sum>>
        heads;
    for (std::uint64_t i = 0; i < 2; ++i)
        heads.push_back({{random({2, 5}, 20 + i), random({2, 5}, 30 + i), random({5}, 40 + i)},
                         normalize::softmax{},
                         combine::weighted_sum{}});
    CHECK(support::distance_from_one_by_one(
              multi_head{heads, random({4, 4}, 1), random({4, 4}, 2), random({4, 4}, 3), random({4, 4}, 4)}, causal{},
              real, 64, 70) < 1e-12);
}

TEST_CASE("rows that share a sentence's memory, with many queries and any score")
{
    const auto each = [](const auto& score, std::size_t S) {
        const attention attend{score, normalize::softmax{}, combine::weighted_sum{}};
        const auto memory = attend.on(random({3, 70, 4}, 4), real);
        for (const std::vector<std::size_t>& rows : {std::vector<std::size_t>{2, 1, 0}, {1, 0, 0, 1, 2}}) {
            const auto queries = random({rows.size(), S, 4}, 9);
            const std::remove_cvref_t<decltype(memory)> copies{ops::rows_of(memory.values, std::span(rows)),
                                                               ops::rows_of(memory.keys, std::span(rows)),
                                                               memory.real.rows(rows), no_mask{}};
            CHECK(support::distance(attend(shared_memory(memory, rows), queries), attend(copies, queries)) < 1e-12);
        }
    };
    for (const std::size_t S : {4u, 64u}) {
        each(score::dot{}, S);
        each(score::cosine{}, S);
        each(score::match{}, S);
        each(additive(), S);
    }
}
