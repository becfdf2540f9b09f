// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <products/interpreter/program.hpp>
#include <products/products.hpp>
#include <support/tensors.hpp>

/// Comparisons of results, and the same results from the interpreter.
namespace composition {

/// The fault of a product, described by the message.
struct broken : std::runtime_error {
    using std::runtime_error::runtime_error;
};

void require(bool right, const std::string& what);
void require_close(double is, double must, double tolerance, const std::string& what);
void require_close(const outcome& is, const outcome& must, double tolerance, const std::string& what);
void require_same_bits(const outcome& is, const outcome& must, const std::string& what);
void require_finite(const outcome& is, const std::string& what);
bool all_finite(const outcome& all);

std::string digits(double x);
std::string place(std::size_t series, std::size_t i);

/// Is the product in the interpreter's tables?
bool interpreted(const product& p);

/// The product as the interpreter's program.
interpreter::program program_of(product& p);

/// The tensor of a program with the name of a part.
interpreter::tensor& tensor_of(interpreter::program& run, const std::string& name);
interpreter::tensor& tensor_of(interpreter::heads& run, const std::string& name);

/// The values by the equations.
outcome values_of(const std::vector<interpreter::vector>& results);
inline outcome values_of(const interpreter::program& run) { return values_of(interpreter::interpret(run)); }

/// The gradient of each tensor on the tape along a random direction. The loss is the sum of all results, each times
/// weight(series, i).
template <class Run, class Weight>
void check_slopes(const std::vector<part>& parts, const outcome& slopes, Run run, const Weight& weight)
{
    require(parts.size() == slopes.size(), "the numbers of gradients and parameters differ");
    for (std::size_t k = 0; k < parts.size(); ++k) {
        if (slopes[k].empty()) continue;  // not on the tape, or without numbers
        require(parts[k].size == slopes[k].size(), "the gradient of " + parts[k].name + ": a different size");
        const auto direction = support::random({parts[k].size}, 901 + k);
        interpreter::tensor& x = tensor_of(run, parts[k].name);
        double along = 0, must = 0, size = 1;
        for (std::size_t i = 0; i < x.numbers.size(); ++i) {
            x.numbers[i].u = direction(i);
            along += slopes[k][i] * direction(i);
            size += std::abs(slopes[k][i] * direction(i));
        }
        const auto results = interpreter::interpret(run);
        for (std::size_t s = 0; s < results.size(); ++s) {
            for (std::size_t i = 0; i < results[s].size(); ++i) must += weight(s, i) * results[s][i].u;
        }
        for (interpreter::number& each : x.numbers) each.u = 0;
        require(std::abs(along - must) <= 1e-9 * (size + std::abs(must)),
                "the gradient with respect to " + parts[k].name + ": " + digits(along) + " against " + digits(must));
    }
}

/// Float against double, with a bound that follows from the condition: the change of the results if every input changes
/// by a rounding error of random sign, which is the error of a backward stable program. The inputs become floats.
/// `series` 2: only the contexts are compared.
template <class Run, class Values>
void check_float(const std::vector<part>& parts, Run run, std::size_t series, int samples, double factor,
                 const Values& values)
{
    constexpr double rounding = std::numeric_limits<float>::epsilon() / 2;
    for (const part& each : parts) {
        for (std::size_t i = 0; i < each.size; ++i)
            each.data[i] = static_cast<double>(static_cast<float>(each.data[i]));
    }
    outcome must, moved;
    for (int sample = 0; sample < samples; ++sample) {
        for (std::size_t k = 0; k < parts.size(); ++k) {
            interpreter::tensor& x = tensor_of(run, parts[k].name);
            const auto drawn = support::random({parts[k].size}, heed::mix(100 * static_cast<std::size_t>(sample) + k));
            for (std::size_t i = 0; i < x.numbers.size(); ++i)
                x.numbers[i] = {parts[k].data[i], std::copysign(rounding, drawn(i)) * parts[k].data[i], 0, 0};
        }
        const auto results = interpreter::interpret(run);
        must.assign(results.size(), numbers());
        moved.resize(results.size());
        for (std::size_t s = 0; s < results.size(); s += series) {
            moved[s].resize(results[s].size());
            for (std::size_t i = 0; i < results[s].size(); ++i) {
                must[s].push_back(results[s][i].value);
                moved[s][i] += results[s][i].u * results[s][i].u / samples;
            }
        }
    }
    if (!all_finite(must) || !all_finite(moved)) return;
    const outcome is = values();
    require(is.size() * series == must.size(), "in float: a different number of results");
    for (std::size_t s = 0; s < must.size(); s += series) {
        const numbers& found = is[s / series];
        require(found.size() == must[s].size(), "in float: a different size of the " + place(s, 0));
        double worst = 0, largest = 0;
        for (std::size_t i = 0; i < must[s].size(); ++i) {
            worst = std::max(worst, std::sqrt(moved[s][i]));
            largest = std::max(largest, std::abs(must[s][i]));
        }
        if (worst > 1e-3 * largest) return;  // far from linear within a rounding error; later steps depend on this one
        for (std::size_t i = 0; i < must[s].size(); ++i) {
            require(std::abs(found[i] - must[s][i]) <= factor * (worst + rounding * largest),
                    "in float, " + place(s, i) + ": " + digits(found[i]) + " against " + digits(must[s][i]) +
                        ", which changes by " + digits(worst) + " with the inputs' rounding");
        }
    }
}

}  // namespace composition
