// SPDX-License-Identifier: BSD-3-Clause
//
// Grades step 3: a score and a normalizer, by their values and by heed's contracts.

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/dot.hpp>
#include <heed/verify.hpp>

#include "03.hpp"
#include "course.hpp"

namespace {

using namespace heed;

const array<double, 3> annotations{{{0.5, 0}, {1, 0}, {0, 1}}};
const array<double, 2> query{{2, -1}};

/// Compares the weights of our three words with the softmax of these scores; then runs verify.
template <class Score, class Normalize>
std::string check(const Score& score, const Normalize& normalize, const std::vector<double>& scores)
{
    const attention attend{score, normalize, combine::weighted_sum{}};
    const auto memory = attend.on(annotations);
    const auto weights = attend.step(memory, query, attend.start(memory)).weights;
    double sum = 0;
    for (const double e : scores) sum += std::exp(e);
    for (std::size_t j = 0; j < scores.size(); ++j) {
        const std::string word = "for the query (2, -1), the weight of word " + std::to_string(j + 1);
        const std::string wrong = course::same(word, weights(0, j), std::exp(scores[j]) / sum);
        if (!wrong.empty()) return wrong;
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
        {{"a", "the dot product minus half the squared length",
          [] {
              return check(mine::dot_less_length{}, normalize::softmax{}, {1 - 0.125, 2 - 0.5, -1 - 0.5});
          }},
         {"b", "a softmax of capped scores", [] {
              return check(score::dot{}, mine::capped{1.5},
                           {1.5 * std::tanh(1 / 1.5), 1.5 * std::tanh(2 / 1.5), 1.5 * std::tanh(-1 / 1.5)});
          }}});
}
