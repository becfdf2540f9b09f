// SPDX-License-Identifier: BSD-3-Clause

#include "rnnsearch.hpp"

#include <algorithm>
#include <initializer_list>
#include <string>

#include "rnnsearch_of.hpp"

namespace heed::translator {

std::unique_ptr<system> detail::make_rnnsearch_of_gru(const options& how, std::size_t source_words,
                                                      std::size_t target_words)
{
    return make_rnnsearch_of(heed::nn::new_gru{}, how, source_words, target_words);
}

namespace detail {

inline bool is_one_of(const std::string& name, std::initializer_list<const char*> names)
{
    return std::find(names.begin(), names.end(), name) != names.end();
}

inline bool remembers(const std::string& attention)
{
    return is_one_of(attention, {"location-aware", "structural-biases", "fertility", "gated-coverage", "recurrent"});
}

inline bool weighs_otherwise(const std::string& attention)
{
    return is_one_of(attention, {"sparsemax", "entmax", "sigmoid", "fading-temporal", "gated", "grouped"});
}

}  // namespace detail

std::unique_ptr<system> make_rnnsearch(const options& how, std::size_t source_words, std::size_t target_words)
{
    const bool others = detail::remembers(how.attention) || detail::weighs_otherwise(how.attention);
    if (others && how.cell == "lstm")
        throw heed::error("--cell lstm does not go together with --attention " + how.attention + ", which has gru");
    const auto make = detail::remembers(how.attention)          ? detail::make_rnnsearch_remembering
                      : detail::weighs_otherwise(how.attention) ? detail::make_rnnsearch_weighing
                      : how.cell == "lstm"                      ? detail::make_rnnsearch_of_lstm
                                                                : detail::make_rnnsearch_of_gru;
    return make(how, source_words, target_words);
}

std::vector<claim> rnnsearch_claims(const options& how, std::size_t source_words, std::size_t target_words)
{
    const std::size_t E = how.embedding, H = how.hidden, A = how.alignment;
    std::vector<claim> all{{"encoder.embedding", source_words, E},
                           {"decoder.embedding", target_words, E},
                           {"decoder.cell.W", E, times(how.cell == "lstm" ? 4 : 3, H)},
                           {"decoder.W_s", H, H}};
    if (how.attention == "none") return all;
    const bool reads_word = how.attention == "additive-y" || how.attention == "per-dimension";
    std::string score = "decoder.attention.score.";  // of Bahdanau et al.; others are laid around it
    if (reads_word || detail::remembers(how.attention)) score += "base.";
    if (how.attention == "structural-biases") score += "base.base.";
    all.push_back({score + "W", H, A});
    if (reads_word) all.push_back({"decoder.attention.score.Y", E, A});
    return all;
}

}  // namespace heed::translator
