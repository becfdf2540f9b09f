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

/// body(); what it finds wrong is said of this file.
auto about(const std::filesystem::path& file, auto&& body)
{
    try {
        return body();
    } catch (const heed::error& problem) {
        throw heed::error(file.string() + ": " + problem.what());
    }
}

/// The sizes that a file claims, against its tensors: each product of two sizes that a model allocates must be there.
inline void check_sizes(const heed::io::archive& archive, const translator_file& model)
{
    const auto claim = [&](const std::string& name, std::size_t rows, std::size_t columns) {
        const std::vector<std::size_t> expected{rows, columns};
        const auto& shape = archive.at(name).shape;
        if (shape != expected || rows == 0 || columns == 0) {
            throw heed::error("the file contradicts itself: \"" + name + "\" is " + heed::shape_text(shape) +
                              ", but by its options and vocabularies " + heed::shape_text(expected));
        }
    };
    const std::size_t E = model.how.embedding, H = model.how.hidden, A = model.how.alignment;
    claim("encoder.embedding", model.source.size(), E);
    claim("decoder.embedding", model.target.size(), E);
    claim("decoder.cell.W", E, 3 * H);
    claim("decoder.W_s", H, H);
    if (model.how.attention == "none") return;
    const bool reads_word = model.how.attention == "additive-y" || model.how.attention == "per-dimension";
    const std::string score = "decoder.attention.score.";
    claim(score + (reads_word ? "base.W" : "W"), H, A);
    if (reads_word) claim(score + "Y", E, A);
}

inline translator_file from_archive(const heed::io::archive& archive)
{
    if (const std::string& format = entry(archive.metadata, "format"); format != format_name)
        throw heed::error("its format is \"" + format + "\" but this program reads \"" + format_name + "\"");
    translator_file model;
    model.how = options::read(archive.metadata);
    model.source = heed::text::vocabulary::from_text(entry(archive.metadata, "vocabulary.source"));
    model.target = heed::text::vocabulary::from_text(entry(archive.metadata, "vocabulary.target"));
    check_sizes(archive, model);
    model.system = make_system(model.how, model.source.size(), model.target.size());
    model.system->take(archive);
    return model;
}

inline translator_file load_model(const std::filesystem::path& path)
{
    const heed::io::archive archive = heed::io::load(path);
    return about(path, [&] { return from_archive(archive); });
}

}  // namespace translation
