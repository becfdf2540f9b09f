// SPDX-License-Identifier: BSD-3-Clause

// Model files of every system: written files are read, false sizes are rejected before allocation, and each allocation
// while reading fails once.

#include <support/failing_files.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <heed/nn/init.hpp>
#include <heed_translator/model_file.hpp>

namespace {

namespace translator = heed::translator;
using heed::io::archive;
using translator::options;
using translator::translator_file;

options small(const std::string& system)
{
    options how;
    how.system = system;
    const translator::system_kind& kind = translator::kind_of(system);
    for (const translator::option_support& each : kind.option_support_list)
        if (!each.preset.empty()) how.set(each.option, each.preset);
    how.embedding = how.hidden = how.alignment = how.coverage = 4;
    how.longest = 5;
    how.layers = translator::support_of("layers", kind) != nullptr ? 2 : 1;
    return how;
}

/// Each system with each value of each option that has choices or is a switch.
std::vector<options> all_systems()
{
    std::vector<options> all;
    for (const translator::system_kind& kind : translator::systems()) {
        const options plain = small(kind.name);
        all.push_back(plain);
        for (const translator::option_support& each : kind.option_support_list) {
            std::vector<std::string> values = each.choices;
            if (each.option == "context" || each.option == "input-feeding") values = {"1"};
            for (const std::string& value : values) {
                options how = plain;
                how.set(each.option, value);
                all.push_back(how);
            }
        }
    }
    return all;
}

translator_file make_model(const options& how)
{
    translator_file model;
    model.how = how;
    model.source.vocabulary = model.target.vocabulary =
        heed::text::vocabulary::from_words({"<pad>", "<unk>", "<s>", "</s>", "a", "b"});
    model.system = translator::make_system(how, 6, 6);
    return model;
}

/// The options that differ from the system's defaults, for messages.
std::string name_of(const options& how)
{
    std::string name = how.system;
    std::vector<std::string> usual;
    small(how.system).each_text([&](const std::string&, const std::string& value) { usual.push_back(value); });
    std::size_t at = 0;
    how.each_text([&](const std::string& option, const std::string& value) {
        if (value != usual[at++]) name += " --" + option + " " + value;
    });
    return name;
}

std::size_t bytes_of(const archive& file)
{
    std::size_t bytes = 0;
    for (const auto& [name, text] : file.metadata) bytes += name.size() + text.size();
    for (const heed::io::tensor_entry& each : file.tensors) bytes += each.name.size() + 40 + each.bytes.size();
    return bytes;
}

/// The error message for a rejected file; empty if it is read. The total of its allocations is limited by its size.
std::string refusal(const archive& file)
{
    const std::size_t before = support::asked_for;
    std::string said;
    try {
        translator::from_archive(file);
    } catch (const heed::error& problem) {
        said = problem.what();
    }
    const std::size_t asked = support::asked_for - before;
    CHECK(asked < 65'536 + 16 * bytes_of(file));
    return said;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("a file of any system is read again, and the limit counts every number of its model")
{
    for (const options& how : all_systems()) {
        CAPTURE(name_of(how));
        const archive file = translator::to_archive(make_model(how));
        REQUIRE(refusal(file) == "");
        const translator_file read = translator::from_archive(file);
        CHECK(read.system->copy() == make_model(how).system->copy());

        const std::size_t numbers = translator::count_numbers(file);
        CHECK(numbers == read.system->parameter_count());
        const heed::nn::limited_numbers limit(numbers - 1);
        CHECK_THROWS_AS(translator::make_system(how, 6, 6), heed::nn::too_many_numbers);
    }
}

TEST_CASE("false sizes are rejected before allocation, for every system")
{
    const std::size_t most = std::numeric_limits<std::size_t>::max();
    for (const options& how : all_systems()) {
        CAPTURE(name_of(how));
        const archive file = translator::to_archive(make_model(how));
        for (const char* const lied : {"embedding", "hidden", "alignment", "layers", "width", "heads", "coverage",
                                       "longest", "window", "last"}) {
            if (translator::support_of(lied, translator::kind_of(how)) == nullptr) continue;
            for (const std::size_t value : {std::size_t{0}, std::size_t{9}, std::size_t{100'000}, most / 4 + 5, most}) {
                CAPTURE(std::string(lied));
                CAPTURE(value);
                archive bad = file;
                bad.metadata["options." + std::string(lied)] = std::to_string(value);
                const std::string said = refusal(bad);
                const std::string option = lied;
                CAPTURE(said);
                if (option == "embedding" || option == "hidden")
                    CHECK(contains(said, "contradicts itself"));
                else if (option == "layers")
                    CHECK(said != "");
                else if (option == "heads" && how.system == "transformer")
                    CHECK(contains(said, "heads"));
            }
        }
    }
}

TEST_CASE("the last layer's number alone does not determine the number of layers")
{
    for (const std::string system : {"luong", "convs2s", "transformer"}) {
        CAPTURE(system);
        archive file = translator::to_archive(make_model(small(system)));
        for (heed::io::tensor_entry& each : file.tensors) {
            if (const auto at = each.name.find(".1."); at != std::string::npos) each.name.replace(at, 3, ".99999.");
        }
        file.metadata["options.layers"] = "100000";
        CHECK(contains(refusal(file), "by its options and vocabularies the model has more"));
    }
}

TEST_CASE("a file with only the tensors that are checked first causes no allocation")
{
    for (const options& plain : all_systems()) {
        CAPTURE(name_of(plain));
        for (const char* const large : {"embedding", "hidden", "alignment"}) {
            CAPTURE(std::string(large));
            options how = plain;
            how.set(large, "400");
            translator_file model = make_model(plain);
            model.how = how;
            archive file = translator::to_archive(model);
            file.tensors.clear();
            for (const translator::expected_tensor& each : translator::kind_of(how).expected_tensors(how, 6, 6)) {
                if (file.find(each.tensor) != nullptr) continue;
                file.tensors.push_back(heed::io::tensor_entry::of(each.tensor, {each.rows, each.columns},
                                                                  std::vector<float>(each.rows * each.columns)));
            }
            CHECK(refusal(file) != "");
        }
    }
}

TEST_CASE("a width that overflows is a different width")
{
    archive file = translator::to_archive(make_model(small("convs2s")));
    file.metadata["options.width"] = std::to_string((std::size_t{1} << 62) + 3);  // times 4 hidden: as 3
    CHECK(contains(refusal(file), "contradicts itself"));
}

TEST_CASE("if an allocation fails while reading a model, the file is rejected and the previous model stays")
{
    options how = small("rnnsearch");
    translator_file model = make_model(how);
    const std::vector<float> old = model.system->copy();
    how.seed = 2;
    const archive file = translator::to_archive(make_model(how));
    const std::vector<float> stored = translator::from_archive(file).system->copy();
    REQUIRE(stored != old);
    bool complete = false;
    const long count = support::fail_each_allocation(
        [&] {
            complete = false;
            support::expects([&] { model = translator::from_archive(file); });
            complete = true;
        },
        [&] {
            if (model.system->copy() != (complete ? stored : old)) FAIL("a part of the file");
            CHECK(model.source.vocabulary.size() == 6);
        });
    CHECK(count > 100);
    CHECK(complete);
}
