// SPDX-License-Identifier: BSD-3-Clause
#include <heed/score/additive_per_dimension.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <support/scores.hpp>

using namespace heed;
using support::random;

namespace {

constexpr std::size_t Q = 3, D = 5, A = 4;
const auto W = random({Q, A}, 1), U = random({D, A}, 2), V = random({A, D}, 3);

}  // namespace

TEST_CASE("a score for each dimension: the paper's sum, a softmax for each dimension, and the sum of what it weighs")
{
    const attention attend{score::additive_per_dimension{W, U, V}, normalize::softmax{}, combine::elementwise_sum{}};
    const auto q = random({2, Q}, 4);
    const auto h = random({2, 6, D}, 5);
    const lengths real{6, 2};
    const auto memory = attend.on(h, real);
    const auto is = attend.step(memory, q, attend.start(memory));
    for (std::size_t b = 0; b < 2; ++b) {
        for (std::size_t d = 0; d < D; ++d) {
            double sum = 0, context = 0;
            for (std::size_t j = 0; j < real[b]; ++j) {
                double e = 0;
                for (std::size_t a = 0; a < A; ++a) {
                    double x = 0;
                    for (std::size_t i = 0; i < Q; ++i) x += q(b, i) * W(i, a);
                    for (std::size_t i = 0; i < D; ++i) x += h(b, j, i) * U(i, a);
                    e += V(a, d) * std::tanh(x);
                }
                sum += std::exp(e);
                context += std::exp(e) * h(b, j, d);
            }
            CHECK(is.context(b, d) == doctest::Approx(context / sum).epsilon(1e-13));
        }
    }
    support::check_gradients(attend, support::plain_query{Q}, D);
}

TEST_CASE("a V of one column for each dimension is additive attention")
{
    const auto v = random({A}, 6);
    array<double, 2> columns(shape_of_rank<2>{A, D});
    for (std::size_t a = 0; a < A; ++a) std::fill_n(&columns(a, 0), D, v(a));
    const auto q = random({2, Q}, 4);
    const auto h = random({2, 6, D}, 5);
    const attention fine{score::additive_per_dimension{W, U, columns}, normalize::softmax{},
                         combine::elementwise_sum{}};
    const attention coarse{score::additive{W, U, v}, normalize::softmax{}, combine::weighted_sum{}};
    const auto one = fine.on(h), other = coarse.on(h);
    CHECK(support::distance(fine.step(one, q, fine.start(one)).context,
                            coarse.step(other, q, coarse.start(other)).context) < 1e-14);
    support::says(
        [&] {
            fine.step(one, random({2, Q + 1}, 4), fine.start(one));
        },
        "linear: x is [2,4] and the matrix is [3,4]");
}
