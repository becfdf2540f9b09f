// SPDX-License-Identifier: BSD-3-Clause
//
// snippet: the lines at the start of README, with data.
//
// test:

#include <cstdio>
#include <vector>

#include <heed/heed.hpp>
#include <heed/nn/init.hpp>
using namespace heed;

int main()
{
    // Two sentences of five and three words, annotations of 6 numbers, decoder states of 4, and a hidden layer of 8.
    random_source random{1};
    const auto W = nn::glorot<float>(random, 4, 8), U = nn::glorot<float>(random, 6, 8);
    const auto v = nn::small_vector<float>(random, 8);
    const heed::lengths lengths{5, 3};
    auto annotations = zeros<float>(2, 5, 6);
    for (std::size_t i = 0; i < annotations.size(); ++i) annotations.data()[i] = float(normal(7, i));
    std::vector<array<float, 2>> decoder_states(3, zeros<float>(2, 4));
    for (std::size_t s = 0; s < 3; ++s) {
        for (std::size_t i = 0; i < 8; ++i) decoder_states[s].data()[i] = float(normal(8 + s, i));
    }

    // clang-format off
    // Bahdanau et al. 2015: e_j = vᵀ tanh(W s + U h_j); α = softmax(e); c = Σ_j α_j h_j
    attention attend{score::additive{W, U, v}, normalize::softmax{}, combine::weighted_sum{}};

    auto memory = attend.on(annotations, lengths);   // query-independent work, once per batch: U h_j      [B,T,A]
    auto state  = attend.start(memory);              // this mechanism's state between steps
    for (const auto& s : decoder_states) {           // s [B,Q]
        auto [context, weights, next] = attend.step(memory, s, state);     // [B,D], [B,T]
        state = next;
        // clang-format on

        for (std::size_t b = 0; b < 2; ++b) {
            std::printf("step %zu, sentence %zu: weights", state.step, b + 1);
            for (std::size_t t = 0; t < lengths[b]; ++t) std::printf(" %.2f", double(weights(b, t)));
            std::printf("  context %.2f …\n", double(context(b, 0)));
        }
    }

    // clang-format off
    attention temporal{score::additive{W, U, v}, normalize::temporal{}, combine::weighted_sum{}};
    // clang-format on
    const auto remembered = temporal.on(annotations, lengths);
    auto past = temporal.start(remembered);
    for (const auto& s : decoder_states) {
        auto [context, weights, next] = temporal.step(remembered, s, past);
        past = next;
        std::printf("temporal, step %zu: weights of sentence 2", past.step);
        for (std::size_t t = 0; t < lengths[1]; ++t) std::printf(" %.2f", double(weights(1, t)));
        std::printf("\n");
    }
}
