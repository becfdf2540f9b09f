// SPDX-License-Identifier: BSD-3-Clause
#include <products/policies.hpp>

namespace composition {

void add_scores_of_similarity(table& to)
{
    using namespace heed::score;
    add_products<false>(to, "dot", dot{});
    add_products<false>(to, "scaled_dot", scaled_dot{});
    add_products<false>(to, "cosine", cosine{3.0});
    add_products<false>(to, "match", match{});
    add_products<false>(to, "forgetting{dot}", forgetting{dot{}, random({D, std::size_t{1}}, 33), random({1}, 34)});
    add_products<false>(to, "gated_decay{kernel}",
                        gated_decay{kernel{elu_plus_one{}}, random({D, std::size_t{1}}, 37), random({1}, 38)});
    add_products<false>(to, "kernel{elu_plus_one}", kernel{elu_plus_one{}});
}

}  // namespace composition
