// SPDX-License-Identifier: BSD-3-Clause

#include "choi.hpp"

#include <string>

#include <heed/seq2seq/systems/choi2018.hpp>

#include "recurrent.hpp"
#include "system_of.hpp"

namespace heed::translator {

namespace detail {

/// With the attention that the options name, on these parts.
std::unique_ptr<system> make_choi_of(const auto& parts, const options& how, const heed::seq2seq::sizes& n)
{
    namespace attentions = heed::seq2seq::attentions;
    const auto with = [&](const auto& attention) {
        return make_system_of(heed::papers::choi2018::translator<float>(how.seed, n, attention, parts), how);
    };
    if (how.attention == "additive") return with(attentions::additive<float>{});
    if (how.attention == "additive-y") return with(attentions::additive_with_word<float>{});
    return with(attentions::per_dimension<float>{});
}

}  // namespace detail

std::unique_ptr<system> make_choi(const options& how, std::size_t source_words, std::size_t target_words)
{
    const auto n = recurrent_sizes(how, source_words, target_words);
    return how.context ? detail::make_choi_of(heed::papers::choi2018::parts_with_context(), how, n)
                       : detail::make_choi_of(heed::papers::choi2018::parts(), how, n);
}

std::vector<claim> choi_claims(const options& how, std::size_t source_words, std::size_t target_words)
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
