// SPDX-License-Identifier: BSD-3-Clause
#include <heed/pairs/batch.hpp>

#include <doctest/doctest.h>

#include <vector>

#include <support/tensors.hpp>

using namespace heed;

TEST_CASE("a batch of pairs is padded with 0 and has the class of each pair")
{
    const pairs::id_sentence a{5, 6, 7}, b{8}, c{}, d{9, 10};
    const std::vector<const pairs::id_sentence*> first{&a, &b}, second{&c, &d};
    const auto batch = pairs::make_batch<float>(first, second, {pairs::yes, pairs::no});
    CHECK(batch.size() == 2);
    CHECK(batch.first.ids == std::vector<std::uint32_t>{5, 8, 6, 0, 7, 0});
    CHECK(batch.first_real[0] == 3);
    CHECK(batch.first_real[1] == 1);
    CHECK(batch.second.ids == std::vector<std::uint32_t>{0, 9, 0, 10});
    CHECK(batch.second_real[0] == 0);
    CHECK(batch.second_real[1] == 2);
    CHECK(batch.expected.words.ids == std::vector<std::uint32_t>{1, 0});
    CHECK(batch.expected.weights == std::vector<float>{1, 1});
    CHECK(support::contains(support::message_of<error>([&] { pairs::make_batch<float>(first, second, {pairs::yes}); }),
                            "pairs::make_batch: 2 first sentences, 2 second sentences and 1 class"));
}
