// SPDX-License-Identifier: BSD-3-Clause
#include "luong.hpp"

#include <fmt/format.h>

#include "luong_of.hpp"

namespace translation {

/// The encoder reads forwards: --reverse-source hands it the words from the last to the first.
std::unique_ptr<system> make_luong(const options& how, std::size_t source_words, std::size_t target_words)
{
    namespace paper = heed::papers::luong2015;
    constexpr auto forward = heed::seq2seq::direction::forward;
    const auto n = recurrent_sizes(how, source_words, target_words);
    if (how.attention == "none") {
        return make_system_of(paper::translator<float>(how.seed, n, heed::seq2seq::attentions::none<float>{},
                                                       paper::parts_without_attention(how.layers, forward)),
                              how);
    }
    if (how.input_feeding) return detail::make_luong_fed(how, source_words, target_words);
    return detail::make_luong_of(paper::parts_without_feeding(how.layers, forward), how, n);
}

std::vector<claim> luong_claims(const options& how, std::size_t source_words, std::size_t target_words)
{
    const std::size_t E = how.embedding, H = how.hidden;
    std::vector<claim> all{{"encoder.embedding", source_words, E}, {"decoder.embedding", target_words, E}};
    (void)H;
    return all;
}

}  // namespace translation
