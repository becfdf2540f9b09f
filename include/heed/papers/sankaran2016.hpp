// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

#include <heed/attention.hpp>
#include <heed/combine/direction_split.hpp>
#include <heed/normalize/connected.hpp>
#include <heed/normalize/recent_temporal.hpp>
#include <heed/normalize/temporal.hpp>
#include <heed/papers/bahdanau2015.hpp>
#include <heed/score/additive.hpp>

/// Sankaran, Mi, Al-Onaizan, Ittycheriah 2016, "Temporal Attention Model for Neural Machine Translation".
///
/// The score is Bahdanau's (the paper's r, eq. 5), and the query is the intermediate state s'_t of a conditional GRU.
/// Any other score per position works as well: attention{score, normalize::temporal{}, combine::weighted_sum{}}.
/// Annotations are [←h;→h]. The paper's coverage embeddings are mi2016::coverage, its local attention
/// luong2015::local_m_of with an additive score.
///
/// The related work of section 5: Xu et al. 2015 (doubly stochastic penalty), Feng et al. 2016 (recurrent attention),
/// Cohn et al. 2016 (structural biases), Chorowski et al. 2014 (speech), Tu et al. 2016 (coverage).
namespace heed::papers::sankaran2016 {

/// Temporal attention.
///
///     b_{1,j} = exp(e_{1,j}),  b_{t,j} = exp(e_{t,j}) / Σ_{k<t} exp(e_{k,j})          eq. 6 and 7
///     α_{t,j} = b_{t,j} / Σ_i b_{t,i}                                                  eq. 8
///     H_t = [Σ_j α_{t,j} ←h_j ; Σ_j α_{t,j} →h_j]                                      eq. 4
///
/// No deviation.
template <class Matrix, class Vector>
auto temporal(Matrix W, Matrix U, Vector v)  // [Q,A], [D,A], [A]
{
    return attention{score::additive{std::move(W), std::move(U), std::move(v)}, normalize::temporal{},
                     combine::direction_split{}};
}

/// The same with new parameters, initialized as everywhere in heed.
template <class T>
auto make_temporal(random_source& random, const bahdanau2015::sizes& n = {})
{
    auto like = bahdanau2015::make_additive<T>(random, n);
    return attention{std::move(like.score), normalize::temporal{}, combine::direction_split{}};
}

/// Temporal attention that remembers the last n steps only: future work, section 3, last paragraph.
///
/// Ours: while fewer than n steps have passed, it remembers all of them.
template <class Matrix, class Vector>
auto recent_temporal(Matrix W, Matrix U, Vector v, std::size_t steps)
{
    return attention{score::additive{std::move(W), std::move(U), std::move(v)}, normalize::recent_temporal{steps},
                     combine::direction_split{}};
}

/// The past as a learned connection instead of a divisor: footnote 3, where it performed worse.
///
/// The paper gives no formula: the one number w and the sum of past weights are ours.
template <class Matrix, class Vector>
auto connected(Matrix W, Matrix U, Vector v, Vector w)  // …, [1]
{
    return attention{score::additive{std::move(W), std::move(U), std::move(v)}, normalize::connected{std::move(w)},
                     combine::direction_split{}};
}

}  // namespace heed::papers::sankaran2016
