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
