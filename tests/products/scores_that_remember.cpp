// SPDX-License-Identifier: BSD-3-Clause
#include <products/policies.hpp>

namespace composition {

void add_scores_that_remember(table& to)
{
    using namespace heed::score;
    constexpr std::size_t N = 2, R = 3, K = 2;
    add_products<false>(to, "gaussian_mixture", [](const extents& of) {
        return gaussian_mixture{random({of.width, 2 * K}, 91), random({2 * K}, 92), random({of.width, K}, 93),
                                random({K}, 94)};
    });
    add_products<false>(to, "with_location{additive}", [](const extents& of) {
        return with_location{additive(of), random({2, 3}, 71), random({std::size_t{2}, of.hidden}, 72)};
    });
    add_products<false>(to, "with_neighbors{additive}", [](const extents& of) {
        return with_neighbors{additive(of), random({std::size_t{3}, of.hidden}, 73)};
    });
    add_products<true>(to, "with_coverage{additive}", [](const extents& of) {
        return with_coverage{
            additive(of), random({N, of.hidden}, 74),
            heed::nn::coverage_gru{random({of.width, 3 * N}, 75), random({3 * N}, 76), random({N, 3 * N}, 77)}};
    });
    add_products<false>(to, "with_gated_coverage{additive}", [](const extents& of) {
        return with_gated_coverage{additive(of), random({N, of.hidden}, 83),
                                   heed::nn::gated_coverage{random({of.width, 3 * N}, 84),
                                                            random({of.width, 3 * N}, 85), random({3 * N}, 86),
                                                            random({N, 2 * N}, 87), random({N, N}, 88)}};
    });
    add_products<true>(to, "with_recurrence{additive}", [](const extents& of) {
        return with_recurrence{additive(of), random({R, of.hidden}, 78),
                               heed::nn::gru{random({2 * of.width, 3 * R}, 79), random({3 * R}, 80),
                                             random({R, 2 * R}, 81), random({R, R}, 82)}};
    });
}

}  // namespace composition
