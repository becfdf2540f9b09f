// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <heed/core/errors.hpp>
#include <heed/core/mechanism_list.hpp>
#include <heed/nn/cells.hpp>
#include <heed/nn/dropout.hpp>
#include <heed/ops/elementwise.hpp>

namespace heed::inline HEED_TARGET::nn {

/// The shortcut around each layer above the first: none, or a residual connection.
enum class shortcut { none, residual };

/// The state of stacked cells.
template <class State, class Hidden>
struct stacked_state {
    std::vector<State> layers;  // the lowest first
    Hidden hidden;              // [B,H] the output of the stack

    /// Applies f to each tensor of the state, together with the matching tensors of `others`.
    auto map(auto&& f, const auto&... others) const
    {
        auto mapped = heed::detail::each_of(
            layers, [&](std::size_t i) { return nn::map_state(layers[i], f, others.layers[i]...); });
        auto h = f(hidden, others.hidden...);
        return nn::stacked_state<typename decltype(mapped)::value_type, decltype(h)>{std::move(mapped), std::move(h)};
    }
};
template <class State, class Hidden>
stacked_state(std::vector<State>, Hidden) -> stacked_state<State, Hidden>;

/// Stacked recurrent cells; each reads the output of the one below at the same step.
///
///     h^1 = f_1(h^1, x),  h^k = f_k(h^k, z^{k−1}),  z^k = h^k      Luong et al. 2015, §2; Sutskever et al. 2014
///     with shortcut::residual  z^k = h^k + z^{k−1} for k > 1        Wu et al. 2016, eq. 6
///
/// Dropout acts on z^{k−1} as input of the next layer, not on the recurrent connections (Zaremba et al. 2014); a
/// residual sum uses z^{k−1} without dropout. All layers are cells of one type (nn/cells.hpp). A decoder advances them
/// together, an encoder runs one after another. heed's choice: the first layer has no shortcut, since its input has
/// a different size. Throws heed::error if there are no layers, and shape_error for a state with a different number of
/// layers.
template <class Cell>
struct stacked {
    std::vector<Cell> layers;  // the lowest first; the first maps [X] to [H], the others [H] to [H]
    shortcut between = shortcut::none;

    /// The input's contribution to the lowest layer. The other layers compute theirs step by step.
    auto project(const tensor auto& x) const { return nn::project_of(first(), x); }

    /// One step of all layers: projected [B,G], the input of the lowest, and a state -> the next state. A sentence that
    /// has ended keeps its state.
    auto step(const tensor auto& projected, const auto& state, const ops::sentence_ends& ends = {},
              const nn::dropout& drop = {}) const
    {
        if (state.layers.size() != layers.size()) {
            throw shape_error("stacked: the state has " + counted(state.layers.size(), "layer") + ", but the " +
                              "cell has " + std::to_string(layers.size()));
        }
        auto lowest = nn::next_of(first(), projected, state.layers[0], ends);
        auto z = nn::output_of(lowest);
        std::vector<decltype(lowest)> next;
        next.reserve(layers.size());
        next.push_back(std::move(lowest));
        for (std::size_t k = 1; k < layers.size(); ++k) {
            next.push_back(nn::next_of(layers[k], nn::project_of(layers[k], drop(z)), state.layers[k], ends));
            z = joined(nn::output_of(next.back()), z);
        }
        return stacked_state{std::move(next), std::move(z)};
    }

    /// A state in which the output of every layer, and so of the stack, is h [B,H].
    auto begin(const tensor auto& h) const
    {
        auto states = heed::detail::each_of(layers, [&](std::size_t k) { return nn::begin_of(layers[k], h); });
        return stacked_state{std::move(states), h};
    }

    /// The output of a layer: its hidden state, plus its input z if there is a shortcut. Both are [...,H].
    template <tensor X>
    X joined(const X& output, const X& z) const
    {
        return between == shortcut::residual ? ops::add(output, z) : output;
    }

    static auto parameters(auto& self, auto&& visit)
    {
        auto all = visit("layers", self.layers);
        return nn::stacked<typename decltype(all)::value_type>{std::move(all), self.between};
    }

private:
    const Cell& first() const
    {
        if (layers.empty()) throw error("stacked: there are no layers; give at least one cell");
        return layers.front();
    }
};
template <class Cell>
stacked(std::vector<Cell>, shortcut = shortcut::none) -> stacked<Cell>;

/// Makes stacked cells. `cells` makes each layer. Throws heed::error for 0 layers.
template <class Cells = gru_factory>
struct stacked_factory {
    std::size_t layers = 2;
    Cells cells{};
    shortcut between = shortcut::none;

    template <class T>
    auto operator()(const initializers<T>& init, const cell_sizes& n) const
    {
        if (layers == 0) throw error("stacked: 0 layers; make at least one");
        std::vector<part_of<Cells, T, cell_sizes>> all;
        for (std::size_t k = 0; k < layers; ++k) {
            all.push_back(nn::make_part(cells, init, cell_sizes{k == 0 ? n.input : n.hidden, n.hidden}));
        }
        return stacked{std::move(all), between};
    }
};

template <class Cells = gru_factory>
stacked_factory(std::size_t = 2, Cells = {}, shortcut = shortcut::none) -> stacked_factory<Cells>;

}  // namespace heed::inline HEED_TARGET::nn
