// SPDX-License-Identifier: BSD-3-Clause
#include "systems.hpp"

#include "systems/rnnsearch.hpp"
#include "systems/transformer.hpp"

namespace translation {

const std::vector<system_kind>& systems()
{
    static const std::vector<system_kind> all{
        {"rnnsearch",
         "Bahdanau et al. 2015",
         {{"attention", {"none", "additive", "additive-y", "per-dimension", "temporal"}, {}},
          {"cell", {"gru", "lstm"}, {}},
          {"embedding", {}, {}},
          {"hidden", {}, {}},
          {"alignment", {}, {}}},
         make_rnnsearch,
         rnnsearch_claims},
        {"transformer",
         "Vaswani et al. 2017",
         {{"embedding", {}, {}},
          {"hidden", {}, "1024"},
          {"layers", {}, "3"},
          {"heads", {}, "4"},
          {"norm", {"before", "after"}, {}},
          {"positions", {"waves", "learned"}, {}},
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
    throw heed::error("there is no system \"" + name + "\"; there is " + joined(names));
}

const system_kind& kind_of(const options& how)
{
    const system_kind& kind = kind_of(how.system);
    if (const auto problem = unsuitable(how, kind)) throw heed::error(*problem);
    return kind;
}

std::unique_ptr<system> make_system(const options& how, std::size_t source_words, std::size_t target_words)
{
    return kind_of(how).make(how, source_words, target_words);
}

}  // namespace translation
