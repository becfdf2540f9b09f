// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Decoders that attend to a source sentence: bahdanau2015, luong2015, mi2016, sankaran2016, gehring2017, choi2018.

#include <cstddef>
#include <utility>
#include <vector>

#include <heed/attention.hpp>
#include <heed/combine/attentional.hpp>
#include <heed/combine/direction_split.hpp>
#include <heed/combine/elementwise_sum.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/heads/multi_hop.hpp>
#include <heed/nn/coverage_gru.hpp>
#include <heed/nn/init.hpp>
#include <heed/normalize/learned_temporal.hpp>
#include <heed/normalize/local_m.hpp>
#include <heed/normalize/local_p.hpp>
#include <heed/normalize/recent_temporal.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/normalize/temporal.hpp>
#include <heed/score/additive.hpp>
#include <heed/score/additive_per_dimension.hpp>
#include <heed/score/concat.hpp>
#include <heed/score/conv_s2s.hpp>
#include <heed/score/dot.hpp>
#include <heed/score/general.hpp>
#include <heed/score/location.hpp>
#include <heed/score/with_coverage.hpp>
#include <heed/score/with_word.hpp>

/// Bahdanau, Cho, Bengio 2015, "Neural Machine Translation by Jointly Learning to Align and Translate".
namespace heed::inline HEED_TARGET::papers::bahdanau2015 {

/// RNNsearch's alignment model.
///
///     e_j = vᵀ tanh(W s + U h_j)              appendix A.1.2
///     α = softmax(e),  c = Σ_j α_j h_j        eq. 6 and 5
///
/// s is the decoder's state *before* this step, s_{i-1}. No deviation.
auto additive(auto W, auto U, auto v)  // [Q,A], [D,A], [A]
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

/// As above, with new parameters, initialized as everywhere in heed, not as in appendix B.1.
template <class T>
auto make_additive(random_source& random, const sizes& n = {})
{
    auto W = nn::glorot<T>(random, n.query, n.hidden);
    auto U = nn::glorot<T>(random, n.annotation, n.hidden);
    return bahdanau2015::additive(std::move(W), std::move(U), nn::small_vector<T>(random, n.hidden));
}

}  // namespace heed::inline HEED_TARGET::papers::bahdanau2015

/// Luong, Pham, Manning 2015, "Effective Approaches to Attention-based Neural Machine Translation".
///
/// The query is the decoder's state of *this* step, h_t. Each attention returns the context c_t, from which
/// `attentional` computes the paper's h̃_t. docs/explanation/decisions.md lists misprints in slides and a survey on the
/// paper.
namespace heed::inline HEED_TARGET::papers::luong2015 {

/// Global attention: a_t = softmax(score(h_t, h̄_s)) over all positions; eq. 7.
auto global(auto score) { return attention{std::move(score), normalize::softmax{}, combine::weighted_sum{}}; }

/// score = h_tᵀ h̄_s                            section 3.1, "dot"
inline auto global_dot() { return luong2015::global(score::dot{}); }

/// score = h_tᵀ W_a h̄_s                        section 3.1, "general"; W_a [Q,D]
auto global_general(auto W_a) { return luong2015::global(score::general{std::move(W_a)}); }

/// score = v_aᵀ tanh(W_a [h_t; h̄_s])           section 3.1, "concat"; W_a [2Q,A], Q rows each for h_t and h̄_s, v_a
/// [A]
auto global_concat(auto W_a, auto v_a) { return luong2015::global(score::concat{std::move(W_a), std::move(v_a)}); }

/// a_t = softmax(W_a h_t)                      eq. 8, "location"; W_a [Q,S_max]
///
/// Deviation: a sentence longer than the number of columns of W_a throws shape_error; the paper ignores the remaining
/// words.
auto global_location(auto W_a) { return luong2015::global(score::location{std::move(W_a)}); }

/// Monotonic alignment, local-m: the window [p_t - D, p_t + D], p_t = t and D = reach; section 3.2. Deviation: if t is
/// beyond the end of the sentence, the window stays at its last word; in the paper, it would be empty.
auto local_m_of(auto score, std::size_t reach)
{
    return attention{std::move(score), normalize::local_m{reach}, combine::weighted_sum{}};
}
/// … with the dot score.
inline auto local_m(std::size_t reach = 10) { return luong2015::local_m_of(score::dot{}, reach); }
/// … with the general score, W_a [Q,D].
auto local_m(tensor auto W_a, std::size_t reach = 10) { return local_m_of(score::general{std::move(W_a)}, reach); }

/// Predictive alignment, local-p: the window [p_t - D, p_t + D], and a Gaussian of σ = D/2 around p_t.
///
///     p_t = S sigmoid(v_pᵀ tanh(W_p h_t))                                eq. 9
///     a_t(s) = align(h_t, h̄_s) exp(-(s - p_t)² / 2σ²)                    eq. 10
///
/// As printed, the weights sum to less than 1. No deviation.
auto local_p_of(auto score, auto W_p, auto v_p, std::size_t reach)  // [Q,P], [P]
{
    return attention{std::move(score), normalize::local_p{std::move(W_p), std::move(v_p), reach},
                     combine::weighted_sum{}};
}
/// … with the dot score.
auto local_p(tensor auto W_p, tensor auto v_p, std::size_t reach = 10)  // [Q,P], [P]
{
    return luong2015::local_p_of(score::dot{}, std::move(W_p), std::move(v_p), reach);
}
/// … with the general score: the best single system of the paper.
auto local_p(tensor auto W_a, tensor auto W_p, tensor auto v_p, std::size_t reach = 10)  // [Q,D], [Q,P], [P]
{
    return luong2015::local_p_of(score::general{std::move(W_a)}, std::move(W_p), std::move(v_p), reach);
}

/// Any of these attentions, with the attentional vector instead of the context. heed's choice: it is 0 for an empty
/// sentence.
///
///     h̃_t = tanh(W_c [c_t; h_t])              eq. 5
template <class Score, class Normalize, class Combine, class Matrix>
auto attentional(attention<Score, Normalize, Combine> attend, Matrix W_c)  // [D+Q,H]
{
    return attention{std::move(attend.score), std::move(attend.normalize),
                     combine::attentional{std::move(W_c), std::move(attend.combine)}};
}

}  // namespace heed::inline HEED_TARGET::papers::luong2015

/// Mi, Sankaran, Wang, Ittycheriah 2016, "Coverage Embedding Models for Neural Machine Translation"; printed in
/// Sankaran et al. 2016, section 4.1.
namespace heed::inline HEED_TARGET::papers::mi2016 {

/// Each source word has an embedding c of how much of it has been translated: initially 0, or looked up per word (see
/// score::with_coverage). Queries are state_and_word{s, y}, where y is the embedding of the last emitted word. No
/// deviation.
///
///     e_{t,j} = vᵀ tanh(W s_t + U h_j + C c_{t-1,j})          no bias
///     c_{t,j} = GRU(c_{t-1,j}, y_t, α_{t,j})                  see nn::coverage_gru
auto coverage(auto W, auto U, auto v, auto C, auto cell)  // [Q,A], [D,A], [A], [N,A], nn::coverage_gru
{
    return attention{
        score::with_coverage{score::additive{std::move(W), std::move(U), std::move(v)}, std::move(C), std::move(cell)},
        normalize::softmax{}, combine::weighted_sum{}};
}

/// The sizes of Sankaran et al. 2016.
struct sizes {
    std::size_t query = 1000;       // Q
    std::size_t annotation = 2000;  // D
    std::size_t hidden = 1000;      // A; heed's choice, not given in the paper
    std::size_t word = 300;         // E
    std::size_t coverage = 100;     // N
};

/// As above, with new parameters.
template <class T>
auto make_coverage(random_source& random, const sizes& n = {})
{
    auto additive = bahdanau2015::make_additive<T>(random, {n.query, n.annotation, n.hidden}).score;
    auto C = nn::glorot<T>(random, n.coverage, n.hidden);
    auto cell = nn::make_coverage_gru<T>(random, n.word, n.coverage);
    return luong2015::global(score::with_coverage{std::move(additive), std::move(C), std::move(cell)});
}

}  // namespace heed::inline HEED_TARGET::papers::mi2016

/// Sankaran, Mi, Al-Onaizan, Ittycheriah 2016, "Temporal Attention Model for Neural Machine Translation".
///
/// The score is Bahdanau's (the paper's r, eq. 5); the query is the intermediate state s'_t of a conditional GRU, and
/// annotations are [←h;→h]. Any other score per position works as well. The paper's coverage embeddings are
/// mi2016::coverage; its local attention is luong2015::local_m_of with an additive score.
namespace heed::inline HEED_TARGET::papers::sankaran2016 {

/// Temporal attention. No deviation.
///
///     b_{1,j} = exp(e_{1,j}),  b_{t,j} = exp(e_{t,j}) / Σ_{k<t} exp(e_{k,j})          eq. 6 and 7
///     α_{t,j} = b_{t,j} / Σ_i b_{t,i}                                                  eq. 8
///     H_t = [Σ_j α_{t,j} ←h_j ; Σ_j α_{t,j} →h_j]                                      eq. 4
auto temporal(auto W, auto U, auto v)  // [Q,A], [D,A], [A]
{
    return attention{score::additive{std::move(W), std::move(U), std::move(v)}, normalize::temporal{},
                     combine::direction_split{}};
}

/// As above, with new parameters, initialized as everywhere in heed.
template <class T>
auto make_temporal(random_source& random, const bahdanau2015::sizes& n = {})
{
    auto like = bahdanau2015::make_additive<T>(random, n);
    return attention{std::move(like.score), normalize::temporal{}, combine::direction_split{}};
}

/// Temporal attention that remembers only the last n steps: future work, section 3, last paragraph. heed's choice:
/// before step n, it remembers all steps.
///
///     b_{t,j} = exp(e_{t,j}) / Σ_{k=t-n}^{t-1} exp(e_{k,j})
auto recent_temporal(auto W, auto U, auto v, std::size_t steps)  // [Q,A], [D,A], [A]
{
    return attention{score::additive{std::move(W), std::move(U), std::move(v)}, normalize::recent_temporal{steps},
                     combine::direction_split{}};
}

/// The past as a learned connection instead of a divisor: footnote 3, where it performed worse. The paper gives no
/// formula: the single weight w and the sum of past weights are heed's choice.
///
///     α_t = softmax(u_t),  u_{t,j} = e_{t,j} + w Σ_{k<t} α_{k,j}
auto learned_temporal(auto W, auto U, auto v, auto w)  // …, [1]
{
    return attention{score::additive{std::move(W), std::move(U), std::move(v)},
                     normalize::learned_temporal{std::move(w)}, combine::direction_split{}};
}

}  // namespace heed::inline HEED_TARGET::papers::sankaran2016

/// Gehring, Auli, Grangier, Yarats, Dauphin 2017, "Convolutional Sequence to Sequence Learning" (ConvS2S).
///
/// Queries are state_and_word{h, g}: the decoder layer's state and the embedding of the previous target word. Values
/// are z_j + x_j, encoder output plus input embedding (eq. 2): `attend.on(z, ops::add(z, x), lengths)`.
namespace heed::inline HEED_TARGET::papers::gehring2017 {

/// The attention of one decoder layer.
///
///     d = W h + b + g,  a_j = softmax(dᵀ z_j),  c = Σ_j a_j (z_j + x_j)       eq. 1 and 2
auto layer(auto W, auto b)  // [Q,D], [D]
{
    return attention{score::conv_s2s{std::move(W), std::move(b)}, normalize::softmax{}, combine::weighted_sum{}};
}

/// Attention of several layers; the query of each depends on the results of the earlier layers, section 3.3: h ← h + c
/// after each layer. Deviation: the paper has a convolution between the layers; here the caller may pass it as
/// `update`. seq2seq/systems/gehring2017.hpp, the whole system, includes the convolutions.
template <class Matrix, class Vector, class Update = add_context>
auto multi_step(std::vector<score::conv_s2s<Matrix, Vector>> layers, Update update = {})
{
    std::vector<decltype(gehring2017::layer(std::declval<Matrix>(), std::declval<Vector>()))> hops;
    for (auto& each : layers) hops.push_back(gehring2017::layer(std::move(each.W), std::move(each.b)));
    return multi_hop{std::move(hops), std::move(update)};
}

}  // namespace heed::inline HEED_TARGET::papers::gehring2017

/// Choi, Cho, Bengio 2018, "Fine-grained attention mechanism for neural machine translation".
///
/// Queries are state_and_word{z, y}: the decoder's state before this step and the embedding of the previous target
/// word. The paper writes the score as f_Att, a network with one tanh layer; this is its usual form. No bias.
namespace heed::inline HEED_TARGET::papers::choi2018 {

/// AttY: the score reads the previous target word.
///
///     e_t = vᵀ tanh(W z + U h_t + Y y)        eq. 6
///     α = softmax(e),  c = Σ_t α_t h_t        eq. 4 and 5
auto att_y(auto W, auto U, auto v, auto Y)  // [Q,A], [D,A], [A], [E,A]
{
    return attention{score::with_word{score::additive{std::move(W), std::move(U), std::move(v)}, std::move(Y)},
                     normalize::softmax{}, combine::weighted_sum{}};
}

/// AttY2D, fine-grained attention: a weight for each dimension of each annotation.
///
///     e_t^d = V_dᵀ tanh(W z + U h_t + Y y)    eq. 7
///     α^d = softmax(e^d),  c = Σ_t α_t ⊙ h_t  eq. 8 and 9
auto att_y_2d(auto W, auto U, auto V, auto Y)  // [Q,A], [D,A], [A,D], [E,A]
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
    auto additive = bahdanau2015::make_additive<T>(random, {n.query, n.annotation, n.hidden}).score;
    return luong2015::global(score::with_word{std::move(additive), nn::glorot<T>(random, n.word, n.hidden)});
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

}  // namespace heed::inline HEED_TARGET::papers::choi2018
