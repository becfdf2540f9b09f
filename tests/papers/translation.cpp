// SPDX-License-Identifier: BSD-3-Clause
#include <heed/papers/translation.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include <support/recurrent_presets.hpp>
#include <support/tensors.hpp>

using namespace heed;
namespace paper = heed::papers;
using support::random;
using support::same_bits;
using namespace support::recurrent_presets;

TEST_CASE("Bahdanau et al. 2015")
{
    check_same(paper::bahdanau2015::additive(W, U, v),
               attention{score::additive{W, U, v}, normalize::softmax{}, combine::weighted_sum{}}, state_of);
    const double c = once(paper::bahdanau2015::additive(number(1), number(1), single(2)), number(1));
    CHECK(c == about(weight(tanh_lead)));
    CHECK(c == doctest::Approx(0.599856).epsilon(1e-6));

    random_source source{1};
    const auto made = paper::bahdanau2015::make_additive<float>(source, {.query = 2, .annotation = 3, .hidden = 4});
    CHECK(shape_of(made.score.W) == shape_of_rank<2>{2, 4});
    CHECK(shape_of(made.score.U) == shape_of_rank<2>{3, 4});
    CHECK(shape_of(made.score.v) == shape_of_rank<1>{4});
    CHECK(!same_bits(made.score.W, paper::bahdanau2015::make_additive<float>(source, {2, 3, 4}).score.W));
}

TEST_CASE("Luong et al. 2015, global")
{
    namespace luong = paper::luong2015;
    const auto global = [](auto score) { return attention{score, normalize::softmax{}, combine::weighted_sum{}}; };
    const auto W_both = random({Q + D, A}, 40), W_places = random({Q, T + 1}, 41);
    check_same(luong::global_dot(), global(score::dot{}), state_of);
    check_same(luong::global_general(W_a), global(score::general{W_a}), state_of);
    check_same(luong::global_concat(W_both, v), global(score::concat{W_both, v}), state_of);
    check_same(luong::global_location(W_places), global(score::location{W_places}), state_of);

    CHECK(once(luong::global_dot(), number(2)) == doctest::Approx(0.880797).epsilon(1e-6));  // e = 0, 2
    CHECK(once(luong::global_general(number(0.5)), number(2)) == about(weight(1)));
    CHECK(once(luong::global_concat(filled<double, 2>({2, 1}, 1.0), single(2)), number(1)) == about(weight(tanh_lead)));
    array<double, 2> places({1, 3});
    places(0, 0) = 1, places(0, 1) = 3, places(0, 2) = 100;
    CHECK(once(luong::global_location(places), number(0.5)) == about(weight(1)));
}

TEST_CASE("Luong et al. 2015, local and the attentional vector")
{
    namespace luong = paper::luong2015;
    const auto with = [](auto score, auto normalize) { return attention{score, normalize, combine::weighted_sum{}}; };
    check_same(luong::local_m(1), with(score::dot{}, normalize::local_m{1}), state_of);
    check_same(luong::local_m(W_a, 1), with(score::general{W_a}, normalize::local_m{1}), state_of);
    check_same(luong::local_p(W_p, v_p, 1), with(score::dot{}, normalize::local_p{W_p, v_p, 1}), state_of);
    check_same(luong::local_p(W_a, W_p, v_p, 1), with(score::general{W_a}, normalize::local_p{W_p, v_p, 1}), state_of);
    check_same(luong::attentional(luong::local_p(W_a, W_p, v_p, 1), W_c),
               attention{score::general{W_a}, normalize::local_p{W_p, v_p, 1}, combine::attentional{W_c}}, state_of);

    // D = 0: only word t.
    const auto [first, second] = twice(luong::local_m(0), number(2));
    CHECK(first.context(0, 0) == 0);
    CHECK(second.context(0, 0) == 1);
    // v_p = 0: p = 2 σ(0) = 1; D = 1: σ = 1/2, so position 0 has the factor exp(-2).
    const auto [predicted, ignored] = twice(luong::local_p(number(1), single(0), 1), number(2));
    CHECK(predicted.weights(0, 0) == about((1 - weight(2)) * std::exp(-2.0)));
    CHECK(predicted.weights(0, 1) == about(weight(2)));
    CHECK(once(luong::attentional(luong::global_dot(), filled<double, 2>({2, 1}, 1.0)), number(2)) ==
          about(std::tanh(weight(2) + 2)));
}

TEST_CASE("Choi et al. 2018")
{
    namespace choi = paper::choi2018;
    check_same(choi::att_y(W, U, v, Y),
               attention{score::with_word{score::additive{W, U, v}, Y}, normalize::softmax{}, combine::weighted_sum{}},
               both_of);
    check_same(choi::att_y_2d(W, U, V, Y),
               attention{score::with_word{score::additive_per_dimension{W, U, V}, Y}, normalize::softmax{},
                         combine::elementwise_sum{}},
               both_of);

    // s + y = 1 with s = 0.25, y = 0.5 and Y = 1.5
    const state_and_word query{number(0.25), number(0.5)};
    CHECK(once(choi::att_y(number(1), number(1), single(2), number(1.5)), query) == about(weight(tanh_lead)));
    // Two dimensions, one with V = 2 and one with V = 0: in the second the weights are equal.
    array<double, 2> U_first({2, 1}), V_first({1, 2});
    U_first(0, 0) = 1, U_first(1, 0) = 0, V_first(0, 0) = 2, V_first(0, 1) = 0;
    auto annotations = filled<double, 3>({1, 2, 2}, 0.0);
    annotations(0, 1, 0) = annotations(0, 1, 1) = 1;
    const auto attend = choi::att_y_2d(number(1), U_first, V_first, number(1.5));
    const auto memory = attend.on(annotations);
    const auto context = attend.step(memory, query, attend.start(memory)).context;
    CHECK(context(0, 0) == about(weight(tanh_lead)));
    CHECK(context(0, 1) == about(0.5));

    random_source source{1};
    const choi::sizes sizes{.query = 2, .annotation = 3, .hidden = 4, .word = 5};
    CHECK(shape_of(choi::make_att_y<float>(source, sizes).score.Y) == shape_of_rank<2>{5, 4});
    CHECK(shape_of(choi::make_att_y_2d<float>(source, sizes).score.base.V) == shape_of_rank<2>{4, 3});
}

TEST_CASE("Sankaran et al. 2016")
{
    namespace sankaran = paper::sankaran2016;
    const auto w = single(-1);
    const auto with = [](auto normalize) {
        return attention{score::additive{W, U, v}, normalize, combine::direction_split{}};
    };
    check_same(sankaran::temporal(W, U, v), with(normalize::temporal{}), state_of);
    check_same(sankaran::recent_temporal(W, U, v, 1), with(normalize::recent_temporal{1}), state_of);
    check_same(sankaran::learned_temporal(W, U, v, w), with(normalize::learned_temporal{w}), state_of);

    // The same query twice: exp(e) / exp(e) = 1 for both positions.
    const auto [first, second] = twice(sankaran::temporal(number(1), number(1), single(2)), number(1));
    CHECK(first.context(0, 0) == about(weight(tanh_lead)));
    CHECK(second.context(0, 0) == about(0.5));
    // A history of 0 steps forgets it.
    const auto forgets = twice(sankaran::recent_temporal(number(1), number(1), single(2), 0), number(1));
    CHECK(forgets.second.context(0, 0) == about(weight(tanh_lead)));
    const auto connects = twice(sankaran::learned_temporal(number(1), number(1), single(2), w), number(1));
    CHECK(connects.second.context(0, 0) == about(weight(tanh_lead - (2 * weight(tanh_lead) - 1))));
}

TEST_CASE("Mi et al. 2016")
{
    const auto C = random({2, A}, 50), cell_W = random({E, 6}, 51), cell_U = random({2, 6}, 52);
    const nn::coverage_gru cell{cell_W, random({6}, 53), cell_U};
    check_same(paper::mi2016::coverage(W, U, v, C, cell),
               attention{score::with_coverage{score::additive{W, U, v}, C, cell}, normalize::softmax{},
                         combine::weighted_sum{}},
               both_of);

    // A unit that keeps half (z = σ(0)) and uses tanh(α) for the other half: c_1 = tanh(α_1) / 2.
    auto a = filled<double, 1>({3}, 0.0);
    a(2) = 1;
    const auto nothing = filled<double, 2>({1, 3}, 0.0);
    const auto attend =
        paper::mi2016::coverage(number(1), number(1), single(2), number(1), nn::coverage_gru{nothing, a, nothing});
    const auto [first, second] = twice(attend, state_and_word{number(1), number(7)});
    const double before = weight(tanh_lead);
    CHECK(first.context(0, 0) == about(before));
    CHECK(second.context(0, 0) ==
          about(weight(2 * std::tanh(2 + std::tanh(before) / 2) - 2 * std::tanh(1 + std::tanh(1 - before) / 2))));

    random_source source{1};
    const auto made = paper::mi2016::make_coverage<float>(source, {2, 3, 4, 5, 6});
    CHECK(shape_of(made.score.C) == shape_of_rank<2>{6, 4});
    CHECK(shape_of(made.score.cell.W) == shape_of_rank<2>{5, 18});
}

TEST_CASE("Gehring et al. 2017")
{
    namespace gehring = paper::gehring2017;
    const auto b = random({D}, 70), b_2 = random({D}, 71);
    const auto W_2 = random({Q, D}, 72);
    const attention first{score::conv_s2s{W_a, b}, normalize::softmax{}, combine::weighted_sum{}},
        second{score::conv_s2s{W_2, b_2}, normalize::softmax{}, combine::weighted_sum{}};
    check_same(gehring::layer(W_a, b), first, both_of);
    check_same(gehring::multi_step(std::vector{score::conv_s2s{W_a, b}, score::conv_s2s{W_2, b_2}}),
               multi_hop{std::vector{first, second}}, both_of);

    // d = 1 + 0.5 + 0.5 = 2; then the same equation with 1 + c.
    const state_and_word query{number(1), number(0.5)};
    const score::conv_s2s one{number(1), single(0.5)};
    CHECK(once(gehring::layer(one.W, one.b), query) == about(weight(2)));
    const double c = once(gehring::multi_step(std::vector{one, one}), query);
    CHECK(c == about(weight(2 + weight(2))));
    // Very different queries in a row: d = ±1e4 each time.
    const auto hops = gehring::multi_step(std::vector{one, one});
    CHECK(once(hops, state_and_word{number(1e4), number(0)}) == 1);
    CHECK(once(hops, state_and_word{number(-1e4), number(0)}) == 0);
}
