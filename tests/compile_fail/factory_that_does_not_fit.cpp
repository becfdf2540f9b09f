// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: this is not a factory of this part: heed calls a factory with nn::initializers and the sizes
#include <heed/seq2seq/translator.hpp>

using namespace heed;

auto use()
{
    using namespace seq2seq;
    const auto with = parts{}.with_start([](auto& init, const nn::cell_sizes& n) {  // a start takes decoder_sizes
        return initial_state::tanh_layer{init.glorot(n.hidden, n.hidden), init.zeros(n.hidden)};
    });
    return make_translator<float>(1, {9, 9, 4, 3, 5}, attentions::additive_factory{}, with);
}
