// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/nn/gru.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/shape.hpp>
#include <heed/score/over.hpp>

namespace heed::score {

/// What recurrent attention remembers.
template <class State, class Inner = no_past>
struct recurrence_past {
    State state;  // [B,R] a_{t−1}
    Inner base;

    auto map(auto&& f, const auto&... others) const
    {
        if constexpr (spares_rows<decltype(f)>) {
            return score::recurrence_past{state, base.map(f, others.base...)};  // a window cuts positions, not this
        } else {
            return score::recurrence_past{f(state, others.state...), base.map(f, others.base...)};
        }
    }
};
template <class State, class Inner>
recurrence_past(State, Inner) -> recurrence_past<State, Inner>;

/// A score that also reads a state of its own, which a recurrent unit feeds with what was emitted and what was read
/// (recurrent attention).
///
///     e_{t,j} = vᵀ tanh(W s_t + W_r a_{t−1} + U h_j)
///     a_t = f(a_{t−1}, [y_{t−1}; c_t]),  a_0 = 0                Feng et al. 2016 [lit] · SPEC R1
///
/// Sankaran et al. 2016, §5, print no formula, only what feeds the unit: "previous attention RNN hidden state, previous
/// target label and current attention generated context". Ours: f is nn::gru, and W_r a joins the projected query of
/// any base score (over `general`, (W s + W_r a)ᵀ h_j; over a base that takes the query as it is, s + W_r a, with W_r
/// [R,D]). Feng et al.'s terms for fertility and distortion belong to the cost, not to the score, and are not here.
///
///     score::with_recurrence{base, W_r, nn::make_gru<float>(random, E + D, R)}
///
/// The query is `state_and_word{s_t, y_{t−1}}`, y_{t−1} the embedding of the last word that was emitted. c_t is what
/// the combiner makes, whatever its width. The state has a row for each sentence and no positions: a window (`local_m`,
/// `local_p`) leaves it whole. After a step, a_t is `next.score.state` [B,R]: what attention has read so far, context
/// included, for a decoder that wants it beside c_t.
template <class Base, class Matrix, class Cell>
struct with_recurrence : over::another<Base> {
    using over::another<Base>::base;
    Matrix W_r;  // [R,A]
    Cell cell;   // nn::gru from [E+D] to [R]

    static constexpr bool reads_word = true, reads_context = true;

    auto project(const auto& query) const { return over::project(base, query); }

    auto start(const auto& memory) const
    {
        const shape_of_rank<2> shape{memory.batch(), shape_of(W_r)[0]};
        return start_from(memory, constant_like(over::taped_among(memory.keys, W_r), shape, 0.0));
    }

    /// The past before the first step with state a_0 [B,R]: `attend.start(memory, attend.score.start_from(memory,
    /// a_0))`.
    auto start_from(const auto& memory, const tensor auto& state) const
    {
        require_shape("with_recurrence::start_from", "the state", shape_of(state),
                      shape_of_rank<2>{memory.batch(), shape_of(W_r)[0]},
                      "a row for each sentence, as long as W_r has");
        const auto& beside = over::taped_among(memory.keys, W_r, state);
        return score::recurrence_past{same_family(beside, state), over::start(base, memory)};
    }

    auto recall(const auto& past, const auto& at) const
    {
        const auto& query = at.query();
        static_assert(
            requires { query.word; }, "heed: score::with_recurrence needs the word that was emitted last: ask with "
                                      "heed::state_and_word{state, word}");
        static_assert(
            !over::word_is_projected<decltype(query)>,
            "heed: score::with_recurrence reads the word's embedding, and a state_and_projected_word has only "
            "what with_word made of it: ask with heed::state_and_word{state, word}");
        require_shape("with_recurrence", "the word", shape_of(query.word),
                      shape_of_rank<2>{shape_of(past.state)[0], shape_of(query.word)[1]}, "one embedding for each row");
        return score::recurrence_past{past.state, over::recall(base, past.base, at)};
    }

    auto match(const tensor auto& projected, const tensor auto& keys, const auto& past) const
    {
        return over::match(base, ops::add(projected, ops::linear(past.state, W_r)), keys, past.base);
    }

    auto advance(const auto& past, const tensor auto& weights_now, const tensor auto& context, const auto& at) const
    {
        const auto fed = ops::concat(at.query().word, context);  // [B,E+D]
        return score::recurrence_past{cell.step(cell.project(fed), past.state),
                                      over::advance(base, past.base, weights_now, context, at)};
    }

    auto operator()(const auto& query, const tensor auto& keys, const auto& past) const
    {
        return match(project(query), keys, past);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::with_recurrence{visit("base", self.base), visit("W_r", self.W_r), visit("cell", self.cell)};
    }
};

template <class Base, class Matrix, class Cell>
with_recurrence(Base, Matrix, Cell) -> with_recurrence<Base, Matrix, Cell>;

}  // namespace heed::score
