// SPDX-License-Identifier: BSD-3-Clause
#include "system.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include <heed/train/averaging.hpp>

namespace translation {

namespace {

/// A list of parameters as heed's optimisers take a model.
template <class List>
struct listed {
    List all;

    static auto parameters(auto& self, auto&& visit)
    {
        for (auto& each : self.all) visit(each.name, each.numbers);
        return heed::visited{};
    }
};

template <class Optimiser>
using rule_of = std::remove_cvref_t<decltype(std::declval<Optimiser>().settings)>;

}  // namespace

std::optional<std::string> not_finite(const std::string& name, std::span<const float> numbers)
{
    const auto bad = std::find_if(numbers.begin(), numbers.end(), [](float each) { return !std::isfinite(each); });
    if (bad == numbers.end()) return std::nullopt;
    return fmt::format("\"{}\"[{}] is {}", name, bad - numbers.begin(), std::isnan(*bad) ? "NaN" : "infinite");
}

system::system(const options& how)
{
    if (how.optimizer == "sgd") {
        optimiser_.emplace<heed::train::sgd<float>>();
    } else if (how.optimizer == "adadelta") {
        optimiser_.emplace<heed::train::adadelta<float>>();
    } else if (how.optimizer == "adam") {
        const auto betas = parse_betas(how.adam_betas);
        if (!betas) throw heed::error("adam-betas is \"" + how.adam_betas + "\", which is not two shares, as 0.9:0.98");
        optimiser_.emplace<heed::train::adam<float>>(
            heed::kernels::adam_settings{.beta1 = betas->first, .beta2 = betas->second});
    } else {
        throw heed::error("there is no optimizer \"" + how.optimizer + "\"; choose adam, sgd or adadelta");
    }
}

system::learned system::train(std::span<lesson> together, const options& how, heed::random_source& random, double rate)
{
    std::size_t words = 0;
    for (const lesson& each : together) words += each.examples.target_words;
    const float weight = 1.0f / static_cast<float>(words);
    const heed::nn::dropout drop{how.dropout, &random};
    double mean = 0;
    listed<variables> lifted;
    for (std::size_t i = 0; i < together.size(); ++i) {
        for (float& each : together[i].examples.targets.weights) {
            if (each != 0.0f) each = weight;
        }
        tape_.clear();
        lifted.all.clear();
        mean += static_cast<double>(record(tape_, together[i], how, drop, lifted.all));
        if (i + 1 < together.size()) sum_.add(lifted, tape_);
    }
    sum_.give(lifted, tape_);
    listed<numbers> model{parameters()};
    const double norm = std::visit(
        [&](auto& optimiser) {
            optimiser.settings.rate = rate;
            return optimiser.step(model, lifted, tape_, how.clip);
        },
        optimiser_);
    return {mean * static_cast<double>(words), norm};
}

std::size_t system::parameter_count() const
{
    std::size_t count = 0;
    for (const auto& each : parameters()) count += each.numbers.size();
    return count;
}

std::vector<float> system::copy() const
{
    return heed::train::copy_parameters<float>(listed<constant_numbers>{parameters()});
}

void system::set(const std::vector<float>& copied)
{
    listed<numbers> model{parameters()};
    heed::train::set_parameters(copied, model);
}

std::optional<std::string> system::not_finite() const
{
    std::optional<std::string> first;
    const auto look = [&first](const std::string& name, std::span<const float> values) {
        if (!first) first = translation::not_finite(name, values);
    };
    for (const auto& [name, values] : parameters()) look(name, {values.data, values.size()});
    std::visit(
        [&](const auto& optimiser) {
            const std::string rule = optimiser.settings.name;
            for (const auto& each : optimiser.state()) {
                look(rule + ".first." + each.name, each.first);
                look(rule + ".second." + each.name, each.second);
            }
        },
        optimiser_);
    return first;
}

std::size_t system::updates() const
{
    return std::visit([](const auto& optimiser) { return optimiser.steps(); }, optimiser_);
}

void system::put_optimiser(heed::io::archive& to) const
{
    std::visit(
        [&to](const auto& optimiser) {
            using rule = rule_of<decltype(optimiser)>;
            const std::string name = rule::name;
            to.metadata[name + ".steps"] = std::to_string(optimiser.steps());
            const auto put = [&](const char* which, const std::string& parameter, const std::vector<float>& values) {
                to.tensors.push_back(heed::io::tensor_entry::of(name + which + parameter, {values.size()}, values));
            };
            for (const auto& m : optimiser.state()) {
                if (rule::moments > 0) put(".first.", m.name, m.first);
                if (rule::moments > 1) put(".second.", m.name, m.second);
            }
        },
        optimiser_);
}

void system::take_optimiser(const heed::io::archive& from)
{
    std::visit(
        [&](auto& optimiser) {
            using optimiser_type = std::remove_cvref_t<decltype(optimiser)>;
            using rule = rule_of<optimiser_type>;
            const std::string name = rule::name;
            std::size_t steps = 0;
            read_entry(from.metadata, name + ".steps", steps);
            std::vector<typename optimiser_type::moments> state;
            for (const auto& [parameter, values] : parameters()) {
                const auto moments = [&, &parameter = parameter, &values = values](const char* which) {
                    const heed::io::tensor_entry& stored = from.at(name + which + parameter);
                    if (stored.size() != values.size())
                        throw heed::error("\"" + stored.name +
                                          "\" has not as many numbers as the parameter it belongs to");
                    return stored.template values<float>();
                };
                if (steps == 0) continue;
                state.push_back({parameter, {}, {}});
                if (rule::moments > 0) state.back().first = moments(".first.");
                if (rule::moments > 1) state.back().second = moments(".second.");
            }
            optimiser.restore(steps, std::move(state));
        },
        optimiser_);
}

}  // namespace translation
