// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: ad::lift takes a module
// expect: heed: this tape and these tensors have different element types, such as double and float
#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>

using namespace heed;

auto use(const array<float, 2>& W, const array<float, 2>& U, const array<double, 2>& of_double)
{
    ad::tape<double> on;
    const attention attend{score::general{W}, normalize::softmax{}, combine::weighted_sum{}};
    (void)ad::lift(on, of_double);
    return ops::add(ad::lift(on, attend).score.W, on.constant(U));
}
