// SPDX-License-Identifier: BSD-3-Clause

#include "transformer.hpp"

#include <string>

#include "choice.hpp"
#include "transformer_models.hpp"

namespace heed::translator {

std::unique_ptr<system> make_transformer(const options& how, std::size_t source_words, std::size_t target_words)
{
    return make<makers::transformer>(how, source_words, target_words);
}

std::vector<expected_tensor> transformer_claims(const options& how, std::size_t source_words, std::size_t target_words)
{
    const std::size_t E = how.embedding, H = how.hidden;
    std::vector<expected_tensor> all;
    if (how.share_embeddings == "all") {
        all.push_back({"words.table", source_words, E});
        all.push_back({"words.table", target_words, E});
    } else {
        all.push_back({"words.source", source_words, E});
        all.push_back({"words.target", target_words, E});
        if (how.share_embeddings == "none") all.push_back({"words.W", E, target_words});
    }
    if (how.positions == "learned") all.push_back({"positions.table", how.longest, E});
    if (how.layers == 0) throw heed::error("a Transformer must have at least one layer");
    for (const char* side : {"encoder", "decoder"}) {
        const std::string last = side + ("." + std::to_string(how.layers - 1)) + ".";
        all.push_back({last + "feed_forward.W_1", E, H});
        all.push_back({last + (side[0] == 'e' ? "attention.W_Q" : "cross.W_Q"), E, E});
    }
    return all;
}

}  // namespace heed::translator
