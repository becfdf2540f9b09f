// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/core/mask.hpp>
#include <heed/ops/sums.hpp>

#include "numbers.hpp"

/// The sizes of the computations in both languages.
namespace twins {

using heed::array;
using heed::lengths;
using heed::shape_of_rank;

template <std::size_t N>
using variable = heed::ad::var<double, N>;

/// A preset: inputs, results, and the gradient with respect to all inputs of
///
///     ℓ = Σ_r Σ_i c_{r,i} y_{r,i}        y_r the results, c_r constants that differ from number to number
///
/// Inputs are multiples of 1/64 between −1 and 1, scattered by a rule.
class twin {
public:
    explicit twin(const std::string& name) : name_(name) {}

    /// A variable with new numbers.
    template <std::size_t N>
    variable<N> input(const std::string& name, const shape_of_rank<N>& shape)
    {
        numbers& made = add(inputs_, name, {shape.begin(), shape.end()});
        fill(made, 0);
        const auto x = tape_.parameter(heed::tensor_view<const double, N>{made.values.data(), shape});
        variables_.push_back({tape_, x.slot(), {x.size()}});
        return x;
    }

    /// Tensor s of the variable's tensors.
    template <std::size_t N>
    variable<N - 1> part(const variable<N>& whole, std::size_t s)
    {
        shape_of_rank<N - 1> shape;
        for (std::size_t i = 1; i < N; ++i) shape[i - 1] = whole.shape()[i];
        return tape_.piece(whole, s * (whole.size() / whole.shape()[0]), shape);
    }

    /// A result. Results with equal names are consecutive steps.
    template <std::size_t N>
    void result(const std::string& name, const variable<N>& y)
    {
        const auto shape = y.shape();
        numbers& c = add(factors_, name, {shape.begin(), shape.end()});
        fill(c, 7);
        add(results_, name, c.shape).values.assign(y.data(), y.data() + y.size());
        const auto part = heed::ops::dot(y, tape_.constant(heed::tensor_view<const double, N>{c.values.data(), shape}));
        loss_ = results_.size() == 1 ? part : heed::ops::add(loss_, part);
    }

    /// A setting that is not differentiated.
    void setting(const std::string& name, double value) { add(settings_, name, {}).values = {value}; }
    void setting(const std::string& name, const lengths& value);

    /// Everything in JSON, after running backward. Call it once.
    std::string text();

private:
    static numbers& add(std::deque<numbers>& to, const std::string& name, std::vector<std::size_t> shape);
    void fill(numbers& x, std::size_t salt);

    std::string name_;
    heed::ad::tape<double> tape_;
    std::deque<numbers> inputs_, settings_, results_, factors_;
    std::vector<variable<1>> variables_;
    variable<0> loss_;
    std::size_t filled_ = 0;
};

/// Runs a step for each query. Contexts and weights are results.
void ask_in_turn(twin& t, const auto& attend, const auto& memory, std::size_t steps, const auto& query)
{
    auto next = attend.step(memory, query(0), attend.start(memory));
    for (std::size_t s = 0;;) {
        t.result("context", next.context);
        if constexpr (heed::tensor<decltype(next.weights)>) t.result("weights", next.weights);
        if (++s == steps) return;
        next = attend.step(memory, query(s), next.state);
    }
}

}  // namespace twins
