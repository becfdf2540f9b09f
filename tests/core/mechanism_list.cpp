// SPDX-License-Identifier: BSD-3-Clause

#include <heed/core/mechanism_list.hpp>

#include <doctest/doctest.h>

#include <support/tensors.hpp>

#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

using namespace heed;

namespace {

struct counter {
    std::size_t step = 0;
    int of_it = 0;

    auto map(auto&& f) const { return counter{step, f(of_it)}; }
};

}  // namespace

TEST_CASE("each element of a std::vector, or of a std::tuple with constant indices")
{
    const std::vector<int> same{1, 2, 3};
    const std::tuple mixed{1, std::string("two")};
    CHECK(detail::count_of(same) == 3);
    CHECK(detail::count_of(mixed) == 2);
    CHECK(detail::first_of(same) == 1);
    CHECK(detail::first_of(mixed) == 1);
    CHECK(detail::each_of(same, [&](std::size_t i) { return same[i] * 10; }) == std::vector{10, 20, 30});
    const auto copies = detail::each_of(mixed, [&](auto i) { return detail::nth(mixed, i); });
    static_assert(std::is_same_v<decltype(copies), const std::tuple<int, std::string>>);
    CHECK(copies == mixed);
}

TEST_CASE("tensors of each element are collected in one family")
{
    const std::vector<array<double, 1>> all{array<double, 1>{1, 2}, array<double, 1>{3, 4}};
    const auto itself = [](const auto& x) -> const auto& { return x; };
    CHECK(detail::collect(all, itself) == all);
    CHECK(detail::collect(std::tuple{all[1], all[0]}, itself) == std::vector{all[1], all[0]});
}

TEST_CASE("states of several mechanisms: mapped, assigned, set to a query; states of other mechanisms are rejected")
{
    several_states states{std::tuple{counter{2, 5}, counter{3, 7}}, 1};
    const auto mapped = states.map([](int x) { return x + 1; });
    CHECK(std::get<1>(mapped.of).of_it == 8);
    CHECK(mapped.step == 1);
    const auto later = from_query(states, 9);
    CHECK(later.step == 9);
    CHECK(std::get<0>(later.of).step == 9);
    CHECK(std::get<0>(later.of).of_it == 5);

    const std::vector<int> mechanisms(3);
    CHECK(support::message_of<shape_error>([&] {
              detail::require_one_per_mechanism("here", "the state", states, mechanisms);
          }) == "here: the state is for 2 mechanisms but there are 3; pass one that this mechanism made");
    CHECK(support::message_of<error>([] { detail::require_some("here", 0); }) ==
          "here: the list is empty; give at least one");
}
