// SPDX-License-Identifier: BSD-3-Clause

#include "choi.hpp"

#include <string>

#include "choi_models.hpp"
#include "choice.hpp"

namespace heed::translator {

namespace detail {

struct choi_choice {
    const char* attention;
    make_function alone;
    make_function with_context;
};

static const choi_choice choi_choices[] = {
    {"additive", make<makers::choi_additive>, make<makers::choi_additive_context>},
    {"additive-y", make<makers::choi_additive_y>, make<makers::choi_additive_y_context>},
    {"per-dimension", make<makers::choi_per_dimension>, make<makers::choi_per_dimension_context>},
};

}  // namespace detail

std::unique_ptr<system> make_choi(const options& how, std::size_t source_words, std::size_t target_words)
{
    const auto& chosen = detail::choice_of(detail::choi_choices, how.attention);
    return (how.context ? chosen.with_context : chosen.alone)(how, source_words, target_words);
}

std::vector<expected_tensor> choi_claims(const options& how, std::size_t source_words, std::size_t target_words)
{
    const std::size_t E = how.embedding, H = how.hidden, A = how.alignment;
    const std::string words = how.context ? "embedding.words" : "embedding";
    const std::string score =
        how.attention == "additive" ? "decoder.attention.score.W" : "decoder.attention.score.base.W";
    return {{"encoder." + words, source_words, E},
            {"decoder." + words, target_words, E},
            {"decoder.cell.W", E, times(4, H)},
            {"decoder.W_s", H, H},
            {score, H, A}};
}

}  // namespace heed::translator
