// SPDX-License-Identifier: BSD-3-Clause

#include "rnnsearch.hpp"

#include <algorithm>
#include <initializer_list>
#include <string>

#include "choice.hpp"
#include "rnnsearch_models.hpp"

namespace heed::translator {

namespace detail {

struct rnnsearch_choice {
    const char* attention;
    make_function with_gru;
    make_function with_lstm = nullptr;
};

static const rnnsearch_choice rnnsearch_choices[] = {
    {"none", make<makers::rnnsearch_none_gru>, make<makers::rnnsearch_none_lstm>},
    {"additive", make<makers::rnnsearch_additive_gru>, make<makers::rnnsearch_additive_lstm>},
    {"additive-y", make<makers::rnnsearch_additive_y_gru>, make<makers::rnnsearch_additive_y_lstm>},
    {"per-dimension", make<makers::rnnsearch_per_dimension_gru>, make<makers::rnnsearch_per_dimension_lstm>},
    {"temporal", make<makers::rnnsearch_temporal_gru>, make<makers::rnnsearch_temporal_lstm>},
    {"location-aware", make<makers::rnnsearch_location_aware>},
    {"structural-biases", make<makers::rnnsearch_structural_biases>},
    {"fertility", make<makers::rnnsearch_fertility>},
    {"gated-coverage", make<makers::rnnsearch_gated_coverage>},
    {"recurrent", make<makers::rnnsearch_recurrent>},
    {"sparsemax", make<makers::rnnsearch_sparsemax>},
    {"entmax", make<makers::rnnsearch_entmax>},
    {"sigmoid", make<makers::rnnsearch_sigmoid>},
    {"decayed-temporal", make<makers::rnnsearch_decayed_temporal>},
    {"monotonic", make<makers::rnnsearch_monotonic>},
    {"chunkwise", make<makers::rnnsearch_chunkwise>},
    {"gated", make<makers::rnnsearch_gated>},
    {"grouped", make<makers::rnnsearch_grouped>},
};

}  // namespace detail

std::unique_ptr<system> make_rnnsearch(const options& how, std::size_t source_words, std::size_t target_words)
{
    const auto& chosen = detail::choice_of(detail::rnnsearch_choices, how.attention);
    if (how.cell != "lstm") return chosen.with_gru(how, source_words, target_words);
    if (chosen.with_lstm == nullptr)
        throw heed::error("--cell lstm is incompatible with --attention " + how.attention + ", which uses gru");
    return chosen.with_lstm(how, source_words, target_words);
}

std::vector<expected_tensor> rnnsearch_claims(const options& how, std::size_t source_words, std::size_t target_words)
{
    const std::size_t E = how.embedding, H = how.hidden, A = how.alignment;
    std::vector<expected_tensor> all{{"encoder.embedding", source_words, E},
                                     {"decoder.embedding", target_words, E},
                                     {"decoder.cell.W", E, times(how.cell == "lstm" ? 4 : 3, H)},
                                     {"decoder.W_s", H, H}};
    if (how.attention == "none") return all;
    const auto is_one_of = [&](std::initializer_list<const char*> names) {
        return std::find(names.begin(), names.end(), how.attention) != names.end();
    };
    const bool remembers =
        is_one_of({"location-aware", "structural-biases", "fertility", "gated-coverage", "recurrent"});
    const bool reads_word = how.attention == "additive-y" || how.attention == "per-dimension";
    std::string score = "decoder.attention.score.";  // the score of Bahdanau et al.; other scores wrap it
    if (reads_word || remembers) score += "base.";
    if (how.attention == "structural-biases") score += "base.base.";
    all.push_back({score + "W", H, A});
    if (reads_word) all.push_back({"decoder.attention.score.Y", E, A});
    return all;
}

}  // namespace heed::translator
