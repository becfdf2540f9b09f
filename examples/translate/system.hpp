// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <heed/ad/ad.hpp>
#include <heed/io/weights.hpp>
#include <heed/seq2seq/decoding.hpp>
#include <heed/seq2seq/packed.hpp>
#include <heed/seq2seq/translator.hpp>
#include <heed/train/adam.hpp>

#include "options.hpp"

namespace translation {

using batch = heed::seq2seq::training_batch<float>;

/// Describes the first number that is not finite: "decoder.b"[3] is NaN. Nothing if all are finite.
inline std::optional<std::string> not_finite(const std::string& name, std::span<const float> numbers)
{
    const auto bad = std::find_if(numbers.begin(), numbers.end(), [](float each) { return !std::isfinite(each); });
    if (bad == numbers.end()) return std::nullopt;
    return fmt::format("\"{}\"[{}] is {}", name, bad - numbers.begin(), std::isnan(*bad) ? "NaN" : "infinite");
}

/// heed's models are types, put together at compile time. A program that chooses by a command-line option needs one
/// type for all of them: this one. What is virtual here is called once per batch.
class system {
public:
    virtual ~system() = default;

    struct learned {
        double loss;           // Σ −log p, in nats
        double gradient_norm;  // before clipping, of the mean loss per word
    };
    /// One step of training. `only`: the softmax runs over these words, which include the references'; null: over all.
    virtual learned train(batch& examples, const options& how, heed::random_source& random, double rate,
                          const std::vector<std::uint32_t>* only) = 0;

    /// Σ −log p(target | source), in nats, without dropout.
    virtual double loss(const batch& examples) const = 0;

    /// Starts decoding these sentences, for a search. The system must not move meanwhile.
    virtual std::unique_ptr<heed::seq2seq::decoding<float>>
    decode(const heed::seq2seq::source_batch& sentences) const = 0;

    /// The weights while it is led through a translation, if it has a weight per dimension: [words + 1][source words +
    /// 1, dimensions], end words included. Otherwise empty.
    virtual std::vector<std::vector<float>> look_by_dimension(const heed::seq2seq::id_sentence& source,
                                                              const heed::seq2seq::id_sentence& target) const = 0;

    virtual std::size_t parameters() const = 0;
    /// The first number that is not finite, in a parameter or in the optimiser's state, as described by not_finite().
    virtual std::optional<std::string> not_finite() const = 0;
    /// Steps of training so far.
    virtual std::size_t updates() const = 0;
    virtual void put(heed::io::archive& to) const = 0;
    virtual void take(const heed::io::archive& from) = 0;
    virtual void put_optimiser(heed::io::archive& to) const = 0;
    virtual void take_optimiser(const heed::io::archive& from) = 0;
};

template <class Model>
class system_of final : public system {
public:
    explicit system_of(Model model) : model_(std::move(model)) {}

    learned train(batch& examples, const options& how, heed::random_source& random, double rate,
                  const std::vector<std::uint32_t>* only) override
    {
        const float each = 1.0f / static_cast<float>(examples.target_words);
        for (float& weight : examples.targets.weights) {
            if (weight != 0.0f) weight = each;
        }
        packed_.reset();
        tape_.clear();
        const auto lifted = heed::ad::lift(tape_, model_);
        const heed::nn::dropout drop{how.dropout, &random};
        const auto loss = lifted.loss(examples, static_cast<float>(how.label_smoothing), drop, only);
        tape_.backward(loss);
        optimiser_.settings.rate = rate;
        const double norm = optimiser_.step(model_, lifted, tape_, how.clip);
        return {static_cast<double>(loss.data()[0]) * static_cast<double>(examples.target_words), norm};
    }

    double loss(const batch& examples) const override { return static_cast<double>(model_.loss(examples).data()[0]); }

    std::unique_ptr<heed::seq2seq::decoding<float>> decode(const heed::seq2seq::source_batch& sentences) const override
    {
        if (!packed_) packed_.emplace(model_);  // once for all batches
        return heed::seq2seq::decode<float>(*packed_, sentences);
    }

    std::vector<std::vector<float>> look_by_dimension(const heed::seq2seq::id_sentence& source,
                                                      const heed::seq2seq::id_sentence& target) const override
    {
        std::vector<std::vector<float>> rows;
        if constexpr (has_dimensions) {
            const heed::seq2seq::special_ids special;
            const auto one = heed::seq2seq::make_source(std::vector<const heed::seq2seq::id_sentence*>{&source});
            const auto start = model_.open(one);
            auto state = start.state;
            for (std::size_t i = 0; i <= target.size(); ++i) {
                const heed::word_ids previous(1, 1, i == 0 ? special.begin : target[i - 1]);
                auto next = model_.advance(start.memory, state, previous);
                const auto weights = heed::view_of(next.seen.weights);  // [1,T,D]
                rows.emplace_back(weights.data, weights.data + weights.size());
                state = std::move(next.state);
            }
        }
        return rows;
    }

    std::size_t parameters() const override { return heed::parameter_count(model_); }
    std::optional<std::string> not_finite() const override
    {
        std::optional<std::string> first;
        heed::for_each_parameter(model_, [&first](const std::string& name, const auto& x) {
            const auto values = heed::view_of(x);
            if (!first) first = translation::not_finite(name, {values.data, values.size()});
        });
        for (const auto& each : optimiser_.state()) {
            if (!first) first = translation::not_finite("adam.first." + each.name, each.first);
            if (!first) first = translation::not_finite("adam.second." + each.name, each.second);
        }
        return first;
    }
    std::size_t updates() const override { return optimiser_.steps(); }
    void put(heed::io::archive& to) const override { heed::io::put(to, model_); }
    void take(const heed::io::archive& from) override
    {
        packed_.reset();
        heed::io::take(from, model_);
    }

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
        std::vector<heed::train::adam<float>::moments> state;
        for (const auto& [name, numbers] : heed::numbers_of<float>(model_)) {
            const auto moments = [&from, &name = name, &numbers = numbers](const std::string& which) {
                const heed::io::tensor_entry& stored = from.at("adam." + which + "." + name);
                if (stored.size() != numbers.size())
                    throw heed::error("\"" + stored.name + "\" has not as many numbers as the parameter it belongs to");
                return stored.template values<float>();
            };
            if (steps > 0) state.push_back({name, moments("first"), moments("second")});
        }
        optimiser_.restore(steps, std::move(state));
    }

private:
    /// Whether the context is a sum with a weight per dimension (heed::combine::elementwise_sum).
    static constexpr bool has_dimensions = requires(const Model& model)
    {
        requires std::is_same_v<std::remove_cvref_t<decltype(model.decoder.attention.combine)>,
                                heed::combine::elementwise_sum>;
    };

    Model model_;
    mutable std::optional<heed::seq2seq::packed<float, Model>> packed_;  // the model laid out for searching
    heed::ad::tape<float> tape_;
    heed::train::adam<float> optimiser_;
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
