// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include <heed/heed.hpp>
#include <heed/train/sgd.hpp>
#include <support/approx.hpp>
#include <support/tensors.hpp>

// Runtime mistakes of docs/how_to/what_goes_wrong.md, which the compiler cannot detect, and their fixes. The page
// quotes the sections.

namespace {

using namespace heed;
using support::random;

}  // namespace

TEST_CASE("forgotten lengths: the padding gets weight")
{
    const attention attend{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    auto annotations = random<float>({2, 5, 4}, 1);
    for (std::size_t t = 3; t < 5; ++t) {
        for (std::size_t d = 0; d < 4; ++d) annotations(1, t, d) = 0;  // the second sentence has three words
    }
    const auto query = random<float>({2, 4}, 2);

    const auto wrong = attend.on(annotations);
    CHECK(attend.step(wrong, query, attend.start(wrong)).weights(1, 4) > 0);

    // section: lengths
    const auto memory = attend.on(annotations, lengths{5, 3});
    const auto seen = attend.step(memory, query, attend.start(memory));
    // end
    CHECK(seen.weights(1, 4) == 0);
    CHECK(seen.weights(1, 3) == 0);
}

TEST_CASE("backward runs once on a tape that is not cleared")
{
    const attention attend{score::general{random<float>({4, 4}, 1)}, normalize::softmax{}, combine::weighted_sum{}};
    const auto h = random<float>({2, 5, 4}, 2), q = random<float>({2, 3, 4}, 3);
    const int steps = 3;
    ad::tape<float> kept, tape;
    const auto step_on_kept = [&] {
        const auto lifted = ad::lift(kept, attend);
        kept.backward(ops::dot(lifted(lifted.on(h), q), q));
    };
    step_on_kept();
    const std::size_t after_one = kept.entries();
    CHECK_THROWS_WITH_AS(step_on_kept(), doctest::Contains("call tape.clear() before each step"), error);
    kept.clear();
    step_on_kept();

    // section: clear
    for (int step = 0; step < steps; ++step) {
        tape.clear();
        const auto lifted = ad::lift(tape, attend);
        tape.backward(ops::dot(lifted(lifted.on(h), q), q));
        // … the optimizer reads the gradients
    }
    // end
    CHECK(tape.entries() == after_one);
}

TEST_CASE("a model lifted before the loop, and a step without backward")
{
    attention attend{score::general{random<float>({4, 4}, 1)}, normalize::softmax{}, combine::weighted_sum{}};
    const auto h = random<float>({2, 5, 4}, 2), q = random<float>({2, 3, 4}, 3);
    const auto before = attend.score.W;
    const int steps = 3;
    ad::tape<float> tape;
    train::sgd<float> optimizer({.rate = 0.1});
    {
        const auto lifted = ad::lift(tape, attend);
        CHECK_THROWS_WITH_AS(
            optimizer.step(attend, lifted, tape),
            doctest::Contains("there are no gradients on this tape yet; call tape.backward(loss) first"), error);
        tape.backward(ops::dot(lifted(lifted.on(h), q), q));
        optimizer.step(attend, lifted, tape);
        CHECK_THROWS_WITH_AS(optimizer.step(attend, lifted, tape),
                             doctest::Contains("a second step with the gradients of one recording"), error);
        tape.clear();
        CHECK_THROWS_WITH_AS(lifted(lifted.on(h), q),
                             "This variable belongs to a recording that was cleared: lift the model again after "
                             "tape.clear()",
                             error);
    }

    // section: step
    for (int step = 0; step < steps; ++step) {
        tape.clear();
        const auto lifted = ad::lift(tape, attend);  // after each clear
        tape.backward(ops::dot(lifted(lifted.on(h), q), q));
        optimizer.step(attend, lifted, tape);  // after each backward
    }
    // end
    CHECK(optimizer.steps() == 4);
    CHECK(attend.score.W != before);
}

TEST_CASE("the logarithm of weights in the padding")
{
    const attention attend{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const lengths source{5, 3};
    const auto h = random<float>({2, 5, 4}, 1);
    const auto q = random<float>({2, 4}, 2);
    auto reference = zeros<float>(2, 1, 5);  // [B,S,T]: word 1 belongs to position 1
    reference(0, 0, 1) = reference(1, 0, 1) = 1;

    ad::tape<float> tape;
    const auto lifted = ad::lift(tape, attend);
    const auto memory = lifted.on(tape.constant(h), source);
    const auto asked = tape.parameter(q);
    const auto weights = lifted.step(memory, asked, lifted.start(memory)).weights;  // [B,T]

    const auto logarithms = ops::log(weights);
    CHECK(std::isinf(view_of(logarithms).data[5 + 4]));  // the padding of row 1
    const auto of_words = ops::dot(logarithms, array<float, 2>{{0, -1, 0, 0, 0}, {0, -1, 0, 0, 0}});
    CHECK(std::isnan(*view_of(of_words).data));  // 0 · -inf

    // section: loss
    const auto loss = penalty::guided_alignment(std::vector{weights}, reference, source, lengths{1, 1});
    // end
    const float must = -std::log(view_of(weights).data[1]) - std::log(view_of(weights).data[5 + 1]);
    CHECK(*view_of(loss).data == support::approx(must));
    tape.backward(loss);
    for (std::size_t i = 0; i < q.size(); ++i) CHECK(std::isfinite(tape.gradient(asked).data[i]));
}

TEST_CASE("a list of sizes and a list of numbers")
{
    const array<float, 1> one({3});
    CHECK(one.size() == 1);
    CHECK(one(0) == 3);

    // section: zeros
    const auto three = zeros<float>(3);                        // [3]: 0 0 0
    const auto table = zeros<float>(2, 3);                     // [2,3]
    const array<float, 2> ones = filled<float, 2>({2, 3}, 1);  // [2,3], all 1
    const array<float, 1> numbers{1, 2, 3};                    // [3]: 1 2 3
    // end
    CHECK(shape_of(three) == shape_of_rank<1>{3});
    CHECK(three(2) == 0);
    CHECK(shape_of(table) == shape_of_rank<2>{2, 3});
    CHECK(table(1, 2) == 0);
    CHECK(ones(1, 2) == 1);
    CHECK(numbers(2) == 3);
    CHECK(shape_of(zeros<double>(2, 0, 4, 1)) == shape_of_rank<4>{2, 0, 4, 1});
}

#ifndef XTENSOR_ENABLE_ASSERT
TEST_CASE("too many and too few indices")
{
    const array<float, 2> weights{{1, 2, 3}, {4, 5, 6}};  // [B,T]
    CHECK(weights(0, 1, 0) == weights(1, 0));             // the first of three is left out: position 1 of row 0 is 2
    CHECK(weights(1) == weights(0, 1));                   // 0 is put before one
    // section: rank
    const shape_of_rank<2> shape = shape_of(weights);  // the compiler knows the rank: [B,T]
    const float weight = weights(0, 1);                // row 0, position 1
    // end
    CHECK(shape == shape_of_rank<2>{2, 3});
    CHECK(weight == 2);
}
#endif

TEST_CASE("a shape that does not fit")
{
    const attention attend{score::additive{zeros<float>(6, 4), zeros<float>(8, 4), zeros<float>(4)},
                           normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(zeros<float>(2, 7, 8));
    CHECK(support::message_of<shape_error>(
              [&] { (void)attend.step(memory, zeros<float>(2, 5), attend.start(memory)); }) ==
          "score::additive: the query [2,5] does not fit W [6,4], U [8,4], v [4] (linear: x is [2,5] and the matrix is "
          "[6,4], but the matrix must have 5 rows, one for each column of x)");
}

TEST_CASE("the shape and the view of a variable by heed's own functions")
{
    ad::tape<float> tape;
    const auto x = tape.constant(zeros<float>(2, 3));
    CHECK(heed::shape_of(x) == shape_of_rank<2>{2, 3});
    CHECK(heed::view_of(x).shape == ad::shape_of(x));
    CHECK(ad::view_of(x).data == x.data());
}
