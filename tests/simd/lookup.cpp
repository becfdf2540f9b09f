// SPDX-License-Identifier: BSD-3-Clause
#include <heed/simd/lookup.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

using namespace heed;

namespace {

constexpr auto length = static_cast<std::int32_t>(simd::lanes<float>);

/// Patterns of indices around `first`: neighbors in any order, a register apart, far apart.
std::vector<simd::mask<float>> indices_around(std::int32_t first)
{
    std::vector<simd::mask<float>> all;
    const auto each = [&all](auto f) {
        simd::mask<float> at{};
        for (std::int32_t i = 0; i < length; ++i) at[static_cast<std::size_t>(i)] = f(i);
        all.push_back(at);
    };
    each([=](std::int32_t i) { return first + i; });
    each([=](std::int32_t i) { return first - i; });
    each([=](std::int32_t) { return first; });
    each([=](std::int32_t i) { return first + i * 7 % length; });
    each([=](std::int32_t i) { return first + (i % 2 == 0 ? -length : length - 1); });
    each([=](std::int32_t i) { return i == 0 ? first : first + (i % 2 == 0 ? -length - 1 : length); });
    each([=](std::int32_t i) { return first + 37 * i; });
    each([](std::int32_t i) { return i % 2 == 0 ? -1000000 : 1000000; });
    return all;
}

}  // namespace

TEST_CASE("lookups: indices are clamped, each lane gets its number, and indices reported as near fit two registers")
{
    std::size_t wrong = 0, looked = 0;
    for (const std::int32_t size : {1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 64, 200}) {
        // Exactly `size` numbers on the heap, so that the address sanitizer detects overreads.
        std::vector<std::int32_t> table(static_cast<std::size_t>(size));
        for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::int32_t>(1000003 * i + 1);
        for (std::int32_t first = -40; first < size + 40; ++first) {
            for (const auto& at : indices_around(first)) {
                const auto inside = simd::within(size, at);
                const auto found = simd::look_up(table.data(), size, inside);
                std::int32_t low = size, high = 0;
                for (std::size_t i = 0; i < simd::lanes<float>; ++i) {
                    const std::int32_t must = std::clamp(at[i], 0, size - 1);
                    wrong += inside[i] == must ? 0u : 1u;
                    wrong += found[i] == table[static_cast<std::size_t>(must)] ? 0u : 1u;
                    low = std::min(low, must);
                    high = std::max(high, must);
                    ++looked;
                }
                if (simd::near_by(size, inside) && size > 2 * length) wrong += high - low < 2 * length ? 0u : 1u;
            }
        }
    }
    CHECK(wrong == 0);
    CHECK(looked > 10000);
}
