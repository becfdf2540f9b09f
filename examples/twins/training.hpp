// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/core/mask.hpp>
#include <heed/seq2seq/batch.hpp>
#include <heed/train/adam.hpp>

#include "numbers.hpp"

namespace twins {

/// A step of the course during training, in double: its initial parameters, every batch and its loss, the gradients of
/// the first batch, the final parameters, and the answers of the trained model.
class training {
public:
    explicit training(const std::string& name) : name_(name) {}

    /// The parameters of a model that is not trained here.
    void begins_with(const auto& model) { parameters_ = of(model); }

    /// Trains on the batches as in the step. loss_of(taped model, batch) is the loss, and write(batch) returns the data
    /// of a batch for the other program.
    template <class Model, class Batch>
    void learn(Model& model, const std::vector<Batch>& batches, double rate, const auto& loss_of, const auto& write)
    {
        begins_with(model);
        heed::ad::tape<double> tape;
        heed::train::adam<double> adam({.rate = rate});
        for (const Batch& batch : batches) {
            given_.emplace_back();
            write(batch);
            tape.clear();
            const auto taped = heed::ad::lift(tape, model);
            const auto loss = loss_of(taped, batch);
            tape.backward(loss);
            losses_.push_back(*loss.data());
            adam.step(model, taped, tape, 1.0);
            if (!gradients_.empty()) continue;
            heed::for_each_parameter(taped, [&](const std::string& name, const auto& x) {
                const auto d = tape.gradient(x);
                gradients_.push_back({name, shape(x), {d.data, d.data + d.size()}});
            });
        }
        after_ = of(model);
    }

    /// The data of a batch, or a question.
    void given(const std::string& name, const heed::word_ids& x)  // [S,B]
    {
        given_.back().push_back({name, {x.steps, x.batch}, {x.ids.begin(), x.ids.end()}});
    }
    void given(const std::string& name, const heed::lengths& x)
    {
        numbers& made = given_.back().emplace_back(numbers{name, {x.batch()}, {}});
        for (std::size_t b = 0; b < x.batch(); ++b) made.values.push_back(static_cast<double>(x[b]));
    }
    void given(const heed::seq2seq::source_batch& x)
    {
        given("source", x.words);
        given("lengths", x.real);
    }
    template <class T>
    void given(const heed::seq2seq::training_batch<T>& x)
    {
        given(x.source);
        given("previous", x.previous);
        given("expected", x.targets.words);
        given("expected lengths", x.target_lengths());
    }

    /// Starts a new question to the model; subsequent data belong to it.
    void asks() { given_.emplace_back(); }

    /// The answer of the model. Results with equal names are consecutive steps.
    void result(const std::string& name, const heed::tensor auto& y)
    {
        using namespace heed;
        const auto values = view_of(y);
        results_.push_back({name, shape(y), {values.data, values.data + values.size()}});
    }
    void result(const std::string& name, const std::vector<std::size_t>& of_shape, const std::vector<double>& y)
    {
        results_.push_back({name, of_shape, y});
    }

    /// Everything in JSON.
    std::string text() const
    {
        return "\"" + name_ + "\": {\n" + group("parameters", parameters_) + ",\n" + groups("given", given_) + ",\n" +
               group("gradients", gradients_) + ",\n" + group("after", after_) + ",\n" +
               group("losses", {numbers{"loss", {losses_.size()}, losses_}}) + ",\n" +
               group("results", joined(results_)) + "}";
    }

private:
    static std::vector<std::size_t> shape(const auto& x)
    {
        using namespace heed;
        const auto s = shape_of(x);
        return {s.begin(), s.end()};
    }

    template <class Model>
    static std::deque<numbers> of(const Model& model)
    {
        std::deque<numbers> all;
        heed::for_each_parameter(model, [&](const std::string& name, const auto& x) {
            const auto values = heed::view_of(x);
            all.push_back({name, shape(x), {values.data, values.data + values.size()}});
        });
        return all;
    }

    std::string name_;
    std::vector<std::deque<numbers>> given_;
    std::deque<numbers> parameters_, gradients_, after_, results_;
    std::vector<double> losses_;
};

}  // namespace twins
