// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/nn/init.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/additive.hpp>

/// Bahdanau, Cho, Bengio 2015, "Neural Machine Translation by Jointly Learning to Align and Translate".
namespace heed::papers::bahdanau2015 {

/// RNNsearch's alignment model.
///
///     e_j = vᵀ tanh(W s + U h_j)              appendix A.1.2
///     α = softmax(e),  c = Σ_j α_j h_j        eq. 6 and 5
///
/// s is the decoder's state *before* this step, s_{i-1}. No deviation.
template <class Matrix, class Vector>
auto additive(Matrix W, Matrix U, Vector v)  // [Q,A], [D,A], [A]
{
    return attention{score::additive{std::move(W), std::move(U), std::move(v)}, normalize::softmax{},
                     combine::weighted_sum{}};
}

/// The sizes of the paper's model.
struct sizes {
    std::size_t query = 1000;       // Q
    std::size_t annotation = 2000;  // D: both directions
    std::size_t hidden = 1000;      // A
};

/// The same with new parameters, initialized as everywhere in heed, not as in appendix B.1.
template <class T>
auto make_additive(random_source& random, const sizes& n = {})
{
    auto W = nn::glorot<T>(random, n.query, n.hidden);
    auto U = nn::glorot<T>(random, n.annotation, n.hidden);
    return bahdanau2015::additive(std::move(W), std::move(U), nn::small_vector<T>(random, n.hidden));
}

}  // namespace heed::papers::bahdanau2015
