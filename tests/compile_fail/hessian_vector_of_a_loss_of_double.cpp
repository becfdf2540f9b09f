// SPDX-License-Identifier: BSD-3-Clause
// expect: runs the loss on a tape of dual numbers, which this loss does not accept: write it with auto
// expect: requires a loss that is a variable of rank 0
#include <heed/ad/ad.hpp>

using namespace heed;

void f(const array<double, 1>& x)
{
    (void)ad::hessian_vector([](ad::tape<double>&, const ad::var<double, 1>& v) { return ops::dot(v, v); }, x, x);
    (void)ad::hessian_vector([](auto&, const auto& v) { return ops::multiply(v, v); }, x, x);
}
