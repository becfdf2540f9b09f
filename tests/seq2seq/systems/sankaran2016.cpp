// SPDX-License-Identifier: BSD-3-Clause
#include <heed/seq2seq/systems/sankaran2016.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include <support/approx.hpp>
#include <support/tensors.hpp>
#include <support/translators.hpp>

using namespace heed;
using namespace heed::seq2seq;

TEST_CASE("Sankaran et al. 2016: conditional GRU with temporal attention, and with coverage embeddings")
{
    namespace sankaran = papers::sankaran2016;
    constexpr sizes small{7, 8, 4, 3, 5};
    support::check_system(sankaran::translator<double>(3, small));
    support::check_system(sankaran::translator<double>(3, small, sankaran::coverage_factory{3}));
}

TEST_CASE("the baselines: temporal over the last steps, local-m, and temporal within local-m's window")
{
    namespace sankaran = papers::sankaran2016;
    constexpr std::size_t A = 5, H = 3, D = 6, T = 4;
    const sizes n{7, 8, 4, H, A};
    const auto annotations = support::random({1, T, D}, 1);
    const auto steps = [&](const auto& make) {
        random_source random{3, 0};  // all have the same score
        const auto attend = make(nn::initializers<double>{random}, n);
        const auto memory = attend.on(annotations, lengths{T});
        auto state = attend.start(memory);
        std::vector<array<double, 2>> weights;
        for (std::size_t t = 0; t < 3; ++t) {
            auto seen = attend.step(memory, support::random({1, H}, 10 + t), state);
            weights.push_back(seen.weights);
            state = std::move(seen.state);
        }
        return weights;
    };
    const auto temporal = steps(attentions::temporal_factory{});
    const auto additive = steps(attentions::additive_factory{});
    const attentions::additive_score_factory score;
    const auto recent = steps(attention_factory{score, normalize::recent_temporal{1}, combine::direction_split{}});
    const auto local = steps(attention_factory{score, normalize::local_m{1}});
    const auto both = steps(attention_factory{score, normalize::local_m{1, normalize::temporal{}}});
    for (std::size_t t = 0; t < 3; ++t) {
        double in_window = 0, temporal_in_window = 0;
        for (std::size_t i = 0; i < T; ++i) {
            const bool inside = i + 1 >= t && i <= t + 1;
            CHECK((local[t](0, i) > 0) == inside);
            CHECK((both[t](0, i) > 0) == inside);
            in_window += inside ? additive[t](0, i) : 0.0;
            temporal_in_window += inside ? temporal[t](0, i) : 0.0;
        }
        for (std::size_t i = 0; i < T; ++i) {
            if (local[t](0, i) > 0) CHECK(local[t](0, i) == support::approx(additive[t](0, i) / in_window));
        }
        CHECK(temporal_in_window > 0);
    }
    CHECK(support::distance(recent[1], temporal[1]) < 1e-12);  // only one previous step exists
    CHECK(support::distance(recent[2], temporal[2]) > 1e-3);
}
