// SPDX-License-Identifier: BSD-3-Clause
#include <heed/nn/layer_norm.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <cmath>
#include <cstddef>

using namespace heed;
using support::random;

namespace {

/// The equation, by a scalar loop.
array<double, 2> scalar_layer_norm(const array<double, 2>& x, const array<double, 1>& gain,
                                   const array<double, 1>& bias, double epsilon)
{
    const auto [rows, N] = x.shape();
    array<double, 2> y(x.shape());
    for (std::size_t r = 0; r < rows; ++r) {
        double mean = 0, variance = 0;
        for (std::size_t i = 0; i < N; ++i) mean += x(r, i) / static_cast<double>(N);
        for (std::size_t i = 0; i < N; ++i) variance += std::pow(x(r, i) - mean, 2) / static_cast<double>(N);
        for (std::size_t i = 0; i < N; ++i)
            y(r, i) = gain(i) * (x(r, i) - mean) / std::sqrt(variance + epsilon) + bias(i);
    }
    return y;
}

constexpr auto norm = [](const auto& x, const auto& gain, const auto& bias) {
    return ops::layer_norm(x, gain, bias, 1e-3);
};

void check(const ad::grad_check_result& found) { CHECK_MESSAGE(bool(found), found.text()); }

}  // namespace

TEST_CASE("layer normalization equals its equation and has the correct gradient")
{
    for (const std::size_t N : {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{8}, std::size_t{21}}) {
        const auto x = random({3, N}, 1);
        const auto gain = random({N}, 2), bias = random({N}, 3);
        CHECK(support::distance(norm(x, gain, bias), scalar_layer_norm(x, gain, bias, 1e-3)) < 1e-13);
        check(support::gradient_of<0b111>(norm, x, gain, bias));
        check(support::gradient_of<0b001>(norm, x, gain, bias));
        check(support::gradient_of<0b010>(norm, x, gain, bias));
        check(support::gradient_of<0b100>(norm, x, gain, bias));
    }
    const auto gain = random({5}, 2), bias = random({5}, 3);
    check(support::gradient_of<0b111>(norm, random({2, 3, 5}, 1), gain, bias));
}

TEST_CASE("rows of equal numbers, large numbers, and no rows are normalized")
{
    const auto gain = random({6}, 2), bias = random({6}, 3);
    const auto equal = norm(filled<double, 2>({1, 6}, 4.0), gain, bias);
    for (std::size_t i = 0; i < 6; ++i) CHECK(equal(0, i) == bias(i));
    // The mean does not cost digits: x + 1e6 is normalized as x is.
    const auto x = random({2, 6}, 1);
    auto far = x;
    for (double& each : far) each += 1e6;
    CHECK(support::distance(norm(far, gain, bias), norm(x, gain, bias)) < 1e-8);
    CHECK(shape_of(norm(array<double, 2>(shape_of_rank<2>{0, 6}), gain, bias)) == shape_of_rank<2>{0, 6});
    CHECK(shape_of(norm(array<double, 2>(shape_of_rank<2>{3, 0}), array<double, 1>(shape_of_rank<1>{0}),
                        array<double, 1>(shape_of_rank<1>{0}))) == shape_of_rank<2>{3, 0});
}

TEST_CASE("the gradient is equal bit for bit with one thread and with several")
{
    const auto x = random({67, 33}, 1);
    const auto gain = random({33}, 2), bias = random({33}, 3);
    const auto gradients = [&] {
        ad::tape<double> on;
        const auto a = on.parameter(x);
        const auto g = on.parameter(gain), b = on.parameter(bias);
        on.backward(ops::dot(norm(a, g, b), random({67, 33}, 4)));
        return std::vector<array<double, 1>>{copy_of(on.gradient(g)), copy_of(on.gradient(b))};
    };
    set_threads(1);
    const auto one = gradients();
    set_threads(3);
    const auto several = gradients();
    set_threads(1);
    for (std::size_t i = 0; i < 2; ++i) CHECK(support::same_bits(one[i], several[i]));
}

TEST_CASE("a new layer only normalizes; mismatched shapes are rejected")
{
    const auto layer = nn::make_layer_norm<double>(4);
    const auto x = random({3, 4}, 1);
    CHECK(support::distance(layer(x), scalar_layer_norm(x, layer.gain, layer.bias, 1e-5)) < 1e-13);
    CHECK(parameter_count(layer) == 8);
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                layer(random({3, 5}, 1));
                            }),
                            "layer_norm: the gain is [4] but must be [5]"));
    CHECK(support::contains(support::message_of<shape_error>([&] { ops::layer_norm(x, layer.gain, layer.bias, 0.0); }),
                            "epsilon is 0.000000 but must be above 0"));
}
