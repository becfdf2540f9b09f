// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

/// All n-grams of a text whose words are numbers.
namespace heed::inline HEED_TARGET::text {

/// Up to N numbers from 1, latest first; unused positions are 0. Exact, unlike a hash of the words.
template <std::size_t N>
using gram = std::array<std::uint32_t, N>;

/// A hash of a gram, for unordered maps.
struct gram_hash {
    template <std::size_t N>
    std::size_t operator()(const gram<N>& numbers) const
    {
        std::uint64_t state = 0;
        for (const std::uint32_t number : numbers) {
            state = (state ^ number) * 0x9E3779B97F4A7C15u;
            state ^= state >> 29;
        }
        return static_cast<std::size_t>(state);
    }
};

/// Calls see(n - 1, gram) for each n-gram of the text, n from 1 to `longest` words (at most N).
template <std::size_t N>
void for_each_gram(std::span<const std::uint32_t> text, std::size_t longest, auto&& see)
{
    gram<N> last{};
    for (std::size_t i = 0; i < text.size(); ++i) {
        for (std::size_t n = N - 1; n > 0; --n) last[n] = last[n - 1];
        last[0] = text[i];
        gram<N> numbers{};
        for (std::size_t n = 0; n < longest && n <= i; ++n) {
            numbers[n] = last[n];
            see(n, numbers);
        }
    }
}

}  // namespace heed::inline HEED_TARGET::text
