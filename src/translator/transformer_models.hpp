// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <heed/seq2seq/systems/vaswani2017.hpp>

#include <heed_translator/options.hpp>

/// heed's Transformer is assembled at compile time. Its small parts are chosen here at run time, so that one model is
/// compiled instead of 24: an omitted part is an empty list. Parameter names are those of the library's parts.
namespace heed::translator {

namespace detail {

/// The norm after the last layer, if any.
template <class Norm>
struct perhaps_normalized {
    std::vector<Norm> norm;

    template <tensor X>
    X operator()(const X& x) const
    {
        return norm.empty() ? x : norm[0](x);
    }
    static auto parameters(auto& self, auto&& visit)
    {
        using lifted = decltype(visit("", self.norm[0]));
        perhaps_normalized<lifted> result;
        // the library's layer_norm
        for (auto& each : self.norm)
            result.norm.push_back(std::remove_cvref_t<decltype(each)>::parameters(each, visit));
        return result;
    }
};

/// Normalization before or after each layer.
template <class Norm>
struct either_residual {
    Norm norm;
    bool before;

    auto around(const tensor auto& x, const auto& f, const nn::dropout& drop) const
    {
        return before ? nn::pre_norm{norm}.around(x, f, drop) : nn::post_norm{norm}.around(x, f, drop);
    }
    perhaps_normalized<Norm> last_norm() const
    {
        perhaps_normalized<Norm> last;
        if (before) last.norm.push_back(nn::counted_copy(norm));
        return last;
    }
    static auto parameters(auto& self, auto&& visit)
    {
        auto lifted = visit("norm", self.norm);
        return either_residual<decltype(lifted)>{std::move(lifted), self.before};
    }
};

struct residual_factory {
    bool before;

    template <class T>
    auto operator()(const nn::initializers<T>&, const nn::layer_sizes& n) const
    {
        auto norm = nn::make_layer_norm<T>(n.width);
        return either_residual<decltype(norm)>{std::move(norm), before};
    }
};

/// Sinusoidal or learned positions.
template <class Matrix>
struct either_positions {
    std::vector<Matrix> table;

    auto operator()(const tensor auto& x, std::size_t first = 0) const
    {
        return table.empty() ? nn::sinusoidal_positions{}(x, first) : nn::learned_positions{table[0]}(x, first);
    }
    static auto parameters(auto& self, auto&& visit)
    {
        either_positions<decltype(visit("", self.table[0]))> result;
        for (auto& each : self.table) result.table.push_back(visit("table", each));
        return result;
    }
};

struct positions_factory {
    bool learned;

    template <class T>
    auto operator()(const nn::initializers<T>& init, const nn::position_sizes& n) const
    {
        either_positions<array<T, 2>> positions;
        if (learned) positions.table.push_back(nn::learned_positions_factory{}(init, n).table);
        return positions;
    }
};

struct either_activation {
    bool smooth;

    auto operator()(const tensor auto& x) const { return smooth ? ops::gelu(x) : ops::relu(x); }
};

/// One, two or three tables.
template <class Matrix>
struct any_tables {
    std::vector<Matrix> tables;

    const Matrix& source() const { return tables[0]; }
    const Matrix& target() const { return tables[tables.size() > 1 ? 1 : 0]; }
    auto output() const
    {
        using matrix = decltype(ops::transpose(tables[0]));
        return tables.size() > 2 ? matrix(tables[2]) : ops::transpose(target());
    }
    static auto parameters(auto& self, auto&& visit)
    {
        any_tables<decltype(visit("", self.tables[0]))> result;
        const std::vector<const char*> names =
            self.tables.size() == 1 ? std::vector{"table"} : std::vector{"source", "target", "W"};
        for (std::size_t i = 0; i < self.tables.size(); ++i) result.tables.push_back(visit(names[i], self.tables[i]));
        return result;
    }
};

struct tables_factory {
    const std::string& shared;

    template <class T>
    auto operator()(const nn::initializers<T>& init, const seq2seq::table_sizes& n) const
    {
        any_tables<array<T, 2>> all;
        if (shared == "all") {
            all.tables = {seq2seq::shared_table_factory{}(init, n).table};
        } else if (shared == "output") {
            auto made = seq2seq::tied_tables_factory{}(init, n);
            all.tables = {std::move(made.source_table), std::move(made.target_table)};
        } else {
            auto made = seq2seq::separate_tables_factory{}(init, n);
            all.tables = {std::move(made.source_table), std::move(made.target_table), std::move(made.W)};
        }
        return all;
    }
};

}  // namespace detail

/// Vaswani et al. 2017, assembled from the parts above.
template <class T>
struct transformer_of {
    static auto make(const options& how, std::size_t source_words, std::size_t target_words)
    {
        papers::vaswani2017::translator_sizes n;
        n.source_vocabulary = source_words;
        n.target_vocabulary = target_words;
        n.model = how.embedding;
        n.hidden = how.hidden;
        n.heads = how.heads;
        n.encoder_layers = n.decoder_layers = how.layers;
        n.longest = how.longest;
        return papers::vaswani2017::translator<T>(
            how.seed, n, detail::tables_factory{how.share_embeddings},
            detail::positions_factory{how.positions == "learned"}, detail::residual_factory{how.norm == "pre"},
            nn::feed_forward_factory{detail::either_activation{how.activation == "gelu"}});
    }
};

namespace makers {

using transformer = transformer_of<float>;

}  // namespace makers

}  // namespace heed::translator
