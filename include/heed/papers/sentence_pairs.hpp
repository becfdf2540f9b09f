// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Models that compare two sentences: yin2016.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heed/core/random.hpp>
#include <heed/nn/factory.hpp>
#include <heed/pairs/abcnn.hpp>
#include <heed/pairs/matcher.hpp>

/// Yin, Schütze, Xiang, Zhou 2016, "ABCNN: Attention-Based Convolutional Neural Network for Modeling Sentence Pairs".
///
/// `bcnn`, `abcnn1`, `abcnn2` and `abcnn3` return one block, which maps feature maps of two sentences to new feature
/// maps of the same lengths, with a convolution and a pooling of width w; blocks can be stacked. `matcher` returns the
/// whole model. Deviation: in the paper, padding affects the results; here it does not.
namespace heed::inline HEED_TARGET::papers::yin2016 {

/// BCNN: convolution and average pooling, no attention.
///
///     F^c_i = tanh(c_i W + b),  F^p[:,j] = (1/w) Σ_{k=j}^{j+w-1} F^c[:,k]           section 3
auto bcnn(auto W, auto b, std::size_t w)  // [wD,N], [N]
{
    return abcnn::block{abcnn::words_alone{}, std::move(W), std::move(b), w, abcnn::average_pooling{}};
}

/// ABCNN-1: attention before the convolution, as a second channel.
///
///     A_ij = 1 / (1 + |x_i - y_j|),  F_0a = W_0 Aᵀ,  F_1a = W_1 A
auto abcnn1(auto W_0, auto W_1, auto W, auto b, std::size_t w)  // [words,D] twice, [w·2D,N], [N]
{
    return abcnn::block{abcnn::feature_maps{std::move(W_0), std::move(W_1)}, std::move(W), std::move(b), w,
                        abcnn::average_pooling{}};
}

/// ABCNN-2: attention after the convolution, as the weights of the pooling.
///
///     a_0j = Σ_k A_jk,  a_1j = Σ_k A_kj,  F^p[:,j] = Σ_{k=j}^{j+w-1} a_k F^c[:,k]
auto abcnn2(auto W, auto b, std::size_t w)  // [wD,N], [N]
{
    return abcnn::block{abcnn::words_alone{}, std::move(W), std::move(b), w, abcnn::attention_pooling{}};
}

/// ABCNN-3: both.
///
///     F_0a = W_0 Aᵀ,  F_1a = W_1 A,  F^p[:,j] = Σ_{k=j}^{j+w-1} a_k F^c[:,k]
auto abcnn3(auto W_0, auto W_1, auto W, auto b, std::size_t w)  // [words,D] twice, [w·2D,N], [N]
{
    return abcnn::block{abcnn::feature_maps{std::move(W_0), std::move(W_1)}, std::move(W), std::move(b), w,
                        abcnn::attention_pooling{}};
}

/// The sizes of a complete model. The paper has embeddings of size 300, 50 maps and one or two blocks of width 3 or 4.
struct sizes {
    std::size_t first_vocabulary = 0, second_vocabulary = 0;
    std::size_t embedding = 64;
    std::size_t maps = 50;
    std::size_t width = 3;
    std::size_t blocks = 2;
    std::size_t longest = 64;  // maximum number of words in a sentence for ABCNN-1 and 3
};

/// The sizes of a block, for its factory.
struct block_sizes {
    std::size_t channels = 0;  // numbers per word that the block reads
    std::size_t maps = 0;
    std::size_t width = 0;
    std::size_t longest = 0;  // words of a sentence
};

/// Makes the blocks of a model; blocks with `before` read at most `longest` words.
template <bool before, class Pooling>
struct block_factory {
    auto operator()(const auto& init, const block_sizes& n) const
    {
        const auto made = [&](auto attention, std::size_t per_word) {
            return abcnn::block{std::move(attention), init.glorot(n.width * per_word, n.maps), init.zeros(n.maps),
                                n.width, Pooling{}};
        };
        if constexpr (before) {
            auto W_0 = init.glorot(n.longest, n.channels), W_1 = init.glorot(n.longest, n.channels);
            return made(abcnn::feature_maps{std::move(W_0), std::move(W_1)}, 2 * n.channels);
        } else {
            return made(abcnn::words_alone{}, n.channels);
        }
    }
};
/// … for BCNN
using bcnn_factory = block_factory<false, abcnn::average_pooling>;
/// … for ABCNN-1
using abcnn1_factory = block_factory<true, abcnn::average_pooling>;
/// … for ABCNN-2
using abcnn2_factory = block_factory<false, abcnn::attention_pooling>;
/// … for ABCNN-3
using abcnn3_factory = block_factory<true, abcnn::attention_pooling>;

/// A complete model that predicts whether two sentences match: embeddings, stacked blocks, logistic regression over the
/// similarities at all levels (see pairs/matcher.hpp). `block`: one of the factories above, or your own.
///
///     auto model = papers::yin2016::matcher<float>(seed, sizes, papers::yin2016::abcnn3_factory{});
template <class T, class Block>
auto matcher(std::uint64_t seed, const sizes& n, const Block& block)
{
    random_source random{seed, 0};
    const nn::initializers<T> init{random};
    auto first = init.gaussian(n.first_vocabulary, n.embedding, 0.1);
    auto second = init.gaussian(n.second_vocabulary, n.embedding, 0.1);
    std::vector<nn::part_of<Block, T, block_sizes>> blocks;
    for (std::size_t k = 0; k < n.blocks; ++k) {
        const block_sizes of_block{k == 0 ? n.embedding : n.maps, n.maps, n.width, n.longest};
        blocks.push_back(nn::make_part(block, init, of_block));
    }
    auto W = init.glorot(2 * (n.blocks + 1), 2);
    return pairs::matcher{std::move(first), std::move(second), std::move(blocks), std::move(W), init.zeros(2)};
}

}  // namespace heed::inline HEED_TARGET::papers::yin2016
