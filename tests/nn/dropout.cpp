// SPDX-License-Identifier: BSD-3-Clause
#include <heed/nn/dropout.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <array>
#include <cmath>
#include <cstdint>

using namespace heed;
using support::random;

TEST_CASE("dropout drops about the given rate, rescales the rest, and uses the same mask backward")
{
    const auto x = filled<double, 2>({100, 103}, 1.0);
    ad::tape<double> on;
    const auto v = on.parameter(x);
    const auto y = ops::dropout(v, 0.3, std::uint64_t{5});
    std::size_t dropped = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
        dropped += y.data()[i] == 0;
        CHECK_MESSAGE((y.data()[i] == 0 || y.data()[i] == support::approx(1 / 0.7)), y.data()[i]);
    }
    CHECK(std::abs(static_cast<double>(dropped) / 10300 - 0.3) < 0.02);
    on.backward(ops::dot(y, filled<double, 2>({100, 103}, 1.0)));
    CHECK(support::same_bits(on.gradient(v), y));
    CHECK(support::same_bits(ops::dropout(v, 0.3, std::uint64_t{5}), y));
    CHECK_FALSE(support::same_bits(ops::dropout(v, 0.3, std::uint64_t{6}), y));
    CHECK(ops::dropout(v, 0.0, std::uint64_t{5}).data() == v.data());
    CHECK(support::same_bits(ops::dropout(x, 0.3, std::uint64_t{5}), x));  // inference drops nothing
    CHECK_THROWS_AS(ops::dropout(v, 1.0, std::uint64_t{5}), error);
}

TEST_CASE("dropout of part of a batch equals that of the whole batch")
{
    const std::vector<std::uint32_t> chosen{6, 0, 3};
    for (const std::size_t axis : {0u, 1u}) {
        // 3 and 1030: not multiples of the four numbers that share a random number
        for (const std::size_t width : {1u, 3u, 8u, 1030u}) {
            const std::size_t T = 5, B = 7, n = chosen.size();
            const auto in_order = [axis](std::size_t t, std::size_t b) {
                return axis == 0 ? std::array{b, t} : std::array{t, b};
            };
            const std::array<std::size_t, 2> of_whole = in_order(T, B), of_part = in_order(T, n);
            const auto whole = random({of_whole[0], of_whole[1], width}, 1);
            auto part = filled<double, 3>({of_part[0], of_part[1], width}, 0.0);
            const auto each = [&](auto&& f) {
                for (std::size_t t = 0; t < T; ++t)
                    for (std::size_t k = 0; k < n; ++k)
                        for (std::size_t i = 0; i < width; ++i) f(in_order(t, k), in_order(t, chosen[k]), i);
            };
            each([&](const auto& here, const auto& there, std::size_t i) {
                part(here[0], here[1], i) = whole(there[0], there[1], i);
            });
            ad::tape<double> on;
            const auto x = on.parameter(whole), p = on.parameter(part);
            const auto y = view_of(ops::dropout(x, 0.3, std::uint64_t{5}));
            const auto dropped =
                ops::dropout(p, 0.3, std::uint64_t{5}, ops::sentences_of_batch{chosen.data(), n, B, axis});
            const auto q = view_of(dropped);
            std::size_t zeros = 0;
            each([&](const auto& here, const auto& there, std::size_t i) {
                const double is = q.data[(here[0] * of_part[1] + here[1]) * width + i];
                CHECK(is == y.data[(there[0] * of_whole[1] + there[1]) * width + i]);
                zeros += is == 0 ? 1 : 0;
            });
            CHECK(zeros > 0);
            CHECK(zeros < T * n * width);
            on.backward(ops::dot(dropped, filled<double, 3>({of_part[0], of_part[1], width}, 1.0)));
            const auto g = on.gradient(p);
            for (std::size_t i = 0; i < g.size(); ++i)
                CHECK(g.data[i] == support::approx(q.data[i] == 0 ? 0.0 : 1 / 0.7));
        }
    }
    ad::tape<double> on;
    const auto small = random({2, 3, 4}, 1);
    const auto v = on.parameter(small);
    CHECK_THROWS_WITH_AS(ops::dropout(v, 0.3, std::uint64_t{5}, ops::sentences_of_batch{chosen.data(), 3, 7, 0}),
                         "dropout: axis 0 of [2,3,4] must be the batch axis, with 3 of the larger batch's 7 sentences",
                         error);
}
