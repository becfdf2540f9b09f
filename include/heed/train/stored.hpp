// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <heed/core/errors.hpp>
#include <heed/core/parameters.hpp>
#include <heed/io/safetensors.hpp>
#include <heed/train/averaging.hpp>
#include <heed/train/optimiser.hpp>
#include <heed/train/settings.hpp>

/// Optimisers and averages in safetensors files, one by one, for files with more in them. train/checkpoint.hpp stores a
/// whole training.
namespace heed::train {

namespace detail {

// ---- numbers as text -----------------------------------------------------------------------------------------------

/// The shortest text that reads back as the same number.
template <class Number>
std::string text_of(Number value)
{
    if constexpr (std::same_as<Number, bool>) {
        return value ? "1" : "0";
    } else {
        char text[64];
        return {text, std::to_chars(text, text + sizeof text, value).ptr};
    }
}

inline const std::string& metadata_entry(const io::archive& from, const std::string& name)
{
    const auto found = from.metadata.find(name);
    if (found == from.metadata.end()) throw error("its metadata have no \"" + name + "\"");
    return found->second;
}

inline void add_text(io::archive& to, const std::string& name, std::string value)
{
    if (!to.metadata.emplace(name, std::move(value)).second)
        throw error("two parts are called \"" + name + "\"; rename one");
}

template <class Number>
Number number_of(const std::string& name, std::string_view text)
{
    if constexpr (std::same_as<Number, bool>) {
        if (text == "0" || text == "1") return text == "1";
    } else {
        Number value{};
        const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (failure == std::errc{} && end == text.data() + text.size()) return value;
    }
    throw error(name + " is \"" + text::printable(std::string(text)) +
                "\" in its metadata, which is not such a number");
}

/// "0.001 0.9 0.999 1e-08"
template <class Settings>
std::string settings_text(const Settings& settings)
{
    std::string text;
    each_number(settings, [&](const auto& number) { text += (text.empty() ? "" : " ") + text_of(number); });
    return text;
}

/// The same backwards. Settings that the text does not have keep their values.
template <class Settings>
void read_settings(const std::string& name, std::string_view text, Settings& settings)
{
    each_number(settings, [&]<class Number>(Number& number) {
        if (text.empty()) return;
        const std::size_t end = std::min(text.find(' '), text.size());
        number = number_of<Number>(name, text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    });
    if (!text.empty()) throw error(name + " has more numbers than its rule has settings");
}

// ---- what is checked -----------------------------------------------------------------------------------------------

/// What the state of an optimiser, of an average or of a sum must fit.
struct parameter_outline {
    std::string name;
    std::size_t size, width;  // of all numbers, and of a row
};

template <class T>
void require_finite(const std::string& name, std::span<const T> numbers, const char* advice = "")
{
    const auto bad = std::find_if(numbers.begin(), numbers.end(), [](T each) { return !std::isfinite(each); });
    if (bad != numbers.end())
        throw error("\"" + name + "\"[" + std::to_string(bad - numbers.begin()) + "] is " +
                    (std::isnan(*bad) ? "NaN" : "infinite") + advice);
}

/// Numbers of exactly this type: a float is a double, but a training in double does not go on as it did in float.
template <class T>
const io::tensor_entry& tensor_of(const io::archive& from, const std::string& name)
{
    const io::tensor_entry& entry = from.at(name);
    if (entry.dtype != io::dtype_name<T>)
        throw error("\"" + text::printable(name) + "\" is " + text::printable(entry.dtype) + ", but here " +
                    std::string(io::dtype_name<T>) + "; a training goes on in the type in which it began");
    return entry;
}

/// As many numbers of this type as the parameter has, all finite.
template <class T>
std::vector<T> numbers_like(const io::archive& from, const std::string& name, std::size_t count)
{
    const io::tensor_entry& entry = tensor_of<T>(from, name);
    if (entry.size() != count)
        throw error("\"" + text::printable(name) + "\" has " + std::to_string(entry.size()) +
                    " numbers, but what it belongs to has " + std::to_string(count));
    std::vector<T> numbers = entry.values<T>();
    require_finite<T>(name, numbers,
                      "; the file is damaged, or its training had diverged: use an earlier copy of it, or train anew");
    return numbers;
}

/// Checks what a file has for a module.
struct checking_look {
    const io::archive& from;
    const std::string& prefix;

    void operator()(const std::string& name, const auto& x) const
    {
        using T = element_of<decltype(x)>;
        const auto values = view_of(x);
        const std::string path = prefix + name;
        const io::tensor_entry& entry = tensor_of<T>(from, path);
        const std::vector<std::size_t> shape(values.shape.begin(), values.shape.end());
        if (entry.shape != shape)
            throw error("\"" + path + "\" is " + shape_text(entry.shape) + ", but in this model " + shape_text(shape));
        numbers_like<T>(from, path, values.size());
    }
};

/// The name of the optimiser that a file has the state of, or nothing.
inline std::string optimiser_in(const io::archive& from, const std::string& prefix)
{
    constexpr std::string_view end = ".steps";
    for (const auto& [key, value] : from.metadata) {
        if (!key.starts_with(prefix) || !key.ends_with(end) || key.size() < prefix.size() + end.size()) continue;
        const std::string name = key.substr(prefix.size(), key.size() - prefix.size() - end.size());
        if (name.find('.') == name.npos) return name;
    }
    return "";
}

template <class M>
std::vector<parameter_outline> outline_of(const M& model)
{
    std::vector<parameter_outline> all;
    for_each_parameter(model, [&](const std::string& name, const auto& x) {
        const auto values = view_of(x);
        all.push_back({name, values.size(), values.shape.empty() ? 1 : values.shape.back()});
    });
    return all;
}

/// An optimiser as it is in a file.
template <class T, class Rule>
optimiser<T, Rule> stored_optimiser(const io::archive& from, optimiser<T, Rule> to,
                                    const std::vector<parameter_outline>& model, const std::string& prefix)
{
    const std::string name = prefix + Rule::name;
    if (from.metadata.find(name + ".steps") == from.metadata.end()) {
        const std::string other = optimiser_in(from, prefix);
        if (!other.empty())
            throw error("its optimiser is " + text::printable(other) + ", not " + Rule::name +
                        "; go on with that one, or start anew from the weights alone, which io::take reads");
    }
    const auto steps = number_of<std::size_t>(name + ".steps", metadata_entry(from, name + ".steps"));
    if (const auto settings = from.metadata.find(name + ".settings"); settings != from.metadata.end())
        read_settings(settings->first, settings->second, to.settings);
    std::vector<typename optimiser<T, Rule>::moments> state;
    if (steps > 0) {
        for (const parameter_outline& each : model) {
            auto& moments = state.emplace_back();
            moments.name = each.name;
            if (Rule::moments > 0) moments.first = numbers_like<T>(from, name + ".first." + each.name, each.size);
            if (Rule::moments > 1) moments.second = numbers_like<T>(from, name + ".second." + each.name, each.size);
        }
    }
    to.restore(steps, std::move(state));
    return to;
}

template <class T>
std::deque<std::vector<T>> stored_moments(const io::archive& from, const std::vector<parameter_outline>& model,
                                          const std::string& prefix)
{
    std::size_t size = 0;
    for (const parameter_outline& each : model) size += each.size;
    const std::string name = prefix + "average.";
    const auto count = number_of<std::size_t>(name + "count", metadata_entry(from, name + "count"));
    std::deque<std::vector<T>> all;
    for (std::size_t k = 0; k < count; ++k) all.push_back(numbers_like<T>(from, name + std::to_string(k), size));
    return all;
}

template <class T>
moving_average<T> stored_moving_average(const io::archive& from, const std::vector<parameter_outline>& model,
                                        const std::string& prefix)
{
    std::size_t size = 0;
    for (const parameter_outline& each : model) size += each.size;
    const std::string name = prefix + "moving_average";
    moving_average<T> all(number_of<double>(name + ".decay", metadata_entry(from, name + ".decay")));
    const auto count = number_of<std::size_t>(name + ".count", metadata_entry(from, name + ".count"));
    if (count > 0) all.restore(count, numbers_like<double>(from, name, size));
    return all;
}

}  // namespace detail

/// Adds an optimiser's state to an archive: what load_checkpoint, or take, restores.
template <class T, class Rule>
void put(io::archive& to, const optimiser<T, Rule>& from, const std::string& prefix = {})
{
    const std::string name = prefix + Rule::name;
    detail::add_text(to, name + ".steps", detail::text_of(from.steps()));
    detail::add_text(to, name + ".settings", detail::settings_text(from.settings));
    if (from.steps() == 0) return;  // its moments are zeros
    const auto tensor = [&](const std::string& path, const std::vector<T>& values) {
        detail::require_finite<T>(path, values);
        to.tensors.push_back(io::tensor_entry::of(path, {values.size()}, values));
    };
    for (const auto& each : from.state()) {
        if (Rule::moments > 0) tensor(name + ".first." + each.name, each.first);
        if (Rule::moments > 1) tensor(name + ".second." + each.name, each.second);
    }
}

/// Restores the state of this model's optimiser; settings that the archive lacks stay. Throws heed::error, and changes
/// nothing, if it is another optimiser's or does not fit the model.
template <class T, class Rule, parameterised M>
void take(const io::archive& from, optimiser<T, Rule>& to, const M& model, const std::string& prefix = {})
{
    to = detail::stored_optimiser(from, to, detail::outline_of(model), prefix);
}

/// Adds the moments of an average to an archive.
template <class T>
void put(io::archive& to, const average_of_last<T>& from, const std::string& prefix = {})
{
    detail::add_text(to, prefix + "average.count", detail::text_of(from.size()));
    for (std::size_t k = 0; k < from.size(); ++k) {
        const std::vector<T>& each = from.state()[k];
        const std::string name = prefix + "average." + std::to_string(k);
        detail::require_finite<T>(name, each);
        to.tensors.push_back(io::tensor_entry::of(name, {each.size()}, each));
    }
}

/// Restores the moments of an average of this model. Throws heed::error, and changes nothing, if they are not such.
template <class T, parameterised M>
void take(const io::archive& from, average_of_last<T>& to, const M& model, const std::string& prefix = {})
{
    to.restore(detail::stored_moments<T>(from, detail::outline_of(model), prefix));
}

/// Adds a moving average to an archive.
template <class T>
void put(io::archive& to, const moving_average<T>& from, const std::string& prefix = {})
{
    const std::string name = prefix + "moving_average";
    detail::add_text(to, name + ".decay", detail::text_of(from.decay()));
    detail::add_text(to, name + ".count", detail::text_of(from.size()));
    if (from.size() == 0) return;
    detail::require_finite<double>(name, from.state());
    to.tensors.push_back(io::tensor_entry::of(name, {from.state().size()}, from.state()));
}

/// Restores a moving average of this model, its decay included. Throws heed::error, and changes nothing, if there is
/// none.
template <class T, parameterised M>
void take(const io::archive& from, moving_average<T>& to, const M& model, const std::string& prefix = {})
{
    to = detail::stored_moving_average<T>(from, detail::outline_of(model), prefix);
}

}  // namespace heed::train
