// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <span>
#include <utility>

#include <heed/ad/ad.hpp>
#include <heed/core/parameters.hpp>
#include <heed_mpi/gradients.hpp>
#include <heed_mpi/ranks.hpp>
#include <heed_translator/system.hpp>

namespace translation {

/// Adapts the variables of a model to the lifted model of heed::distributed.
struct lifted_model {
    const heed::translator::system::variables& all;

    static auto parameters(auto& self, auto&& visit)
    {
        for (const auto& each : self.all) visit(each.name, each.numbers);
        return heed::visited{};
    }
};

/// Sums gradients and losses over the ranks; final gradients are summed while others are still computed, if a step
/// allows it.
class sums_over final : public heed::translator::system::gradient_exchange {
public:
    explicit sums_over(heed::distributed::any_ranks over) : over_(std::move(over)) {}

    void before_backward(heed::ad::tape<float>& on, const heed::translator::system::variables& lifted) override
    {
        meanwhile_.emplace(gradients_, over_, lifted_model{lifted}, on);
    }

    double sum(heed::ad::tape<float>& on, const heed::translator::system::variables& lifted, double loss) override
    {
        meanwhile_.reset();
        gradients_.sum(over_, lifted_model{lifted}, on);
        over_.sum(std::span<double>(&loss, 1));
        return loss;
    }

private:
    heed::distributed::any_ranks over_;
    heed::distributed::gradients<float> gradients_;
    std::optional<heed::distributed::gradients<float>::early_sums<heed::distributed::any_ranks>> meanwhile_;
};

}  // namespace translation
