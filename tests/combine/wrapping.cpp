// SPDX-License-Identifier: BSD-3-Clause
#include <heed/combine/wrapping.hpp>
#include <support/combiners.hpp>

#include <limits>
#include <string>
#include <type_traits>
#include <vector>

using namespace heed;
using namespace support::combiners;
using support::random;
namespace scalar = support::scalar;

TEST_CASE("combiners in combiners")
{
    const auto loop = scalar::general(scalar::matrix_of(G));
    const auto gate = gated_of(scalar::matrix_of(narrow_gate), scalar::vector_of(narrow_bias));
    const combine::attentional combine{W_c, combine::gated{narrow_gate, narrow_bias}};
    check_combiner(attention{score::general{G}, normalize::softmax{}, combine}, loop, false,
                   then(gate, attentional_of(scalar::matrix_of(W_c))), support::plain_query{Q});
    support::check_gradients(attention{score::general{G}, normalize::softmax{}, combine}, support::plain_query{Q}, D);
    std::vector<std::string> names;
    for_each_parameter(combine, [&](const std::string& name, const auto&) { names.push_back(name); });
    CHECK(names == std::vector<std::string>{"W_c", "inner.W", "inner.b"});
}

TEST_CASE("misfits are reported with names and numbers")
{
    const auto annotations = random({2, 4, D}, 51);
    const auto query = random({2, Q}, 52);
    const auto message = [&](const auto& combine) {
        const attention attend{score::general{G}, normalize::softmax{}, combine};
        const auto memory = attend.on(annotations);
        return support::message_of<shape_error>([&] { attend.step(memory, query, attend.start(memory)); });
    };
    CHECK(
        message(combine::attentional{random({D, 4}, 1)}) ==
        "combine::attentional: W_c is [5,4] but must be [8,4] (one row for each column of the context and the query)");
    CHECK(message(combine::gated{random({Q, 2}, 1), random({2}, 2)}) ==
          "combine::gated: W is [3,2] but must have 1 column, or 5: one for each dimension of the context");
}
