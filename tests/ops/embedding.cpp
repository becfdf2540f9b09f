// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/embedding.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <cstdint>
#include <string>

using namespace heed;
using support::random;

TEST_CASE("lookup: repeated words, unused words, a computed table, and no words")
{
    word_ids words(3, 2);
    words.ids = {1, 4, 1, 0, 4, 1};
    CHECK_GRADIENT([&](const auto& E) { return ops::lookup(E, words); }, random({6, 3}, 1));
    CHECK_GRADIENT([&](const auto& E) { return ops::lookup(ops::tanh(E), words); }, random({6, 3}, 1));
    CHECK_GRADIENT([&](const auto& E) { return ops::add(ops::lookup(E, words), ops::lookup(E, words)); },
                   random({6, 3}, 1));
    CHECK_GRADIENT([&](const auto& E) { return ops::linear(ops::lookup(E, words), E); }, random({6, 6}, 1));
    ad::tape<double> on;
    const auto table = random({6, 3}, 1);
    const auto E = on.parameter(table);
    on.backward(ops::dot(ops::lookup(E, word_ids(0, 2)), array<double, 3>({0, 2, 3})));
    CHECK(on.gradient(E).data[0] == 0);
    words.ids[3] = 6;
    CHECK(support::message_of<error>([&] { ops::lookup(table, words); }) ==
          "lookup: word 6 of a table of 6 embeddings; ids count from 0");
    words.ids[3] = static_cast<std::uint32_t>(-1);
    CHECK(support::message_of<error>([&] { ops::lookup(table, words); }) ==
          "lookup: word 4294967295 of a table of 6 embeddings; ids count from 0");
    for (const std::size_t count : {std::size_t{5}, std::size_t{7}, std::size_t{600}}) {
        words.ids.assign(count, 1);
        const std::string reason = "lookup: " + std::to_string(count) +
                                   " word ids for 3 steps of 2 sentences; give one for each step of each sentence, 6";
        CHECK(support::message_of<shape_error>([&] { ops::lookup(table, words); }) == reason);
        CHECK(support::message_of<shape_error>([&] { ops::lookup(E, words); }) == reason);
        const scratch here;
        CHECK(support::message_of<shape_error>([&] { ops::lookup(workspace_tensor(view_of(table)), words); }) ==
              reason);
    }
}
