// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <heed/ad/ad.hpp>
#include <heed/core/parallel.hpp>
#include <heed/nn/dropout.hpp>
#include <heed/train/adadelta.hpp>
#include <heed/train/adam.hpp>
#include <heed/train/checkpoint.hpp>
#include <heed/train/sgd.hpp>
#include <support/one_table.hpp>
#include <support/temporary_directory.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::contains;
using support::message_of;

namespace checked {

/// A table that is only looked up, one that only some batches look up, a matrix and a vector.
template <class Matrix, class Vector>
struct model {
    Matrix E, sometimes, W;
    Vector b;

    auto loss(const word_ids& words, bool with_second, const nn::dropout& drop) const
    {
        auto x = ops::lookup(E, words);
        if (with_second) x = ops::add(x, ops::lookup(sometimes, words));
        x = drop(x);
        return ops::dot(ops::square(ops::linear(x, W, b)), support::uneven<element_of<Matrix>>(shape_of(x)));
    }
    static auto parameters(auto& self, auto&& visit)
    {
        return checked::model{visit("E", self.E), visit("sometimes", self.sometimes), visit("W", self.W),
                              visit("b", self.b)};
    }
};
template <class Matrix, class Vector>
model(Matrix, Matrix, Matrix, Vector) -> model<Matrix, Vector>;

}  // namespace checked

namespace {

template <class T>
auto model_of(std::uint64_t stream, std::size_t width = 4)
{
    return checked::model<array<T, 2>, array<T, 1>>{
        support::random<T>({8, width}, stream), support::random<T>({8, width}, stream + 1),
        support::random<T>({width, width}, stream + 2), support::random<T>({width}, stream + 3)};
}

/// The complete state of a training run.
template <class T, class Optimizer>
struct run {
    decltype(model_of<T>(1)) model = model_of<T>(1);
    Optimizer optimizer{};
    train::position at{};
    train::accumulated_gradients<T> sum{};
    train::average_of_last<T> last{2};
    train::moving_average<T> moving{0.9};
    std::vector<double> norms{};
    double best = std::numeric_limits<double>::infinity();

    void save(const std::filesystem::path& path) const
    {
        train::save_checkpoint(path, model, optimizer, at, sum, last, moving, train::named("norms", norms),
                               train::named("best", best));
    }
    void load(const std::filesystem::path& path)
    {
        train::load_checkpoint(path, model, optimizer, at, sum, last, moving, train::named("norms", norms),
                               train::named("best", best));
    }

    /// One of three batches of an epoch, two per update, dropout; at the end of an epoch a lower rate.
    void batch()
    {
        word_ids words(1, 3);
        for (std::size_t i = 0; i < 3; ++i)
            words(0, i) = static_cast<std::uint32_t>(below(8, mix(at.epoch), 3 * at.batch + i));
        tape.clear();
        const auto lifted = ad::lift(tape, model);
        tape.backward(lifted.loss(words, at.batch == 1, nn::dropout{0.4, &at.random}));
        if ((3 * at.epoch + at.batch) % 2 == 0) {
            sum.add(lifted, tape);
        } else {
            sum.give(lifted, tape);
            norms.push_back(optimizer.step(model, lifted, tape, 0.7));
            moving.add(model);
            best = std::min(best, norms.back());
        }
        if (++at.batch < 3) return;
        at.batch = 0;
        ++at.epoch;
        last.add(model);
        optimizer.settings.rate *= 0.9;
    }

    ad::tape<T> tape{};
};

template <class T, class Optimizer>
void check_resuming(const temporary_directory& here)
{
    constexpr std::size_t batches = 11;
    run<T, Optimizer> whole;
    for (std::size_t i = 0; i < batches; ++i) whole.batch();
    whole.save(here.path() / "whole");
    for (std::size_t stopped = 0; stopped <= batches; ++stopped) {
        CAPTURE(stopped);
        {
            run<T, Optimizer> begun;
            for (std::size_t i = 0; i < stopped; ++i) begun.batch();
            begun.save(here.path() / "run");
        }
        run<T, Optimizer> resumed;
        resumed.model = model_of<T>(77);  // any model becomes that of the file
        resumed.optimizer.settings.rate = 123;
        resumed.at.random.seed = 5;
        resumed.moving = train::moving_average<T>(0.5);
        resumed.load(here.path() / "run");
        for (std::size_t i = stopped; i < batches; ++i) resumed.batch();
        CHECK(resumed.norms == whole.norms);
        resumed.save(here.path() / "run");
        CHECK(here.read("run") == here.read("whole"));  // bit for bit
    }
}

using float_run = run<float, train::adam<float>>;

std::string loading(float_run& into, const std::filesystem::path& path)
{
    return message_of<error>([&] { into.load(path); });
}

/// A copy of a checkpoint, changed by `edit(archive)`.
void edited(const std::filesystem::path& from, const std::filesystem::path& to, auto&& edit)
{
    io::archive all = io::load(from, io::storage::copied);
    edit(all);
    io::save(to, all);
}

struct history {
    std::vector<float> losses;
    std::string note;
    bool finished = false;
    float smallest = 0;
    std::int32_t offset = 0;

    static void each(auto& self, auto&& member)
    {
        member("losses", self.losses);
        member("note", self.note);
        member("finished", self.finished);
        member("smallest", self.smallest);
        member("offset", self.offset);
    }
};

/// A custom rule: gradient descent whose settings are two numbers and a function, which the program provides.
struct my_rule {
    double rate = 0.1, decay = 0.5;
    std::function<double(double)> of_rate{};
    static constexpr const char* name = "mine";
    static constexpr std::size_t moments = 0;

    template <class T>
    auto update(std::size_t, T scale) const
    {
        return
            [factor = static_cast<T>(rate * decay) * scale](std::size_t n, const T* g, kernels::moments_of<T>, T* x) {
                for (std::size_t i = 0; i < n; ++i) x[i] -= factor * g[i];
            };
    }
};

}  // namespace

TEST_CASE("a run that was stopped after any batch and resumed equals the uninterrupted one, bit for bit")
{
    const temporary_directory here;
    SUBCASE("Adam, float") { check_resuming<float, train::adam<float>>(here); }
    SUBCASE("AdamW, double") { check_resuming<double, train::adamw<double>>(here); }
    SUBCASE("AdaDelta, double") { check_resuming<double, train::adadelta<double>>(here); }
    SUBCASE("gradient descent, double") { check_resuming<double, train::sgd<double>>(here); }
    SUBCASE("momentum, double") { check_resuming<double, train::sgd_with_momentum<double>>(here); }
    SUBCASE("a custom rule, double") { check_resuming<double, train::optimizer<double, my_rule>>(here); }
}

TEST_CASE("a checkpoint is also a file of weights, and its metadata is readable")
{
    const temporary_directory here;
    float_run one;
    for (int i = 0; i < 5; ++i) one.batch();
    one.save(here.path() / "run");
    const io::archive all = io::load(here.path() / "run");
    auto read = model_of<float>(9);
    io::take(all, read);
    CHECK(train::copy_parameters<float>(read) == train::copy_parameters<float>(one.model));
    CHECK(all.metadata.at("training.epoch") == "1");
    CHECK(all.metadata.at("training.batch") == "2");
    CHECK(all.metadata.at("adam.steps") == "2");
    CHECK(all.metadata.at("adam.settings") == "0.0009000000000000001 0.9 0.999 1e-08");
    CHECK(all.metadata.at("moving_average.decay") == "0.9");
    CHECK(all.metadata.at("moving_average.count") == "2");
    CHECK(all.at("moving_average").dtype == "F64");
    CHECK(all.at("adam.first.b").values<float>() == one.optimizer.state()[3].first);
}

TEST_CASE("values of every kind, and two models under different names, are restored")
{
    const temporary_directory here;
    const auto path = here.path() / "run";
    auto generator = model_of<float>(1), critic = model_of<float>(5);
    train::adam<float> optimizer, critic_optimizer({0.5});
    history seen{{1.5f, NAN, 0.1f}, "Grüße \"0\"", true, std::numeric_limits<float>::denorm_min(), -7};
    random_source random{3, std::numeric_limits<std::uint64_t>::max()};
    std::size_t epoch = 41;
    train::save_checkpoint(path, generator, optimizer, train::named("critic", critic, critic_optimizer), seen, random,
                           train::named("epoch", epoch));
    const auto mine = train::copy_parameters<float>(critic);

    critic = generator = model_of<float>(9);
    critic_optimizer.settings.rate = 0;
    history read;
    random = {};
    epoch = 0;
    train::load_checkpoint(path, generator, optimizer, train::named("critic", critic, critic_optimizer), read, random,
                           train::named("epoch", epoch));
    CHECK(train::copy_parameters<float>(critic) == mine);
    CHECK(train::copy_parameters<float>(generator) == train::copy_parameters<float>(model_of<float>(1)));
    CHECK(critic_optimizer.settings.rate == 0.5);
    CHECK(read.losses.size() == 3);
    CHECK(std::isnan(read.losses[1]));
    CHECK(read.losses[2] == 0.1f);
    CHECK(read.note == seen.note);
    CHECK(read.finished);
    CHECK(read.smallest == seen.smallest);
    CHECK(read.offset == -7);
    CHECK(random.seed == 3);
    CHECK(random.streams == std::numeric_limits<std::uint64_t>::max());
    CHECK(epoch == 41);

    CHECK(contains(
        message_of<error>([&] { train::save_checkpoint(path, generator, optimizer, critic, critic_optimizer); }),
        "two parts are called \"adam.steps\"; rename one"));
    CHECK(contains(message_of<error>([&] { train::load_checkpoint(path, optimizer, generator); }),
                   "an optimizer, an average or a sum of gradients has no model before it among the parts"));
}

TEST_CASE("a file of another model, optimizer, type or run is rejected and changes nothing")
{
    const temporary_directory here;
    const auto path = here.path() / "run", other = here.path() / "other";
    float_run begun;
    for (int i = 0; i < 7; ++i) begun.batch();
    begun.save(path);

    float_run mine;
    mine.batch();
    mine.save(here.path() / "before");
    const auto refused = [&](const std::string& why) {
        CAPTURE(why);
        const std::string message = loading(mine, other);
        CAPTURE(message);
        CHECK(message.starts_with(other.string() + ": "));
        CHECK(contains(message, why));
        mine.save(here.path() / "after");
        CHECK(here.read("after") == here.read("before"));
    };
    const auto change = [&](const std::string& why, auto&& edit) {
        edited(path, other, edit);
        refused(why);
    };
    const auto tensor = [](io::archive& in, const std::string& name) -> io::tensor_entry& {
        return const_cast<io::tensor_entry&>(in.at(name));
    };
    const auto metadata = [&](const std::string& why, const std::string& key, const char* value) {
        change(why, [&](io::archive& all) {
            if (value == nullptr) {
                all.metadata.erase(key);
            } else {
                all.metadata[key] = value;
            }
        });
    };

    train::save_checkpoint(other, model_of<float>(1, 5), begun.optimizer);
    refused("\"E\" is [8,5], but in this model [8,4]");
    train::save_checkpoint(other, support::one_table<array<float, 2>>{support::random<float>({8, 4}, 1)});
    refused("there is no tensor \"sometimes\"; it holds \"E\" F32 [8,4]");
    train::save_checkpoint(other, model_of<float>(1), train::sgd<float>(), train::position{});
    refused("its optimizer is sgd, not adam; continue with that optimizer, or restart from the weights");
    train::save_checkpoint(other, model_of<double>(1), train::adam<double>());
    refused("\"E\" is F64, but here F32; training must continue in the type in which it began");
    io::archive weights;
    io::put(weights, begun.model);
    io::save(other, weights);
    refused("is not a checkpoint written by train::save_checkpoint; use io::load and io::take to read only weights");
    weights.metadata["format"] = "heed.translate/2";
    io::save(other, weights);
    refused("its format is \"heed.translate/2\"");

    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const char* name : {"W", "adam.first.W", "adam.second.b", "average.1", "accumulated.rows.E"}) {
        change("\"" + std::string(name) + "\"[3] is NaN; the file is damaged, or its training had diverged",
               [&](io::archive& all) {
                   io::tensor_entry& entry = tensor(all, name);
                   std::vector<float> numbers = entry.values<float>();
                   numbers[3] = nan;
                   entry = io::tensor_entry::of(name, entry.shape, numbers);
               });
    }
    change("\"adam.first.b\" has 3 numbers, but must have 4", [&](io::archive& all) {
        tensor(all, "adam.first.b") = io::tensor_entry::of("adam.first.b", {3}, std::vector<float>{1, 2, 3});
    });
    change("\"average.0\" has 1 number, but must have 84", [&](io::archive& all) {
        tensor(all, "average.0") = io::tensor_entry::of("average.0", {1}, std::vector<float>{1});
    });
    change("\"moving_average\" has 1 number, but must have 84", [&](io::archive& all) {
        tensor(all, "moving_average") = io::tensor_entry::of("moving_average", {1}, std::vector<double>{1});
    });
    metadata("a moving average with a decay of 2.000000 is not defined", "moving_average.decay", "2");
    metadata("moving_average.count is \"-1\"", "moving_average.count", "-1");
    metadata("has \"moving_average\", which does not belong to any", "moving_average.count", "0");
    change("the sum of the gradients of E does not fit its 32 numbers", [&](io::archive& all) {
        io::tensor_entry& ids = tensor(all, "accumulated.ids.E");
        auto rows = ids.values<std::uint32_t>();
        rows.back() = 8;
        ids = io::tensor_entry::of(ids.name, ids.shape, rows);
    });
    change("has \"extra\", which does not belong to any given part",
           [&](io::archive& all) { all.tensors.push_back(io::tensor_entry::of("extra", {1}, std::vector<float>{1})); });
    metadata("has \"training.more\", which does not belong to any given part", "training.more", "1");
    metadata("its metadata has no \"training.batch\"", "training.batch", nullptr);
    for (const char* wrong : {"", "x", "-1", "1.5", "1 ", "99999999999999999999"})
        metadata("training.batch is \"" + std::string(wrong) + "\" in its metadata, which is not a valid number",
                 "training.batch", wrong);
    metadata("adam.settings has more numbers than its rule has settings", "adam.settings", "1 2 3 4 5");
    metadata("adam.settings is \"x\"", "adam.settings", "1 x");

    // Truncated anywhere, or missing.
    const std::string whole = here.read("run");
    for (std::size_t size = 0; size < whole.size(); size += size < 40 ? 1 : 97) {
        here.write("other", whole.substr(0, size));
        const std::string message = loading(mine, other);
        CHECK(message.starts_with(other.string() + ": "));
    }
    mine.save(here.path() / "after");
    CHECK(here.read("after") == here.read("before"));
    std::filesystem::remove(other);
    refused("No such file");
    mine.load(path);  // the original is valid
}

TEST_CASE("a diverged run, or a full disk, does not overwrite the last good checkpoint")
{
    const temporary_directory here;
    const auto path = here.path() / "run";
    float_run one;
    for (int i = 0; i < 4; ++i) one.batch();
    one.save(path);
    const std::string good = here.read("run");
    one.model.W(1, 2) = INFINITY;
    CHECK(message_of<error>([&] { one.save(path); }) ==
          path.string() + ": not written: \"W\"[6] is infinite; the previous file is unchanged");
    one.model.W(1, 2) = 0;
    auto state = one.optimizer.state();
    state[0].second[9] = NAN;
    one.optimizer.restore(2, state);
    CHECK(contains(message_of<error>([&] { one.save(path); }), "\"adam.second.E\"[9] is NaN"));
    state[0].second[9] = 0;
    one.optimizer.restore(2, state);

    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{1000, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    const std::string message = message_of<error>([&] { one.save(path); });
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
    CHECK(contains(message, "run: cannot write: File too large; the previous file is unchanged"));
    CHECK(here.read("run") == good);
    CHECK(here.files() == 1);
    one.save(path);
    CHECK(here.read("run") != good);
}

TEST_CASE("a run that is killed at any time leaves a complete checkpoint")
{
    const temporary_directory here;
    const auto path = here.path() / "run";
    set_threads(1);
    float_run one;
    one.batch();
    one.save(path);
    for (int round = 0; round < 10; ++round) {
        const std::string before = here.read("run");
        const ::pid_t child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            for (;;) {
                ++one.at.epoch;
                one.save(path);
            }
        }
        // It has saved at least once, and is in one of its next saves.
        while (here.read("run") == before) {
            REQUIRE(::waitpid(child, nullptr, WNOHANG) == 0);
            ::usleep(500);
        }
        ::usleep(300 * static_cast<unsigned>(round));
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        const std::size_t epoch = one.at.epoch;
        one.load(path);
        CHECK(one.at.epoch > epoch);
    }
    one.save(path);  // also removes the partial file of a killed run
    CHECK(here.files() == 1);
}
