// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/nn/gated_coverage.hpp>
#include <heed/ops/products.hpp>
#include <heed/score/over.hpp>

namespace heed::inline HEED_TARGET::score {

/// A score that also reads the coverage of each source word: a vector that a gated recurrent unit updates from the
/// weights, the annotations and the queries (neural network based coverage).
///
///     e_{t,j} = vᵀ tanh(W s_t + U h_j + V C_{t−1,j})
///     C_{t,j} = f(C_{t−1,j}, α_{t,j}, h_j, s_t),  C_{0,j} = 0            Tu et al. 2016, §3.1.2
///
/// f is nn::gated_coverage. V C is added to the keys of any base score: inside the tanh of `additive`, as printed; to
/// h_j in `general`. h_j are the memory's values; s_t is the query, or its `state` if it has further parts. (The paper
/// calls it t_{i−1}, the decoder's state before the word of step i.) C_0 = 0 is from the authors' code
/// (docs/explanation/decisions.md); `start_from` takes a different one:
///
///     auto state = attend.start(memory, attend.score.start_from(memory, first));    // first [B,T,N]
///
/// Other coverages: `with_fertility`, of the same paper, and `with_coverage` (Mi et al. 2016). Ours: for weights per
/// dimension, α_{t,j} is their mean. Throws shape_error unless a given C_0 fits.
template <class Base, class Matrix, class Cell>
struct with_gated_coverage : over::score_adaptor<with_gated_coverage<Base, Matrix, Cell>, Base> {
    using over::score_adaptor<with_gated_coverage<Base, Matrix, Cell>, Base>::base;
    Matrix V;   // [N,A]
    Cell cell;  // nn::gated_coverage

    auto init_state(const auto& memory) const
    {
        const shape_of_rank<3> shape{memory.batch(), memory.positions(), cell.size()};
        return first(memory, constant_like(over::taped_among(memory.keys, memory.values, V), shape, 0.0));
    }

    /// The state before the first step, with coverage C_0 [B,T,N]; padding is zeroed.
    auto start_from(const auto& memory, const tensor auto& coverage) const
    {
        require_shape("with_gated_coverage::start_from", "the coverage", shape_of(coverage),
                      shape_of_rank<3>{memory.batch(), memory.positions(), cell.size()},
                      "one vector for each source position");
        return this->beside_base(first(memory, over::cleared(coverage, memory)), memory);
    }

    auto keys(const tensor auto& plain_keys, const auto& state) const  // k + V C
    {
        return ops::addmm(plain_keys, state.coverage, V);
    }

    auto update_state(auto&& state, const tensor auto& seen, const tensor auto&, const auto& at) const
    {
        auto next = cell.step(state.known, over::state_of(at.query()), over::per_position(seen), state.coverage);
        return score::coverage_and_known{std::move(next), std::forward<decltype(state)>(state).known};
    }

    template <class State>
    static consteval void check_state()
    {
        static_assert(plain_tensor<Matrix> || !plain_tensor<decltype(State::known)>,
                      "heed: this state was made by the plain score::with_gated_coverage, so the unit's W would get no "
                      "gradient: make the state with the lifted mechanism, lifted.start(memory)");
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::with_gated_coverage{visit("base", self.base), visit("V", self.V), visit("cell", self.cell)};
    }

private:
    auto first(const auto& memory, const tensor auto& coverage) const
    {
        const auto& beside = over::taped_among(memory.keys, memory.values, V, coverage);
        return score::coverage_and_known{same_family(beside, coverage),
                                         same_family(beside, cell.project(over::values_in_one_piece(memory)))};
    }
};

template <class Base, class Matrix, class Cell>
with_gated_coverage(Base, Matrix, Cell) -> with_gated_coverage<Base, Matrix, Cell>;

}  // namespace heed::inline HEED_TARGET::score
