// SPDX-License-Identifier: BSD-3-Clause
#include <products/policies.hpp>

namespace composition {

void add_additive_scores(table& to)
{
    using namespace heed::score;
    add_products<false>(to, "additive", additive());
    add_products<true>(to, "with_word{additive}", with_word{additive(), random({D, A}, 14)});
    add_products<false>(to, "with_positions{additive}", with_positions{additive(), random({std::size_t{3}, A}, 15)});
    add_products<false>(to, "with_fertility{additive}", with_fertility{additive(), random({A}, 16), random({D}, 17)});
}

}  // namespace composition
