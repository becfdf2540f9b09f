// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <products/products.hpp>

/// Random programs: a product, its sizes, lengths, mask and numbers, and how it is run. Each is compared with the
/// interpreter, for which neither padding, batches, masks nor ways to run exist as separate code.
namespace composition {

enum class way { steps, rows, at_once, causal, on_tape };
enum class padding { zero, nan, infinity, large };

struct program {
    std::string score, normalizer, combiner;
    extents of;
    std::vector<std::size_t> lengths;
    std::vector<std::string> visible;  // '1' or '0' for each position of each row; empty: no mask
    bool additive = false;             // numbers are added to the scores, -inf where a position is not visible
    way run = way::steps;
    std::vector<std::size_t> rows;   // way::rows: selected after the first step
    taped what = taped::everything;  // way::on_tape
    padding beyond = padding::zero;
    std::size_t threads = 1;
    std::uint64_t numbers = 0;  // the stream of inputs and parameters
};

/// Ten lines that a person can read, and that --replay reads.
std::string text(const program& x);

/// Throws std::runtime_error if the text is not a program.
program program_from(const std::string& text);

/// Programs that had a fault once.
std::vector<std::string> found_programs();

/// A program of one of the judged products.
program draw(const table& lines, std::uint64_t seed);

/// The fault of a program; empty if there is none.
std::string fault_of(const table& lines, const program& x);

/// The smallest program with a fault that can be reached from this one by simplifying it step by step.
program shrunk(const table& lines, program x);

}  // namespace composition
