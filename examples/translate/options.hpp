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

/// A file's metadata: names and values.
using metadata = std::map<std::string, std::string>;

inline const std::string& entry(const metadata& from, const std::string& name)
{
    const auto found = from.find(name);
    if (found == from.end()) throw heed::error("not what `translate train` writes: its metadata have no " + name);
    return found->second;
}

/// The formats of a model file's metadata. The first has fewer options.
inline constexpr const char* format_name = "heed.translate/2";
inline constexpr const char* first_format_name = "heed.translate/1";

inline std::string text_of(const std::string& value) { return value; }
inline std::string text_of(bool value) { return value ? "1" : "0"; }
inline std::string text_of(std::uint64_t value) { return std::to_string(value); }
inline std::string text_of(double value) { return fmt::format("{}", value); }  // the shortest that reads back equal

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
    if (!good) throw heed::error(name + " is \"" + text + "\" in its metadata, which is not such a number");
}
inline void read_entry(const metadata& from, const std::string& name, bool& to)
{
    std::size_t number = 0;
    read_entry(from, name, number);
    if (number > 1) throw heed::error(name + " is " + std::to_string(number) + " in its metadata, but must be 0 or 1");
    to = number == 1;
}

/// All options that determine what a run learns. A model file stores them.
struct options {
    std::string attention = "additive";
    std::size_t embedding = 256, hidden = 256, alignment = 256;
    std::size_t batch = 64, epochs = 20, min_count = 1, patience = 5;
    std::uint64_t seed = 1;
    double dropout = 0.2, learning_rate = 1e-3, clip = 1, label_smoothing = 0;
    std::size_t bpe = 0;           // merges; 0: none are learned (but some may be given)
    std::size_t max_length = 0;    // of a training sentence; 0: any
    std::size_t batch_tokens = 0;  // instead of `batch` sentences; 0: unused
    bool bpe_separate = false, reverse_source = false;
    std::string candidates = "all";  // or "K:N": the words in the softmax of training

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
        each_later(self, member);
        member("candidates", self.candidates);
    }
    /// Options that the first format lacks.
    static void each_later(auto& self, auto&& member)
    {
        member("bpe", self.bpe);
        member("bpe-separate", self.bpe_separate);
        member("max-length", self.max_length);
        member("reverse-source", self.reverse_source);
        member("batch-tokens", self.batch_tokens);
    }

    void write(metadata& to) const
    {
        each(*this, [&](const char* name, const auto& value) { to["options." + std::string(name)] = text_of(value); });
    }

    static options read(const metadata& from)
    {
        options result;
        metadata all = from;
        if (entry(from, "format") == first_format_name) {
            each_later(result, [&](const char* name, const auto& value) {
                all["options." + std::string(name)] = text_of(value);
            });
        }
        // The second format at first had none.
        all.emplace("options.candidates", text_of(result.candidates));
        each(result, [&](const char* name, auto& value) { read_entry(all, "options." + std::string(name), value); });
        return result;
    }
};

}  // namespace translation
