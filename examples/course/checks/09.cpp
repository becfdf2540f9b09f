// SPDX-License-Identifier: BSD-3-Clause
//
// Grades step 9: compares with an attention with a causal mask and with nn::sinusoidal_positions.

#include <cstdint>
#include <string>
#include <vector>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/core/random.hpp>
#include <heed/nn/positions.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/scaled_dot.hpp>

#include "09.hpp"
#include "course.hpp"

using namespace heed;

namespace {

std::string check_attention()
{
    constexpr std::size_t n = 5, d = 3, width = 4;
    const auto draw = [](std::uint64_t stream, std::size_t columns) {
        matrix made(n, vector(columns));
        for (std::size_t i = 0; i < n * columns; ++i) made[i / columns][i % columns] = normal(stream, i);
        return made;
    };
    const auto tensor_of = [](const matrix& rows) {
        auto made = filled<double, 3>({1, rows.size(), rows[0].size()}, 0.0);
        for (std::size_t s = 0; s < rows.size(); ++s)
            for (std::size_t i = 0; i < rows[s].size(); ++i) made(0, s, i) = rows[s][i];
        return made;
    };
    const matrix queries = draw(1, d), keys = draw(2, d), values = draw(3, width);
    const attention attend{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto must = attend(attend.on(tensor_of(keys), tensor_of(values)), tensor_of(queries), causal{});
    const matrix is = causal_attention(queries, keys, values);
    if (is.size() != n) return "there are " + std::to_string(is.size()) + " contexts, but should be 5";
    for (std::size_t s = 0; s < n; ++s) {
        if (is[s].size() != width) return "a context must be as wide as a value, 4";
        for (std::size_t i = 0; i < width; ++i) {
            const auto wrong =
                course::same("number " + std::to_string(i) + " of the context of word " + std::to_string(s), is[s][i],
                             must(0, s, i));
            if (!wrong.empty()) return wrong;
        }
    }
    return {};
}

std::string check_position()
{
    for (const std::size_t D : {4u, 7u, 32u}) {
        const auto must = nn::sinusoidal_positions{}(filled<double, 3>({1, 20, D}, 0.0));
        for (std::size_t p = 0; p < 20; ++p) {
            for (std::size_t k = 0; k < D; ++k) {
                const auto wrong = course::same("number " + std::to_string(k) + " of " + std::to_string(D) +
                                                    " at position " + std::to_string(p),
                                                position(p, k, D), must(0, p, k));
                if (!wrong.empty()) return wrong;
            }
        }
    }
    return {};
}

}  // namespace

int main()
{
    return course::graded(
        {{"a", "causal self-attention", check_attention}, {"b", "the pattern of a position", check_position}});
}
