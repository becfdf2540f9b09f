// SPDX-License-Identifier: BSD-3-Clause
#include <products/policies.hpp>

namespace composition {

void add_scores_per_group(table& to)
{
    using namespace heed::score;
    const additive_grouped base{random({D, A}, 31), random({D, A}, 32), random({A, std::size_t{2}}, 33)};
    add_products<false>(to, "additive_grouped", base);
    add_products<true>(to, "with_word{additive_grouped}", with_word{base, random({D, A}, 34)});
}

}  // namespace composition
