// SPDX-License-Identifier: BSD-3-Clause
#include <heed/simd/score_index.hpp>
#include <products/policies.hpp>

namespace composition {

void add_scores_of_indices(table& to)
{
    using namespace heed::score;
    const auto far = random({std::size_t{7}}, 35);
    add_products<false>(to, "contextual_positions{dot}", contextual_positions{dot{}, random({D, std::size_t{3}}, 39)});
    add_products<false>(to, "dynamic_convolution", dynamic_convolution{random({D, std::size_t{3}}, 40)});
    add_products<false>(to, "modified{dot, bias, f}",
                        modified{dot{}, far, [](auto e, heed::score_index p, const auto& bias) {
                                     return e + bias(p.key - p.query + 3);
                                 }});
    add_products<false>(to, "relative{dot}", relative{dot{}, random({D, std::size_t{5}}, 36)});
    add_products<false>(to, "rotary{dot}", rotary{dot{}});
}

}  // namespace composition
