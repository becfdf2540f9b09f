// SPDX-License-Identifier: BSD-3-Clause

// The peer: libtorch searches with the models and weights of bench/search.cpp, which starts this program and sends it
// requests.
//
// Two compositions. `plain`, as an experienced user would write it: no autograd, keys and annotations repeated for the
// hypotheses once, the state reordered by index_select, log_softmax and topk over all continuations of a sentence.
// `tuned` is as fast as libtorch's operations allow: one product for the matrices that multiply the word, and one for
// the state; keys and annotations [B,T,.] are never copied, and attention reads the hypotheses as [B,K,.] (a broadcast
// sum, then a batched product); the Transformer's cached keys and values are copied once per step; topk of each row and
// then among these; finished sentences leave the batch. PEER_WAY in the environment selects one; each further word in
// it disables one optimization of `tuned`.

#include <torch/torch.h>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../search.hpp"
#include "libtorch_rnnsearch.hpp"
#include "libtorch_transformer.hpp"

namespace {

using at::Tensor;
using heed::seq2seq::source_batch;

struct ways {
    bool tuned = false;
    bool top_of_all =
        false;  // topk over all K·V continuations of a sentence, instead of each row's and then among these
    bool keep_all = false;    // finished sentences stay in the batch
    bool chosen_sum = false;  // topk of the logits and logsumexp, instead of log_softmax and topk
};

ways chosen_ways()
{
    const char* way = std::getenv("PEER_WAY");
    const std::string text = way == nullptr ? "" : way;
    const auto has = [&](const char* word) { return text.find(word) != std::string::npos; };
    const bool tuned = has("tuned");
    return {tuned, !tuned || has("all"), !tuned || has("keep"), has("sum")};
}

constexpr int64_t end_word = 3, begin_word = 2;

std::vector<int64_t> limits_of(const source_batch& batch)
{
    std::vector<int64_t> limits;
    for (std::size_t s = 0; s < batch.words.batch; ++s) limits.push_back(static_cast<int64_t>(batch.real[s]));
    return limits;
}

template <class Model>
double greedy(const Model& m, const source_batch& batch, const ways& how)
{
    auto [annotations, state] = m.encode(batch);
    auto memory = m.prepare(annotations, batch);
    auto limits = limits_of(batch);
    auto previous = at::full({static_cast<int64_t>(limits.size())}, begin_word, at::kLong);
    std::vector<std::vector<int64_t>> words(limits.size());
    std::vector<std::size_t> sentence(limits.size());
    for (std::size_t s = 0; s < sentence.size(); ++s) sentence[s] = s;
    double digest = 0;
    std::size_t open = sentence.size();
    for (int64_t step = 0; open > 0; ++step) {
        const Tensor logits = how.tuned ? m.step(memory, state, previous) : m.plain_step(memory, state, previous);
        const auto best = logits.max(1);
        previous = std::get<1>(best);
        const auto sums = at::logsumexp(logits, 1);
        std::vector<int64_t> staying;
        for (std::size_t r = 0; r < sentence.size(); ++r) {
            if (sentence[r] == words.size()) continue;
            const auto row = static_cast<int64_t>(r);
            const bool over = step >= limits[sentence[r]];
            const auto word = over ? end_word : previous.data_ptr<int64_t>()[row];
            digest += static_cast<double>((over ? logits.data_ptr<float>()[row * logits.size(1) + end_word]
                                                : std::get<0>(best).data_ptr<float>()[row]) -
                                          sums.data_ptr<float>()[row]);
            if (word == end_word) {
                sentence[r] = words.size();
                --open;
            } else {
                words[sentence[r]].push_back(word);
                staying.push_back(row);
            }
        }
        if (how.keep_all || open == 0 || 8 * staying.size() > 7 * sentence.size()) continue;
        const auto rows = at::tensor(staying);
        for (std::size_t r = 0; r < staying.size(); ++r) sentence[r] = sentence[static_cast<std::size_t>(staying[r])];
        sentence.resize(staying.size());
        memory = memory.rows(rows);
        state = bench::libtorch::chosen(state, rows, !how.tuned);
        previous = previous.index_select(0, rows);
    }
    return digest;
}

template <class Model>
double beam(const Model& m, const source_batch& batch, int64_t K, const ways& how)
{
    auto [annotations, state] = m.encode(batch);
    auto memory = m.prepare(annotations, batch);
    auto limits = limits_of(batch);
    auto B = static_cast<int64_t>(limits.size());
    auto previous = at::full({B}, begin_word, at::kLong);
    auto scores = at::zeros({B, 1});  // of the hypotheses
    std::vector<Tensor> words, parents;
    std::vector<bool> over(limits.size(), false);
    double digest = 0;
    std::size_t open = limits.size();
    for (int64_t step = 0; open > 0; ++step) {
        Tensor logits = how.tuned ? m.step(memory, state, previous) : m.plain_step(memory, state, previous);  // [B·k,V]
        const auto k = scores.size(1), V = logits.size(1);
        Tensor end;  // [B,k] log p of the end word, needed when a limit is reached
        Tensor best, chosen, parent;
        if (how.chosen_sum) {
            const auto sums = at::logsumexp(logits, 1, true);
            end = (logits.narrow(1, end_word, 1) - sums).view({B, k});
            auto [top, which] = logits.topk(K, 1);
            std::tie(best, chosen) = (top.sub_(sums).view({B, k, K}) + scores.unsqueeze(2)).view({B, k * K}).topk(K, 1);
            parent = at::div(chosen, K, "floor");
            chosen = which.view({B, k * K}).gather(1, chosen);
        } else {
            auto log_p = at::log_softmax(logits, 1);
            end = log_p.narrow(1, end_word, 1).clone().view({B, k});
            if (how.top_of_all) {
                std::tie(best, chosen) = log_p.view({B, k, V}).add_(scores.unsqueeze(2)).view({B, k * V}).topk(K, 1);
                parent = at::div(chosen, V, "floor");
                chosen = at::remainder(chosen, V);
            } else {
                auto [top, which] = log_p.topk(K, 1);
                std::tie(best, chosen) = (top.view({B, k, K}) + scores.unsqueeze(2)).view({B, k * K}).topk(K, 1);
                parent = at::div(chosen, K, "floor");
                chosen = which.view({B, k * K}).gather(1, chosen);
            }
        }
        std::vector<int64_t> staying;
        for (int64_t s = 0; s < B; ++s) {
            const auto at = static_cast<std::size_t>(s);
            if (over[at]) continue;
            if (step >= limits[at]) {
                digest += (scores[s] + end[s]).max().item<double>();
                over[at] = true;
                --open;
            } else {
                staying.push_back(s);
            }
        }
        words.push_back(chosen);
        parents.push_back(parent);
        const auto first = at::arange(B).mul_(k).unsqueeze(1);
        auto rows = (parent + first).view({-1});
        if (!how.keep_all && open > 0 && 8 * staying.size() <= 7 * over.size()) {
            const auto those = at::tensor(staying);
            rows = rows.view({B, K}).index_select(0, those).view({-1});
            memory = memory.rows(those);
            best = best.index_select(0, those);
            chosen = chosen.index_select(0, those);
            std::vector<int64_t> left;
            for (const auto s : staying) left.push_back(limits[static_cast<std::size_t>(s)]);
            limits = left;
            B = static_cast<int64_t>(limits.size());
            over.assign(limits.size(), false);
        }
        state = bench::libtorch::chosen(state, rows, !how.tuned);
        if (!how.tuned && step == 0) memory = memory.rows(at::arange(B).repeat_interleave(K));
        previous = chosen.reshape({-1});
        scores = best;
    }
    return digest;
}

/// A model with its search functions.
using searching = std::function<double(const bench::search::work&, const source_batch&)>;

template <class Model>
searching search_with(std::shared_ptr<const Model> m, const ways& how)
{
    return [m, how](const bench::search::work& what, const source_batch& batch) {
        return what.width == 0 ? greedy(*m, batch, how) : beam(*m, batch, static_cast<int64_t>(what.width), how);
    };
}

searching make(const std::string& model, const ways& how)
{
    using namespace bench::libtorch;
    if (model == "rnnsearch") return search_with(std::make_shared<const rnnsearch>(), how);
    return search_with(std::make_shared<const transformer>(bench::search::size_of(model)), how);
}

}  // namespace

int main()
{
    const c10::InferenceMode guard;
    const char* said = std::getenv("OMP_NUM_THREADS");
    const int threads = said == nullptr ? 1 : std::atoi(said);
    at::set_num_threads(threads);
    const ways how = chosen_ways();
    std::map<std::string, searching> models;
    for (std::string name; std::getline(std::cin, name);) {
        for (const auto& what : bench::search::works()) {
            if (what.name != name) continue;
            searching& model = models[what.model];
            if (!model) model = make(what.model, how);
            const auto batches = bench::search::batches(what.batch);
            const double begin = bench::search::now(threads);
            double digest = 0;
            for (const auto& batch : batches) digest += model(what, batch);
            const double seconds = bench::search::now(threads) - begin;
            std::cout << seconds << ' ' << digest << std::endl;
        }
    }
    return 0;
}
