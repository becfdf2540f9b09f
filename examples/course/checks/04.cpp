// SPDX-License-Identifier: BSD-3-Clause
//
// Grades step 4: temporal attention, and a normalizer with a state.

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/temporal.hpp>
#include <heed/score/dot.hpp>
#include <heed/verify.hpp>

#include "04.hpp"
#include "course.hpp"

namespace {

using namespace heed;

const array<double, 3> units{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};  // the query is the scores

std::string by_hand()
{
    const attention attend{score::dot{}, normalize::temporal{}, combine::weighted_sum{}};
    for (const double much : {1.0, 1000.0}) {
        const auto memory = attend.on(units);
        auto state = attend.start(memory);
        std::vector<std::vector<double>> scores;
        for (const std::vector<double>& e :
             {std::vector{2.0, 1.0, 0.0}, {2.0, 1.5, 0.0}, {1.0, 1.5, 0.5}, {0.5, 3.0, 3.0}}) {
            scores.push_back({much * e[0], much * e[1], much * e[2]});
            const array<double, 2> query{{much * e[0], much * e[1], much * e[2]}};
            const auto [context, weights, next] = attend.step(memory, query, state);
            state = next;
            const std::vector<double> found = temporal_weights(scores);
            const std::string step = "with scores of " + std::to_string(static_cast<int>(much)) + ", step " +
                                     std::to_string(scores.size()) + ": ";
            if (found.size() != 3)
                return step + "there are " + std::to_string(found.size()) + " weights, but should be 3";
            for (std::size_t j = 0; j < 3; ++j) {
                const std::string wrong = course::same(step + "α[" + std::to_string(j) + "]", found[j], weights(0, j));
                if (!wrong.empty()) return wrong;
            }
        }
    }
    return {};
}

std::string with_memory()
{
    const attention attend{score::dot{}, mine::not_again{3}, combine::weighted_sum{}};
    const auto memory = attend.on(units);
    auto state = attend.start(memory);
    // The weights cannot reveal this: subtracting the same number from all scores does not change the softmax.
    if (const auto wrong = course::same("before the first step: α[0]", state.normalize.last(0, 0), 0); !wrong.empty())
        return wrong;
    std::vector<double> last{0, 0, 0};
    const double e[] = {2, 1, 0};
    for (std::size_t step = 1; step <= 3; ++step) {
        const auto [context, weights, next] = attend.step(memory, array<double, 2>{{2, 1, 0}}, state);
        state = next;
        double sum = 0;
        for (std::size_t j = 0; j < 3; ++j) sum += std::exp(e[j] - 3 * last[j]);
        for (std::size_t j = 0; j < 3; ++j) {
            last[j] = std::exp(e[j] - 3 * last[j]) / sum;
            const std::string where = "step " + std::to_string(step) + ": α[" + std::to_string(j) + "]";
            const std::string wrong = course::same(where, weights(0, j), last[j]);
            if (!wrong.empty()) return wrong;
        }
    }
    for (const auto& contract : verify(attend).contracts) {
        if (!contract.passed) return "verify: " + contract.name + ": " + contract.detail;
    }
    return {};
}

}  // namespace

int main()
{
    return course::graded(
        {{"a", "temporal attention", by_hand}, {"b", "a normalizer that does not look again", with_memory}});
}
