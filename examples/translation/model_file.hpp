// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include <heed/text/vocabulary.hpp>

#include "system.hpp"

/// A trained translator in one safetensors file: weights, both vocabularies and the options it was trained with.
namespace translation {

struct translator_file {
    options how;
    heed::text::vocabulary source, target;
    std::unique_ptr<translation::system> system;
};

inline constexpr const char* format_name = "heed.translate/1";

inline heed::io::archive to_archive(const translator_file& model)
{
    heed::io::archive archive;
    archive.metadata["format"] = format_name;
    archive.metadata["vocabulary.source"] = model.source.to_text();
    archive.metadata["vocabulary.target"] = model.target.to_text();
    model.how.write(archive.metadata);
    model.system->put(archive);
    return archive;
}

inline void save_model(const std::filesystem::path& path, const translator_file& model)
{
    heed::io::save(path, to_archive(model));
}

inline translator_file from_archive(const heed::io::archive& archive, const std::string& where)
{
    const auto entry = [&](const char* name) -> const std::string& {
        const auto found = archive.metadata.find(name);
        if (found == archive.metadata.end()) {
            throw heed::error(where + ": a safetensors file, but not a model of `translate`: it has no \"" + name +
                              "\"; give a file that `translate train` wrote");
        }
        return found->second;
    };
    if (entry("format") != format_name) {
        throw heed::error(where + ": its format is \"" + entry("format") + "\" but this program reads \"" +
                          format_name + "\"");
    }
    translator_file model;
    model.how = options::read(archive.metadata, where);
    model.source = heed::text::vocabulary::from_text(entry("vocabulary.source"));
    model.target = heed::text::vocabulary::from_text(entry("vocabulary.target"));
    // Sizes come from the file: the embedding tables must bear them out before anything of that size is made.
    const auto rows = [&](const char* name, std::size_t words) {
        const heed::io::tensor_entry& table = archive.at(name);
        if (table.shape != std::vector<std::size_t>{words, model.how.embedding}) {
            throw heed::error(where + ": \"" + name + "\" is " + heed::shape_text(table.shape) +
                              " but the vocabulary has " + std::to_string(words) + " words and embeddings have " +
                              std::to_string(model.how.embedding) + " dimensions: the file contradicts itself");
        }
    };
    rows("encoder.embedding", model.source.size());
    rows("decoder.embedding", model.target.size());
    if (archive.at("decoder.W_s").shape != std::vector<std::size_t>{model.how.hidden, model.how.hidden}) {
        throw heed::error(where + ": the options and the weights disagree about the hidden size");
    }
    model.system = make_system(model.how, model.source.size(), model.target.size());
    try {
        model.system->take(archive);
    } catch (const heed::error& problem) {
        throw heed::error(where + ": " + problem.what());
    }
    return model;
}

inline translator_file load_model(const std::filesystem::path& path)
{
    return from_archive(heed::io::load(path), path.string());
}

}  // namespace translation
