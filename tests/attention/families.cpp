// SPDX-License-Identifier: BSD-3-Clause
#include <heed/attention/families.hpp>

#include <heed/heed.hpp>

#include <doctest/doctest.h>

#include <support/mechanisms.hpp>

using namespace heed;
using support::random;

namespace {

const attention attend{score::additive{random({3, 4}, 1), random({5, 4}, 2), random({4}, 3)}, normalize::softmax{},
                       combine::weighted_sum{}};
const auto annotations = random({2, 6, 5}, 4);

}  // namespace

TEST_CASE("one taped tensor is enough: parameters, annotations or the query")
{
    const auto query = random({2, 3}, 5);
    const auto memory = attend.on(annotations, lengths{6, 2});
    const auto must = attend.step(memory, query, attend.start(memory));
    ad::tape<double> on;
    const auto check = [&](const auto& a, const auto& h, const auto& q) {
        const auto m = a.on(h, lengths{6, 2});
        const auto now = a.compose(m, q, a.start(m));
        static_assert(rank_of<decltype(now.context)> == 2 && !plain_tensor<decltype(now.context)>);
        CHECK(support::distance(now.context, must.context) < 1e-14);
        const auto loss = ops::inner(now.context, support::uneven(shape_of(must.context)));
        on.backward(loss);
    };
    const auto model = ad::lift(on, attend);
    const auto h = on.parameter(annotations);
    const auto q = on.parameter(query);
    SUBCASE("parameters")
    {
        check(model, annotations, query);
        CHECK(on.gradient(model.score.W).data[0] != 0);
    }
    SUBCASE("annotations")
    {
        check(attend, h, query);
        CHECK(on.gradient(h).data[0] != 0);
    }
    SUBCASE("the query")
    {
        check(attend, annotations, q);
        CHECK(on.gradient(q).data[0] != 0);
    }
    SUBCASE("parameters and the query")
    {
        check(model, annotations, q);
        CHECK(on.gradient(q).data[0] != 0);
    }
    SUBCASE("all")
    {
        check(model, h, q);
        CHECK(on.gradient(h).data[0] != 0);
    }
}
