// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ad/lists.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <cstddef>
#include <vector>

using namespace heed;
using support::random;

TEST_CASE("lists of tensors pass gradients to each element, also to a repeated one")
{
    const auto list = [](const auto& operation, const auto& a) { return operation(std::vector{a, ops::tanh(a), a}); };
    CHECK_GRADIENT([&](const auto& a) { return list(ops::stack, a); }, random({2, 3}, 1));
    CHECK_GRADIENT([&](const auto& a) { return list(ops::concat_heads, a); }, random({2, 3}, 2));
    ad::tape<double> on;
    const auto x = random({2, 3, 4}, 5), y = random({2, 1, 4}, 6);
    const auto u = on.parameter(x), v = on.parameter(y);
    const auto all = ops::append_all(std::vector{u, v, u});
    const auto by = support::uneven(shape_of_rank<3>{2, 7, 4});
    on.backward(ops::dot(all, by));
    for (std::size_t b = 0; b < 2; ++b) {
        for (std::size_t i = 0; i < 4; ++i) {
            for (std::size_t t = 0; t < 3; ++t) CHECK(on.gradient(u)[b][t].data[i] == by(b, t, i) + by(b, t + 4, i));
            CHECK(on.gradient(v)[b][0].data[i] == by(b, 3, i));
        }
    }
}

TEST_CASE("the parts of a split pass their gradients to the columns of one value")
{
    const auto x = random({3, 6}, 1);
    CHECK_GRADIENT(
        [](const auto& v) {
            const auto parts = ops::split_heads(v, std::size_t{3});
            return ops::multiply(parts[0], ops::tanh(parts[2]));
        },
        x);
    ad::tape<double> on;
    const auto v = on.parameter(x);
    const auto parts = ops::split_heads(v, std::size_t{2});
    CHECK(parts[1].data() == parts[0].data() + 9);
    on.backward(ops::dot(parts[1], filled<double, 2>({3, 3}, 2.0)));
    for (std::size_t i = 0; i < 18; ++i) CHECK(on.gradient(v).data[i] == (i % 6 < 3 ? 0 : 2));
}

TEST_CASE("a list of variables from two tapes is rejected")
{
    ad::tape<double> one, other;
    const auto x = random({2, 3}, 1);
    const std::vector both{one.parameter(x), other.parameter(x)};
    CHECK(support::contains(support::message_of<error>([&] { (void)ops::stack(both); }),
                            "This variable belongs to another tape"));
}
