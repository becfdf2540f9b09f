// SPDX-License-Identifier: BSD-3-Clause
#include <heed/normalize/temperature.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/normalizers.hpp>
#include <support/tensors.hpp>

#include <cmath>
#include <limits>
#include <string>

using namespace heed;
using support::random;
using namespace support::normalizers;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("temperature divides the scores, before a mask is added")
{
    const auto scores = random({2, 5}, 7, 2.0);
    const lengths real{5, 3};
    const plain_step_context at{real};
    const auto cool = normalize::temperature{0.5}(scores, no_state{}, at);
    CHECK(support::distance(cool, normalize::softmax{}(ops::scale(scores, 2), no_state{}, at)) < 1e-15);

    const auto annotations = random({2, 5, 3}, 8);
    const auto query = random({2, 3}, 9);
    auto bias = random({2, 5}, 10);
    bias(0, 1) = -infinity;
    const attention attend{score::dot{}, normalize::temperature{4, normalize::sparsemax{}}, combine::weighted_sum{}};
    const auto memory = attend.on(annotations, real);
    const auto now = attend.step(memory, query, attend.start(memory), additive_mask{bias});
    auto expected = ops::scale(ops::dot_per_position(query, annotations), 0.25);
    for (std::size_t i = 0; i < expected.size(); ++i) expected.data()[i] += bias.data()[i];
    CHECK(support::distance(now.weights, normalize::sparsemax{}(expected, no_state{}, at)) < 1e-15);
    CHECK(now.weights(0, 1) == 0);
}

TEST_CASE_TEMPLATE("temperature matches its equation: padding, one position, an empty row, scores of 1e4", T, float,
                   double)
{
    const auto check = [](const auto& scores, const lengths& real, double tau) {
        CAPTURE(tau);
        const std::size_t batch = scores.shape()[0], positions = scores.shape()[1];
        const std::size_t width = scores.size() / (batch * positions);
        const auto weights = normalize::temperature{tau}(scores, no_state{}, plain_step_context{real});
        for (std::size_t b = 0; b < batch; ++b) {
            for (std::size_t d = 0; d < width; ++d) {
                const auto e = column(scores, real, b, d);
                double sum = 0;
                for (std::size_t t = 0; t < positions; ++t) {
                    double below = 0;  // Σ_k exp((e_k − e_t) / τ): a weight is its reciprocal
                    for (const double x : e) below += t < real[b] ? std::exp((x - e[t]) / tau) : 0;
                    const double is = static_cast<double>(weights.data()[(b * positions + t) * width + d]);
                    CHECK(is == doctest::Approx(t < real[b] ? 1 / below : 0).epsilon(sizeof(T) == 4 ? 1e-5 : 1e-12));
                    sum += is;
                }
                CHECK(sum == support::approx(real[b] > 0 ? 1 : 0, support::tolerance<T>));
            }
        }
    };
    for (const double tau : {0.3, 1.0, 2.5}) {
        check(random<T>({4, 7}, 1, 2.0), {7, 0, 1, 4}, tau);
        check(random<T>({1, 1}, 2), {1}, tau);
        check(random<T>({2, 5, 3}, 3), {5, 2}, tau);
        check(row_of<T>({1e4, -1e4, 1e4, 1e4 - 0.5}), {4}, tau);
    }
}

TEST_CASE("temperature: lower values move weight to the largest score, higher values spread it")
{
    const auto scores = random({1, 6}, 12);
    const lengths real{6};
    const plain_step_context at{real};
    CHECK(support::distance(normalize::temperature{1e-4}(scores, no_state{}, at),
                            normalize::argmax{}(scores, no_state{}, at)) < 1e-12);
    CHECK(support::distance(normalize::temperature{1e9}(scores, no_state{}, at),
                            array<double, 2>(shape_of_rank<2>{1, 6}, 1.0 / 6)) < 1e-8);
}

TEST_CASE("temperature over temporal stores the divided scores")
{
    const auto annotations = random({1, 4, 3}, 8);
    const auto queries = random({1, 3, 3}, 9);
    const attention warm{score::dot{}, normalize::temperature{2, normalize::temporal{}}, combine::weighted_sum{}};
    const attention half{score::general{array<double, 2>{{0.5, 0, 0}, {0, 0.5, 0}, {0, 0, 0.5}}}, normalize::temporal{},
                         combine::weighted_sum{}};
    CHECK(support::distance(warm(warm.on(annotations), queries), half(half.on(annotations), queries)) < 1e-14);
}

TEST_CASE("temperature: an invalid temperature is rejected")
{
    const auto scores = random({1, 3}, 1);
    const lengths real{3};
    for (const double tau : {0.0, -1.0, infinity, std::numeric_limits<double>::quiet_NaN()}) {
        const std::string message = support::message_of<error>(
            [&] { normalize::temperature{tau}(scores, no_state{}, plain_step_context{real}); });
        CHECK(support::contains(message, "normalize::temperature: tau is"));
        CHECK(support::contains(message, "above 0"));
    }
}

TEST_CASE("temperature satisfies the contracts")
{
    check_contracts_per_position(normalize::temperature{0.7});
    check_contracts_per_dimension(normalize::temperature{2, normalize::temporal{}});
}
