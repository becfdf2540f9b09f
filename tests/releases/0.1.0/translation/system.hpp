// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/io/weights.hpp>
#include <heed/nn/adam.hpp>
#include <heed/seq2seq/greedy.hpp>
#include <heed/seq2seq/translator.hpp>

#include "options.hpp"

namespace translation {

using batch = heed::seq2seq::training_batch<float>;

/// heed's models are types, put together at compile time. A program that chooses by a command-line option needs one
/// type for all of them: this one. What is virtual here is called once a batch.
class system {
public:
    virtual ~system() = default;

    struct learned {
        double loss;           // Σ −log p, in nats
        double gradient_norm;  // before clipping, of the mean loss a word
    };
    /// One step of training.
    virtual learned train(batch& examples, const options& how, heed::random_source& random, double rate) = 0;

    /// Σ −log p(target | source), in nats, without dropout.
    virtual double loss(const batch& examples) const = 0;

    virtual std::vector<heed::seq2seq::translation<float>> translate(const heed::seq2seq::source_batch& sentences,
                                                                     bool with_weights) const = 0;

    virtual std::size_t parameters() const = 0;
    virtual void put(heed::io::archive& to) const = 0;
    virtual void take(const heed::io::archive& from) = 0;
    virtual void put_optimiser(heed::io::archive& to) const = 0;
    virtual void take_optimiser(const heed::io::archive& from) = 0;
};

template <class Model>
class system_of final : public system {
public:
    explicit system_of(Model model) : model_(std::move(model)) {}

    learned train(batch& examples, const options& how, heed::random_source& random, double rate) override
    {
        const float each = 1.0f / static_cast<float>(examples.target_words);
        for (float& weight : examples.targets.weights) {
            if (weight != 0.0f) weight = each;
        }
        tape_.clear();
        const auto lifted = heed::ad::lift(tape_, model_);
        const heed::nn::dropout drop{how.dropout, &random};
        const auto loss = lifted.loss(examples, static_cast<float>(how.label_smoothing), drop);
        tape_.backward(loss);
        optimiser_.settings.rate = rate;
        const double norm = optimiser_.step(model_, lifted, tape_, how.clip);
        return {static_cast<double>(loss.data()[0]) * static_cast<double>(examples.target_words), norm};
    }

    double loss(const batch& examples) const override { return static_cast<double>(model_.loss(examples).data()[0]); }

    std::vector<heed::seq2seq::translation<float>> translate(const heed::seq2seq::source_batch& sentences,
                                                             bool with_weights) const override
    {
        return heed::seq2seq::greedy<float>(model_, sentences, with_weights);
    }

    std::size_t parameters() const override { return heed::parameter_count(model_); }
    void put(heed::io::archive& to) const override { heed::io::put(to, model_); }
    void take(const heed::io::archive& from) override { heed::io::take(from, model_); }

    void put_optimiser(heed::io::archive& to) const override
    {
        to.metadata["adam.steps"] = std::to_string(optimiser_.steps());
        for (const auto& m : optimiser_.state()) {
            to.tensors.push_back(heed::io::tensor_entry::of("adam.first." + m.name, {m.first.size()}, m.first));
            to.tensors.push_back(heed::io::tensor_entry::of("adam.second." + m.name, {m.second.size()}, m.second));
        }
    }

    void take_optimiser(const heed::io::archive& from) override
    {
        std::size_t steps = 0;
        read_entry(from.metadata, "adam.steps", steps);
        std::vector<heed::nn::adam<float>::moments> state;
        heed::for_each_parameter(model_, [&](const std::string& name, const auto& x) {
            const auto moments = [&](const std::string& which) {
                const heed::io::tensor_entry& stored = from.at("adam." + which + "." + name);
                if (stored.size() != heed::view_of(x).size())
                    throw heed::error("\"" + stored.name + "\" has not as many numbers as the parameter it belongs to");
                return stored.template values<float>();
            };
            if (steps > 0) state.push_back({name, moments("first"), moments("second")});
        });
        optimiser_.restore(steps, std::move(state));
    }

private:
    Model model_;
    heed::ad::tape<float> tape_;
    heed::nn::adam<float> optimiser_;
};

/// A new system with the attention that the options name.
inline std::unique_ptr<system> make_system(const options& how, std::size_t source_words, std::size_t target_words)
{
    namespace attentions = heed::seq2seq::attentions;
    const heed::seq2seq::sizes n{source_words, target_words, how.embedding, how.hidden, how.alignment};
    const auto with = [&](auto attention) -> std::unique_ptr<system> {
        auto model = heed::seq2seq::make_translator<float>(how.seed, n, attention);
        return std::make_unique<system_of<decltype(model)>>(std::move(model));
    };
    if (how.attention == "none") return with(attentions::none<float>{});
    if (how.attention == "additive") return with(attentions::additive<float>{});
    if (how.attention == "additive-y") return with(attentions::additive_with_word<float>{});
    if (how.attention == "per-dimension") return with(attentions::per_dimension<float>{});
    if (how.attention == "temporal") return with(attentions::temporal<float>{});
    throw heed::error("there is no attention \"" + how.attention +
                      "\"; choose none, additive, additive-y, per-dimension or temporal");
}

}  // namespace translation
