// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <heed_translator/load.hpp>
#include <heed_translator/model_file.hpp>

#include "service.hpp"

namespace translation {

/// A trained model, or an ensemble, for the service.
inline engine engine_of(const std::vector<std::filesystem::path>& paths, std::size_t batch)
{
    const auto model = heed::seq2seq::load(paths);
    engine with;
    for (const std::filesystem::path& path : paths)
        with.name += (with.name.empty() ? "" : " + ") + path.stem().string();
    with.has_attention = model.has_attention();
    with.tokens = [model](const std::string& line) {
        const auto& side = model.files().front().source;
        return side.tokens(heed::text::split(line)).size();
    };
    with.translate = [model, batch](const std::vector<std::string>& lines, const wishes& how,
                                    const std::function<bool(std::size_t)>& wanted) {
        // A search checks between two steps whether its sentences are still wanted, so a step must be short.
        constexpr std::size_t rows = 768;  // hypotheses
        std::vector<served_sentence> all;
        for (auto& each : model.translate(lines, {.beam = how.beam,
                                                 .alternatives = how.alternatives,
                                                 .batch = std::clamp<std::size_t>(rows / how.beam, 1, batch),
                                                 .length_penalty = how.length_penalty,
                                                 .coverage_penalty = how.coverage_penalty,
                                                 .block_ngrams = how.block_ngrams,
                                                 .alignments = how.alignment,
                                                 .wanted = wanted})) {
            served_sentence& one = all.emplace_back();
            one.source = std::move(each.source_words);
            for (auto& found : each.alternatives)
                one.best.push_back({std::move(found.text), std::move(found.words), found.score, found.log_probability,
                                    std::move(found.alignment)});
        }
        return all;
    };
    // The example sentence of the documentation, if all its words are in the model's vocabulary.
    const auto& side = model.files().front().source;
    const std::string usual = side.raw ? "A man is sleeping." : "a man is sleeping .";
    const heed::text::sentence words = heed::text::split(usual);
    const auto ids = side.encode(words);
    if (ids.size() == side.shown(words).size() &&
        std::find(ids.begin(), ids.end(), heed::text::vocabulary::unk) == ids.end())
        with.examples = {usual};
    with.translate({"."}, {}, {});  // prepares the weights for searching
    return with;
}

}  // namespace translation
