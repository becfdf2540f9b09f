// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <products/interpreter/program.hpp>

/// The inputs of the equations.
namespace interpreter {

/// The visible positions of one query.
struct view {
    std::size_t length = 0;  // the positions that exist, visible or not
    std::vector<bool> sees;
    std::vector<double> bias;

    bool any() const { return std::find(sees.begin(), sees.end(), true) != sees.end(); }
};

/// One sentence with its queries.
struct sentence {
    std::size_t length = 0;     // in the memory
    matrix annotations;         // [length][D]
    matrix given_values;        // [length][V]; empty: the annotations
    matrix states, words;       // of every step
    std::vector<view> visible;  // of every step

    const matrix& values() const { return given_values.empty() ? annotations : given_values; }
};

/// The results of the steps before the current one.
struct past {
    std::vector<matrix> weights;  // [length][G] of each step
    std::vector<vector> contexts;
};

/// One policy at one step of one sentence.
struct scope {
    const program& run;
    const sentence& in;
    const past& before;
    std::size_t step;
    std::string table, name, prefix;  // "score", "with_word{additive}", "score."

    /// The part of the name before the brace.
    std::string head() const { return name.substr(0, name.find('{')); }

    /// The policy inside this one: its first or its last argument.
    scope inside(bool last, const std::string& member) const
    {
        scope inner = *this;
        const std::size_t open = name.find('{'), close = name.rfind('}');
        if (open == std::string::npos) {
            inner.name = "softmax";  // the default
        } else {
            inner.name = name.substr(open + 1, close - open - 1);
            const std::string comma = ", ";
            if (last && inner.name.rfind(comma) != std::string::npos) {
                inner.name = inner.name.substr(inner.name.rfind(comma) + comma.size());
            }
            if (!last) inner.name = inner.name.substr(0, inner.name.find(comma));
        }
        inner.prefix += member + ".";
        return inner;
    }
    scope base() const { return inside(false, "base"); }
    scope inner() const { return inside(true, "inner"); }

    bool has(const std::string& parameter) const { return run.parameters.contains(prefix + parameter); }
    const tensor& operator[](const std::string& parameter) const { return run.parameters.at(prefix + parameter); }
    double setting(const std::string& what) const { return run.settings.at(prefix + what); }

    std::size_t positions() const { return in.length; }
    const vector& query() const { return in.states[step]; }

    /// The entry of a table for this policy.
    template <class Entry>
    const Entry& entry(const std::map<std::string, Entry>& of) const
    {
        const auto found = of.find(head());
        if (found == of.end()) throw std::logic_error("the interpreter has no " + table + " " + head());
        return found->second;
    }

    /// Adds the mistake to a result of this policy, if it is the one to be wrong.
    void spoil(number& result) const
    {
        if (run.wrong.entry != table + " " + head()) return;
        if (run.wrong.of_derivative) {
            result.u += 1e-5;
            result.w += 1e-5;
        } else {
            result.value += 1e-8;
        }
    }
    void spoil(vector& result) const
    {
        if (!result.empty()) spoil(result.front());
    }
    void spoil(matrix& result) const
    {
        if (!result.empty()) spoil(result.front());
    }
};

/// x W
inline vector times(const vector& x, const tensor& W)
{
    vector y(W.columns());
    for (std::size_t j = 0; j < y.size(); ++j) {
        for (std::size_t i = 0; i < x.size(); ++i) y[j] += x[i] * W(i, j);
    }
    return y;
}
inline matrix times(const matrix& rows, const tensor& W)
{
    matrix all;
    for (const vector& x : rows) all.push_back(times(x, W));
    return all;
}
inline vector plus(vector a, const vector& b)
{
    for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
}
inline vector plus(vector a, const tensor& b)
{
    for (std::size_t i = 0; i < a.size(); ++i) a[i] += b(i);
    return a;
}
inline number inner_product(const vector& a, const vector& b)
{
    number sum;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}
/// [a; b]
inline vector joined(vector a, const vector& b)
{
    a.insert(a.end(), b.begin(), b.end());
    return a;
}
/// Numbers first … first + count - 1.
inline vector slice(const vector& x, std::size_t first, std::size_t count)
{
    const auto begin = x.begin() + static_cast<std::ptrdiff_t>(first);
    return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}
/// The columns first … first + count - 1.
inline tensor columns(const tensor& W, std::size_t first, std::size_t count)
{
    tensor part{{W.rows(), count}, {}};
    for (std::size_t i = 0; i < W.rows(); ++i) {
        for (std::size_t j = first; j < first + count; ++j) part.numbers.push_back(W(i, j));
    }
    return part;
}
inline vector softmax(const vector& x)
{
    vector y(x.size());
    double top = -HUGE_VAL;
    for (const number& each : x) top = std::max(top, each.value);
    number sum;
    for (std::size_t i = 0; i < x.size(); ++i) sum += y[i] = exp(x[i] - top);
    for (number& each : y) each = each / sum;
    return y;
}

/// The number of weights of a position, G.
std::size_t groups(const scope& score);

/// Scores [length][G] of the current step.
matrix scores(const scope& at);

/// Weights [length][G] of the current step, from the scores of it and all steps before.
matrix weights(const scope& at, const std::vector<matrix>& scores);

/// The context of the current step.
vector context(const scope& at, const matrix& weights);

/// Entries of the tables.
std::vector<std::string> score_names();
std::vector<std::string> normalizer_names();
std::vector<std::string> combiner_names();

}  // namespace interpreter
