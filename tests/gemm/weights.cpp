// SPDX-License-Identifier: BSD-3-Clause
#include <heed/gemm/weights.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

using namespace heed;
using kernels::quantized_weights;

namespace {

/// Returns 7 for one matrix, and rejects other matrices.
struct sevens : quantized_weights {
    const float* known = nullptr;
    mutable std::size_t asked = 0;

    bool multiply(std::size_t rows, std::size_t N, std::size_t, const float*, const float* W, bool add,
                  float* y) const override
    {
        ++asked;
        if (W != known) return false;
        for (std::size_t i = 0; i < rows * N; ++i) y[i] = add ? y[i] + 7 : 7;
        return true;
    }
};

}  // namespace

TEST_CASE("products use the weights in use, and only for the matrices that these contain")
{
    const std::vector<float> x{1, 2, 3, 4}, W{1, 0, 2, 1, 1, 1}, other = W;  // [2,2] [2,3]
    const std::vector<float> product{3, 2, 4, 7, 4, 10};
    const auto times = [&x](const std::vector<float>& matrix, bool add) {
        std::vector<float> y(6, add ? 100.0F : -1.0F);
        kernels::times_weights(2, 3, 2, x.data(), matrix.data(), add, y.data());
        return y;
    };
    sevens these, others;
    these.known = W.data();
    CHECK(quantized_weights::of_this_thread() == nullptr);
    CHECK(times(W, false) == product);
    {
        const quantized_weights::in_use guard(&these);
        CHECK(times(W, false) == std::vector<float>(6, 7.0F));
        CHECK(times(W, true) == std::vector<float>(6, 107.0F));
        CHECK(times(other, false) == product);
        CHECK(times(other, true) == std::vector<float>{103, 102, 104, 107, 104, 110});
        {
            const quantized_weights::in_use inner(&others);
            CHECK(quantized_weights::of_this_thread() == &others);
            CHECK(times(W, false) == product);
            const quantized_weights::in_use none(nullptr);
            CHECK(times(W, false) == product);
        }
        CHECK(quantized_weights::of_this_thread() == &these);
        CHECK(others.asked == 1);
        // An empty product and a product of doubles do not call them.
        const std::size_t before = these.asked;
        kernels::times_weights(0, 3, 2, x.data(), W.data(), false, static_cast<float*>(nullptr));
        const double one = 2, matrix = 3;
        double y = 0;
        kernels::times_weights(1, 1, 1, &one, &matrix, false, &y);
        CHECK(y == 6);
        CHECK(these.asked == before);
    }
    CHECK(quantized_weights::of_this_thread() == nullptr);
}
