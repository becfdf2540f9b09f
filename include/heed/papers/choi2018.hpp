// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

#include <heed/attention.hpp>
#include <heed/combine/elementwise_sum.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/nn/init.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/additive.hpp>
#include <heed/score/additive_per_dimension.hpp>
#include <heed/score/with_word.hpp>

/// Choi, Cho, Bengio 2018, "Fine-grained attention mechanism for neural machine translation".
///
/// Both take queries state_and_word{z, y}: the decoder's state before this step and the embedding of the previous
/// target word. The paper writes the score as f_Att, a network with one tanh layer; this is its usual form. No bias.
namespace heed::papers::choi2018 {

/// AttY: the score reads the previous target word.
///
///     e_t = vᵀ tanh(W z + U h_t + Y y)        eq. 6
///     α = softmax(e),  c = Σ_t α_t h_t        eq. 4 and 5
template <class Matrix, class Vector>
auto att_y(Matrix W, Matrix U, Vector v, Matrix Y)  // [Q,A], [D,A], [A], [E,A]
{
    return attention{score::with_word{score::additive{std::move(W), std::move(U), std::move(v)}, std::move(Y)},
                     normalize::softmax{}, combine::weighted_sum{}};
}

/// AttY2D, fine-grained attention: a weight for each dimension of each annotation.
///
///     e_t^d = V_dᵀ tanh(W z + U h_t + Y y)    eq. 7
///     α^d = softmax(e^d),  c = Σ_t α_t ⊙ h_t  eq. 8 and 9
template <class Matrix>
auto att_y_2d(Matrix W, Matrix U, Matrix V, Matrix Y)  // [Q,A], [D,A], [A,D], [E,A]
{
    return attention{
        score::with_word{score::additive_per_dimension{std::move(W), std::move(U), std::move(V)}, std::move(Y)},
        normalize::softmax{}, combine::elementwise_sum{}};
}

/// The sizes of the paper's section 4.3.
struct sizes {
    std::size_t query = 1000;       // Q
    std::size_t annotation = 2000;  // D: both directions
    std::size_t hidden = 2000;      // A
    std::size_t word = 620;         // E
};

/// AttY with new parameters.
template <class T>
auto make_att_y(random_source& random, const sizes& n = {})
{
    auto W = nn::glorot<T>(random, n.query, n.hidden);
    auto U = nn::glorot<T>(random, n.annotation, n.hidden);
    auto v = nn::small_vector<T>(random, n.hidden);
    return choi2018::att_y(std::move(W), std::move(U), std::move(v), nn::glorot<T>(random, n.word, n.hidden));
}

/// AttY2D with new parameters.
template <class T>
auto make_att_y_2d(random_source& random, const sizes& n = {})
{
    auto W = nn::glorot<T>(random, n.query, n.hidden);
    auto U = nn::glorot<T>(random, n.annotation, n.hidden);
    auto V = nn::glorot<T>(random, n.hidden, n.annotation);
    return choi2018::att_y_2d(std::move(W), std::move(U), std::move(V), nn::glorot<T>(random, n.word, n.hidden));
}

}  // namespace heed::papers::choi2018
