// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <heed/attention.hpp>
#include <support/tensors.hpp>

/// For presets that a decoder runs step by step: each must equal the composition of policies in its paper, and return a
/// number computed manually from the paper's equation.
namespace support::recurrent_presets {

using namespace heed;

constexpr std::size_t B = 2, T = 4, D = 5, Q = 5, A = 3, E = 5;
inline const lengths some{4, 2};

inline const auto W = random({Q, A}, 1), U = random({D, A}, 2), V = random({A, D}, 3), Y = random({E, A}, 4),
                  W_a = random({Q, D}, 5), W_p = random({Q, A}, 6), W_c = random({D + Q, 4}, 7);
inline const auto v = random({A}, 8), v_p = random({A}, 9);

/// Queries of one tensor, and of a state and a word.
inline auto state_of(std::uint64_t step) { return random({B, Q}, 20 + step); }
inline auto both_of(std::uint64_t step) { return state_and_word{state_of(step), random({B, E}, 30 + step)}; }

/// Checks that both have the same type and, for three queries, bitwise equal results.
template <class Preset, class Composition>
void check_same(const Preset& preset, const Composition& composition, auto&& query)
{
    static_assert(std::is_same_v<Preset, Composition>);
    const auto annotations = random({B, T, D}, 10);
    const auto memory = preset.on(annotations, some), other_memory = composition.on(annotations, some);
    auto state = preset.start(memory);
    auto other_state = composition.start(other_memory);
    for (std::uint64_t s = 0; s < 3; ++s) {
        const auto is = preset.step(memory, query(s), state),
                   must = composition.step(other_memory, query(s), other_state);
        CHECK(same_bits(is.context, must.context));
        CHECK(same_bits(is.weights, must.weights));
        state = is.state;
        other_state = must.state;
    }
}

// One sentence of two annotations of width 1, with values 0 and 1: the context is the weight of the second.

inline array<double, 2> number(double x) { return filled<double, 2>({1, 1}, x); }
inline array<double, 1> single(double x) { return filled<double, 1>({1}, x); }
inline const array<double, 3> zero_and_one = [] {
    auto h = filled<double, 3>({1, 2, 1}, 0.0);
    h(0, 1, 0) = 1;
    return h;
}();

auto twice(const auto& attend, const auto& query)
{
    const auto memory = attend.on(zero_and_one);
    const auto first = attend.step(memory, query, attend.start(memory));
    const auto second = attend.step(memory, query, first.state);
    return std::pair{first, second};
}
double once(const auto& attend, const auto& query) { return twice(attend, query).first.context(0, 0); }

/// The second of two softmax weights, for scores that differ by `lead`.
inline double weight(double lead) { return 1 / (1 + std::exp(-lead)); }
inline doctest::Approx about(double x) { return doctest::Approx(x).epsilon(1e-12); }

inline const double tanh_lead = 2 * std::tanh(2.0) - 2 * std::tanh(1.0);  // the difference of 2 tanh(s + h) at s = 1

}  // namespace support::recurrent_presets
