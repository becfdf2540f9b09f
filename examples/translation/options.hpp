// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <heed/core/errors.hpp>

namespace translation {

/// Everything that decides what a run learns. A model file carries it all.
struct options {
    std::string attention = "additive";
    std::size_t embedding = 256, hidden = 256, alignment = 256;
    std::size_t batch = 64, epochs = 20, min_count = 1, patience = 5;
    std::uint64_t seed = 1;
    double dropout = 0.2, learning_rate = 1e-3, clip = 1, label_smoothing = 0;

    static const std::vector<std::string>& attentions()
    {
        static const std::vector<std::string> names{"none", "additive", "additive-y", "per-dimension", "temporal"};
        return names;
    }

    /// member(name, value) for each, in a fixed order.
    static void each(auto& self, auto&& member)
    {
        member("attention", self.attention);
        member("embedding", self.embedding);
        member("hidden", self.hidden);
        member("alignment", self.alignment);
        member("batch", self.batch);
        member("epochs", self.epochs);
        member("min-count", self.min_count);
        member("patience", self.patience);
        member("seed", self.seed);
        member("dropout", self.dropout);
        member("learning-rate", self.learning_rate);
        member("clip", self.clip);
        member("label-smoothing", self.label_smoothing);
    }

    static std::string text(const std::string& value) { return value; }
    static std::string text(std::uint64_t value) { return std::to_string(value); }
    static std::string text(double value)
    {
        char digits[32];
        std::snprintf(digits, sizeof digits, "%.17g", value);
        return digits;
    }

    void write(std::map<std::string, std::string>& metadata) const
    {
        each(*this,
             [&](const char* name, const auto& value) { metadata["options." + std::string(name)] = text(value); });
    }

    static options read(const std::map<std::string, std::string>& metadata, const std::string& where)
    {
        options result;
        each(result, [&](const char* name, auto& value) {
            const auto found = metadata.find("options." + std::string(name));
            if (found == metadata.end()) {
                throw heed::error(where + ": no option \"" + name +
                                  "\" in the file; it is not a model of this program");
            }
            parse(found->second, value, where + ": option " + name);
        });
        return result;
    }

private:
    static void parse(const std::string& from, std::string& to, const std::string&) { to = from; }
    template <class Number>
    static void parse(const std::string& from, Number& to, const std::string& where)
    {
        std::size_t used = 0;
        try {
            if constexpr (std::is_same_v<Number, double>) {
                to = std::stod(from, &used);
            } else {
                to = std::stoull(from, &used);
            }
        } catch (const std::exception&) {
            used = 0;
        }
        if (used != from.size() || from.empty() || from.front() == '-') {
            throw heed::error(where + " is \"" + from + "\" but must be a number");
        }
    }
};

}  // namespace translation
