// SPDX-License-Identifier: BSD-3-Clause

#include <heed_translator/search.hpp>

#include <algorithm>
#include <limits>

#include <heed/gemm/blas.hpp>
#include <heed/seq2seq/decoding.hpp>
#include <heed/seq2seq/ensemble.hpp>
#include <heed/seq2seq/greedy.hpp>

namespace heed::translator {

std::unique_ptr<heed::seq2seq::decoding<float>> models::decode(const heed::seq2seq::source_batch& sentences) const
{
    if (members_.size() == 1) return members_.front()->decode(sentences);
    std::vector<std::unique_ptr<heed::seq2seq::decoding<float>>> parts;
    for (const system* each : members_) parts.push_back(each->decode(sentences));
    return std::make_unique<heed::seq2seq::ensemble<float>>(std::move(parts));
}

std::vector<heed::seq2seq::forced_decoding<float>> models::force(const heed::seq2seq::source_batch& sentences,
                                                                 const std::vector<const id_sentence*>& targets,
                                                                 bool with_weights) const
{
    const auto at_work = decode(sentences);
    return heed::seq2seq::force(*at_work, sentences.real, targets, {.with_weights = with_weights});
}

std::vector<translator_file> load_models(const std::vector<std::filesystem::path>& paths)
{
    std::vector<translator_file> all;
    for (const std::filesystem::path& path : paths) {
        all.push_back(load_model(path));
        const auto differ = [&](const std::string& what, const std::string& right) {
            throw heed::error(path.string() + ": " + what + " as " + paths.front().string() +
                              "; the models of an ensemble must have " + right);
        };
        const std::string words = "the same vocabularies and byte-pair codes";
        const translator_file &first = all.front(), &last = all.back();
        if (!(last.source.vocabulary == first.source.vocabulary) || last.source.codes() != first.source.codes())
            differ("does not read the same words", words);
        if (!(last.target.vocabulary == first.target.vocabulary) || last.target.codes() != first.target.codes())
            differ("does not write the same words", words);
        if (!last.source.same_raw(first.source) || !last.target.same_raw(first.target))
            differ("does not split raw text into the same tokens", "been trained with --raw on the same text");
    }
    return all;
}

std::vector<translations> search_all(const models& with, const std::vector<id_sentence>& sources,
                                     std::size_t batch_size, const search_options& how, bool with_weights,
                                     const heed::seq2seq::candidate_lists* only, const watch_search& watch)
{
    // Options that require beam search. Without them, greedy decoding gives the result of a beam of 1 faster.
    const bool greedy = how.beam == 1 && how.block_ngrams == 0 && how.min_length == 0;
    std::vector<translations> all(sources.size());
    const heed::batch_invariant guard;  // the numbers of a sentence do not depend on the other sentences of its batch
    if (watch && !watch(0)) return all;
    std::size_t number = 0;
    for (const auto& which : batches_by_length(sources, batch_size)) {
        if (!how.part.has(number++)) continue;
        std::function<bool(std::size_t)> wanted;
        if (how.wanted) wanted = [&](std::size_t k) { return how.wanted(which[k]); };
        if (wanted && std::none_of(which.begin(), which.end(), how.wanted)) {
            if (watch && !watch(which.size())) break;
            continue;
        }
        const auto some = heed::seq2seq::make_source(chosen(sources, which));
        const auto at_work = with.decode(some);
        if (only != nullptr) at_work->restrict_to(only->of(some, at_work->vocabulary()));
        if (greedy) {
            auto done = heed::seq2seq::greedy(
                *at_work, some.real, {.at_most = how.at_most(), .with_weights = with_weights, .wanted = wanted});
            for (std::size_t k = 0; k < which.size(); ++k) {
                const bool left = done[k].log_probability == -std::numeric_limits<double>::infinity();
                if (!left) all[which[k]].push_back(std::move(done[k]));
            }
        } else {
            auto options = how.beam_options(with_weights);
            options.wanted = wanted;
            auto done = heed::seq2seq::beam(*at_work, some.real, options);
            for (std::size_t k = 0; k < which.size(); ++k) all[which[k]] = std::move(done[k]);
        }
        if (watch && !watch(which.size())) break;
    }
    return all;
}

}  // namespace heed::translator
