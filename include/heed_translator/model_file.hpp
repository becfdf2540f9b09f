// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <heed/io/quantize.hpp>
#include <heed/io/safetensors.hpp>
#include <heed/nn/init.hpp>
#include <heed_translator/language.hpp>
#include <heed_translator/raw.hpp>
#include <heed_translator/system.hpp>
#include <heed_translator/systems.hpp>

/// A trained translator in one safetensors file: weights, both languages (vocabularies, byte-pair codes, data for raw
/// text) and the training options.
namespace heed::translator {

/// The contents of a file: options, both languages, and the model.
struct translator_file {
    options how;
    language source, target;
    std::unique_ptr<translator::system> system;
    std::string weights = "F32";  // number format of the matrices in the file: F32, BF16 or I8
};

/// A translation in its final casing: for a line in capitals, it is in capitals.
inline reading read_translation(const translator_file& model, const sentence& source, const id_sentence& ids)
{
    reading read = model.target.read(ids);
    if (model.source.shouted(source)) model.target.shout(read);
    return read;
}

/// The narrowest number format of the matrices in a model file.
inline std::string weights_of(const heed::io::archive& archive)
{
    std::string narrowest = "F32";
    for (const heed::io::tensor_entry& each : archive.tensors) {
        if (each.shape.size() == 2 && heed::io::dtype_size(each.dtype) < heed::io::dtype_size(narrowest))
            narrowest = each.dtype;
    }
    return narrowest;
}

/// The contents of a model file.
inline heed::io::archive to_archive(const translator_file& model)
{
    heed::io::archive archive;
    archive.metadata["format"] = format_name;
    for (const auto& [name, side] : {std::pair("source", &model.source), std::pair("target", &model.target)}) {
        archive.metadata[std::string("vocabulary.") + name] = side->vocabulary.to_text();
        if (side->raw) archive.metadata[std::string("raw.") + name] = side->raw->to_text();
        if (side->splitting) archive.metadata[std::string("bpe.") + name] = side->splitting->codes().to_text();
    }
    model.how.write(archive.metadata);
    model.system->put(archive);
    return archive;
}

/// Writes the whole file or nothing.
inline void save_model(const std::filesystem::path& path, const translator_file& model)
{
    heed::io::save(path, to_archive(model));
}

/// Runs body(). Throws heed::error if it does, with the name of this file as a prefix, unless the message begins with
/// it.
auto about(const std::filesystem::path& file, auto&& body)
{
    try {
        return body();
    } catch (const heed::error& problem) {
        const std::string named = file.string() + ": ", what = problem.what();
        throw heed::error(what.starts_with(named) ? what : named + what);
    }
}

/// Throws heed::error unless the sizes claimed by a file fit its tensors.
inline void check_sizes(const heed::io::archive& archive, const translator_file& model)
{
    const system_kind& kind = kind_of(model.how);
    for (const expected_tensor& each :
         kind.expected_tensors(model.how, model.source.vocabulary.size(), model.target.vocabulary.size())) {
        const std::vector<std::size_t> expected{each.rows, each.columns};
        const auto& shape = archive.at(each.tensor).shape;
        if (shape != expected || each.rows == 0 || each.columns == 0) {
            throw heed::error("the file contradicts itself: \"" + each.tensor + "\" is " + heed::shape_text(shape) +
                              ", but by its options and vocabularies " + heed::shape_text(expected));
        }
    }
}

/// The number of numbers in a file; an empty tensor counts as one, as in nn::limited_numbers.
inline std::size_t count_numbers(const heed::io::archive& archive)
{
    std::size_t count = 0;
    for (const heed::io::tensor_entry& each : archive.tensors) {
        const bool known = heed::io::dtype_size(each.dtype).has_value();
        count += known ? std::max<std::size_t>(1, each.size()) : 1;
    }
    return count;
}

/// A new system for a file, whose parameters may have at most twice the numbers of the file. Throws heed::error before
/// allocation for larger claims of the options that pass check_sizes(); a single missing tensor is still reported by
/// name.
inline std::unique_ptr<system> make_system_for(const heed::io::archive& archive, const translator_file& model)
{
    const std::size_t numbers = count_numbers(archive);
    const heed::nn::limited_numbers limit(2 * numbers);
    try {
        return make_system(model.how, model.source.vocabulary.size(), model.target.vocabulary.size());
    } catch (const heed::nn::too_many_numbers&) {
        throw heed::error("the file contradicts itself: it has " + heed::counted(numbers, "number") +
                          ", but by its options and vocabularies the model has more");
    }
}

/// Throws heed::error if a number of a file is not finite.
inline void require_finite(const system& read)
{
    if (const auto bad = read.not_finite())
        throw heed::error(*bad + "; the file is damaged, or its training diverged; use an earlier copy, or "
                                 "train again");
}

/// The metadata entry of a quantized file: the number format of its matrices, I8 or BF16.
inline constexpr const char* smaller_entry = "weights";

/// A quantized file of a model: its weights in "int8" or "bf16". Tensors shared by source and target are stored once.
/// Throws heed::error if the model is quantized already, except from "bf16" to "int8".
inline heed::io::archive to_smaller(const translator_file& model, const std::string& numbers)
{
    if (model.weights != "F32" && (numbers != "int8" || model.weights == "I8"))
        throw heed::error("its weights are " + model.weights + " already; use the model written by `translate train`");
    heed::io::archive whole = to_archive(model);
    for (const std::string what : {"vocabulary.", "raw.", "bpe."}) {
        const auto source = whole.metadata.find(what + "source"), target = whole.metadata.find(what + "target");
        if (source != whole.metadata.end() && target != whole.metadata.end() && source->second == target->second)
            whole.metadata.erase(target);
    }
    whole.metadata[smaller_entry] = numbers == "int8" ? "I8" : "BF16";
    return numbers == "int8" ? heed::io::in_int8(whole) : heed::io::in_bfloat16(whole);
}

/// The entry of a side, "source" or "target".
inline const std::string& entry_of_side(const metadata& from, const std::string& what, const std::string& side)
{
    const bool stored_once = from.contains(smaller_entry) && !from.contains(what + side);
    return entry(from, what + (stored_once ? "source" : side));
}

/// The inverse of to_archive(). Throws heed::error for archives that `translate train` does not write, before
/// allocating any sizes claimed by a damaged file.
inline translator_file from_archive(const heed::io::archive& stored)
{
    const bool int8 = heed::io::has_int8(stored);
    const heed::io::archive widened = int8 ? heed::io::in_floats(stored) : heed::io::archive();
    const heed::io::archive& archive = int8 ? widened : stored;
    if (const std::string& format = entry(archive.metadata, "format");
        format != format_name && format != first_format_name)
        throw heed::error("its format is \"" + format + "\" but this program reads \"" + format_name + "\"");
    translator_file model;
    model.how = options::read(archive.metadata);
    const bool split = model.how.bpe > 0 || archive.metadata.contains("bpe.source");
    for (const auto& [name, side] : {std::pair("source", &model.source), std::pair("target", &model.target)}) {
        side->vocabulary = heed::text::vocabulary::from_text(entry_of_side(archive.metadata, "vocabulary.", name));
        if (model.how.raw) side->raw = read_tokenizer(entry_of_side(archive.metadata, "raw.", name));
        if (split)
            side->splitting.emplace(heed::text::bpe_codes::from_text(entry_of_side(archive.metadata, "bpe.", name),
                                                                     std::string("bpe.") + name));
    }
    model.source.forgiving = true;
    check_sizes(archive, model);
    model.system = make_system_for(archive, model);
    model.system->take(archive);
    require_finite(*model.system);
    model.weights = weights_of(stored);
    model.system->prefer_int8(int8);
    return model;
}

/// Reads a model file. Throws heed::error, naming the file.
inline translator_file load_model(const std::filesystem::path& path)
{
    const heed::io::archive archive = heed::io::load(path);
    return about(path, [&] { return from_archive(archive); });
}

}  // namespace heed::translator
