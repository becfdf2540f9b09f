// SPDX-License-Identifier: BSD-3-Clause
#include <heed/core/errors.hpp>

#include <heed/core/tensor.hpp>

#include <doctest/doctest.h>

#include <support/tensors.hpp>

#include <stdexcept>
#include <string>
#include <type_traits>

using namespace heed;
using support::message_of;

TEST_CASE("shapes as messages print them")
{
    CHECK(shape_text(shape_of_rank<3>{2, 3, 4}) == "[2,3,4]");
    CHECK(shape_text(shape_of_rank<1>{7}) == "[7]");
    CHECK(shape_text(shape_of_rank<0>{}) == "[]");
    require_shape<2>("here", "x", {2, 3}, {2, 3}, "why");
    CHECK(message_of<shape_error>([] {
              require_shape<2>("here", "x", {2, 3}, {2, 5}, "why");
          }) == "here: x is [2,3] but must be [2,5] (why)");
    const auto wrong = [](const char* name) {
        return message_of<shape_error>([&] { require_shape<1>("here", name, {2}, {3}, "why ", std::size_t{1}); });
    };
    CHECK(wrong("the weights") == "here: the weights are [2] but must be [3] (why 1)");
    for (const char* const one : {"s", "the list of weights", "the room for weights", "the bias", "the mass"})
        CHECK(wrong(one) ==
              "here: " + std::string(one) + (one[1] == '\0' ? " are" : " is") + " [2] but must be [3] (why 1)");
    static_assert(std::is_base_of_v<error, shape_error> && std::is_base_of_v<std::runtime_error, error>);
}

TEST_CASE("numbers with singular and plural nouns")
{
    CHECK(counted(1, "sentence") == "1 sentence");
    CHECK(counted(2, "sentence") == "2 sentences");
    CHECK(counted(0, "query", "queries") == "0 queries");
    CHECK(counted(1, "query", "queries") == "1 query");
}

TEST_CASE("a shape error is prefixed with the policy's name once, unless it has one")
{
    const std::size_t shape[] = {2, 3};
    detail::named_shapes parameters;
    parameters.add("W", shape, 2);
    const auto named = [&](const char* found) {
        return message_of<shape_error>([&] {
            try {
                throw shape_error(found);
            } catch (const shape_error& e) {
                detail::throw_named_shape_error(e, "… Policy = heed::score::additive<X>; …",
                                                {{"the keys", shape, 2}, {"a memory", shape, 1}}, parameters);
            }
        });
    };
    CHECK(named("linear: x is [2]") ==
          "score::additive: the keys [2,3] do not fit a memory [2], W [2,3] (linear: x is [2])");
    CHECK(named("normalize::local: no") == "normalize::local: no");
}
