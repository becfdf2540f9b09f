// SPDX-License-Identifier: BSD-3-Clause
#include <heed/attention/inner_product.hpp>

#include <heed/heed.hpp>

#include <doctest/doctest.h>

#include <support/tensors.hpp>

using namespace heed;
using support::random;

namespace {

template <class Score, class Normalize, class Combine>
constexpr bool has_kernel = requires
{
    typename step_kernel<Score, Normalize, Combine>::operation;
};

}  // namespace

TEST_CASE("the kernel is that of inner products with softmax and a weighted sum")
{
    CHECK(has_kernel<score::dot, normalize::softmax, combine::weighted_sum>);
    CHECK(has_kernel<score::general<array<double, 2>>, normalize::softmax, combine::weighted_sum>);
    CHECK(!has_kernel<score::dot, normalize::temporal, combine::weighted_sum>);
    CHECK(!has_kernel<score::rotary<score::dot>, normalize::softmax, combine::weighted_sum>);
}

TEST_CASE("it answers as the three lines do")
{
    const auto q = random({2, 5}, 1);
    const auto keys = random({2, 7, 5}, 2), values = random({2, 7, 3}, 3);
    const lengths real{7, 4};
    const auto check = [&](const auto& score, const auto& query) {
        const operands in{query, keys, values, no_state{}, real};
        const normalize::softmax normalize;
        const combine::weighted_sum combine;
        const plain_moment at{real};
        using kernel = step_kernel<std::remove_cvref_t<decltype(score)>, normalize::softmax, combine::weighted_sum>;
        const auto is = kernel::answer(score, normalize, combine, in, weights_too{});
        const auto must = heed::detail::three_lines(score, normalize, combine, in, no_past{}, at);
        CHECK(support::distance(is.context, must.context) < 1e-14);
        CHECK(support::distance(is.weights, must.weights) < 1e-14);
        CHECK(is.weights(1, 4) == 0);
    };
    check(score::dot{}, q);
    check(score::scaled_dot{0.5}, q);
    check(score::cosine{array<double, 1>{2.0}}, q);
}
