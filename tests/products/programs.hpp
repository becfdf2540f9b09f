// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <products/products.hpp>

/// Random programs: a product, its sizes, lengths, mask and numbers, and how it is run. Each is compared with the
/// interpreter, for which neither padding, batches, masks nor ways to run exist as separate code.
namespace composition {

enum class way { steps, rows, at_once, causal, segments, on_tape, curvature, in_float };
enum class padding { zero, nan, infinity, large };

struct program {
    std::string score, normalizer, combiner;
    std::map<std::string, double> settings;  // such as "normalize.reach"; the others as in the catalogue
    extents of;
    std::vector<std::size_t> lengths;
    std::vector<std::string> visible;  // '1' or '0' for each position of each row; empty: no mask
    bool additive = false;             // numbers are added to the scores, -inf where a position is not visible
    way run = way::steps;
    std::vector<std::size_t> rows;   // way::rows: selected after the first step; way::segments: their lengths
    taped what = taped::everything;  // way::on_tape
    padding beyond = padding::zero;
    std::size_t threads = 1;
    std::uint64_t numbers = 0;  // the stream of inputs and parameters
};

/// Ten lines, eleven with settings, that a person can read, and that --replay reads.
std::string text(const program& x);

/// Throws std::runtime_error if the text is not a program.
program program_from(const std::string& text);

/// Programs that had a fault once.
std::vector<std::string> found_programs();

/// A program of one of the judged products.
program draw(const table& lines, std::uint64_t seed);

/// The fault of a program; empty if there is none.
std::string fault_of(const table& lines, const program& x);

/// The line of a judged product; null if there is none.
const row* judged_line(const table& lines, const std::string& score, const std::string& normalizer,
                       const std::string& combiner);

/// The product of a program, with its inputs and parameters.
std::unique_ptr<product> product_of(const table& lines, const program& x);

/// The masks of a program.
heed::array<double, 2> bias_of(const program& x);
heed::boolean_mask<2> mask_of(const program& x);

/// The results of all steps under a mask: `bias` if it is additive.
outcome steps_of(const product& p, const program& x, const heed::array<double, 2>& bias);

/// Requires that the numbers of each series agree, relative to its largest number.
void require_near(const outcome& is, const outcome& must, double tolerance, const std::string& what);

/// Throws `broken` unless other programs give the results `must` of this one: each sentence alone, permuted positions,
/// other forms of the mask, other policies that are equal.
void check_rewrites(const table& lines, const program& x, product& p, const outcome& must);

/// The smallest program with a fault that can be reached from this one by simplifying it step by step.
program shrunk(const table& lines, program x);

}  // namespace composition
