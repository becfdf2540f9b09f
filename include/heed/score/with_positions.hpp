// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <utility>

#include <heed/ops/recurrent.hpp>
#include <heed/score/over.hpp>

namespace heed::score {

/// A score that also reads at which target word t and at which source word j of how many I it is asked (position bias).
///
///     e_{t,j} = vᵀ tanh(W s_t + U h_j + P ψ_{t,j})
///     ψ_{t,j} = [log(1+t), log(1+j), log(1+I)]                 Cohn et al. 2016 [lit] · SPEC R2
///
/// P ψ joins the keys of any base score: inside the tanh, as in Cohn's paper (see `with_neighbours`, whose two biases
/// belong to the same model). t and j count from 1; I is the length that `attend.on` was given, whatever a mask hides.
template <class Base, class Matrix>
struct with_positions : over::another<Base> {
    using over::another<Base>::base;
    Matrix P;  // [3,A], for t, j, I

    static constexpr bool reads_context = over::reads_context<Base>();

    auto project(const auto& query) const { return over::project(base, query); }

    auto start(const auto& memory) const
    {
        using T = element_of<decltype(memory.keys)>;
        const std::size_t B = memory.batch(), positions = memory.positions();
        // [B,T,3] ψ: no parameter and no gradient is in it
        auto features = filled<T, 3>({B, positions, 3}, T(0));
        for (std::size_t b = 0; b < B; ++b) {
            for (std::size_t j = 0; j < positions; ++j) {
                T* const psi = features.data() + (b * positions + j) * 3;
                psi[1] = static_cast<T>(std::log(2.0 + static_cast<double>(j)));
                psi[2] = static_cast<T>(std::log(1.0 + static_cast<double>(memory.real[b])));
            }
        }
        return score::features_past{std::move(features), over::start(base, memory)};
    }

    auto recall(const auto& past, const auto& at) const
    {
        auto now = score::features_past{past.features, over::recall(base, past.base, at)};
        using T = element_of<decltype(now.features)>;
        const T step = static_cast<T>(std::log(2.0 + static_cast<double>(at.step)));
        for (std::size_t i = 0; i < now.features.size(); i += 3) now.features.data()[i] = step;
        return now;
    }

    auto match(const tensor auto& projected, const tensor auto& keys, const auto& past) const
    {
        return over::match(base, projected, ops::linear_onto(keys, past.features, P), past.base);
    }

    auto advance(const auto& past, const tensor auto& weights_now, const tensor auto& context, const auto& at) const
    {
        return score::features_past{past.features, over::advance(base, past.base, weights_now, context, at)};
    }

    auto operator()(const auto& query, const tensor auto& keys, const auto& past) const
    {
        return match(project(query), keys, past);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::with_positions{visit("base", self.base), visit("P", self.P)};
    }
};

template <class Base, class Matrix>
with_positions(Base, Matrix) -> with_positions<Base, Matrix>;

}  // namespace heed::score
