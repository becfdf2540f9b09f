// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/train/adam.hpp>
#include <heed/train/averaging.hpp>
#include <heed/train/optimizer_state.hpp>
#include <heed/train/sgd.hpp>
#include <support/one_table.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::message_of;

namespace {

using table = support::one_table<array<double, 2>>;

table make_table(std::size_t columns = 4) { return {support::gaussian_numbers(3, 5, columns)}; }

template <class Optimizer>
void step(Optimizer& optimizer, table& module)
{
    ad::tape<double> on;
    const auto lifted = ad::lift(on, module);
    on.backward(ops::dot(ops::square(lifted.E), support::uneven(shape_of(module.E))));
    optimizer.step(module, lifted, on);
}

}  // namespace

TEST_CASE("an optimizer that is loaded from an archive continues like the saved one")
{
    table model = make_table();
    train::adam<double> optimizer({.rate = 0.1, .beta1 = 1.0 / 3});
    step(optimizer, model);
    step(optimizer, model);
    io::archive file;
    train::put(file, optimizer, "a.");
    CHECK(file.metadata.at("a.adam.steps") == "2");
    CHECK(file.metadata.at("a.adam.settings") == "0.1 0.3333333333333333 0.999 1e-08");
    CHECK(file.at("a.adam.first.E").shape == std::vector<std::size_t>{20});

    train::adam<double> other;
    train::take(file, other, model, "a.");
    CHECK(other.settings.beta1 == optimizer.settings.beta1);
    CHECK(other.steps() == 2);
    table same = model;
    step(optimizer, model);
    step(other, same);
    CHECK(support::same_bits(model.E, same.E));

    // Settings that are missing in the file keep their values.
    file.metadata["a.adam.settings"] = "0.5";
    train::take(file, other, model, "a.");
    CHECK(other.settings.rate == 0.5);
    CHECK(other.settings.beta1 == optimizer.settings.beta1);
}

TEST_CASE("an optimizer of a different kind, model or type is rejected and changes nothing")
{
    table model = make_table();
    train::adam<double> optimizer({.rate = 0.1});
    step(optimizer, model);
    io::archive file;
    train::put(file, optimizer);
    CHECK(message_of<error>([&] { train::put(file, optimizer); }) == "two parts are called \"adam.steps\"; rename one");

    train::adam<double> mine({.rate = 0.7});
    const auto said = [&](const io::archive& from, const table& of) {
        const std::string message = message_of<error>([&] { train::take(from, mine, of); });
        CHECK(mine.settings.rate == 0.7);
        CHECK(mine.steps() == 0);
        return message;
    };
    CHECK(said(file, make_table(3)) == "\"adam.first.E\" has 20 numbers, but must have 15");
    CHECK(said({}, model) == "its metadata has no \"adam.steps\"");
    const auto with = [&](const std::string& key, const std::string& text) {
        io::archive changed = file;
        changed.metadata[key] = text;
        return changed;
    };
    CHECK(said(with("adam.steps", "-1"), model) == "adam.steps is \"-1\" in its metadata, which is not a valid number");
    CHECK(said(with("adam.settings", "1 2 3 4 5"), model) ==
          "adam.settings has more numbers than its rule has settings");
    io::archive changed = file;
    changed.tensors[1] = io::tensor_entry::of("adam.second.E", {20}, std::vector<float>(20));
    CHECK(said(changed, model) ==
          "\"adam.second.E\" is F32, but here F64; training must continue in the type in which it began");
    changed.tensors[1] = io::tensor_entry::of("adam.second.E", {20}, std::vector<double>(20, NAN));
    CHECK(said(changed, model).starts_with("\"adam.second.E\"[0] is NaN; the file is damaged"));

    train::sgd<double> sgd;
    CHECK(message_of<error>([&] { train::take(file, sgd, model); }) ==
          "its optimizer is adam, not sgd; continue with that optimizer, or restart from the weights, which io::take "
          "reads");
}

TEST_CASE("averages survive a round trip")
{
    const table model = make_table(), later{support::gaussian_numbers(4, 5, 4)};
    train::average_of_last<double> last(2), last_read(2);
    train::moving_average<double> moving(0.9), moving_read(0.5);
    io::archive empty;
    train::put(empty, moving);
    train::take(empty, moving_read, model);
    CHECK(moving_read.size() == 0);
    CHECK(moving_read.decay() == 0.9);
    for (const table* const each : {&model, &later}) {
        last.add(*each);
        moving.add(*each);
    }
    io::archive file;
    train::put(file, last, "x.");
    train::put(file, moving, "x.");
    CHECK(file.metadata.at("x.average.count") == "2");
    train::take(file, last_read, model, "x.");
    train::take(file, moving_read, model, "x.");
    CHECK(last_read.state() == last.state());
    CHECK(moving_read.state() == moving.state());
    CHECK(moving_read.size() == 2);
    CHECK(message_of<error>([&] { train::take(file, last_read, make_table(3), "x."); }) ==
          "\"x.average.0\" has 20 numbers, but must have 15");
    CHECK(last_read.state() == last.state());
    last.restore({std::vector<double>(20, std::numeric_limits<double>::infinity())});
    CHECK(message_of<error>([&] { train::put(file, last, "y."); }) == "\"y.average.0\"[0] is infinite");
}
