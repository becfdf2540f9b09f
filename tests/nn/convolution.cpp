// SPDX-License-Identifier: BSD-3-Clause
#include <heed/nn/convolution.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <cstddef>

// Image patches, and convolutions built from them, against direct sums over pixels.

using namespace heed;
using support::check_empty, support::message_of, support::random;

namespace {

/// x(b, row, column, channel), 0 beyond the edges.
double pixel(const array<double, 3>& x, const grid& size, std::size_t b, std::ptrdiff_t row, std::ptrdiff_t column,
             std::size_t channel)
{
    if (row < 0 || column < 0 || row >= static_cast<std::ptrdiff_t>(size.height) ||
        column >= static_cast<std::ptrdiff_t>(size.width))
        return 0;
    return x(b, static_cast<std::size_t>(row) * size.width + static_cast<std::size_t>(column), channel);
}

}  // namespace

TEST_CASE("a convolution is the sum over each pixel's neighborhood")
{
    for (const grid size : {grid{4, 5}, grid{1, 1}, grid{3, 1}, grid{2, 7}}) {
        for (const std::size_t k : {1u, 3u, 5u}) {
            for (const std::size_t stride : {1u, 2u, 3u}) {
                INFO(size.height << " x " << size.width << ", " << k << ", every " << stride);
                const auto x = random({2, size.size(), 2}, 1);
                const nn::convolution conv{random({k * k * 2, 3}, 2), random({3}, 3), k, stride};
                const auto y = conv(x, size);
                const std::size_t height = (size.height + stride - 1) / stride,
                                  width = (size.width + stride - 1) / stride;
                REQUIRE(y.shape() == shape_of_rank<3>{2, height * width, 3});
                REQUIRE(size.every(stride) == grid{height, width});
                const auto reach = static_cast<std::ptrdiff_t>(k / 2);
                for (std::size_t b = 0; b < 2; ++b) {
                    for (std::size_t place = 0; place < height * width; ++place) {
                        for (std::size_t n = 0; n < 3; ++n) {
                            double sum = conv.b(n);
                            for (std::size_t u = 0; u < k; ++u) {
                                for (std::size_t v = 0; v < k; ++v) {
                                    for (std::size_t c = 0; c < 2; ++c) {
                                        const auto row =
                                            static_cast<std::ptrdiff_t>(place / width * stride + u) - reach;
                                        const auto column =
                                            static_cast<std::ptrdiff_t>(place % width * stride + v) - reach;
                                        sum += pixel(x, size, b, row, column, c) * conv.W((u * k + v) * 2 + c, n);
                                    }
                                }
                            }
                            CHECK(y(b, place, n) == doctest::Approx(sum).epsilon(1e-12));
                        }
                    }
                }
            }
        }
    }
}

TEST_CASE("the gradient of patches is correct")
{
    const auto f = [](grid size, std::size_t k, std::size_t stride) {
        return [=](const auto& x) { return ops::patches(x, size, k, stride); };
    };
    CHECK_GRADIENT(f({3, 4}, 3, 1), random({2, 12, 2}, 1));
    CHECK_GRADIENT(f({3, 4}, 3, 2), random({2, 12, 1}, 2));
    CHECK_GRADIENT(f({1, 1}, 5, 1), random({1, 1, 1}, 3));
    check_empty(f({3, 4}, 3, 1), array<double, 3>(shape_of_rank<3>{0, 12, 2}));
}

TEST_CASE("errors name the argument that does not fit")
{
    CHECK(message_of<shape_error>([] {
              (void)ops::patches(random({1, 12, 1}, 1), grid{3, 4}, 2, 1);
          }) == "patches: width 2, stride 1; the width must be odd, and the stride at least 1");
    CHECK(message_of<shape_error>([] {
              (void)ops::patches(random({1, 12, 1}, 1), grid{3, 4}, 3, 0);
          }) == "patches: width 3, stride 0; the width must be odd, and the stride at least 1");
    CHECK(message_of<shape_error>([] {
              (void)ops::patches(random({1, 12, 1}, 1), grid{3, 5}, 3, 1);
          }) == "patches: the images are [1,12,1] but must be [1,15,1] (one row for each pixel of [3,5])");
}
