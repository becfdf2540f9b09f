// SPDX-License-Identifier: BSD-3-Clause
#include <heed/seq2seq/own_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include <heed/seq2seq/beam.hpp>
#include <heed/seq2seq/ensemble.hpp>
#include <heed/seq2seq/forced.hpp>
#include <heed/seq2seq/greedy.hpp>
#include <heed/seq2seq/translator.hpp>
#include <support/approx.hpp>
#include <support/searches.hpp>
#include <support/sentences.hpp>
#include <support/tensors.hpp>

using namespace heed;
using namespace heed::seq2seq;
using namespace support::searches;
using support::pointers;

namespace {

/// One of heed's models wrapped as a custom model: only the interface of own_model is used.
struct foreign {
    std::unique_ptr<decoding<double>> inside;

    std::size_t vocabulary() const { return 11; }
    void step(std::span<const std::uint32_t> previous, std::span<double> scores)
    {
        word_ids words(1, previous.size());
        std::copy(previous.begin(), previous.end(), words.ids.begin());
        inside->step(words);
        const auto logits = inside->logits();
        for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = logits.data[i] + 7;  // an arbitrary constant
    }
    void select(std::span<const std::size_t> rows) { inside->select(rows); }
    void weights(std::size_t row, std::vector<double>& to) const { inside->weights(row, to); }
};

/// Each word is followed by the next word of the vocabulary, or by the end.
struct counting {
    std::vector<int> heard = {};

    std::size_t vocabulary() const { return 6; }
    void step(std::span<const std::uint32_t> previous, std::span<float> log_p)
    {
        std::fill(log_p.begin(), log_p.end(), -INFINITY);
        for (std::size_t r = 0; r < previous.size(); ++r) {
            log_p[r * 6 + 3] = std::log(0.25F);
            log_p[r * 6 + (previous[r] < 5 ? std::max(previous[r] + 1, 4u) : 4u)] = std::log(0.75F);
        }
    }
    void select(std::span<const std::size_t>) {}
};

static_assert(own_model<foreign, double> && own_model<counting, float>);
static_assert(!own_model<int, float>);

}  // namespace

TEST_CASE("a custom model is searched, forced and combined in ensembles like heed's")
{
    const auto batch = make_source(pointers(sources));
    const auto alone = [&batch] { return foreign{decode<double>(first, batch)}; };
    beam_options how;
    how.width = 5;
    how.best = 3;
    how.with_weights = true;
    how.coverage = 0.2;
    {
        foreign mine = alone();
        decoding_by<double, foreign> at_work(mine, 4);
        CHECK(at_work.has_attention());
        const auto found = beam<double>(at_work, batch.real, how), expected = beam<double>(first, batch, how);
        for (std::size_t b = 0; b < 4; ++b) {
            REQUIRE(found[b].size() == expected[b].size());
            for (std::size_t k = 0; k < found[b].size(); ++k) {
                CHECK(found[b][k].words == expected[b][k].words);
                CHECK(found[b][k].score == support::approx(expected[b][k].score));
                CHECK(found[b][k].weights == expected[b][k].weights);
            }
        }
    }
    {
        foreign mine = alone();
        decoding_by<double, foreign> at_work(mine, 4);
        const auto found = greedy<double>(at_work, batch.real), expected = greedy<double>(first, batch);
        for (std::size_t b = 0; b < 4; ++b) CHECK(found[b].words == expected[b].words);
    }
    {
        foreign mine = alone();
        decoding_by<double, foreign> at_work(mine, 4);
        const auto wanted = pointers(targets);
        const auto found = force<double>(at_work, batch.real, wanted), expected = force<double>(first, batch, wanted);
        for (std::size_t b = 0; b < 4; ++b)
            CHECK(found[b].log_probability() == support::approx(expected[b].log_probability()));
    }
    {
        foreign mine = alone();
        std::vector<std::unique_ptr<decoding<double>>> members;
        members.push_back(std::make_unique<decoding_by<double, foreign>>(mine, 4));
        members.push_back(decode<double>(first, batch));
        ensemble<double> both(std::move(members), averaging::arithmetic);
        const auto found = beam<double>(both, batch.real), expected = beam<double>(first, batch);
        for (std::size_t b = 0; b < 4; ++b) {
            CHECK(found[b][0].words == expected[b][0].words);
            CHECK(found[b][0].score == support::approx(expected[b][0].score));
        }
    }
    {
        foreign mine = alone();
        decoding_by<double, foreign> at_work(mine, 4);
        auto expected_at_work = decode<double>(first, batch);
        const std::vector<std::uint32_t> some{3, 4, 7, 8};
        at_work.restrict_to(some);
        expected_at_work->restrict_to(some);
        CHECK(at_work.vocabulary() == 4);
        const auto found = beam<double>(at_work, batch.real), expected = beam<double>(*expected_at_work, batch.real);
        for (std::size_t b = 0; b < 4; ++b) {
            CHECK(found[b][0].words == expected[b][0].words);
            CHECK(found[b][0].score == support::approx(expected[b][0].score));
        }
    }
}

TEST_CASE("a table of words is a model")
{
    counting numbers;
    decoding_by<float, counting> at_work(numbers, 1);
    CHECK(!at_work.has_attention());
    beam_options how;
    how.width = 2;
    how.best = 2;
    how.normalization = length_normalization::none;
    how.at_most = {0, 2};
    const auto found = beam<float>(at_work, lengths{1}, how);
    REQUIRE(found[0].size() == 2);
    CHECK(found[0][0].words.empty());
    CHECK(found[0][0].log_probability == support::approx(std::log(0.25F)));
    // The other hypothesis continues until the maximum length: its end also has probability 1/4.
    CHECK(found[0][1].words == std::vector<std::uint32_t>{4, 5});
    CHECK(found[0][1].log_probability == support::approx(std::log(0.75F * 0.75F * 0.25F)));
}

TEST_CASE("a model without words and wrong rows are rejected")
{
    counting numbers;
    decoding_by<float, counting> at_work(numbers, 2);
    const std::vector<std::size_t> rows{0, 2};
    CHECK(support::message_of<error>([&] { at_work.select(rows); }) ==
          "decoding_by::select: row 2 of 2; rows count from 0");
    CHECK(support::contains(support::message_of<shape_error>([&] { at_work.step(word_ids(1, 3)); }),
                            "decoding_by::step: the previous words"));
    word_ids long_list(1, 2);
    long_list.ids.resize(3);
    CHECK(support::message_of<shape_error>([&] { at_work.step(long_list); }) ==
          "decoding_by::step: 3 word ids for 1 step of 2 sentences; give one for each step of each sentence, 2");
    at_work.step(word_ids(1, 2));
    candidates<float> into;
    const std::vector<std::uint32_t> also{1};
    CHECK(support::message_of<error>([&] { at_work.propose(1, also, into); }) ==
          "decoding::propose: 1 word for 2 rows; give one word per row, or none");
    CHECK(support::contains(support::message_of<error>([&] { at_work.restrict_to({4, 4}); }), "ascending order"));
    CHECK(support::contains(support::message_of<error>([&] { at_work.restrict_to({6}); }), "words below 6"));
}
