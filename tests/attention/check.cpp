// SPDX-License-Identifier: BSD-3-Clause
#include <heed/attention/check.hpp>

#include <heed/heed.hpp>

#include <doctest/doctest.h>

#include <string>

#include <support/mechanisms.hpp>

using namespace heed;
using support::random;

namespace {

const attention attend{score::additive{random({3, 4}, 1), random({5, 4}, 2), random({4}, 3)}, normalize::softmax{},
                       combine::weighted_sum{}};
const auto annotations = random({2, 6, 5}, 4);

}  // namespace

TEST_CASE("arguments that do not fit are rejected by name")
{
    const auto memory = attend.on(annotations, lengths{6, 2});
    const auto start = attend.start(memory);
    const auto says = [](auto&& f, const std::string& part) {
        const std::string message = support::message_of<shape_error>(f);
        CHECK_MESSAGE(support::contains(message, part), message);
    };
    says([&] { attend.on(annotations, lengths{6}); }, "attention::on: 1 length for a batch of 2 rows");
    says([&] { attend.on(annotations, lengths{6, 7}); }, "attention::on: the length of row 1 is 7");
    says([&] { attend.on(random({2, 6, 4}, 1), lengths{6, 2}); }, "linear: x is [2,6,4] and the matrix is [5,4]");
    says([&] { attend.step(memory, random({2, 4}, 1), start); }, "linear: x is [2,4] and the matrix is [3,4]");
    says([&] { attend.step(memory, random({3, 3}, 1), start); }, "[3,4] but must be [2,4]");
    says([&] { attend.step(memory, random({3, 3}, 1), start); }, "additive attention");
    says([&] { attend.compose(memory, random({3, 3}, 1), start); }, "[3,4] but must be [2,4]");
    says([&] { attend(memory, random({2, 0, 3}, 1)); }, "");  // without queries
    const attention temporal{attend.score, normalize::temporal{}, combine::weighted_sum{}};
    const auto other = temporal.start(temporal.on(random({2, 7, 5}, 1)));
    says([&] { temporal.step(temporal.on(annotations), random({2, 3}, 1), other); }, "[2,7] but must be [2,6]");
    const attention dot{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    says(
        [&] {
            dot.step(dot.on(annotations), random({2, 4}, 1), dot.start(dot.on(annotations)));
        },
        "the projected query is [2,4] but must be [2,5]");
}

TEST_CASE("arguments that fit are passed on, not copied")
{
    const auto memory = attend.on(annotations, lengths{6, 2});
    const auto query = random({2, 3}, 1);
    const auto start = attend.start(memory);
    const lengths some{3, 1};
    CHECK(&heed::detail::asked<2>(memory, query) == &query);
    CHECK(&heed::detail::memory_of_one(memory) == &memory);
    CHECK(&heed::detail::own_state(attend, memory, start) == &start);
    CHECK(&heed::detail::mask_of_query(some, memory, start) == &some);
    CHECK(heed::detail::alike_in_state<no_state, no_state>);
    CHECK(
        !heed::detail::alike_in_state<no_state, std::remove_cvref_t<decltype(score::over::start(
                                                    score::with_positions{attend.score, random({3, 4}, 2)}, memory))>>);
}
