// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torch/torch.h>

#include <limits>
#include <utility>
#include <vector>

#include "../search.hpp"
#include "libtorch_tensors.hpp"

/// RNNsearch in libtorch, with the weights of bench/search.cpp.
namespace bench::libtorch {

using heed::seq2seq::source_batch;

/// Row i of the result is the state of row rows[i].
inline Tensor chosen(const Tensor& state, const Tensor& rows, bool) { return state.index_select(0, rows); }

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

class rnnsearch {
public:
    rnnsearch()
    {
        const auto m = search::make_rnnsearch();
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

}  // namespace bench::libtorch
