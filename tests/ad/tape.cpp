// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ad/tape.hpp>

#include <heed/heed.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <support/gradients.hpp>

using namespace heed;
using support::random;

TEST_CASE("backward visits a repeatedly shared value once per use: 2^60 paths, 62 entries")
{
    const array<double, 1> one{1.0};
    ad::tape<double> on;
    const auto x = on.parameter(one);
    auto y = x;
    std::vector<int> visits(60, 0);
    int order = 60;
    bool in_order = true;
    for (int i = 0; i < 60; ++i) {
        y = ops::add(y, y);
        on.record([at = &visits[static_cast<std::size_t>(i)], i, next = &order, good = &in_order] {
            ++*at;
            *good = *good && i == *next - 1;
            *next = i;
        });
    }
    const auto loss = ops::dot(y, one);
    CHECK(on.entries() == 1 + 60 + 60 + 1);  // the parameter, the sums, our counters, the loss
    on.backward(loss);
    CHECK(on.gradient(x).data[0] == std::ldexp(1.0, 60));
    for (const int count : visits) CHECK(count == 1);
    CHECK(in_order);
}

TEST_CASE("a chain of a million operations")
{
    // A recursive backward pass would overflow the stack here.
    const array<float, 1> one{1.0f};
    ad::tape<float> on;
    const auto x = on.parameter(one);
    auto y = x;
    for (int i = 0; i < 1000000; ++i) y = ops::scale(y, i % 2 == 0 ? 2.0f : 0.5f);
    CHECK(on.entries() == 1000001);
    on.backward(ops::dot(y, one));
    CHECK(on.gradient(x).data[0] == 1.0f);
}

TEST_CASE("every step of attention adds the same number of entries")
{
    const attention attend{score::additive{random({3, 4}, 1), random({5, 4}, 2), random({4}, 3)}, normalize::temporal{},
                           combine::weighted_sum{}};
    const auto annotations = random({2, 6, 5}, 4);
    const auto query = random({2, 3}, 5);
    const auto entries = [&](std::size_t steps) {
        ad::tape<double> on;
        const auto lifted = ad::lift(on, attend);
        const auto memory = lifted.on(on.parameter(annotations), lengths{6, 4});
        auto state = lifted.start(memory);
        const auto q = on.parameter(query);
        for (std::size_t s = 0; s < steps; ++s) state = lifted.step(memory, q, state).state;
        return on.entries();
    };
    const std::size_t ten = entries(10), twenty = entries(20), hundred = entries(100);
    CHECK(twenty > ten);
    CHECK(hundred - twenty == 8 * (twenty - ten));
}

TEST_CASE("an operation without a required gradient is not recorded")
{
    ad::tape<double> on;
    const auto c = on.constant(random({2, 3}, 1));
    const auto y = ops::tanh(ops::add(c, ops::linear(c, random({3, 3}, 2))));
    CHECK(on.entries() == 0);
    CHECK_FALSE(y.wanted());
    const auto w = random({3, 3}, 3);
    const auto z = ops::linear(y, on.parameter(w));
    CHECK(on.entries() == 2);
    CHECK(z.wanted());
}

TEST_CASE("a parameter that the loss does not depend on has a gradient of 0")
{
    const auto w = random({2, 2}, 1);
    const auto unused = random({3}, 2);
    ad::tape<double> on;
    const auto x = on.parameter(w);
    const auto z = on.parameter(unused);
    (void)ops::tanh(z);  // recorded, but not part of the loss
    on.backward(ops::dot(x, support::uneven(x.shape())));
    for (std::size_t i = 0; i < 3; ++i) CHECK(on.gradient(z).data[i] == 0);
    CHECK(support::same_bits(on.gradient(x), support::uneven(x.shape())));
}

TEST_CASE("a cleared tape gives the same results and allocates no more memory")
{
    attention attend{score::additive_per_dimension{random({3, 4}, 1), random({5, 4}, 2), random({4, 5}, 3)},
                     normalize::temporal{}, combine::elementwise_sum{}};
    const auto annotations = random({3, 40, 5}, 4), queries = random({3, 20, 3}, 5);
    ad::tape<double> on;
    const auto gradient = [&] {
        const auto lifted = ad::lift(on, attend);
        const auto memory = lifted.on(on.parameter(annotations), lengths{40, 7, 0});
        const auto contexts = lifted(memory, on.constant(queries));
        on.backward(ops::dot(contexts, support::uneven(contexts.shape())));
        auto result = copy_of(on.gradient(lifted.score.U));
        on.clear();
        return result;
    };
    const auto first = gradient();
    gradient();
    const std::size_t enough = on.memory().capacity();
    CHECK(enough > 0);
    for (int again = 0; again < 5; ++again) {
        CHECK(support::same_bits(gradient(), first));
        CHECK(on.memory().capacity() == enough);
        CHECK(on.entries() == 0);
    }
}

TEST_CASE("a gradient is final once the backward pass has passed the parameter's first use, at any time of creation")
{
    const auto first = random({3, 4}, 1), second = random({4, 2}, 2), table = random({6, 3}, 5);
    const auto bias = random({2}, 4), unused = random({5}, 3);
    ad::tape<double> on;
    const auto b = on.parameter(bias);
    const auto V = on.parameter(second), W = on.parameter(first);
    const auto u = on.parameter(unused);
    const auto E = on.parameter(table);
    const auto x = ops::lookup(E, word_ids(1, 3, 2));
    const auto hidden = ops::tanh(ops::linear(x, W));
    const auto y = ops::linear(hidden, V, b);
    const auto again = ops::linear(hidden, V);
    std::vector<ad::slot<double>*> finals;
    on.when_final([](void* to, ad::slot<double>& s) { static_cast<decltype(finals)*>(to)->push_back(&s); }, &finals);
    on.backward(ops::add(ops::dot(y, support::uneven(y.shape())), ops::dot(again, support::uneven(y.shape()))));
    const auto place = [&](const auto& p) {
        return std::find(finals.begin(), finals.end(), &p.slot()) - finals.begin();
    };
    CHECK(finals.size() == 5);
    CHECK(place(V) < place(W));
    CHECK(place(b) < place(W));
    CHECK(place(W) < place(E));
    CHECK(place(u) == 4);
    CHECK_GRADIENT([](const auto& p, const auto& q, const auto& c,
                      const auto& z) { return ops::linear(ops::tanh(ops::linear(z, p)), q, c); },
                   first, second, bias, random({1, 3, 3}, 6));
}

TEST_CASE("an operation recorded with record(): its parameters are final at the end, not earlier")
{
    const auto values = random({3}, 1);
    ad::tape<double> on;
    const auto x = on.parameter(values);
    const auto unasked = on.make(shape_of_rank<1>{3}, true);
    on.record([&on, x, y = unasked.result] {
        for (std::size_t i = 0; i < 3; ++i) on.adjoint(x)[i] += 2 * on.reached(y)[i];
    });
    bool final = false;
    on.when_final([](void* to, ad::slot<double>&) { *static_cast<bool*>(to) = true; }, &final);
    on.record([&final] { CHECK_FALSE(final); });
    std::fill_n(unasked.data, 3, 1.0);
    on.backward(ops::dot(unasked.result, support::uneven(x.shape())));
    CHECK(final);
    for (std::size_t i = 0; i < 3; ++i) CHECK(on.gradient(x).data[i] == 2 * support::uneven(x.shape())(i));

    // An operation that requests an adjoint too late gets an error, so that no gradient is lost.
    on.clear();
    const auto w = on.parameter(values);
    const auto early = on.make(shape_of_rank<1>{3}, true);
    std::fill_n(early.data, 3, 1.0);
    on.record([&on, w] { (void)on.wanted_adjoint(w); });
    const auto late = ops::scale(w, 2.0);
    const auto loss = ops::add(ops::dot(late, early.result), ops::dot(early.result, late));
    CHECK_THROWS_WITH_AS(on.backward(loss), doctest::Contains("must call wanted()"), error);
}

TEST_CASE("a variable from before clear is rejected, and so are objects that contain it")
{
    const attention attend{score::additive{random({3, 4}, 1), random({5, 4}, 2), random({4}, 3)}, normalize::temporal{},
                           combine::weighted_sum{}};
    const auto annotations = random({2, 6, 5}, 4);
    const auto query = random({2, 3}, 5), other = random({40, 500}, 6);
    const auto u = support::uneven(shape_of_rank<2>{2, 5});
    const std::string says = "This variable belongs to a recording that was cleared: lift the model again after "
                             "tape.clear()";
    ad::tape<double> on;
    const auto lifted = ad::lift(on, attend);
    const auto memory = lifted.on(on.parameter(annotations), lengths{6, 4});
    const auto state = lifted.start(memory);
    const auto q = on.parameter(query);
    const auto now = lifted.step(memory, q, state);
    const auto loss = ops::dot(now.context, u);
    for (int i = 0; i < 20; ++i) (void)ops::scale(on.parameter(other), 2.0);  // so that clear() frees memory
    on.backward(loss);
    const auto refused = [&](auto f) { return support::message_of<error>(f); };
    const auto check_all = [&](const std::string& must) {
        CHECK(refused([&] { (void)q.tape(); }) == must);
        CHECK(refused([&] { (void)q.slot(); }) == must);
        CHECK(refused([&] { (void)q.value(); }) == must);
        CHECK(refused([&] { (void)q.data(); }) == must);
        CHECK(refused([&] { (void)q.size(); }) == must);
        CHECK(refused([&] { (void)q.wanted(); }) == must);
        CHECK(refused([&] { (void)view_of(q); }) == must);
        CHECK(refused([&] { (void)ops::tanh(q); }) == must);
        CHECK(refused([&] { (void)ops::stack(std::vector{q, q}); }) == must);
        CHECK(refused([&] { (void)ops::block(q, std::size_t{0}); }) == must);
        CHECK(refused([&] { (void)lifted.on(annotations); }) == must);  // a lifted model
        CHECK(refused([&] { (void)lifted.start(memory); }) == must);
        CHECK(refused([&] { (void)lifted.step(memory, query, state); }) == must);
        CHECK(refused([&] { (void)ad::checkpoint([](const auto& x) { return ops::tanh(x); }, q); }) == must);
        CHECK(refused([&] { (void)ad::gradient_rows(q); }) == must);
    };
    on.clear();
    check_all(says);
    CHECK(q.shape() == shape_of_rank<2>{2, 3});
    CHECK(refused([&] { on.backward(loss); }) == says);
    CHECK(refused([&] { (void)on.gradient(lifted.score.U); }) == says);
    CHECK(on.entries() == 0);

    // With a newly lifted model: objects from the previous recording.
    const auto anew = ad::lift(on, attend);
    const auto fresh = anew.on(on.parameter(annotations), lengths{6, 4});
    CHECK(refused([&] { (void)anew.step(memory, query, anew.start(fresh)); }) == says);
    CHECK(refused([&] { (void)anew.step(fresh, query, state); }) == says);
    CHECK(refused([&] { (void)anew.step(fresh, q, anew.start(fresh)); }) == says);
    const auto again = anew.step(fresh, on.parameter(query), anew.start(fresh));
    on.backward(ops::dot(again.context, u));
    check_all(says);
}

TEST_CASE("a variable of a destroyed tape, and a variable without a tape")
{
    const auto x = random({2, 3}, 1);
    const auto message = [](const ad::var<double, 2>& of) {
        return support::message_of<error>([&] { (void)ops::tanh(of); });
    };
    ad::var<double, 2> kept, cleared;
    {
        ad::tape<double> on;
        cleared = on.parameter(x);
        on.clear();
        kept = on.parameter(x);
        CHECK(message(kept).empty());
    }
    const std::string gone = "This variable belongs to a tape that was destroyed: ";
    CHECK(support::contains(message(kept), gone));
    CHECK(support::contains(message(cleared), gone));
    // The next tape reuses the place of the last one, and continues its count.
    ad::tape<double> next;
    ad::tape<float> another;
    const auto y = next.parameter(x);
    CHECK(support::contains(message(kept), gone));
    CHECK(message(y).empty());
    CHECK(support::contains(message({}), "This variable is empty: it belongs to no tape"));
}

TEST_CASE("a cleared tape has no gradients")
{
    ad::tape<double> on;
    const array<double, 1> numbers{1, 2};
    const auto x = on.parameter(numbers);
    CHECK(!on.has_gradients());
    on.backward(ops::dot(x, x));
    CHECK(on.has_gradients());
    on.clear();
    CHECK(!on.has_gradients());
}

TEST_CASE("a variable of another tape")
{
    const auto W = random({3, 3}, 1), values = random({2, 3}, 2);
    const auto b = random({3}, 3);
    const auto annotations = random({2, 6, 3}, 4);
    const score::general plain{W};
    const attention attend{plain, normalize::softmax{}, combine::weighted_sum{}};
    ad::tape<double> one, two;
    const auto x = one.parameter(values), y = two.parameter(values);
    const auto refused = [](auto f) {
        return support::contains(support::message_of<error>(f), "This variable belongs to another tape: ");
    };
    CHECK(refused([&] { (void)ops::add(x, y); }));
    CHECK(refused([&] { (void)ops::add(y, x); }));
    CHECK(refused([&] { (void)ops::linear(x, two.parameter(W)); }));
    CHECK(refused([&] { (void)ops::stack(std::vector{x, y}); }));
    CHECK(refused([&] { (void)ops::concat_heads(std::vector{x, y}); }));
    CHECK(refused([&] { (void)ad::checkpoint([](const auto& p, const auto& q) { return ops::add(p, q); }, x, y); }));
    CHECK(refused([&] {
        (void)ops::cross_entropy(one.parameter(annotations), two.parameter(W), one.parameter(b),
                                 ops::expected_words<double>{word_ids(6, 2), std::vector<double>(12, 1.0)}, 0.1);
    }));
    const auto lifted = ad::lift(one, attend);
    const auto memory = lifted.on(annotations);
    CHECK(refused([&] { (void)lifted.step(memory, y, lifted.start(memory)); }));
    CHECK(refused([&] { (void)lifted(memory, two.parameter(annotations)); }));
    const auto far = lifted.on(two.parameter(annotations));
    CHECK(refused([&] { (void)lifted.step(far, x, lifted.start(far)); }));
    const auto loss = ops::dot(x, values);
    CHECK(refused([&] { two.backward(loss); }));
    one.backward(loss);
    CHECK(refused([&] { (void)two.gradient(x); }));
    CHECK(refused([&] { (void)two.adjoint(x); }));
    CHECK(support::same_bits(one.gradient(x), values));
}
