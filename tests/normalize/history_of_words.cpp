// SPDX-License-Identifier: BSD-3-Clause
#include <heed/normalize/history_of_words.hpp>

#include <heed/heed.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>

#include <support/approx.hpp>
#include <support/scalar_memory.hpp>

using namespace heed;
using support::random;

namespace {

constexpr support::mechanism_sizes sizes{};  // query 3, width 5, alignment 4, word 2
const support::additive_parameters parameters{sizes};

}  // namespace

TEST_CASE("temporal history across the sentences of a document")
{
    const attention attend{parameters.score(), normalize::temporal{}, combine::weighted_sum{}};
    const double nothing = -std::numeric_limits<double>::infinity();
    normalize::history_of_words<double> documents(2);
    word_ids words(3, 2);  // [T,B]: 7 8 7 | 7 9
    words.ids = {7, 7, 8, 9, 7, 0};
    const lengths real{3, 2};
    const auto h = random({2, 3, sizes.width}, 1);
    const auto memory = attend.on(h, real);
    auto state = attend.start(memory);
    // The first sentence has no history.
    CHECK(support::same_bits(documents.recall(words, real).history, state.normalize.history));
    for (std::size_t t = 0; t < 2; ++t) state = attend.step(memory, random({2, sizes.query}, 5 + t), state).state;
    documents.keep(words, real, state.normalize);

    // The second sentence: 8 7 | 7 7, and padding.
    word_ids next(3, 2);
    next.ids = {8, 7, 7, 7, 1, 9};
    const lengths real_next{2, 2};
    const auto L = documents.recall(next, real_next).history;
    const auto& before = state.normalize.history;
    CHECK(L(0, 0) == before(0, 1));  // 8, once in each sentence
    CHECK(std::exp(L(0, 1)) ==
          support::approx(std::exp(before(0, 0)) + std::exp(before(0, 2))));  // 7, twice in the first sentence
    CHECK(L(0, 2) == nothing);                                                // padding
    CHECK(2 * std::exp(L(1, 0)) == support::approx(std::exp(before(1, 0))));  // 7, twice in the second sentence
    CHECK(L(1, 1) == L(1, 0));
    // Each row is a separate document; the 0 was padding.
    word_ids other(1, 2);
    other.ids = {9, 0};
    CHECK(documents.recall(other, lengths{1, 1}).history(0, 0) == nothing);
    CHECK(documents.recall(other, lengths{1, 1}).history(1, 0) == nothing);

    // A sentence without attention leaves the sums unchanged: splitting them among occurrences is lossless.
    documents.keep(next, real_next, documents.recall(next, real_next));
    CHECK(support::distance(documents.recall(next, real_next).history, L) < 1e-15);

    // Scores of 1e4: in the log domain a sum is close to its largest term.
    auto far = state.normalize;
    far.history = array<double, 2>{{1e4, -1e4, 1e4}, {-1e4, 1e4, nothing}};
    normalize::history_of_words<double> kept(2);
    kept.keep(words, real, far);
    const auto again = kept.recall(next, real_next).history;
    CHECK(again(0, 0) == -1e4);                                                  // 8
    CHECK(again(0, 1) == doctest::Approx(1e4 + std::log(2.0)).epsilon(1e-15));   // 7, twice before, once here
    CHECK(again(1, 0) == doctest::Approx(-1e4 - std::log(2.0)).epsilon(1e-15));  // 7, once before, twice here

    // Effect on weights: a word attended to in the previous sentence counts less than an equal word.
    const array<double, 3> same(shape_of_rank<3>{2, 3, sizes.width}, 0.3);
    const auto equal = attend.on(same, lengths{3, 3});
    word_ids old_and_new(3, 2);
    old_and_new.ids = {8, 7, 2, 3, 3, 4};
    auto later = attend.start(equal);
    later.normalize = documents.recall(old_and_new, lengths{3, 3});
    const auto q = random({2, sizes.query}, 9);
    const auto weights = attend.step(equal, q, later).weights;
    const double discounted = std::exp(-later.normalize.history(0, 0));  // e − L compared with e
    CHECK(weights(0, 0) / weights(0, 1) == doctest::Approx(discounted).epsilon(1e-12));
    CHECK(weights(0, 1) == weights(0, 2));

    documents.forget(0);
    CHECK(documents.recall(next, real_next).history(0, 0) == nothing);
    CHECK(documents.recall(next, real_next).history(1, 0) == L(1, 0));
    const auto message = [](auto&& act) { return support::message_of<shape_error>(act); };
    CHECK(support::contains(message([&] {
                                documents.recall(word_ids(2, 3), lengths{2, 2, 2});
                            }),
                            "the batch has 3 sentences but there are 2 documents"));
    CHECK(support::contains(message([&] {
                                documents.keep(word_ids(3, 2), lengths{3, 4}, state.normalize);
                            }),
                            "history_of_words::keep: the length of row 1 is 4 but there are only 3 positions"));
    CHECK(support::contains(message([&] {
                                documents.keep(word_ids(2, 2), lengths{2, 2}, state.normalize);
                            }),
                            "history_of_words::keep: the history is [2,3] but must be [2,2]"));
}
