// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include <heed/core/errors.hpp>
#include <heed/core/family.hpp>
#include <heed/core/parameters.hpp>
#include <heed/nn/init.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/parts.hpp>

/// Where a word stands in its sentence, for encoders and decoders that would otherwise not know.
///
/// A policy is called with x [B,S,D] and the position of the first of the S words, from 0, and returns x plus a vector
/// for each position.
namespace heed::nn {

/// Waves of D/2 frequencies.
///
///     PE(p, 2i) = sin(p / 10000^{2i/D}),  PE(p, 2i+1) = cos(p / 10000^{2i/D})     Vaswani et al. 2017, section 3.5
///
/// No parameters, and no longest sentence.
struct sinusoidal_positions {
    auto operator()(const tensor auto& x, std::size_t first = 0) const
    {
        using T = element_of<decltype(x)>;
        const std::size_t S = shape_of(x)[1], D = shape_of(x)[2];
        array<T, 2> waves(shape_of_rank<2>{S, D});
        for (std::size_t k = 0; k < D; ++k) {
            const double frequency = std::pow(10000.0, -static_cast<double>(k / 2 * 2) / static_cast<double>(D));
            for (std::size_t s = 0; s < S; ++s) {
                const double angle = static_cast<double>(first + s) * frequency;
                waves.data()[s * D + k] = static_cast<T>(k % 2 == 0 ? std::sin(angle) : std::cos(angle));
            }
        }
        return ops::add_positions(x, same_family(x, std::move(waves)));
    }

    static auto parameters(auto&, auto&&) { return sinusoidal_positions{}; }
};

/// A vector for each position, learned.
///
///     x_s + P_{first + s}                         Gehring et al. 2017, section 3.1
///
/// Throws heed::error for a position beyond the table.
template <class Matrix>
struct learned_positions {
    Matrix table;  // [P,D]

    auto operator()(const tensor auto& x, std::size_t first = 0) const
    {
        const std::size_t S = shape_of(x)[1], P = shape_of(table)[0];
        if (first + S > P) {
            throw error("learned_positions: a sentence of " + std::to_string(first + S) +
                        " words, but there are vectors for " + std::to_string(P) +
                        " positions; make the table as long as the longest sentence, or leave out longer ones");
        }
        return ops::add_positions(x, ops::rows_between(table, first, first + S));
    }

    static auto parameters(auto& self, auto&& visit) { return nn::learned_positions{visit("table", self.table)}; }
};
template <class Matrix>
learned_positions(Matrix) -> learned_positions<Matrix>;

/// Makers, for models that are made new. `longest`: the number of positions.
struct new_sinusoidal_positions {
    template <class T>
    static sinusoidal_positions make(random_source&, std::size_t, std::size_t)
    {
        return {};
    }
};
/// Makes learned_positions for sentences of at most `longest` words.
struct new_learned_positions {
    double deviation = 0;  // of normal vectors; 0: 1/√width

    template <class T>
    auto make(random_source& random, std::size_t longest, std::size_t width) const
    {
        const double usual = 1 / std::sqrt(static_cast<double>(width));
        return learned_positions{gaussian<T>(random, longest, width, deviation > 0 ? deviation : usual)};
    }
};

}  // namespace heed::nn
