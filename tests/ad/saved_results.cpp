// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ad/saved_results.hpp>

#include <heed/ad/tape.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>

using namespace heed;

TEST_CASE("small results and the program's result are saved per row, up to the limit")
{
    arena memory;
    ad::saved_list<double> list;
    ad::saved_results<double> first(list);
    ad::slot<double> result;
    const auto small = first.next<1>(80, {10});   // an eighth of its argument
    const auto large = first.next<1>(79, {10});   // more than an eighth
    const auto own = first.next<2>(4, {6, 2});    // too large, but the program's result
    const auto more = first.next<1>(800, {100});  // small, and beyond the limit
    CHECK(small.listed == 1);
    CHECK(large.listed == 2);
    CHECK(own.listed == 3);
    CHECK(more.listed == 5);
    first.made(own.listed, 0, result);
    std::array<double, 18> rows{};
    list.is_result(result, rows.data(), 6);

    const auto kept = list.keep(memory, 3, 12);
    REQUIRE(kept.size() == 1);
    CHECK(kept[0].call == 0);
    CHECK(kept[0].stride == 10);

    for (const bool known : {false, true}) {
        ad::saved_results<double> second(kept, 2, known);
        const auto place = second.next<1>(80, std::array<std::size_t, 1>{10});
        CHECK(place.at[0] == kept[0].first + 20);
        CHECK(place.known == known);
        CHECK(second.next<1>(79, std::array<std::size_t, 1>{10}).at[0] == nullptr);
    }
    ad::saved_results<double> larger(kept, 0, true);  // than in the run without rows
    const auto none = larger.next<1>(80, std::array<std::size_t, 1>{11});
    CHECK(none.at[0] == nullptr);
    CHECK_FALSE(none.known);
}

TEST_CASE("an operation with a different number of results than in the run on zero rows ends the saved results")
{
    arena memory;
    ad::saved_list<double> list;
    ad::saved_results<double> first(list);
    for (int call = 0; call < 3; ++call) first.next<1>(80, {10});
    const auto kept = list.keep(memory, 2, 30);
    REQUIRE(kept.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {  // in a row, one after the other
        CHECK(kept[i].first == kept[0].first + 10 * i);
        CHECK(kept[i].stride == 30);
    }
    ad::saved_results<double> second(kept, 1, true);
    const auto place = second.next<3>(80, {1, 1, 1});
    CHECK(place.at[0] == nullptr);
    CHECK_FALSE(place.known);
    CHECK(second.next<1>(80, {10}).at[0] == nullptr);
}

TEST_CASE("the program's result is saved where the program stores it, also if the first operation makes it")
{
    arena memory;
    ad::saved_list<double> list;
    ad::saved_results<double> first(list);
    ad::slot<double> result;
    first.made(first.next<1>(4, {6}).listed, 0, result);
    std::array<double, 12> rows{}, elsewhere{};
    list.is_result(result, rows.data(), 6);
    list.is_result(result, elsewhere.data(), 7);  // another result of the program that is the same tensor
    const auto kept = list.keep(memory, 2, 0);
    REQUIRE(kept.size() == 1);
    CHECK(kept[0].first == rows.data());
    CHECK(kept[0].stride == 6);
}

TEST_CASE("the list holds 24 results")
{
    ad::saved_list<double> list;
    for (std::size_t i = 0; i < 12; ++i) CHECK(list.add<2>(i, 100, {1, 1}) == 2 * i + 1);
    CHECK(list.add<1>(12, 100, {1}) == 0);
}
