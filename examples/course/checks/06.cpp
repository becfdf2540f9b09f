// SPDX-License-Identifier: BSD-3-Clause
//
// Grades step 6: compares the loss and the update with heed's.

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/ops/losses.hpp>
#include <heed/train/sgd.hpp>

#include "06.hpp"
#include "course.hpp"

using namespace heed;

namespace {

std::string check_cross_entropy()
{
    for (const std::vector<double>& scores :
         {std::vector<double>{0, 0, 0, 0}, {1, -2, 0.5, 3}, {1000, 999, -1000, 0}, {-1000, -1001, -1002, -1000}}) {
        for (std::uint32_t right = 0; right < 4; ++right) {
            auto logits = filled<double, 2>({1, 4}, 0.0);
            for (std::size_t k = 0; k < 4; ++k) logits(0, k) = scores[k];
            ops::expected_words<double> expected{word_ids(1, 1, right), {1.0}};
            const double must = *ops::cross_entropy(logits, expected).data();
            std::string what = "the loss of letter " + std::to_string(right) + " with scores";
            for (const double e : scores) {
                char number[30];
                std::snprintf(number, sizeof number, " %g", e);
                what += number;
            }
            if (const auto wrong = course::same(what, cross_entropy(scores, right), must); !wrong.empty()) return wrong;
        }
    }
    return {};
}

/// A model with one parameter. The loss is its inner product with a given gradient.
template <class Vector>
struct numbers {
    Vector theta;
    static auto parameters(auto& self, auto&& visit) { return ::numbers{visit("theta", self.theta)}; }
};
template <class Vector>
numbers(Vector) -> numbers<Vector>;

std::string check_descend()
{
    for (const std::array<double, 3>& g : {std::array{0.3, -0.4, 0.0}, {3.0, -4.0, 12.0}, {0.0, 0.0, 0.0}}) {
        std::vector<double> theta{1, 2, 3};
        descend(theta, {g.begin(), g.end()}, 0.1, 1.0);
        numbers model{filled<double, 1>({3}, 0.0)};
        auto gradient = filled<double, 1>({3}, 0.0);
        for (std::size_t i = 0; i < 3; ++i) {
            model.theta(i) = static_cast<double>(i + 1);
            gradient(i) = g[i];
        }
        ad::tape<double> tape;
        const auto taped = ad::lift(tape, model);
        tape.backward(ops::dot(taped.theta, gradient));
        train::sgd<double>({.rate = 0.1}).step(model, taped, tape, 1.0);
        for (std::size_t i = 0; i < 3; ++i) {
            const auto wrong =
                course::same("θ[" + std::to_string(i) + "] after a step with gradient " + std::to_string(g[0]) + " " +
                                 std::to_string(g[1]) + " " + std::to_string(g[2]),
                             theta[i], model.theta(i), 1e-12);
            if (!wrong.empty()) return wrong;
        }
    }
    return {};
}

}  // namespace

int main()
{
    return course::graded({{"a", "the cross-entropy of one letter", check_cross_entropy},
                           {"b", "a step of gradient descent, clipped", check_descend}});
}
