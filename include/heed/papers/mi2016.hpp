// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/nn/coverage_gru.hpp>
#include <heed/nn/init.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/additive.hpp>
#include <heed/score/with_coverage.hpp>

/// Mi, Sankaran, Wang, Ittycheriah 2016, "Coverage Embedding Models for Neural Machine Translation"; printed in
/// Sankaran et al. 2016, section 4.1.
namespace heed::papers::mi2016 {

/// Each source word has an embedding that says how far it has been translated. Queries are state_and_word{s, y}, where
/// y is the embedding of the last emitted word.
///
///     e_{t,j} = vᵀ tanh(W s_t + U h_j + C c_{t-1,j})
///     c_{t,j} = GRU(c_{t-1,j}, y_t, α_{t,j})                  see nn::coverage_gru
///
/// c_0 is 0, or looked up per source word: see score::with_coverage. No deviation; no bias.
template <class Matrix, class Vector, class Cell>
auto coverage(Matrix W, Matrix U, Vector v, Matrix C, Cell cell)  // [Q,A], [D,A], [A], [N,A], nn::coverage_gru
{
    return attention{
        score::with_coverage{score::additive{std::move(W), std::move(U), std::move(v)}, std::move(C), std::move(cell)},
        normalize::softmax{}, combine::weighted_sum{}};
}

/// The sizes of Sankaran et al. 2016.
struct sizes {
    std::size_t query = 1000;       // Q
    std::size_t annotation = 2000;  // D
    std::size_t hidden = 1000;      // A; ours: not given
    std::size_t word = 300;         // E
    std::size_t coverage = 100;     // N
};

/// The same with new parameters.
template <class T>
auto make_coverage(random_source& random, const sizes& n = {})
{
    auto W = nn::glorot<T>(random, n.query, n.hidden);
    auto U = nn::glorot<T>(random, n.annotation, n.hidden);
    auto v = nn::small_vector<T>(random, n.hidden);
    auto C = nn::glorot<T>(random, n.coverage, n.hidden);
    return mi2016::coverage(std::move(W), std::move(U), std::move(v), std::move(C),
                            nn::make_coverage_gru<T>(random, n.word, n.coverage));
}

}  // namespace heed::papers::mi2016
