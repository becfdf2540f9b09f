// SPDX-License-Identifier: BSD-3-Clause
#include <heed/attention/query.hpp>

#include <heed/heed.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <support/mechanisms.hpp>

using namespace heed;
using support::random;

TEST_CASE("the previous word: alone, or projected for all steps at once")
{
    const score::with_word score{score::additive{random({3, 4}, 1), random({5, 4}, 2), random({4}, 3)},
                                 random({2, 4}, 4)};
    const attention attend{score, normalize::temporal{}, combine::weighted_sum{}};
    const auto memory = attend.on(random({2, 6, 5}, 4), lengths{6, 2});
    const auto states = random({2, 3, 3}, 5), words = random({2, 3, 2}, 6);
    const auto projected = attend.score.project_words(words);
    auto one = attend.start(memory), two = one;
    for (std::size_t s = 0; s < 3; ++s) {
        const auto a = attend.step(memory, state_and_word{ops::step_of(states, s), ops::step_of(words, s)}, one);
        const auto b =
            attend.step(memory, state_and_projected_word{ops::step_of(states, s), ops::step_of(projected, s)}, two);
        CHECK(support::distance(a.context, b.context) < 1e-14);
        CHECK(support::distance(a.weights, b.weights) < 1e-14);
        one = a.state;
        two = b.state;
    }
}

// What each sentence is asked: tests/attention/memory.cpp.

TEST_CASE("the number of a query in a shorter sentence")
{
    CHECK(detail::number_in_sentence(6, 7, 7) == 6);
    CHECK(detail::number_in_sentence(6, 3, 7) == 2);
    CHECK(detail::number_in_sentence(4, 3, 7) == 0);
    CHECK(detail::number_in_sentence(1, 0, 7) == 0);  // there nothing is compared
    const auto message = support::message_of<shape_error>([] { (void)detail::number_in_sentence(1, 3, 7); });
    CHECK_MESSAGE(support::contains(message, "query 1 of a KV cache, whose longest sentence has 7 positions, would "
                                             "have the number -3 in a sentence of 3"),
                  message);
}

TEST_CASE("several numbers: where sentences differ, and the score counts queries")
{
    using counting = score::rotary<score::dot>;
    const attention attend{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto x = random({2, 4, 6}, 1);
    const auto padded = attend.on(x, lengths{4, 2});
    const auto grown = with_cache(padded), even = with_cache(attend.on(x));
    CHECK(detail::differ_in_length(lengths{4, 2}));
    CHECK(!detail::differ_in_length(lengths{2, 2}));
    CHECK(!detail::differ_in_length(lengths_view{}));
    CHECK(detail::numbers_differ<counting>(grown));
    CHECK(!detail::numbers_differ<counting>(even));
    CHECK(!detail::numbers_differ<counting>(padded));
    CHECK(!detail::numbers_differ<score::dot>(grown));
    CHECK_THROWS_WITH_AS(detail::require_one_number<counting>(grown), doctest::Contains("differ in length"), error);
    detail::require_one_number<counting>(even);
    detail::require_one_number<score::dot>(grown);
}

TEST_CASE("the row of the keys that a row of queries asks")
{
    using keys = cache_tensor<double>;
    const auto x = random({2, 3, 4}, 1);
    const keys some(view_of(x), lengths{3, 2});
    const std::vector<std::size_t> sentence{1, 1, 0};
    const detail::shared_rows<keys> shared{some, sentence.data()};
    CHECK(detail::row_asked(shared, 0) == 1);
    CHECK(detail::row_asked(shared, 2) == 0);
    CHECK(detail::row_asked(detail::growing_rows<keys>{some}, 2) == 2);
    CHECK(detail::keys_grow<detail::shared_rows<keys>>);
    CHECK(detail::keys_grow<detail::growing_rows<keys>>);
    CHECK(!detail::keys_grow<detail::shared_rows<array<double, 3>>>);
    CHECK(!detail::keys_grow<array<double, 3>>);
}
