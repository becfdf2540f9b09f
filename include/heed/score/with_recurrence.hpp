// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/nn/gru.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/shape.hpp>
#include <heed/score/over.hpp>

namespace heed::inline HEED_TARGET::score {

/// A score with its own recurrent state, updated with the emitted word and the context (recurrent attention).
///
///     e_{t,j} = vᵀ tanh(W s_t + W_r a_{t−1} + U h_j)
///     a_t = f(a_{t−1}, [y_{t−1}; c_t]),  a_0 = 0                Feng et al. 2016
///
///     score::with_recurrence{base, W_r, nn::make_gru<float>(random, E + D, R)}
///
/// Sankaran et al. 2016, §5, print no formula, only the unit's inputs: "previous attention RNN hidden state, previous
/// target label and current attention generated context". Ours (docs/explanation/decisions.md): f is nn::gru, and W_r a
/// is added to the projected query of any base score (over `general`, (W s + W_r a)ᵀ h_j; over a base that does not
/// project the query, s + W_r a, with W_r [R,D]). Feng et al.'s terms for fertility and distortion belong to the cost.
///
/// The query is `state_and_word{s_t, y_{t−1}}` with the embedding of the last emitted word; c_t is the combiner's
/// result, of any width. After a step, a_t is `next.score.state` [B,R], for a decoder that also reads it. Throws
/// shape_error unless there is one word for each row, and unless a given a_0 fits.
template <class Base, class Matrix, class Cell>
struct with_recurrence : over::score_adaptor<with_recurrence<Base, Matrix, Cell>, Base> {
    using over::score_adaptor<with_recurrence<Base, Matrix, Cell>, Base>::base;
    Matrix W_r;  // [R,A]
    Cell cell;   // nn::gru from [E+D] to [R]

    static constexpr score_traits traits = traits_around_score<Base>([](score_traits& own) {
        own.reads_word = true;
        own.ignores_context = false;
    });

    auto init_state(const auto& memory) const
    {
        const shape_of_rank<2> shape{memory.batch(), shape_of(W_r)[0]};
        return score::row_state{constant_like(over::taped_among(memory.keys, W_r), shape, 0.0)};
    }

    /// The state before the first step, with a_0 [B,R]: `attend.start(memory, attend.score.start_from(memory, a_0))`.
    auto start_from(const auto& memory, const tensor auto& state) const
    {
        require_shape("with_recurrence::start_from", "the state", shape_of(state),
                      shape_of_rank<2>{memory.batch(), shape_of(W_r)[0]},
                      "one row for each sentence, one column for each row of W_r");
        const auto& beside = over::taped_among(memory.keys, W_r, state);
        return this->beside_base(score::row_state{same_family(beside, state)}, memory);
    }

    auto observe_query(const auto& state, const auto& at) const
    {
        const auto& query = at.query();
        const auto& word = over::word_of(query);
        require_shape("with_recurrence", "the word", shape_of(word),
                      shape_of_rank<2>{shape_of(state.state)[0], shape_of(word)[1]}, "one embedding for each row");
        return state.own();
    }

    auto query(const tensor auto& projected, const auto& state) const  // W s + W_r a
    {
        return ops::addmm(projected, state.state, W_r);
    }

    auto update_state(const auto& state, const tensor auto&, const tensor auto& context, const auto& at) const
    {
        const auto fed = ops::concat(at.query().word, context);  // [B,E+D]
        return score::row_state{cell.step(cell.project(fed), state.state)};
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::with_recurrence{visit("base", self.base), visit("W_r", self.W_r), visit("cell", self.cell)};
    }
};

template <class Base, class Matrix, class Cell>
with_recurrence(Base, Matrix, Cell) -> with_recurrence<Base, Matrix, Cell>;

}  // namespace heed::inline HEED_TARGET::score
