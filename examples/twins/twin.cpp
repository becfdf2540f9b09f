// SPDX-License-Identifier: BSD-3-Clause

#include "twin.hpp"

#include <cstdint>
#include <utility>

namespace twins {

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
