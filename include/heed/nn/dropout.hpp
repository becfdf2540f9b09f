// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/random.hpp>
#include <heed/ops/dropout.hpp>

namespace heed::nn {

/// Dropout with one rate and a new stream for each use. The default drops nothing, as inference needs.
struct dropout {
    double rate = 0;
    random_source* random = nullptr;

    template <tensor X>
    X operator()(const X& x) const
    {
        if constexpr (plain_tensor<X>) {
            return x;
        } else {
            return rate <= 0 || random == nullptr ? x : ops::dropout(x, rate, random->next_stream());
        }
    }
};

}  // namespace heed::nn
