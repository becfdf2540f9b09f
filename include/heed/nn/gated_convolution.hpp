// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/core/mask.hpp>
#include <heed/core/parameters.hpp>
#include <heed/core/tensor.hpp>
#include <heed/ops/convolution.hpp>
#include <heed/ops/parts.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/units.hpp>
#include <heed/ops/windows.hpp>

namespace heed::nn {

/// A gated convolution over k neighbouring words.
///
///     v_t = b + Σ_{i<k} x_{t-before+i} W_i,  GLU([v¹; v²]) = v¹ ⊙ σ(v²)     Gehring et al. 2017, section 3.2
///
/// Words before the first and after the last are zeros. Sentences are [T,B,D], step by step. In an encoder it looks to
/// both sides (before = (k-1)/2, rounded down), in a decoder back only (before = k-1).
template <class Matrix, class Vector>
struct gated_convolution {
    Matrix W;  // [k·D,2D], the rows of the earliest word first
    Vector b;  // [2D]

    /// D, the size of x and of the result.
    std::size_t size() const { return shape_of(W)[1] / 2; }

    /// k, the number of words that it reads.
    std::size_t width() const { return size() == 0 ? 0 : shape_of(W)[0] / size(); }

    /// An encoder's block: √½ (before + GLU(v)), where v is computed of x, which is `before`, perhaps with dropout.
    /// Both must be zeros from the end of each sentence on, and the result is.
    auto around(const tensor auto& before, const tensor auto& x, const lengths& real) const  // [T,B,D] each
    {
        return ops::gated_residual(before, ops::convolve_steps(x, W, b, (width() - 1) / 2), real);
    }

    /// GLU(v) of each word and those before it.
    auto back(const tensor auto& x) const  // [T,B,D]
    {
        return ops::glu(ops::convolve_steps(x, W, b, width() - 1));
    }

    /// The same word by word. `past` [R,(k-1)·D] holds the k-1 words before x [R,D]: zeros at first, and
    /// ops::slide(past, x) before the next word.
    auto step(const tensor auto& past, const tensor auto& x) const
    {
        return ops::glu(ops::linear(ops::concat(past, x), W, b));
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return nn::gated_convolution{visit("W", self.W), visit("b", self.b)};
    }
};

template <class Matrix, class Vector>
gated_convolution(Matrix, Vector) -> gated_convolution<Matrix, Vector>;

}  // namespace heed::nn
