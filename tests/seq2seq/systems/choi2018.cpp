// SPDX-License-Identifier: BSD-3-Clause
#include <heed/seq2seq/systems/choi2018.hpp>

#include <doctest/doctest.h>

#include <support/translators.hpp>

using namespace heed;
using namespace heed::seq2seq;

TEST_CASE("Choi et al. 2018: LSTM, a weight per dimension, contextualized embeddings on both sides")
{
    namespace choi = papers::choi2018;
    constexpr sizes small{7, 8, 4, 3, 5};
    support::check_system(
        choi::translator<double>(3, small, attentions::per_dimension_factory{}, choi::parts_with_context()));
}

TEST_CASE("the rows of table 1: LSTM on both sides, softmax(W z + c), and the additions of each row")
{
    namespace choi = papers::choi2018;
    constexpr sizes n{7, 8, 4, 3, 5};
    const auto baseline = choi::translator<float>(3, n, attentions::additive_factory{});
    CHECK(shape_of(baseline.encoder.forward.U) == shape_of_rank<2>{3, 12});
    CHECK(shape_of(baseline.decoder.cell.U) == shape_of_rank<2>{3, 12});
    CHECK(shape_of(baseline.decoder.readout.W_o) == shape_of_rank<2>{3, 8});
    const std::size_t fewest = parameter_count(baseline);
    // Y [E,A] in the score; v has D columns instead of one; words of both sides have gates, and the encoder has c.
    CHECK(parameter_count(choi::translator<float>(3, n, attentions::additive_with_word_factory{})) == fewest + 4 * 5);
    CHECK(parameter_count(choi::translator<float>(3, n)) > fewest + 4 * 5);
    const auto with_context = choi::translator<float>(3, n, attentions::additive_factory{}, choi::parts_with_context());
    CHECK(parameter_count(with_context) == fewest + 3 * (4 * 4 + 4));
}
