// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include <heed/core/errors.hpp>
#include <heed/core/parameters.hpp>
#include <heed/nn/init.hpp>
#include <heed/ops/parts.hpp>

/// The embeddings of both languages and the matrix of the output layer, which may be one and the same.
///
/// A policy has `source()` [V_x,D], `target()` [V_y,D] and `output()` [D,V_y].
namespace heed::seq2seq {

/// Three matrices.
template <class Matrix>
struct separate_tables {
    Matrix source_table;  // [V_x,D]
    Matrix target_table;  // [V_y,D]
    Matrix W;             // [D,V_y]

    const Matrix& source() const { return source_table; }  // [V_x,D]
    const Matrix& target() const { return target_table; }  // [V_y,D]
    const Matrix& output() const { return W; }             // [D,V_y]

    static auto parameters(auto& self, auto&& visit)
    {
        return seq2seq::separate_tables{visit("source", self.source_table), visit("target", self.target_table),
                                        visit("W", self.W)};
    }
};
template <class Matrix>
separate_tables(Matrix, Matrix, Matrix) -> separate_tables<Matrix>;

/// The output layer scores a word by its own embedding: W = target()ᵀ.      Press and Wolf 2017
template <class Matrix>
struct tied_tables {
    Matrix source_table;  // [V_x,D]
    Matrix target_table;  // [V_y,D]

    const Matrix& source() const { return source_table; }  // [V_x,D]
    const Matrix& target() const { return target_table; }
    auto output() const { return ops::transpose(target_table); }

    static auto parameters(auto& self, auto&& visit)
    {
        return seq2seq::tied_tables{visit("source", self.source_table), visit("target", self.target_table)};
    }
};
template <class Matrix>
tied_tables(Matrix, Matrix) -> tied_tables<Matrix>;

/// One matrix for everything: both languages have one vocabulary.          Vaswani et al. 2017, section 3.4
template <class Matrix>
struct shared_table {
    Matrix table;  // [V,D]

    const Matrix& source() const { return table; }         // [V,D]
    const Matrix& target() const { return table; }         // [V,D]
    auto output() const { return ops::transpose(table); }  // [D,V]

    static auto parameters(auto& self, auto&& visit) { return seq2seq::shared_table{visit("table", self.table)}; }
};
template <class Matrix>
shared_table(Matrix) -> shared_table<Matrix>;

/// Makers, for models that are made new. Embeddings are normal with deviation 1/√D, so that they and a tied output
/// layer are of order one where they are used.
struct new_separate_tables {
    template <class T>
    static auto make(random_source& random, std::size_t source, std::size_t target, std::size_t width)
    {
        const double deviation = 1 / std::sqrt(static_cast<double>(width));
        auto x = nn::gaussian<T>(random, source, width, deviation);
        auto y = nn::gaussian<T>(random, target, width, deviation);
        return separate_tables{std::move(x), std::move(y), nn::glorot<T>(random, width, target)};
    }
};
/// Makes tied_tables: the output layer is the table of target words.
struct new_tied_tables {
    template <class T>
    static auto make(random_source& random, std::size_t source, std::size_t target, std::size_t width)
    {
        const double deviation = 1 / std::sqrt(static_cast<double>(width));
        auto x = nn::gaussian<T>(random, source, width, deviation);
        return tied_tables{std::move(x), nn::gaussian<T>(random, target, width, deviation)};
    }
};
/// Throws heed::error if the vocabularies differ in size.
struct new_shared_table {
    template <class T>
    static auto make(random_source& random, std::size_t source, std::size_t target, std::size_t width)
    {
        if (source != target) {
            throw error("shared_table: " + std::to_string(source) + " source words and " + std::to_string(target) +
                        " target words; to share their embeddings both sides need one vocabulary");
        }
        return shared_table{nn::gaussian<T>(random, source, width, 1 / std::sqrt(static_cast<double>(width)))};
    }
};

}  // namespace heed::seq2seq
