// SPDX-License-Identifier: BSD-3-Clause
#include <heed/core/tensor.hpp>

#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/combine/elementwise_sum.hpp>
#include <heed/core/mask.hpp>
#include <support/tensors.hpp>

#include <type_traits>

using namespace heed;
using support::contains;
using support::message_of;
using support::random;

// Types that are tensors, and their families.
static_assert(tensor<array<float, 2>> && tensor<const array<double, 3>&> && tensor<array<double, 0>>);
static_assert(tensor<tensor_view<float, 2>> && tensor<tensor_view<const float, 2>> && tensor<ad::var<double, 2>>);
static_assert(!tensor<double> && !tensor<std::vector<double>> && !tensor<lengths> && !tensor<visited>);
static_assert(plain_tensor<array<float, 2>> && plain_tensor<tensor_view<const float, 2>>);
static_assert(!plain_tensor<ad::var<float, 2>> && !plain_tensor<int>);
static_assert(std::is_same_v<element_of<const array<float, 2>&>, float>);
static_assert(std::is_same_v<element_of<tensor_view<const double, 2>>, double>);
static_assert(std::is_same_v<element_of<ad::var<double, 1>>, double>);
static_assert(rank_of<array<float, 3>> == 3 && rank_of<ad::var<float, 0>> == 0);
// One taped tensor among plain tensors makes the result taped.
static_assert(std::is_same_v<common_family_of<array<float, 2>, array<float, 1>>, plain_family>);
static_assert(std::is_same_v<common_family_of<array<float, 2>, ad::var<float, 1>>, ad::taped_family>);
static_assert(std::is_same_v<common_family_of<ad::var<float, 1>, array<float, 2>>, ad::taped_family>);
// A view reads the tensor it was made from; const is preserved.
static_assert(std::is_convertible_v<tensor_view<float, 2>, tensor_view<const float, 2>>);
static_assert(!std::is_convertible_v<tensor_view<const float, 2>, tensor_view<float, 2>>);
// A variable is a handle: copied like a pointer.
static_assert(std::is_trivially_copyable_v<ad::var<float, 3>>);

TEST_CASE("views refer to the memory of their tensor")
{
    array<double, 3> x = random({2, 3, 4}, 1);
    const auto v = view_of(x);
    CHECK(v.data == x.data());
    CHECK(v.size() == 24);
    CHECK(v.shape == shape_of_rank<3>{2, 3, 4});
    v[1][2].data[3] = 42;
    CHECK(x(1, 2, 3) == 42);
    CHECK(v[1].shape == shape_of_rank<2>{3, 4});
    CHECK(tensor_view<double, 0>{}.size() == 1);
    CHECK(tensor_view<double, 2>{nullptr, {3, 0}}.size() == 0);
}

TEST_CASE("constructing, copying and fitting")
{
    CHECK(filled<float, 2>({2, 3}, 1.5f) == array<float, 2>({2, 3}, 1.5f));
    array<double, 2> x = random({2, 3}, 1);
    const auto copy = copy_of(view_of(x));
    CHECK(support::same_bits(copy, x));
    CHECK(copy.data() != x.data());

    const double* before = x.data();
    fit(x, {2, 3});
    CHECK(x.data() == before);
    fit(x, {4, 1});
    CHECK(x.shape() == shape_of_rank<2>{4, 1});
}

TEST_CASE("shape errors name the operation, the argument and the required shape")
{
    const auto says = [](auto&& f, const std::vector<std::string>& parts) {
        const std::string message = message_of<shape_error>(f);
        REQUIRE(!parts.empty());
        for (const std::string& part : parts) CHECK_MESSAGE(contains(message, part), message);
    };
    const auto x = random({2, 3}, 1), W = random({4, 5}, 2);
    const auto h = random({2, 6, 3}, 3), other = random({2, 6, 4}, 4);
    const auto v = random({4}, 5);
    const auto check = [&](auto&& f, const std::vector<std::string>& parts) {
        says([&] { f([](const auto& tensor) -> const auto& { return tensor; }); }, parts);
        ad::tape<double> on;
        says([&] { f([&](const auto& tensor) { return on.parameter(tensor); }); }, parts);
    };
    // The same message with and without a tape.
    check([&](auto as) { ops::linear(as(x), as(W)); },
          {"linear", "x is [2,3]", "the matrix is [4,5]", "must have 3 rows"});
    check([&](auto as) { ops::add(as(x), as(W)); }, {"add", "[4,5]", "must be [2,3]"});
    check([&](auto as) { ops::subtract(as(x), as(W)); }, {"subtract", "[4,5]", "must be [2,3]"});
    check([&](auto as) { ops::multiply(as(x), as(W)); }, {"multiply", "[4,5]", "must be [2,3]"});
    check([&](auto as) { ops::logaddexp(as(x), as(W)); }, {"logaddexp", "[4,5]", "must be [2,3]"});
    check([&](auto as) { ops::subtract_history(as(x), as(W)); }, {"subtract_history", "[4,5]", "must be [2,3]"});
    check([&](auto as) { ops::add_per_position(as(h), as(W)); },
          {"add_per_position", "[4,5]", "must be [2,3]", "[2,6,3]"});
    check([&](auto as) { ops::matvec(as(h), as(v)); }, {"matvec", "v is [4]", "must be [3]", "[2,6,3]"});
    check([&](auto as) { ops::dot_per_position(as(x), as(other)); },
          {"dot_per_position", "the query is [2,3]", "must be [2,4]", "[2,6,4]"});
    check([&](auto as) { ops::weighted_sum(as(x), as(h)); }, {"weighted_sum", "the weights", "[2,3]", "must be [2,6]"});
    check([&](auto as) { ops::elementwise_sum(as(other), as(h)); }, {"elementwise_sum", "[2,6,4]", "must be [2,6,3]"});
    check([&](auto as) { ops::softmax(as(x), lengths{1}); }, {"softmax", "1 length", "batch of 2"});
    check([&](auto as) { ops::softmax(as(x), lengths{1, 4}); }, {"softmax", "row 1", "4", "3 positions"});
    check([&](auto as) { ops::step_of(as(h), std::size_t{6}); }, {"step", "6", "[2,6,3]"});
    check([&](auto as) { ops::block(as(h), std::size_t{2}); }, {"block", "2", "[2,6,3]"});
    check([&](auto as) { ops::clear_padding(as(h), lengths{1, 7}); }, {"clear_padding", "row 1", "7", "6 positions"});
    check([&](auto as) { ops::dot(as(x), W); }, {"dot", "[4,5]", "must be [2,3]"});
    says([&] { ops::stack(std::vector<array<double, 2>>{}); }, {"stack", "nothing", "at least one"});
}

TEST_CASE("further shape errors")
{
    const auto fails = [](const std::string& part, auto&& f) {
        const std::string message = message_of<shape_error>(f);
        CHECK_MESSAGE(contains(message, part), message);
    };
    const auto x = random({2, 3}, 1), W = random({3, 5}, 2), narrow = random({2, 4}, 3);
    const auto b = random({4}, 4);
    const auto h = random({2, 6, 3}, 5), shorter = random({2, 5, 3}, 6);
    ad::tape<double> on;
    fails("the bias is [4] but must be [5]", [&] { ops::linear(x, W, b); });
    fails("the bias is [4] but must be [5]", [&] { ops::linear(on.parameter(x), W, b); });
    fails("concat: the second argument is [2,5,3] but must be [2,6,3]", [&] { ops::concat(h, shorter); });
    fails("concat: the second argument is [2,5,3] but must be [2,6,3]", [&] { ops::concat(on.parameter(h), shorter); });
    fails("stack: a part is [2,4] but must be [2,3]", [&] { ops::stack(std::vector{x, narrow}); });
    fails("stack: a part is [2,4] but must be [2,3]", [&] {
        ops::stack(std::vector{on.parameter(x), on.parameter(narrow)});
    });
}
