// SPDX-License-Identifier: BSD-3-Clause
//
// Grades step 5: compares both gradients with finite differences.

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <heed/ad/ad.hpp>

#include "05.hpp"
#include "course.hpp"

namespace {

std::vector<double> softmax(const std::vector<double>& e)
{
    std::vector<double> weights;
    double sum = 0;
    for (const double x : e) sum += std::exp(x);
    for (const double x : e) weights.push_back(std::exp(x) / sum);
    return weights;
}

std::string through_softmax()
{
    const std::vector<double> e{1, 2, 0, -1}, d_weights{0.3, -1, 2, 0.5};
    const auto loss = [&](std::vector<double> scores, std::size_t moved, double by) {
        scores[moved] += by;
        const std::vector<double> weights = softmax(scores);
        double sum = 0;
        for (std::size_t k = 0; k < weights.size(); ++k) sum += d_weights[k] * weights[k];
        return sum;
    };
    const std::vector<double> found = softmax_backward(softmax(e), d_weights);
    if (found.size() != e.size()) return "there are " + std::to_string(found.size()) + " numbers, but should be 4";
    for (std::size_t j = 0; j < e.size(); ++j) {
        const double expected = (loss(e, j, 1e-5) - loss(e, j, -1e-5)) / 2e-5;
        const std::string wrong = course::same("∂e[" + std::to_string(j) + "]", found[j], expected, 1e-8);
        if (!wrong.empty()) return wrong;
    }
    return {};
}

/// The one parameter of a loss.
struct numbers {
    template <class Tensor>
    struct of {
        Tensor x;
        static auto parameters(auto& self, auto&& visit) { return numbers::make(visit("x", self.x)); }
    };
    template <class Tensor>
    static of<Tensor> make(Tensor x)
    {
        return {x};
    }
};

std::string softplus_on_the_tape()
{
    using namespace heed;
    auto module = numbers::make(array<double, 2>{{-3, -0.5, 0}, {0.7, 1.5, 4}});
    const array<double, 2> factors{{1, -2, 0.5}, {3, 0.25, -1}};
    const auto y = mine::softplus(module.x);
    for (std::size_t i = 0; i < y.size(); ++i) {
        const double x = module.x.data()[i];
        const std::string wrong =
            course::same("softplus(" + std::to_string(x) + ")", y.data()[i], std::log(1 + std::exp(x)));
        if (!wrong.empty()) return wrong;
    }
    // x is read twice, first by softplus. So softplus comes last in the backward pass; if it sets ∂x instead of adding
    // to it, the gradient of the square is lost.
    const auto found = ad::grad_check(module, [&](auto&, const auto& lifted) {
        const auto soft = mine::softplus(lifted.x);
        return ops::dot(ops::multiply(soft, ops::square(lifted.x)), factors);
    });
    return found ? "" : found.text();
}

}  // namespace

int main()
{
    return course::graded({{"a", "the backward pass of the softmax", through_softmax},
                           {"b", "an operation for the tape", softplus_on_the_tape}});
}
