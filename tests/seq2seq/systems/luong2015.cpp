// SPDX-License-Identifier: BSD-3-Clause
#include <heed/seq2seq/systems/luong2015.hpp>

#include <doctest/doctest.h>

#include <support/translators.hpp>

using namespace heed;
using namespace heed::seq2seq;

TEST_CASE("Luong et al. 2015: stacked LSTM, local-p with input feeding, location without it, and no attention")
{
    namespace luong = papers::luong2015;
    constexpr sizes small{7, 8, 4, 3, 5};
    support::check_system(luong::translator<double>(
        3, small, attention_factory{luong::general_factory{}, luong::local_p_factory{1}}, luong::parts(2)));
    support::check_system(luong::translator<double>(3, small, attention_factory{luong::location_factory{5}},
                                                    luong::parts_without_feeding(2)));
    support::check_system(luong::translator<double>(3, small, fixed_context{}, luong::parts_without_attention(2)));
}
