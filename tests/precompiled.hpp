// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <support/mechanism_tests.hpp>

/// Mechanisms that many tests instantiate. clang++ compiles them once, with the precompiled headers, and tests link
/// that code in place of compiling their own: see CMakeLists.txt. No test calls this function.
namespace support {

inline void instantiate_common_mechanisms()
{
    using namespace heed;
    const array<double, 1> v;
    const array<double, 2> M;
    const auto instantiate = [](const auto& attend) {
        (void)verify(attend);
        check_values(attend, scalar::dot(), false, plain_query{0}, 0);
        check_gradients(attend, plain_query{0}, 0);
    };
    instantiate(attention{score::additive{M, M, v}, normalize::softmax{}, combine::weighted_sum{}});
    instantiate(attention{score::additive{M, M, v}, normalize::temporal{}, combine::weighted_sum{}});
    instantiate(attention{score::additive_per_dimension{M, M, M}, normalize::softmax{}, combine::elementwise_sum{}});
    instantiate(attention{score::dot{}, normalize::softmax{}, combine::weighted_sum{}});
    instantiate(attention{score::general{M}, normalize::temporal{}, combine::weighted_sum{}});
}

}  // namespace support
