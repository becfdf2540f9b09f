// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include <heed/core/random.hpp>
#include <products/compare.hpp>
#include <products/programs.hpp>
#include <support/tensors.hpp>

// Programs that must give the same results as another one: the interpreter is not involved.
namespace composition {

namespace {

constexpr double near = 1e-10;

/// A program, its product, and its results.
struct original {
    const table& lines;
    const program& x;
    product& p;
    const outcome& must;
};

using names = std::set<std::string>;

/// Numbers of a row of each series, which has the batch's rows first.
numbers row_of(const numbers& series, std::size_t rows, std::size_t b)
{
    const auto width = static_cast<std::ptrdiff_t>(series.size() / rows);
    const auto first = series.begin() + static_cast<std::ptrdiff_t>(b) * width;
    return {first, first + width};
}

/// The values of a part of one product for another one.
void copy_part(product& from, product& to, const std::string& name, const std::string& other = "")
{
    for (const part& source : from.parts()) {
        if (source.name != name) continue;
        for (const part& target : to.parts()) {
            if (target.name == (other.empty() ? name : other) && target.size == source.size)
                std::copy_n(source.data, source.size, target.data);
        }
    }
}

/// The tensor with this name; null if there is none.
double* find(product& p, const std::string& name)
{
    for (const part& each : p.parts())
        if (each.name == name) return each.data;
    return nullptr;
}

/// The same inputs for another program, of the same sizes.
std::unique_ptr<product> with_inputs_of(const original& o, const program& y)
{
    auto other = product_of(o.lines, y);
    for (const char* name : {"annotations", "states", "words"}) copy_part(o.p, *other, name);
    return other;
}

/// Each sentence alone and without padding.
void check_apart(const original& o)
{
    const auto bias = o.x.additive ? bias_of(o.x) : heed::array<double, 2>();
    const std::size_t T = o.x.of.positions, S = o.x.of.steps, D = o.x.of.width;
    for (std::size_t b = 0; b < o.x.of.rows; ++b) {
        const std::size_t n = o.x.lengths[b];
        program y = o.x;
        y.of.rows = 1;
        y.of.positions = n;
        y.lengths = {n};
        if (!y.visible.empty()) y.visible = {o.x.visible[b].substr(0, n)};
        const auto alone = product_of(o.lines, y);
        std::copy_n(o.p.data.annotations.data() + b * T * D, n * D, alone->data.annotations.data());
        std::copy_n(o.p.data.states.data() + b * S * D, S * D, alone->data.states.data());
        std::copy_n(o.p.data.words.data() + b * S * D, S * D, alone->data.words.data());
        heed::array<double, 2> own(heed::shape_of_rank<2>{1, n});
        if (o.x.additive) std::copy_n(bias.data() + b * T, n, own.data());
        outcome must;
        for (std::size_t k = 0; k < o.must.size(); ++k) {
            must.push_back(row_of(o.must[k], o.x.of.rows, b));
            if (k % 2 == 1 && T > 0) must.back().resize(must.back().size() / T * n);
        }
        require_near(steps_of(*alone, y, own), must, near, "sentence " + std::to_string(b) + " alone");
    }
}

/// Moves the positions of each sentence.
void check_permuted(const original& o)
{
    static const names scores{"additive",
                              "additive_grouped",
                              "additive_per_dimension",
                              "concat",
                              "conv_s2s",
                              "cosine",
                              "dot",
                              "general",
                              "kernel{elu_plus_one}",
                              "match",
                              "scaled_dot",
                              "with_coverage{additive}",
                              "with_fertility{additive}",
                              "with_gated_coverage{additive}",
                              "with_recurrence{additive}",
                              "with_word{additive}",
                              "with_word{additive_grouped}",
                              "with_word{additive_per_dimension}"};
    static const names normalizers{
        "argmax",          "decayed_temporal", "entmax",  "entmax15",          "learned_temporal",
        "recent_temporal", "sigmoid",          "softmax", "softmax_with_sink", "sparsemax",
        "temperature",     "temporal",         "top_k"};
    if (!scores.contains(o.x.score) || !normalizers.contains(o.x.normalizer)) return;
    const std::size_t B = o.x.of.rows, T = o.x.of.positions, D = o.x.of.width;
    const auto moved = product_of(o.lines, o.x);
    program y = o.x;
    auto bias = o.x.additive ? bias_of(o.x) : heed::array<double, 2>();
    const auto from_bias = bias;
    outcome must = o.must;
    for (std::size_t b = 0; b < B; ++b) {
        std::vector<std::size_t> from(o.x.lengths[b]);
        for (std::size_t t = 0; t < from.size(); ++t) from[t] = t;
        for (std::size_t t = from.size(); t > 1; --t)
            std::swap(from[t - 1], from[heed::below(t, o.x.numbers, b * T + t)]);
        for (std::size_t t = 0; t < from.size(); ++t) {
            std::copy_n(&o.p.data.annotations(b, from[t], 0), D, &moved->data.annotations(b, t, 0));
            if (!y.visible.empty()) y.visible[b][t] = o.x.visible[b][from[t]];
            if (o.x.additive) bias(b, t) = from_bias(b, from[t]);
            for (std::size_t k = 1; k < must.size(); k += 2) {
                const std::size_t G = must[k].size() / (B * T);
                std::copy_n(o.must[k].data() + (b * T + from[t]) * G, G, must[k].data() + (b * T + t) * G);
            }
        }
    }
    require_near(steps_of(*moved, y, bias), must, near, "with permuted positions");
}

/// A mask as numbers 0 and -inf; a constant added to all numbers.
void check_mask_of_numbers(const original& o)
{
    const auto numbers_of = [&](double added) {
        heed::array<double, 2> bias(heed::shape_of_rank<2>{o.x.of.rows, o.x.of.positions}, added);
        if (o.x.additive) {
            const auto given = bias_of(o.x);
            for (std::size_t i = 0; i < bias.size(); ++i) bias.data()[i] += given.data()[i];
        } else if (!o.x.visible.empty()) {
            for (std::size_t i = 0; i < bias.size(); ++i) {
                if (o.x.visible[i / o.x.of.positions][i % o.x.of.positions] == '0')
                    bias.data()[i] = -std::numeric_limits<double>::infinity();
            }
        }
        return o.p.steps_under(heed::additive_mask{bias});
    };
    require_near(numbers_of(0), o.must, near, "with 0 added to the scores, and -inf where masked");
    static const names shifted{
        "argmax",  "decayed_temporal", "entmax",  "entmax15",  "learned_temporal", "local_m",  "local_m{D, temporal}",
        "local_p", "recent_temporal",  "softmax", "sparsemax", "temperature",      "temporal", "top_k"};
    if (shifted.contains(o.x.normalizer))
        require_near(numbers_of(1.75), o.must, near, "with a constant added to all scores of a row");
}

/// A term that is added to a position's score at every step is in its history: a hidden unit that ignores the query.
void check_constant_offset(const original& o)
{
    const auto steps = o.x.settings.find("normalize.steps");
    const bool recent = o.x.normalizer == "recent_temporal" && (steps == o.x.settings.end() || steps->second > 0);
    if (o.x.score != "additive" || !(recent || o.x.normalizer == "temporal")) return;
    program y = o.x;
    const std::size_t A = o.x.of.hidden, D = o.x.of.width;
    y.of.hidden = A + 1;
    const auto other = with_inputs_of(o, y);
    for (const part& each : other->parts()) {
        if (each.name != "score.W" && each.name != "score.U" && each.name != "score.v") {
            copy_part(o.p, *other, each.name);
            continue;
        }
        const double* const from = find(o.p, each.name);
        for (std::size_t i = 0; i < each.size / (A + 1); ++i) std::copy_n(from + i * A, A, each.data + i * (A + 1));
    }
    double* const W = find(*other, "score.W");
    for (std::size_t d = 0; d < D; ++d) W[d * (A + 1) + A] = 0;
    const auto bias = o.x.additive ? bias_of(o.x) : heed::array<double, 2>();
    outcome is = steps_of(*other, y, bias), must = o.must;
    is.erase(is.begin(), is.begin() + std::min<std::ptrdiff_t>(2, std::ssize(is)));
    must.erase(must.begin(), must.begin() + std::min<std::ptrdiff_t>(2, std::ssize(must)));
    require_near(is, must, near, "with a constant offset of each position (steps count from the second)");
}

/// A window of all positions is no window.
void check_wide_window(const original& o)
{
    const bool temporal = o.x.normalizer == "local_m{D, temporal}";
    program y = o.x;
    y.normalizer = temporal ? "temporal" : "softmax";
    if (!(temporal || o.x.normalizer == "local_m") || !judged_line(o.lines, y.score, y.normalizer, y.combiner)) return;
    y.settings.erase("normalize.reach");
    const auto whole = with_inputs_of(o, y);
    for (const part& each : whole->parts()) copy_part(o.p, *whole, each.name);
    program wide = o.x;
    wide.settings["normalize.reach"] = static_cast<double>(o.x.of.positions);
    const auto window = with_inputs_of(o, wide);
    const auto bias = o.x.additive ? bias_of(o.x) : heed::array<double, 2>();
    require_near(steps_of(*window, wide, bias), steps_of(*whole, y, bias), near, "a window of all positions");
}

/// Scores that are a special case of others: W [s; h] = W_s s + W_h h, one group, and a group for each dimension.
void check_special_case(const original& o)
{
    program y = o.x;
    const auto replace = [](std::string& text, const std::string& what, const std::string& by) {
        const std::size_t at = text.find(what);
        if (at != std::string::npos) text.replace(at, what.size(), by);
    };
    if (o.x.score == "concat") {
        y.score = "additive";
    } else if (o.x.score.find("additive_grouped") != std::string::npos && o.x.of.groups == 1) {
        replace(y.score, "additive_grouped", "additive");
        replace(y.combiner, "grouped_sum", "weighted_sum");
    } else if (o.x.score.find("additive_grouped") != std::string::npos && o.x.of.groups == o.x.of.width) {
        replace(y.score, "additive_grouped", "additive_per_dimension");
        replace(y.combiner, "grouped_sum", "elementwise_sum");
    } else {
        return;
    }
    if (!judged_line(o.lines, y.score, y.normalizer, y.combiner)) return;
    const auto other = with_inputs_of(o, y);
    for (const part& each : other->parts()) copy_part(o.p, *other, each.name);
    if (o.x.score == "concat") {
        const double* const W = find(o.p, "score.W");
        const std::size_t half = o.x.of.width * o.x.of.hidden;
        std::copy_n(W, half, find(*other, "score.W"));
        std::copy_n(W + half, half, find(*other, "score.U"));
    } else if (o.x.of.groups == 1) {
        copy_part(o.p, *other, "score.V", "score.v");
        copy_part(o.p, *other, "score.base.V", "score.base.v");
    }
    const auto bias = o.x.additive ? bias_of(o.x) : heed::array<double, 2>();
    require_near(steps_of(*other, y, bias), o.must, near, "as " + y.score);
}

}  // namespace

void check_rewrites(const table& lines, const program& x, product& p, const outcome& must)
{
    const original o{lines, x, p, must};
    check_apart(o);
    check_permuted(o);
    check_mask_of_numbers(o);
    check_constant_offset(o);
    check_wide_window(o);
    check_special_case(o);
}

}  // namespace composition
