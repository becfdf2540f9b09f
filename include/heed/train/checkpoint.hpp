// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/errors.hpp>
#include <heed/core/parameters.hpp>
#include <heed/core/random.hpp>
#include <heed/io/safetensors.hpp>
#include <heed/io/weights.hpp>
#include <heed/train/optimizer_state.hpp>

/// Checkpoints: a training run that is stopped at any point resumes with identical bits, given the same number of
/// threads.
///
///     train::position at;                                       // epoch, batch, random numbers
///     if (std::filesystem::exists(path)) train::load_checkpoint(path, model, optimizer, at);
///     for (; at.epoch < 20; ++at.epoch) {
///         …
///         train::save_checkpoint(path, model, optimizer, at);
///     }
///
/// A checkpoint is a safetensors file, written by io::atomic_file. Tensors have the names of io::put, so that
/// `io::take(io::load(path), model)` reads only the weights, or "adam.first.W"; numbers are metadata, such as
/// "training.epoch".
///
/// Pass the parts of a checkpoint, in any number, to both functions in the same order:
///
/// | part | contents |
/// |---|---|
/// | a module (anything with `parameters`), of float or double | its parameters |
/// | optimizer: adam, sgd and the others, or a custom rule | moments, steps, and numeric settings such as the rate |
/// | average_of_last, moving_average, accumulated_gradients | their complete state |
/// | random_source, position | their complete state |
/// | your struct with `static void each(auto& self, auto&& member)` | member("name", self.name) for each member |
/// | named("epoch", epoch) | a number, a text, a random_source or a vector of numbers with this name |
/// | named("critic", critic, critic_optimizer) | parts with a prefix, such as a second model |
///
/// An optimizer, an average or a sum of gradients belongs to the last model before it.
namespace heed::inline HEED_TARGET::train {

/// The progress of a training run, in addition to its model and optimizer.
struct position {
    std::size_t epoch = 0, batch = 0;  ///< the next to process; a shuffle by seed and epoch repeats its batches
    random_source random{};            ///< of dropout

    /// Lists its members for save_checkpoint and load_checkpoint.
    static void each(auto& self, auto&& member)
    {
        member("epoch", self.epoch);
        member("batch", self.batch);
        member("random", self.random);
    }
};

/// Parts of a checkpoint with a name or prefix: see named().
template <class... Parts>
struct named_parts {
    std::string name;
    std::tuple<Parts&...> parts;
};

/// A number, text or other value with this name, or a model and its optimizer or averages with this prefix.
template <class... Parts>
named_parts<Parts...> named(std::string name, Parts&... parts)
{
    return {std::move(name), {parts...}};
}

namespace detail {

inline constexpr std::string_view checkpoint_format = "heed.checkpoint/1";

struct any_member {
    void operator()(std::string_view, auto&) const {}
};

/// A type that lists its members: `static void each(auto& self, auto&& member)`.
template <class X>
concept with_members = requires(X& x)
{
    std::remove_const_t<X>::each(x, any_member{});
};

template <class X>
inline constexpr bool is_number_list = false;
template <io::storable T>
inline constexpr bool is_number_list<std::vector<T>> = !std::same_as<T, bool>;

/// The types that metadata or one tensor can hold.
template <class X>
concept plain_value =
    std::is_arithmetic_v<X> || std::same_as<X, std::string> || std::same_as<X, random_source> || is_number_list<X>;

/// Passes parts to a writer or a reader: modules, types that put() of heed/train accepts, and values.
template <class Use>
struct each_part {
    Use& use;
    std::string prefix{};
    std::vector<parameter_outline> model{};  // the last model

    template <class P>
    void operator()(P& part)
    {
        static_assert(Use::writes || !std::is_const_v<P>,
                      "heed: a checkpoint is loaded into a part, which must not be const");
        if constexpr (parameterized<P>) {
            use.weights(part, prefix);
            model = outline_of(part);
        } else if constexpr (requires { use.state(part, model, prefix); }) {
            use.state(part, model, prefix);
        } else if constexpr (requires { part.parts; }) {
            std::apply([&](auto&... each) { named(part.name, each...); }, part.parts);
        } else if constexpr (plain_value<std::remove_const_t<P>>) {
            static_assert(std::same_as<std::remove_const_t<P>, random_source>,
                          "heed: a number needs a name in a checkpoint: train::named(\"epoch\", epoch)");
            named("random", part);
        } else {
            static_assert(with_members<P>, "heed: a part of a checkpoint is a module, something of heed/train, "
                                           "train::named(\"name\", …), or a struct with `static void each(auto& self, "
                                           "auto&& member)`, which lists its members one by one");
            P::each(part, [this](std::string_view name, auto& x) { this->named(std::string(name), x); });
        }
    }

private:
    template <class... Parts>
    void named(const std::string& name, Parts&... parts)
    {
        if constexpr (sizeof...(Parts) == 1 && (plain_value<std::remove_const_t<Parts>> && ...)) {
            (use.value(prefix + "training." + name, parts), ...);
        } else {
            each_part inner{use, prefix + name + "."};
            (inner(parts), ...);
        }
    }
};

/// Adds parts to an archive.
struct checkpoint_writer {
    io::archive& to;

    static constexpr bool writes = true;

    void weights(const auto& part, const std::string& prefix) const
    {
        for_each_parameter(part, [&](const std::string& name, const auto& x) {
            const auto values = view_of(x);
            require_finite(prefix + name, std::span<const element_of<decltype(x)>>(values.data, values.size()));
        });
        io::put(to, part, prefix);
    }

    template <class P>
        requires requires(io::archive& all, const P& part) { train::put(all, part, ""); }
    void state(const P& part, const auto&, const std::string& prefix) const { train::put(to, part, prefix); }

    template <class X>
    void value(const std::string& path, const X& x) const
    {
        if constexpr (is_number_list<X>) {
            to.tensors.push_back(io::tensor_entry::of(path, {x.size()}, x));
        } else if constexpr (std::same_as<X, random_source>) {
            add_text(to, path + ".seed", text_of(x.seed));
            add_text(to, path + ".streams", text_of(x.streams));
        } else if constexpr (std::same_as<X, std::string>) {
            add_text(to, path, x);
        } else {
            add_text(to, path, text_of(x));
        }
    }
};

/// Reads and checks parts; applies changes only after all parts are valid.
struct checkpoint_reader {
    archive_reader from;
    std::vector<std::function<void()>> changes{};  // to the parts

    static constexpr bool writes = false;

    void weights(auto& part, const std::string& prefix)
    {
        for_each_parameter(part, [&](const std::string& name, const auto& x) { check(prefix + name, x); });
        changes.push_back([all = io::detail::fitting_tensors(from.from, part, prefix)] {
            for (const auto& each : all) each();
        });
    }

    template <class P, class Stored = stored_type<P>>
    void state(P& part, const std::vector<parameter_outline>& model, const std::string& prefix)
    {
        if (model.empty())
            throw error("an optimizer, an average or a sum of gradients has no model before it among the parts of the "
                        "checkpoint");
        set<Stored>(part, detail::stored(part, from, model, prefix));
    }

    template <class X>
    void value(const std::string& path, X& x)
    {
        if constexpr (is_number_list<X>) {
            using T = typename X::value_type;
            set<X>(x, from.tensor<T>(path).template values<T>());
        } else if constexpr (std::same_as<X, random_source>) {
            const auto seed = from.number<std::uint64_t>(path + ".seed");
            set<X>(x, {seed, from.number<std::uint64_t>(path + ".streams")});
        } else if constexpr (std::same_as<X, std::string>) {
            set<X>(x, from.metadata(path));
        } else {
            set<X>(x, from.number<X>(path));
        }
    }

private:
    void check(const std::string& path, const auto& x)
    {
        using T = element_of<decltype(x)>;
        const auto values = view_of(x);
        const io::tensor_entry& entry = from.tensor<T>(path);
        const std::vector<std::size_t> shape(values.shape.begin(), values.shape.end());
        if (entry.shape != shape)
            throw error("\"" + path + "\" is " + shape_text(entry.shape) + ", but in this model " + shape_text(shape));
        finite_numbers<T>(entry);
    }

    template <class X>
    void set(X& to, X value)
    {
        static_assert(std::is_nothrow_move_assignable_v<X>);  // or an exception could leave parts half changed
        changes.push_back([&to, value = std::move(value)]() mutable { to = std::move(value); });
    }
};

template <class Use>
each_part(Use&) -> each_part<Use>;

}  // namespace detail

/// Writes a checkpoint of these parts. Throws heed::error if a parameter, a moment or a sum is NaN or infinite, because
/// training has diverged, and as io::save if it cannot be written; the previous file is then unchanged. After
/// io::write_failed, such as for a full disk, the training can continue and save again.
void save_checkpoint(const std::filesystem::path& path, const auto&... parts)
{
    io::archive all;
    all.metadata["format"] = detail::checkpoint_format;
    detail::checkpoint_writer writer{all};
    detail::each_part write{writer};
    try {
        (write(parts), ...);
    } catch (const error& problem) {
        throw error(path.string() + ": not written: " + problem.what() + "; the previous file is unchanged");
    }
    io::save(path, all);
}

/// Restores parts that save_checkpoint wrote. Throws heed::error "path: reason" if the file cannot be read, is
/// truncated, or has other parts than these, a model of a different shape or type, another optimizer's state, or a
/// number that is NaN or infinite. May throw std::bad_alloc. If it throws, the parts are unchanged.
void load_checkpoint(const std::filesystem::path& path, auto&&... parts)
{
    const io::archive all = io::load(path);
    const auto refuse = [&](const std::string& why) {
        const std::string named = path.string() + ": ";
        throw error(why.starts_with(named) ? why : named + why);
    };
    const auto format = all.metadata.find("format");
    if (format == all.metadata.end() || format->second != detail::checkpoint_format)
        refuse("is not a checkpoint written by train::save_checkpoint" +
               (format == all.metadata.end() ? std::string()
                                             : ": its format is \"" + text::printable(format->second) + "\"") +
               "; use io::load and io::take to read only weights");
    detail::checkpoint_reader reader{{all}};
    detail::each_part read{reader};
    try {
        (read(parts), ...);
    } catch (const error& problem) {
        refuse(problem.what());
    }
    const auto require_claimed = [&](const std::string& name) {
        if (!reader.from.names.contains(name))
            refuse("has \"" + text::printable(name) +
                   "\", which does not belong to any given part; the file is from another model or run");
    };
    for (const io::tensor_entry& each : all.tensors) require_claimed(each.name);
    for (const auto& [name, value] : all.metadata) {
        if (name != "format") require_claimed(name);
    }
    for (const auto& change : reader.changes) change();
}

}  // namespace heed::inline HEED_TARGET::train
