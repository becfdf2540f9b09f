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
#include <heed/train/stored.hpp>

/// A training on disk: stopped at any moment, it goes on as if nothing had happened, bit for bit with the same number
/// of threads.
///
///     train::position at;                                       // epoch, batch, random numbers
///     if (std::filesystem::exists(path)) train::load_checkpoint(path, model, optimiser, at);
///     for (; at.epoch < 20; ++at.epoch) {
///         …
///         train::save_checkpoint(path, model, optimiser, at);
///     }
///
/// A checkpoint is a safetensors file. The model's tensors have the names that io::put gives them, so that
/// `io::take(io::load(path), model)` reads the weights alone; the optimiser's are "adam.first.W" and "adam.second.W";
/// numbers are metadata, "training.epoch". The file is written beside the old one and takes its place as a whole (see
/// io::atomic_file): a full disk, a signal or a power failure leaves the old one.
///
/// The parts of a checkpoint, in any number, given to both functions in the same order:
///
/// | part | what is kept |
/// |---|---|
/// | a module (anything with `parameters`), of float or double | its parameters |
/// | optimiser: adam, sgd and the others, your own rule | moments, steps, numbers among its settings, as the rate |
/// | average_of_last, moving_average, accumulated_gradients | all of their state |
/// | random_source, position | all of their numbers |
/// | your own struct with `static void each(auto& self, auto&& member)` | member("name", self.name) for each |
/// | named("epoch", epoch) | a number, a text, a random_source or a vector of numbers by this name |
/// | named("critic", critic, critic_optimiser) | parts under a prefix: a second model |
///
/// An optimiser, an average or a sum of gradients belongs to the last model before it. A learning rate by a schedule
/// (train/rates.hpp) follows from the steps and needs no part of its own.
namespace heed::train {

/// Where a training stands, beside its model and optimiser.
struct position {
    std::size_t epoch = 0, batch = 0;  ///< the next to do; a shuffle by seed and epoch gives the same batches again
    random_source random{};            ///< of dropout

    /// Shows its members to save_checkpoint and load_checkpoint.
    static void each(auto& self, auto&& member)
    {
        member("epoch", self.epoch);
        member("batch", self.batch);
        member("random", self.random);
    }
};

/// Parts of a checkpoint by a name of their own: see named().
template <class... Parts>
struct named_parts {
    std::string name;
    std::tuple<Parts&...> parts;
};

/// A number, text or other value by this name, or a model and what belongs to it under this prefix.
///
///     train::save_checkpoint(path, model, optimiser, train::named("best", best), train::named("critic", critic));
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

/// A type that shows its members: `static void each(auto& self, auto&& member)`.
template <class X>
concept with_members = requires(X& x)
{
    std::remove_const_t<X>::each(x, any_member{});
};

template <class X>
inline constexpr bool is_number_list = false;
template <io::storable T>
inline constexpr bool is_number_list<std::vector<T>> = !std::same_as<T, bool>;

/// What metadata or one tensor can hold.
template <class X>
concept plain_value =
    std::is_arithmetic_v<X> || std::same_as<X, std::string> || std::same_as<X, random_source> || is_number_list<X>;

// ---- all parts together --------------------------------------------------------------------------------------------

/// Adds parts to an archive.
class checkpoint_writer {
public:
    explicit checkpoint_writer(io::archive& to, std::string prefix = {}) : to_(to), prefix_(std::move(prefix)) {}

    template <class P>
    void operator()(const P& part)
    {
        if constexpr (parameterised<P>) {
            for_each_parameter(part, [this](const std::string& name, const auto& x) {
                const auto values = view_of(x);
                require_finite(prefix_ + name, std::span<const element_of<decltype(x)>>(values.data, values.size()));
            });
            io::put(to_, part, prefix_);
        } else if constexpr (requires { train::put(to_, part, prefix_); }) {
            train::put(to_, part, prefix_);
        } else if constexpr (requires { this->known(part); }) {
            known(part);
        } else if constexpr (plain_value<P>) {
            static_assert(std::same_as<P, random_source>,
                          "heed: a number needs a name in a checkpoint: train::named(\"epoch\", epoch)");
            value("random", part);
        } else {
            static_assert(with_members<P>, "heed: a part of a checkpoint is a module, something of heed/train, "
                                           "train::named(\"name\", …), or a struct with `static void each(auto& self, "
                                           "auto&& member)`, which shows its members one by one");
            P::each(part, [this](std::string_view name, const auto& x) { this->value(std::string(name), x); });
        }
    }

private:
    template <class... Parts>
    void known(const named_parts<Parts...>& part)
    {
        std::apply([&](const auto&... each) { named(part.name, each...); }, part.parts);
    }
    void named(const std::string& name, const plain_value auto& x) { value(name, x); }
    void named(const std::string& name, const auto&... parts)
    {
        checkpoint_writer inner(to_, prefix_ + name + ".");
        (inner(parts), ...);
    }

    void value(const std::string& name, const plain_value auto& x)
    {
        using X = std::remove_cvref_t<decltype(x)>;
        const std::string path = prefix_ + "training." + name;
        if constexpr (is_number_list<X>) {
            to_.tensors.push_back(io::tensor_entry::of(path, {x.size()}, x));
        } else if constexpr (std::same_as<X, random_source>) {
            add_text(to_, path + ".seed", text_of(x.seed));
            add_text(to_, path + ".streams", text_of(x.streams));
        } else if constexpr (std::same_as<X, std::string>) {
            add_text(to_, path, x);
        } else {
            add_text(to_, path, text_of(x));
        }
    }

    io::archive& to_;
    std::string prefix_;
};

/// Reads and checks parts; what is read takes its place when all of it has been found good.
class checkpoint_reader {
public:
    using change = std::function<void()>;  // to a part

    checkpoint_reader(archive_reader& from, std::vector<change>& to, std::string prefix = {})
        : from_(from), changes_(to), prefix_(std::move(prefix))
    {}

    template <class P>
    void operator()(P& part)
    {
        static_assert(!std::is_const_v<P>, "heed: a checkpoint is loaded into a part, which must not be const");
        if constexpr (parameterised<P>) {
            for_each_parameter(part, [this](const std::string& name, const auto& x) { check(prefix_ + name, x); });
            model_ = outline_of(part);
            changes_.push_back([all = io::detail::fitting_tensors(from_.from, part, prefix_)] {
                for (const auto& each : all) each();
            });
        } else if constexpr (requires { typename stored_type<P>; }) {
            if (model_.empty())
                throw error("an optimiser, an average or a sum of gradients has no model before it among the parts "
                            "of the checkpoint");
            set<stored_type<P>>(part, detail::stored(part, from_, model_, prefix_));
        } else if constexpr (requires { this->known(part); }) {
            known(part);
        } else if constexpr (plain_value<P>) {
            value("random", part);
        } else {
            P::each(part, [this](std::string_view name, auto& x) { this->value(std::string(name), x); });
        }
    }

private:
    void check(const std::string& path, const auto& x)
    {
        using T = element_of<decltype(x)>;
        const auto values = view_of(x);
        const io::tensor_entry& entry = from_.tensor<T>(path);
        const std::vector<std::size_t> shape(values.shape.begin(), values.shape.end());
        if (entry.shape != shape)
            throw error("\"" + path + "\" is " + shape_text(entry.shape) + ", but in this model " + shape_text(shape));
        finite_numbers<T>(entry);
    }

    template <class... Parts>
    void known(named_parts<Parts...>& part)
    {
        std::apply([&](auto&... each) { named(part.name, each...); }, part.parts);
    }
    void named(const std::string& name, plain_value auto& x) { value(name, x); }
    void named(const std::string& name, auto&... parts)
    {
        checkpoint_reader inner(from_, changes_, prefix_ + name + ".");
        (inner(parts), ...);
    }

    template <plain_value X>
    void value(const std::string& name, X& x)
    {
        const std::string path = prefix_ + "training." + name;
        if constexpr (is_number_list<X>) {
            using T = typename X::value_type;
            set<X>(x, from_.tensor<T>(path).template values<T>());
        } else if constexpr (std::same_as<X, random_source>) {
            const auto seed = from_.number<std::uint64_t>(path + ".seed");
            set<X>(x, {seed, from_.number<std::uint64_t>(path + ".streams")});
        } else if constexpr (std::same_as<X, std::string>) {
            set<X>(x, from_.metadata(path));
        } else {
            set<X>(x, from_.number<X>(path));
        }
    }

    template <class X>
    void set(X& to, X value)
    {
        static_assert(std::is_nothrow_move_assignable_v<X>);  // or a part might be changed and the next one not
        changes_.push_back([&to, value = std::move(value)]() mutable { to = std::move(value); });
    }

    archive_reader& from_;
    std::vector<change>& changes_;
    std::string prefix_;
    std::vector<parameter_outline> model_;  // the last
};

}  // namespace detail

/// Writes a checkpoint of these parts (see the table above). Throws heed::error if it cannot be written, or if a
/// parameter, a moment or a sum is NaN or infinite, because training has diverged, and std::bad_alloc if memory runs
/// out; what was there before is unchanged. io::write_failed, a full disk for one, may be gone later: the training can
/// go on, and save again.
void save_checkpoint(const std::filesystem::path& path, const auto&... parts)
{
    io::archive all;
    all.metadata["format"] = detail::checkpoint_format;
    detail::checkpoint_writer write(all);
    try {
        (write(parts), ...);
    } catch (const error& problem) {
        throw error(path.string() + ": not written: " + problem.what() + "; what was there before is unchanged");
    }
    io::save(path, all);
}

/// Sets these parts to what save_checkpoint has written. Throws heed::error "path: reason", and changes nothing, if the
/// file cannot be read, is truncated, has other parts than these, a model of another shape or type, another optimiser's
/// state, or a number that is NaN or infinite. If memory runs out it is std::bad_alloc, and nothing is changed either.
void load_checkpoint(const std::filesystem::path& path, auto&&... parts)
{
    const io::archive all = io::load(path);
    const auto refuse = [&](const std::string& why) {
        const std::string named = path.string() + ": ";
        throw error(why.starts_with(named) ? why : named + why);
    };
    const auto format = all.metadata.find("format");
    if (format == all.metadata.end() || format->second != detail::checkpoint_format)
        refuse("is not a checkpoint that train::save_checkpoint has written" +
               (format == all.metadata.end() ? std::string()
                                             : ": its format is \"" + text::printable(format->second) + "\"") +
               "; io::load and io::take read weights alone");
    detail::archive_reader from{all};
    std::vector<detail::checkpoint_reader::change> changes;
    detail::checkpoint_reader read(from, changes);
    try {
        (read(parts), ...);
    } catch (const error& problem) {
        refuse(problem.what());
    }
    const auto require_claimed = [&](const std::string& name) {
        if (!from.names.contains(name))
            refuse("has \"" + text::printable(name) +
                   "\", which belongs to none of the parts given; it is of another model or run");
    };
    for (const io::tensor_entry& each : all.tensors) require_claimed(each.name);
    for (const auto& [name, value] : all.metadata) {
        if (name != "format") require_claimed(name);
    }
    for (const auto& change : changes) change();
}

}  // namespace heed::train
