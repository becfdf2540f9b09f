// SPDX-License-Identifier: BSD-3-Clause
#include <products/policies.hpp>

namespace composition {

void add_scores_per_dimension(table& to)
{
    using namespace heed::score;
    static constexpr auto base = [](const extents& of) {
        return additive_per_dimension{random({of.width, of.hidden}, 41), random({of.width, of.hidden}, 42),
                                      random({of.hidden, of.width}, 43)};
    };
    add_products<false>(to, "additive_per_dimension", base);
    add_products<true>(to, "with_word{additive_per_dimension}", [](const extents& of) {
        return with_word{base(of), random({of.width, of.hidden}, 44)};
    });
}

}  // namespace composition
