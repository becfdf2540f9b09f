// SPDX-License-Identifier: BSD-3-Clause

#include "luong.hpp"

#include <string>

#include "luong_of.hpp"

namespace heed::translator {

/// With --reverse-source the encoder reads from the last word to the first. Annotation t is that of word t either way,
/// so attentions that know positions (location, local-m, local-p) count from the beginning of the sentence.
std::unique_ptr<system> make_luong(const options& how, std::size_t source_words, std::size_t target_words)
{
    namespace paper = heed::papers::luong2015;
    const auto reads = detail::direction_of(how);
    const auto n = detail::luong_sizes(how, source_words, target_words);
    if (how.attention == "none") {
        return make_system_of(paper::translator<float>(how.seed, n, heed::seq2seq::attentions::none<float>{},
                                                       paper::parts_without_attention(how.layers, reads)),
                              how);
    }
    if (how.input_feeding) return detail::make_luong_fed(how, source_words, target_words);
    return detail::make_luong_of(paper::parts_without_feeding(how.layers, reads), how, n);
}

std::vector<claim> luong_claims(const options& how, std::size_t source_words, std::size_t target_words)
{
    if (how.layers == 0) throw heed::error("stacked cells without a layer");
    const std::size_t E = how.embedding, H = how.hidden, A = how.alignment;
    std::vector<claim> all{{"encoder.embedding", source_words, E}, {"decoder.embedding", target_words, E}};
    const std::string last = std::to_string(how.layers - 1);
    for (const char* side : {"encoder", "decoder"}) {
        all.push_back({std::string(side) + ".cell.layers.0.W", E, times(4, H)});
        all.push_back({side + (".cell.layers." + last) + ".U", H, times(4, H)});
    }
    all.push_back({"decoder.W_o", H, target_words});
    if (how.attention == "location") all.push_back({"decoder.attention.score.W", H, how.longest});
    if (how.attention == "concat") all.push_back({"decoder.attention.score.W", times(2, H), A});
    if (how.attention.starts_with("local-p")) all.push_back({"decoder.attention.normalize.W_p", H, A});
    return all;
}

}  // namespace heed::translator
