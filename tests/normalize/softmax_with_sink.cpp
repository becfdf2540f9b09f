// SPDX-License-Identifier: BSD-3-Clause
#include <heed/normalize/softmax_with_sink.hpp>

#include <doctest/doctest.h>

#include <heed/heed.hpp>
#include <support/gradients.hpp>
#include <support/normalizers.hpp>
#include <support/tensors.hpp>

#include <cmath>
#include <cstddef>
#include <limits>

using namespace heed;
using support::random;

TEST_CASE("softmax_with_sink: shares of the scores and of one sink score; the sink's share is dropped")
{
    const auto scores = random({3, 7}, 1, 3.0);
    const lengths real{7, 0, 4};
    for (const double sink : {-2.0, 0.0, 5.0}) {
        const auto weights =
            normalize::softmax_with_sink{array<double, 1>{sink}}(scores, no_state{}, plain_step_context{real});
        for (std::size_t b = 0; b < 3; ++b) {
            double sum = std::exp(sink);
            for (std::size_t j = 0; j < real[b]; ++j) sum += std::exp(scores(b, j));
            for (std::size_t j = 0; j < 7; ++j) {
                const double must = j < real[b] ? std::exp(scores(b, j)) / sum : 0;
                CHECK(std::abs(weights(b, j) - must) < 1e-15);
            }
        }
    }
}

TEST_CASE("softmax_with_sink: scores far apart, and the gradient with respect to scores and sink")
{
    const array<float, 2> far{{1e4f, -1e4f}, {-1e4f, -1e4f}};
    const auto weights =
        normalize::softmax_with_sink{array<float, 1>{0.0f}}(far, no_state{}, plain_step_context{lengths{2, 2}});
    CHECK(weights == array<float, 2>{{1, 0}, {0, 0}});
    const lengths real{4, 2};
    CHECK_GRADIENT([&](const auto& e, const auto& s) { return ops::softmax_with_sink(e, s, real); }, random({2, 4}, 1),
                   random({1}, 2));
    CHECK_GRADIENT([&](const auto& e, const auto& s) { return ops::softmax_with_sink(e, s, real); },
                   random({2, 4, 3}, 3), random({1}, 4));
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                ops::softmax_with_sink(random({2, 4}, 1), random({2}, 2), real);
                            }),
                            "softmax_with_sink: the sink is [2] but must be [1]"));
}

TEST_CASE("softmax_with_sink satisfies the contracts")
{
    support::normalizers::check_contracts_of(normalize::softmax_with_sink{array<double, 1>{0.5}});
}
