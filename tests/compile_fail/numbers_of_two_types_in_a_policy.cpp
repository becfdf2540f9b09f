// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: these tensors have different element types, such as float and double
//
// In a policy that requires matrices of one type. The compiler adds that deduction failed.
#include <heed/heed.hpp>

using namespace heed;

auto use(const array<double, 2>& W, const array<float, 2>& U, const array<float, 1>& v)
{
    return score::additive{W, U, v};
}
