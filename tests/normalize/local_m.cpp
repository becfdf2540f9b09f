// SPDX-License-Identifier: BSD-3-Clause
#include <heed/normalize/local_m.hpp>

#include <doctest/doctest.h>

#include <heed/heed.hpp>
#include <support/mechanism_tests.hpp>
#include <support/scalar_weights.hpp>
#include <support/tensors.hpp>
#include <support/windows.hpp>

using namespace heed;
using normalize::history::in_window, normalize::local_m, normalize::local_p;
using support::message_of, support::plain_query, support::query_with_word, support::random;
namespace scalar = support::scalar;
using namespace support::temporal_family;
using namespace support::windows;

TEST_CASE("local_m matches its equation")
{
    // Sentences of 1 to 7 positions and up to 12 steps: from step S + D on, the paper's window is empty, and heed's is
    // not.
    for (const std::size_t D : {0u, 1u, 2u, 6u, 100u}) {
        scalar::check_values(additive_with(local_m{D}), additive_equation(), luong_m(D), plain_query{3}, 5);
        check_values_per_dimension(local_m{D}, luong_m(D));
    }
}

TEST_CASE("local_m satisfies the contracts")
{
    check_verified_windows(additive_with(local_m{1}), plain_query{3});
    check_verified_windows(attention{per_dimension(), local_m{1}, combine::elementwise_sum{}}, plain_query{3});
}
