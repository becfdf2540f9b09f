// SPDX-License-Identifier: BSD-3-Clause
//
// Grades step 2: a mechanism built from given policies, and a matrix for score::general.

#include <cstddef>
#include <string>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/general.hpp>

#include "02.hpp"
#include "course.hpp"

namespace {

using namespace heed;

const array<double, 3> annotations{{{0.5, 0}, {1, 0}, {0, 1}}};

auto weights_for(const auto& attend, double thing, double action)
{
    const auto memory = attend.on(annotations);
    return attend.step(memory, array<double, 2>{{thing, action}}, attend.start(memory)).weights;
}

std::string halves()
{
    const auto weights = weights_for(one_half_each(), 2, 0);
    const double expected[] = {0.5, 0.5, 0};
    const std::string words[] = {"small", "cats", "dream"};
    for (std::size_t j = 0; j < 3; ++j) {
        const std::string wrong = course::same("the weight of " + words[j], weights(0, j), expected[j], 1e-12);
        if (!wrong.empty()) return wrong;
    }
    return {};
}

std::string swapped()
{
    const attention attend{score::general{thing_to_action()}, normalize::softmax{}, combine::weighted_sum{}};
    const double dream = weights_for(attend, 2, 0)(0, 2), cats = weights_for(attend, 0, 2)(0, 1);
    if (!(dream >= 0.9))
        return "Katzen looks at dream with " + std::to_string(dream) + ", but should with at least 0.9";
    if (!(cats >= 0.9)) return "träumen looks at cats with " + std::to_string(cats) + ", but should with at least 0.9";
    return {};
}

}  // namespace

int main() { return course::graded({{"a", "one half each", halves}, {"b", "from things to actions", swapped}}); }
