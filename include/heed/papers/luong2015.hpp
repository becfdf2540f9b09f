// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

#include <heed/attention.hpp>
#include <heed/combine/attentional.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/local_m.hpp>
#include <heed/normalize/local_p.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/concat.hpp>
#include <heed/score/dot.hpp>
#include <heed/score/general.hpp>
#include <heed/score/location.hpp>

/// Luong, Pham, Manning 2015, "Effective Approaches to Attention-based Neural Machine Translation".
///
/// The query is the decoder's state of *this* step, h_t. Each attention below returns the context c_t; `attentional`
/// computes the paper's h̃_t from it. For misprints in slides and a survey on the paper, see docs/decisions.md.
namespace heed::papers::luong2015 {

/// Global attention: a_t = softmax(score(h_t, h̄_s)) over all positions; eq. 7.
template <class Score>
auto global(Score score)
{
    return attention{std::move(score), normalize::softmax{}, combine::weighted_sum{}};
}

/// score = h_tᵀ h̄_s                            section 3.1, "dot"
inline auto global_dot() { return luong2015::global(score::dot{}); }

/// score = h_tᵀ W_a h̄_s                        section 3.1, "general"
template <class Matrix>
auto global_general(Matrix W_a)  // [Q,D]
{
    return luong2015::global(score::general{std::move(W_a)});
}

/// score = v_aᵀ tanh(W_a [h_t; h̄_s])           section 3.1, "concat"
///
/// One half of W_a's rows belongs to h_t, the other to h̄_s.
template <class Matrix, class Vector>
auto global_concat(Matrix W_a, Vector v_a)  // [2Q,A], [A]
{
    return luong2015::global(score::concat{std::move(W_a), std::move(v_a)});
}

/// a_t = softmax(W_a h_t)                      eq. 8, "location"
///
/// Deviation: a sentence longer than W_a has columns is an error; the paper ignores the words beyond.
template <class Matrix>
auto global_location(Matrix W_a)  // [Q,S_max]
{
    return luong2015::global(score::location{std::move(W_a)});
}

/// Monotonic alignment, local-m: the window [t - D, t + D], D = reach; section 3.2.
///
/// Deviation: when t is past the end of the sentence, the window stays at its last word; the paper's would be empty.
template <class Score>
auto local_m_of(Score score, std::size_t reach)
{
    return attention{std::move(score), normalize::local_m{reach}, combine::weighted_sum{}};
}
/// … with the dot score.
inline auto local_m(std::size_t reach = 10) { return luong2015::local_m_of(score::dot{}, reach); }
/// … with the general score.
template <tensor Matrix>
auto local_m(Matrix W_a, std::size_t reach = 10)  // [Q,D]
{
    return luong2015::local_m_of(score::general{std::move(W_a)}, reach);
}

/// Predictive alignment, local-p: the window [p_t - D, p_t + D], and a Gaussian of σ = D/2 around p_t.
///
///     p_t = S sigmoid(v_pᵀ tanh(W_p h_t))                                eq. 9
///     a_t(s) = align(h_t, h̄_s) exp(-(s - p_t)² / 2σ²)                    eq. 10
///
/// As printed, the weights sum to less than 1. No deviation.
template <class Score, class Matrix, class Vector>
auto local_p_of(Score score, Matrix W_p, Vector v_p, std::size_t reach)  // [Q,P], [P]
{
    return attention{std::move(score), normalize::local_p{std::move(W_p), std::move(v_p), reach},
                     combine::weighted_sum{}};
}
/// … with the dot score.
template <tensor Matrix, tensor Vector>
auto local_p(Matrix W_p, Vector v_p, std::size_t reach = 10)
{
    return luong2015::local_p_of(score::dot{}, std::move(W_p), std::move(v_p), reach);
}
/// … with the general score: the best single system of the paper.
template <tensor Matrix, tensor Vector>
auto local_p(Matrix W_a, Matrix W_p, Vector v_p, std::size_t reach = 10)  // [Q,D], [Q,P], [P]
{
    return luong2015::local_p_of(score::general{std::move(W_a)}, std::move(W_p), std::move(v_p), reach);
}

/// Any of these, with the attentional vector in place of the context.
///
///     h̃_t = tanh(W_c [c_t; h_t])              eq. 5
///
/// Ours: for a sentence without words it is 0.
template <class Score, class Normalize, class Combine, class Matrix>
auto attentional(attention<Score, Normalize, Combine> attend, Matrix W_c)  // [D+Q,H]
{
    return attention{std::move(attend.score), std::move(attend.normalize),
                     combine::attentional{std::move(W_c), std::move(attend.combine)}};
}

}  // namespace heed::papers::luong2015
