// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include <heed/ad/lift.hpp>
#include <heed/core/function_ref.hpp>

namespace heed::inline HEED_TARGET::ad {

/// The largest error of a gradient check, and its location.
struct grad_check_result {
    double worst = 0;     // |analytic − numeric| / (1 + |analytic| + |numeric|)
    std::string where;    // "W[17]"
    double analytic = 0;  // at that entry
    double numeric = 0;   // at that entry
    std::size_t entries = 0;

    explicit operator bool() const { return entries > 0 && worst < 1e-6; }
    /// A line with the entry where analytic and numeric gradient differ most.
    std::string text() const
    {
        char numbers[128];
        std::snprintf(numbers, sizeof numbers, " analytic %.9g numeric %.9g (relative %.1e)", analytic, numeric, worst);
        return "worst of " + std::to_string(entries) + " entries: " + where + numbers;
    }
};

namespace detail {

/// Changes each entry of each parameter. Each time, `record` records the loss again, and `lifted` with it.
inline grad_check_result compare_with_differences(tape<double>& on, const std::vector<named_variable<double>>& lifted,
                                                  const std::vector<named_numbers<double>>& parameters,
                                                  heed::detail::function_ref<var<double, 0>> record, double step)
{
    on.backward(record());
    std::vector<double> analytic;
    for (const auto& parameter : lifted) {
        const auto gradient = on.gradient(parameter.numbers);
        analytic.insert(analytic.end(), gradient.data, gradient.data + gradient.size());
    }
    grad_check_result result;
    for (const auto& [name, numbers] : parameters) {
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            double& entry = numbers.data[i];
            const double expected = analytic[result.entries], before = entry, h = step * (1 + std::abs(before));
            entry = before + h;
            const double above = record().data()[0];
            entry = before - h;
            const double below = record().data()[0];
            entry = before;
            const double numeric = (above - below) / (2 * h);
            const double off = std::abs(expected - numeric) / (1 + std::abs(expected) + std::abs(numeric));
            ++result.entries;
            if (!(off <= result.worst)) {  // so that NaN counts as worst
                result.worst = std::isnan(off) ? INFINITY : off;
                result.where = name + "[" + std::to_string(i) + "]";
                result.analytic = expected;
                result.numeric = numeric;
            }
        }
    }
    return result;
}

}  // namespace detail

/// Compares the tape's gradient of loss(module) with central differences, for every entry of every parameter.
///
/// `module` has parameters of double; `loss` takes a tape and the module lifted onto it, and returns a var<double, 0>.
/// The step is relative to each entry's size; with the default, the check detects errors down to about 1e-9.
template <parameterized M, class Loss>
grad_check_result grad_check(M& module, Loss&& loss, double step = 1e-5)
{
    tape<double> on;
    std::vector<named_variable<double>> lifted;
    const auto record = [&] {
        on.clear();
        lifted.clear();
        return var<double, 0>(loss(on, lift(on, module, lifted)));
    };
    return detail::compare_with_differences(on, lifted, numbers_of<double>(module), record, step);
}

}  // namespace heed::inline HEED_TARGET::ad
