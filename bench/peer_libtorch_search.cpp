// SPDX-License-Identifier: BSD-3-Clause

// The peer: libtorch searching with the same model and the same weights as bench/search.cpp, which starts and queries
// this program.
//
// Two compositions. `plain`, as an experienced user would write it: no autograd, keys and annotations repeated for the
// hypotheses once, the state reordered by index_select, log_softmax and topk over all continuations of a sentence.
// `tuned` is as fast as libtorch's operations allow: one product each for the matrices that multiply the word and the
// state; keys and annotations [B,T,.] are never copied, the attention sees the hypotheses as [B,K,.] (a broadcast sum,
// then a batched product); topk of each row and then among these; finished sentences leave the batch. PEER_WAY in the
// environment chooses; other words in it each undo one of the optimisations of `tuned`.

#include <torch/torch.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "search.hpp"

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

template <class X>
Tensor tensor_of(const X& x)
{
    const auto view = heed::view_of(x);
    std::vector<int64_t> shape(view.shape.begin(), view.shape.end());
    auto result = at::empty(shape, at::kFloat);
    std::memcpy(result.data_ptr<float>(), view.data, view.size() * sizeof(float));
    return result;
}

struct unit {
    Tensor W, b, U, U_h;

    template <class G>
    static unit of(const G& gru)
    {
        return {tensor_of(gru.W), tensor_of(gru.b), tensor_of(gru.U), tensor_of(gru.U_h)};
    }

    /// input [R,3H] (z|r|h), state [R,H]
    Tensor step(const Tensor& input, const Tensor& state, const Tensor& recurrent) const
    {
        const auto H = state.size(1);
        const auto parts = input.split_with_sizes({2 * H, H}, 1);
        const auto gates = at::add(parts[0], recurrent).sigmoid_().chunk(2, 1);
        const auto candidate = at::addmm(parts[1], gates[1] * state, U_h).tanh_();
        return at::lerp(state, candidate, gates[0]);
    }
};

class model {
public:
    model()
    {
        const auto m = bench::search::make_model();
        source_table = tensor_of(m.encoder.embedding);
        forward = unit::of(m.encoder.forward);
        backward = unit::of(m.encoder.backward);
        forward_start = tensor_of(m.encoder.forward_start.value);
        backward_start = tensor_of(m.encoder.backward_start.value);
        const auto& d = m.decoder;
        W = tensor_of(d.attention.score.W);
        U = tensor_of(d.attention.score.U);
        v = tensor_of(d.attention.score.v);
        target_table = tensor_of(d.embedding);
        cell = unit::of(d.cell);
        C = tensor_of(d.asks.C);
        W_s = tensor_of(d.start.W_s);
        b_s = tensor_of(d.start.b_s);
        U_o = tensor_of(d.readout.U_o);
        C_o = tensor_of(d.readout.C_o);
        W_o = tensor_of(d.readout.W_o);
        b = tensor_of(d.readout.b);
        const auto V_o = tensor_of(d.readout.V_o);
        b_o = tensor_of(d.readout.b_o);
        input = at::cat({cell.W, C}, 0);
        output = at::cat({U_o, V_o, C_o}, 0);
        word = at::cat({cell.W, V_o}, 1);
        word_bias = at::cat({cell.b, b_o}, 0);
        state_weights = at::cat({W, cell.U}, 1);
    }

    /// annotations [B,T,2H], the first state [B,H]
    std::pair<Tensor, Tensor> encode(const source_batch& batch) const
    {
        const auto T = static_cast<int64_t>(batch.words.steps), B = static_cast<int64_t>(batch.words.batch);
        auto ids = at::empty({T, B}, at::kLong);
        std::copy(batch.words.ids.begin(), batch.words.ids.end(), ids.data_ptr<int64_t>());
        const auto x = at::embedding(source_table, ids).view({T * B, -1});
        auto over = at::zeros({T, B, 1}, at::kBool);
        bool any = false;
        for (int64_t t = 0; t < T; ++t) {
            for (int64_t s = 0; s < B; ++s) {
                const bool is = static_cast<std::size_t>(t) >= batch.real[static_cast<std::size_t>(s)];
                over.data_ptr<bool>()[t * B + s] = is;
                any = any || is;
            }
        }
        std::vector<Tensor> halves;
        Tensor first;
        for (const bool reversed : {false, true}) {
            const unit& d = reversed ? backward : forward;
            const auto inputs = at::addmm(d.b, x, d.W).view({T, B, -1});
            Tensor state = (reversed ? backward_start : forward_start).unsqueeze(0).expand({B, -1});
            std::vector<Tensor> states(static_cast<std::size_t>(T));
            for (int64_t i = 0; i < T; ++i) {
                const int64_t t = reversed ? T - 1 - i : i;
                auto next = d.step(inputs[t], state, at::mm(state, d.U));
                if (any) next = at::where(over[t], state, next);
                states[static_cast<std::size_t>(t)] = state = next;
            }
            if (reversed) first = state;
            halves.push_back(at::stack(states, 1));
        }
        return {at::cat(halves, 2), at::addmm(b_s, first, W_s).tanh_()};
    }

    struct memory {
        Tensor annotations, keys, padding;  // [B,T,2H], [B,T,A], [B,1,T]

        memory rows(const Tensor& which) const
        {
            return {annotations.index_select(0, which), keys.index_select(0, which), padding.index_select(0, which)};
        }
    };

    memory prepare(const Tensor& annotations, const source_batch& batch) const
    {
        const auto B = annotations.size(0), T = annotations.size(1);
        auto padding = at::zeros({B, 1, T}, at::kBool);
        for (int64_t s = 0; s < B; ++s) {
            for (int64_t t = 0; t < T; ++t)
                padding.data_ptr<bool>()[s * T + t] =
                    static_cast<std::size_t>(t) >= batch.real[static_cast<std::size_t>(s)];
        }
        return {annotations, at::mm(annotations.view({B * T, -1}), U).view({B, T, -1}), padding};
    }

    /// The textbook step: one row of the memory per hypothesis.
    Tensor plain_step(const memory& m, Tensor& state, const Tensor& previous) const
    {
        const auto y = at::embedding(target_table, previous);
        const auto hidden = at::tanh(m.keys + at::mm(state, W).unsqueeze(1));  // [R,T,A]
        const auto scores =
            at::matmul(hidden, v).masked_fill(m.padding.squeeze(1), -std::numeric_limits<float>::infinity());
        const auto context = at::bmm(at::softmax(scores, 1).unsqueeze(1), m.annotations).squeeze(1);
        state = cell.step(at::addmm(cell.b, at::cat({y, context}, 1), input), state, at::mm(state, cell.U));
        const auto before = at::addmm(b_o, at::cat({state, y, context}, 1), output);
        return at::addmm(b, std::get<0>(before.view({before.size(0), -1, 2}).max(2)), W_o);
    }

    /// One step of B sentences with K hypotheses each: the logits [B·K,V]; `state` becomes the next.
    Tensor step(const memory& m, Tensor& state, const Tensor& previous) const
    {
        const auto B = m.keys.size(0), T = m.keys.size(1), A = m.keys.size(2), K = state.size(0) / B;
        const auto from_word = at::addmm(word_bias, at::embedding(target_table, previous), word);
        const auto word_parts =
            from_word.split_with_sizes({3 * state.size(1), from_word.size(1) - 3 * state.size(1)}, 1);
        const auto from_state = at::mm(state, state_weights).split_with_sizes({A, 2 * state.size(1)}, 1);
        const auto hidden = at::add(m.keys.unsqueeze(1), from_state[0].view({B, K, 1, A})).tanh_();  // [B,K,T,A]
        const auto scores = at::mv(hidden.view({B * K * T, A}), v).view({B, K, T});
        const auto weights = at::softmax(scores.masked_fill_(m.padding, -std::numeric_limits<float>::infinity()), 2);
        const auto context = at::bmm(weights, m.annotations).view({B * K, -1});
        state = cell.step(at::addmm(word_parts[0], context, C), state, from_state[1]);
        const auto before = at::addmm(word_parts[1], state, U_o).addmm_(context, C_o);
        const auto readout = std::get<0>(before.view({B * K, -1, 2}).max(2));
        return at::addmm(b, readout, W_o);
    }

private:
    Tensor source_table, target_table, forward_start, backward_start;
    unit forward, backward, cell;
    Tensor W, U, v, C, W_s, b_s, U_o, C_o, W_o, b, b_o, input, output, word, word_bias, state_weights;
};

constexpr int64_t end_word = 3, begin_word = 2;

std::vector<int64_t> limits_of(const source_batch& batch)
{
    std::vector<int64_t> limits;
    for (std::size_t s = 0; s < batch.words.batch; ++s) limits.push_back(static_cast<int64_t>(batch.real[s]));
    return limits;
}

double greedy(const model& m, const source_batch& batch, const ways& how)
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
        const auto logits = how.tuned ? m.step(memory, state, previous) : m.plain_step(memory, state, previous);
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
        state = state.index_select(0, rows);
        previous = previous.index_select(0, rows);
    }
    return digest;
}

double beam(const model& m, const source_batch& batch, int64_t K, const ways& how)
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
        auto logits = how.tuned ? m.step(memory, state, previous) : m.plain_step(memory, state, previous);  // [B·k,V]
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
        state = state.index_select(0, rows);
        if (!how.tuned && step == 0) memory = memory.rows(at::arange(B).repeat_interleave(K));
        previous = chosen.reshape({-1});
        scores = best;
    }
    return digest;
}

}  // namespace

int main()
{
    const c10::InferenceMode guard;
    const char* said = std::getenv("OMP_NUM_THREADS");
    const int threads = said == nullptr ? 1 : std::atoi(said);
    at::set_num_threads(threads);
    const model m;
    const ways how = chosen_ways();
    for (std::string name; std::getline(std::cin, name);) {
        for (const auto& what : bench::search::works()) {
            if (what.name != name) continue;
            const auto batches = bench::search::batches(what.batch);
            const double begin = bench::search::now(threads);
            double digest = 0;
            for (const auto& batch : batches) {
                digest +=
                    what.width == 0 ? greedy(m, batch, how) : beam(m, batch, static_cast<int64_t>(what.width), how);
            }
            const double seconds = bench::search::now(threads) - begin;
            std::cout << seconds << ' ' << digest << std::endl;
        }
    }
    return 0;
}
