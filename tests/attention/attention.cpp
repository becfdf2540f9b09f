// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/heed.hpp>
#include <heed/verify/problem.hpp>
#include <support/mechanisms.hpp>

#include <limits>
#include <string>
#include <type_traits>

using namespace heed;
using support::random;
namespace running = heed::detail::verifying;

namespace {

attention<score::additive<array<double, 2>, array<double, 1>>, normalize::softmax, combine::weighted_sum> additive()
{
    return {{random({3, 4}, 1), random({5, 4}, 2), random({4}, 3)}, {}, {}};
}

const array<double, 3>& annotations()
{
    static const auto h = random({2, 6, 5}, 4);
    return h;
}

}  // namespace

// A mechanism without memory costs nothing: its state is the number of the next query, and of the head.
static_assert(sizeof(attention_state<no_state>) == 2 * sizeof(std::size_t));
static_assert(std::is_empty_v<normalize::temporal> && std::is_empty_v<combine::weighted_sum>);
// The concepts tell the policies apart from what is none.
static_assert(scorer<score::dot> && scorer<score::additive<array<float, 2>, array<float, 1>>>);
static_assert(normalizer<normalize::softmax> && normalizer<normalize::temporal>);
static_assert(combiner<combine::weighted_sum> && combiner<combine::elementwise_sum>);
static_assert(!scorer<int> && !scorer<normalize::softmax> && !normalizer<lengths> && !combiner<visited>);

TEST_CASE("memory: keys once a batch, padding cleared")
{
    const auto attend = additive();
    const auto memory = attend.on(annotations(), lengths{6, 2});
    CHECK(memory.batch() == 2);
    CHECK(memory.positions() == 6);
    CHECK(memory.width() == 5);
    CHECK(memory.values(0, 5, 4) == annotations()(0, 5, 4));
    CHECK(memory.values(1, 1, 4) == annotations()(1, 1, 4));
    CHECK(memory.values(1, 2, 0) == 0);
    CHECK(support::same_bits(memory.keys, ops::linear(memory.values, attend.score.U)));
    for (const std::size_t row : {0u, 1u}) CHECK(attend.on(annotations()).real[row] == 6);

    // A score that prepares nothing has the values themselves for keys.
    const attention plain{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto own = plain.on(annotations(), lengths{6, 2});
    CHECK(support::same_bits(own.keys, own.values));
}

TEST_CASE("weights of a sentence are positive and sum to 1")
{
    const support::mechanism_sizes sizes;
    const auto check = [&](const std::string& name, const auto& attend, const auto&, bool, auto describe) {
        CAPTURE(name);
        running::problem<std::remove_cvref_t<decltype(attend)>, array<double, 3>> p{attend, annotations(), {}};
        running::setting<decltype(describe)> at{describe, running::layout_of(describe), lengths{6, 2}, 3};
        for (const auto& part : at.layout) p.parts.push_back(random({2, 3, part.width}, 5));
        for (const auto& weights : running::run<running::form::step>(p, at).weights) {
            const std::size_t width = weights.size() / 12;
            for (std::size_t b = 0; b < 2; ++b) {
                for (std::size_t d = 0; d < width; ++d) {
                    double sum = 0;
                    for (std::size_t j = 0; j < 6; ++j) {
                        const double w = weights.data()[(b * 6 + j) * width + d];
                        CHECK((j < (b == 0 ? 6 : 2) ? w > 0 : w == 0));
                        sum += w;
                    }
                    CHECK(sum == doctest::Approx(1.0).epsilon(1e-14));
                }
            }
        }
    };
    support::each_mechanism_per_position(sizes, check);
    support::each_mechanism_per_dimension(sizes, check);
}

TEST_CASE("one taped tensor is enough: parameters, annotations or the query")
{
    const auto attend = additive();
    const auto query = random({2, 3}, 5);
    const auto memory = attend.on(annotations(), lengths{6, 2});
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
    const auto h = on.parameter(annotations());
    const auto q = on.parameter(query);
    SUBCASE("parameters")
    {
        check(model, annotations(), query);
        CHECK(on.gradient(model.score.W).data[0] != 0);
    }
    SUBCASE("annotations")
    {
        check(attend, h, query);
        CHECK(on.gradient(h).data[0] != 0);
    }
    SUBCASE("the query")
    {
        check(attend, annotations(), q);
        CHECK(on.gradient(q).data[0] != 0);
    }
    SUBCASE("parameters and the query")
    {
        check(model, annotations(), q);
        CHECK(on.gradient(q).data[0] != 0);
    }
    SUBCASE("all")
    {
        check(model, h, q);
        CHECK(on.gradient(h).data[0] != 0);
    }
}

TEST_CASE("the previous word: alone, or projected for all steps at once")
{
    const score::with_word score{score::additive{random({3, 4}, 1), random({5, 4}, 2), random({4}, 3)},
                                 random({2, 4}, 4)};
    const attention attend{score, normalize::temporal{}, combine::weighted_sum{}};
    const auto memory = attend.on(annotations(), lengths{6, 2});
    const auto states = random({2, 3, 3}, 5), words = random({2, 3, 2}, 6);
    const auto projected = attend.score.project_words(words);
    auto one = attend.start(memory), two = one;
    for (std::size_t s = 0; s < 3; ++s) {
        const auto a = attend.step(memory, state_and_word{ops::step_of(states, s), ops::step_of(words, s)}, one);
        const auto b =
            attend.step(memory, state_and_projected_word{ops::step_of(states, s), ops::step_of(projected, s)}, two);
        CHECK(support::distance(a.context, b.context) < 1e-14);
        CHECK(support::distance(a.weights, b.weights) < 1e-14);
        one = a.state;
        two = b.state;
    }
}

TEST_CASE("parameters by name, in order, and counted")
{
    attention attend{
        score::with_word{score::additive_per_dimension{random({3, 4}, 1), random({5, 4}, 2), random({4, 5}, 3)},
                         random({2, 4}, 4)},
        normalize::temporal{}, combine::elementwise_sum{}};
    std::vector<std::string> names;
    for_each_parameter(attend, [&](const std::string& name, auto& x) {
        names.push_back(name + " " + shape_text(shape_of(x)));
        x.data()[0] = 7;  // it is the model's own memory
    });
    CHECK(names ==
          std::vector<std::string>{"score.base.W [3,4]", "score.base.U [5,4]", "score.base.V [4,5]", "score.Y [2,4]"});
    CHECK(attend.score.Y(0, 0) == 7);
    CHECK(parameter_count(attend) == 12 + 20 + 20 + 8);
    CHECK(parameter_count(attention{score::dot{}, normalize::softmax{}, combine::weighted_sum{}}) == 0);
    const auto single =
        transform_parameters(attend, [](const std::string&, const auto& x) { return support::converted<float>(x); });
    static_assert(std::is_same_v<element_of<decltype(single.score.base.W)>, float>);
}

TEST_CASE("parameters as a list: the model's own numbers, and variables on a tape")
{
    attention attend = additive();
    const auto all = numbers_of<double>(attend);
    REQUIRE(all.size() == 3);
    CHECK(all[1].name == "score.U");
    CHECK(all[1].numbers.data == attend.score.U.data());
    CHECK(all[1].numbers.size() == attend.score.U.size());

    ad::tape<double> on;
    std::vector<ad::named_variable<double>> variables;
    const auto lifted = ad::lift(on, attend, variables);
    const auto memory = lifted.on(annotations(), lengths{6, 2});
    const auto now = lifted.step(memory, random({2, 3}, 1), lifted.start(memory));
    on.backward(ops::inner(now.context, support::uneven(now.context.shape())));
    REQUIRE(variables.size() == 3);
    CHECK(variables[2].name == "score.v");
    CHECK(variables[2].numbers.data() == attend.score.v.data());
    CHECK(support::same_bits(on.gradient(variables[2].numbers), on.gradient(lifted.score.v)));
    CHECK(on.gradient(variables[2].numbers).data[0] != 0);
}

TEST_CASE("what does not fit is refused by name")
{
    const auto attend = additive();
    const auto memory = attend.on(annotations(), lengths{6, 2});
    const auto start = attend.start(memory);
    const auto says = [](auto&& f, const std::string& part) {
        const std::string message = support::message_of<shape_error>(f);
        CHECK_MESSAGE(support::contains(message, part), message);
    };
    says([&] { attend.on(annotations(), lengths{6}); }, "attention::on: 1 lengths for a batch of 2 rows");
    says([&] { attend.on(annotations(), lengths{6, 7}); }, "attention::on: the length of row 1 is 7");
    says([&] { attend.on(random({2, 6, 4}, 1), lengths{6, 2}); }, "linear: x is [2,6,4] and the matrix is [5,4]");
    says([&] { attend.step(memory, random({2, 4}, 1), start); }, "linear: x is [2,4] and the matrix is [3,4]");
    says([&] { attend.step(memory, random({3, 3}, 1), start); }, "[3,4] but must be [2,4]");
    says([&] { attend.step(memory, random({3, 3}, 1), start); }, "additive attention");
    says([&] { attend.compose(memory, random({3, 3}, 1), start); }, "[3,4] but must be [2,4]");
    says([&] { attend(memory, random({2, 0, 3}, 1)); }, "");  // no query at all
    const attention temporal{attend.score, normalize::temporal{}, combine::weighted_sum{}};
    const auto other = temporal.start(temporal.on(random({2, 7, 5}, 1)));
    says([&] { temporal.step(temporal.on(annotations()), random({2, 3}, 1), other); }, "[2,7] but must be [2,6]");
    const attention dot{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    says(
        [&] {
            dot.step(dot.on(annotations()), random({2, 4}, 1), dot.start(dot.on(annotations())));
        },
        "the projected query is [2,4] but must be [2,5]");
}

TEST_CASE("a state of another batch is refused, however queries are answered")
{
    constexpr std::size_t D = 4;
    const auto each = [](const char* what, const auto& attend, std::size_t T) {
        const auto memory = attend.on(random({3, T, D}, 1), lengths{T, 3, T});
        const auto right = attend.start(memory);
        const auto query = random({3, D}, 2);
        const auto queries = random({3, 8, D}, 3);
        auto result = attend.step(memory, query, right);
        for (const std::size_t B : {std::size_t{1}, std::size_t{2}, std::size_t{4}}) {
            const auto other = attend.on(random({B, T, D}, 4));
            const auto first = attend.start(other);
            for (const auto& state : {first, attend.step(other, random({B, D}, 5), first).state}) {
                CAPTURE(what);
                CAPTURE(B);
                CAPTURE(T);
                const auto refuses = [&](auto&& ask) {
                    CHECK_THROWS_WITH_AS(ask(), doctest::Contains(("is [" + std::to_string(B)).c_str()), shape_error);
                };
                refuses([&] { return attend.step(memory, query, state); });
                refuses([&] { return attend.read(memory, query, state); });
                refuses([&] { return attend.compose(memory, query, state); });
                refuses([&] { return attend.step(memory, query, state, lengths{2, 2, 2}); });
                refuses([&] { return attend.step(growing(memory), query, state); });
                refuses([&] { return attend.step(shared_memory(memory, {0, 1, 2}), query, state); });
                refuses([&] { attend.step_into(result, memory, query, state); });
                refuses([&] { return attend.read_all(memory, queries, state); });
                refuses([&] { return attend.weights_of(memory, queries, state, no_mask{}); });
            }
        }
        CHECK_NOTHROW(attend.read_all(memory, queries, right));
        CHECK_NOTHROW(attend.weights_of(memory, queries, result.state, no_mask{}));
    };
    const auto plain = [] { return score::scaled_dot{}; };
    const score::additive add{random({D, 3}, 1), random({D, 3}, 2), random({3}, 3)};
    const combine::weighted_sum sum{};
    for (const std::size_t T : {std::size_t{6}, std::size_t{600}}) {  // 600: tile by tile
        each("temporal", attention{plain(), normalize::temporal{}, sum}, T);
        each("a kernel, temporal", attention{add, normalize::temporal{}, sum}, T);
        each("monotonic", attention{plain(), normalize::monotonic{random({1}, 6)}, sum}, T);
        each("local_m, temporal", attention{plain(), normalize::local_m{1, normalize::temporal{}}, sum}, T);
        // The score makes its state anew from the keys, and would never look at the one given.
        each("forgetting",
             attention{score::forgetting{plain(), random({D, 1}, 7), random({1}, 8)}, normalize::softmax{}, sum}, T);
        each("with_neighbours", attention{score::with_neighbours{add, random({3, 3}, 9)}, normalize::softmax{}, sum},
             T);
    }
}

TEST_CASE("training per-dimension attention keeps no [B,T,D] a step")
{
    const attention attend{score::additive_per_dimension{random({3, 8}, 1), random({16, 8}, 2), random({8, 16}, 3)},
                           normalize::softmax{}, combine::elementwise_sum{}};
    const auto h = random({4, 64, 16}, 4);
    const auto query = random({4, 3}, 5);
    ad::tape<double> on;
    on.memory().allocate(std::size_t{32} << 20);
    on.clear();
    const auto lifted = ad::lift(on, attend);
    const auto memory = lifted.on(on.constant(h), lengths::full(4, 64));
    auto state = lifted.start(memory);
    const auto q = on.parameter(query);
    state = lifted.read(memory, q, state).state;
    const auto before = on.memory().mark();
    state = lifted.read(memory, q, state).state;
    const auto after = on.memory().mark();
    REQUIRE(before.block == after.block);
    CHECK(after.used - before.used < 4 * 64 * 16 * sizeof(double) / 4);
}

namespace {

/// step, compose and read: values and gradients, at a size where work is shared out.
template <class T>
void check_large(const auto& attend, const auto& describe, std::size_t width, double tolerance)
{
    using running::form;
    const auto model = running::converted<T>(attend);
    running::problem<std::remove_cvref_t<decltype(model)>, array<T, 3>> p{model, random<T>({9, 40, width}, 4), {}};
    running::setting<std::remove_cvref_t<decltype(describe)>> at{describe, running::layout_of(describe),
                                                                 lengths{40, 39, 0, 1, 17, 32, 40, 8, 5}, 3};
    for (const auto& part : at.layout) p.parts.push_back(random<T>({9, 3, part.width}, 5));
    const auto close = [&](const auto& is, const auto& must) {
        const auto most = running::compare(is, must);
        CHECK_MESSAGE(most.worst < tolerance, most.where);
    };
    const auto values = running::results<form::compose, T>(p, at);
    const auto slopes = running::gradients<form::compose, true, T>(p, at);
    const auto read_slopes = running::gradients<form::compose, false, T>(p, at);
    for (const std::size_t count : {1u, 2u, 3u}) {
        set_threads(count);
        const auto once = running::results<form::step, T>(p, at);
        const auto once_slopes = running::gradients<form::step, true, T>(p, at);
        close(once, values);
        close(once_slopes, slopes);
        close(running::gradients<form::read, false, T>(p, at), read_slopes);
        CHECK(running::differing_bits(running::results<form::step, T>(p, at), once) == "");
        CHECK(running::differing_bits(running::gradients<form::step, true, T>(p, at), once_slopes) == "");
        CHECK(running::differing_bits(running::results<form::step_into, T>(p, at), once) == "");
        set_threads(1);
    }
}

}  // namespace

TEST_CASE("step is compose where work is shared out over threads, in float and in double")
{
    // Small parameters keep scores of so wide layers within a few units.
    const std::size_t Q = 37, A = 130, D = 101;
    const auto W = random({Q, A}, 1, 0.1), U = random({D, A}, 2, 0.1), V = random({A, D}, 3, 0.2);
    const auto v = random({A}, 4, 0.3);
    const auto check = [&](const auto& attend) {
        check_large<double>(attend, support::plain_query{Q}, D, 1e-12);
        check_large<float>(attend, support::plain_query{Q}, D, 1e-4);
    };
    check(attention{score::additive{W, U, v}, normalize::softmax{}, combine::weighted_sum{}});
    check(attention{score::additive{W, U, v}, normalize::temporal{}, combine::weighted_sum{}});
    check(attention{score::additive_per_dimension{W, U, V}, normalize::softmax{}, combine::elementwise_sum{}});
}

TEST_CASE("scores of 1e4 through a score of heed's own, in float")
{
    // v = (1e4, …): every hidden number that is 1 or -1 counts 1e4, and the scores reach 4e4.
    const auto W = random<float>({3, 4}, 1, 8), U = random<float>({5, 4}, 2, 8);
    const auto v = filled<float, 1>({4}, 1e4f);
    const auto h = random<float>({2, 6, 5}, 3);
    const auto query = random<float>({2, 3}, 4);
    const auto check = [&](const auto& attend) {
        const auto memory = attend.on(h, lengths{6, 3});
        auto state = attend.start(memory);
        ad::tape<float> on;
        const auto lifted = ad::lift(on, attend);
        const auto taped_memory = lifted.on(on.parameter(h), lengths{6, 3});
        auto taped = lifted.start(taped_memory);
        const auto q = on.parameter(query);
        ad::var<float, 0> loss = ops::inner(q, filled<float, 2>({2, 3}, 0.0f));
        for (int s = 0; s < 3; ++s) {
            const auto now = attend.step(memory, query, state);
            CHECK(support::all_finite(now.context));
            CHECK(support::all_finite(now.weights));
            state = now.state;
            const auto then = lifted.step(taped_memory, q, taped);
            loss = ops::add(loss, ops::inner(then.context, support::uneven<float>(shape_of(now.context))));
            taped = then.state;
        }
        on.backward(loss);
        for_each_parameter(lifted,
                           [&](const std::string&, const auto& x) { CHECK(support::all_finite(on.gradient(x))); });
        CHECK(support::all_finite(on.gradient(q)));
    };
    check(attention{score::additive{W, U, v}, normalize::softmax{}, combine::weighted_sum{}});
    check(attention{score::additive{W, U, v}, normalize::temporal{}, combine::weighted_sum{}});
    check(attention{score::additive_per_dimension{W, U, filled<float, 2>({4, 5}, 1e4f)}, normalize::softmax{},
                    combine::elementwise_sum{}});
}
