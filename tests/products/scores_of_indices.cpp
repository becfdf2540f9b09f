// SPDX-License-Identifier: BSD-3-Clause
#include <heed/simd/score_index.hpp>
#include <products/policies.hpp>

namespace composition {

void add_scores_of_indices(table& to)
{
    using namespace heed::score;
    add_products<false>(to, "contextual_positions{dot}", [](const extents& of) {
        return contextual_positions{dot{}, random({of.width, std::size_t{3}}, 39)};
    });
    add_products<false>(to, "dynamic_convolution", [](const extents& of) {
        return dynamic_convolution{random({of.width, std::size_t{3}}, 40)};
    });
    add_products<false>(to, "modified{dot, bias, f}", [](const extents&) {
        return modified{dot{}, random({std::size_t{7}}, 35),
                        [](auto e, heed::score_index p, const auto& bias) { return e + bias(p.key - p.query + 3); }};
    });
    add_products<false>(to, "relative{dot}", [](const extents& of) {
        return relative{dot{}, random({of.width, std::size_t{5}}, 36)};
    });
    add_products<false>(to, "rotary{dot}", [](const extents&) { return rotary{dot{}}; });
}

}  // namespace composition
