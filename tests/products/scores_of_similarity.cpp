// SPDX-License-Identifier: BSD-3-Clause
#include <products/policies.hpp>

namespace composition {

void add_scores_of_similarity(table& to)
{
    using namespace heed::score;
    add_products<false>(to, "dot", [](const extents&) { return dot{}; });
    add_products<false>(to, "scaled_dot", [](const extents&) { return scaled_dot{}; });
    add_products<false>(to, "cosine", [](const extents&) { return cosine{3.0}; });
    add_products<false>(to, "match", [](const extents&) { return match{}; });
    add_products<false>(to, "forgetting{dot}", [](const extents& of) {
        return forgetting{dot{}, random({of.width, std::size_t{1}}, 33), random({1}, 34)};
    });
    add_products<false>(to, "gated_decay{kernel}", [](const extents& of) {
        return gated_decay{kernel{elu_plus_one{}}, random({of.width, std::size_t{1}}, 37), random({1}, 38)};
    });
    add_products<false>(to, "kernel{elu_plus_one}", [](const extents&) { return kernel{elu_plus_one{}}; });
}

}  // namespace composition
