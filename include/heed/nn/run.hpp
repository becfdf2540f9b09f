// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/errors.hpp>
#include <heed/core/mask.hpp>
#include <heed/nn/cells.hpp>
#include <heed/nn/dropout.hpp>
#include <heed/nn/stacked.hpp>
#include <heed/ops/shape.hpp>

/// Runs a recurrent cell over all words of a batch of sentences of different lengths.
namespace heed::inline HEED_TARGET::nn {

/// The order in which a recurrent cell reads a sentence.
enum class direction { forward, backward };

/// The outputs and final states of a cell. `ops::stack(read.outputs)` is [T,B,H].
template <class Output, class State>
struct read_words {
    std::vector<Output> outputs;  // T times [B,H], after each word, in word order
    State last;                   // after the last word of each sentence; backward: after the first
};

namespace detail {

/// One layer. The backward direction starts at the last word of each sentence.
auto run_layer(const auto& cell, const auto& first, const tensor auto& x, const lengths& real, direction reads)
{
    const bool reversed = reads == direction::backward;
    const auto inputs = nn::project_of(cell, x);  // [T,B,G]
    const std::size_t T = shape_of(x)[0];
    const auto step = [&](std::size_t i, const auto& before) {
        const std::size_t t = reversed ? T - 1 - i : i;
        return nn::next_of(cell, ops::block(inputs, t), before, ops::sentence_ends{&real, t});
    };
    auto after = step(0, first);
    std::vector<std::remove_cvref_t<decltype(nn::output_of(after))>> outputs(T);
    for (std::size_t i = 0; i < T; ++i) {
        if (i > 0) after = step(i, after);
        outputs[reversed ? T - 1 - i : i] = nn::output_of(after);
    }
    return read_words<typename decltype(outputs)::value_type, decltype(after)>{std::move(outputs), std::move(after)};
}

}  // namespace detail

/// Runs a cell over all words x [T,B,X] of a batch, from an initial state.
///
///     forward   s_t = f(s_{t−1}, x_t),  t = 1 … n of a sentence of n words
///     backward  s_t = f(s_{t+1}, x_t),  t = n … 1
///
///     const nn::lstm cell = nn::make_lstm<float>(random, X, H);
///     const auto read = nn::run(cell, cell.begin(nn::zero_start{H}.state(B, x)), x, lengths{7, 5});
///     const auto annotations = ops::swap_axes(ops::stack(read.outputs));            // [B,T,H]
///     const auto sentence = nn::output_of(read.last);                               // [B,H]
///
/// Steps in the padding leave the state unchanged, bit for bit, for any x, NaN included. Outputs in the padding repeat
/// the last state; clear them before summing over positions, as attention::on does. An empty sentence keeps the initial
/// state. Works with any cell of nn/cells.hpp. Stacked cells run layer after layer, with `drop` between layers, and
/// their `last` has the states of all layers. Throws shape_error if there are no steps, or if the lengths do not fit.
auto run(const auto& cell, const auto& first, const tensor auto& x, const lengths& real,
         direction reads = direction::forward, const dropout& drop = {})
{
    static_assert(rank_of<decltype(x)> == 3,
                  "heed: nn::run takes the words of all steps, [T,B,X]; `ops::swap_axes(x)` converts [B,T,X]");
    const std::size_t T = shape_of(x)[0];
    if (T == 0)
        throw shape_error("nn::run: x is " + shape_text(shape_of(x)) + ", which has no steps; give at least one");
    real.require("nn::run", shape_of(x)[1], T);
    if constexpr (requires { cell.layers; }) {
        auto read = detail::run_layer(cell.layers.at(0), first.layers.at(0), x, real, reads);
        std::vector<decltype(read.last)> last{read.last};
        for (std::size_t k = 1; k < cell.layers.size(); ++k) {
            const auto z = ops::stack(read.outputs);  // [T,B,H]
            auto above = detail::run_layer(cell.layers[k], first.layers.at(k), drop.time_major(z), real, reads);
            for (std::size_t t = 0; t < T; ++t) above.outputs[t] = cell.joined(above.outputs[t], read.outputs[t]);
            last.push_back(above.last);
            read = std::move(above);
        }
        nn::stacked_state state{std::move(last), read.outputs[reads == direction::forward ? T - 1 : 0]};
        return read_words<typename decltype(read.outputs)::value_type, decltype(state)>{std::move(read.outputs),
                                                                                        std::move(state)};
    } else {
        return detail::run_layer(cell, first, x, real, reads);
    }
}

}  // namespace heed::inline HEED_TARGET::nn
