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

TEST_CASE("it answers as score, normalizer and combiner do")
{
    const auto q = random({2, 5}, 1);
    const auto keys = random({2, 7, 5}, 2), values = random({2, 7, 3}, 3);
    const lengths real{7, 4};
    const auto check = [&](const auto& by, const auto& query) {
        const operands in{query, keys, values, no_state{}, real};
        const normalize::softmax normalize;
        const combine::weighted_sum combine;
        const plain_moment at{real};
        using kernel = step_kernel<std::remove_cvref_t<decltype(by)>, normalize::softmax, combine::weighted_sum>;
        const auto is = kernel::answer(by, normalize, combine, in, weights_too{});
        const auto weights = weigh(normalize, score::over::compare(by, query, keys, no_past{}), no_state{}, at);
        CHECK(support::distance(is.context, combined(combine, weights, values, at)) < 1e-14);
        CHECK(support::distance(is.weights, weights) < 1e-14);
        CHECK(is.weights(1, 4) == 0);
    };
    check(score::dot{}, q);
    check(score::scaled_dot{0.5}, q);
    check(score::cosine{array<double, 1>{2.0}}, q);
}
