// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include <heed/core/errors.hpp>

namespace translation {

/// A file's metadata: names and texts.
using metadata = std::map<std::string, std::string>;

inline const std::string& entry(const metadata& from, const std::string& name)
{
    const auto found = from.find(name);
    if (found == from.end()) throw heed::error("not what `translate train` writes: its metadata have no " + name);
    return found->second;
}

inline std::string text_of(const std::string& value) { return value; }
inline std::string text_of(std::uint64_t value) { return std::to_string(value); }
inline std::string text_of(double value) { return fmt::format("{:.17g}", value); }

/// The inverse of text_of; numbers must be finite and not negative. Throws heed::error for anything else.
inline void read_entry(const metadata& from, const std::string& name, std::string& to) { to = entry(from, name); }
template <class Number>
void read_entry(const metadata& from, const std::string& name, Number& to)
{
    const std::string& text = entry(from, name);
    const char* const end = text.data() + text.size();
    const auto [stop, failure] = std::from_chars(text.data(), end, to);
    bool good = failure == std::errc{} && stop == end;
    if constexpr (std::is_floating_point_v<Number>) good = good && std::isfinite(to) && to >= 0;
    if (!good) throw heed::error(name + " is \"" + text + "\" in its metadata, which is no such number");
}

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

    void write(metadata& to) const
    {
        each(*this, [&](const char* name, const auto& value) { to["options." + std::string(name)] = text_of(value); });
    }

    static options read(const metadata& from)
    {
        options result;
        each(result, [&](const char* name, auto& value) { read_entry(from, "options." + std::string(name), value); });
        return result;
    }
};

}  // namespace translation
