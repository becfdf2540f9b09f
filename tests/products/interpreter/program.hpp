// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <products/interpreter/number.hpp>

/// Attention from the papers' equations: plain loops that share no code with heed, to compare it with.
///
/// One sentence at a time, one step at a time, one position at a time. No state is carried from step to step: each step
/// is computed from all scores, weights and contexts of the steps before it. Positions and steps count from 0.
namespace interpreter {

using vector = std::vector<number>;
using matrix = std::vector<vector>;

/// Numbers in rows, the last axis first.
struct tensor {
    std::vector<std::size_t> shape;
    std::vector<number> numbers;

    std::size_t rows() const { return shape[0]; }
    std::size_t columns() const { return shape[1]; }
    const number& operator()(std::size_t i) const { return numbers[i]; }
    const number& operator()(std::size_t i, std::size_t j) const { return numbers[i * shape[1] + j]; }
};

/// The positions that the queries of a batch see.
struct mask {
    std::function<std::size_t(std::size_t sentence, std::size_t step)> memory;  // its positions; empty: the lengths
    std::function<std::size_t(std::size_t sentence, std::size_t step)> length;  // empty: that in the memory
    std::function<bool(std::size_t sentence, std::size_t step, std::size_t position)> visible;  // empty: all
    std::function<double(std::size_t sentence, std::size_t step, std::size_t position)> bias;   // added to the scores
};

/// An entry of a table that is computed wrongly, to test the comparison.
struct mistake {
    std::string entry;           // such as "normalize softmax"; empty: no mistake
    bool of_derivative = false;  // the values stay correct
};

/// A mechanism and its inputs.
struct program {
    std::string score, normalizer, combiner;   // such as "with_word{additive}"
    std::map<std::string, tensor> parameters;  // "score.base.W"
    std::map<std::string, double> settings;    // "normalize.tau"
    tensor annotations, states, words;         // [B,T,D], [B,S,Q], [B,S,E]
    tensor values;                             // [B,T,V]; empty: the annotations
    std::vector<std::size_t> lengths;          // [B]
    mask sees;
    std::size_t head = 0;      // for scores that read it
    double smallest = 1e-290;  // divisors below it are refused
    mistake wrong;
};

/// Several heads and their inputs: head i of n reads columns i of the queries and ⌊i G / n⌋ of the keys and values.
struct heads {
    std::vector<program> each;                 // without parameters and tensors
    std::map<std::string, tensor> parameters;  // "heads.0.score.W" of head 0, "score.W" of all heads
    tensor queries, keys, values;              // [B,S,n·d], [B,T,G·d], [B,T,G·V]
    std::size_t groups = 1;                    // G
};

/// A divisor is near or below the normal numbers, which heed may treat as 0.
struct divides_by_subnormal : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// For each step the contexts of all sentences, then their weights, 0 in the padding.
std::vector<vector> interpret(const program& run);

/// The same for several heads: concatenated contexts [B,n·V], or [B,O] with the projections "W_Q" … "W_O"; weights
/// [B,n,T].
std::vector<vector> interpret(const heads& run);

/// The names of the tables, such as "normalize softmax".
std::vector<std::string> entries();

/// The normalizers that are not interpreted, with the reason.
const std::map<std::string, std::string>& not_interpreted();

}  // namespace interpreter
