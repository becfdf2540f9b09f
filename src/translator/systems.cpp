// SPDX-License-Identifier: BSD-3-Clause

#include <heed_translator/systems.hpp>

#include "choi.hpp"
#include "convs2s.hpp"
#include "luong.hpp"
#include "rnnsearch.hpp"
#include "sankaran.hpp"
#include "transformer.hpp"

namespace heed::translator {

const std::vector<system_kind>& systems()
{
    // Never destroyed: a static object may still translate at exit.
    static const std::vector<system_kind>& all = *new const std::vector<system_kind>{
        {"rnnsearch",
         "Bahdanau et al. 2015",
         {{"attention",
           {"none", "additive", "additive-y", "per-dimension", "temporal", "location-aware", "structural-biases",
            "fertility", "gated-coverage", "recurrent", "sparsemax", "entmax", "sigmoid", "decayed-temporal",
            "monotonic", "chunkwise", "gated", "grouped"},
           {}},
          {"cell", {"gru", "lstm"}, {}},
          {"embedding", {}, {}},
          {"hidden", {}, {}},
          {"alignment", {}, {}}},
         make_rnnsearch,
         rnnsearch_claims},
        {"choi",
         "Choi et al. 2018, on LSTM cells",
         {{"attention", {"additive", "additive-y", "per-dimension"}, "per-dimension"},
          {"context", {}, {}},
          {"embedding", {}, {}},
          {"hidden", {}, {}},
          {"alignment", {}, {}}},
         make_choi,
         choi_claims},
        {"sankaran",
         "Sankaran et al. 2016, on a conditional GRU",
         {{"attention",
           {"additive", "temporal", "coverage", "local-m", "recent-temporal", "local-temporal", "learned-temporal"},
           "temporal"},
          {"coverage", {}, {}},
          {"window", {}, {}},
          {"last", {}, {}},
          {"embedding", {}, {}},
          {"hidden", {}, {}},
          {"alignment", {}, {}}},
         make_sankaran,
         sankaran_claims},
        {"luong",
         "Luong et al. 2015, on stacked LSTM cells",
         {{"attention",
           {"none", "location", "dot", "general", "concat", "local-m-dot", "local-m-general", "local-p-dot",
            "local-p-general"},
           "general"},
          {"input-feeding", {}, {}},
          {"reverse-source", {}, {}},
          {"layers", {}, "2"},
          {"window", {}, {}},
          {"longest", {}, "51"},
          {"embedding", {}, {}},
          {"hidden", {}, {}},
          {"alignment", {}, {}}},
         make_luong,
         luong_claims},
        {"convs2s",
         "Gehring et al. 2017",
         {{"embedding", {}, {}}, {"hidden", {}, {}}, {"layers", {}, "4"}, {"width", {}, {}}, {"longest", {}, {}}},
         make_convs2s,
         convs2s_claims},
        {"transformer",
         "Vaswani et al. 2017",
         {{"embedding", {}, {}},
          {"hidden", {}, "1024"},
          {"layers", {}, "3"},
          {"heads", {}, "4"},
          {"norm", {"pre", "post"}, {}},
          {"positions", {"sinusoidal", "learned"}, {}},
          {"longest", {}, {}},
          {"activation", {"relu", "gelu"}, {}},
          {"share-embeddings", {"all", "output", "none"}, "all"}},
         make_transformer,
         transformer_claims},
    };
    return all;
}

const system_kind& kind_of(const std::string& name)
{
    std::vector<std::string> names;
    for (const system_kind& each : systems()) {
        if (each.name == name) return each;
        names.push_back(each.name);
    }
    throw heed::error("there is no system \"" + name + "\"; choose from " + joined(names));
}

const system_kind& kind_of(const options& how)
{
    const system_kind& kind = kind_of(how.system);
    if (const auto problem = unsuitable(how, kind)) throw heed::error(*problem);
    if (how.reverse_source && support_of("reverse-source", kind) == nullptr)
        throw heed::error(*misplaced("reverse-source", kind, systems()));
    return kind;
}

std::unique_ptr<system> make_system(const options& how, std::size_t source_words, std::size_t target_words)
{
    return kind_of(how).make(how, source_words, target_words);
}

}  // namespace heed::translator
