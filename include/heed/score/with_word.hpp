// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ops/elementwise.hpp>
#include <heed/ops/products.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/query.hpp>
#include <heed/policy/score_hooks.hpp>
#include <heed/score/over.hpp>

namespace heed::inline HEED_TARGET::score {

/// A score that also reads the previous target word: its embedding y is added to the projected query of any base score.
///
///     e_j = vᵀ tanh(W s + U h_j + Y y)        over `additive`: AttY, Choi et al. 2018, eq. 6
///     e_j^d = V_dᵀ tanh(W s + U h_j + Y y)    over `additive_per_dimension`: AttY2D, eq. 7
///
/// Over `general`, e_j = (W s + Y y)ᵀ h_j; over a base that does not project the query (`dot`, `scaled_dot`, `cosine`,
/// `match`), s + Y y is compared, with Y [E,D]. Over a base that already adds a word (`conv_s2s`, `with_word`) it adds
/// a second one: the query is state_and_word{state_and_word{s, word of the base}, y}. In training all target words are
/// known: `project_words` computes Y y for every step in one product. No deviation.
template <class Base, class Matrix>
struct with_word : over::score_adaptor<with_word<Base, Matrix>, Base, over::base_remembers> {
    using over::score_adaptor<with_word<Base, Matrix>, Base, over::base_remembers>::base;
    Matrix Y;  // [E,A]

    static constexpr score_traits traits = traits_around_score<Base>([](score_traits& own) { own.adds_word = true; });

    auto project_words(const tensor auto& words) const  // [...,E] -> [...,A]
    {
        return ops::linear(words, Y);
    }

    template <class Query>
    auto project(const Query& query) const  // [B,Q], and [B,E] or projected [B,A] -> [B,A]
    {
        if constexpr (!requires { query.state, query.word; }) {
            static_assert(detail::placeholder<Query>,
                          "heed: score::with_word needs a query of two tensors: state_and_word{s, y}, the decoder's "
                          "state [B,Q] and the embedding of the previous target word [B,E] (or "
                          "state_and_projected_word{s, project_words(y)})");
            return query;
        } else if constexpr (tensor<decltype(query.state)> && score_traits_of<Base>().adds_word) {
            static_assert(detail::placeholder<Query>,
                          "heed: score::with_word wraps a score that already adds the target word (score::conv_s2s, or "
                          "another score::with_word): remove this with_word, or give both words, "
                          "state_and_word{state_and_word{s, word of the base}, y}");
            return query.state;
        } else if constexpr (over::word_is_projected<Query>) {
            return ops::add_same_shape(over::projected(base, query.state), query.word);
        } else {
            return ops::add_same_shape(over::projected(base, query.state), project_words(query.word));
        }
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::with_word{visit("base", self.base), visit("Y", self.Y)};
    }
};

template <class Base, class Matrix>
with_word(Base, Matrix) -> with_word<Base, Matrix>;

}  // namespace heed::inline HEED_TARGET::score
