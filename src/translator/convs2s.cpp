// SPDX-License-Identifier: BSD-3-Clause

#include "convs2s.hpp"

#include <string>

#include "choice.hpp"
#include "convs2s_models.hpp"

namespace heed::translator {

std::unique_ptr<system> make_convs2s(const options& how, std::size_t source_words, std::size_t target_words)
{
    return make<makers::convs2s>(how, source_words, target_words);
}

std::vector<expected_tensor> convs2s_claims(const options& how, std::size_t source_words, std::size_t target_words)
{
    const std::size_t E = how.embedding, H = how.hidden;
    if (how.layers == 0) throw heed::error("a ConvS2S must have at least one layer");
    std::vector<expected_tensor> all{{"encoder.embedding", source_words, E}, {"decoder.embedding", target_words, E}};
    for (const char* side : {"encoder", "decoder"})
        all.push_back({std::string(side) + ".positions.table", how.longest, E});
    all.push_back({"encoder.W_in", E, H});
    const std::string last = std::to_string(how.layers - 1);
    all.push_back({"encoder.blocks." + last + ".W", times(how.width, H), times(2, H)});
    all.push_back({"decoder.layers." + last + ".convolution.W", times(how.width, H), times(2, H)});
    return all;
}

}  // namespace heed::translator
