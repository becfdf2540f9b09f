// SPDX-License-Identifier: BSD-3-Clause
#include <heed/policy/weigh.hpp>

#include <heed/attention/masks.hpp>
#include <heed/heed.hpp>

#include <doctest/doctest.h>

#include <cstddef>

#include <support/tensors.hpp>

using namespace heed;
using support::random;

namespace {

namespace mine {

/// Passes negated scores to another normalizer, and declares no other member.
template <class Inner>
struct flipped {
    Inner inner;

    using wraps = Inner;

    auto operator()(const tensor auto& scores, const auto& state, const auto& at) const
    {
        return weigh(inner, ops::scale(scores, -1), state, at);
    }

    static auto parameters(auto& self, auto&& visit) { return mine::flipped{visit("inner", self.inner)}; }
};
template <class Inner>
flipped(Inner) -> flipped<Inner>;

/// Without state: takes scores that are masked already.
struct plain {
    auto operator()(const tensor auto& scores, const auto& at) const { return ops::softmax(scores, at.real); }
    static auto parameters(auto&, auto&&) { return mine::plain{}; }
};

}  // namespace mine

using namespace normalize;

TEST_CASE("a normalizer inherits undeclared hooks from the one that it wraps")
{
    const auto scores = random({2, 5}, 1), weights = random({2, 5}, 2);
    const lengths real{5, 3};
    const plain_step_context at{real, 1};
    const auto blank = [&scores](double x) { return constant_like(scores, shape_of(scores), x); };

    const mine::flipped over{dropout{0.5, 7, temporal{}, {.at_inference = true}}};
    const auto state = start_of(over, blank);
    const auto next = next_of(over, scores, weights, state, at);
    CHECK(support::same_bits(next.history,
                             next_of(temporal{}, scores, weights, start_of(temporal{}, blank), at).history));
    const auto left = combiner_weights(over, weights, at);
    CHECK(support::same_bits(left, over.inner.weights_for_combiner(weights, at)));
    CHECK(support::distance(left, weights) > 0.1);  // some are dropped
    const auto flipped = ops::scale(scores, -1);
    CHECK(support::same_bits(weigh(over, scores, next, at), weigh(temporal{}, flipped, next, at)));
}

TEST_CASE("a normalizer without state gets masked scores")
{
    const auto scores = random({2, 5}, 1);
    const lengths real{5, 4};
    boolean_mask<2> mask(shape_of_rank<2>{2, 5});
    for (std::size_t i = 0; i < 10; ++i) mask[i] = i % 3 != 0;
    heed::detail::step_masks<array<double, 2>> masks;
    masks.query.emplace(mask);
    const step_context<array<double, 2>, heed::detail::step_masks<array<double, 2>>> at{real, 0, scores, masks};
    const auto must = softmax{}(scores, no_state{}, at);
    CHECK(must(0, 0) == 0);
    CHECK(must(0, 1) > 0);
    CHECK(support::same_bits(weigh(mine::plain{}, scores, no_state{}, at), must));
    CHECK(support::same_bits(weigh(mine::flipped{mine::plain{}}, scores, no_state{}, at),
                             weigh(mine::flipped{softmax{}}, scores, no_state{}, at)));
}

}  // namespace
