// SPDX-License-Identifier: BSD-3-Clause
#include <products/policies.hpp>

namespace composition {

void add_scores_of_one_matrix(table& to)
{
    using namespace heed::score;
    add_products<false>(to, "general", [](const extents& of) { return general{random({of.width, of.width}, 21)}; });
    add_products<false>(to, "concat", [](const extents& of) {
        return concat{random({2 * of.width, of.hidden}, 22), random({of.hidden}, 23)};
    });
    add_products<false>(to, "location", [](const extents& of) {
        return location{random({of.width, extents::longest}, 24)};
    });
    add_products<true>(to, "conv_s2s", [](const extents& of) {
        return conv_s2s{random({of.width, of.width}, 25), random({of.width}, 26)};
    });
}

}  // namespace composition
