// SPDX-License-Identifier: BSD-3-Clause
// expect: read_word
// expect: row_wise
// expect: commutes
#include <heed/policy/concepts.hpp>

constexpr heed::score_traits of_score{.read_word = true};
constexpr heed::normalizer_traits of_normalizer{.row_wise = true};
constexpr heed::combiner_traits of_combiner{.commutes = true};
