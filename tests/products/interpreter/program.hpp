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
    std::vector<std::size_t> lengths;          // [B]
    mask sees;
    double smallest = 1e-290;  // divisors below it are refused
    mistake wrong;
};

/// A divisor is near or below the normal numbers, which heed may treat as 0.
struct divides_by_subnormal : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// For each step the contexts of all sentences, then their weights, 0 in the padding.
std::vector<vector> interpret(const program& run);

/// The names of the tables, such as "normalize softmax".
std::vector<std::string> entries();

/// The normalizers that are not interpreted, with the reason.
const std::map<std::string, std::string>& not_interpreted();

}  // namespace interpreter
