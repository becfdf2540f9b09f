// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/concepts.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/products.hpp>

namespace heed {

/// A query of two parts: the decoder's state s [B,Q] and the embedding y of the previous target word [B,E].
template <class State, class Word>
struct state_and_word {
    State state;
    Word word;
};
template <class State, class Word>
state_and_word(State, Word) -> state_and_word<State, Word>;

/// The same with Y y [B,A] already computed, see score::with_word::project_words.
template <class State, class Word>
struct state_and_projected_word {
    State state;
    Word word;
};
template <class State, class Word>
state_and_projected_word(State, Word) -> state_and_projected_word<State, Word>;

namespace score {

/// A score that also reads the previous target word y: its embedding joins the projected query of any base score.
///
///     e_j = vᵀ tanh(W s + U h_j + Y y)        over `additive`: AttY, Choi et al. 2018, eq. 6 · SPEC SC7
///     e_j^d = V_dᵀ tanh(W s + U h_j + Y y)    over `additive_per_dimension`: AttY2D, eq. 7 · SPEC SC8
///
/// In training all target words are known: `project_words` computes Y y for every step in one product.
/// No deviation.
template <class Base, class Matrix>
struct with_word {
    Base base;
    Matrix Y;  // [E,A]

    static constexpr weight_kind weights = Base::weights;

    auto prepare(const tensor auto& annotations) const requires requires { base.prepare(annotations); }
    {
        return base.prepare(annotations);
    }

    auto project_words(const tensor auto& words) const  // [...,E] -> [...,A]
    {
        return ops::linear(words, Y);
    }

    template <class State, class Word>
    auto project(const state_and_word<State, Word>& query) const  // [B,Q], [B,E] -> [B,A]
    {
        return ops::add(base.project(query.state), project_words(query.word));
    }

    template <class State, class Word>
    auto project(const state_and_projected_word<State, Word>& query) const  // [B,Q], [B,A] -> [B,A]
    {
        return ops::add(base.project(query.state), query.word);
    }

    auto match(const tensor auto& projected, const tensor auto& keys) const { return base.match(projected, keys); }

    auto operator()(const auto& query, const tensor auto& keys) const { return match(project(query), keys); }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::with_word{visit("base", self.base), visit("Y", self.Y)};
    }
};

template <class Base, class Matrix>
with_word(Base, Matrix) -> with_word<Base, Matrix>;

}  // namespace score

}  // namespace heed
