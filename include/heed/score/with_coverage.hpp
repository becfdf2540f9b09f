// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/nn/coverage_gru.hpp>
#include <heed/ops/recurrent.hpp>
#include <heed/score/over.hpp>

namespace heed::score {

/// What coverage embeddings remember.
template <class Coverage, class Weights, class Inner = no_past>
struct coverage_past {
    Coverage coverage;  // [B,T,N], up to the word before the last until `recall` brings it up to date
    Weights weights;    // [B,T], of the last step
    Inner base;

    auto map(auto&& f, const auto&... others) const
    {
        return score::coverage_past{f(coverage, others.coverage...), f(weights, others.weights...),
                                    base.map(f, others.base...)};
    }
};
template <class Coverage, class Weights, class Inner>
coverage_past(Coverage, Weights, Inner) -> coverage_past<Coverage, Weights, Inner>;

/// A score that also reads how far each source word has been translated: an embedding that a gated unit keeps.
///
///     e_{t,j} = vᵀ tanh(W s_t + U h_j + C c_{t−1,j})           Sankaran et al. 2016, §4.1 · SPEC SC10
///     c_{t,j} = GRU(c_{t−1,j}, y_t, α_{t,j})                   Mi et al. 2016, see nn::coverage_gru · SPEC V2
///
/// C c joins the keys of any base score: of `additive` and `additive_per_dimension` it enters the tanh, as printed; of
/// `general` it is added to h_j. The query is `state_and_word{s_t, y_{t−1}}`, y_{t−1} the embedding of the last word
/// that was emitted. The score of step t reads c_{t−1}, which knows y_1 … y_{t−1} and their weights, and nothing of
/// step t: `recall` makes it when y_{t−1} arrives (SPEC erratum 8). Step 1 reads c_0 as it is, and no y.
///
/// c_0 is zero, or looked up for each source word in a table of fertilities that is learned (SPEC V1):
///
///     auto past = attend.score.start_from(memory, ops::swap_axes(ops::lookup(table, words)));    // table [V,N]
///     auto state = attend.start(memory, past);
///
/// N is 100 in the papers. The gated coverage of Tu et al. 2016 is another unit, which reads h_j and s_t instead of the
/// word: `with_gated_coverage`. Their accumulated coverage is `with_fertility`. Ours: with a weight for each dimension,
/// α_{t,j} is their mean.
template <class Base, class Matrix, class Cell>
struct with_coverage : over::another<Base> {
    using over::another<Base>::base;
    Matrix C;   // [N,A]
    Cell cell;  // nn::coverage_gru

    static constexpr bool reads_word = true;
    static constexpr bool reads_context = over::reads_context<Base>();

    auto project(const auto& query) const { return over::project(base, query); }

    auto start(const auto& memory) const
    {
        const shape_of_rank<3> shape{memory.batch(), memory.positions(), cell.size()};
        return start_from(memory, constant_like(over::taped_among(memory.keys, C, cell.U), shape, 0.0));
    }

    /// The past before the first step with coverage c_0 [B,T,N]; what lies in the padding is cleared.
    auto start_from(const auto& memory, const tensor auto& coverage) const
    {
        require_shape("with_coverage::start_from", "the coverage", shape_of(coverage),
                      shape_of_rank<3>{memory.batch(), memory.positions(), cell.size()},
                      "one embedding for each source position");
        const auto& beside = over::taped_among(memory.keys, C, cell.U, coverage);
        const shape_of_rank<2> shape{memory.batch(), memory.positions()};
        return score::coverage_past{same_family(beside, over::cleared(coverage, memory)),
                                    constant_like(beside, shape, 0.0), over::start(base, memory)};
    }

    auto recall(const auto& past, const auto& at) const
    {
        const auto& query = at.query();
        static_assert(
            requires { query.word; }, "heed: score::with_coverage needs the word that was emitted last: ask with "
                                      "heed::state_and_word{state, word}");
        static_assert(!over::word_is_projected<decltype(query)>,
                      "heed: score::with_coverage reads the word's embedding, and a state_and_projected_word has only "
                      "what with_word made of it: ask with heed::state_and_word{state, word}");
        require_shape("with_coverage", "the word", shape_of(query.word),
                      shape_of_rank<2>{shape_of(past.coverage)[0], shape_of(cell.W)[0]},
                      "one embedding for each row, as long as the cell takes");
        auto inner = over::recall(base, past.base, at);
        if (at.step == 0) {
            const auto& beside = over::taped_among(past.coverage, past.weights, cell.W, query.word);
            return score::coverage_past{same_family(beside, past.coverage), past.weights, std::move(inner)};
        }
        return score::coverage_past{cell.step(query.word, past.weights, past.coverage), past.weights, std::move(inner)};
    }

    auto match(const tensor auto& projected, const tensor auto& keys, const auto& past) const
    {
        return over::match(base, projected, ops::linear_onto(keys, past.coverage, C), past.base);
    }

    template <class Past>
    auto advance(Past&& past, const tensor auto& weights_now, const tensor auto& context, const auto& at) const
    {
        auto alpha = over::per_position(weights_now);
        auto coverage = same_family(alpha, std::forward<Past>(past).coverage);
        return score::coverage_past{std::move(coverage), std::move(alpha),
                                    over::advance(base, std::forward<Past>(past).base, weights_now, context, at)};
    }

    auto operator()(const auto& query, const tensor auto& keys, const auto& past) const
    {
        return match(project(query), keys, past);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::with_coverage{visit("base", self.base), visit("C", self.C), visit("cell", self.cell)};
    }
};

template <class Base, class Matrix, class Cell>
with_coverage(Base, Matrix, Cell) -> with_coverage<Base, Matrix, Cell>;

}  // namespace heed::score
