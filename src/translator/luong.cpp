// SPDX-License-Identifier: BSD-3-Clause

#include "luong.hpp"

#include <string>

#include "choice.hpp"
#include "luong_models.hpp"

namespace heed::translator {

namespace detail {

struct luong_choice {
    const char* attention;
    make_function fed;
    make_function unfed;
};

static const luong_choice luong_choices[] = {
    {"none", make<makers::luong_none>, make<makers::luong_none>},
    {"location", make<makers::luong_location_fed>, make<makers::luong_location>},
    {"concat", make<makers::luong_concat_fed>, make<makers::luong_concat>},
    {"dot", make<makers::luong_global_fed>, make<makers::luong_global>},
    {"general", make<makers::luong_global_fed>, make<makers::luong_global>},
    {"local-m-dot", make<makers::luong_local_m_fed>, make<makers::luong_local_m>},
    {"local-m-general", make<makers::luong_local_m_fed>, make<makers::luong_local_m>},
    {"local-p-dot", make<makers::luong_local_p_fed>, make<makers::luong_local_p>},
    {"local-p-general", make<makers::luong_local_p_fed>, make<makers::luong_local_p>},
};

}  // namespace detail

/// With --reverse-source, the encoder reads from the last word to the first. Annotation t belongs to word t in either
/// case, so position-based attentions (location, local-m, local-p) count from the beginning of the sentence.
std::unique_ptr<system> make_luong(const options& how, std::size_t source_words, std::size_t target_words)
{
    const auto& chosen = detail::choice_of(detail::luong_choices, how.attention);
    return (how.input_feeding ? chosen.fed : chosen.unfed)(how, source_words, target_words);
}

std::vector<expected_tensor> luong_claims(const options& how, std::size_t source_words, std::size_t target_words)
{
    if (how.layers == 0) throw heed::error("stacked cells must have at least one layer");
    const std::size_t E = how.embedding, H = how.hidden, A = how.alignment;
    std::vector<expected_tensor> all{{"encoder.embedding", source_words, E}, {"decoder.embedding", target_words, E}};
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
