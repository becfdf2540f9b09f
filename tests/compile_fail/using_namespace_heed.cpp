// SPDX-License-Identifier: BSD-3-Clause
// expect-ok
//
// heed's operations are not ambiguous with the C library's functions or a user's functions.
#include <math.h>

#include <cmath>

#include <heed/heed.hpp>

using namespace heed;

namespace users {
double tanh(double x) { return x; }
double softmax(double x) { return x; }
}  // namespace users

double numbers(double x)
{
    using users::softmax;
    return tanh(x) + exp(x) + log(x) + fabs(x) + ::tanh(x) + std::tanh(x) + users::tanh(x) + softmax(x);
}

float numbers(float x) { return std::exp(x) + std::log(x); }

auto tensors(const array<float, 2>& x)
{
    // Both namespaces, even on tensors: the name after ops:: is never xt's lazy function.
    return ops::log(ops::exp(ops::tanh(x)));
}
static_assert(std::is_same_v<decltype(tensors(array<float, 2>{})), array<float, 2>>);

using namespace std;  // some users do

double more(double x) { return tanh(x) + exp(x); }
auto still(const heed::array<double, 2>& x) { return ops::tanh(x); }
