// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

#include <heed/nn/cells.hpp>
#include <heed/nn/init.hpp>
#include <heed/ops/products.hpp>

/// Which state of a recurrent decoder asks, and where the answer goes: a policy of seq2seq::decoder.
///
/// A policy computes one step:
///
///     policy(cell, input, before, drop, attend)    an `asked_step`
///
/// input [B,G] is the cell's share of the previous word, `before` the state s_{i-1}, and attend(s) [B,H] the
/// attention's answer to a query made of s. Its parameters are named among the decoder's own.
namespace heed::seq2seq::asks_with {

/// A step of a decoder: its next state, and what the attention answered.
template <class State, class Seen>
struct asked_step {
    State state;
    Seen seen;
};
template <class State, class Seen>
asked_step(State, Seen) -> asked_step<State, Seen>;

/// The state before the word asks, and the cell reads the context.
///
///     c_i = attention(s_{i-1}, h),  s_i = f(s_{i-1}, [E y_{i-1}; c_i])      Bahdanau et al. 2015; Choi et al. 2018
template <class Matrix>
struct previous_state {
    Matrix C;  // [D,G] from the context to the cell; G = 3H of a GRU, 4H of an LSTM

    auto operator()(const auto& cell, const tensor auto& input, const auto& before, const nn::dropout& drop,
                    const auto& attend) const
    {
        auto seen = attend(nn::output_of(before));
        auto next = nn::step_of(cell, ops::linear_onto(input, seen.context, C), before, drop);
        return asked_step{std::move(next), std::move(seen)};
    }

    static auto parameters(auto& self, auto&& visit) { return asks_with::previous_state{visit("C", self.C)}; }
};
template <class Matrix>
previous_state(Matrix) -> previous_state<Matrix>;

/// An intermediate state asks: it has read the word, and a second cell turns it into the next state.
///
///     s'_i = u(s_{i-1}, E y_{i-1}),  c_i = attention(s'_i, h),  s_i = q(s'_i, c_i)
///                                             Sankaran et al. 2016, eq. 2 and 3: the conditional GRU of dl4mt
///
/// u is the decoder's cell. q has the same kind of state; both keep one state between them.
template <class Cell>
struct intermediate_state {
    Cell second;  // q, from the context

    auto operator()(const auto& cell, const tensor auto& input, const auto& before, const nn::dropout& drop,
                    const auto& attend) const
    {
        const auto between = nn::step_of(cell, input, before, drop);
        auto seen = attend(nn::output_of(between));
        auto next = nn::step_of(second, nn::project_of(second, seen.context), between, drop);
        return asked_step{std::move(next), std::move(seen)};
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return asks_with::intermediate_state{visit("second", self.second)};
    }
};
template <class Cell>
intermediate_state(Cell) -> intermediate_state<Cell>;

/// The state after the word asks. The context reaches the output alone, and the next step only through input feeding.
///
///     s_i = f(s_{i-1}, E y_{i-1}),  c_i = attention(s_i, h)          Luong et al. 2015, §3
struct current_state {
    auto operator()(const auto& cell, const tensor auto& input, const auto& before, const nn::dropout& drop,
                    const auto& attend) const
    {
        auto next = nn::step_of(cell, input, before, drop);
        auto seen = attend(nn::output_of(next));
        return asked_step{std::move(next), std::move(seen)};
    }

    static auto parameters(auto&, auto&&) { return asks_with::current_state{}; }
};

/// The sizes that these policies are made for.
struct sizes {
    std::size_t hidden = 0;   // H of the cell
    std::size_t context = 0;  // D
    std::size_t gates = 0;    // G of the cell's projected input
};

/// Makers, for decoders that are made new. `cells` makes the second cell of an intermediate state.
struct new_previous_state {
    template <class T, class Cells>
    auto make(random_source& random, const sizes& n, nn::initializer<T>, const Cells&) const
    {
        return previous_state{nn::glorot<T>(random, n.context, n.gates)};
    }
};
/// Makes the second cell of an intermediate_state, of the decoder's kind of cell.
struct new_intermediate_state {
    template <class T, class Cells>
    auto make(random_source& random, const sizes& n, nn::initializer<T> recurrent, const Cells& cells) const
    {
        return intermediate_state{cells.template make<T>(random, n.context, n.hidden, recurrent)};
    }
};
/// Makes a current_state, which has no parameters.
struct new_current_state {
    template <class T, class Cells>
    auto make(random_source&, const sizes&, nn::initializer<T>, const Cells&) const
    {
        return current_state{};
    }
};

}  // namespace heed::seq2seq::asks_with
