// SPDX-License-Identifier: BSD-3-Clause
#include <products/policies.hpp>

namespace composition {

void add_scores_of_one_matrix(table& to)
{
    using namespace heed::score;
    add_products<false>(to, "general", general{random({D, D}, 21)});
    add_products<false>(to, "concat", concat{random({2 * D, A}, 22), random({A}, 23)});
    add_products<false>(to, "location", location{random({D, batch::positions + 1}, 24)});
    add_products<true>(to, "conv_s2s", conv_s2s{random({D, D}, 25), random({D}, 26)});
}

}  // namespace composition
