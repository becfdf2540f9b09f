// SPDX-License-Identifier: BSD-3-Clause
#include <products/policies.hpp>

namespace composition {

void add_scores_per_group(table& to)
{
    using namespace heed::score;
    static constexpr auto base = [](const extents& of) {
        return additive_grouped{random({of.width, of.hidden}, 31), random({of.width, of.hidden}, 32),
                                random({of.hidden, of.groups}, 33)};
    };
    add_products<false>(to, "additive_grouped", base);
    add_products<true>(to, "with_word{additive_grouped}", [](const extents& of) {
        return with_word{base(of), random({of.width, of.hidden}, 34)};
    });
}

}  // namespace composition
