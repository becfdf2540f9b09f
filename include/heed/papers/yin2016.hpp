// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

#include <heed/abcnn.hpp>

/// Yin, Schütze, Xiang, Zhou 2016, "ABCNN: Attention-Based Convolutional Neural Network for Modeling Sentence Pairs".
///
/// Each function returns one block, from feature maps of two sentences to new ones of the same lengths; blocks can be
/// stacked. w is the width of the convolution and of the pooling. Deviation: padding takes part in the paper, not here.
namespace heed::papers::yin2016 {

/// BCNN: convolution and average pooling, no attention; section 3.
template <class Matrix, class Vector>
auto bcnn(Matrix W, Vector b, std::size_t w)  // [wD,N], [N]
{
    return abcnn::block{abcnn::words_alone{}, std::move(W), std::move(b), w, abcnn::average_pooling{}};
}

/// ABCNN-1: attention before the convolution, as a second channel.
///
///     A_ij = 1 / (1 + |x_i - y_j|),  F_0a = W_0 Aᵀ,  F_1a = W_1 A
template <class Matrix, class Vector>
auto abcnn1(Matrix W_0, Matrix W_1, Matrix W, Vector b, std::size_t w)  // [words,D] twice, [w·2D,N], [N]
{
    return abcnn::block{abcnn::feature_maps{std::move(W_0), std::move(W_1)}, std::move(W), std::move(b), w,
                        abcnn::average_pooling{}};
}

/// ABCNN-2: attention after the convolution, as the weights of the pooling.
///
///     a_0j = Σ_k A_jk,  a_1j = Σ_k A_kj,  F^p[:,j] = Σ_{k=j}^{j+w-1} a_k F^c[:,k]
template <class Matrix, class Vector>
auto abcnn2(Matrix W, Vector b, std::size_t w)  // [wD,N], [N]
{
    return abcnn::block{abcnn::words_alone{}, std::move(W), std::move(b), w, abcnn::attention_pooling{}};
}

/// ABCNN-3: both.
template <class Matrix, class Vector>
auto abcnn3(Matrix W_0, Matrix W_1, Matrix W, Vector b, std::size_t w)  // [words,D] twice, [w·2D,N], [N]
{
    return abcnn::block{abcnn::feature_maps{std::move(W_0), std::move(W_1)}, std::move(W), std::move(b), w,
                        abcnn::attention_pooling{}};
}

}  // namespace heed::papers::yin2016
