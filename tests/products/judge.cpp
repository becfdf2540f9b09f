// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <stdexcept>

#include <products/products.hpp>
#include <support/tensors.hpp>

// The checks of every product: on doubles behind pointers, for any types.
namespace composition {

namespace {

/// The fault of a product, described by the message.
struct broken : std::runtime_error {
    using std::runtime_error::runtime_error;
};

void require(bool right, const std::string& what)
{
    if (!right) throw broken(what);
}

std::string text(double x)
{
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.9g", x);
    return buffer;
}

std::string place(std::size_t series, std::size_t i)
{
    return (series % 2 == 0 ? "context" : "weights") + (" of step " + std::to_string(series / 2)) + " [" +
           std::to_string(i) + "]";
}

void require_close(double is, double must, double tolerance, const std::string& what)
{
    const double off = std::abs(is - must) / (1 + std::abs(must));
    require(is == must || off <= tolerance, what + ": " + text(is) + " against " + text(must));
}

void require_close(const outcome& is, const outcome& must, double tolerance, const std::string& what)
{
    require(is.size() == must.size(), what + ": a different number of results");
    for (std::size_t k = 0; k < must.size(); ++k) {
        require(is[k].size() == must[k].size(), what + ": a different size of the " + place(k, 0));
        for (std::size_t i = 0; i < must[k].size(); ++i) {
            require_close(is[k][i], must[k][i], tolerance, what + ", " + place(k, i));
        }
    }
}

void require_same_bits(const outcome& is, const outcome& must, const std::string& what)
{
    require(is.size() == must.size(), what + ": a different number of results");
    for (std::size_t k = 0; k < must.size(); ++k) {
        require(is[k].size() == must[k].size() &&
                    std::memcmp(is[k].data(), must[k].data(), must[k].size() * sizeof(double)) == 0,
                what + ", in series " + std::to_string(k));
    }
}

void require_finite(const outcome& is, const std::string& what)
{
    for (std::size_t k = 0; k < is.size(); ++k) {
        for (const double x : is[k]) require(std::isfinite(x), what + ", in series " + std::to_string(k));
    }
}

/// Rows of only padding return 0, and weights beyond a row's length are 0.
void check_zeros(const batch& data, const outcome& values)
{
    for (std::size_t k = 0; k < values.size(); ++k) {
        const std::size_t row = values[k].size() / batch::rows;
        for (std::size_t i = 0; i < values[k].size(); ++i) {
            const std::size_t length = data.real[i / row];
            const bool padded = k % 2 == 1 && i % row / (row / batch::positions) >= length;
            if (length == 0 || padded) require(values[k][i] == 0, "not 0 without a position: " + place(k, i));
        }
    }
}

/// The product as the interpreter's program.
interpreter::program program_of(product& p)
{
    interpreter::program run;
    run.score = p.score;
    run.normalizer = p.normalizer;
    run.combiner = p.combiner;
    for (const part& x : p.parts()) {
        interpreter::tensor copy{x.shape, {x.data, x.data + x.size}};
        if (x.name == "annotations") {
            run.annotations = std::move(copy);
        } else if (x.name == "states") {
            run.states = std::move(copy);
        } else if (x.name == "words") {
            run.words = std::move(copy);
        } else {
            run.parameters[x.name] = std::move(copy);
        }
    }
    for (const setting& x : p.settings()) run.settings[x.name] = x.value;
    for (std::size_t b = 0; b < batch::rows; ++b) run.lengths.push_back(p.data.real[b]);
    return run;
}

bool interpreted(const product& p) { return !interpreter::not_interpreted().contains(p.normalizer); }

/// The values by the equations.
outcome values_of(const interpreter::program& run)
{
    outcome all;
    for (const interpreter::vector& series : interpreter::interpret(run)) {
        all.emplace_back();
        for (const interpreter::number& x : series) all.back().push_back(x.value);
    }
    return all;
}

/// The tensor of a program with the name of a part.
interpreter::tensor& tensor_of(interpreter::program& run, const std::string& name)
{
    if (name == "annotations") return run.annotations;
    if (name == "states") return run.states;
    return name == "words" ? run.words : run.parameters.at(name);
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

void check_at_once(const outcome& values, const numbers& contexts)
{
    const std::size_t width = values.front().size() / batch::rows;
    require(contexts.size() == batch::rows * batch::steps * width, "all queries at once: a different size");
    for (std::size_t i = 0; i < contexts.size(); ++i) {
        const std::size_t b = i / width / batch::steps, s = i / width % batch::steps;
        require_close(contexts[i], values[2 * s][b * width + i % width], 1e-11,
                      "all queries at once against one by one, step " + std::to_string(s));
    }
}

/// NaN and large numbers beyond the lengths change no bit.
void check_padding(product& p, const outcome& values, const taped_outcome& taped)
{
    const auto kept = p.data.annotations;
    for (const double rubbish : {std::numeric_limits<double>::quiet_NaN(), 1e30}) {
        for (std::size_t b = 0; b < batch::rows; ++b) {
            for (std::size_t t = p.data.real[b]; t < batch::positions; ++t) {
                for (std::size_t d = 0; d < batch::width; ++d) p.data.annotations(b, t, d) = rubbish;
            }
        }
        const std::string what = text(rubbish) + " in the padding";
        require_same_bits(p.steps(), values, what);
        require_same_bits(p.on_tape().slopes, taped.slopes, what + ", gradients");
    }
    p.data.annotations = kept;
}

/// Masked positions have weight 0; a mask that hides the last positions equals shorter lengths.
void check_masks(product& p)
{
    constexpr std::size_t B = batch::rows, T = batch::positions;
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
        const std::size_t width = values[k].size() / batch::rows;
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
    p.data.states = p.data.words = heed::array<double, 3>(heed::shape_of_rank<3>{batch::rows, 0, batch::width});
    require(p.at_once().empty(), "contexts of no queries");
    p.data.states = states;
    p.data.words = words;
}

/// An empty row has no gradient.
void check_empty_row(const product& p, const taped_outcome& taped)
{
    const std::size_t of_batch = p.query_has_word ? 3 : 2;
    for (std::size_t k = taped.slopes.size() - of_batch; k < taped.slopes.size(); ++k) {
        const std::size_t row = taped.slopes[k].size() / batch::rows;
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
    check_at_once(values, p.at_once());
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
    auto constants = support::array<double, heed::rank_of<decltype(x)>>(x.shape());
    for (std::size_t i = 0; i < constants.size(); ++i) constants.data()[i] = constant(to.size(), i);
    take_down(to, x);
    terms.push_back(heed::ops::dot(x, constants));
}

}  // namespace

batch::batch()
    : annotations(support::random({rows, positions, width}, 1)),
      states(support::random({rows, steps, width}, 2)),
      words(support::random({rows, steps, width}, 3))
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
