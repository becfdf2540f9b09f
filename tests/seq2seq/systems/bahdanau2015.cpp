// SPDX-License-Identifier: BSD-3-Clause
#include <heed/seq2seq/systems/bahdanau2015.hpp>

#include <doctest/doctest.h>

#include <string>

#include <support/translators.hpp>

using namespace heed;
using namespace heed::seq2seq;

TEST_CASE("RNNsearch has a bidirectional encoder, the previous state as the query, and maxout")
{
    const auto model = papers::bahdanau2015::translator<double>(3, {7, 8, 4, 3, 5});
    support::check_system(model);
    std::string names;
    for_each_parameter(model, [&](const std::string& name, const auto&) { names += name + " "; });
    CHECK(names ==
          "encoder.embedding encoder.forward.W encoder.forward.b encoder.forward.U encoder.forward.U_h "
          "encoder.backward.W "
          "encoder.backward.b encoder.backward.U encoder.backward.U_h encoder.forward_start.value "
          "encoder.backward_start.value decoder.attention.score.W decoder.attention.score.U decoder.attention.score.v "
          "decoder.embedding decoder.cell.W decoder.cell.b decoder.cell.U decoder.cell.U_h decoder.C decoder.W_s "
          "decoder.b_s decoder.U_o decoder.V_o decoder.C_o decoder.b_o decoder.W_o decoder.b ");
}
