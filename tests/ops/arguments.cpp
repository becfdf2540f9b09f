// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/arguments.hpp>

#include <heed/ops/elementwise.hpp>
#include <heed/ops/embedding.hpp>
#include <heed/ops/masks.hpp>
#include <heed/ops/products.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>

using namespace heed;

namespace {

template <std::size_t N>
using view = tensor_view<const double, N>;

/// The wrong argument, the rank it should have, and the index of its ranks in the message.
template <class Operation, class... A>
constexpr auto meant = ops::detail::meant_ranks<Operation, double, A...>::found();

}  // namespace

TEST_CASE("the accepted arguments of an operation follow from its declaration")
{
    using ops::detail::takes;
    static_assert(takes<ops::linear_op, double, view<2>, view<2>>());
    static_assert(takes<ops::linear_op, double, view<3>, view<2>, view<1>>());
    static_assert(!takes<ops::linear_op, double, view<3>, view<3>>());
    static_assert(!takes<ops::linear_op, double, view<2>, view<2>, double>());
    static_assert(takes<ops::masked_fill_op, double, view<3>, boolean_mask_view<2>>());
    static_assert(!takes<ops::masked_fill_op, double, view<1>, boolean_mask_view<2>>());
    static_assert(takes<ops::lookup_op, double, view<2>, word_ids>());
    static_assert(!takes<ops::lookup_op, double, view<2>, std::span<const std::uint32_t>>());
    static_assert(ops::ranks{2, 3}.have(3) && !ops::ranks{2, 3}.have(4) && ops::ranks{}.have(0));
    CHECK(ops::detail::first_rank<double, view<3>, view<1>>() == 3);
    CHECK(ops::detail::first_rank<double>() == 0);
}

TEST_CASE("the wrong argument is found, and the rank it should have")
{
    constexpr auto second = meant<ops::linear_op, view<2>, view<3>>;
    CHECK(second.at == 1);
    CHECK(second.rank[1] == 2);
    constexpr auto bias = meant<ops::linear_op, view<2>, view<2>, view<2>>;
    CHECK(bias.at == 2);
    CHECK(bias.rank[2] == 1);
    constexpr auto masked = meant<ops::masked_fill_op, view<1>, boolean_mask_view<2>>;
    CHECK(masked.at == 0);
    CHECK(ops::detail::named_ranks(masked.rank[0], masked.also, 1) == ops::detail::ranks_2_or_3);
    CHECK(ops::detail::named_ranks(2, 0b11100, 1) == ops::detail::ranks_2_or_more);
    CHECK(ops::detail::named_ranks(2, 0b11100, 5) == ops::detail::ranks_2_to_4);  // ranks above 4 are ignored
    constexpr auto right = meant<ops::masked_fill_op, view<2>, double>;           // no rank fits
    CHECK(right.at == 2);
}

TEST_CASE("lists that may replace another kind of list")
{
    using words = std::span<const std::uint32_t>;
    static_assert(ops::detail::takes_lists<ops::lookup_op, double, word_ids, view<2>, words>());
    static_assert(!ops::detail::takes_lists<ops::lookup_op, double, lengths_view, view<2>, words>());
    static_assert(ops::detail::takes_lists<ops::clear_padding_op, double, lengths_view, view<2>, words>());
    CHECK(ops::detail::is_list<words>);
    CHECK_FALSE(ops::detail::is_list<std::span<const double>>);
}
