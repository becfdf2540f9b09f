// SPDX-License-Identifier: BSD-3-Clause
#include <heed/combine/gated.hpp>
#include <support/combiners.hpp>

#include <limits>
#include <string>
#include <type_traits>
#include <vector>

using namespace heed;
using namespace support::combiners;
using support::random;
namespace scalar = support::scalar;

TEST_CASE("gated: a single gate, or a gate per dimension")
{
    const auto rows = [](const auto& m) { return scalar::matrix_of(m); };
    const auto one = gated_of(rows(narrow_gate), scalar::vector_of(narrow_bias));
    const auto each = gated_of(rows(wide_gate), scalar::vector_of(wide_bias));
    check_combiner(attention{score::general{G}, normalize::softmax{}, combine::gated{narrow_gate, narrow_bias}},
                   scalar::general(rows(G)), false, one, support::plain_query{Q});
    check_combiner(attention{score::general{G}, normalize::softmax{}, combine::gated{wide_gate, wide_bias}},
                   scalar::general(rows(G)), false, each, support::plain_query{Q});
    const combine::gated combine{wide_gate, wide_bias, combine::elementwise_sum{}};
    check_combiner_values(attention{score::additive_per_dimension{W, U, V}, normalize::temporal{}, combine},
                          scalar::additive_per_dimension(rows(W), rows(U), rows(V)), true, each,
                          support::plain_query{Q});
}
