// SPDX-License-Identifier: BSD-3-Clause

#include <heed_translator/system.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <heed/train/averaging.hpp>
#include <heed/train/optimizer_state.hpp>

namespace heed::translator {

namespace detail {

/// Adapts a list of parameters to the model of heed's optimizers.
template <class List>
struct listed {
    List all;

    static auto parameters(auto& self, auto&& visit)
    {
        for (auto& each : self.all) visit(each.name, each.numbers);
        return heed::visited{};
    }
};

}  // namespace detail

std::optional<std::string> not_finite(const std::string& name, std::span<const float> numbers)
{
    const auto bad = std::find_if(numbers.begin(), numbers.end(), [](float each) { return !std::isfinite(each); });
    if (bad == numbers.end()) return std::nullopt;
    return "\"" + name + "\"[" + std::to_string(bad - numbers.begin()) + "] is " +
           (std::isnan(*bad) ? "NaN" : "infinite");
}

training_step_input part_of(const training_step_input& whole, std::size_t process, std::size_t of)
{
    const batch& from = whole.examples;
    const std::size_t B = from.source.words.batch, T = from.source.words.steps, S = from.targets.words.steps;
    part_of_lesson part;
    part.sentences.of = B;
    part.target_words = whole.part ? whole.part->target_words : from.target_words;
    for (std::size_t b = 0; b < B; ++b) {
        const bool back = b / of % 2 == 1;
        if ((back ? of - 1 - b % of : b % of) == process)
            part.sentences.sentences.push_back(static_cast<std::uint32_t>(b));
    }
    if (part.sentences.sentences.empty()) {
        part.sentences.sentences.push_back(0);
        part.learns = false;
    }
    const std::vector<std::uint32_t>& which = part.sentences.sentences;
    const std::size_t n = which.size();
    training_step_input mine{{{heed::word_ids(T, n, 0), {}},
                              heed::word_ids(S, n, 0),
                              {heed::word_ids(S, n, 0), std::vector<float>(S * n)},
                              0},
                             whole.only,
                             {},
                             {}};
    std::vector<std::size_t> real(n);
    for (std::size_t k = 0; k < n; ++k) {
        const std::size_t b = which[k];
        real[k] = from.source.real[b];
        if (!whole.links.empty()) mine.links.push_back(whole.links[b]);
        for (std::size_t t = 0; t < T; ++t) mine.examples.source.words(t, k) = from.source.words(t, b);
        for (std::size_t s = 0; s < S; ++s) {
            mine.examples.previous(s, k) = from.previous(s, b);
            mine.examples.targets.words(s, k) = from.targets.words(s, b);
            const float weight = from.targets.weights[s * B + b];
            mine.examples.targets.weights[s * n + k] = weight;
            mine.examples.target_words += weight != 0.0f ? 1 : 0;
        }
    }
    mine.examples.source.real = heed::lengths(std::move(real));
    mine.part = std::move(part);
    return mine;
}

system::system(const options& how)
{
    if (how.optimizer == "sgd") {
        optimizer_.emplace<heed::train::sgd<float>>();
    } else if (how.optimizer == "adadelta") {
        optimizer_.emplace<heed::train::adadelta<float>>();
    } else if (how.optimizer == "adam") {
        const auto betas = parse_betas(how.adam_betas);
        if (!betas)
            throw heed::error("adam-betas is \"" + how.adam_betas +
                              "\"; expected two numbers from 0 to below 1, such as 0.9:0.98");
        optimizer_.emplace<heed::train::adam<float>>(
            heed::kernels::adam_settings{.beta1 = betas->first, .beta2 = betas->second});
    } else {
        throw heed::error("there is no optimizer \"" + how.optimizer + "\"; choose adam, sgd or adadelta");
    }
}

system::step_stats system::train(std::span<training_step_input> together, const options& how,
                                 heed::random_source& random, double rate, gradient_exchange* others)
{
    std::size_t words = 0;
    for (const training_step_input& each : together)
        words += each.part ? each.part->target_words : each.examples.target_words;
    const float weight = 1.0f / static_cast<float>(words);
    double mean = 0;
    detail::listed<variables> lifted;
    for (std::size_t i = 0; i < together.size(); ++i) {
        for (float& each : together[i].examples.targets.weights) {
            if (each != 0.0f) each = weight;
        }
        tape_.clear();
        lifted.all.clear();
        const bool last = i + 1 == together.size();
        const std::optional<part_of_lesson>& part = together[i].part;
        const heed::nn::dropout drop{how.dropout, &random, part ? &part->sentences : nullptr};
        // With several batches, the gradients of the last batch are not yet those of the step: sum_.give adds those of
        // the others.
        gradient_exchange* const told = together.size() == 1 ? others : nullptr;
        mean += static_cast<double>(record(tape_, together[i], how, drop, lifted.all, told));
        if (!last && (!part || part->learns)) sum_.add(lifted, tape_);
    }
    sum_.give(lifted, tape_);
    if (others != nullptr) mean = others->sum(tape_, lifted.all, mean);
    detail::listed<numbers> model{parameters()};
    const double norm = std::visit(
        [&](auto& optimizer) {
            optimizer.settings.rate = rate;
            return optimizer.step(model, lifted, tape_, how.clip);
        },
        optimizer_);
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
    return heed::train::copy_parameters<float>(detail::listed<constant_numbers>{parameters()});
}

void system::set(const std::vector<float>& copied)
{
    detail::listed<numbers> model{parameters()};
    heed::train::set_parameters(copied, model);
}

std::optional<std::string> system::not_finite() const
{
    std::optional<std::string> first;
    const auto look = [&first](const std::string& name, std::span<const float> values) {
        if (!first) first = translator::not_finite(name, values);
    };
    for (const auto& [name, values] : parameters()) look(name, {values.data, values.size()});
    std::visit(
        [&](const auto& optimizer) {
            const std::string rule = optimizer.settings.name;
            for (const auto& each : optimizer.state()) {
                look(rule + ".first." + each.name, each.first);
                look(rule + ".second." + each.name, each.second);
            }
        },
        optimizer_);
    return first;
}

std::size_t system::updates() const
{
    return std::visit([](const auto& optimizer) { return optimizer.steps(); }, optimizer_);
}

void system::put_optimizer(heed::io::archive& to) const
{
    std::visit([&to](const auto& optimizer) { heed::train::put(to, optimizer); }, optimizer_);
}

void system::take_optimizer(const heed::io::archive& from)
{
    const detail::listed<constant_numbers> model{std::as_const(*this).parameters()};
    std::visit([&](auto& optimizer) { heed::train::take(from, optimizer, model); }, optimizer_);
}

}  // namespace heed::translator
