// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
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
#include <heed/train/gradient_accumulation.hpp>
#include <heed/train/optimizer.hpp>
#include <heed/train/settings.hpp>

/// Stores optimizers, averages and sums of gradients in safetensors files, one by one, for files with other contents.
/// train/checkpoint.hpp stores a whole training.
namespace heed::inline HEED_TARGET::train {

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
                "\" in its metadata, which is not a valid number");
}

/// "0.001 0.9 0.999 1e-08"
std::string settings_text(const auto& settings)
{
    std::string text;
    each_number(settings, [&](const auto& number) { text += (text.empty() ? "" : " ") + text_of(number); });
    return text;
}

/// The inverse of settings_text. Settings that are missing in the text keep their values.
void read_settings(const std::string& name, std::string_view text, auto& settings)
{
    each_number(settings, [&]<class Number>(Number& number) {
        if (text.empty()) return;
        const std::size_t end = std::min(text.find(' '), text.size());
        number = number_of<Number>(name, text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    });
    if (!text.empty()) throw error(name + " has more numbers than its rule has settings");
}

// ---- writing -------------------------------------------------------------------------------------------------------

inline void add_text(io::archive& to, const std::string& name, std::string value)
{
    if (!to.metadata.emplace(name, std::move(value)).second)
        throw error("two parts are called \"" + name + "\"; rename one");
}

template <class T>
void require_finite(const std::string& name, std::span<const T> numbers, const char* advice = "")
{
    const auto bad = std::find_if(numbers.begin(), numbers.end(), [](T each) { return !std::isfinite(each); });
    if (bad != numbers.end())
        throw error("\"" + name + "\"[" + std::to_string(bad - numbers.begin()) + "] is " +
                    (std::isnan(*bad) ? "NaN" : "infinite") + advice);
}

template <class T>
void add_numbers(io::archive& to, const std::string& name, std::vector<std::size_t> shape, const std::vector<T>& values)
{
    require_finite<T>(name, values);
    to.tensors.push_back(io::tensor_entry::of(name, std::move(shape), values));
}

// ---- reading and checking ------------------------------------------------------------------------------------------

/// One parameter of the model that the state of an optimizer, an average or a sum must fit.
struct parameter_outline {
    std::string name;
    std::size_t size, width;  // of all numbers, and of a row
};

std::vector<parameter_outline> outline_of(const auto& model)
{
    std::vector<parameter_outline> all;
    for_each_parameter(model, [&](const std::string& name, const auto& x) {
        const auto values = view_of(x);
        all.push_back({name, values.size(), values.shape.empty() ? 1 : values.shape.back()});
    });
    return all;
}

inline std::size_t numbers_of(const std::vector<parameter_outline>& model)
{
    std::size_t all = 0;
    for (const parameter_outline& each : model) all += each.size;
    return all;
}

template <class T>
std::vector<T> finite_numbers(const io::tensor_entry& entry)
{
    std::vector<T> numbers = entry.values<T>();
    require_finite<T>(entry.name, numbers,
                      "; the file is damaged, or its training had diverged: use an earlier copy, or restart training");
    return numbers;
}

/// An archive, and the names of everything read from it. Each name may be read once.
struct archive_reader {
    const io::archive& from;
    std::set<std::string> names{};

    void claim(const std::string& name)
    {
        if (!names.insert(name).second) throw error("two parts are called \"" + name + "\"; rename one");
    }

    const std::string& metadata(const std::string& name)
    {
        claim(name);
        const auto found = from.metadata.find(name);
        if (found == from.metadata.end()) throw error("its metadata has no \"" + name + "\"");
        return found->second;
    }

    template <class Number>
    Number number(const std::string& name)
    {
        return number_of<Number>(name, metadata(name));
    }

    /// A tensor of exactly this type: double could hold a float, but training in double would not continue as in float.
    template <class T>
    const io::tensor_entry& tensor(const std::string& name)
    {
        claim(name);
        const io::tensor_entry& entry = from.at(name);
        if (entry.dtype != io::dtype_name<T>)
            throw error("\"" + text::printable(name) + "\" is " + text::printable(entry.dtype) + ", but here " +
                        std::string(io::dtype_name<T>) + "; training must continue in the type in which it began");
        return entry;
    }

    /// `count` finite numbers of this type.
    template <class T>
    std::vector<T> numbers(const std::string& name, std::size_t count)
    {
        const io::tensor_entry& entry = tensor<T>(name);
        if (entry.size() != count)
            throw error("\"" + text::printable(name) + "\" has " + counted(entry.size(), "number") +
                        ", but must have " + std::to_string(count));
        return finite_numbers<T>(entry);
    }
};

/// The name of the optimizer that has its state in a file, or an empty text.
inline std::string optimizer_in(const io::archive& from, const std::string& prefix)
{
    constexpr std::string_view end = ".steps";
    for (const auto& [key, value] : from.metadata) {
        if (!key.starts_with(prefix) || !key.ends_with(end) || key.size() < prefix.size() + end.size()) continue;
        const std::string name = key.substr(prefix.size(), key.size() - prefix.size() - end.size());
        if (name.find('.') == name.npos) return name;
    }
    return "";
}

/// stored(part, from, model, prefix): the part with its state from a file; settings that the file lacks are kept.
template <class T, class Rule>
optimizer<T, Rule> stored(optimizer<T, Rule> to, archive_reader& from, const std::vector<parameter_outline>& model,
                          const std::string& prefix)
{
    const std::string name = prefix + Rule::name;
    if (from.from.metadata.find(name + ".steps") == from.from.metadata.end()) {
        const std::string other = optimizer_in(from.from, prefix);
        if (!other.empty())
            throw error("its optimizer is " + text::printable(other) + ", not " + Rule::name +
                        "; continue with that optimizer, or restart from the weights, which io::take reads");
    }
    const auto steps = from.number<std::size_t>(name + ".steps");
    if (from.from.metadata.contains(name + ".settings"))
        read_settings(name + ".settings", from.metadata(name + ".settings"), to.settings);
    std::vector<typename optimizer<T, Rule>::moments> state;
    if (steps > 0) {
        for (const parameter_outline& each : model) {
            auto& moments = state.emplace_back();
            moments.name = each.name;
            if (Rule::moments > 0) moments.first = from.numbers<T>(name + ".first." + each.name, each.size);
            if (Rule::moments > 1) moments.second = from.numbers<T>(name + ".second." + each.name, each.size);
        }
    }
    to.restore(steps, std::move(state));
    return to;
}

template <class T>
average_of_last<T> stored(average_of_last<T> to, archive_reader& from, const std::vector<parameter_outline>& model,
                          const std::string& prefix)
{
    const auto count = from.number<std::size_t>(prefix + "average.count");
    std::deque<std::vector<T>> all;
    for (std::size_t k = 0; k < count; ++k)
        all.push_back(from.numbers<T>(prefix + "average." + std::to_string(k), detail::numbers_of(model)));
    to.restore(std::move(all));
    return to;
}

template <class T>
moving_average<T> stored(const moving_average<T>&, archive_reader& from, const std::vector<parameter_outline>& model,
                         const std::string& prefix)
{
    const std::string name = prefix + "moving_average";
    moving_average<T> all(from.number<double>(name + ".decay"));
    const auto count = from.number<std::size_t>(name + ".count");
    if (count > 0) all.restore(count, from.numbers<double>(name, detail::numbers_of(model)));
    return all;
}

template <class T>
accumulated_gradients<T> stored(const accumulated_gradients<T>&, archive_reader& from,
                                const std::vector<parameter_outline>& model, const std::string& prefix)
{
    const std::string name = prefix + "accumulated.";
    std::vector<typename accumulated_gradients<T>::gradient> state;
    if (from.number<bool>(name + "begun")) {
        for (const parameter_outline& each : model) {
            auto& one = state.emplace_back();
            one.name = each.name;
            one.size = each.size;
            const std::string all = name + "all." + each.name, ids = name + "ids." + each.name;
            if (from.from.find(all) != nullptr) {
                one.all = from.numbers<T>(all, each.size);
            } else if (from.from.find(ids) != nullptr) {
                one.ids = from.tensor<std::uint32_t>(ids).template values<std::uint32_t>();
                one.width = each.width;
                one.rows = from.numbers<T>(name + "rows." + each.name, one.ids.size() * each.width);
            }
        }
    }
    accumulated_gradients<T> sum;
    sum.restore(std::move(state));  // checks the state
    return sum;
}

/// The type that `stored` returns for a part, which may be a derived class.
template <class Part>
using stored_type = decltype(detail::stored(std::declval<const Part&>(), std::declval<archive_reader&>(), {}, {}));

}  // namespace detail

/// Adds the state of an optimizer, an average or a sum of gradients to an archive; see `take`. Throws heed::error if a
/// number is not finite, or if the archive has a part of this name.
template <class T, class Rule>
void put(io::archive& to, const optimizer<T, Rule>& from, const std::string& prefix = {})
{
    const std::string name = prefix + Rule::name;
    detail::add_text(to, name + ".steps", detail::text_of(from.steps()));
    detail::add_text(to, name + ".settings", detail::settings_text(from.settings));
    if (from.steps() == 0) return;  // its moments are zeros
    for (const auto& [of, first, second] : from.state()) {
        if (Rule::moments > 0) detail::add_numbers(to, name + ".first." + of, {first.size()}, first);
        if (Rule::moments > 1) detail::add_numbers(to, name + ".second." + of, {second.size()}, second);
    }
}

template <class T>
void put(io::archive& to, const average_of_last<T>& from, const std::string& prefix = {})
{
    detail::add_text(to, prefix + "average.count", detail::text_of(from.size()));
    for (std::size_t k = 0; k < from.size(); ++k)
        detail::add_numbers(to, prefix + "average." + std::to_string(k), {from.state()[k].size()}, from.state()[k]);
}

template <class T>
void put(io::archive& to, const moving_average<T>& from, const std::string& prefix = {})
{
    const std::string name = prefix + "moving_average";
    detail::add_text(to, name + ".decay", detail::text_of(from.decay()));
    detail::add_text(to, name + ".count", detail::text_of(from.size()));
    if (from.size() > 0) detail::add_numbers(to, name, {from.state().size()}, from.state());
}

template <class T>
void put(io::archive& to, const accumulated_gradients<T>& from, const std::string& prefix = {})
{
    const std::string name = prefix + "accumulated.";
    detail::add_text(to, name + "begun", detail::text_of(!from.state().empty()));
    for (const auto& each : from.state()) {
        if (!each.all.empty()) detail::add_numbers(to, name + "all." + each.name, {each.size}, each.all);
        if (each.ids.empty()) continue;
        to.tensors.push_back(io::tensor_entry::of(name + "ids." + each.name, {each.ids.size()}, each.ids));
        detail::add_numbers(to, name + "rows." + each.name, {each.ids.size(), each.width}, each.rows);
    }
}

/// Restores the state of this model's optimizer, average or sum of gradients; settings that the archive lacks are kept.
/// If the state is another optimizer's, is missing or does not fit the model, throws heed::error and changes nothing.
template <class Part, parameterized M>
void take(const io::archive& from, Part& to, const M& model, const std::string& prefix = {})
{
    detail::archive_reader reader{from};
    static_cast<detail::stored_type<Part>&>(to) = detail::stored(to, reader, detail::outline_of(model), prefix);
}

}  // namespace heed::inline HEED_TARGET::train
