// SPDX-License-Identifier: BSD-3-Clause
#include <heed/policy/state.hpp>

#include <doctest/doctest.h>

#include <heed/normalize/temporal.hpp>
#include <heed/ops/shape.hpp>
#include <heed/score/over.hpp>
#include <support/tensors.hpp>

using namespace heed;

namespace {

/// A state with a tensor that `map` does not visit.
struct hidden {
    array<double, 2> sum;
    hidden map(auto&&, const auto&...) const { return *this; }
};
/// One number for all rows.
struct counter {
    static constexpr bool holds_no_tensors = true;
    int steps = 0;
    counter map(auto&&, const auto&...) const { return *this; }
};
struct without_map {
    array<double, 2> sum;
};

using features = score::position_features<array<double, 3>>;

}  // namespace

TEST_CASE("states without tensors, with reachable tensors, and with unreachable ones are told apart")
{
    using namespace heed::detail;
    CHECK(holds_no_tensors<no_state>);
    CHECK(holds_no_tensors<counter>);
    CHECK(!holds_no_tensors<features>);
    CHECK(mappable_state<no_score_state>);
    CHECK(mappable_state<counter>);
    CHECK(mappable_state<features>);
    CHECK(!mappable_state<hidden>);
    CHECK(!mappable_state<without_map>);
}
