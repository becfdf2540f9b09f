// SPDX-License-Identifier: BSD-3-Clause

#include "twin.hpp"

#include <cstdint>
#include <cstdio>
#include <utility>

namespace twins {

namespace {

void append(std::string& to, const numbers& x)
{
    to += "\"" + x.name + "\": {\"shape\": [";
    for (std::size_t i = 0; i < x.shape.size(); ++i) to += (i == 0 ? "" : ", ") + std::to_string(x.shape[i]);
    to += "], \"values\": [";
    for (std::size_t i = 0; i < x.values.size(); ++i) {
        char text[40];
        std::snprintf(text, sizeof text, "%s%.17g", i == 0 ? "" : ", ", x.values[i]);
        to += text;
    }
    to += "]}";
}

std::string group(const std::string& name, const std::deque<numbers>& all)
{
    std::string made = "\"" + name + "\": {";
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (i > 0) made += ",\n";
        append(made, all[i]);
    }
    return made + "}";
}

/// Numbers of one name become one tensor, [steps, ...].
std::deque<numbers> joined(const std::deque<numbers>& all)
{
    std::deque<numbers> made;
    std::vector<std::size_t> counts;
    for (const numbers& x : all) {
        std::size_t k = 0;
        while (k < made.size() && made[k].name != x.name) ++k;
        if (k == made.size()) {
            made.push_back({x.name, x.shape, {}});
            counts.push_back(0);
        }
        made[k].values.insert(made[k].values.end(), x.values.begin(), x.values.end());
        ++counts[k];
    }
    for (std::size_t k = 0; k < made.size(); ++k) {
        if (counts[k] > 1) made[k].shape.insert(made[k].shape.begin(), counts[k]);
    }
    return made;
}

}  // namespace

void twin::setting(const std::string& name, const lengths& value)
{
    numbers& made = add(settings_, name, {value.batch()});
    for (std::size_t b = 0; b < value.batch(); ++b) made.values.push_back(static_cast<double>(value[b]));
}

numbers& twin::add(std::deque<numbers>& to, const std::string& name, std::vector<std::size_t> shape)
{
    to.push_back({name, std::move(shape), {}});
    return to.back();
}

void twin::fill(numbers& x, std::size_t salt)
{
    std::size_t size = 1;
    for (const std::size_t n : x.shape) size *= n;
    std::uint64_t state = 1000 * ++filled_ + salt;
    for (std::size_t i = 0; i < size; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        x.values.push_back(static_cast<double>((state >> 40) % 129) / 64 - 1);
    }
}

std::string twin::text()
{
    tape_.backward(loss_);
    std::deque<numbers> gradients;
    for (std::size_t i = 0; i < variables_.size(); ++i) {
        const auto d = tape_.gradient(variables_[i]);
        gradients.push_back({inputs_[i].name, inputs_[i].shape, {d.data, d.data + d.size()}});
    }
    return "\"" + name_ + "\": {\n" + group("inputs", inputs_) + ",\n" + group("settings", settings_) + ",\n" +
           group("results", joined(results_)) + ",\n" + group("factors", joined(factors_)) + ",\n" +
           group("gradients", gradients) + "}";
}

}  // namespace twins
