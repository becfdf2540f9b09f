// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/heads/multi_head.hpp>
#include <heed/io/archive.hpp>
#include <heed/io/weights.hpp>
#include <heed/nn/gru.hpp>
#include <heed/nn/layer_norm.hpp>
#include <heed/nn/lstm.hpp>
#include <heed/nn/stacked.hpp>
#include <heed/seq2seq/transformer.hpp>

/// Loads and saves weights with the names and the layout of PyTorch's state_dict.
///
///     const io::archive file = io::load("model.safetensors");  // written by safetensors.torch
///     io::load_torch(file, encoder, "encoder.rnn");            // nn::lstm encoder; nn.LSTM model.encoder.rnn
///     io::save_torch(back, encoder, "encoder.rnn");
///
/// PyTorch computes x Wᵀ, heed x W: each matrix is transposed. Other differences:
///
///     nn.Linear                   io::as_linear(W, b)       weight Wᵀ, bias b
///     nn.Embedding                io::as_embedding(E)       weight E, not transposed
///     nn.LayerNorm                nn::layer_norm            weight gain, bias bias
///     nn.LSTM, nn.LSTMCell        nn::lstm                  weight_ih Wᵀ, weight_hh Uᵀ, bias_ih + bias_hh b;
///                                                           gates i|f|g|o there, i|f|o|g here
///     nn.GRU, nn.GRUCell          nn::gru_reset_after       as above, but the candidate's bias_hh is c_h; gates r|z|n
///                                                           there, z|r|h here; the weights of z are negated: z is the
///                                                           share of the old state there, of the candidate here
///     num_layers > 1              nn::stacked of these      suffixes _l0, _l1, …
///     nn.MultiheadAttention       multi_head                in_proj_weight W_Qᵀ, W_Kᵀ, W_Vᵀ stacked by rows, or
///                                                           q_proj_weight, k_proj_weight, v_proj_weight if kdim or
///                                                           vdim differ; out_proj.weight W_Oᵀ; in_proj_bias
///                                                           b_Q|b_K|b_V and out_proj.bias b_O with heed::biases
///     nn.TransformerEncoderLayer  transformer_encoder_layer  self_attn, linear1 (W_1, b_1), linear2 (W_2, b_2), norm1
///                                                           around attention, norm2 around the feed-forward network
///     nn.TransformerDecoderLayer  transformer_decoder_layer  as above, multihead_attn for cross; norm1, norm2, norm3
///     nn.ModuleList               std::vector of layers     .0, .1, …
///
/// The module must match the layer: norm_first=True is nn::pre_norm, False is nn::post_norm; activation="relu" is
/// ops::relu, activation="gelu" is ops::gelu_erf, and ops::gelu is F.gelu(…, approximate="tanh").
namespace heed::inline HEED_TARGET::io {

namespace detail {

/// Rows [first, first + rows) of a PyTorch tensor; heed stores (row, column) at data[row + column · stride].
template <class T>
struct torch_block {
    std::string name;
    std::vector<std::size_t> shape;
    std::size_t first = 0, rows = 0, columns = 1;
    T* data = nullptr;
    std::size_t stride = 0;
    bool negated = false;
    bool added = false;     // to the values of an earlier block of another name
    bool optional = false;  // zeros if it is missing

    /// Calls f(number, its index in PyTorch's tensor).
    void each_number(const auto& f) const
    {
        for (std::size_t i = 0; i < rows * columns; ++i)
            f(data[i / columns + i % columns * stride], first * columns + i);
    }
};

/// Maps a block of PyTorch's rows to a block of heed's columns.
struct torch_gate {
    std::size_t row, column;
    bool negated = false;
};

/// The blocks of a layer, in the order of PyTorch's state_dict.
template <class T>
class torch_blocks {
public:
    std::vector<torch_block<T>> all;
    std::vector<std::pair<std::string, std::string>> refused;  // tensors that must not exist, with the reason

    /// Rows [row, …) of PyTorch's matrix with `of_rows` rows are the columns [column, column + count) of W.
    void matrix(const std::string& name, std::size_t of_rows, const torch_gate& gate, std::size_t count, auto& W)
    {
        const auto view = view_of(W);
        const std::size_t in = view.shape[0], out = view.shape[1];
        all.push_back({name, {of_rows, in}, gate.row, count, in, view.data + gate.column, out, gate.negated});
    }
    void matrix(const std::string& name, auto& W) { matrix(name, view_of(W).shape[1], {0, 0}, view_of(W).shape[1], W); }

    void vector(const std::string& name, std::size_t of_size, const torch_gate& gate, std::size_t count, auto& b,
                bool added = false)
    {
        all.push_back(
            {name, {of_size}, gate.row, count, 1, view_of(b).data + gate.column, 0, gate.negated, added, true});
    }
    void vector(const std::string& name, auto& b, bool optional = true)
    {
        vector(name, view_of(b).size(), {0, 0}, view_of(b).size(), b);
        all.back().optional = optional;
    }

    void refuse(std::string name, std::string why) { refused.emplace_back(std::move(name), std::move(why)); }
};

inline std::string torch_name(std::string_view prefix, std::string_view name)
{
    return prefix.empty() ? std::string(name) : std::string(prefix) + "." + std::string(name);
}

/// W, U and b of a recurrent cell. If c_h exists, it is the bias of its rows of weight_hh.
void list_cell(auto& to, auto& cell, std::string_view prefix, std::string_view suffix,
               std::span<const torch_gate> gates, auto* own_bias)
{
    const std::size_t H = view_of(cell.U).shape[0], G = gates.size() * H;
    const auto name = [&](const char* what) { return torch_name(prefix, what + std::string(suffix)); };
    for (const torch_gate& each : gates) to.matrix(name("weight_ih"), G, each, H, cell.W);
    for (const torch_gate& each : gates) to.matrix(name("weight_hh"), G, each, H, cell.U);
    for (const torch_gate& each : gates) to.vector(name("bias_ih"), G, each, H, cell.b);
    for (const torch_gate& each : gates) {
        if (own_bias != nullptr && each.row == 2 * H) {
            to.vector(name("bias_hh"), G, {each.row, 0}, H, *own_bias);
        } else {
            to.vector(name("bias_hh"), G, each, H, cell.b, true);
        }
    }
    to.refuse(name("weight_hr"), "heed does not support projected outputs (proj_size)");
}

/// Throws heed::error unless the archive has all these blocks and no forbidden tensors.
template <class T>
void require_torch(const archive& from, const torch_blocks<T>& blocks)
{
    for (const auto& [name, why] : blocks.refused) {
        if (from.find(name) != nullptr) throw error("torch: the file has \"" + name + "\", but " + why);
    }
    for (const auto& block : blocks.all) {
        const tensor_entry* const found = from.find(block.name);
        if (found == nullptr && block.optional) continue;
        const tensor_entry& entry = from.at(block.name);
        if (entry.shape != block.shape || !reads_as(entry.dtype, dtype_name<T>))
            throw error("torch: tensor \"" + block.name + "\" is " + entry.dtype + " " + shape_text(entry.shape) +
                        " in the file, but the module needs " + std::string(dtype_name<T>) + " " +
                        shape_text(block.shape));
    }
}

template <class T>
void take_blocks(const archive& from, const torch_blocks<T>& blocks)
{
    std::map<std::string_view, std::vector<T>> values;
    for (const torch_block<T>& block : blocks.all) {
        const tensor_entry* const entry = from.find(block.name);
        std::vector<T>& known = values[block.name];
        if (entry != nullptr && known.empty()) known = entry->template values<T>();
        block.each_number([&](T& to, std::size_t i) {
            if (!block.added) to = T(0);
            if (entry != nullptr) to += block.negated ? -known[i] : known[i];
        });
    }
}

template <class T>
void put_blocks(archive& to, const torch_blocks<const T>& blocks)
{
    std::set<std::string_view> done;
    for (const auto& first : blocks.all) {
        if (!done.insert(first.name).second) continue;
        std::vector<T> values(bytes_of(first.shape, 1).value());
        for (const auto& block : blocks.all) {
            if (block.name != first.name || block.added) continue;  // added blocks are 0: the first one has the sum
            block.each_number([&](T value, std::size_t i) { values[i] = block.negated ? -value : value; });
        }
        to.tensors.push_back(tensor_entry::of(first.name, first.shape, values));
    }
}

}  // namespace detail

/// The layout of a module in PyTorch's state_dict. Specialize it for your module: `numbers` is one of its tensor types,
/// and list(to, module, prefix, suffix) calls io::list_torch for its parts.
template <class M>
struct torch_layout {
    static_assert(!std::is_same_v<M, M>,
                  "heed: this module has no counterpart in PyTorch; load its parts one by one "
                  "(seq2seq/torch.hpp), matrices by io::as_linear, or specialize io::torch_layout");
};

/// Lists the weights of a part, for your torch_layout. Throws shape_error for heads that nn.MultiheadAttention cannot
/// have.
void list_torch(auto& to, auto&& part, std::string_view prefix, std::string_view suffix = "_l0")
{
    torch_layout<std::remove_cvref_t<decltype(part)>>::list(to, part, prefix, suffix);
}

/// The references of as_linear: a matrix [X,Y] and a bias [Y], null for nn.Linear(bias=False).
template <class Matrix, class Vector>
struct linear_parts {
    Matrix& W;
    Vector* b;
};
/// W and b in the layout of PyTorch's nn.Linear.
template <class Matrix, class Vector>
linear_parts<Matrix, Vector> as_linear(Matrix& W, Vector& b)
{
    return {W, &b};
}
template <class Matrix>
linear_parts<Matrix, Matrix> as_linear(Matrix& W)
{
    return {W, nullptr};
}
template <class Matrix, class Vector>
struct torch_layout<linear_parts<Matrix, Vector>> {
    using numbers = std::remove_const_t<Matrix>;
    static void list(auto& to, auto& part, std::string_view prefix, std::string_view)
    {
        to.matrix(detail::torch_name(prefix, "weight"), part.W);
        if (part.b == nullptr) {
            to.refuse(detail::torch_name(prefix, "bias"),
                      "io::as_linear was called without a bias; call as_linear(W, b)");
        } else {
            to.vector(detail::torch_name(prefix, "bias"), *part.b);
        }
    }
};

/// The reference of as_embedding: a table.
template <class Matrix>
struct embedding_part {
    Matrix& table;
};
/// A table [V,E] in the layout of PyTorch's nn.Embedding.
template <class Matrix>
embedding_part<Matrix> as_embedding(Matrix& table)
{
    return {table};
}
template <class Matrix>
struct torch_layout<embedding_part<Matrix>> {
    using numbers = std::remove_const_t<Matrix>;
    static void list(auto& to, auto& part, std::string_view prefix, std::string_view)
    {
        const auto view = view_of(part.table);
        const std::vector<std::size_t> shape{view.shape[0], view.shape[1]};
        to.all.push_back({detail::torch_name(prefix, "weight"), shape, 0, view.size(), 1, view.data});
    }
};

template <class Vector>
struct torch_layout<nn::layer_norm<Vector>> {
    using numbers = Vector;
    static void list(auto& to, auto& norm, std::string_view prefix, std::string_view)
    {
        to.vector(detail::torch_name(prefix, "weight"), norm.gain, false);
        to.vector(detail::torch_name(prefix, "bias"), norm.bias);
    }
};

template <class Matrix, class Vector>
struct torch_layout<nn::lstm<Matrix, Vector>> {
    using numbers = Matrix;
    static void list(auto& to, auto& cell, std::string_view prefix, std::string_view suffix)
    {
        const std::size_t H = view_of(cell.U).shape[0];
        const detail::torch_gate gates[] = {{0, 0}, {H, H}, {2 * H, 3 * H}, {3 * H, 2 * H}};  // i, f, g, o
        detail::list_cell(to, cell, prefix, suffix, gates, static_cast<decltype(&cell.b)>(nullptr));
    }
};

template <class Matrix, class Vector>
struct torch_layout<nn::gru_reset_after<Matrix, Vector>> {
    using numbers = Matrix;
    static void list(auto& to, auto& cell, std::string_view prefix, std::string_view suffix)
    {
        const std::size_t H = view_of(cell.U).shape[0];
        const detail::torch_gate gates[] = {{0, H}, {H, 0, true}, {2 * H, 2 * H}};  // r, z, n
        detail::list_cell(to, cell, prefix, suffix, gates, &cell.c_h);
    }
};

template <class Matrix, class Vector>
struct torch_layout<nn::gru<Matrix, Vector>> {
    static_assert(
        !std::is_same_v<Matrix, Matrix>,
        "heed: the reset gate of PyTorch's nn.GRU acts after the product: load it into an nn::gru_reset_after");
};

template <class Cell>
struct torch_layout<nn::stacked<Cell>> {
    using numbers = typename torch_layout<Cell>::numbers;
    static void list(auto& to, auto& cells, std::string_view prefix, std::string_view suffix)
    {
        const auto of_layer = [reverse = suffix.ends_with("_reverse")](std::size_t k) {
            return "_l" + std::to_string(k) + (reverse ? "_reverse" : "");
        };
        const std::size_t count = cells.layers.size();
        for (std::size_t k = 0; k < count; ++k) list_torch(to, cells.layers[k], prefix, of_layer(k));
        to.refuse(detail::torch_name(prefix, "weight_ih" + of_layer(count)),
                  "this module has only " + heed::counted(count, "layer"));
    }
};

template <class Heads, class Matrix, class Biases>
struct torch_layout<multi_head<Heads, Matrix, per_head::identity, Biases>> {
    using numbers = Matrix;
    static void list(auto& to, auto& heads, std::string_view prefix, std::string_view)
    {
        const auto name = [&](const char* what) { return detail::torch_name(prefix, what); };
        const auto Q = view_of(heads.W_Q).shape, K = view_of(heads.W_K).shape, V = view_of(heads.W_V).shape,
                   O = view_of(heads.W_O).shape;
        const std::size_t E = Q[0];
        if (Q[1] != E || K[1] != E || V[1] != E || O[0] != E || O[1] != E)
            throw shape_error("torch: in nn.MultiheadAttention, queries, contexts and the concatenated heads have the "
                              "same width; for \"" +
                              std::string(prefix) + "\" this module has W_Q " + shape_text(Q) + ", W_K " +
                              shape_text(K) + ", W_V " + shape_text(V) + " and W_O " + shape_text(O));
        if (K[0] == E && V[0] == E) {
            to.matrix(name("in_proj_weight"), 3 * E, {0, 0}, E, heads.W_Q);
            to.matrix(name("in_proj_weight"), 3 * E, {E, 0}, E, heads.W_K);
            to.matrix(name("in_proj_weight"), 3 * E, {2 * E, 0}, E, heads.W_V);
        } else {
            to.matrix(name("q_proj_weight"), heads.W_Q);
            to.matrix(name("k_proj_weight"), heads.W_K);
            to.matrix(name("v_proj_weight"), heads.W_V);
        }
        to.matrix(name("out_proj.weight"), heads.W_O);
        if constexpr (std::is_same_v<Biases, no_biases>) {
            for (const char* bias : {"in_proj_bias", "out_proj.bias"})
                to.refuse(name(bias), "this multi_head has no biases; add heed::biases as its last part");
        } else {
            to.vector(name("in_proj_bias"), 3 * E, {0, 0}, E, heads.bias.b_Q);
            to.vector(name("in_proj_bias"), 3 * E, {E, 0}, E, heads.bias.b_K);
            to.vector(name("in_proj_bias"), 3 * E, {2 * E, 0}, E, heads.bias.b_V);
            to.vector(name("out_proj.bias"), heads.bias.b_O);
        }
        to.refuse(name("bias_k"), "heed does not support add_bias_kv");
    }
};

template <class Attention, class Residual, class FeedForward>
struct torch_layout<seq2seq::transformer_encoder_layer<Attention, Residual, FeedForward>> {
    using numbers = typename torch_layout<Attention>::numbers;
    static void list(auto& to, auto& layer, std::string_view prefix, std::string_view)
    {
        const auto name = [&](const char* what) { return detail::torch_name(prefix, what); };
        list_torch(to, layer.attention, name("self_attn"));
        list_torch(to, io::as_linear(layer.feed_forward.W_1, layer.feed_forward.b_1), name("linear1"));
        list_torch(to, io::as_linear(layer.feed_forward.W_2, layer.feed_forward.b_2), name("linear2"));
        list_torch(to, layer.around_attention.norm, name("norm1"));
        list_torch(to, layer.around_feed_forward.norm, name("norm2"));
    }
};

template <class Self, class Cross, class Residual, class FeedForward>
struct torch_layout<seq2seq::transformer_decoder_layer<Self, Cross, Residual, FeedForward>> {
    using numbers = typename torch_layout<Self>::numbers;
    static void list(auto& to, auto& layer, std::string_view prefix, std::string_view)
    {
        const auto name = [&](const char* what) { return detail::torch_name(prefix, what); };
        list_torch(to, layer.self, name("self_attn"));
        list_torch(to, layer.cross, name("multihead_attn"));
        list_torch(to, io::as_linear(layer.feed_forward.W_1, layer.feed_forward.b_1), name("linear1"));
        list_torch(to, io::as_linear(layer.feed_forward.W_2, layer.feed_forward.b_2), name("linear2"));
        list_torch(to, layer.around_self.norm, name("norm1"));
        list_torch(to, layer.around_cross.norm, name("norm2"));
        list_torch(to, layer.around_feed_forward.norm, name("norm3"));
    }
};

template <class Layer>
struct torch_layout<std::vector<Layer>> {
    using numbers = typename torch_layout<Layer>::numbers;
    static void list(auto& to, auto& layers, std::string_view prefix, std::string_view)
    {
        for (std::size_t i = 0; i < layers.size(); ++i)
            list_torch(to, layers[i], detail::torch_name(prefix, std::to_string(i)));
    }
};

/// Fills a module from PyTorch's weights "prefix.…". Missing biases (bias=False) become zeros. `suffix` of recurrent
/// cells: "_l0" is the first layer of nn.LSTM or nn.GRU, "_l0_reverse" its backward direction, "" nn.LSTMCell or
/// nn.GRUCell. Throws heed::error and leaves the module unchanged if a tensor is missing, superfluous or has the wrong
/// shape or type.
template <class M>
void load_torch(const archive& from, M&& module, std::string_view prefix = {}, std::string_view suffix = "_l0")
{
    using T = element_of<typename torch_layout<std::remove_cvref_t<M>>::numbers>;
    detail::torch_blocks<T> blocks;
    io::list_torch(blocks, module, prefix, suffix);
    detail::require_torch(from, blocks);
    detail::take_blocks(from, blocks);
}

/// Adds a module's weights to an archive for load_state_dict. Of PyTorch's two biases, the first is heed's and the
/// second 0.
template <class M>
void save_torch(archive& to, const M& module, std::string_view prefix = {}, std::string_view suffix = "_l0")
{
    using T = element_of<typename torch_layout<M>::numbers>;
    detail::torch_blocks<const T> blocks;
    io::list_torch(blocks, module, prefix, suffix);
    detail::put_blocks<T>(to, blocks);
}

}  // namespace heed::inline HEED_TARGET::io
