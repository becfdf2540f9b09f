// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include <heed/core/errors.hpp>
#include <heed/core/parameters.hpp>
#include <heed/nn/init.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/rows.hpp>

/// Images, stored as [B,H·W,C]: row by row, with C channels per pixel.
namespace heed::inline HEED_TARGET {

/// The size of an image or of a grid of feature maps.
struct grid {
    std::size_t height = 0, width = 0;

    std::size_t size() const { return height * width; }
    friend bool operator==(const grid&, const grid&) = default;

    /// The grid of every `stride`-th row and column, starting at the first.
    grid every(std::size_t stride) const { return {(height + stride - 1) / stride, (width + stride - 1) / stride}; }
};

namespace ops {

/// The neighborhood of every s-th pixel: x [B,H·W,C] -> [B,H'·W',k·k·C], with H' = ⌈H/s⌉ and W' = ⌈W/s⌉.
///
///     y[b,(i,j)] = [x[b,(s i + u, s j + v)]], u, v = -(k-1)/2 … (k-1)/2, zeros beyond the edges;  k is odd
///     ∂x[b,(s i + u, s j + v)] += the elements of ∂y[b,(i,j)] that are copies of it
///
/// Its product with W [k·k·C,N] is a convolution with stride s.
struct patches_op : move_operation<patches_op, grid, std::size_t, std::size_t> {
    static constexpr ranks takes{3, 3};

    static shape_of_rank<3> shape(const auto& x, const grid& picture, std::size_t k, std::size_t stride)
    {
        if (k % 2 == 0 || stride == 0) {
            throw shape_error("patches: width " + std::to_string(k) + ", stride " + std::to_string(stride) +
                              "; the width must be odd, and the stride at least 1");
        }
        require_shape("patches", "the images", x.shape, {x.shape[0], picture.size(), x.shape[2]},
                      "one row for each pixel of ", shape_of_rank<2>{picture.height, picture.width});
        return {x.shape[0], picture.every(stride).size(), k * k * x.shape[2]};
    }

    static void each_move(const auto& x, const grid& picture, std::size_t k, std::size_t stride, auto move)
    {
        const std::size_t C = x[2], reach = k / 2;
        const grid to = picture.every(stride);
        const std::size_t patch = k * k * C;
        move.each(x[0], to.size() * patch, [&](std::size_t b) {
            move.nothing(b * to.size() * patch, to.size() * patch);
            for (std::size_t place = 0; place < to.size(); ++place) {
                const std::size_t row = place / to.width * stride, column = place % to.width * stride;
                const std::size_t first = column < reach ? reach - column : 0;  // of the patch's columns
                const std::size_t last = std::min(k, picture.width + reach - column);
                for (std::size_t u = 0; u < k; ++u) {
                    if (row + u < reach || row + u - reach >= picture.height) continue;
                    const std::size_t from = (row + u - reach) * picture.width + column + first - reach;
                    move((b * picture.size() + from) * C, (b * to.size() + place) * patch + (u * k + first) * C,
                         (last - first) * C);
                }
            }
        });
    }
};
inline constexpr patches_op patches{};

}  // namespace ops

}  // namespace heed::inline HEED_TARGET

namespace heed::inline HEED_TARGET::nn {

/// A convolution of images, [B,H·W,C] -> [B,H'·W',N].
///
///     y(i,j) = Σ_{u,v,c} x(s i + u, s j + v, c) W[(u,v,c),:] + b           LeCun et al. 1998
///
/// Zeros beyond the edges; see ops::patches.
template <class Matrix, class Vector>
struct convolution {
    Matrix W;                // [k·k·C,N]
    Vector b;                // [N]
    std::size_t width = 3;   // k, odd
    std::size_t stride = 1;  // s

    auto operator()(const tensor auto& images, const grid& size) const
    {
        return ops::linear(ops::patches(images, size, width, stride), W, b);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return nn::convolution{visit("W", self.W), visit("b", self.b), self.width, self.stride};
    }
};
template <class Matrix, class Vector>
convolution(Matrix, Vector, std::size_t = 3, std::size_t = 1) -> convolution<Matrix, Vector>;

/// A new convolution, to be followed by a ReLU: W is normal with variance 2 / (k·k·C) (He et al. 2015, §2.2).
template <class T>
auto make_convolution(random_source& random, std::size_t channels, std::size_t maps, std::size_t width = 3,
                      std::size_t stride = 1)
{
    const std::size_t inputs = width * width * channels;
    return convolution{gaussian<T>(random, inputs, maps, std::sqrt(2.0 / static_cast<double>(inputs))), zeros<T>(maps),
                       width, stride};
}

}  // namespace heed::inline HEED_TARGET::nn
