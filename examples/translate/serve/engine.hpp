// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <heed/seq2seq/load.hpp>
#include <heed/translator/model_file.hpp>

#include "service.hpp"

namespace translation {

/// A trained model, or an ensemble, as a service takes it.
inline engine engine_of(const std::vector<std::filesystem::path>& paths, std::size_t batch)
{
    const auto model = heed::seq2seq::load(paths);
    engine with;
    for (const std::filesystem::path& path : paths)
        with.name += (with.name.empty() ? "" : " + ") + path.stem().string();
    with.looks = model.has_attention();
    with.tokens = [model](const std::string& line) {
        const auto& side = model.files().front().source;
        return side.tokens(heed::text::split(line)).size();
    };
    with.translate = [model, batch](const std::vector<std::string>& lines, const wishes& how) {
        std::vector<served_sentence> all;
        for (auto& each : model.translate(lines, {.beam = how.beam,
                                                 .alternatives = how.alternatives,
                                                 .batch = batch,
                                                 .length_penalty = how.length_penalty,
                                                 .coverage_penalty = how.coverage_penalty,
                                                 .block_ngrams = how.block_ngrams,
                                                 .alignments = how.alignment})) {
            served_sentence& one = all.emplace_back();
            one.source = std::move(each.source_words);
            for (auto& found : each.alternatives)
                one.best.push_back({std::move(found.text), std::move(found.words), found.score, found.log_probability,
                                    std::move(found.alignment)});
        }
        return all;
    };
    with.translate({"."}, {});  // lays out the weights for searching
    return with;
}

}  // namespace translation
