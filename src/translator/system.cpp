// SPDX-License-Identifier: BSD-3-Clause

#include <heed_translator/system.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <heed/train/averaging.hpp>
#include <heed/train/stored.hpp>

namespace heed::translator {

namespace detail {

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

}  // namespace detail

std::optional<std::string> not_finite(const std::string& name, std::span<const float> numbers)
{
    const auto bad = std::find_if(numbers.begin(), numbers.end(), [](float each) { return !std::isfinite(each); });
    if (bad == numbers.end()) return std::nullopt;
    return "\"" + name + "\"[" + std::to_string(bad - numbers.begin()) + "] is " +
           (std::isnan(*bad) ? "NaN" : "infinite");
}

lesson part_of(const lesson& whole, std::size_t process, std::size_t of)
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
    lesson mine{{{heed::word_ids(T, n, 0), {}},
                 heed::word_ids(S, n, 0),
                 {heed::word_ids(S, n, 0), std::vector<float>(S * n)},
                 0},
                whole.only,
                {}};
    std::vector<std::size_t> real(n);
    for (std::size_t k = 0; k < n; ++k) {
        const std::size_t b = which[k];
        real[k] = from.source.real[b];
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

system::learned system::train(std::span<lesson> together, const options& how, heed::random_source& random, double rate,
                              exchange* others)
{
    std::size_t words = 0;
    for (const lesson& each : together) words += each.part ? each.part->target_words : each.examples.target_words;
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
        // Of several batches the last one's gradients are not yet those of the step: sum_.give adds the others'.
        exchange* const told = together.size() == 1 ? others : nullptr;
        mean += static_cast<double>(record(tape_, together[i], how, drop, lifted.all, told));
        if (!last && (!part || part->learns)) sum_.add(lifted, tape_);
    }
    sum_.give(lifted, tape_);
    if (others != nullptr) mean = others->sum(tape_, lifted.all, mean);
    detail::listed<numbers> model{parameters()};
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
    std::visit([&to](const auto& optimiser) { heed::train::put(to, optimiser); }, optimiser_);
}

void system::take_optimiser(const heed::io::archive& from)
{
    const detail::listed<constant_numbers> model{std::as_const(*this).parameters()};
    std::visit([&](auto& optimiser) { heed::train::take(from, optimiser, model); }, optimiser_);
}

}  // namespace heed::translator
