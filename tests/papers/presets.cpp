// SPDX-License-Identifier: BSD-3-Clause
#include <support/tensors.hpp>

#include <heed/papers.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

// Each preset is the composition of policies that its paper describes (tested against scalar loops in files of their
// own), and returns a number that was worked out by hand from the paper's equation.

using namespace heed;
namespace paper = heed::papers;
using support::random;
using support::same_bits;

namespace {

constexpr std::size_t B = 2, T = 4, D = 5, Q = 5, A = 3, E = 5;
const lengths some{4, 2};

const auto W = random({Q, A}, 1), U = random({D, A}, 2), V = random({A, D}, 3), Y = random({E, A}, 4),
           W_a = random({Q, D}, 5), W_p = random({Q, A}, 6), W_c = random({D + Q, 4}, 7);
const auto v = random({A}, 8), v_p = random({A}, 9);

/// Queries of one tensor, and of a state and a word.
auto state_of(std::uint64_t step) { return random({B, Q}, 20 + step); }
auto both_of(std::uint64_t step) { return state_and_word{state_of(step), random({B, E}, 30 + step)}; }

/// The same type, and for three queries the same results bit for bit.
template <class Preset, class Composition>
void check_same(const Preset& preset, const Composition& composition, auto&& query)
{
    static_assert(std::is_same_v<Preset, Composition>);
    const auto annotations = random({B, T, D}, 10);
    const auto memory = preset.on(annotations, some), other_memory = composition.on(annotations, some);
    auto state = preset.start(memory);
    auto other_state = composition.start(other_memory);
    for (std::uint64_t s = 0; s < 3; ++s) {
        const auto is = preset.step(memory, query(s), state),
                   must = composition.step(other_memory, query(s), other_state);
        CHECK(same_bits(is.context, must.context));
        CHECK(same_bits(is.weights, must.weights));
        state = is.state;
        other_state = must.state;
    }
}

// One sentence of two annotations of one number, 0 and 1: the context is the weight of the second.

array<double, 2> number(double x) { return filled<double, 2>({1, 1}, x); }
array<double, 1> single(double x) { return filled<double, 1>({1}, x); }
const array<double, 3> zero_and_one = [] {
    auto h = filled<double, 3>({1, 2, 1}, 0.0);
    h(0, 1, 0) = 1;
    return h;
}();

auto twice(const auto& attend, const auto& query)
{
    const auto memory = attend.on(zero_and_one);
    const auto first = attend.step(memory, query, attend.start(memory));
    const auto second = attend.step(memory, query, first.state);
    return std::pair{first, second};
}
double once(const auto& attend, const auto& query) { return twice(attend, query).first.context(0, 0); }

/// The second of two softmax weights whose scores differ by this much.
double weight(double lead) { return 1 / (1 + std::exp(-lead)); }
doctest::Approx about(double x) { return doctest::Approx(x).epsilon(1e-12); }

const double tanh_lead = 2 * std::tanh(2.0) - 2 * std::tanh(1.0);  // of 2 tanh(s + h) at s = 1

}  // namespace

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

    // D = 0: word t alone.
    const auto [first, second] = twice(luong::local_m(0), number(2));
    CHECK(first.context(0, 0) == 0);
    CHECK(second.context(0, 0) == 1);
    // v_p = 0: p = 2 σ(0) = 1; D = 1: σ = 1/2, so that position 0 counts exp(-2).
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
    // Two dimensions, one with V = 2 and one with V = 0: the second one's weights are equal.
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
    check_same(sankaran::connected(W, U, v, w), with(normalize::connected{w}), state_of);

    // The same query twice: exp(e) / exp(e) = 1 for both positions.
    const auto [first, second] = twice(sankaran::temporal(number(1), number(1), single(2)), number(1));
    CHECK(first.context(0, 0) == about(weight(tanh_lead)));
    CHECK(second.context(0, 0) == about(0.5));
    // A history of no steps forgets that.
    const auto forgets = twice(sankaran::recent_temporal(number(1), number(1), single(2), 0), number(1));
    CHECK(forgets.second.context(0, 0) == about(weight(tanh_lead)));
    const auto connects = twice(sankaran::connected(number(1), number(1), single(2), w), number(1));
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

    // A unit that keeps half (z = σ(0)) and takes tanh(α) for the other half: c_1 = tanh(α_1) / 2.
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

TEST_CASE("Xu et al. 2015")
{
    namespace xu = paper::xu2015;
    const auto W_beta = random({Q, 1}, 60);
    const auto b_beta = random({1}, 61);
    const score::additive score{W, U, v};
    check_same(xu::soft(W, U, v), attention{score, normalize::softmax{}, combine::weighted_sum{}}, state_of);
    check_same(xu::gated(W, U, v, W_beta, b_beta),
               attention{score, normalize::softmax{}, combine::gated{W_beta, b_beta}}, state_of);
    check_same(xu::hard(W, U, v, 7), attention{score, normalize::hard{7}, combine::weighted_sum{}}, state_of);
    check_same(xu::hard(W, U, v, {.seed = 7, .greedy = true}),
               attention{score, normalize::hard{.seed = 7, .greedy = true}, combine::weighted_sum{}}, state_of);

    CHECK(once(xu::soft(number(1), number(1), single(2)), number(1)) == about(weight(tanh_lead)));
    CHECK(once(xu::gated(number(1), number(1), single(2), number(0), single(0)), number(1)) ==
          about(weight(tanh_lead) / 2));
    CHECK(once(xu::hard(number(1), number(1), single(2), {.greedy = true}), number(1)) == 1);
    // 2 ((1 - 0.75)² + (1 - 0.25)²)
    auto seen = filled<double, 2>({1, 2}, 0.75);
    seen(0, 1) = 0.25;
    CHECK(xu::doubly_stochastic(std::vector{seen}, {2}, {1}, 2.0)() == about(1.25));
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

    // d = 1 + 0.5 + 0.5 = 2; then the same of 1 + c.
    const state_and_word query{number(1), number(0.5)};
    const score::conv_s2s one{number(1), single(0.5)};
    CHECK(once(gehring::layer(one.W, one.b), query) == about(weight(2)));
    const double c = once(gehring::multi_step(std::vector{one, one}), query);
    CHECK(c == about(weight(2 + weight(2))));
    // Far queries, one after the other: d = ±1e4 each time.
    const auto hops = gehring::multi_step(std::vector{one, one});
    CHECK(once(hops, state_and_word{number(1e4), number(0)}) == 1);
    CHECK(once(hops, state_and_word{number(-1e4), number(0)}) == 0);
}

TEST_CASE("Vaswani et al. 2017")
{
    namespace vaswani = paper::vaswani2017;
    const auto W_Q = random({Q, 6}, 80), W_K = random({D, 6}, 81), W_V = random({D, 4}, 82), W_O = random({4, 3}, 83);
    const attention head{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    check_same(vaswani::scaled_dot(), head, state_of);
    check_same(vaswani::multi_head(2, W_Q, W_K, W_V, W_O), multi_head{std::vector{head, head}, W_Q, W_K, W_V, W_O},
               state_of);

    // Heads of width 4, all ones: e = 4/√4 and 8/√4, and both values count once.
    auto ask = filled<double, 2>({1, 8}, 1.0);
    for (std::size_t k = 4; k < 8; ++k) ask(0, k) = 2;
    const auto ones = filled<double, 2>({1, 8}, 1.0);
    array<double, 2> of_heads({1, 2}, 1.0);
    CHECK(once(vaswani::multi_head(2, ask, ones, of_heads, filled<double, 2>({2, 1}, 1.0)), number(1)) ==
          about(weight(2) + weight(4)));

    random_source source{1};
    const auto made = vaswani::make_multi_head<float>(source, {.model = 6, .heads = 3});
    CHECK(made.heads.size() == 3);
    CHECK(shape_of(made.W_O) == shape_of_rank<2>{6, 6});
    const auto message = support::message_of<error>([&] { vaswani::make_multi_head<float>(source, {6, 4}); });
    CHECK(message == "vaswani2017::make_multi_head: 4 heads for a width of 6; the number of heads must divide it");
}

TEST_CASE("Yin et al. 2016")
{
    namespace yin = paper::yin2016;
    const auto W_0 = random({T, D}, 90), W_1 = random({T, D}, 91), alone = random({2 * D, 3}, 92),
               with_maps = random({4 * D, 3}, 93);
    const auto b = random({3}, 94);
    const abcnn::sentences pair{random({B, T, D}, 95), some, random({B, 3, D}, 96), lengths{1, 3}};
    const auto check = [&pair](const auto& preset, const auto& composition) {
        static_assert(std::is_same_v<decltype(preset), decltype(composition)>);
        const auto is = preset(pair), must = composition(pair);
        CHECK(same_bits(is.first, must.first));
        CHECK(same_bits(is.second, must.second));
    };
    using namespace heed::abcnn;
    check(yin::bcnn(alone, b, 2), block{words_alone{}, alone, b, 2, average_pooling{}});
    check(yin::abcnn1(W_0, W_1, with_maps, b, 2), block{feature_maps{W_0, W_1}, with_maps, b, 2, average_pooling{}});
    check(yin::abcnn2(alone, b, 2), block{words_alone{}, alone, b, 2, attention_pooling{}});
    check(yin::abcnn3(W_0, W_1, with_maps, b, 2), block{feature_maps{W_0, W_1}, with_maps, b, 2, attention_pooling{}});

    // Sentences of one word each, 0 and 1: A = 1/2. The second one's feature:
    const abcnn::sentences words{filled<double, 3>({1, 1, 1}, 0.0), lengths{1}, filled<double, 3>({1, 1, 1}, 1.0),
                                 lengths{1}};
    const auto second = [&words](const auto& block) { return block(words).second(0, 0, 0); };
    const auto ones = filled<double, 2>({2, 1}, 1.0);
    const double apart = std::tanh(1.5) - std::tanh(0.5);
    CHECK(second(yin::bcnn(number(1), single(0), 1)) == about(std::tanh(1.0)));
    CHECK(second(yin::abcnn1(number(1), number(1), ones, single(0), 1)) == about(std::tanh(1.5)));
    CHECK(second(yin::abcnn2(number(1), single(0), 1)) == about(std::tanh(1.0) / (1 + std::tanh(1.0))));
    CHECK(second(yin::abcnn3(number(1), number(1), ones, single(0), 1)) == about(std::tanh(1.5) / (1 + apart)));
}

TEST_CASE("Raffel et al. 2017")
{
    namespace raffel = paper::raffel2017;
    const auto r = single(-0.3);
    const score::additive score{W, U, v};
    check_same(raffel::monotonic(W, U, v, r), attention{score, normalize::monotonic{r}, combine::weighted_sum{}},
               state_of);
    check_same(raffel::monotonic_hard(W, U, v, r),
               attention{score, normalize::monotonic_hard{r}, combine::weighted_sum{}}, state_of);

    // r is such that p = 1/2 at the first position.
    const auto even = single(-2 * std::tanh(1.0));
    const double p = weight(tanh_lead);
    const auto [first, second] = twice(raffel::monotonic(number(1), number(1), single(2), even), number(1));
    CHECK(first.context(0, 0) == about(p / 2));
    CHECK(second.context(0, 0) == about(p * (0.25 + p / 2)));
    const auto below = single(-2 * std::tanh(1.0) - 0.1);
    CHECK(once(raffel::monotonic_hard(number(1), number(1), single(2), below), number(1)) == 1);
}

TEST_CASE("Chiu and Raffel 2018")
{
    namespace chiu = paper::chiu2018;
    const auto r = single(-0.3), s = single(0.7);
    const score::additive score{W, U, v};
    check_same(chiu::chunkwise(W, U, v, r, s, 2),
               attention{score, normalize::chunkwise{2, s, normalize::monotonic{r}}, combine::weighted_sum{}},
               state_of);
    check_same(chiu::chunkwise_hard(W, U, v, r, s, 2),
               attention{score, normalize::chunkwise{2, s, normalize::monotonic_hard{r}}, combine::weighted_sum{}},
               state_of);

    // The scan of the test above; from where it stops, softmax looks back at both positions.
    const auto even = single(-2 * std::tanh(1.0)), below = single(-2 * std::tanh(1.0) - 0.1);
    const double p = weight(tanh_lead);
    CHECK(once(chiu::chunkwise(number(1), number(1), single(2), even, single(1), 2), number(1)) == about(p / 2 * p));
    CHECK(once(chiu::chunkwise_hard(number(1), number(1), single(2), below, single(1), 2), number(1)) == about(p));
}

TEST_CASE("Graves 2013")
{
    const auto W_shapes = random({Q, 6}, 50), W_kappa = random({Q, 3}, 51);
    const auto b = random({6}, 52), b_kappa = random({3}, 53);
    check_same(paper::graves2013::window(W_shapes, b, W_kappa, b_kappa),
               attention{score::gaussian_mixture{W_shapes, b, W_kappa, b_kappa}, normalize::retention{},
                         combine::weighted_sum{}},
               state_of);

    // One window of height and width 1, which moves by one position at each step, the first time to the first word.
    const auto [first, second] =
        twice(paper::graves2013::window(filled<double, 2>({1, 2}, 0), filled<double, 1>({2}, 0), number(0), single(0)),
              number(1));
    CHECK(first.context(0, 0) == about(std::exp(-1.0)));
    CHECK(second.context(0, 0) == 1);
}
