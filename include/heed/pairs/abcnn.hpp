// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <heed/core/family.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/masks.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/rows.hpp>
#include <heed/ops/shape.hpp>
#include <heed/ops/similarity.hpp>
#include <heed/ops/sums.hpp>
#include <heed/ops/windows.hpp>

namespace heed::inline HEED_TARGET::ops {

/// The words under each window of a wide convolution, concatenated: x [B,S,D] -> [B,S+w-1,w·D].
///
///     y_i = [x_{i-w+1}; …; x_i], i = 0 … S+w-2, zeros where there is no word
///     ∂x_k += its part of each ∂y_i
///
/// Its matrix product with W [w·D,N] is the convolution.
struct unfold_op : move_operation<unfold_op, std::size_t> {
    static constexpr ranks takes{3, 3};

    static shape_of_rank<3> shape(const auto& x, std::size_t width)
    {
        detail::require_width("unfold", width);
        return {x.shape[0], x.shape[1] + width - 1, width * x.shape[2]};
    }

    /// The words of each window, which are contiguous in both tensors.
    static void each_move(const auto& x, std::size_t width, auto move)
    {
        const auto [B, S, D] = x;
        move.nothing(0, B * (S + width - 1) * width * D);
        for (std::size_t b = 0; S > 0 && b < B; ++b) {
            for (std::size_t i = 0; i < S + width - 1; ++i) {
                const std::size_t first = i + 1 > width ? i + 1 - width : 0, last = std::min(i + 1, S);
                const std::size_t place = (b * (S + width - 1) + i) * width;
                move((b * S + first) * D, (place + first + width - 1 - i) * D, (last - first) * D);
            }
        }
    }
};
inline constexpr unfold_op unfold{};

/// Weighted sums of w neighbors: x [B,S,D], a [B,S] -> [B,S-w+1,D].
///
///     y_j = Σ_{k=j}^{j+w-1} a_k x_k           w terms, j = 0 … S-w
///     ∂x_k += a_k ∂y_j,  ∂a_k += ∂y_j · x_k
struct pool_windows_op : operation<pool_windows_op> {
    static shape_of_rank<3> shape(const auto& x, const auto& a, std::size_t width)
    {
        detail::require_width("pool_windows", width);
        require_shape("pool_windows", "the weights", a.shape, {x.shape[0], x.shape[1]}, "one for each column of ",
                      x.shape);
        if (x.shape[1] + 1 < width) {
            throw shape_error("pool_windows: windows of " + counted(width, "column") + " in x " + shape_text(x.shape) +
                              "; give at most " + std::to_string(x.shape[1] + 1));
        }
        return {x.shape[0], x.shape[1] + 1 - width, x.shape[2]};
    }

    template <class T>
    static void forward(in<T, 3> x, in<T, 2> a, std::size_t width, out<T, 3> y)
    {
        std::fill_n(y.data, y.size(), T(0));
        each_pair(y.shape, width, [=, D = x.shape[2]](std::size_t j, std::size_t k) {
            kernels::add_scaled(D, y.data + j * D, a.data[k], x.data + k * D);
        });
    }

    template <class T>
    static void backward(in<T, 3> x, in<T, 2> a, std::size_t width, in<T, 3> y, in<T, 3> d_y, adjoint<T, 3> d_x,
                         adjoint<T, 2> d_a)
    {
        each_pair(y.shape, width, [=, D = x.shape[2]](std::size_t j, std::size_t k) {
            if (d_x) kernels::add_scaled(D, d_x.data + k * D, a.data[k], d_y.data + j * D);
            if (d_a) d_a.data[k] += kernels::dot(D, d_y.data + j * D, x.data + k * D);
        });
    }

private:
    /// Calls f(column j of the result, column k of x under its window), both counted over the whole batch.
    template <class F>
    static void each_pair(const shape_of_rank<3>& y, std::size_t width, F&& f)
    {
        for (std::size_t b = 0; b < y[0]; ++b) {
            for (std::size_t j = 0; j < y[1]; ++j) {
                for (std::size_t k = j; k < j + width; ++k) f(b * y[1] + j, b * (y[1] + width - 1) + k);
            }
        }
    }
};
inline constexpr pool_windows_op pool_windows{};

}  // namespace heed::inline HEED_TARGET::ops

/// Attention between the two sentences of a pair, within a convolutional network that reads both.
///
///     A_ij = 1 / (1 + |x_i - y_j|)                                    the match matrix
///     ABCNN-1   F_0a = W_0 Aᵀ, F_1a = W_1 A                           a second channel before the convolution
///     ABCNN-2   a_0j = Σ_k A_jk, a_1j = Σ_k A_kj, of the convolutions' columns
///               F^p[:,j] = Σ_{k=j}^{j+w-1} a_k F^c[:,k]               weighted pooling after the convolution
///     ABCNN-3   both                                                  Yin et al. 2016, section 4
///
///     abcnn::block one{abcnn::feature_maps{W_0, W_1}, W, b, w, abcnn::average_pooling{}};      // ABCNN-1
///     abcnn::block two{abcnn::words_alone{}, W, b, w, abcnn::attention_pooling{}};             // ABCNN-2
///     abcnn::block three{abcnn::feature_maps{W_0, W_1}, W, b, w, abcnn::attention_pooling{}};  // ABCNN-3
///     abcnn::block none{abcnn::words_alone{}, W, b, w, abcnn::average_pooling{}};              // BCNN: no attention
///
/// Feature maps are stored by rows, [B,S,D], one row per word; the paper uses columns. A pooling window has w columns,
/// j to j + w - 1 (the paper's "j : j + w"): the wide convolution turns S columns into S + w - 1, and pooling restores
/// S columns, so that blocks can be stacked. The paper pads all sentences to one length, and the padding affects
/// results. Here a sentence has the same result in a batch as alone; the result of an empty sentence is 0
/// (docs/explanation/decisions.md). Calls throw shape_error if lengths, W or the width of a window do not fit, or if a
/// sentence is too long for W_0 or W_1.
namespace heed::inline HEED_TARGET::abcnn {

/// A batch of sentence pairs.
template <class First, class Second = First>
struct sentences {
    First first;          // [B,S,D]
    lengths first_real;   // of each sentence
    Second second;        // [B,T,D]
    lengths second_real;  // of each sentence
};
template <class First, class Second>
sentences(First, lengths, Second, lengths) -> sentences<First, Second>;

/// The similarity of each word of the first sentence to each word of the second: A [B,S,T], 0 beyond the lengths.
auto match_matrix(const auto& pair)
{
    return ops::match_matrix(pair.first, pair.second, pair.first_real, pair.second_real);
}

/// Before the convolution: the words only, F_0 = x and F_1 = y.
struct words_alone {
    auto operator()(auto pair) const { return pair; }

    static auto parameters(auto&, auto&&) { return abcnn::words_alone{}; }
};

/// Before the convolution: each word with a second channel of the same width, its attention to the other sentence.
///
///     F_0a = W_0 Aᵀ,  F_1a = W_1 A             ABCNN-1
///
/// Row j of W_0 belongs to the j-th word of the second sentence, row j of W_1 to the j-th word of the first: [N,D]
/// allows sentences of up to N words. Both are learned, as in the paper; with equal values, the two sentences are
/// treated alike.
template <class Matrix>
struct feature_maps {
    Matrix W_0;  // [N,D]
    Matrix W_1;  // [N,D]

    auto operator()(const auto& pair) const  // [B,S,D], [B,T,D] -> [B,S,2D], [B,T,2D]
    {
        const auto A = match_matrix(pair);  // [B,S,T]
        const auto [B, S, T] = shape_of(A);
        return abcnn::sentences{ops::concat(pair.first, ops::linear(A, rows("W_0", W_0, T))), pair.first_real,
                                ops::concat(pair.second, ops::linear(ops::transpose(A), rows("W_1", W_1, S))),
                                pair.second_real};
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return abcnn::feature_maps{visit("W_0", self.W_0), visit("W_1", self.W_1)};
    }

private:
    static auto rows(const char* name, const auto& W, std::size_t words)
    {
        if (words > shape_of(W)[0]) {
            throw shape_error("abcnn::feature_maps: " + std::string(name) + " is " + shape_text(shape_of(W)) +
                              ", which allows " + counted(shape_of(W)[0], "word") +
                              ", but the other sentences have up to " + std::to_string(words));
        }
        return ops::slice_rows(W, std::size_t{0}, words);
    }
};
template <class Matrix>
feature_maps(Matrix, Matrix) -> feature_maps<Matrix>;

/// After the convolution: the mean of w columns.
///
///     F^p[:,j] = (1/w) Σ_{k=j}^{j+w-1} F^c[:,k]     BCNN
struct average_pooling {
    auto operator()(const auto& columns, std::size_t width) const
    {
        const auto mean = [width](const auto& x) {
            const auto shape = shape_of(x);
            const auto equal = constant_like(x, shape_of_rank<2>{shape[0], shape[1]}, 1.0 / static_cast<double>(width));
            return ops::pool_windows(x, equal, width);
        };
        return std::pair{mean(columns.first), mean(columns.second)};
    }

    static auto parameters(auto&, auto&&) { return abcnn::average_pooling{}; }
};

/// After the convolution: the sum of w columns, each weighted by its similarity to the other sentence's columns.
///
///     a_0j = Σ_k A_jk,  a_1j = Σ_k A_kj,  F^p[:,j] = Σ_{k=j}^{j+w-1} a_k F^c[:,k]     ABCNN-2
struct attention_pooling {
    auto operator()(const auto& columns, std::size_t width) const
    {
        const auto A = match_matrix(columns);
        return std::pair{ops::pool_windows(columns.first, ops::sum_last(A), width),
                         ops::pool_windows(columns.second, ops::sum_last(ops::transpose(A)), width)};
    }

    static auto parameters(auto&, auto&&) { return abcnn::attention_pooling{}; }
};

/// One block: optional attention before the convolution, wide convolution with tanh, and pooling with or without
/// attention.
///
///     c_i = [x_{i-w+1}; …; x_i], zeros outside the sentence;  F^c_i = tanh(c_i W + b)
///
/// Both sentences share W and b. Padding beyond the lengths is cleared; it affects no result and no gradient.
template <class Before, class Matrix, class Vector, class Pooling>
struct block {
    Before before;
    Matrix W;           // [w·D,N], or [w·2D,N] after feature_maps: for each of w words, its channels
    Vector b;           // [N]
    std::size_t width;  // w
    Pooling pooling;

    auto operator()(const auto& pair) const  // [B,S,D], [B,T,D] -> [B,S,N], [B,T,N]
    {
        const auto [first, second] = pooling(convolved(pair), width);
        return cleared(first, pair.first_real, second, pair.second_real);
    }

    /// The columns after the convolution, [B,S+w-1,N] and [B,T+w-1,N]. ABCNN-2 and 3 use the match_matrix of these
    /// columns, ABCNN-1 and 3 that of the pair itself.
    auto convolved(const auto& pair) const
    {
        ops::detail::require_width("abcnn::block", width);
        const auto maps = before(cleared(pair.first, pair.first_real, pair.second, pair.second_real));
        return cleared(convolution(maps.first), count_columns(pair.first_real), convolution(maps.second),
                       count_columns(pair.second_real));
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return abcnn::block{visit("before", self.before), visit("W", self.W), visit("b", self.b), self.width,
                            visit("pooling", self.pooling)};
    }

private:
    static auto cleared(const auto& first, const lengths& first_real, const auto& second, const lengths& second_real)
    {
        return abcnn::sentences{ops::clear_padding(first, first_real), first_real,
                                ops::clear_padding(second, second_real), second_real};
    }

    /// Wide: a sentence of n words has n + w - 1 columns.
    lengths count_columns(const lengths& real) const
    {
        std::vector<std::size_t> columns(real.batch());
        for (std::size_t b_ = 0; b_ < columns.size(); ++b_) columns[b_] = real[b_] == 0 ? 0 : real[b_] + width - 1;
        return lengths(std::move(columns));
    }

    auto convolution(const tensor auto& x) const
    {
        const auto windows = ops::unfold(x, width);
        require_shape("abcnn::block", "W", shape_of(W), {shape_of(windows)[2], shape_of(W)[1]},
                      "one row for each channel of ", width, " words");
        return ops::tanh(ops::linear(windows, W, b));
    }
};
template <class Before, class Matrix, class Vector, class Pooling>
block(Before, Matrix, Vector, std::size_t, Pooling) -> block<Before, Matrix, Vector, Pooling>;

/// One vector per sentence: the mean of its columns ("all-ap" in the paper).
auto average(const auto& pair)  // [B,S,N], [B,T,N] -> [B,N] twice
{
    const auto mean = [](const auto& x, const lengths& real) {
        using T = element_of<decltype(x)>;
        const auto [B, S, N] = shape_of(x);
        real.require("abcnn::average", B, S);
        auto share = filled<T, 2>({B, S}, T(0));
        for (std::size_t b = 0; b < B; ++b) {
            for (std::size_t s = 0; s < real[b]; ++s) share(b, s) = T(1) / static_cast<T>(real[b]);
        }
        return ops::weighted_sum(share, x);
    };
    return std::pair{mean(pair.first, pair.first_real), mean(pair.second, pair.second_real)};
}

}  // namespace heed::inline HEED_TARGET::abcnn
