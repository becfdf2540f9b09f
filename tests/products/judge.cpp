// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <stdexcept>

#include <products/compare.hpp>
#include <support/tensors.hpp>

// The checks of every product: on doubles behind pointers, for any types.
namespace composition {

namespace {

/// Rows of only padding return 0, and weights beyond a row's length are 0.
void check_zeros(const batch& data, const outcome& values)
{
    for (std::size_t k = 0; k < values.size(); ++k) {
        const std::size_t row = values[k].size() / data.of.rows;
        for (std::size_t i = 0; i < values[k].size(); ++i) {
            const std::size_t length = data.real[i / row];
            const bool padded = k % 2 == 1 && i % row / (row / data.of.positions) >= length;
            if (length == 0 || padded) require(values[k][i] == 0, "not 0 without a position: " + place(k, i));
        }
    }
}

/// The values, and the gradient along a random direction of each tensor, against the equations.
void check_equations(product& p, const outcome& values, const taped_outcome& taped, interpreter::program run)
{
    require_close(values, values_of(run), 1e-11, "against the equations");
    if (!p.differentiable) return;
    const std::vector<part> parts = p.parts();
    require(parts.size() == taped.slopes.size(), "the numbers of gradients and parameters differ");
    for (std::size_t k = 0; k < parts.size(); ++k) {
        const part& of = parts[k];
        require(of.size == taped.slopes[k].size(), "the gradient with respect to " + of.name + ": a different size");
        const auto direction = support::random({of.size}, 901 + k);
        interpreter::tensor& x = tensor_of(run, of.name);
        double along = 0, must = 0;
        for (std::size_t i = 0; i < of.size; ++i) {
            x.numbers[i].u = direction(i);
            along += taped.slopes[k][i] * direction(i);
        }
        const auto results = interpreter::interpret(run);
        for (std::size_t s = 0; s < results.size(); ++s) {
            for (std::size_t i = 0; i < results[s].size(); ++i) must += constant(s, i) * results[s][i].u;
        }
        for (interpreter::number& each : x.numbers) each.u = 0;
        require_close(along, must, 1e-9, "the gradient with respect to " + of.name + " against the equations");
    }
}

void check_at_once(const extents& of, const outcome& values, const numbers& contexts)
{
    const std::size_t width = values.front().size() / of.rows;
    require(contexts.size() == of.rows * of.steps * width, "all queries at once: a different size");
    for (std::size_t i = 0; i < contexts.size(); ++i) {
        const std::size_t b = i / width / of.steps, s = i / width % of.steps;
        require_close(contexts[i], values[2 * s][b * width + i % width], 1e-11,
                      "all queries at once against one by one, step " + std::to_string(s));
    }
}

/// NaN and large numbers beyond the lengths change no bit.
void check_padding(product& p, const outcome& values, const taped_outcome& taped)
{
    const auto kept = p.data.annotations;
    for (const double rubbish : {std::numeric_limits<double>::quiet_NaN(), 1e30}) {
        for (std::size_t b = 0; b < p.data.of.rows; ++b) {
            for (std::size_t t = p.data.real[b]; t < p.data.of.positions; ++t) {
                for (std::size_t d = 0; d < p.data.of.width; ++d) p.data.annotations(b, t, d) = rubbish;
            }
        }
        const std::string what = digits(rubbish) + " in the padding";
        require_same_bits(p.steps(), values, what);
        require_same_bits(p.on_tape().slopes, taped.slopes, what + ", gradients");
    }
    p.data.annotations = kept;
}

/// Masked positions have weight 0; a mask that hides the last positions equals shorter lengths.
void check_masks(product& p)
{
    const std::size_t B = p.data.of.rows, T = p.data.of.positions;
    heed::boolean_mask<2> holes({B, T}), first_half({B, T});
    heed::array<double, 2> bias(heed::shape_of_rank<2>{B, T}, 0.0);
    std::vector<std::size_t> fewer;
    for (std::size_t b = 0; b < B; ++b) {
        fewer.push_back(p.data.real[b] / 2);
        for (std::size_t t = 0; t < T; ++t) {
            holes[b * T + t] = (b + t) % 3 != 0;
            if (holes[b * T + t] == 0) bias(b, t) = -std::numeric_limits<double>::infinity();
            first_half[b * T + t] = t < fewer[b];
        }
    }
    const outcome masked = p.steps_under(holes);
    require_finite(masked, "not finite under a mask");
    require_close(p.steps_under(heed::additive_mask{bias}), masked, 1e-11, "an additive mask against a boolean one");
    if (interpreted(p)) {
        auto run = program_of(p);
        run.sees.visible = [](std::size_t b, std::size_t, std::size_t t) { return (b + t) % 3 != 0; };
        require_close(masked, values_of(run), 1e-11, "under a mask, against the equations");
    }
    for (std::size_t k = 1; k < masked.size(); k += 2) {
        const std::size_t width = masked[k].size() / (B * T);
        for (std::size_t i = 0; i < masked[k].size(); ++i) {
            if (holes[i / width] == 0) require(masked[k][i] == 0, "a masked position has weight: " + place(k, i));
        }
    }
    if (p.reads_length) return;
    require_close(p.steps_under(first_half), p.steps_under(heed::lengths(fewer)), 1e-11,
                  "the last positions hidden against shorter lengths");
}

/// A search continues with selected rows and their state.
void check_rows(const product& p, const outcome& values)
{
    if (p.random) return;
    const std::vector<std::size_t> rows{3, 0, 2, 0};
    outcome must;
    for (std::size_t k = 2; k < values.size(); ++k) {  // from the second step on
        const std::size_t width = values[k].size() / p.data.of.rows;
        must.emplace_back();
        for (const std::size_t row : rows) {
            const double* const from = values[k].data() + row * width;
            must.back().insert(must.back().end(), from, from + width);
        }
    }
    require_close(p.steps_of(rows), must, 1e-11, "rows selected after the first step (steps count from there)");
}

/// The gradient along a random direction of each tensor, against central differences of the plain run.
void check_gradient(product& p, const taped_outcome& taped)
{
    std::uint64_t stream = 900;
    const std::vector<part> parts = p.parts();
    require(parts.size() == taped.slopes.size(), "the numbers of gradients and parameters differ");
    for (std::size_t k = 0; k < parts.size(); ++k) {
        require(parts[k].size == taped.slopes[k].size(),
                "the gradient with respect to " + parts[k].name + ": a different size");
        const auto direction = support::random({parts[k].size}, ++stream);
        const numbers kept(parts[k].data, parts[k].data + parts[k].size);
        const double h = 1e-5;
        double along = 0;
        for (std::size_t i = 0; i < kept.size(); ++i) along += taped.slopes[k][i] * direction(i);
        const auto moved = [&](double by) {
            for (std::size_t i = 0; i < kept.size(); ++i) parts[k].data[i] = kept[i] + by * direction(i);
            return loss(p.steps());
        };
        const auto difference = [&](double step) { return (moved(step) - moved(-step)) / (2 * step); };
        const double found = (4 * difference(h) - difference(2 * h)) / 3;  // the errors in h² cancel
        std::copy(kept.begin(), kept.end(), parts[k].data);
        require_close(along, found, 1e-7, "the gradient with respect to " + parts[k].name);
    }
}

/// Only parameters, annotations or queries on the tape: each gets the same gradient as with all on the tape.
void check_parts_on_tape(const product& p, const taped_outcome& everything)
{
    for (const auto& [what, name] : {std::pair{taped::parameters, "parameters"},
                                     {taped::annotations, "annotations"},
                                     {taped::queries, "queries"}}) {
        const std::string alone = std::string("only ") + name + " on the tape";
        const taped_outcome is = p.on_tape(what);
        require_close(is.values, everything.values, 1e-11, alone);
        require(is.slopes.size() == everything.slopes.size(), alone + ": a different number of gradients");
        for (std::size_t k = 0; k < is.slopes.size(); ++k) {
            for (std::size_t i = 0; i < is.slopes[k].size(); ++i) {
                require_close(is.slopes[k][i], everything.slopes[k][i], 1e-11, alone + ": the gradient");
            }
        }
    }
}

/// Without queries.
void check_no_queries(product& p)
{
    const auto states = p.data.states, words = p.data.words;
    p.data.states = p.data.words = heed::array<double, 3>(heed::shape_of_rank<3>{p.data.of.rows, 0, p.data.of.width});
    require(p.at_once().empty(), "contexts of no queries");
    p.data.states = states;
    p.data.words = words;
}

/// An empty row has no gradient.
void check_empty_row(const product& p, const taped_outcome& taped)
{
    const std::size_t of_batch = p.query_has_word ? 3 : 2;
    for (std::size_t k = taped.slopes.size() - of_batch; k < taped.slopes.size(); ++k) {
        const std::size_t row = taped.slopes[k].size() / p.data.of.rows;
        for (std::size_t i = 0; i < taped.slopes[k].size(); ++i) {
            if (p.data.real[i / row] == 0) require(taped.slopes[k][i] == 0, "an empty row has a gradient");
        }
    }
}

/// Scores of ±1e4 and more: queries and score parameters 1e4 times as large.
void check_extremes(product& p)
{
    std::vector<numbers> kept;
    const std::vector<part> parts = p.parts();
    for (const part& x : parts) {
        kept.emplace_back(x.data, x.data + x.size);
        if (!x.name.starts_with("score.") && x.name != "states") continue;
        for (std::size_t i = 0; i < x.size; ++i) x.data[i] *= 1e4;
    }
    require_finite(p.steps(), "not finite with large scores");
    const auto taped = p.on_tape();
    require_finite(taped.values, "not finite with large scores on a tape");
    require_finite(taped.slopes, "a gradient is not finite with large scores");
    for (std::size_t k = 0; k < parts.size(); ++k) std::copy(kept[k].begin(), kept[k].end(), parts[k].data);
}

void check(product& p)
{
    const outcome values = p.steps();
    const taped_outcome taped = p.on_tape();
    require_finite(values, "not finite");
    require_finite(taped.slopes, "a gradient is not finite");
    require_same_bits(p.steps(), values, "the second run");
    check_rows(p, values);
    check_masks(p);
    require_close(taped.values, values, 1e-11, "on the tape against without");
    check_at_once(p.data.of, values, p.at_once());
    check_no_queries(p);
    check_parts_on_tape(p, taped);
    check_zeros(p.data, values);
    check_empty_row(p, taped);
    check_padding(p, values, taped);
    if (interpreted(p)) {
        check_equations(p, values, taped, program_of(p));
    } else if (p.differentiable) {
        check_gradient(p, taped);
    }
    check_extremes(p);
}

void take_down(outcome& to, const heed::tensor auto& x)
{
    using heed::view_of;  // includes view_of for variables
    const auto v = view_of(x);
    to.emplace_back(v.data, v.data + v.size());
}

void weigh_in(outcome& to, std::vector<heed::ad::var<double, 0>>& terms, const auto& x)
{
    terms.push_back(heed::ops::dot(x, constants<heed::rank_of<decltype(x)>>(to.size(), x.shape())));
    take_down(to, x);
}

}  // namespace

batch::batch(const extents& sizes, std::vector<std::size_t> lengths, std::uint64_t stream)
    : of(sizes),
      annotations(support::random({of.rows, of.positions, of.width}, stream)),
      states(support::random({of.rows, of.steps, of.width}, stream + 1)),
      words(support::random({of.rows, of.steps, of.width}, stream + 2)),
      real(std::move(lengths))
{}

batch::batch(const extents& sizes)
    : batch(
          sizes,
          [&] {
              std::vector<std::size_t> lengths;
              for (std::size_t b = 0; b < sizes.rows; ++b)
                  lengths.push_back(b == 0 ? sizes.positions : std::min(b - 1, sizes.positions));
              return lengths;
          }(),
          1)
{}

double constant(std::size_t series, std::size_t i)
{
    return std::sin(1 + 1.7 * static_cast<double>(i) + 0.3 * static_cast<double>(series));
}

double loss(const outcome& values)
{
    double sum = 0;
    for (std::size_t k = 0; k < values.size(); ++k) {
        for (std::size_t i = 0; i < values[k].size(); ++i) sum += constant(k, i) * values[k][i];
    }
    return sum;
}

void recorder::operator()(const heed::array<double, 2>& x) const { take_down(to, x); }
void recorder::operator()(const heed::array<double, 3>& x) const { take_down(to, x); }
void recorder::operator()(const heed::array<float, 2>& x) const { take_down(to, x); }
void recorder::operator()(const heed::array<float, 3>& x) const { take_down(to, x); }
void taped_recorder::operator()(const heed::ad::var<double, 2>& x) const { weigh_in(to, terms, x); }
void taped_recorder::operator()(const heed::ad::var<double, 3>& x) const { weigh_in(to, terms, x); }

void backward(heed::ad::tape<double>& on, const std::vector<heed::ad::var<double, 0>>& terms)
{
    if (terms.empty()) return;  // nothing on the tape was read
    auto sum = terms.front();
    for (std::size_t i = 1; i < terms.size(); ++i) sum = heed::ops::add(sum, terms[i]);
    on.backward(sum);
}

std::string judge(product& p)
{
    try {
        check(p);
        return "";
    } catch (const std::exception& e) {
        return e.what();
    }
}

std::string compare_with_equations(product& p, const interpreter::mistake& wrong)
{
    try {
        auto run = program_of(p);
        run.wrong = wrong;
        check_equations(p, p.steps(), p.on_tape(), std::move(run));
        return "";
    } catch (const broken& e) {
        return e.what();
    }
}

}  // namespace composition
