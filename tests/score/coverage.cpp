// SPDX-License-Identifier: BSD-3-Clause
#include <heed/nn/contextualization.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/scalar_memory.hpp>
#include <support/scalar_translation.hpp>

#include <limits>
#include <memory>

// Coverage in its three forms, the context of a sentence, memory across sentences.

using namespace heed;
using support::check_memory;
using support::random;
namespace scalar = support::scalar;

namespace {

constexpr support::mechanism_sizes sizes{};  // query 3, width 5, alignment 4, word 2
constexpr std::size_t N = 3;                 // numbers of coverage per position
const support::query_with_word describe{sizes.query, sizes.word};
const support::plain_query describe_state{sizes.query};
const verification_sizes verified{.query = sizes.query, .width = sizes.width};

auto cell_of(std::size_t coverage, std::uint64_t stream = 50)
{
    return nn::coverage_gru{random({sizes.word, 3 * coverage}, stream), random({3 * coverage}, stream + 1, 2.0),
                            random({coverage, 3 * coverage}, stream + 2)};
}
auto coverage_over(const auto& base)
{
    return score::with_coverage{base, random({N, sizes.alignment}, 53), cell_of(N)};
}

/// nn::coverage_gru at each position, with scalar z, r and c̃ (Sankaran et al. 2016, §4.1).
scalar::remembering scalar_coverage(const auto& score)
{
    struct past {
        scalar::matrix c;
        scalar::numbers alpha;
    };
    const auto now = std::make_shared<past>();
    const auto C = scalar::matrix_of(score.C), W = scalar::matrix_of(score.cell.W), U = scalar::matrix_of(score.cell.U);
    const auto a = scalar::vector_of(score.cell.a);
    return {[=](const scalar::matrix& sentence) {
                now->c.assign(sentence.size(), scalar::numbers(C.size(), 0.0));
                now->alpha.assign(sentence.size(), 0.0);
            },
            [=](std::size_t step, const std::vector<scalar::numbers>& query) {
                if (step == 0) return;
                const scalar::numbers y = scalar::times(query[1], W);
                for (std::size_t j = 0; j < now->c.size(); ++j) {
                    scalar::numbers& c = now->c[j];
                    const scalar::numbers u = scalar::times(c, U);
                    const std::size_t n = c.size();
                    for (std::size_t i = 0; i < n; ++i) {
                        const double z = scalar::sigmoid(y[i] + now->alpha[j] * a[i] + u[i]);
                        const double r = scalar::sigmoid(y[n + i] + now->alpha[j] * a[n + i] + u[n + i]);
                        const double fresh = std::tanh(y[2 * n + i] + now->alpha[j] * a[2 * n + i] + r * u[2 * n + i]);
                        c[i] = z * c[i] + (1 - z) * fresh;
                    }
                }
            },
            [=](std::size_t j) { return scalar::times(now->c[j], C); },
            [=](const scalar::numbers& weights) { now->alpha = weights; }};
}

auto fertility_over(const auto& base)
{
    return score::with_fertility{base, random({sizes.alignment}, 61), random({sizes.width}, 62), 3.0};
}

/// Tu et al. 2016, eq. 7-9.
scalar::remembering scalar_fertility(const auto& score)
{
    struct past {
        scalar::numbers C, fertility;
    };
    const auto now = std::make_shared<past>();
    const auto v = scalar::vector_of(score.v_c), U_f = scalar::vector_of(score.U_f);
    return {[=, most = score.N](const scalar::matrix& sentence) {
                now->C.assign(sentence.size(), 0.0);
                now->fertility.clear();
                for (const scalar::numbers& h : sentence)
                    now->fertility.push_back(most * scalar::sigmoid(scalar::inner(U_f, h)));
            },
            [](std::size_t, const std::vector<scalar::numbers>&) {},
            [=](std::size_t j) {
                scalar::numbers joins = v;
                for (double& x : joins) x *= now->C[j];
                return joins;
            },
            [=](const scalar::numbers& weights) {
                for (std::size_t j = 0; j < weights.size(); ++j) now->C[j] += weights[j] / now->fertility[j];
            }};
}

auto gated_over(const auto& base)
{
    return score::with_gated_coverage{base, random({N, sizes.alignment}, 63),
                                      nn::gated_coverage{random({sizes.width, 3 * N}, 64),
                                                         random({sizes.query, 3 * N}, 65), random({3 * N}, 66, 2.0),
                                                         random({N, 2 * N}, 67), random({N, N}, 68)}};
}

/// Tu et al. 2016, §3.1.2: a recurrent unit at each position that reads [h_j; s_t; α_{t,j}].
scalar::remembering scalar_gated_coverage(const auto& score)
{
    struct past {
        scalar::matrix sentence, C;
        scalar::numbers s;
    };
    const auto now = std::make_shared<past>();
    const auto V = scalar::matrix_of(score.V);
    scalar::matrix W = scalar::matrix_of(score.cell.W);
    for (const auto& row : scalar::matrix_of(score.cell.S)) W.push_back(row);
    W.push_back(scalar::vector_of(score.cell.a));
    const auto U = scalar::matrix_of(score.cell.U);
    const scalar::numbers none(N, 0.0);
    const scalar::gated_unit unit{scalar::columns(W, 0, N),
                                  scalar::columns(W, N, N),
                                  scalar::columns(W, 2 * N, N),
                                  scalar::columns(U, 0, N),
                                  scalar::columns(U, N, N),
                                  scalar::matrix_of(score.cell.U_c),
                                  none,
                                  none,
                                  none};
    return {[=](const scalar::matrix& sentence) {
                now->sentence = sentence;
                now->C.assign(sentence.size(), none);
            },
            [=](std::size_t, const std::vector<scalar::numbers>& query) { now->s = query[0]; },
            [=](std::size_t j) { return scalar::times(now->C[j], V); },
            [=](const scalar::numbers& weights) {
                for (std::size_t j = 0; j < weights.size(); ++j) {
                    const auto read = scalar::joined(scalar::joined(now->sentence[j], now->s), {weights[j]});
                    now->C[j] = scalar::next_state(unit, read, now->C[j]);
                }
            }};
}

/// f(name, attention, temporal?) with a score under softmax and under temporal.
void under_both(const auto& score, auto&& f)
{
    f(attention{score, normalize::softmax{}, combine::weighted_sum{}}, false);
    f(attention{score, normalize::temporal{}, combine::weighted_sum{}}, true);
}

const support::additive_parameters parameters{sizes};

/// C_0 of gated coverage.
auto cell_start(const auto& memory) { return filled<double, 3>({memory.batch(), memory.positions(), N}, 0.0); }

}  // namespace

TEST_CASE("coverage embeddings are their equations")
{
    const auto score = coverage_over(parameters.score());
    under_both(score, [&](const auto& attend, bool temporal) {
        check_memory(attend, parameters, scalar_coverage(score), temporal, describe, sizes.width);
        support::check_selection(attend, describe, sizes.width);
        support::check_extremes(attend, describe, sizes.width);
    });
}

TEST_CASE("coverage embeddings keep the contracts and have the gradient of finite differences")
{
    const auto score = coverage_over(parameters.score());
    under_both(score, [&](const auto& attend, bool) {
        support::check_gradients(attend, describe, sizes.width);
        support::check_verified(attend, verified, describe);
    });
}

TEST_CASE("trap: z keeps the old coverage, r acts after the product")
{
    // Many GRU cells have z the other way round: with one of these, coverage would run backwards (docs/decisions.md).
    // σ(±1e3) is 1 or 0: with z = 1 nothing new enters, with z = 0 nothing of the old vector stays.
    const auto c = random({2, 4, N}, 1);
    const auto alpha = random({2, 4}, 2);
    const auto y = array<double, 2>(shape_of_rank<2>{2, 1}, 1.0);
    const auto gates = [&](double z, double r) {
        auto cell = nn::coverage_gru{array<double, 2>(shape_of_rank<2>{1, 3 * N}, 0.0),
                                     array<double, 1>(shape_of_rank<1>{3 * N}, 0.0), random({N, 3 * N}, 3)};
        for (std::size_t i = 0; i < N; ++i) cell.W(0, i) = z, cell.W(0, N + i) = r, cell.W(0, 2 * N + i) = 0.25;
        return cell;
    };
    CHECK(support::same_bits(gates(1e3, 0).step(y, alpha, c), c));
    for (const double r : {1e3, -1e3}) {
        const auto cell = gates(-1e3, r);
        const auto next = cell.step(y, alpha, c);
        for (std::size_t b = 0; b < 2; ++b) {
            for (std::size_t j = 0; j < 4; ++j) {
                for (std::size_t i = 0; i < N; ++i) {
                    double product = 0;
                    for (std::size_t k = 0; k < N; ++k) product += c(b, j, k) * cell.U(k, 2 * N + i);
                    CHECK(next(b, j, i) == doctest::Approx(std::tanh(0.25 + (r > 0 ? product : 0.0))).epsilon(1e-13));
                }
            }
        }
    }
    // Half open everywhere but in the product: r ⊙ (U c), which is not U (r ⊙ c) if r differs among dimensions.
    auto cell = gates(-1e3, 0);
    cell.W(0, N) = 1e3;
    cell.W(0, N + 1) = -1e3;
    const auto next = cell.step(y, alpha, c);
    CHECK(next(0, 0, 1) == doctest::Approx(std::tanh(0.25)).epsilon(1e-14));  // its own product is shut off entirely
}

TEST_CASE("trap: the score of a step knows nothing of that step's weights; the first reads c_0 as it is")
{
    // Known bugs of peers: a coverage that included the current step, and one that was configured but for years reached
    // no score.
    const attention attend{coverage_over(parameters.score()), normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(random({2, 4, sizes.width}, 1), lengths{4, 3});
    const auto s = random({2, sizes.query}, 2);
    const auto y = random({2, sizes.word}, 3), other = random({2, sizes.word}, 4);
    const auto c_0 = ops::clear_padding(random({2, 4, N}, 5), memory.real);
    const auto start = attend.start(memory, attend.score.start_from(memory, c_0));

    // Step 1: additive with C c_0 in its keys, whatever the word.
    const attention plain{parameters.score(), normalize::softmax{}, combine::weighted_sum{}};
    auto keys = memory;
    keys.keys = ops::add(memory.keys, ops::linear(c_0, attend.score.C));
    const auto first = attend.step(memory, state_and_word{s, y}, start);
    CHECK(support::distance(first.weights, plain.compose(keys, s, plain.start(keys)).weights) < 1e-15);
    CHECK(support::same_bits(attend.step(memory, state_and_word{s, other}, start).weights, first.weights));
    // The next state still has c_0: the word that step 1 emits is not known before step 2.
    CHECK(support::same_bits(first.state.score.coverage, c_0));
    CHECK(support::same_bits(first.state.score.weights, first.weights));

    // Step 2 reads c_1 = GRU(c_0, y_1, α_1), and no α_2.
    const auto c_1 = attend.score.cell.step(y, first.weights, c_0);
    keys.keys = ops::add(memory.keys, ops::linear(c_1, attend.score.C));
    const auto second = attend.step(memory, state_and_word{s, y}, first.state);
    CHECK(support::distance(second.weights, plain.compose(keys, s, plain.start(keys)).weights) < 1e-15);
    CHECK(support::distance(second.weights, first.weights) > 1e-3);
    CHECK(support::same_bits(second.state.score.coverage, c_1));
    // An update without α_1 gives other weights: the test can fail.
    keys.keys = ops::add(memory.keys, ops::linear(c_0, attend.score.C));
    CHECK(support::distance(second.weights, plain.compose(keys, s, plain.start(keys)).weights) > 1e-3);
}

TEST_CASE("c_0 is looked up for each source word, and the table learns")
{
    const attention attend{coverage_over(parameters.score()), normalize::temporal{}, combine::weighted_sum{}};
    const auto fertilities = random({6, N}, 9);
    word_ids words(3, 2);  // [T,B]
    words.ids = {4, 0, 1, 5, 4, 0};
    const auto h = random({2, 3, sizes.width}, 1);
    const auto s = random({2, sizes.query}, 2), y = random({2, sizes.word}, 3);
    const auto loss = [&](const auto& table, const auto& annotations, const auto& state, const auto& word) {
        const auto memory = attend.on(annotations, lengths{3, 2});
        const auto c_0 = ops::swap_axes(ops::lookup(table, words));
        const auto first = attend.step(memory, state_and_word{state, word},
                                       attend.start(memory, attend.score.start_from(memory, c_0)));
        return ops::concat(first.context, attend.step(memory, state_and_word{state, word}, first.state).context);
    };
    const auto found = support::gradient_of<0b1111>(loss, fertilities, h, s, y);
    CHECK_MESSAGE(bool(found), found.text());
    ad::tape<double> on;
    const auto table = on.parameter(fertilities);
    const auto out = loss(table, h, s, y);
    on.backward(ops::inner(out, support::uneven(out.shape())));
    const auto gradient = copy_of(on.gradient(table));
    CHECK(gradient(4, 0) != 0);  // three times in the batch, twice as a real word
    CHECK(gradient(2, 0) == 0);  // not in the batch
}

TEST_CASE("coverage over other scores: it joins their keys")
{
    const auto two = [](const auto& attend, const auto& how, const auto& n) {
        support::check_gradients(attend, how, n.width);
        support::check_selection(attend, how, n.width);
    };
    // With weights per dimension; over a score that reads the word; over one without keys of its own.
    const auto V = random({sizes.alignment, sizes.width}, 71);
    two(attention{coverage_over(score::additive_per_dimension{parameters.W, parameters.U, V}), normalize::softmax{},
                  combine::elementwise_sum{}},
        describe, sizes);
    two(attention{coverage_over(score::with_word{parameters.score(), random({sizes.word, sizes.alignment}, 72)}),
                  normalize::softmax{}, combine::weighted_sum{}},
        describe, sizes);
    two(attention{score::with_coverage{score::general{random({sizes.query, sizes.width}, 73)},
                                       random({N, sizes.width}, 74), cell_of(N)},
                  normalize::softmax{}, combine::weighted_sum{}},
        describe, sizes);
    // And over a score with a state of its own.
    two(attention{coverage_over(fertility_over(parameters.score())), normalize::temporal{}, combine::weighted_sum{}},
        describe, sizes);
}

TEST_CASE("coverage in a window; coverage and masks")
{
    const auto score = coverage_over(fertility_over(parameters.score()));
    const attention local{score, normalize::local_m{1, normalize::temporal{}}, combine::weighted_sum{}};
    support::check_gradients(local, describe, sizes.width);
    support::check_selection(local, describe, sizes.width);

    // A hidden position makes no difference.
    const attention attend{score, normalize::temporal{}, combine::weighted_sum{}};
    const auto h = random({1, 4, sizes.width}, 1);
    array<double, 3> without(shape_of_rank<3>{1, 3, sizes.width});
    std::copy_n(h.data(), sizes.width, without.data());
    std::copy_n(h.data() + 2 * sizes.width, 2 * sizes.width, without.data() + sizes.width);
    boolean_mask<2> mask(shape_of_rank<2>{1, 4});
    mask[0] = mask[2] = mask[3] = 1;
    const auto hidden = attend.on(h, mask);
    const auto shorter = attend.on(without);
    auto a = attend.start(hidden), b = attend.start(shorter);
    for (std::size_t t = 0; t < 3; ++t) {
        const state_and_word query{random({1, sizes.query}, 10 + t), random({1, sizes.word}, 20 + t)};
        auto masked = attend.step(hidden, query, a), gone = attend.step(shorter, query, b);
        CHECK(support::distance(masked.context, gone.context) < 1e-14);
        CHECK(masked.weights(0, 1) == 0);
        CHECK(masked.weights(0, 3) == doctest::Approx(gone.weights(0, 2)).epsilon(1e-13));
        a = masked.state;
        b = gone.state;
    }
}

TEST_CASE("with C = 0 coverage changes nothing; laid over each other both memories count")
{
    auto none = coverage_over(fertility_over(parameters.score()));
    none.C.fill(0.0);
    const attention both{none, normalize::softmax{}, combine::weighted_sum{}};
    const attention one{fertility_over(parameters.score()), normalize::softmax{}, combine::weighted_sum{}};
    const auto h = random({2, 4, sizes.width}, 1);
    const auto memory = both.on(h, lengths{4, 2});
    auto a = both.start(memory);
    auto b = one.start(memory);
    for (std::size_t t = 0; t < 4; ++t) {
        const auto s = random({2, sizes.query}, 10 + t);
        auto with = both.step(memory, state_and_word{s, random({2, sizes.word}, 20 + t)}, a);
        auto without = one.step(memory, s, b);
        CHECK(support::distance(with.weights, without.weights) < 1e-15);
        a = with.state;
        b = without.state;
    }
}

TEST_CASE("accumulated coverage with fertility is its equations")
{
    const auto score = fertility_over(parameters.score());
    under_both(score, [&](const auto& attend, bool temporal) {
        check_memory(attend, parameters, scalar_fertility(score), temporal, describe_state, sizes.width);
        support::check_selection(attend, describe_state, sizes.width);
        support::check_extremes(attend, describe_state, sizes.width);
    });
}

TEST_CASE("accumulated coverage keeps the contracts and has the gradient of finite differences")
{
    const auto score = fertility_over(parameters.score());
    under_both(score, [&](const auto& attend, bool) {
        support::check_gradients(attend, describe_state, sizes.width);
        support::check_verified(attend, verified, describe_state);
    });
}

TEST_CASE("accumulated coverage adds up to the number of steps, in parts of the fertility")
{
    auto score = fertility_over(parameters.score());
    score.U_f.fill(0.0);  // σ(0) = ½
    score.N = 2;          // Φ = 1
    const attention attend{score, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(random({2, 5, sizes.width}, 1), lengths{5, 3});
    auto state = attend.start(memory);
    CHECK(support::distance(state.score.coverage, array<double, 2>(shape_of_rank<2>{2, 5}, 0.0)) == 0);
    for (std::size_t t = 1; t <= 3; ++t) {
        state = attend.step(memory, random({2, sizes.query}, t), state).state;
        for (std::size_t b = 0; b < 2; ++b) {
            double sum = 0;
            for (std::size_t j = 0; j < 5; ++j) sum += state.score.coverage(b, j);
            CHECK(sum == doctest::Approx(static_cast<double>(t)).epsilon(1e-14));
        }
    }
}

TEST_CASE("gated coverage is its equations")
{
    const auto score = gated_over(parameters.score());
    under_both(score, [&](const auto& attend, bool temporal) {
        check_memory(attend, parameters, scalar_gated_coverage(score), temporal, describe_state, sizes.width);
        support::check_selection(attend, describe_state, sizes.width);
        support::check_extremes(attend, describe_state, sizes.width);
    });
}

TEST_CASE("gated coverage keeps the contracts and has the gradient of finite differences")
{
    const auto score = gated_over(parameters.score());
    under_both(score, [&](const auto& attend, bool) {
        support::check_gradients(attend, describe_state, sizes.width);
        support::check_verified(attend, verified, describe_state);
    });
}

TEST_CASE("gated coverage reads the state of a step, not its word, and never its own weights")
{
    const attention attend{gated_over(parameters.score()), normalize::softmax{}, combine::weighted_sum{}};
    const attention plain{parameters.score(), normalize::softmax{}, combine::weighted_sum{}};
    const auto h = random({2, 4, sizes.width}, 1);
    const auto memory = attend.on(h, lengths{4, 3});
    const auto s = random({2, sizes.query}, 2), other = random({2, sizes.query}, 3);
    const auto y = random({2, sizes.word}, 4);

    // Step 1: C_0 is 0, additive alone.
    const auto first = attend.step(memory, s, attend.start(memory));
    CHECK(support::distance(first.weights, plain.step(memory, s, plain.start(memory)).weights) < 1e-15);
    CHECK(support::same_bits(attend.step(memory, state_and_word{s, y}, attend.start(memory)).state.score.coverage,
                             first.state.score.coverage));

    // Step 2: C_1 depends on the query of step 1, not on the current one.
    const auto& cell = attend.score.cell;
    const auto C_1 = cell.step(cell.project(memory.values), s, first.weights, cell_start(memory));
    CHECK(support::same_bits(first.state.score.coverage, C_1));
    auto keys = memory;
    keys.keys = ops::add(memory.keys, ops::linear(C_1, attend.score.V));
    const auto second = attend.step(memory, other, first.state);
    CHECK(support::distance(second.weights, plain.compose(keys, other, plain.start(keys)).weights) < 1e-15);
    const auto without = plain.step(memory, other, plain.start(memory)).weights;
    CHECK(support::distance(second.weights, without) > 1e-3);  // the test can fail
}

TEST_CASE("gated coverage over other scores, in a window, and with a mask")
{
    const auto two = [](const auto& attend, const auto& how) {
        support::check_gradients(attend, how, sizes.width);
        support::check_selection(attend, how, sizes.width);
    };
    const auto V = random({sizes.alignment, sizes.width}, 71);
    two(attention{gated_over(score::additive_per_dimension{parameters.W, parameters.U, V}), normalize::softmax{},
                  combine::elementwise_sum{}},
        describe_state);
    two(attention{gated_over(score::with_word{parameters.score(), random({sizes.word, sizes.alignment}, 72)}),
                  normalize::softmax{}, combine::weighted_sum{}},
        describe);
    const attention local{gated_over(coverage_over(parameters.score())), normalize::local_m{1, normalize::temporal{}},
                          combine::weighted_sum{}};
    two(local, describe);

    // A hidden position makes no difference.
    const attention attend{gated_over(parameters.score()), normalize::softmax{}, combine::weighted_sum{}};
    const auto h = random({1, 3, sizes.width}, 1);
    array<double, 3> without(shape_of_rank<3>{1, 2, sizes.width});
    std::copy_n(h.data(), sizes.width, without.data());
    std::copy_n(h.data() + 2 * sizes.width, sizes.width, without.data() + sizes.width);
    boolean_mask<2> mask(shape_of_rank<2>{1, 3});
    mask[0] = mask[2] = 1;
    const auto hidden = attend.on(h, mask);
    const auto shorter = attend.on(without);
    auto a = attend.start(hidden), b = attend.start(shorter);
    for (std::size_t t = 0; t < 3; ++t) {
        const auto query = random({1, sizes.query}, 10 + t);
        auto masked = attend.step(hidden, query, a), gone = attend.step(shorter, query, b);
        CHECK(support::distance(masked.context, gone.context) < 1e-14);
        CHECK(masked.weights(0, 1) == 0);
        a = masked.state;
        b = gone.state;
    }
}

TEST_CASE("gated coverage may start with a coverage of its own, whose padding is not read")
{
    const attention attend{gated_over(parameters.score()), normalize::softmax{}, combine::weighted_sum{}};
    const auto h = random({2, 4, sizes.width}, 1);
    const auto s = random({2, sizes.query}, 2);
    boolean_mask<2> mask(shape_of_rank<2>{2, 4});
    for (const std::size_t real : {0u, 2u, 3u, 4u, 5u}) mask[real] = 1;  // row 0: not 1; row 1: 0 and 1
    const auto two_steps = [&](const auto& memory, const auto& C_0) {
        const auto start = attend.start(memory, attend.score.start_from(memory, C_0));
        const auto seen = attend.step(memory, s, start);
        return ops::concat(seen.context, attend.step(memory, s, seen.state).context);
    };
    auto C_0 = random({2, 4, N}, 5);
    const auto check = [&](auto&& on) {
        CHECK_GRADIENT([&](const auto& C, const auto& x) { return two_steps(on(x), C); }, C_0, h);
        const auto results = [&](const array<double, 3>& C) {
            ad::tape<double> tape;
            const auto lifted = tape.parameter(C), x = tape.parameter(h);
            const auto y = two_steps(on(x), lifted);
            tape.backward(ops::inner(y, support::uneven(y.shape())));
            return std::tuple{copy_of(y.value()), copy_of(tape.gradient(lifted)), copy_of(tape.gradient(x))};
        };
        auto with_nan = C_0;
        for (std::size_t k = 0; k < N; ++k) {
            with_nan(1, 2, k) = std::numeric_limits<double>::quiet_NaN();
            with_nan(1, 3, k) = std::numeric_limits<double>::infinity();
        }
        const auto clean = results(C_0), rubbish = results(with_nan);
        CHECK(support::same_bits(std::get<0>(clean), std::get<0>(rubbish)));
        CHECK(support::same_bits(std::get<1>(clean), std::get<1>(rubbish)));
        CHECK(support::same_bits(std::get<2>(clean), std::get<2>(rubbish)));
        // It is read at positions that can be attended to.
        auto zero = C_0;
        zero.fill(0.0);
        CHECK(support::distance(std::get<0>(results(zero)), std::get<0>(clean)) > 1e-3);
    };
    check([&](const auto& x) { return attend.on(x, lengths{4, 2}); });
    check([&](const auto& x) { return attend.on(x, mask); });
}

TEST_CASE("coverage: what does not fit is refused")
{
    const attention attend{coverage_over(parameters.score()), normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(random({2, 4, sizes.width}, 1), lengths{4, 3});
    const auto message = [](auto&& act) { return support::message_of<shape_error>(act); };
    CHECK(support::contains(message([&] {
                                attend.score.start_from(memory, random({2, 3, N}, 1));
                            }),
                            "with_coverage::start_from: the coverage is [2,3,3] but must be [2,4,3]"));
    const attention gated{gated_over(parameters.score()), normalize::softmax{}, combine::weighted_sum{}};
    CHECK(support::contains(message([&] {
                                gated.score.start_from(memory, random({2, 4, 2}, 1));
                            }),
                            "with_gated_coverage::start_from: the coverage is [2,4,2] but must be [2,4,3]"));
    const auto alien = attend.start(attend.on(random({2, 5, sizes.width}, 1)));
    const state_and_word query{random({2, sizes.query}, 1), random({2, sizes.word}, 2)};
    CHECK(support::contains(message([&] { attend.step(memory, query, alien); }),
                            "the state is [2,5,3] but must be [2,4,3]"));
    const attention fertile{fertility_over(parameters.score()), normalize::softmax{}, combine::weighted_sum{}};
    const auto other = fertile.start(fertile.on(random({2, 5, sizes.width}, 1)));
    CHECK(support::contains(message([&] { fertile.step(memory, query.state, other); }),
                            "the state is [2,5] but must be [2,4]"));
}

TEST_CASE("the context of a sentence is the mean over its true length")
{
    random_source source{1};
    const auto contextualize = nn::make_contextualization<double>(source, 3, 2, 4);
    CHECK(parameter_count(contextualize) == 3 * 4 + 4 + (4 * 3 + 3) + (4 * 2 + 2));
    auto x = random({3, 5, 3}, 1);
    for (std::size_t j = 2; j < 5; ++j) {  // the padding of row 1
        for (std::size_t d = 0; d < 3; ++d) x(1, j, d) = std::numeric_limits<double>::quiet_NaN();
    }
    const lengths real{5, 2, 0};
    const auto c = contextualize.context(x, real);
    const auto gated = contextualize.source(x, c, real);
    for (std::size_t b = 0; b < 3; ++b) {
        for (std::size_t i = 0; i < 4; ++i) {
            double mean = 0;
            for (std::size_t j = 0; j < real[b]; ++j) {
                double sum = contextualize.b(i);
                for (std::size_t d = 0; d < 3; ++d) sum += x(b, j, d) * contextualize.W(d, i);
                mean += std::tanh(sum) / static_cast<double>(real[b]);
            }
            CHECK(c(b, i) == doctest::Approx(mean).epsilon(1e-14));
        }
        for (std::size_t d = 0; d < 3; ++d) {
            double gate = contextualize.source_gate.m(d);
            for (std::size_t i = 0; i < 4; ++i) gate += c(b, i) * contextualize.source_gate.M(i, d);
            for (std::size_t j = 0; j < 5; ++j) {
                const double must = j < real[b] ? x(b, j, d) * scalar::sigmoid(gate) : 0;
                CHECK(gated(b, j, d) == doctest::Approx(must).epsilon(1e-14));
            }
        }
    }
    // The words of one step and of all steps.
    const auto y = random({3, 4, 2}, 2);
    CHECK(support::distance(ops::step_of(contextualize.target(y, c), std::size_t{2}),
                            contextualize.target(ops::step_of(y, std::size_t{2}), c)) < 1e-15);
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                contextualize.context(x, lengths{5, 6, 0});
                            }),
                            "contextualization: the length of row 1 is 6"));
    CHECK(support::all_finite(contextualize.context(random({2, 0, 3}, 1), lengths{0, 0})));
}

TEST_CASE("the context of one word is that word's; numbers of 1e4 are no problem")
{
    random_source source{3};
    const auto contextualize = nn::make_contextualization<double>(source, 3, 2, 4);
    const auto x = random({2, 1, 3}, 1);
    const auto c = contextualize.context(x, lengths{1, 0});
    for (std::size_t i = 0; i < 4; ++i) {
        double sum = contextualize.b(i);
        for (std::size_t d = 0; d < 3; ++d) sum += x(0, 0, d) * contextualize.W(d, i);
        CHECK(c(0, i) == doctest::Approx(std::tanh(sum)).epsilon(1e-14));
        CHECK(c(1, i) == 0);
    }
    for (const double scale : {1e4, -1e4}) {
        const auto far = random({2, 3, 3}, 2, scale);
        const lengths real{3, 2};
        ad::tape<double> on;
        const auto lifted = ad::lift(on, contextualize);
        const auto words = on.parameter(far);
        const auto context = lifted.context(words, real);
        const auto gated = lifted.source(words, context, real);
        on.backward(ops::inner(gated, support::uneven(shape_of(gated))));
        for (std::size_t i = 0; i < 8; ++i) CHECK(std::abs(context.data()[i]) <= 1);
        for (std::size_t i = 0; i < far.size(); ++i) CHECK(std::abs(gated.data()[i]) <= std::abs(far.data()[i]));
        for_each_parameter(lifted,
                           [&](const std::string&, const auto& p) { CHECK(support::all_finite(on.gradient(p))); });
        CHECK(support::all_finite(on.gradient(words)));
    }
}

TEST_CASE("the gradient of contextualization, also with NaN in the padding")
{
    random_source source{2};
    auto contextualize = nn::make_contextualization<double>(source, 3, 2, 4);
    const auto out = [&](const auto& module, const auto& x, const auto& y) {
        const lengths real{4, 2, 0};
        const auto c = module.context(x, real);
        const auto gated = module.source(x, c, real);
        const auto targets = module.target(y, c);
        return ops::add(ops::inner(gated, support::uneven(shape_of(gated))),
                        ops::inner(targets, support::uneven(shape_of(targets))));
    };
    auto x = random({3, 4, 3}, 1);
    const auto y = random({3, 2, 2}, 2);
    const auto by_module = ad::grad_check(contextualize, [&](auto&, const auto& lifted) { return out(lifted, x, y); });
    CHECK_MESSAGE(bool(by_module), by_module.text());
    CHECK_GRADIENT([&](const auto& a, const auto& b) { return out(contextualize, a, b); }, x, y);

    const auto gradients = [&] {
        ad::tape<double> on;
        const auto lifted = ad::lift(on, contextualize);
        on.backward(out(lifted, on.parameter(x), y));
        std::vector<array<double, 2>> all;
        all.push_back(copy_of(on.gradient(lifted.W)));
        all.push_back(copy_of(on.gradient(lifted.source_gate.M)));
        return all;
    };
    const auto clean = gradients();
    for (std::size_t d = 0; d < 3; ++d) x(1, 3, d) = std::numeric_limits<double>::quiet_NaN();
    const auto with_rubbish = gradients();
    for (std::size_t i = 0; i < clean.size(); ++i) CHECK(support::same_bits(clean[i], with_rubbish[i]));
}

TEST_CASE("temporal memory across the sentences of a document")
{
    const attention attend{parameters.score(), normalize::temporal{}, combine::weighted_sum{}};
    const double nothing = -std::numeric_limits<double>::infinity();
    normalize::history_of_words<double> documents(2);
    word_ids words(3, 2);  // [T,B]: 7 8 7 | 7 9
    words.ids = {7, 7, 8, 9, 7, 0};
    const lengths real{3, 2};
    const auto h = random({2, 3, sizes.width}, 1);
    const auto memory = attend.on(h, real);
    auto state = attend.start(memory);
    // The first sentence: as without.
    CHECK(support::same_bits(documents.recall(words, real).history, state.normalize.history));
    for (std::size_t t = 0; t < 2; ++t) state = attend.step(memory, random({2, sizes.query}, 5 + t), state).state;
    documents.keep(words, real, state.normalize);

    // The second: 8 7 | 7 7, and padding.
    word_ids next(3, 2);
    next.ids = {8, 7, 7, 7, 1, 9};
    const lengths real_next{2, 2};
    const auto L = documents.recall(next, real_next).history;
    const auto& before = state.normalize.history;
    CHECK(L(0, 0) == before(0, 1));  // 8, once then and now
    CHECK(std::exp(L(0, 1)) == support::approx(std::exp(before(0, 0)) + std::exp(before(0, 2))));  // 7, twice then
    CHECK(L(0, 2) == nothing);                                                                     // padding
    CHECK(2 * std::exp(L(1, 0)) == support::approx(std::exp(before(1, 0))));                       // 7, twice now
    CHECK(L(1, 1) == L(1, 0));
    // Each row is a document of its own; 0 stood in the padding.
    word_ids other(1, 2);
    other.ids = {9, 0};
    CHECK(documents.recall(other, lengths{1, 1}).history(0, 0) == nothing);
    CHECK(documents.recall(other, lengths{1, 1}).history(1, 0) == nothing);

    // A sentence that attends to nothing leaves the sums unchanged: sharing them among occurrences loses nothing.
    documents.keep(next, real_next, documents.recall(next, real_next));
    CHECK(support::distance(documents.recall(next, real_next).history, L) < 1e-15);

    // Scores of 1e4: in the log domain a sum is little more than its greatest term.
    auto far = state.normalize;
    far.history = array<double, 2>{{1e4, -1e4, 1e4}, {-1e4, 1e4, nothing}};
    normalize::history_of_words<double> kept(2);
    kept.keep(words, real, far);
    const auto again = kept.recall(next, real_next).history;
    CHECK(again(0, 0) == -1e4);                                                  // 8
    CHECK(again(0, 1) == doctest::Approx(1e4 + std::log(2.0)).epsilon(1e-15));   // 7, twice then, once now
    CHECK(again(1, 0) == doctest::Approx(-1e4 - std::log(2.0)).epsilon(1e-15));  // 7, once then, twice now

    // It takes effect: a word that had attention in the previous sentence counts for less than an equal one.
    const array<double, 3> same(shape_of_rank<3>{2, 3, sizes.width}, 0.3);
    const auto equal = attend.on(same, lengths{3, 3});
    word_ids old_and_new(3, 2);
    old_and_new.ids = {8, 7, 2, 3, 3, 4};
    auto later = attend.start(equal);
    later.normalize = documents.recall(old_and_new, lengths{3, 3});
    const auto q = random({2, sizes.query}, 9);
    const auto weights = attend.step(equal, q, later).weights;
    const double discounted = std::exp(-later.normalize.history(0, 0));  // e − L against e
    CHECK(weights(0, 0) / weights(0, 1) == doctest::Approx(discounted).epsilon(1e-12));
    CHECK(weights(0, 1) == weights(0, 2));

    documents.forget(0);
    CHECK(documents.recall(next, real_next).history(0, 0) == nothing);
    CHECK(documents.recall(next, real_next).history(1, 0) == L(1, 0));
    const auto message = [](auto&& act) { return support::message_of<shape_error>(act); };
    CHECK(support::contains(message([&] {
                                documents.recall(word_ids(2, 3), lengths{2, 2, 2});
                            }),
                            "the batch has 3 sentences but there are 2 documents"));
    CHECK(support::contains(message([&] {
                                documents.keep(word_ids(2, 2), lengths{2, 2}, state.normalize);
                            }),
                            "history_of_words::keep: the history is [2,3] but must be [2,2]"));
}
