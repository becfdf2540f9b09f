// SPDX-License-Identifier: BSD-3-Clause

#include "sankaran.hpp"

#include <heed/seq2seq/systems/sankaran2016.hpp>

#include "recurrent.hpp"
#include "system_of.hpp"

namespace heed::translator {

std::unique_ptr<system> make_sankaran(const options& how, std::size_t source_words, std::size_t target_words)
{
    namespace attentions = heed::seq2seq::attentions;
    namespace paper = heed::papers::sankaran2016;
    const auto n = recurrent_sizes(how, source_words, target_words);
    const auto with = [&](const auto& attention) {
        return make_system_of(paper::translator<float>(how.seed, n, attention), how);
    };
    if (how.attention == "additive") return with(attentions::additive<float>{});
    if (how.attention == "coverage") return with(paper::new_coverage<float>{how.coverage});
    if (how.attention == "local-m") return with(paper::new_local_m<float>{how.window});
    if (how.attention == "recent-temporal") return with(paper::new_recent_temporal<float>{how.last});
    if (how.attention == "local-temporal") return with(paper::new_local_temporal<float>{how.window});
    return with(attentions::temporal<float>{});
}

std::vector<claim> sankaran_claims(const options& how, std::size_t source_words, std::size_t target_words)
{
    const std::size_t E = how.embedding, H = how.hidden, A = how.alignment;
    std::vector<claim> all{{"encoder.embedding", source_words, E},
                           {"decoder.embedding", target_words, E},
                           {"decoder.cell.W", E, times(3, H)},
                           {"decoder.W_s", H, H}};
    if (how.attention == "coverage") {
        all.push_back({"decoder.attention.table", source_words, how.coverage});
        all.push_back({"decoder.attention.score.base.W", H, A});
    } else {
        all.push_back({"decoder.attention.score.W", H, A});
    }
    return all;
}

}  // namespace heed::translator
