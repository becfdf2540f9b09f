// SPDX-License-Identifier: BSD-3-Clause

#include "sankaran.hpp"

#include "choice.hpp"
#include "sankaran_models.hpp"

namespace heed::translator {

namespace detail {

struct sankaran_choice {
    const char* attention;
    make_function make;
};

static const sankaran_choice sankaran_choices[] = {
    {"additive", make<makers::sankaran_additive>},
    {"temporal", make<makers::sankaran_temporal>},
    {"coverage", make<makers::sankaran_coverage>},
    {"local-m", make<makers::sankaran_local_m>},
    {"recent-temporal", make<makers::sankaran_recent_temporal>},
    {"local-temporal", make<makers::sankaran_local_temporal>},
    {"learned-temporal", make<makers::sankaran_learned_temporal>},
};

}  // namespace detail

std::unique_ptr<system> make_sankaran(const options& how, std::size_t source_words, std::size_t target_words)
{
    return detail::choice_of(detail::sankaran_choices, how.attention).make(how, source_words, target_words);
}

std::vector<expected_tensor> sankaran_claims(const options& how, std::size_t source_words, std::size_t target_words)
{
    const std::size_t E = how.embedding, H = how.hidden, A = how.alignment;
    std::vector<expected_tensor> all{{"encoder.embedding", source_words, E},
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
