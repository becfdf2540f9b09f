// SPDX-License-Identifier: BSD-3-Clause
//
// The checkpoint of `translate train`: each allocation while resuming from it fails once.

#include <support/failing_files.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <support/temporary_directory.hpp>

#include "../../tools/translate/checkpoint.hpp"

namespace {

namespace translator = heed::translator;
using translation::averages;
using translation::candidate_words;
using translation::standing;

constexpr const char* text = "the hash of a text that is too long for a string without memory";

/// A run whose values depend on `seed`.
struct run {
    translator::translator_file model;
    standing at;
    candidate_words words{{2, 1}, candidate_words::origin::learned, {}, {}};
    averages means{heed::train::average_of_last<float>(2)};

    explicit run(std::size_t seed)
    {
        model.how.embedding = model.how.hidden = model.how.alignment = 2;
        model.how.average = 2;
        model.source.vocabulary = model.target.vocabulary =
            heed::text::vocabulary::from_words({"<pad>", "<unk>", "<s>", "</s>", "a", "b"});
        model.system = translator::make_system(model.how, 6, 6);
        std::vector<float> numbers = model.system->copy();
        for (float& each : numbers) each += static_cast<float>(seed);
        model.system->set(numbers);
        at.epoch = at.batch = seed;
        words.translations.assign(6, {static_cast<std::uint32_t>(seed)});
        means.last.restore({numbers});
        means.epoch = seed;
    }

    heed::io::archive saved() const
    {
        const temporary_directory directory;
        const auto path = directory.path() / "checkpoint";
        translation::save_checkpoint(path, model, at, text, 1, 1, &words, &means, heed::io::existing::replace);
        return heed::io::load(path, heed::io::storage::copied);
    }
    void load(const heed::io::archive& file)
    {
        at = translation::load_checkpoint(file, model, text, 1, 1, &words, &means);
    }
    bool is(const run& other) const
    {
        return model.system->copy() == other.model.system->copy() && at.epoch == other.at.epoch &&
               at.batch == other.at.batch && words.translations == other.words.translations &&
               means.last.state() == other.means.last.state() && means.epoch == other.means.epoch;
    }
};

}  // namespace

TEST_CASE("if an allocation fails while resuming, either all of the state changes or none")
{
    const run first(1), second(2);
    const heed::io::archive file = first.saved();
    run resumed(2);
    bool complete = false;
    const long count = support::fail_each_allocation(
        [&] {
            complete = false;
            support::expects([&] { resumed.load(file); });
            complete = true;
        },
        [&] { CHECK(resumed.is(complete ? first : second)); });
    CHECK(count > 200);
    CHECK(complete);
}

TEST_CASE("an invalid end of a checkpoint leaves the state unchanged")
{
    const run second(2);
    const heed::io::archive good = run(1).saved();
    for (const std::string missing : {"adam.steps", "candidates.words", "average.0", "average.epoch", "decoder.b"}) {
        CAPTURE(missing);
        heed::io::archive bad = good;
        bad.metadata.erase(missing);
        std::erase_if(bad.tensors, [&](const auto& each) { return each.name == missing; });
        run resumed(2);
        CHECK_THROWS_AS(resumed.load(bad), heed::error);
        CHECK(resumed.is(second));
    }
}
