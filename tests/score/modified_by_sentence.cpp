// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <support/tensors.hpp>
using namespace heed;
using support::random;
TEST_CASE("a function of the score knows the sentence, in a step by rows, too")
{
    const auto by_sentence = [](auto e, place p) { return e * (1 + p.batch) - 0.1 * p.key * p.batch; };
    const auto each = [&](const auto& base, const auto& normalize) {
        const attention attend{score::modified{base, by_sentence}, normalize, combine::weighted_sum{}};
        const auto h = random({5, 30, 4}, 1);
        const auto q = random({5, 4}, 2);
        const auto memory = attend.on(h, lengths({30, 17, 0, 5, 30}));
        auto state = attend.start(memory);
        for (int s = 0; s < 3; ++s) {
            const auto is = attend.step(memory, q, state), must = attend.compose(memory, q, state);
            CHECK(support::distance(is.context, must.context) < 1e-12);
            CHECK(support::distance(is.weights, must.weights) < 1e-12);
            ad::tape<double> on;
            const auto lifted = ad::lift(on, attend);
            const auto Q = on.parameter(q);
            const auto taped = lifted.read(lifted.on(on.parameter(h), lengths({30, 17, 0, 5, 30})), Q, state);
            CHECK(support::distance(taped.context.value(), must.context) < 1e-12);
            state = is.state;
        }
    };
    each(score::forgetting{score::dot{}, random({4, 1}, 3), random({1}, 4)}, normalize::fading_temporal{0.7, 0.2});
    each(score::cosine{}, normalize::fading_temporal{0.7, 0.2});
    each(score::match{}, normalize::entmax15{});
}
