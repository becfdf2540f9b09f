// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "language.hpp"
#include "system.hpp"
#include "systems.hpp"

/// A trained translator in one safetensors file: weights, both languages (vocabularies, byte-pair codes) and the
/// options it was trained with.
namespace translation {

struct translator_file {
    options how;
    language source, target;
    std::unique_ptr<translation::system> system;
};

inline heed::io::archive to_archive(const translator_file& model)
{
    heed::io::archive archive;
    archive.metadata["format"] = format_name;
    for (const auto& [name, side] : {std::pair("source", &model.source), std::pair("target", &model.target)}) {
        archive.metadata[std::string("vocabulary.") + name] = side->vocabulary.to_text();
        if (side->splitting) archive.metadata[std::string("bpe.") + name] = side->splitting->codes().to_text();
    }
    model.how.write(archive.metadata);
    model.system->put(archive);
    return archive;
}

inline void save_model(const std::filesystem::path& path, const translator_file& model)
{
    heed::io::save(path, to_archive(model));
}

/// Runs body() and prefixes its errors with the name of this file, unless they begin with it.
auto about(const std::filesystem::path& file, auto&& body)
{
    try {
        return body();
    } catch (const heed::error& problem) {
        const std::string named = file.string() + ": ", what = problem.what();
        throw heed::error(what.starts_with(named) ? what : named + what);
    }
}

/// Checks the sizes that a file claims against its tensors.
inline void check_sizes(const heed::io::archive& archive, const translator_file& model)
{
    const system_kind& kind = kind_of(model.how);
    for (const claim& each : kind.claims(model.how, model.source.vocabulary.size(), model.target.vocabulary.size())) {
        const std::vector<std::size_t> expected{each.rows, each.columns};
        const auto& shape = archive.at(each.tensor).shape;
        if (shape != expected || each.rows == 0 || each.columns == 0) {
            throw heed::error("the file contradicts itself: \"" + each.tensor + "\" is " + heed::shape_text(shape) +
                              ", but by its options and vocabularies " + heed::shape_text(expected));
        }
    }
}

/// Refuses a file if one of its numbers is not finite.
inline void require_finite(const system& read)
{
    if (const auto bad = read.not_finite())
        throw heed::error(*bad + "; the file is damaged, or its training had diverged: use an earlier copy of it, or "
                                 "train anew");
}

inline translator_file from_archive(const heed::io::archive& archive)
{
    if (const std::string& format = entry(archive.metadata, "format");
        format != format_name && format != first_format_name)
        throw heed::error("its format is \"" + format + "\" but this program reads \"" + format_name + "\"");
    translator_file model;
    model.how = options::read(archive.metadata);
    const bool split = model.how.bpe > 0 || archive.metadata.contains("bpe.source");
    for (const auto& [name, side] : {std::pair("source", &model.source), std::pair("target", &model.target)}) {
        const std::string codes = std::string("bpe.") + name;
        side->vocabulary =
            heed::text::vocabulary::from_text(entry(archive.metadata, std::string("vocabulary.") + name));
        if (split) side->splitting.emplace(heed::text::bpe_codes::from_text(entry(archive.metadata, codes), codes));
    }
    model.source.backwards = model.how.reverse_source;
    check_sizes(archive, model);
    model.system = make_system(model.how, model.source.vocabulary.size(), model.target.vocabulary.size());
    model.system->take(archive);
    require_finite(*model.system);
    return model;
}

inline translator_file load_model(const std::filesystem::path& path)
{
    const heed::io::archive archive = heed::io::load(path);
    return about(path, [&] { return from_archive(archive); });
}

}  // namespace translation
