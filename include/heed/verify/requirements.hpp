// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/core/function_ref.hpp>
#include <heed/verify/problem.hpp>

/// Requirements on the numbers that a mechanism returns. None depends on the mechanism's type, so each is compiled
/// once.
namespace heed::inline HEED_TARGET::detail::verifying {

// The last bits may differ if BLAS or a kernel sums in a different order for a different number of rows.
inline constexpr double rounding = 1e-11;

template <class T, class U>
std::string require_close(const outcome<T>& is, const outcome<U>& must, double tolerance, std::string_view what)
{
    const disagreement most = compare(is, must);
    if (!(most.worst <= tolerance)) throw broken(std::string(what) + ": " + most.where);
    if (most.worst == 0) return "no difference";
    char text[64];
    std::snprintf(text, sizeof text, "largest difference %.1e", most.worst);
    return text;
}

template <class T>
void require_same_bits(const outcome<T>& is, const outcome<T>& must, std::string_view what)
{
    const std::string where = differing_bits(is, must);
    if (!where.empty()) throw broken(std::string(what) + ": " + where);
}

template <class T>
void require_finite(const outcome<T>& is, std::string_view what)
{
    for (const series<T>& s : is) {
        for (std::size_t i = 0; i < s.values.size(); ++i) {
            if (!std::isfinite(s.values[i]))
                throw broken(std::string(what) + ": " + s.name + "[" + std::to_string(i) + "] is " +
                             std::to_string(s.values[i]));
        }
    }
}

inline void require_zero_where_empty(const outcome<double>& numbers, const lengths& real)
{
    for (const auto& s : numbers) {
        const std::size_t row = s.values.size() / real.batch();
        for (std::size_t i = 0; i < s.values.size(); ++i) {
            if (real[i / row] == 0 && s.values[i] != 0) {  // also true for NaN
                throw broken("row " + std::to_string(i / row) + " has no position, but the " + s.name + "[" +
                             std::to_string(i) + "] is " + std::to_string(s.values[i]) + ", not 0");
            }
        }
    }
}

/// Requires that the results of a run and its gradient are 0 in empty rows. The last `own` tensors of the gradient have
/// a row per sentence. Returns the number of empty rows.
inline std::size_t require_empty_rows(const outcome<double>& values, const outcome<double>& slopes, std::size_t own,
                                      const lengths& real)
{
    require_zero_where_empty(values, real);
    require_finite(values, "with an empty row");
    require_finite(slopes, "with an empty row");
    require_zero_where_empty(outcome<double>(slopes.end() - static_cast<std::ptrdiff_t>(own), slopes.end()), real);
    std::size_t rows = 0;
    for (std::size_t b = 0; b < real.batch(); ++b) rows += real[b] == 0;
    return rows;
}

inline array<double, 3> padded_with(double rubbish, array<double, 3> annotations, const lengths& real)
{
    const auto [B, T, D] = shape_of(annotations);
    for (std::size_t b = 0; b < B; ++b) {
        std::fill(annotations.data() + (b * T + real[b]) * D, annotations.data() + (b + 1) * T * D, rubbish);
    }
    return annotations;
}

/// Hides every third position, shifted from row to row.
inline boolean_mask<2> mask_with_holes(std::size_t batch, std::size_t positions)
{
    boolean_mask<2> mask(shape_of_rank<2>{batch, positions});
    for (std::size_t i = 0; i < batch * positions; ++i) mask[i] = (i / positions + i % positions) % 3 != 0;
    return mask;
}

inline lengths first_half(const lengths& real)
{
    std::vector<std::size_t> counts(real.batch());
    for (std::size_t b = 0; b < counts.size(); ++b) counts[b] = real[b] / 2;
    return lengths(std::move(counts));
}
inline boolean_mask<2> as_mask(const lengths& real, std::size_t positions)
{
    boolean_mask<2> mask(shape_of_rank<2>{real.batch(), positions});
    for (std::size_t b = 0; b < real.batch(); ++b) {
        for (std::size_t t = 0; t < real[b]; ++t) mask[b * positions + t] = 1;
    }
    return mask;
}

inline additive_mask<array<double, 2>> as_bias(const boolean_mask<2>& mask)
{
    array<double, 2> bias(mask.shape(), 0.0);
    for (std::size_t i = 0; i < bias.size(); ++i) {
        if (mask[i] == 0) bias.data()[i] = -std::numeric_limits<double>::infinity();
    }
    return additive_mask{std::move(bias)};
}

/// Requires weights of 0 for positions that a mask hides; `hidden` begins the message. Positions come first in the
/// weights of one attention, [T,D], and last in those of several, [n,T].
inline void require_no_weight_where_hidden(const outcome<double>& values, const boolean_mask<2>& mask,
                                           bool positions_first, std::string_view hidden)
{
    const auto [B, T] = mask.shape();
    for (const auto& s : values) {
        if (!s.name.starts_with("weights") || B * T == 0) continue;
        const std::size_t width = s.values.size() / (B * T);
        for (std::size_t i = 0; i < s.values.size(); ++i) {
            const std::size_t position = (positions_first ? i / width : i) % T;
            if (mask[i / (width * T) * T + position] == 0 && s.values[i] != 0) {
                throw broken(std::string(hidden) + ", the " + s.name + "[" + std::to_string(i) + "] is " +
                             std::to_string(s.values[i]) + ", not 0");
            }
        }
    }
}

/// Compares the results under a boolean mask with those under an additive mask that hides the same positions.
inline void require_obeyed(const outcome<double>& masked, const outcome<double>& biased, const boolean_mask<2>& mask,
                           bool positions_first)
{
    require_no_weight_where_hidden(masked, mask, positions_first, "hidden by a boolean mask");
    require_no_weight_where_hidden(biased, mask, positions_first, "hidden by an additive mask of -inf");
    require_finite(masked, "with a boolean mask");
    require_close(biased, masked, rounding, "an additive mask of -inf against a boolean mask");
}

/// Rows that a beam search might keep: one row several times, other rows not at all.
inline std::vector<std::size_t> surviving_rows(std::size_t batch)
{
    std::vector<std::size_t> rows(std::max<std::size_t>(batch, 2));
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = i % 2 == 0 ? (batch - 1 - i / 2) % batch : 0;
    return rows;
}

/// Compares a run that continued with these rows after its first step with one that kept all rows.
inline std::string require_selected(const outcome<double>& is, const outcome<double>& of_all, std::size_t batch,
                                    const std::vector<std::size_t>& rows)
{
    outcome<double> must, later;
    for (std::size_t k = 0; k < of_all.size(); ++k) {
        if (of_all[k].name.ends_with(" of step 0")) continue;
        const std::vector<double>& values = of_all[k].values;
        const std::size_t width = values.size() / batch;
        series<double> chosen{of_all[k].name, {}};
        for (const std::size_t row : rows) {
            const auto first = values.begin() + static_cast<std::ptrdiff_t>(row * width);
            chosen.values.insert(chosen.values.end(), first, first + static_cast<std::ptrdiff_t>(width));
        }
        must.push_back(std::move(chosen));
        later.push_back(is[k]);
    }
    return require_close(later, must, rounding, "with rows selected after the first step");
}

/// Row b of x, with the first `count` entries of the second axis: [1,count,N].
inline array<double, 3> one_row(const array<double, 3>& x, std::size_t b, std::size_t count)
{
    const auto shape = shape_of(x);
    array<double, 3> row(shape_of_rank<3>{1, count, shape[2]});
    std::copy_n(x.data() + b * shape[1] * shape[2], count * shape[2], row.data());
    return row;
}

/// Row b of the results of a batch, without its padding.
inline outcome<double> results_of_row(const outcome<double>& together, std::size_t b, const lengths& real,
                                      std::size_t positions, bool positions_first)
{
    outcome<double> alone;
    for (const auto& s : together) {
        const std::size_t row = s.values.size() / real.batch();
        const bool has_padding = s.name.starts_with("weights") && positions != 0;
        const std::size_t times = has_padding && !positions_first ? row / positions : 1;
        const std::size_t stretch = row / times, kept = has_padding ? stretch / positions * real[b] : stretch;
        series<double> part{s.name, {}};
        for (std::size_t i = 0; i < times; ++i) {
            const auto first = s.values.begin() + static_cast<std::ptrdiff_t>(b * row + i * stretch);
            part.values.insert(part.values.end(), first, first + static_cast<std::ptrdiff_t>(kept));
        }
        alone.push_back(std::move(part));
    }
    return alone;
}

/// Scores of ±1e4, in steps of 0.5, which float holds exactly.
template <class T>
array<T, 3> large_scores(const shape_of_rank<3>& shape, std::size_t step)
{
    array<T, 3> e(shape);
    for (std::size_t i = 0; i < e.size(); ++i) {
        const double sign = (i * 7 + step * 3) % 5 < 3 ? 1 : -1;
        e.data()[i] = static_cast<T>(sign * 1e4 + static_cast<double>((i * 5 + step) % 4) * 0.5);
    }
    return e;
}

inline void require_refused(const std::string& what, function_ref<void> act)
{
    std::string message;
    try {
        act();
    } catch (const shape_error& e) {
        message = e.what();
    } catch (const std::exception& e) {
        throw broken(what + " throws something other than shape_error: " + e.what());
    }
    if (message.empty()) throw broken(what + " is not refused: shape_error expected");
}

/// Calls `step` and `step_into` with queries whose part i has one column too many, or one row too many or too few.
/// `written` returns the contents of the result of `step_into`. Returns the number of rejected calls.
inline std::size_t require_misfits_refused(std::vector<array<double, 3>>& parts, std::size_t i, const std::string& name,
                                           function_ref<void> step, function_ref<void> step_into,
                                           function_ref<outcome<double>> written)
{
    const auto before = written();
    const array<double, 3> right = parts[i];
    const auto [rows, steps, width] = shape_of(right);
    std::size_t refused = 0;
    const auto refuse = [&](const std::string& what, const shape_of_rank<3>& misfit) {
        parts[i] = normal_numbers<double>(misfit, 1);
        require_refused(what, step);
        require_refused(what, step_into);
        require_same_bits(written(), before, what + " throws, but has written to the results");
        refused += 2;
    };
    refuse("a " + name + " with one column too many", {rows, steps, width + 1});
    refuse("a " + name + " with one row too many", {rows + 1, steps, width});
    if (rows > 1) refuse("a " + name + " with one row too few", {rows - 1, steps, width});
    parts[i] = right;
    return refused;
}

inline std::string require_different(const std::vector<ad::named_variable<double>>& parameters,
                                     const std::string& prefix)
{
    std::set<std::string> names;
    std::size_t count = 0;
    for (const auto& parameter : parameters) {
        if (!parameter.name.starts_with(prefix)) continue;
        const std::string name = parameter.name.substr(prefix.size());
        ++count;
        if (!names.insert(name).second) throw broken("two parameters are named \"" + name + "\"");
    }
    return std::to_string(count) + " parameters";
}

}  // namespace heed::inline HEED_TARGET::detail::verifying
