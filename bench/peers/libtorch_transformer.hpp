// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torch/torch.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "../search.hpp"
#include "libtorch_tensors.hpp"

/// The Transformer in libtorch, with the weights of bench/search.cpp.
namespace bench::libtorch {

using heed::seq2seq::source_batch;

/// The keys and values that a decoder layer caches, [R,n,S,d].
struct kept_words {
    Tensor keys, values;
};

struct transformer_state {
    std::vector<kept_words> layers;
    int64_t words = 0;
    Tensor rows;  // pending selection: the next step copies once, with its word appended
};

/// Row i of the result is the cache of row rows[i].
inline transformer_state chosen(const transformer_state& state, const Tensor& rows, bool at_once)
{
    transformer_state next{state.layers, state.words, {}};
    if (!at_once) {
        next.rows = rows;
        return next;
    }
    for (auto& each : next.layers) {
        each.keys = each.keys.index_select(0, rows);
        each.values = each.values.index_select(0, rows);
    }
    return next;
}

class transformer {
    struct norm {
        Tensor gain, bias;

        template <class Norm>
        static norm of(const Norm& from)
        {
            return {tensor_of(from.gain), tensor_of(from.bias)};
        }
        Tensor operator()(const Tensor& x) const { return at::layer_norm(x, {x.size(-1)}, gain, bias); }
    };
    struct layer {
        Tensor qkv, own_output;      // self-attention
        Tensor q, kv, cross_output;  // cross-attention
        Tensor W_1, b_1, W_2, b_2;
        std::vector<norm> norms;
    };

public:
    explicit transformer(const search::transformer_size& size)
        : D{size.model}, n{size.heads}, d{size.model / size.heads}
    {
        const auto m = search::make_transformer(size);
        table = tensor_of(m.words.table);
        b = tensor_of(m.b);
        const auto feed = [](layer& to, const auto& from) {
            to.W_1 = tensor_of(from.W_1);
            to.b_1 = tensor_of(from.b_1);
            to.W_2 = tensor_of(from.W_2);
            to.b_2 = tensor_of(from.b_2);
        };
        const auto own = [](layer& to, const auto& from) {
            to.qkv = at::cat({tensor_of(from.W_Q), tensor_of(from.W_K), tensor_of(from.W_V)}, 1);
            to.own_output = tensor_of(from.W_O);
        };
        for (const auto& from : m.encoder) {
            layer to;
            own(to, from.attention);
            feed(to, from.feed_forward);
            to.norms = {norm::of(from.around_attention.norm), norm::of(from.around_feed_forward.norm)};
            encoder.push_back(to);
        }
        for (const auto& from : m.decoder) {
            layer to;
            own(to, from.self);
            to.q = tensor_of(from.cross.W_Q);
            to.kv = at::cat({tensor_of(from.cross.W_K), tensor_of(from.cross.W_V)}, 1);
            to.cross_output = tensor_of(from.cross.W_O);
            feed(to, from.feed_forward);
            to.norms = {norm::of(from.around_self.norm), norm::of(from.around_cross.norm),
                        norm::of(from.around_feed_forward.norm)};
            decoder.push_back(to);
        }
        const auto place = at::arange(longest).unsqueeze(1);
        const auto angle = place * at::exp(at::arange(0, D, 2) * (-std::log(10000.0) / static_cast<double>(D)));
        positions = at::stack({angle.sin(), angle.cos()}, 2).view({longest, D}).to(at::kFloat);
    }

    /// annotations [B,T,D], the first state
    std::pair<Tensor, transformer_state> encode(const source_batch& batch) const
    {
        const auto T = static_cast<int64_t>(batch.words.steps), B = static_cast<int64_t>(batch.words.batch);
        auto ids = at::empty({T, B}, at::kLong);
        std::copy(batch.words.ids.begin(), batch.words.ids.end(), ids.data_ptr<int64_t>());
        const auto mask = padding(batch);  // [B,1,1,T]
        Tensor x = embedded(ids.t().contiguous(), 0);
        for (const layer& l : encoder) {
            const auto all = at::mm(x.view({B * T, D}), l.qkv).view({B, T, 3, n, d}).permute({2, 0, 3, 1, 4});
            auto scores = at::matmul(all[0], all[1].transpose(2, 3)).mul_(scale());
            scores.masked_fill_(mask, -std::numeric_limits<float>::infinity());
            const auto seen = at::matmul(at::softmax(scores, 3), all[2]).transpose(1, 2).reshape({B * T, D});
            x = l.norms[0](x + at::mm(seen, l.own_output).view_as(x));
            x = l.norms[1](x + fed_forward(x.view({B * T, D}), l).view_as(x));
        }
        return {x, transformer_state{std::vector<kept_words>(decoder.size()), 0, {}}};
    }

    struct memory {
        std::vector<Tensor> keys, values;  // [B,n,T,d]
        Tensor padding;                    // [B,1,1,T]

        memory rows(const Tensor& which) const
        {
            memory result{{}, {}, padding.index_select(0, which)};
            for (const auto& each : keys) result.keys.push_back(each.index_select(0, which));
            for (const auto& each : values) result.values.push_back(each.index_select(0, which));
            return result;
        }
    };

    memory prepare(const Tensor& annotations, const source_batch& batch) const
    {
        const auto B = annotations.size(0), T = annotations.size(1);
        memory result{{}, {}, padding(batch)};
        for (const layer& l : decoder) {
            const auto both =
                at::mm(annotations.view({B * T, D}), l.kv).view({B, T, 2, n, d}).permute({2, 0, 3, 1, 4}).contiguous();
            result.keys.push_back(both[0]);
            result.values.push_back(both[1]);
        }
        return result;
    }

    /// The textbook step: one row of the memory per hypothesis, the words so far by concatenation.
    Tensor plain_step(const memory& m, transformer_state& state, const Tensor& previous) const
    {
        const auto R = previous.size(0);
        Tensor y = embedded(previous, state.words);
        for (std::size_t i = 0; i < decoder.size(); ++i) {
            const layer& l = decoder[i];
            kept_words& kept = state.layers[i];
            const auto all = at::mm(y, l.qkv).view({R, 3, n, 1, d});
            kept.keys = state.words == 0 ? all.select(1, 1) : at::cat({kept.keys, all.select(1, 1)}, 2);
            kept.values = state.words == 0 ? all.select(1, 2) : at::cat({kept.values, all.select(1, 2)}, 2);
            y = behind_words(y, all.select(1, 0), kept, l);
            const auto q = at::mm(y, l.q).view({R, n, 1, d});
            auto scores = at::matmul(q, m.keys[i].transpose(2, 3)).mul_(scale());
            scores.masked_fill_(m.padding, -std::numeric_limits<float>::infinity());
            const auto seen = at::matmul(at::softmax(scores, 3), m.values[i]).view({R, D});
            y = behind_source(y, seen, l);
        }
        ++state.words;
        return at::addmm(b, y, table.t());
    }

    /// One step of B sentences with K hypotheses each: the logits [B·K,V]; `state` becomes the next.
    Tensor step(const memory& m, transformer_state& state, const Tensor& previous) const
    {
        const auto R = previous.size(0), B = m.padding.size(0), K = R / B, S = state.words;
        Tensor y = embedded(previous, S);
        for (std::size_t i = 0; i < decoder.size(); ++i) {
            const layer& l = decoder[i];
            kept_words& kept = state.layers[i];
            const auto all = at::mm(y, l.qkv).view({R, 3, n, d});
            kept.keys = with_word(kept.keys, state.rows, all.select(1, 1));
            kept.values = with_word(kept.values, state.rows, all.select(1, 2));
            y = behind_words(y, all.select(1, 0).unsqueeze(2), kept, l);
            const auto q = at::mm(y, l.q).view({B, K, n, d}).transpose(1, 2);  // [B,n,K,d]
            auto scores = at::matmul(q, m.keys[i].transpose(2, 3)).mul_(scale());
            scores.masked_fill_(m.padding, -std::numeric_limits<float>::infinity());
            const auto seen = at::matmul(at::softmax(scores, 3), m.values[i]).transpose(1, 2).reshape({R, D});
            y = behind_source(y, seen, l);
        }
        ++state.words;
        state.rows = Tensor{};
        return at::addmm(b, y, table.t());
    }

private:
    static constexpr int64_t longest = 64;

    double scale() const { return 1 / std::sqrt(static_cast<double>(d)); }

    static Tensor padding(const source_batch& batch)
    {
        const auto T = static_cast<int64_t>(batch.words.steps), B = static_cast<int64_t>(batch.words.batch);
        auto mask = at::zeros({B, 1, 1, T}, at::kBool);
        for (int64_t s = 0; s < B; ++s) {
            for (int64_t t = 0; t < T; ++t)
                mask.data_ptr<bool>()[s * T + t] =
                    static_cast<std::size_t>(t) >= batch.real[static_cast<std::size_t>(s)];
        }
        return mask;
    }

    /// ids [B,T], or [R] at one position.
    Tensor embedded(const Tensor& ids, int64_t first) const
    {
        const auto here = ids.dim() == 2 ? positions.narrow(0, 0, ids.size(1)) : positions[first];
        return at::embedding(table, ids).mul_(std::sqrt(static_cast<double>(D))).add_(here);
    }

    static Tensor fed_forward(const Tensor& x, const layer& l)
    {
        return at::addmm(l.b_2, at::addmm(l.b_1, x, l.W_1).relu_(), l.W_2);
    }

    /// [R,n,S+1,d]: the cache of the selected rows with each row's new word appended, in one copy.
    Tensor with_word(const Tensor& kept, const Tensor& rows, const Tensor& word) const
    {
        const auto R = word.size(0), S = kept.defined() ? kept.size(2) : 0;
        auto next = at::empty({R, n, S + 1, d}, at::kFloat);
        next.select(2, S).copy_(word);
        if (S > 0) {
            auto before = next.narrow(2, 0, S);
            before.copy_(rows.defined() ? kept.index_select(0, rows) : kept);
        }
        return next;
    }

    Tensor behind_words(const Tensor& y, const Tensor& q, const kept_words& kept, const layer& l) const
    {
        const auto scores = at::matmul(q, kept.keys.transpose(2, 3)).mul_(scale());  // [R,n,1,S]
        const auto seen = at::matmul(at::softmax(scores, 3), kept.values).view({y.size(0), D});
        return l.norms[0](y + at::mm(seen, l.own_output));
    }

    Tensor behind_source(const Tensor& y, const Tensor& seen, const layer& l) const
    {
        const auto behind = l.norms[1](y + at::mm(seen, l.cross_output));
        return l.norms[2](behind + fed_forward(behind, l));
    }

    int64_t D, n, d;
    Tensor table, b, positions;
    std::vector<layer> encoder, decoder;
};

}  // namespace bench::libtorch
