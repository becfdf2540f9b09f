// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/heed.hpp>
#include <heed/verify/problem.hpp>
#include <support/scalar_attention.hpp>
#include <support/tensors.hpp>

/// The sizes of a mechanism, and its query.
namespace support {

struct mechanism_sizes {
    std::size_t query = 3, width = 5, alignment = 4, word = 2;
};

/// How a query is built from parts; see heed::verify.
using heed::detail::verifying::plain_query;
struct query_with_word {
    std::size_t query, word;
    auto operator()(auto part) const { return heed::state_and_word{part("state", query), part("word", word)}; }
};

}  // namespace support
