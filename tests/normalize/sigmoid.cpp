// SPDX-License-Identifier: BSD-3-Clause
#include <heed/normalize/sigmoid.hpp>

#include <doctest/doctest.h>

#include <support/normalizers.hpp>
#include <support/tensors.hpp>

#include <cmath>
#include <limits>

using namespace heed;
using support::random;
using namespace support::normalizers;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE_TEMPLATE("sigmoid: each weight depends only on its score, and is 0 at masked positions", T, float, double)
{
    const double tolerance = sizeof(T) == 4 ? 2e-7 : 1e-15;
    const auto scores = random<T>({3, 21}, 6, 3.0);
    const lengths real{21, 0, 5};
    const auto weights = normalize::sigmoid{-0.75}(scores, no_state{}, plain_step_context{real});
    for (std::size_t b = 0; b < 3; ++b) {
        for (std::size_t j = 0; j < 21; ++j) {
            const double e = static_cast<double>(scores(b, j));
            const double must = j < real[b] ? 1 / (1 + std::exp(0.75 - e)) : 0;
            CHECK(std::abs(static_cast<double>(weights(b, j)) - must) <= tolerance);
        }
    }
    const auto extreme =
        normalize::sigmoid{}(row_of<T>({-infinity, -1e4, 0, 1e4}), no_state{}, plain_step_context{lengths{4}});
    CHECK(extreme(0, 0) == 0);
    CHECK(static_cast<double>(extreme(0, 1)) < 1e-30);
    CHECK(extreme(0, 2) == T(0.5));
    CHECK(extreme(0, 3) == T(1));
}

TEST_CASE_TEMPLATE("sigmoid: a learned bias gives the same weights as a constant, and has a gradient", T, float, double)
{
    const double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-12;
    const lengths real{21, 0, 5};
    const plain_step_context at{real};
    auto scores = random<T>({3, 21}, 6, 3.0);
    scores(0, 4) = static_cast<T>(-infinity);
    const auto must = normalize::sigmoid{-0.75}(scores, no_state{}, at);
    const normalize::sigmoid learns{array<T, 1>{T(-0.75)}};
    const auto by = random<T>({3, 21}, 7);
    ad::tape<T> on;
    const auto lifted = ad::lift(on, learns);
    const auto is = lifted(scores, no_state{}, at);
    on.backward(ops::dot(is, by));
    double slope = 0;
    for (std::size_t i = 0; i < must.size(); ++i) {
        const double w = static_cast<double>(must.data()[i]);
        CHECK(std::abs(static_cast<double>(is.value().data[i]) - w) < tolerance);
        slope += w * (1 - w) * static_cast<double>(by.data()[i]);
    }
    CHECK(std::abs(static_cast<double>(on.gradient(lifted.bias).data[0]) - slope) < tolerance);
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                normalize::sigmoid{array<T, 1>{T(1), T(2)}}(scores, no_state{}, at);
                            }),
                            "sigmoid: the bias is [2]"));
}

TEST_CASE("sigmoid satisfies the contracts")
{
    check_contracts_per_position(normalize::sigmoid{-0.5});
    check_contracts_per_dimension(normalize::sigmoid{array<double, 1>{-0.5}});
}
