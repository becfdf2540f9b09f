// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include <products/compare.hpp>

namespace composition {

double setting::value() const
{
    return std::visit([](const auto* x) { return static_cast<double>(*x); }, at);
}

void setting::set(double to) const
{
    std::visit([to](auto* x) { *x = static_cast<std::remove_pointer_t<decltype(x)>>(to); }, at);
}

heed::array<double, 3> steps_between(const heed::array<double, 3>& x, std::size_t first, std::size_t count)
{
    const auto [B, S, N] = heed::shape_of(x);
    heed::array<double, 3> some(heed::shape_of_rank<3>{B, count, N});
    for (std::size_t b = 0; b < B; ++b)
        std::copy_n(x.data() + (b * S + first) * N, count * N, some.data() + b * count * N);
    return some;
}

heed::lengths lengths_between(const heed::lengths& real, std::size_t first, std::size_t last)
{
    std::vector<std::size_t> counts;
    for (std::size_t b = 0; b < real.batch(); ++b) counts.push_back(std::min(real[b], last) - std::min(real[b], first));
    return heed::lengths(counts);
}

numbers padded(const numbers& weights, std::size_t rows, std::size_t width)
{
    numbers all(rows * width);
    for (std::size_t b = 0; b < rows; ++b)
        std::copy_n(weights.data() + b * (weights.size() / rows), weights.size() / rows, all.data() + b * width);
    return all;
}

void require(bool right, const std::string& what)
{
    if (!right) throw broken(what);
}

std::string digits(double x)
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
    require(is == must || off <= tolerance, what + ": " + digits(is) + " against " + digits(must));
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

bool all_finite(const outcome& all)
{
    for (const numbers& series : all) {
        for (const double v : series)
            if (!std::isfinite(v)) return false;
    }
    return true;
}

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
    for (const setting& x : p.settings()) run.settings[x.name] = x.value();
    for (std::size_t b = 0; b < p.data.of.rows; ++b) run.lengths.push_back(p.data.real[b]);
    return run;
}

bool interpreted(const product& p) { return !interpreter::not_interpreted().contains(p.normalizer); }

outcome values_of(const std::vector<interpreter::vector>& results)
{
    outcome all;
    for (const interpreter::vector& series : results) {
        all.emplace_back();
        for (const interpreter::number& x : series) all.back().push_back(x.value);
    }
    return all;
}

interpreter::tensor& tensor_of(interpreter::program& run, const std::string& name)
{
    if (name == "annotations") return run.annotations;
    if (name == "states") return run.states;
    return name == "words" ? run.words : run.parameters.at(name);
}

interpreter::tensor& tensor_of(interpreter::heads& run, const std::string& name)
{
    if (name == "queries") return run.queries;
    if (name == "keys") return run.keys;
    return name == "values" ? run.values : run.parameters.at(name);
}

}  // namespace composition
