// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: a function of scores takes a score and its index
#include <heed/heed.hpp>

using namespace heed;

auto use()
{
    return score::modified{score::dot{},
                           [](auto e, auto, auto, auto query, auto key) { return e - 0.1 * (query - key); }};
}
