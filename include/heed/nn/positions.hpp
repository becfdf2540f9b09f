// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include <heed/core/errors.hpp>
#include <heed/core/family.hpp>
#include <heed/core/parameters.hpp>
#include <heed/nn/factory.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/shape.hpp>

/// Position encodings, for encoders and decoders that are otherwise independent of word order.
///
/// A policy takes x [B,S,D] and the position of the first of the S words, counted from 0. It returns x plus one vector
/// per position.
namespace heed::inline HEED_TARGET::nn {

/// The order of the sines and cosines in a vector of sinusoidal_positions.
enum class wave_layout {
    interleaved,    // sin, cos, sin, cos, …: Vaswani et al. 2017
    halves,         // all sines, then all cosines; the same frequencies
    tensor2tensor,  // halves, with the frequencies of the paper's code: 10000^{-i/(D/2 − 1)}
};

/// Sinusoids of D/2 frequencies.
///
///     PE(p, 2i) = sin(p / 10000^{2i/D}),  PE(p, 2i+1) = cos(p / 10000^{2i/D})     Vaswani et al. 2017, section 3.5
///
/// No parameters and no limit on the length. A model that was trained elsewhere may use a different layout:
///
///     halves          PE(p, i) = sin(p / 10000^{2i/D}),        PE(p, D/2 + i) = cos(p / 10000^{2i/D})
///     tensor2tensor   PE(p, i) = sin(p / 10000^{i/(D/2−1)}),   PE(p, D/2 + i) = cos(p / 10000^{i/(D/2−1)})
///
/// fairseq and Marian also use tensor2tensor. If D is odd, there is one more sine than cosines, except that the last
/// number of tensor2tensor is 0.
struct sinusoidal_positions {
    wave_layout layout = wave_layout::interleaved;

    auto operator()(const tensor auto& x, std::size_t first = 0) const  // [B,S,D] -> [B,S,D]
    {
        using T = element_of<decltype(x)>;
        const std::size_t S = shape_of(x)[1], D = shape_of(x)[2];
        array<T, 3> waves(shape_of_rank<3>{1, S, D});
        for (std::size_t k = 0; k < D; ++k) {
            const auto [sine, frequency] = wave_of(k, D);
            for (std::size_t s = 0; s < S; ++s) {
                const double angle = static_cast<double>(first + s) * frequency;
                waves.data()[s * D + k] = static_cast<T>(sine ? std::sin(angle) : std::cos(angle));
            }
        }
        return ops::add(x, same_family(x, std::move(waves)));
    }

    static auto parameters(auto& self, auto&&) { return sinusoidal_positions{self.layout}; }

private:
    /// For column k of D: whether it is a sine, and its frequency.
    std::pair<bool, double> wave_of(std::size_t k, std::size_t D) const
    {
        const auto frequency = [](std::size_t i, std::size_t of) {
            return std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(of));
        };
        if (layout == wave_layout::interleaved) return {k % 2 == 0, frequency(k / 2 * 2, D)};
        const std::size_t half = layout == wave_layout::halves ? (D + 1) / 2 : D / 2, i = k < half ? k : k - half;
        if (layout == wave_layout::halves) return {k < half, frequency(2 * i, D)};
        if (k == 2 * half) return {true, 0};  // sin 0
        return {k < half, frequency(i, half > 2 ? half - 1 : 1)};
    }
};

/// A learned vector for each position.
///
///     y_s = x_s + P_{first + s}                   Gehring et al. 2017, section 3.1
///
/// Throws heed::error for a position beyond the table.
template <class Matrix>
struct learned_positions {
    Matrix table;  // [P,D]

    auto operator()(const tensor auto& x, std::size_t first = 0) const  // [B,S,D] -> [B,S,D]
    {
        const std::size_t S = shape_of(x)[1], D = shape_of(x)[2], P = shape_of(table)[0];
        if (first + S > P) {
            throw error("learned_positions: a sentence of " + counted(first + S, "word") + ", but the table has " +
                        counted(P, "position") +
                        "; make the table as long as the longest sentence, or skip longer sentences");
        }
        require_shape("learned_positions", "the table", shape_of(table), {P, D}, "rows as wide as those of ",
                      shape_of(x));
        return ops::add(x, ops::reshaped(ops::slice_rows(table, first, first + S), 1, S, D));
    }

    static auto parameters(auto& self, auto&& visit) { return nn::learned_positions{visit("table", self.table)}; }
};
template <class Matrix>
learned_positions(Matrix) -> learned_positions<Matrix>;

/// Makes learned_positions.
struct learned_positions_factory {
    double deviation = 0;  // of the normal distribution; 0: 1/√width

    auto operator()(const auto& init, const position_sizes& n) const
    {
        const double usual = 1 / std::sqrt(static_cast<double>(n.width));
        return learned_positions{init.gaussian(n.longest, n.width, deviation > 0 ? deviation : usual)};
    }
};

}  // namespace heed::inline HEED_TARGET::nn
