// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/heed.hpp>
#include <support/gradients.hpp>
#include <support/many_queries.hpp>
#include <support/scores.hpp>

/// Operations and mechanisms that many tests instantiate. clang++ compiles them once, with the precompiled headers, and
/// tests link that code instead of compiling it again: see CMakeLists.txt. No test calls these functions.
namespace support {

inline void instantiate_common_operations()
{
    using namespace heed;
    const array<double, 2> M;
    const array<double, 3> H;
    const auto differentiate = [](const auto& operation, const auto&... x) {
        (void)gradient_of<(1u << sizeof...(x)) - 1>(operation, x...);
    };
    differentiate(ops::exp, array<double, 0>{});
    differentiate(ops::tanh, array<double, 1>{});
    const auto of_each_rank = [&](const auto& x) {
        differentiate(ops::tanh, x);
        differentiate([](const auto& y) { return ops::scale(ops::sigmoid(y), 2.0); }, x);
        differentiate(ops::square, x);
        differentiate(ops::linear, x, M, array<double, 1>{});
        differentiate(ops::concat, x, x);
        differentiate(ops::logaddexp, x, x);
    };
    of_each_rank(M);
    of_each_rank(H);
}

inline void instantiate_common_mechanisms()
{
    using namespace heed;
    const array<double, 1> v;
    const array<double, 2> M;
    const auto instantiate = [](const auto& attend) {
        (void)verify(attend);
        check_values(attend, scalar::dot(), false, plain_query{0}, 0);
        check_gradients(attend, plain_query{0}, 0);
        auto [p, at] = made_up(attend, plain_query{0}, {0}, 0, 0, 0);
        (void)second_order(p, [&setting = at]<class T>(ad::tape<T>&, const auto& lifted) {
            return running::loss<running::form::many_queries, false, T>(lifted, setting);
        });
    };
    const attention dot{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    instantiate(dot);
    instantiate(attention{score::additive{M, M, v}, normalize::softmax{}, combine::weighted_sum{}});
    instantiate(attention{score::additive{M, M, v}, normalize::temporal{}, combine::weighted_sum{}});
    instantiate(attention{score::additive_per_dimension{M, M, M}, normalize::softmax{}, combine::elementwise_sum{}});
    instantiate(attention{score::general{M}, normalize::temporal{}, combine::weighted_sum{}});
    const attention alone{score::dot{}, normalize::sigmoid{}, combine::weighted_sum{}};
    (void)distance_from_one_by_one(dot, causal{}, {0}, 0, 0);
    (void)distance_from_one_by_one(alone, causal{}, {0}, 0, 0);
    ad::tape<float> on;
    const array<float, 3> h;
    const auto H = on.parameter(h);
    (void)ops::dot(dot(dot.on(H), H, causal{}), dot(dot.on(h), h, causal{}));
}

}  // namespace support
