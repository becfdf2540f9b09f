// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <heed/core/mask.hpp>
#include <heed/core/tensor.hpp>

namespace support {

/// Shaw et al. 2018, eq. 2 and 4, in scalar loops; causal, or every key. With `of_values`, eq. 3.
inline heed::array<double, 3> relative_by_hand(const heed::array<double, 3>& h, const heed::array<double, 3>& q,
                                               const heed::array<double, 2>& d, const heed::lengths& real, bool causal,
                                               const heed::array<double, 2>& of_values = {})
{
    const auto [B, S, width] = q.shape();
    heed::array<double, 3> contexts({B, S, width}, 0.0);
    const auto reach = static_cast<long>(d.shape()[1] / 2);
    for (std::size_t b = 0; b < B; ++b) {
        for (std::size_t s = 0; s < S; ++s) {
            const std::size_t n = causal ? std::min(real[b], h.shape()[1] - S + s + 1) : real[b];
            std::vector<double> weights;
            double sum = 0;
            for (std::size_t j = 0; j < n; ++j) {
                const long far = std::clamp(static_cast<long>(j) - static_cast<long>(s), -reach, reach);
                double e = 0;
                for (std::size_t i = 0; i < width; ++i)
                    e += q(b, s, i) * (h(b, j, i) + d(i, static_cast<std::size_t>(far + reach)));
                weights.push_back(std::exp(e / std::sqrt(static_cast<double>(width))));
                sum += weights.back();
            }
            for (std::size_t j = 0; j < n; ++j)
                for (std::size_t i = 0; i < width; ++i) contexts(b, s, i) += weights[j] / sum * h(b, j, i);
            if (of_values.size() == 0) continue;
            const auto most = static_cast<long>(of_values.shape()[0] / 2);
            for (std::size_t j = 0; j < n; ++j) {
                const long far = std::clamp(static_cast<long>(j) - static_cast<long>(s), -most, most);
                for (std::size_t i = 0; i < width; ++i)
                    contexts(b, s, i) += weights[j] / sum * of_values(static_cast<std::size_t>(far + most), i);
            }
        }
    }
    return contexts;
}

}  // namespace support
