// SPDX-License-Identifier: BSD-3-Clause
#include <heed/combine/attentional.hpp>
#include <support/combiners.hpp>

#include <limits>
#include <string>
#include <type_traits>
#include <vector>

using namespace heed;
using namespace support::combiners;
using support::random;
namespace scalar = support::scalar;

TEST_CASE("attentional: Luong's h~ = tanh(W_c [c; h])")
{
    const auto rows = [](const auto& m) { return scalar::matrix_of(m); };
    check_combiner(attention{score::general{G}, normalize::softmax{}, combine::attentional{W_c}},
                   scalar::general(rows(G)), false, attentional_of(rows(W_c)), support::plain_query{Q});
    // The state of a state_and_word, also over a fused mechanism with state.
    const score::with_word score{score::additive{W, U, v}, Y};
    const attention worded{score, normalize::temporal{}, combine::attentional{W_c}};
    check_combiner_values(worded, scalar::additive_with_word(rows(W), rows(U), scalar::vector_of(v), rows(Y)), true,
                          attentional_of(rows(W_c)), support::query_with_word{Q, 2});
    support::check_gradients(worded, support::query_with_word{Q, 2}, D);
}

TEST_CASE("attentional over a combiner per dimension")
{
    const auto rows = [](const auto& m) { return scalar::matrix_of(m); };
    const combine::attentional combine{W_c, combine::elementwise_sum{}};
    check_combiner_values(attention{score::additive_per_dimension{W, U, V}, normalize::temporal{}, combine},
                          scalar::additive_per_dimension(rows(W), rows(U), rows(V)), true, attentional_of(rows(W_c)),
                          support::plain_query{Q});
}

TEST_CASE("a query that sees no position gets 0 from attentional, and no gradient, with every kind of mask")
{
    const double none = -std::numeric_limits<double>::infinity();
    const attention attend{score::general{G}, normalize::softmax{}, combine::attentional{W_c}};
    const auto annotations = random({2, 4, D}, 51);
    const auto query = random({2, Q}, 52);
    const auto check = [&](const auto& mask) {
        ad::tape<double> on;
        const auto lifted = ad::lift(on, attend);
        const auto q = on.parameter(query);
        const auto h = on.parameter(annotations);
        const auto memory = lifted.on(h, lengths{4, 3});
        const auto now = lifted.step(memory, q, lifted.start(memory), mask);
        on.backward(ops::dot(now.context, support::uneven(now.context.shape())));
        bool first = false;
        for (std::size_t k = 0; k < 4; ++k) {
            first = first || now.context.data()[k] != 0;
            CHECK(now.context.data()[4 + k] == 0);
        }
        CHECK(first);
        for (std::size_t k = 0; k < Q; ++k) CHECK(on.gradient(q).data[Q + k] == 0);
        CHECK(on.gradient(q).data[0] != 0);
        for (std::size_t k = 4 * D; k < 8 * D; ++k) CHECK(on.gradient(h).data[k] == 0);
    };
    boolean_mask<2> hidden(shape_of_rank<2>{2, 4});
    hidden[2] = 1;      // the first row sees one position
    hidden[4 + 3] = 1;  // the second sees only padding
    check(hidden);
    check(additive_mask{array<double, 2>{{0, none, none, 1}, {none, none, none, 0}}});
    check(lengths{2, 0});
}
