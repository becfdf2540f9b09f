// SPDX-License-Identifier: BSD-3-Clause
#include <heed/nn/residual.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::random;

TEST_CASE("post-norm normalizes after the sum; pre-norm before the layer and after the last one")
{
    const auto x = support::random({2, 3, 5}, 1);
    const auto f = [](const auto& y) { return ops::scale(ops::tanh(y), 0.5); };
    random_source random{1, 0};
    const nn::initializers<double> init{random};
    const auto post = nn::post_norm_factory{}(init, {5});
    const auto pre = nn::pre_norm_factory{}(init, {5});
    const nn::dropout none;
    CHECK(support::same_bits(post.around(x, f, none), post.norm(ops::add(x, f(x)))));
    CHECK(support::same_bits(pre.around(x, f, none), ops::add(x, f(pre.norm(x)))));
    CHECK(support::same_bits(post.last_norm()(x), x));
    CHECK(support::same_bits(pre.last_norm()(x), pre.norm(x)));
    CHECK_GRADIENT([&](const auto& y) { return post.around(y, f, none); }, x);
    CHECK_GRADIENT([&](const auto& y) { return pre.around(y, f, none); }, x);
    CHECK(parameter_count(post.last_norm()) == 0);
    CHECK(parameter_count(pre) == 10);
}
