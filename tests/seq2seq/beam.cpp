// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/normalize/temporal.hpp>
#include <heed/score/with_coverage.hpp>
#include <heed/seq2seq/beam.hpp>
#include <heed/seq2seq/forced.hpp>
#include <heed/seq2seq/greedy.hpp>
#include <heed/seq2seq/own_model.hpp>
#include <heed/seq2seq/translator.hpp>
#include <support/approx.hpp>
#include <support/sentences.hpp>

using namespace heed;
using namespace heed::seq2seq;
using support::pointers;

namespace {

const std::vector<id_sentence> sources{{4, 5, 6}, {4, 1}, {6, 5, 4, 4, 7, 8}, {9}, {}};

/// Coverage embeddings with temporal attention: a state in the normalizer and one in the score.
struct covered {
    auto operator()(const auto& init, const sizes& n) const
    {
        return attention{score::with_coverage{attentions::additive_score_factory{}(init, n),
                                              init.glorot(3, n.alignment),
                                              nn::make_coverage_gru<double>(init, n.embedding, 3)},
                         normalize::temporal{}, combine::weighted_sum{}};
    }
};

/// Large weights: the model prefers some words, so that searches differ.
template <class Make>
auto lively(std::uint64_t seed, const sizes& n, const Make& make)
{
    auto model = make_translator<double>(seed, n, make);
    for_each_parameter(model, [](const std::string& name, auto& x) {
        for (double& w : x) w *= name.find("W_o") != std::string::npos ? 6 : 3;
    });
    return model;
}

/// Every translation of at most `most` words with its log-probability, by forced decoding; with `marks` including those
/// with padding and begin words.
template <class Model>
std::vector<std::pair<id_sentence, double>> all_translations(const Model& model, const id_sentence& source,
                                                             std::size_t words, std::size_t most, bool marks)
{
    constexpr special_ids special;
    std::vector<id_sentence> all{{}};
    for (std::size_t begin = 0, length = 0; length < most; ++length) {
        const std::size_t end = all.size();
        for (; begin < end; ++begin) {
            for (std::uint32_t w = 0; w < words; ++w) {
                if (w == special.end || (!marks && (w == special.padding || w == special.begin))) continue;
                id_sentence longer = all[begin];
                longer.push_back(w);
                all.push_back(std::move(longer));
            }
        }
    }
    const std::vector<const id_sentence*> again(all.size(), &source);
    const auto forced = force<double>(model, make_source(again), pointers(all), {.with_weights = false});
    std::vector<std::pair<id_sentence, double>> result;
    for (std::size_t i = 0; i < all.size(); ++i) result.emplace_back(all[i], forced[i].log_probability());
    return result;
}

constexpr std::size_t few_words = 5, few_steps = 3;  // 1 + 4 + 16 + 64 translations, 1 + 2 + 4 + 8 without marks
const sizes tiny{12, few_words, 4, 5, 4};

/// A beam as wide as the search space against exhaustive search.
template <class Make>
void exhaustive(const Make& make, const beam_options& chosen)
{
    auto model = lively(3, tiny, make);
    model.decoder.readout.b(special_ids{}.end) = 8;  // otherwise almost no translation ends within three words
    beam_options how = chosen;
    const std::size_t count = how.marks ? 85 : 15;
    how.width = how.best = count;
    how.at_most = {0, few_steps};
    for (const id_sentence& source : sources) {
        auto all = all_translations(model, source, few_words, few_steps, how.marks);
        REQUIRE(all.size() == count);
        double total = 0;
        for (const auto& each : all) total += std::exp(each.second);
        CHECK(total > 0.01);  // the rest belongs to translations longer than three words
        CHECK(total < 1);
        std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
            return a.second / how.divisor(a.first.size() + 1) > b.second / how.divisor(b.first.size() + 1);
        });
        const auto found = beam<double>(model, make_source(std::vector{&source}), how)[0];
        REQUIRE(found.size() == all.size());
        std::set<id_sentence> different;
        for (std::size_t k = 0; k < found.size(); ++k) {
            different.insert(found[k].words);
            const double expected = all[k].second / how.divisor(all[k].first.size() + 1);
            CHECK(found[k].score == support::approx(expected));
        }
        CHECK(different.size() == all.size());
        CHECK(found[0].words == all[0].first);
        CHECK(found[0].log_probability == support::approx(all[0].second));
    }
}

template <class Model>
void width_one_is_greedy(const Model& model)
{
    beam_options how;
    how.width = 1;
    how.with_weights = true;
    const auto batch = make_source(pointers(sources));
    const auto narrow = beam<double>(model, batch, how);
    const auto simple = greedy<double>(model, batch, {.with_weights = true});
    std::set<std::size_t> lengths_seen;
    for (std::size_t b = 0; b < sources.size(); ++b) {
        REQUIRE(narrow[b].size() == 1);
        CHECK(narrow[b][0].words == simple[b].words);
        CHECK(narrow[b][0].weights == simple[b].weights);
        CHECK(narrow[b][0].log_probability == doctest::Approx(simple[b].log_probability).epsilon(1e-12));
        CHECK(simple[b].words.size() <= 2 * (sources[b].size() + 1) + 10);
        lengths_seen.insert(simple[b].words.size());
    }
    CHECK(lengths_seen.size() > 2);
}

template <class Model>
void batch_is_one_by_one(const Model& model, const beam_options& how)
{
    const auto together = beam<double>(model, make_source(pointers(sources)), how);
    for (std::size_t b = 0; b < sources.size(); ++b) {
        const auto alone = beam<double>(model, make_source(std::vector{&sources[b]}), how)[0];
        REQUIRE(alone.size() == together[b].size());
        REQUIRE(!alone.empty());
        for (std::size_t k = 0; k < alone.size(); ++k) {
            CHECK(alone[k].words == together[b][k].words);
            CHECK(alone[k].score == support::approx(together[b][k].score));
            REQUIRE(alone[k].weights.size() == together[b][k].weights.size());
            for (std::size_t j = 0; j < alone[k].weights.size(); ++j) {
                REQUIRE(alone[k].weights[j].size() == sources[b].size() + 1);
                for (std::size_t t = 0; t <= sources[b].size(); ++t)
                    CHECK(alone[k].weights[j][t] == support::approx(together[b][k].weights[j][t]));
            }
        }
    }
}

/// Search results for a hypothesis equal those of the model with that hypothesis forced: words, weights and state
/// belong together.
template <class Model>
void hypotheses_are_what_they_say(const Model& model, const beam_options& how)
{
    const auto batch = make_source(pointers(sources));
    const auto found = beam<double>(model, batch, how);
    for (std::size_t k = 0; k < how.best; ++k) {
        std::vector<const id_sentence*> targets;
        for (const auto& of_sentence : found) targets.push_back(&of_sentence.at(k).words);
        const auto forced = force<double>(model, batch, targets);
        for (std::size_t b = 0; b < sources.size(); ++b) {
            CHECK(found[b][k].log_probability == support::approx(forced[b].log_probability()));
            REQUIRE(found[b][k].weights.size() == forced[b].weights.size());
            for (std::size_t j = 0; j < forced[b].weights.size(); ++j) {
                for (std::size_t t = 0; t <= sources[b].size(); ++t)
                    CHECK(found[b][k].weights[j][t] == support::approx(forced[b].weights[j][t]));
            }
        }
    }
}

const sizes small{12, 11, 6, 5, 4};

}  // namespace

TEST_CASE("a beam as wide as the search space equals exhaustive search, including the order")
{
    beam_options how;
    exhaustive(attentions::temporal_factory{}, how);
    how.marks = true;
    exhaustive(attentions::temporal_factory{}, how);
    how.normalization = length_normalization::none;
    exhaustive(covered{}, how);
    how.normalization = length_normalization::per_word;
    exhaustive(covered{}, how);
}

TEST_CASE("a beam of one is greedy decoding")
{
    width_one_is_greedy(lively(5, small, attentions::temporal_factory{}));
    width_one_is_greedy(lively(6, small, covered{}));
}

TEST_CASE("a sentence has the same hypotheses alone and in a batch, with the model's own probabilities")
{
    beam_options how;
    how.width = 5;
    how.best = 4;
    how.with_weights = true;
    const auto temporal = lively(5, small, attentions::temporal_factory{});
    const auto with_coverage = lively(6, small, covered{});
    batch_is_one_by_one(temporal, how);
    batch_is_one_by_one(with_coverage, how);
    hypotheses_are_what_they_say(temporal, how);
    hypotheses_are_what_they_say(with_coverage, how);
    how.normalization = length_normalization::per_word;
    how.coverage = 0.3;
    how.no_repeat = 2;
    batch_is_one_by_one(with_coverage, how);
    hypotheses_are_what_they_say(with_coverage, how);
    const packed<double, std::remove_const_t<decltype(with_coverage)>> fast(with_coverage);
    hypotheses_are_what_they_say(fast, how);  // a score that reads the word's embedding
}

namespace {

/// A custom model, which reads only the previous word: log p(next | previous) from a table.
struct bigrams {
    std::vector<std::vector<double>> log_p;  // [V][V]

    std::size_t vocabulary() const { return log_p.size(); }
    void step(std::span<const std::uint32_t> previous, std::span<double> scores) const
    {
        for (std::size_t r = 0; r < previous.size(); ++r)
            std::copy_n(log_p[previous[r]].data(), log_p.size(), scores.data() + r * log_p.size());
    }
    void select(std::span<const std::size_t>) const {}
};

}  // namespace

TEST_CASE("the search waits for a long translation with a better mean")
{
    const double never = -INFINITY;
    bigrams model;
    model.log_p.assign(5, std::vector<double>(5, never));
    model.log_p[2] = {never, never, never, std::log(0.6), std::log(0.4)};  // after <s>: the end, or "4"
    model.log_p[4] = {never, never, never, std::log(0.1), std::log(0.9)};  // and "4" again
    const lengths real{2, 4};
    const auto search = [&](const beam_options& how) {
        decoding_by<double, bigrams> running(model, 2);
        return beam<double>(running, real, how);
    };
    beam_options how;
    how.width = 3;
    how.normalization = length_normalization::none;
    for (const auto& found : search(how)) {
        CHECK(found[0].words.empty());
        CHECK(found[0].score == support::approx(std::log(0.6)));
    }
    // After n words the mean is (log 0.4 + (n − 1) log 0.9 + log 0.1) / (n + 1): above log 0.6 from n = 5 on, and best
    // at the maximum length, where the beam still has room.
    how.normalization = length_normalization::per_word;
    how.width = 40;
    for (const std::size_t best : {1u, 5u}) {
        how.best = best;
        const auto found = search(how);
        for (std::size_t b = 0; b < 2; ++b) {
            const std::size_t most = how.at_most.words(real[b]);
            REQUIRE(found[b].size() == best);
            for (std::size_t k = 0; k < best; ++k) {
                const auto n = static_cast<double>(most - k);
                CHECK(found[b][k].words.size() == most - k);
                CHECK(found[b][k].score ==
                      support::approx((std::log(0.4) + (n - 1) * std::log(0.9) + std::log(0.1)) / (n + 1)));
            }
        }
    }
    decoding_by<double, bigrams> running(model, 2);
    CHECK(greedy<double>(running, real)[0].words.empty());
}

TEST_CASE("the padding and begin words are never written unless requested")
{
    constexpr special_ids special;
    auto model = lively(5, small, attentions::temporal_factory{});
    model.decoder.readout.b(special.padding) = 30;  // far more probable than any word
    model.decoder.readout.b(special.begin) = 25;
    const auto batch = make_source(pointers(sources));
    const auto marks_of = [&](const id_sentence& words) {
        return std::count(words.begin(), words.end(), special.padding) +
               std::count(words.begin(), words.end(), special.begin);
    };
    const packed<double, decltype(model)> fast(model);
    for (const std::size_t width : {1u, 4u}) {
        beam_options how;
        how.width = how.best = width;
        std::size_t words = 0;
        for (const auto& of_sentence : beam<double>(model, batch, how))
            for (const auto& each : of_sentence) {
                CHECK(marks_of(each.words) == 0);
                words += each.words.size();
            }
        CHECK(words > 0);
        how.marks = true;
        for (const auto& of_sentence : beam<double>(model, batch, how)) CHECK(marks_of(of_sentence[0].words) > 0);
    }
    // A beam of one is greedy decoding, with the model's own probabilities.
    beam_options one;
    one.width = 1;
    const auto narrow = beam<double>(model, batch, one);
    const auto simple = greedy<double>(model, batch), quick = greedy<double>(fast, batch);
    for (std::size_t b = 0; b < sources.size(); ++b) {
        CHECK(marks_of(simple[b].words) == 0);
        CHECK(simple[b].words == narrow[b][0].words);
        CHECK(quick[b].words == simple[b].words);
        CHECK(std::abs(simple[b].log_probability - narrow[b][0].log_probability) < 1e-9);
    }
    for (const auto& each : greedy<double>(model, batch, {.marks = true})) CHECK(marks_of(each.words) > 0);

    // Custom ids: 0 and 2 are words, 4 and 5 are not.
    beam_options own;
    own.special = {.padding = 4, .begin = 5, .end = 3};
    own.width = 3;
    std::ptrdiff_t of_beam = 0;
    for (const auto& of_sentence : beam<double>(model, batch, own)) of_beam += marks_of(of_sentence[0].words);
    CHECK(of_beam > 0);
    for (const auto& each : greedy<double>(model, batch, {.special = own.special})) CHECK(marks_of(each.words) > 0);
    // One id for all three special words still ends a translation.
    own.special = {.padding = 3, .begin = 3, .end = 3};
    own.at_most = {0, 4};
    for (const auto& of_sentence : beam<double>(model, batch, own)) CHECK(of_sentence[0].words.size() <= 4);

    // Only special words and the end: the result is the end.
    bigrams table;
    table.log_p.assign(4, {std::log(0.5), -INFINITY, std::log(0.25), std::log(0.25)});
    decoding_by<double, bigrams> running(table, 1), again(table, 1);
    CHECK(greedy<double>(running, lengths{1})[0].words.empty());
    CHECK(beam<double>(again, lengths{1}, one)[0][0].words.empty());
}

TEST_CASE("stopping early does not change the result")
{
    // The k best of a search for the w best are those of a search for the k best, which stops earlier. An end word that
    // is likely from the start makes many translations short; after normalization, a longer one may still be better.
    std::size_t longer = 0;
    for (std::uint64_t seed = 7; seed < 15; ++seed) {
        auto model = lively(seed, small, attentions::temporal_factory{});
        model.decoder.readout.b(special_ids{}.end) = 4;
        for (const auto normalization :
             {length_normalization::none, length_normalization::per_word, length_normalization::gnmt}) {
            beam_options how;
            how.width = how.best = 8;
            how.normalization = normalization;
            const auto all = beam<double>(model, make_source(pointers(sources)), how);
            how.best = 1;
            const auto one = beam<double>(model, make_source(pointers(sources)), how);
            for (std::size_t b = 0; b < sources.size(); ++b) {
                REQUIRE(one[b].size() == 1);
                CHECK(one[b][0].words == all[b][0].words);
                CHECK(one[b][0].score == support::approx(all[b][0].score));
                for (const auto& each : all[b]) longer += each.words.size() < all[b][0].words.size() ? 1 : 0;
            }
        }
    }
    CHECK(longer > 0);
}

TEST_CASE("translations have at least and at most the requested numbers of words")
{
    const auto model = lively(5, small, attentions::temporal_factory{});
    beam_options how;
    how.width = 4;
    how.least_words = 6;
    how.at_most = {1, 1};
    const auto found = beam<double>(model, make_source(pointers(sources)), how);
    for (std::size_t b = 0; b < sources.size(); ++b) {
        CHECK(found[b][0].words.size() >= 6);
        CHECK(found[b][0].words.size() <= std::max<std::size_t>(6, sources[b].size() + 2));
    }
    how.least_words = 0;
    how.at_most = {0, 0};  // only the end word
    const auto nothing = beam<double>(model, make_source(pointers(sources)), how);
    for (const auto& of_sentence : nothing) CHECK(of_sentence.at(0).words.empty());
}

TEST_CASE("no n-gram is repeated, and no excluded word occurs")
{
    const auto model = lively(5, small, attentions::temporal_factory{});
    const auto repeats = [](const id_sentence& words, std::size_t n) {
        std::map<id_sentence, int> seen;
        std::size_t again = 0;
        for (std::size_t i = 0; i + n <= words.size(); ++i) {
            const auto at = words.begin() + static_cast<std::ptrdiff_t>(i);
            if (seen[id_sentence(at, at + static_cast<std::ptrdiff_t>(n))]++ > 0) ++again;
        }
        return again;
    };
    beam_options how;
    how.width = 3;
    how.least_words = 9;
    const auto batch = make_source(pointers(sources));
    for (const std::size_t n : {1u, 2u, 3u}) {
        how.no_repeat = 0;
        std::size_t before = 0;
        for (const auto& of_sentence : beam<double>(model, batch, how)) before += repeats(of_sentence.at(0).words, n);
        how.no_repeat = n;
        for (const auto& of_sentence : beam<double>(model, batch, how)) CHECK(repeats(of_sentence.at(0).words, n) == 0);
        CHECK(before > 0);  // otherwise no repetition was prevented
    }
    how.no_repeat = 0;
    const auto favorite = beam<double>(model, batch, how)[0][0].words.at(0);
    how.never = {favorite};
    for (const auto& of_sentence : beam<double>(model, batch, how)) {
        for (const std::uint32_t word : of_sentence.at(0).words) CHECK(word != favorite);
    }
    // Ten words that may each be used once, and twelve requested: no word remains.
    how.no_repeat = 1;
    how.never.clear();
    how.marks = true;
    how.least_words = 12;
    CHECK(beam<double>(model, batch, how)[0].at(0).words.size() == 10);
}

TEST_CASE("the coverage penalty is eq. 14 of Wu et al. 2016")
{
    const auto model = lively(5, small, attentions::temporal_factory{});
    beam_options how;
    how.width = how.best = 3;
    how.with_weights = true;
    how.coverage = 0.4;
    const auto found = beam<double>(model, make_source(pointers(sources)), how);
    for (std::size_t b = 0; b < sources.size(); ++b) {
        for (const auto& each : found[b]) {
            double penalty = 0;
            for (std::size_t i = 0; i < sources[b].size(); ++i) {
                double seen = 0;
                for (const auto& row : each.weights) seen += row[i];
                penalty += std::log(std::min(seen, 1.0));
            }
            const double n = static_cast<double>(each.words.size() + 1);
            CHECK(each.score == support::approx(each.log_probability / std::pow((5 + n) / 6, 0.6) + 0.4 * penalty));
        }
    }
}

TEST_CASE("a model without attention can be searched, but has no coverage penalty")
{
    const auto model = lively(5, small, fixed_context{});
    beam_options how;
    how.width = 4;
    how.best = 2;
    batch_is_one_by_one(model, how);
    how.coverage = 1;
    CHECK_THROWS_WITH_AS(beam<double>(model, make_source(pointers(sources)), how),
                         "beam: a coverage penalty needs attention, which this model does not have; set coverage to 0",
                         error);
}

TEST_CASE("invalid options and NaN weights are rejected")
{
    auto model = lively(5, small, attentions::additive_factory{});
    const auto batch = make_source(pointers(sources));
    beam_options how;
    how.width = 2;
    how.best = 3;
    CHECK_THROWS_WITH_AS(beam<double>(model, batch, how),
                         "beam: the 3 best of a beam of 2; both must be at least 1, and best at most the width", error);
    how = {};
    how.alpha = -1;
    CHECK_THROWS_AS(beam<double>(model, batch, how), error);
    model.decoder.readout.W_o(0, 0) = NAN;
    for (double& x : model.decoder.readout.W_o) x = NAN;
    CHECK_THROWS_WITH_AS(beam<double>(model, batch),
                         "beam: no word has a probability above 0 at step 0; are the model's scores NaN?", error);
    CHECK_THROWS_WITH_AS(greedy<double>(model, batch),
                         "greedy: no word has a probability above 0 at step 0; are the model's scores NaN?", error);
}

TEST_CASE("the search of one sentence can be canceled without changing the others")
{
    const auto model = lively(5, small, attentions::temporal_factory{});
    const auto batch = make_source(pointers(sources));
    const std::vector<std::size_t> looked_for{1000, 0, 1, 1000, 1};  // the number of steps before each is canceled
    const auto wanted = [&](std::vector<std::size_t>& left) {
        left = looked_for;
        return [&left](std::size_t sentence) { return left.at(sentence) > 0 && left[sentence]-- > 0; };
    };
    std::vector<std::size_t> left;
    beam_options how;
    how.width = 4;
    how.best = 2;
    const auto all = beam<double>(model, batch, how);
    how.wanted = wanted(left);
    const auto some = beam<double>(model, batch, how);
    const auto greedy_all = greedy<double>(model, batch);
    std::vector<std::size_t> left_by_greedy;
    const auto greedy_some = greedy<double>(model, batch, {.wanted = wanted(left_by_greedy)});
    REQUIRE(some.size() == sources.size());
    REQUIRE(greedy_some.size() == sources.size());
    for (std::size_t b = 0; b < sources.size(); ++b) {
        CAPTURE(b);
        if (looked_for[b] < 1000) {
            CHECK(some[b].empty());
            CHECK(left[b] == 0);
            CHECK(greedy_some[b].words.empty());
            CHECK(greedy_some[b].log_probability == -std::numeric_limits<double>::infinity());
            continue;
        }
        REQUIRE(some[b].size() == all[b].size());
        for (std::size_t k = 0; k < all[b].size(); ++k) {
            CHECK(some[b][k].words == all[b][k].words);
            CHECK(std::abs(some[b][k].score - all[b][k].score) < 1e-12);
        }
        CHECK(greedy_some[b].words == greedy_all[b].words);
    }

    // If all sentences are canceled, no step is computed.
    std::size_t steps = 0;
    how.wanted = [&steps](std::size_t) { return ++steps > 1000; };
    for (const auto& each : beam<double>(model, batch, how)) CHECK(each.empty());
    CHECK(steps == sources.size());
    for (const auto& each : greedy<double>(model, batch, {.wanted = how.wanted})) CHECK(each.words.empty());
    CHECK(steps == 2 * sources.size());
}
