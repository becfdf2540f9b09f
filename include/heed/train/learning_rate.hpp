// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <heed/core/cxx20.hpp>

/// Learning-rate schedules. Set the rate before each step:
///
///     optimizer.settings.rate = train::inverse_square_root{5e-3, 2000}(optimizer.steps() + 1);
namespace heed::inline HEED_TARGET::train {

/// Warm-up, then decay with the square root of the step.
///
///     rate(t) = first + (peak − first) · t / warm_up     for t <= warm_up
///     rate(t) = peak · √(warm_up / t)                    afterwards
///
/// Vaswani et al. 2017, §5.3, eq. 3: peak = (d · warm_up)^(-1/2) and first = 0. Steps count from 1.
struct inverse_square_root {
    double peak = 1e-3;
    std::size_t warm_up = 4000;
    double first = 0;

    double operator()(std::size_t t) const
    {
        const auto step = static_cast<double>(t), end = static_cast<double>(std::max<std::size_t>(warm_up, 1));
        return step <= end ? first + (peak - first) * step / end : peak * std::sqrt(end / step);
    }
};

/// A constant rate for some epochs, counted from 1; then it is halved after each epoch.
///
///     rate(epoch) = start · 2^min(0, constant − epoch)        Luong et al. 2015, §4.1: constant = 5
struct halving {
    double start = 1;
    std::size_t constant = 5;

    double operator()(std::size_t epoch) const
    {
        if (epoch <= constant) return start;
        return std::ldexp(start, -static_cast<int>(std::min<std::size_t>(epoch - constant, 2000)));
    }
};

}  // namespace heed::inline HEED_TARGET::train
