// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <heed/ad/lift.hpp>

namespace heed::ad {

/// The greatest disagreement of a gradient check, and where it is.
struct grad_check_result {
    double worst = 0;     // |analytic − numeric| / (1 + |analytic| + |numeric|)
    std::string where;    // "W[17]"
    double analytic = 0;  // there
    double numeric = 0;   // there
    std::size_t entries = 0;

    explicit operator bool() const { return entries > 0 && worst < 1e-6; }
    std::string text() const
    {
        char numbers[128];
        std::snprintf(numbers, sizeof numbers, " analytic %.9g numeric %.9g (relative %.1e)", analytic, numeric, worst);
        return "worst of " + std::to_string(entries) + " entries: " + where + numbers;
    }
};

/// Compares the tape's gradient of loss(module) with central differences, for every entry of every parameter.
///
/// `module` has parameters of double; `loss` takes the module lifted onto a tape and gives a var<double, 0>. The step
/// is relative to each entry's size; with the default one the check sees errors down to about 1e-9.
template <parameterised M, class Loss>
grad_check_result grad_check(M& module, Loss&& loss, double step = 1e-5)
{
    tape<double> on;
    std::vector<std::vector<double>> analytic;
    {
        const auto lifted = lift(on, module);
        const var<double, 0> value = loss(on, lifted);
        on.backward(value);
        for_each_parameter(lifted, [&](const std::string&, const auto& x) {
            const auto gradient = on.gradient(x);
            analytic.emplace_back(gradient.data, gradient.data + gradient.size());
        });
    }
    const auto evaluate = [&] {
        on.clear();
        return loss(on, lift(on, module)).data()[0];
    };
    grad_check_result result;
    std::size_t parameter = 0;
    for_each_parameter(module, [&](const std::string& name, auto& x) {
        const std::vector<double>& expected = analytic[parameter++];
        double* values = view_of(x).data;
        for (std::size_t i = 0; i < expected.size(); ++i) {
            const double before = values[i], h = step * (1 + std::abs(before));
            values[i] = before + h;
            const double above = evaluate();
            values[i] = before - h;
            const double below = evaluate();
            values[i] = before;
            const double numeric = (above - below) / (2 * h);
            const double off = std::abs(expected[i] - numeric) / (1 + std::abs(expected[i]) + std::abs(numeric));
            ++result.entries;
            if (!(off <= result.worst)) {  // so that NaN counts as worst
                result.worst = std::isnan(off) ? INFINITY : off;
                result.where = name + "[" + std::to_string(i) + "]";
                result.analytic = expected[i];
                result.numeric = numeric;
            }
        }
    });
    return result;
}

}  // namespace heed::ad
