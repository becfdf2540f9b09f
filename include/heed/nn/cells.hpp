// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/core/parameters.hpp>
#include <heed/core/tensor.hpp>
#include <heed/nn/dropout.hpp>
#include <heed/nn/factory.hpp>
#include <heed/nn/gru.hpp>
#include <heed/nn/lstm.hpp>
#include <heed/ops/recurrent.hpp>

/// Recurrent cells of encoders and decoders. A cell has
///
///     project(x)                       the input's contribution, for all steps at once: [...,X] -> [...,G]
///     step(projected, state, ends)     the next state
///     begin(h)                         a state with output h [B,H]
///     b                                [G], the biases of all gates; stacked cells need those of the lowest layer only
///
/// A state is a tensor, or has `hidden` and `map(f)` as ops::lstm_state does. nn/stacked.hpp stacks cells.
namespace heed::inline HEED_TARGET::nn {

/// The output of a cell in this state: [B,H].
const auto& output_of(const auto& state)
{
    if constexpr (tensor<decltype(state)>) {
        return state;
    } else {
        return state.hidden;
    }
}

/// Applies f to each tensor of a state, together with the matching tensors of `others`.
auto map_state(const auto& state, const auto& f, const auto&... others)
{
    if constexpr (tensor<decltype(state)>) {
        return f(state, others...);
    } else {
        return state.map(f, others...);
    }
}

/// The input's contribution to a cell, for all steps at once: [...,X] -> [...,G].
auto project_of(const auto& cell, const tensor auto& x)
{
    constexpr bool has = requires { cell.project(x); };
    static_assert(has,
                  "heed: this recurrent cell has no `project` that heed can call: declare `auto project(const "
                  "heed::tensor auto& x) const`, which returns the input's contribution for all steps at once, from "
                  "[...,X] to [...,G]");
    if constexpr (has) {
        return cell.project(x);
    } else {
        return x;
    }
}

/// A state of a cell with output h [B,H].
auto begin_of(const auto& cell, const tensor auto& h)
{
    constexpr bool has = requires { cell.begin(h); };
    static_assert(has, "heed: this recurrent cell has no `begin` that heed can call: declare `auto begin(const "
                       "heed::tensor auto& h) const`, which returns the state with output h (h itself, if the state is "
                       "the output)");
    if constexpr (has) {
        return cell.begin(h);
    } else {
        return h;
    }
}

/// The next state of a cell, from projected [B,G]. `more`: where sentences end, if any do, and dropout between layers.
auto next_of(const auto& cell, const tensor auto& projected, const auto& state, const auto&... more)
{
    constexpr bool has = requires { cell.step(projected, state, more...); };
    static_assert(has, "heed: this recurrent cell has no `step` that heed can call: declare `auto step(const "
                       "heed::tensor auto& projected, const auto& state, const heed::ops::sentence_ends& ends = {}) "
                       "const`, which returns the next state; a sentence that has ended keeps its state");
    if constexpr (has) {
        return cell.step(projected, state, more...);
    } else {
        return state;
    }
}

/// One step of a cell, from projected [B,G], with dropout between its layers if it has several.
auto step_of(const auto& cell, const tensor auto& projected, const auto& state, const dropout& drop)
{
    if constexpr (requires { cell.layers; }) {
        return nn::next_of(cell, projected, state, ops::sentence_ends{}, drop);
    } else {
        return nn::next_of(cell, projected, state);
    }
}

/// The biases [G] of a cell, or of the lowest layer of stacked cells.
const auto& biases_of(const auto& cell)
{
    if constexpr (requires { cell.layers; }) {
        return nn::biases_of(cell.layers.front());
    } else {
        static_assert(
            requires { cell.b; },
            "heed: this recurrent cell has no `b`: declare the biases [G] of all its gates as its "
            "member `b`; of stacked cells, the lowest needs it");
        return cell.b;
    }
}

/// Makes GRUs.
struct gru_factory {
    template <class T>
    auto operator()(const initializers<T>& init, const cell_sizes& n) const
    {
        return make_gru<T>(init.random, n.input, n.hidden, init.recurrent_matrix);
    }
};
/// Makes LSTMs.
struct lstm_factory {
    template <class T>
    auto operator()(const initializers<T>& init, const cell_sizes& n) const
    {
        return make_lstm<T>(init.random, n.input, n.hidden, init.recurrent_matrix);
    }
};

}  // namespace heed::inline HEED_TARGET::nn
