// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <products/heads.hpp>
#include <products/products.hpp>

/// Random programs: a product, its sizes, lengths, mask and numbers, and how it is run. Each is compared with the
/// interpreter, for which neither padding, batches, masks nor ways to run exist as separate code.
namespace composition {

enum class way { steps, rows, at_once, causal, segments, on_tape, curvature, in_float, growing };
enum class padding { zero, nan, infinity, large };

struct program {
    std::string score, normalizer, combiner;
    std::map<std::string, double> settings;  // such as "normalize.reach"; the others as in the catalogue
    std::string form;                        // of several heads: "multi_head" or "projected"; else empty
    std::size_t heads = 1, groups = 1;
    extents of;
    std::vector<std::size_t> lengths;
    std::vector<std::string> visible;  // '1' or '0' for each position of each row, or of each head; empty: no mask
    bool additive = false;             // numbers are added to the scores, -inf where a position is not visible
    mask_kind mask{};                  // of several heads
    way run = way::steps;
    std::vector<std::size_t> rows;   // selected after the first step; lengths of segments; positions at each step
    taped what = taped::everything;  // way::on_tape
    padding beyond = padding::zero;
    std::size_t threads = 1;
    std::uint64_t numbers = 0;  // the stream of inputs and parameters
    bool alike = false;         // there are only two annotations, at even and at odd positions
};

/// Ten lines, eleven with settings, that a person can read, and that --replay reads.
std::string text(const program& x);

/// Throws std::runtime_error if the text is not a program.
program program_from(const std::string& text);

/// Programs that had a fault once.
std::vector<std::string> found_programs();

/// A program of one of the judged products, or of several heads.
program draw(const table& lines, std::uint64_t seed);

/// The fault of a program; empty if there is none.
std::string fault_of(const table& lines, const program& x);

/// A source of choices.
struct chooser {
    std::uint64_t stream, taken = 0;

    std::size_t below(std::size_t bound);
    bool once_in(std::size_t n) { return below(n) == 0; }
    std::size_t among(std::initializer_list<std::size_t> all) { return all.begin()[below(all.size())]; }
};

/// For programs of several heads.
void draw_heads(chooser& choose, program& x);
void draw_settings(chooser& choose, const std::vector<setting>& of, program& x);
void draw_growth(chooser& choose, program& x);

/// Sizes and lengths for which many queries are computed in tiles (attention/plan.hpp).
void draw_tiles(chooser& choose, program& x);
void check_heads(const program& x);
std::vector<program> simpler_heads(const program& x);

/// Draws a mask for each of `rows` rows.
void draw_mask(chooser& choose, program& x, std::size_t rows);

/// The contexts [B,S,.] of several queries, or of segments of them, step by step.
outcome step_by_step(std::size_t rows, std::size_t steps, const numbers& contexts);
outcome segment_by_segment(const program& x, const outcome& segments);

/// The contexts among contexts and weights.
outcome contexts_of(const outcome& all);

/// Writes to the positions beyond the lengths.
void fill_padding(heed::array<double, 3>& x, const heed::lengths& real, padding with);

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
