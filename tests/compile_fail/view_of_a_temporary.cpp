// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: view_of a temporary that owns its numbers would refer to what is gone at the end of the line
#include <heed/heed.hpp>

#include <vector>

auto use() { return heed::view_of(std::vector<float>(6), 2, 3); }
