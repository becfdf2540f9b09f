// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz.hpp"
#include "headers.hpp"

#include <heed/core/parallel.hpp>
#include <heed_translator/model_file.hpp>
#include <heed_translator/search.hpp>

#include <fstream>
#include <iterator>

namespace fuzz::model {

namespace translator = heed::translator;

/// Memory that a search uses for any model, such as the blocks that threads keep.
constexpr std::size_t free_of_search = std::size_t{16} << 20;

std::string bytes_of(const heed::io::archive& archive)
{
    const auto path = path_of("written");
    heed::io::save(path, archive);
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

void run(std::string_view bytes)
{
    heed::set_threads(1);
    const auto path = file_of(bytes);
    // A vocabulary word takes at most 128 times its bytes; an 8-bit number becomes several floats.
    const auto found = read(
        path, bytes.size(), 128, [&] { return translator::load_model(path); }, 4 * free_bytes);
    if (!found) return;
    const heed::io::archive written = translator::to_archive(*found);
    const auto again = translator::from_archive(written);
    require(again.system->copy() == found->system->copy(), "the parameters change in a round trip");
    require(translator::to_archive(again).metadata == written.metadata, "the metadata changes in a round trip");

    const allowance limited(free_of_search + 1024 * bytes.size());
    accepts([&] {
        translator::search_options how;
        how.beam = how.best = 2;
        how.max_length = 3;
        return translator::search_all(*found->system, found->source.encode({{"a", "b", "c"}, {"b"}}), 2, how, true);
    });
}

/// Changes a size in the options and in all or most of the tensors that seem to depend on it; or renumbers the last
/// layer.
std::string with_other_size(std::string_view bytes, const dice& roll)
{
    if (bytes.size() < 8) return {};
    const auto claimed = std::min<std::uint64_t>(number_at<std::uint64_t>(bytes, 0), bytes.size() - 8);
    nlohmann::ordered_json header = nlohmann::ordered_json::parse(bytes.substr(8, claimed), nullptr, false);
    if (!header.is_object() || !header["__metadata__"].is_object()) return {};
    constexpr const char* sizes[] = {"layers", "embedding", "hidden", "alignment", "coverage", "longest", "width"};
    const std::string size = sizes[roll(std::size(sizes))];
    nlohmann::ordered_json& option = header["__metadata__"]["options." + size];
    const std::string was = option.is_string() ? option.get<std::string>() : "1";
    const std::uint64_t before = std::strtoull(was.c_str(), nullptr, 10);
    const std::uint64_t after = roll(3) == 0 ? odd_number(roll) : 1 + roll(64);
    option = std::to_string(after);
    const bool all = roll(4) != 0;
    const std::string last = "." + std::to_string(before - 1) + ".";
    nlohmann::ordered_json changed = nlohmann::ordered_json::object();
    for (auto& [name, tensor] : header.items()) {
        std::string other = name;
        const bool changes = all || roll(4) != 0;
        if (const auto at = other.find(last); size == "layers" && at != other.npos && changes)
            other.replace(at, last.size(), "." + std::to_string(after - 1) + ".");
        if (size != "layers" && changes && tensor.is_object() && tensor.contains("shape"))
            for (auto& extent : tensor["shape"])
                for (std::uint64_t times = 1; times <= 4; ++times)
                    if (extent == times * before) {
                        extent = times * after;
                        break;
                    }
        changed[other] = tensor;
    }
    std::string data = with_offsets(changed, std::string(bytes.substr(8 + claimed)));
    return safetensors_of(changed.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace), data);
}

std::string mutate(std::string_view bytes, const dice& roll, const scramble& bytewise)
{
    const std::string changed = roll(3) == 0 ? with_other_size(bytes, roll) : std::string();
    return changed.empty() ? mutated_safetensors(bytes, roll, bytewise) : changed;
}

/// A small model; `set`: options that differ from the system's defaults.
std::string seed_of(const std::string& system, const std::vector<std::pair<std::string, std::string>>& set = {},
                    const std::string& numbers = "")
{
    translator::translator_file model;
    model.how.system = system;
    const translator::system_kind& kind = translator::kind_of(system);
    for (const translator::option_support& each : kind.option_support_list)
        if (!each.preset.empty()) model.how.set(each.option, each.preset);
    if (translator::support_of("layers", kind) != nullptr) model.how.layers = 1;
    model.how.embedding = model.how.coverage = 2;
    model.how.hidden = 3;
    model.how.alignment = 5;
    model.how.heads = system == "transformer" ? 2 : 1;
    model.how.longest = 5;
    for (const auto& [option, value] : set) model.how.set(option, value);
    model.source.vocabulary = model.target.vocabulary =
        heed::text::vocabulary::from_words({"<pad>", "<unk>", "<s>", "</s>", "a", "b"});
    model.system = translator::make_system(model.how, 6, 6);
    return bytes_of(numbers.empty() ? translator::to_archive(model) : translator::to_smaller(model, numbers));
}

std::vector<std::string> seeds()
{
    return {seed_of("rnnsearch", {}, "int8"),
            seed_of("rnnsearch", {{"attention", "structural-biases"}}),
            seed_of("rnnsearch", {{"attention", "grouped"}}, "bf16"),
            seed_of("rnnsearch", {{"attention", "none"}, {"cell", "lstm"}}),
            seed_of("choi", {{"context", "1"}}),
            seed_of("sankaran", {{"attention", "coverage"}}),
            seed_of("sankaran", {{"attention", "recent-temporal"}}),
            seed_of("luong", {{"attention", "local-p-general"}, {"input-feeding", "1"}, {"layers", "2"}}),
            seed_of("luong", {{"attention", "location"}}),
            seed_of("convs2s"),
            seed_of("transformer", {{"positions", "learned"}, {"norm", "post"}}),
            seed_of("transformer", {{"share-embeddings", "none"}}, "int8")};
}

const registered target({"model", run, seeds, mutate});

}  // namespace fuzz::model
