// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/heed.hpp>
#include <support/mechanisms.hpp>

#include <limits>
#include <string>
#include <type_traits>

using namespace heed;
using support::random;

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

/// Weights [2,6], or [2,6,width].
void check_weights(const double* weights, std::size_t width, const lengths& real)
{
    for (std::size_t b = 0; b < 2; ++b) {
        for (std::size_t d = 0; d < width; ++d) {
            double sum = 0;
            for (std::size_t j = 0; j < 6; ++j) {
                const double w = weights[(b * 6 + j) * width + d];
                CHECK((j < real[b] ? w > 0 : w == 0));
                sum += w;
            }
            CHECK(sum == doctest::Approx(1.0).epsilon(1e-14));
        }
    }
}

}  // namespace

TEST_CASE("memory: keys are computed once per batch, and padding is cleared")
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

    // The keys of a score without key preparation are the values themselves.
    const attention plain{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto own = plain.on(annotations(), lengths{6, 2});
    CHECK(support::same_bits(own.keys, own.values));
}

TEST_CASE("weights of a sentence are positive and sum to 1")
{
    const lengths real{6, 2};
    const auto check = [&](const auto& attend) {
        const auto memory = attend.on(annotations(), real);
        auto state = attend.start(memory);
        for (std::size_t s = 0; s < 3; ++s) {
            const auto seen = attend.step(memory, random({2, 3}, 5 + s), state);
            check_weights(seen.weights.data(), seen.weights.size() / 12, real);
            state = seen.state;
        }
    };
    const auto coarse = additive();
    const score::additive_per_dimension fine{coarse.score.W, coarse.score.U, random({4, 5}, 6)};
    check(coarse);
    check(attention{coarse.score, normalize::temporal{}, combine::weighted_sum{}});
    check(attention{fine, normalize::softmax{}, combine::elementwise_sum{}});
    check(attention{fine, normalize::temporal{}, combine::elementwise_sum{}});
}

TEST_CASE("parameters have names and an order, and are counted")
{
    attention attend{
        score::with_word{score::additive_per_dimension{random({3, 4}, 1), random({5, 4}, 2), random({4, 5}, 3)},
                         random({2, 4}, 4)},
        normalize::temporal{}, combine::elementwise_sum{}};
    std::vector<std::string> names;
    for_each_parameter(attend, [&](const std::string& name, auto& x) {
        names.push_back(name + " " + shape_text(shape_of(x)));
        x.data()[0] = 7;  // a view of the model's memory
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

TEST_CASE("a list of parameters: views of the model's tensors, or variables on a tape")
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
    on.backward(ops::dot(now.context, support::uneven(now.context.shape())));
    REQUIRE(variables.size() == 3);
    CHECK(variables[2].name == "score.v");
    CHECK(variables[2].numbers.data() == attend.score.v.data());
    CHECK(support::same_bits(on.gradient(variables[2].numbers), on.gradient(lifted.score.v)));
    CHECK(on.gradient(variables[2].numbers).data[0] != 0);
}
