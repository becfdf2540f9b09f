// SPDX-License-Identifier: BSD-3-Clause
#include <heed/nn/feed_forward.hpp>
#include <heed/nn/positions.hpp>

#include <support/gradients.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <type_traits>
#include <vector>

using namespace heed;
using support::random;

TEST_CASE("SwiGLU equals a scalar loop")
{
    constexpr std::size_t D = 4, F = 7;
    const nn::gated_feed_forward layers{random({D, F}, 1), random({F, D}, 2), random({D, F}, 3), ops::silu};
    const auto x = random({2, 3, D}, 4);
    const auto y = layers(x);
    REQUIRE(y.shape() == x.shape());
    for (std::size_t row = 0; row < 6; ++row) {
        const double* in = x.data() + row * D;
        double out[D] = {};
        for (std::size_t f = 0; f < F; ++f) {
            double gate = 0, up = 0;
            for (std::size_t d = 0; d < D; ++d) gate += in[d] * layers.W_1(d, f), up += in[d] * layers.W_3(d, f);
            for (std::size_t d = 0; d < D; ++d) out[d] += gate / (1 + std::exp(-gate)) * up * layers.W_2(f, d);
        }
        for (std::size_t d = 0; d < D; ++d) CHECK(std::abs(y.data()[row * D + d] - out[d]) < 1e-13);
    }
    CHECK(parameter_count(layers) == 3 * D * F);
    std::vector<std::string> names;
    for_each_parameter(layers, [&](const std::string& name, const auto&) { names.push_back(name); });
    CHECK(names == std::vector<std::string>{"W_1", "W_2", "W_3"});
}

TEST_CASE("gradients of feed-forward layers, gated or not, are correct")
{
    const auto x = random({2, 3}, 1);
    const auto gated = [&](const auto& activation) {
        nn::gated_feed_forward layers{random({3, 5}, 2), random({5, 3}, 3), random({3, 5}, 4), activation};
        const auto loss = [&](auto&, const auto& lifted) {
            const auto y = lifted(x);
            return ops::dot(ops::add(y, ops::multiply(y, y)), support::uneven(y.shape()));
        };
        const auto found = ad::grad_check(layers, loss);
        INFO(found.where, " is off by ", found.worst);
        CHECK(found);
        CHECK(found.worst < 1e-9);
        CHECK(support::second_order(layers, loss));
        CHECK_GRADIENT([&](const auto& in) { return layers(in); }, x);
    };
    gated(ops::silu);
    gated(ops::gelu_erf);
}

TEST_CASE("factories use the given activation, with a gate or without")
{
    random_source random{1, 0};
    const auto plain = nn::feed_forward_factory{ops::silu}(nn::initializers<float>{random}, {4, 6});
    CHECK(parameter_count(plain) == 4 * 6 * 2 + 6 + 4);
    random_source again{1, 0}, and_again{1, 0};
    const auto swiglu = nn::gated_feed_forward_factory{}(nn::initializers<float>{again}, {4, 6});
    static_assert(std::is_same_v<decltype(swiglu.activation), std::remove_const_t<decltype(ops::silu)>>);
    CHECK(support::same_bits(swiglu.W_1, nn::glorot<float>(and_again, 4, 6)));
    CHECK(shape_of(swiglu.W_2) == shape_of_rank<2>{6, 4});
    CHECK(shape_of(swiglu.W_3) == shape_of_rank<2>{4, 6});
}

TEST_CASE("sinusoidal positions have the documented layouts")
{
    const auto waves = [](std::size_t D, nn::wave_layout layout, std::size_t first) {
        return nn::sinusoidal_positions{layout}(filled<double, 3>({1, 5, D}, 0.0), first);
    };
    using nn::wave_layout;
    for (const std::size_t D : {std::size_t{6}, std::size_t{7}}) {
        const auto interleaved = waves(D, wave_layout::interleaved, 3), halves = waves(D, wave_layout::halves, 3);
        const std::size_t sines = (D + 1) / 2;
        for (std::size_t s = 0; s < 5; ++s) {
            for (std::size_t i = 0; i < D; ++i) {
                const double angle = double(s + 3) / std::pow(10000.0, double(i / 2 * 2) / double(D));
                CHECK(std::abs(interleaved(0, s, i) - (i % 2 == 0 ? std::sin(angle) : std::cos(angle))) < 1e-14);
                CHECK(halves(0, s, i % 2 * sines + i / 2) == interleaved(0, s, i));
            }
        }
    }
    // As in tensor2tensor's get_timing_signal_1d: the slowest wave has the period 10000 · 2π.
    const auto theirs = waves(7, wave_layout::tensor2tensor, 3);
    const double slower[] = {1, 100, 10000};
    for (std::size_t s = 0; s < 5; ++s) {
        for (std::size_t i = 0; i < 3; ++i) {
            CHECK(std::abs(theirs(0, s, i) - std::sin(double(s + 3) / slower[i])) < 1e-14);
            CHECK(std::abs(theirs(0, s, 3 + i) - std::cos(double(s + 3) / slower[i])) < 1e-14);
        }
        CHECK(theirs(0, s, 6) == 0);
    }
    const auto narrow = waves(2, wave_layout::tensor2tensor, 0);
    CHECK(std::abs(narrow(0, 4, 0) - std::sin(4.0)) < 1e-15);
    // A lifted model keeps its layout.
    random_source random{1, 0};
    const nn::sinusoidal_positions halves{wave_layout::halves};
    const auto made = nn::make_part(halves, nn::initializers<double>{random}, nn::position_sizes{10, 6});
    ad::tape<double> on;
    CHECK(ad::lift(on, made).layout == wave_layout::halves);
}
