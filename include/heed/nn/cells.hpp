// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/core/parameters.hpp>
#include <heed/core/tensor.hpp>
#include <heed/nn/dropout.hpp>
#include <heed/nn/gru.hpp>
#include <heed/nn/init.hpp>
#include <heed/nn/lstm.hpp>

/// Recurrent cells, as encoders and decoders take them. A cell has
///
///     project(x)                       its share of the input, for all steps at once: [...,X] -> [...,G]
///     step(projected, state, ends)     the next state
///     begin(h)                         a state whose output is h [B,H]
///     b                                [G], the biases of all gates; of stacked cells the lowest layer has it
///
/// A state is a tensor, or has `hidden` and `map(f)`, as ops::lstm_state has. nn/stacked.hpp makes one cell of several.
namespace heed::nn {

/// What a cell shows of its state: [B,H].
template <class State>
const auto& output_of(const State& state)
{
    if constexpr (tensor<State>) {
        return state;
    } else {
        return state.hidden;
    }
}

/// The state with f applied to each of its tensors, together with those of `others`.
template <class State, class F>
auto map_state(const State& state, const F& f, const auto&... others)
{
    if constexpr (tensor<State>) {
        return f(state, others...);
    } else {
        return state.map(f, others...);
    }
}

/// One step of a cell, with dropout between its layers if it has several.
auto step_of(const auto& cell, const tensor auto& projected, const auto& state, const dropout& drop)
{
    if constexpr (requires { cell.layers; }) {
        return cell.step(projected, state, {}, drop);
    } else {
        return cell.step(projected, state);
    }
}

/// The biases [G] of a cell, of stacked cells those of the lowest.
const auto& biases_of(const auto& cell)
{
    if constexpr (requires { cell.layers; }) {
        return cell.layers.front().b;
    } else {
        return cell.b;
    }
}

/// Makers of cells, for encoders and decoders that are made new. `recurrent`: as for make_gru.
struct new_gru {
    template <class T>
    auto make(random_source& random, std::size_t input, std::size_t hidden, initializer<T> recurrent) const
    {
        return make_gru<T>(random, input, hidden, recurrent);
    }
};
/// Makes LSTMs.
struct new_lstm {
    template <class T>
    auto make(random_source& random, std::size_t input, std::size_t hidden, initializer<T> recurrent) const
    {
        return make_lstm<T>(random, input, hidden, recurrent);
    }
};

}  // namespace heed::nn
