// SPDX-License-Identifier: BSD-3-Clause
#include <products/policies.hpp>

namespace composition {

void add_additive_scores(table& to)
{
    using namespace heed::score;
    add_products<false>(to, "additive", [](const extents& of) { return additive(of); });
    add_products<true>(to, "with_word{additive}", [](const extents& of) {
        return with_word{additive(of), random({of.width, of.hidden}, 14)};
    });
    add_products<false>(to, "with_positions{additive}", [](const extents& of) {
        return with_positions{additive(of), random({std::size_t{3}, of.hidden}, 15)};
    });
    add_products<false>(to, "with_fertility{additive}", [](const extents& of) {
        return with_fertility{additive(of), random({of.hidden}, 16), random({of.width}, 17)};
    });
}

}  // namespace composition
