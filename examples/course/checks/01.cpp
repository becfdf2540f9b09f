// SPDX-License-Identifier: BSD-3-Clause
//
// Grades step 1: compares a softmax of any scores, and a context of keys and values, with heed.

#include <cmath>
#include <string>
#include <vector>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/scaled_dot.hpp>

#include "01.hpp"
#include "course.hpp"

namespace {

std::string expect(const std::string& what, const std::vector<double>& found, const std::vector<double>& expected)
{
    if (found.size() != expected.size()) {
        return what + " has " + std::to_string(found.size()) + " numbers, but should have " +
               std::to_string(expected.size());
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
        const std::string wrong = course::same(what + "[" + std::to_string(i) + "]", found[i], expected[i]);
        if (!wrong.empty()) return wrong;
    }
    return {};
}

std::string of_any_scores()
{
    const double sum = 1 + std::exp(1.0) + std::exp(2.0);
    const std::vector<double> expected{std::exp(1.0) / sum, std::exp(2.0) / sum, 1 / sum};
    for (const double shift : {0.0, 1000.0, -1000.0}) {
        const std::string name = "softmax of " + std::to_string(static_cast<int>(shift)) + " + (1, 2, 0): ";
        const std::string wrong = expect(name + "α", softmax({1 + shift, 2 + shift, shift}), expected);
        if (!wrong.empty()) return wrong;
    }
    return expect("softmax of a single score: α", softmax({7}), {1});
}

std::string of_keys_and_values()
{
    using namespace heed;
    const array<double, 3> keys{{{0.5, 0, -1, 2}, {1, 0, 0.5, 0}, {0, 1, 2, -0.5}}};  // [1,3,4]
    const array<double, 3> values{{{3, 1}, {-1, 0.5}, {2, -4}}};                      // [1,3,2]
    const array<double, 2> query{{1, -0.5, 0.5, 1.5}};                                // [1,4]
    const attention attend{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(keys, values);
    const auto expected = attend.step(memory, query, attend.start(memory)).context;
    return expect(
        "c",
        context({1, -0.5, 0.5, 1.5}, {{0.5, 0, -1, 2}, {1, 0, 0.5, 0}, {0, 1, 2, -0.5}}, {{3, 1}, {-1, 0.5}, {2, -4}}),
        {expected(0, 0), expected(0, 1)});
}

}  // namespace

int main()
{
    return course::graded(
        {{"a", "a softmax of any scores", of_any_scores}, {"b", "keys and values", of_keys_and_values}});
}
