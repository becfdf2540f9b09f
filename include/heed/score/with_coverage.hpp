// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/nn/coverage_gru.hpp>
#include <heed/ops/products.hpp>
#include <heed/score/over.hpp>

namespace heed::inline HEED_TARGET::score {

/// The state of coverage embeddings.
template <class Coverage, class Weights>
struct coverage_state {
    Coverage coverage;  // [B,T,N]; before the update for the last word, which arrives with the next query
    Weights weights;    // [B,T], of the last step

    auto map(auto&& f, const auto&... others) const
    {
        return score::coverage_state{f(coverage, others.coverage...), f(weights, others.weights...)};
    }
};
template <class Coverage, class Weights>
coverage_state(Coverage, Weights) -> coverage_state<Coverage, Weights>;

/// A score that also reads the coverage of each source word: an embedding that a gated unit updates.
///
///     e_{t,j} = vᵀ tanh(W s_t + U h_j + C c_{t−1,j})           Sankaran et al. 2016, §4.1
///     c_{t,j} = GRU(c_{t−1,j}, y_t, α_{t,j})                   Mi et al. 2016, see nn::coverage_gru
///
/// C c is added to the keys of any base score: inside the tanh of `additive`, as printed; to h_j in `general`. The
/// query is `state_and_word{s_t, y_{t−1}}` with the embedding of the last emitted word, and c_{t−1} is computed when it
/// arrives (docs/explanation/decisions.md). Step 1 reads c_0 unchanged, and no y.
///
/// c_0 is zero, or looked up for each source word in a learned table of fertilities (Sankaran et al. 2016, §4.1):
///
///     auto past = attend.score.start_from(memory, ops::swap_axes(ops::lookup(table, words)));    // table [V,N]
///     auto state = attend.start(memory, state);
///
/// N is 100 in the papers. Other coverages: `with_gated_coverage` and `with_fertility` (Tu et al. 2016). Ours: for
/// weights per dimension, α_{t,j} is their mean. Throws shape_error unless the word and a given c_0 fit.
template <class Base, class Matrix, class Cell>
struct with_coverage : over::score_adaptor<with_coverage<Base, Matrix, Cell>, Base> {
    using over::score_adaptor<with_coverage<Base, Matrix, Cell>, Base>::base;
    Matrix C;   // [N,A]
    Cell cell;  // nn::coverage_gru

    static constexpr score_traits traits = traits_around_score<Base>([](score_traits& own) { own.reads_word = true; });

    auto init_state(const auto& memory) const
    {
        const shape_of_rank<3> shape{memory.batch(), memory.positions(), cell.size()};
        return first(memory, constant_like(over::taped_among(memory.keys, C, cell.U), shape, 0.0));
    }

    /// The state before the first step, with coverage c_0 [B,T,N]; padding is zeroed.
    auto start_from(const auto& memory, const tensor auto& coverage) const
    {
        require_shape("with_coverage::start_from", "the coverage", shape_of(coverage),
                      shape_of_rank<3>{memory.batch(), memory.positions(), cell.size()},
                      "one embedding for each source position");
        return this->beside_base(first(memory, over::cleared(coverage, memory)), memory);
    }

    auto observe_query(const auto& state, const auto& at) const
    {
        const auto& query = at.query();
        const auto& word = over::word_of(query);
        require_shape("with_coverage", "the word", shape_of(word),
                      shape_of_rank<2>{shape_of(state.coverage)[0], shape_of(cell.W)[0]},
                      "one embedding for each row, with the width of the cell's input");
        if (at.step == 0) {
            const auto& beside = over::taped_among(state.coverage, state.weights, cell.W, word);
            return score::coverage_state{same_family(beside, state.coverage), state.weights};
        }
        return score::coverage_state{cell.step(word, state.weights, state.coverage), state.weights};
    }

    auto keys(const tensor auto& plain_keys, const auto& state) const  // k + C c
    {
        return ops::addmm(plain_keys, state.coverage, C);
    }

    auto update_state(auto&& state, const tensor auto& seen, const tensor auto&, const auto&) const
    {
        auto alpha = over::per_position(seen);
        auto coverage = same_family(alpha, std::forward<decltype(state)>(state).coverage);
        return score::coverage_state{std::move(coverage), std::move(alpha)};
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::with_coverage{visit("base", self.base), visit("C", self.C), visit("cell", self.cell)};
    }

private:
    auto first(const auto& memory, const tensor auto& coverage) const
    {
        const auto& beside = over::taped_among(memory.keys, C, cell.U, coverage);
        const shape_of_rank<2> shape{memory.batch(), memory.positions()};
        return score::coverage_state{same_family(beside, coverage), constant_like(beside, shape, 0.0)};
    }
};

template <class Base, class Matrix, class Cell>
with_coverage(Base, Matrix, Cell) -> with_coverage<Base, Matrix, Cell>;

}  // namespace heed::inline HEED_TARGET::score
