// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include <heed/core/errors.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/parameters.hpp>

namespace heed::inline HEED_TARGET::train {

/// The numbers of all parameters of a module, in the order of for_each_parameter.
template <class T, parameterized M>
std::vector<T> copy_parameters(const M& module)
{
    std::vector<T> numbers;
    for_each_parameter(module, [&](const std::string&, const auto& x) {
        const auto values = view_of(x);
        numbers.insert(numbers.end(), values.data, values.data + values.size());
    });
    return numbers;
}

/// Writes numbers read by copy_parameters. If their number does not fit, throws heed::error and leaves the module
/// unchanged.
template <class T, parameterized M>
void set_parameters(const std::vector<T>& numbers, M& module)
{
    const auto all = numbers_of<T>(module);
    std::size_t count = 0;
    for (const auto& each : all) count += each.numbers.size();
    if (count != numbers.size()) {
        throw error("a module of " + counted(count, "number") + " cannot take " + std::to_string(numbers.size()) +
                    "; they belong to another module");
    }
    const T* from = numbers.data();
    for (const auto& each : all) {
        std::copy_n(from, each.numbers.size(), each.numbers.data);
        from += each.numbers.size();
    }
}

/// The average of the last n snapshots of a model's parameters, such as those at the ends of epochs.
///
///     θ̄ = (θ_1 + … + θ_n) / n          Vaswani et al. 2017, §6.1: the last 5 checkpoints, or the last 20
///
///     train::average_of_last<float> last(5);
///     for (…) { …an epoch… last.add(model); }
///     last.mean(model);
template <class T>
class average_of_last {
public:
    /// The average of the last `most` snapshots. Throws heed::error if it is 0.
    explicit average_of_last(std::size_t most) : most_(most)
    {
        if (most == 0) throw error("the average of the last 0 models is not defined; average at least 1");
    }

    /// Adds a snapshot of a model, or the numbers of copy_parameters; beyond `most` snapshots, drops the oldest. Throws
    /// heed::error for a model of a different size.
    void add(const parameterized auto& model) { add(copy_parameters<T>(model)); }

    void add(std::vector<T> numbers)
    {
        if (!moments_.empty() && numbers.size() != moments_.front().size()) {
            throw error("a model of " + counted(numbers.size(), "number") + " cannot be averaged with one of " +
                        std::to_string(moments_.front().size()) + "; use one average per model");
        }
        moments_.push_back(std::move(numbers));
        if (moments_.size() > most_) moments_.pop_front();
    }

    std::size_t size() const { return moments_.size(); }  // snapshots in the average

    /// Sets a model's parameters to the average, or returns it. Throws heed::error for an empty average or another
    /// model.
    void mean(parameterized auto& into) const { set_parameters(mean(), into); }

    std::vector<T> mean() const
    {
        if (moments_.empty()) throw error("the average of 0 models is not defined; add one first");
        std::vector<T> result(moments_.front().size());
        for (std::size_t i = 0; i < result.size(); ++i) {
            double sum = 0;
            for (const std::vector<T>& each : moments_) sum += static_cast<double>(each[i]);
            result[i] = static_cast<T>(sum / static_cast<double>(moments_.size()));
        }
        return result;
    }

    /// The state for a checkpoint: the numbers of each snapshot, oldest first.
    const std::deque<std::vector<T>>& state() const { return moments_; }

    /// Continues from a checkpoint.
    void restore(std::deque<std::vector<T>> state)
    {
        average_of_last next(most_);
        for (std::vector<T>& each : state) next.add(std::move(each));
        moments_.swap(next.moments_);
    }

private:
    std::size_t most_;
    std::deque<std::vector<T>> moments_;
};

/// An exponential moving average of a model's parameters, updated during training and used for inference.
///
///     θ̄ ← θ_1 at first,  then  θ̄ ← d θ̄ + (1 − d) θ_t             Polyak and Juditsky 1992; Tarvainen and Valpola 2017
///
/// The first model is copied, as in PyTorch's AveragedModel. Stored in double: a float would lose the terms with (1 −
/// d).
///
///     train::moving_average<float> average(0.999);
///     for (…) { …a step… average.add(model); }
///     average.mean(model);
template <class T>
class moving_average {
public:
    /// Throws heed::error unless 0 <= decay < 1.
    explicit moving_average(double decay) : decay_(decay)
    {
        if (!(decay >= 0 && decay < 1)) {
            throw error("a moving average with a decay of " + std::to_string(decay) +
                        " is not defined; use at least 0 and below 1, such as 0.999");
        }
    }

    /// Updates the average with the current model. Throws heed::error if it is another model.
    void add(const parameterized auto& model)
    {
        const std::size_t count = parameter_count(model);
        if (added_ != 0 && count != numbers_.size()) {
            throw error("a model of " + counted(count, "number") + " cannot be averaged with one of " +
                        std::to_string(numbers_.size()) + "; use one average per model");
        }
        numbers_.resize(count);
        const double fresh = added_ == 0 ? 1 : 1 - decay_;
        double* average = numbers_.data();
        for_each_parameter(model, [&](const std::string&, const auto& x) {
            const auto values = view_of(x);
            parallel_for(values.size(), std::size_t{1} << 14, [&](std::size_t begin, std::size_t end, std::size_t) {
                for (std::size_t i = begin; i < end; ++i) {
                    const auto now = static_cast<double>(values.data[i]);
                    average[i] = fresh == 1 ? now : average[i] + fresh * (now - average[i]);
                }
            });
            average += values.size();
        });
        ++added_;
    }

    std::size_t size() const { return added_; }  // number of models added
    double decay() const { return decay_; }      // d

    /// Sets a model's parameters to the average, or returns it. Throws heed::error for an empty average or another
    /// model.
    void mean(parameterized auto& into) const { set_parameters(mean(), into); }

    std::vector<T> mean() const
    {
        if (added_ == 0) throw error("the average of 0 models is not defined; add one first");
        std::vector<T> result(numbers_.size());
        std::transform(numbers_.begin(), numbers_.end(), result.begin(), [](double x) { return static_cast<T>(x); });
        return result;
    }

    /// The state for a checkpoint: the numbers of the average; empty before the first `add`.
    const std::vector<double>& state() const { return numbers_; }

    /// Continues from a checkpoint.
    void restore(std::size_t added, std::vector<double> state)
    {
        added_ = added;
        numbers_ = std::move(state);
    }

private:
    double decay_;
    std::size_t added_ = 0;
    std::vector<double> numbers_;
};

}  // namespace heed::inline HEED_TARGET::train
