// SPDX-License-Identifier: BSD-3-Clause
#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/scalar_memory.hpp>

#include <memory>

// Recurrent attention: a separate state, updated with words and contexts.

using namespace heed;
using support::check_memory;
using support::random;
namespace scalar = support::scalar;

namespace {

constexpr support::mechanism_sizes sizes{};  // query 3, width 5, alignment 4, word 2
constexpr std::size_t R = 3;                 // width of the attention's state
const support::query_with_word describe{sizes.query, sizes.word};
const verification_sizes verified{.query = sizes.query, .width = sizes.width};
const support::additive_parameters parameters{sizes};

auto cell_of(std::size_t input, std::size_t state)
{
    return nn::gru{random({input, 3 * state}, 81), random({3 * state}, 82), random({state, 2 * state}, 83),
                   random({state, state}, 84)};
}
auto recurrence_over(const auto& base, std::size_t alignment = sizes.alignment, std::size_t state = R)
{
    return score::with_recurrence{base, random({state, alignment}, 80), cell_of(sizes.word + sizes.width, state)};
}
auto query_of(std::size_t t, std::size_t batch = 2)
{
    return state_and_word{random({batch, sizes.query}, 10 + t), random({batch, sizes.word}, 20 + t)};
}

/// The gated unit of nn/gru.hpp on [y; c], in scalar loops.
scalar::remembering scalar_recurrence(const auto& score)
{
    struct state {
        scalar::matrix sentence;
        scalar::numbers a, y;
    };
    const auto now = std::make_shared<state>();
    const auto W_r = scalar::matrix_of(score.W_r), W = scalar::matrix_of(score.cell.W),
               U = scalar::matrix_of(score.cell.U), U_h = scalar::matrix_of(score.cell.U_h);
    const auto bias = scalar::vector_of(score.cell.b);
    return {[=](const scalar::matrix& sentence) {
                now->sentence = sentence;
                now->a.assign(W_r.size(), 0.0);
            },
            [=](std::size_t, const std::vector<scalar::numbers>& query) { now->y = query[1]; },
            [=](std::size_t) { return scalar::times(now->a, W_r); },
            [=](const scalar::numbers& weights) {
                scalar::numbers fed = now->y;
                for (std::size_t d = 0; d < sizes.width; ++d) {
                    fed.push_back(0);
                    for (std::size_t j = 0; j < weights.size(); ++j) fed.back() += weights[j] * now->sentence[j][d];
                }
                const scalar::numbers x = scalar::sum_of(scalar::times(fed, W), bias), u = scalar::times(now->a, U);
                const std::size_t n = now->a.size();
                scalar::numbers reset = now->a;
                for (std::size_t i = 0; i < n; ++i) reset[i] *= scalar::sigmoid(x[n + i] + u[n + i]);
                const scalar::numbers fresh = scalar::times(reset, U_h);
                for (std::size_t i = 0; i < n; ++i) {
                    const double z = scalar::sigmoid(x[i] + u[i]);
                    now->a[i] = (1 - z) * now->a[i] + z * std::tanh(x[2 * n + i] + fresh[i]);
                }
            }};
}

}  // namespace

TEST_CASE("recurrent attention matches its equations and passes finite differences")
{
    const auto score = recurrence_over(parameters.score());
    const auto equation = scalar_recurrence(score);
    const attention soft{score, normalize::softmax{}, combine::weighted_sum{}};
    check_memory(soft, parameters, equation, false, describe, sizes.width);
    const attention temporal{score, normalize::temporal{}, combine::weighted_sum{}};
    check_memory(temporal, parameters, equation, true, describe, sizes.width);
    support::check_extremes(temporal, describe, sizes.width);
    support::check_gradients(temporal, describe, sizes.width);
}

TEST_CASE("trap: a step reads the previous state, and updates it with its own word and context")
{
    const attention attend{recurrence_over(parameters.score()), normalize::softmax{}, combine::weighted_sum{}};
    const attention plain{parameters.score(), normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(random({2, 4, sizes.width}, 1), lengths{4, 2});
    const auto q = query_of(0);
    const auto other = random({2, sizes.word}, 5);

    // a_0 is zero: the first step is only the base, for any word.
    const auto first = attend.step(memory, q, attend.start(memory));
    CHECK(support::distance(first.weights, plain.compose(memory, q.state, plain.start(memory)).weights) < 1e-15);
    const auto same = attend.step(memory, state_and_word{q.state, other}, attend.start(memory));
    CHECK(support::same_bits(same.weights, first.weights));
    CHECK(support::distance(same.state.score.state, first.state.score.state) > 1e-3);

    // a_1 from y_0 and c_1 of this step, not the previous step.
    const auto& cell = attend.score.cell;
    const array<double, 2> a_0(shape_of_rank<2>{2, R}, 0.0);
    const auto a_1 = cell.step(cell.project(ops::concat(q.word, first.context)), a_0);
    CHECK(support::same_bits(first.state.score.state, a_1));
    const auto next = query_of(1);
    const auto second = attend.step(memory, next, first.state);
    CHECK(support::same_bits(second.state.score.state,
                             cell.step(cell.project(ops::concat(next.word, second.context)), a_1)));

    // The second step's weights: W s + W_r a_1 as the projected query.
    const auto projected = ops::add(parameters.score().project(next.state), ops::linear(a_1, attend.score.W_r));
    const auto scores = parameters.score().match(projected, memory.keys);
    CHECK(support::distance(second.weights, ops::softmax(scores, memory.real)) < 1e-15);
    CHECK(support::distance(second.weights, plain.compose(memory, next.state, plain.start(memory)).weights) > 1e-3);
}

TEST_CASE("the first word and context affect the third step's weights, and get gradients")
{
    const attention attend{recurrence_over(parameters.score()), normalize::softmax{}, combine::weighted_sum{}};
    const auto h = random({2, 3, sizes.width}, 1);
    const auto third = [&](const auto& annotations, const auto& word, const auto& query, const auto& a_0) {
        const auto memory = attend.on(annotations, lengths{3, 2});
        const auto one = attend.step(memory, state_and_word{query, word},
                                     attend.start(memory, attend.score.start_from(memory, a_0)));
        const auto two = attend.step(memory, query_of(1), one.state);
        return attend.step(memory, query_of(2), two.state).weights;
    };
    const auto word = random({2, sizes.word}, 2), query = random({2, sizes.query}, 3), a_0 = random({2, R}, 4);
    // Each alone on the tape, and all together: plain and taped tensors are combined everywhere.
    const auto all = support::gradient_of<0b1111>(third, h, word, query, a_0);
    CHECK_MESSAGE(bool(all), all.text());
    const auto by_word = support::gradient_of<0b0010>(third, h, word, query, a_0);
    CHECK_MESSAGE(bool(by_word), by_word.text());
    const auto by_query = support::gradient_of<0b0100>(third, h, word, query, a_0);
    CHECK_MESSAGE(bool(by_query), by_query.text());
    const auto by_start = support::gradient_of<0b1000>(third, h, word, query, a_0);
    CHECK_MESSAGE(bool(by_start), by_start.text());

    ad::tape<double> on;
    const auto y = on.parameter(word), s = on.parameter(query);
    const auto weights = third(h, y, s, a_0);
    on.backward(ops::dot(weights, support::uneven(weights.shape())));
    for (const double slope : copy_of(on.gradient(y))) CHECK(slope != 0);
    for (const double slope : copy_of(on.gradient(s))) CHECK(slope != 0);  // only through the first context
}

TEST_CASE("over other scores: the state is added to their projected query")
{
    const auto V = random({sizes.alignment, sizes.width}, 71);
    support::check_gradients(attention{recurrence_over(score::additive_per_dimension{parameters.W, parameters.U, V}),
                                       normalize::temporal{}, combine::elementwise_sum{}},
                             describe, sizes.width);
    support::check_gradients(
        attention{recurrence_over(score::general{random({sizes.query, sizes.width}, 73)}, sizes.width),
                  normalize::softmax{}, combine::weighted_sum{}},
        describe, sizes.width);

    // `dot` does not project the query: (s + W_r a)ᵀ h.
    const attention dots{recurrence_over(score::dot{}, sizes.width), normalize::softmax{}, combine::weighted_sum{}};
    const auto h = random({2, 4, sizes.width}, 1);
    const auto memory = dots.on(h, lengths{4, 2});
    const auto a = random({2, R}, 2), s = random({2, sizes.width}, 3);
    const auto now = dots.step(memory, state_and_word{s, random({2, sizes.word}, 4)},
                               dots.start(memory, dots.score.start_from(memory, a)));
    const auto q = ops::add(s, ops::linear(a, dots.score.W_r));
    CHECK(support::distance(now.weights, ops::softmax(score::dot{}(q, memory.values), memory.real)) < 1e-15);
}

TEST_CASE("with W_r = 0 nothing changes; masked positions change nothing; a row without words")
{
    auto none = recurrence_over(parameters.score());
    none.W_r.fill(0.0);
    const attention with{none, normalize::temporal{}, combine::weighted_sum{}};
    const attention without{parameters.score(), normalize::temporal{}, combine::weighted_sum{}};
    const auto memory = with.on(random({2, 4, sizes.width}, 1), lengths{4, 0});
    auto a = with.start(memory);
    auto b = without.start(memory);
    for (std::size_t t = 0; t < 3; ++t) {
        const auto q = query_of(t);
        auto one = with.step(memory, q, a), other = one;
        const auto base = without.compose(memory, q.state, b);
        CHECK(support::distance(one.weights, base.weights) < 1e-15);
        for (std::size_t d = 0; d < sizes.width; ++d) CHECK(one.context(1, d) == 0);
        a = one.state;
        b = base.state;
    }
    // The state of a row without words still reads the emitted words.
    CHECK(a.score.state(1, 0) != 0);

    const attention attend{recurrence_over(parameters.score()), normalize::temporal{}, combine::weighted_sum{}};
    const auto h = random({1, 4, sizes.width}, 1);
    array<double, 3> shorter(shape_of_rank<3>{1, 3, sizes.width});
    std::copy_n(h.data(), sizes.width, shorter.data());
    std::copy_n(h.data() + 2 * sizes.width, 2 * sizes.width, shorter.data() + sizes.width);
    boolean_mask<2> mask(shape_of_rank<2>{1, 4});
    mask[0] = mask[2] = mask[3] = 1;
    const auto hidden = attend.on(h, mask);
    const auto gone = attend.on(shorter);
    auto c = attend.start(hidden), d = attend.start(gone);
    for (std::size_t t = 0; t < 3; ++t) {
        const auto masked = attend.step(hidden, query_of(t, 1), c), cut = attend.step(gone, query_of(t, 1), d);
        CHECK(support::distance(masked.context, cut.context) < 1e-14);
        CHECK(support::distance(masked.state.score.state, cut.state.score.state) < 1e-14);
        c = masked.state;
        d = cut.state;
    }
}

TEST_CASE("a randomly initialized unit runs; arguments that do not fit are rejected")
{
    random_source source{3};
    const attention small{
        score::with_recurrence{score::additive{nn::glorot<float>(source, sizes.query, sizes.alignment),
                                               nn::glorot<float>(source, sizes.width, sizes.alignment),
                                               nn::small_vector<float>(source, sizes.alignment)},
                               nn::glorot<float>(source, R, sizes.alignment),
                               nn::make_gru<float>(source, sizes.word + sizes.width, R)},
        normalize::softmax{}, combine::weighted_sum{}};
    const auto floats = small.on(array<float, 3>(shape_of_rank<3>{2, 4, sizes.width}, 0.5f));
    const auto now = small.step(floats,
                                state_and_word{array<float, 2>(shape_of_rank<2>{2, sizes.query}, 0.5f),
                                               array<float, 2>(shape_of_rank<2>{2, sizes.word}, 0.5f)},
                                small.start(floats));
    CHECK(now.weights(0, 0) == support::approx(0.25));
    CHECK(now.state.score.state(0, 0) != 0);

    const attention attend{recurrence_over(parameters.score()), normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(random({2, 4, sizes.width}, 1), lengths{4, 2});
    const auto message = [](auto&& act) { return support::message_of<shape_error>(act); };
    CHECK(support::contains(message([&] {
                                attend.score.start_from(memory, random({2, 4}, 1));
                            }),
                            "with_recurrence::start_from: the state is [2,4] but must be [2,3]"));
    CHECK(support::contains(message([&] {
                                attend.step(memory,
                                            state_and_word{random({2, sizes.query}, 1), random({1, sizes.word}, 1)},
                                            attend.start(memory));
                            }),
                            "with_recurrence: the word is [1,2] but must be [2,2]"));
    auto wrong = attend;
    wrong.score.cell = cell_of(sizes.word + sizes.width, R + 1);
    CHECK(support::contains(message([&] { wrong.step(memory, query_of(0), wrong.start(memory)); }), "gru: the input"));
}

TEST_CASE("a window does not cut the state; the contracts within a window, also one as wide as the sentence")
{
    const std::size_t T = 4;
    const auto annotations = random({2, T, sizes.width}, 1);
    for (const std::size_t state : {R, T}) {  // as many numbers as positions: the shape does not distinguish them
        const auto score = recurrence_over(parameters.score(), sizes.alignment, state);
        const attention wide{score, normalize::local_m{T}, combine::weighted_sum{}};
        const attention whole{score, normalize::softmax{}, combine::weighted_sum{}};
        const auto memory = whole.on(annotations, lengths{4, 2});
        auto seen = wide.step(memory, query_of(0), wide.start(memory));
        auto must = whole.step(memory, query_of(0), whole.start(memory));
        for (std::size_t t = 1; t < 4; ++t) {
            CHECK(support::distance(seen.context, must.context) < 1e-13);
            CHECK(support::distance(seen.state.score.state, must.state.score.state) < 1e-13);
            seen = wide.step(memory, query_of(t), seen.state);
            must = whole.step(memory, query_of(t), must.state);
        }
    }
    for (const std::size_t reach : {std::size_t{1}, std::size_t{20}})
        support::check_verified(
            attention{recurrence_over(parameters.score()), normalize::local_m{reach}, combine::weighted_sum{}},
            verified, describe);
}
