// SPDX-License-Identifier: BSD-3-Clause
#include <products/policies.hpp>

namespace composition {

void add_scores_per_dimension(table& to)
{
    using namespace heed::score;
    const additive_per_dimension base{random({D, A}, 41), random({D, A}, 42), random({A, D}, 43)};
    add_products<false>(to, "additive_per_dimension", base);
    add_products<true>(to, "with_word{additive_per_dimension}", with_word{base, random({D, A}, 44)});
}

}  // namespace composition
