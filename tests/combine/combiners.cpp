// SPDX-License-Identifier: BSD-3-Clause
#include <heed/combine/wrapping.hpp>
#include <support/gradients.hpp>
#include <support/mechanism_tests.hpp>

#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

// Combiners that do more than a weighted sum: both directions, the attentional vector, and gates.

using namespace heed;
using support::check_close;
using support::random;
namespace scalar = support::scalar;
namespace running = support::running;

namespace {

/// A combiner's result for a context c and the querying state h, as a loop.
using equation = std::function<scalar::numbers(const scalar::numbers& c, const scalar::numbers& h)>;

/// tanh([c; h] W)                                                      Luong et al. 2015, eq. 5
equation attentional_of(const scalar::matrix& W)
{
    return [W](const scalar::numbers& c, const scalar::numbers& h) {
        scalar::numbers both = c;
        both.insert(both.end(), h.begin(), h.end());
        return scalar::hidden({scalar::times(both, W)});
    };
}
/// σ(h W + b) c, with one gate or one per dimension                   Xu et al. 2015, section 4.2.1
equation gated_of(const scalar::matrix& W, const scalar::numbers& b)
{
    return [W, b](scalar::numbers c, const scalar::numbers& h) {
        const scalar::numbers z = scalar::times(h, W);
        for (std::size_t d = 0; d < c.size(); ++d) {
            const std::size_t g = z.size() == 1 ? 0 : d;
            c[d] *= 1 / (1 + std::exp(-(z[g] + b[g])));
        }
        return c;
    };
}
/// First one, then the other.
equation then(const equation& inner, const equation& outer)
{
    return [=](const scalar::numbers& c, const scalar::numbers& h) { return outer(inner(c, h), h); };
}

/// Every form and both families against the loops, on several shapes; the outer equation is applied to the contexts
/// that the score's loops return.
void check_values(const auto& attend, const scalar::score& score, bool temporal, const equation& outer, auto describe)
{
    using running::form;
    const std::size_t width = 5;
    const auto check = [&](const lengths& real, std::size_t positions, std::size_t steps) {
        const auto [p, at] = support::made_up(attend, describe, real, positions, steps, width);
        auto must = support::expected(score, temporal, support::batch(p, at));
        for (std::size_t s = 0; s < steps; ++s) {
            const scalar::numbers c = must[2 * s].values;
            must[2 * s].values.clear();
            for (std::size_t b = 0; b < real.batch(); ++b) {
                scalar::numbers h;
                for (std::size_t k = 0; k < p.parts[0].shape()[2]; ++k) h.push_back(p.parts[0](b, s, k));
                scalar::numbers y = outer(
                    {c.begin() + static_cast<long>(b * width), c.begin() + static_cast<long>((b + 1) * width)}, h);
                if (real[b] == 0) y.assign(y.size(), 0.0);  // heed's rule for an empty row
                must[2 * s].values.insert(must[2 * s].values.end(), y.begin(), y.end());
            }
        }
        check_close(running::results<form::step, double>(p, at), must, 1e-13);
        check_close(running::results<form::compose, double>(p, at), must, 1e-13);
        check_close(running::results<form::step_into, double>(p, at), must, 1e-13);
        check_close(running::results<form::read, double>(p, at), support::contexts_of(must), 1e-13);
        check_close(running::results<form::at_once, double>(p, at), support::contexts_of(must), 1e-13);
        ad::tape<double> on;
        const auto lifted = ad::lift(on, p);
        check_close(running::results<form::step, double>(lifted, at), must, 1e-13);
        check_close(running::results<form::at_once, double>(lifted, at), support::contexts_of(must), 1e-13);
    };
    check({5, 2, 0, 1}, 5, 3);
    check({1}, 1, 1);
    check({0}, 0, 2);
}

/// Values, gradients and heed::verify.
void check_all(const auto& attend, const scalar::score& score, bool temporal, const equation& outer, auto describe)
{
    check_values(attend, score, temporal, outer, describe);
    support::check_gradients(attend, describe, 5);
    const auto report = verify(attend, {.query = 3, .width = 5}, describe);
    CHECK_MESSAGE(bool(report), report.text());
}

const std::size_t Q = 3, D = 5;
const auto W_c = random({D + Q, 4}, 41), wide_gate = random({Q, D}, 42), narrow_gate = random({Q, 1}, 43);
const auto wide_bias = random({D}, 44), narrow_bias = random({1}, 45);
const auto G = random({Q, D}, 46), W = random({Q, 4}, 47), U = random({D, 4}, 48), Y = random({2, 4}, 49);
const auto V = random({4, D}, 50);
const auto v = random({4}, 51);

}  // namespace

TEST_CASE("direction_split: the same weights on both directions are the weighted sum of the joined annotations")
{
    static_assert(std::is_same_v<combine::direction_split, combine::weighted_sum>);
    const auto backward = random({2, 4, 3}, 1), forward = random({2, 4, 3}, 2);
    const attention attend{score::dot{}, normalize::softmax{}, combine::direction_split{}};
    const auto memory = attend.on(ops::concat(backward, forward), lengths{4, 2});
    const auto now = attend.step(memory, random({2, 6}, 3), attend.start(memory));
    for (std::size_t b = 0; b < 2; ++b) {
        for (std::size_t d = 0; d < 3; ++d) {
            double left = 0, right = 0;
            for (std::size_t j = 0; j < 4; ++j) {
                left += now.weights(b, j) * backward(b, j, d);
                right += now.weights(b, j) * forward(b, j, d);
            }
            CHECK(now.context(b, d) == doctest::Approx(left).epsilon(1e-14));
            CHECK(now.context(b, 3 + d) == doctest::Approx(right).epsilon(1e-14));
        }
    }
}

TEST_CASE("attentional: Luong's h~ = tanh(W_c [c; h])")
{
    const auto rows = [](const auto& m) { return scalar::matrix_of(m); };
    check_all(attention{score::general{G}, normalize::softmax{}, combine::attentional{W_c}}, scalar::general(rows(G)),
              false, attentional_of(rows(W_c)), support::plain_query{Q});
    // The state of a state_and_word; and over a fused mechanism with state.
    const score::with_word score{score::additive{W, U, v}, Y};
    check_all(attention{score, normalize::temporal{}, combine::attentional{W_c}},
              scalar::additive_with_word(rows(W), rows(U), scalar::vector_of(v), rows(Y)), true,
              attentional_of(rows(W_c)), support::query_with_word{Q, 2});
}

TEST_CASE("attentional over a combiner per dimension")
{
    const auto rows = [](const auto& m) { return scalar::matrix_of(m); };
    const combine::attentional combine{W_c, combine::elementwise_sum{}};
    check_all(attention{score::additive_per_dimension{W, U, V}, normalize::temporal{}, combine},
              scalar::additive_per_dimension(rows(W), rows(U), rows(V)), true, attentional_of(rows(W_c)),
              support::plain_query{Q});
}

TEST_CASE("gated: one gate, or one for each dimension")
{
    const auto rows = [](const auto& m) { return scalar::matrix_of(m); };
    const auto one = gated_of(rows(narrow_gate), scalar::vector_of(narrow_bias));
    const auto each = gated_of(rows(wide_gate), scalar::vector_of(wide_bias));
    check_all(attention{score::general{G}, normalize::temporal{}, combine::gated{narrow_gate, narrow_bias}},
              scalar::general(rows(G)), true, one, support::plain_query{Q});
    check_all(attention{score::general{G}, normalize::softmax{}, combine::gated{wide_gate, wide_bias}},
              scalar::general(rows(G)), false, each, support::plain_query{Q});
    const combine::gated combine{wide_gate, wide_bias, combine::elementwise_sum{}};
    check_values(attention{score::additive_per_dimension{W, U, V}, normalize::softmax{}, combine},
                 scalar::additive_per_dimension(rows(W), rows(U), rows(V)), false, each, support::plain_query{Q});
}

TEST_CASE("combiners in combiners")
{
    const auto loop = scalar::general(scalar::matrix_of(G));
    const auto gate = gated_of(scalar::matrix_of(narrow_gate), scalar::vector_of(narrow_bias));
    const combine::attentional combine{W_c, combine::gated{narrow_gate, narrow_bias}};
    check_all(attention{score::general{G}, normalize::softmax{}, combine}, loop, false,
              then(gate, attentional_of(scalar::matrix_of(W_c))), support::plain_query{Q});
    std::vector<std::string> names;
    for_each_parameter(combine, [&](const std::string& name, const auto&) { names.push_back(name); });
    CHECK(names == std::vector<std::string>{"W_c", "inner.W", "inner.b"});
}

TEST_CASE("a query that may attend to nothing gets 0 from attentional, and no gradient, whatever hides the positions")
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
        on.backward(ops::inner(now.context, support::uneven(now.context.shape())));
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
    hidden[4 + 3] = 1;  // the second only one that is not real
    check(hidden);
    check(additive_mask{array<double, 2>{{0, none, none, 1}, {none, none, none, 0}}});
    check(lengths{2, 0});
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
        "combine::attentional: W_c is [5,4] but must be [8,4] (as many rows as the context and the query have columns "
        "together)");
    CHECK(message(combine::gated{random({Q, 2}, 1), random({2}, 2)}) ==
          "combine::gated: W is [3,2] but must have 1 column, or 5: one for each dimension of the context");
}

TEST_CASE("gradients of the operations")
{
    CHECK_GRADIENT([](const auto& x, const auto& g) { return ops::multiply_rows(x, g); }, random({3, 4}, 1),
                   random({3, 1}, 2));
    CHECK_GRADIENT(
        [](const auto& x) {
            return ops::keep_rows(x, std::vector<std::uint8_t>{1, 0, 1});
        },
        random({3, 4}, 1));
    array<double, 2> x{{1, 2}, {std::nan(""), 3}};
    CHECK(support::same_bits(ops::keep_rows(x, std::vector<std::uint8_t>{1, 0}), array<double, 2>{{1, 2}, {0, 0}}));
    CHECK(support::contains(support::message_of<shape_error>([&] { ops::keep_rows(x, std::vector<std::uint8_t>{1}); }),
                            "keep_rows: 1"));
    CHECK(support::contains(support::message_of<shape_error>([&] { ops::multiply_rows(x, x); }),
                            "multiply_rows: the factors is [2,2] but must be [2,1]"));
}
