// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <heed/heed.hpp>
#include <heed/verify.hpp>
#include <support/tensors.hpp>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <vector>

// Shared by the tests of normalizers without state: rows and columns of scores, and contract checks.

namespace support::normalizers {

using namespace heed;

/// The real scores of column d of row b.
template <class T, std::size_t R>
std::vector<double> column(const array<T, R>& x, const lengths& real, std::size_t b, std::size_t d)
{
    const std::size_t positions = x.shape()[1], width = x.size() / (x.shape()[0] * positions);
    std::vector<double> values;
    for (std::size_t t = 0; t < real[b]; ++t) {
        values.push_back(static_cast<double>(x.data()[(b * positions + t) * width + d]));
    }
    return values;
}

template <class T>
array<T, 2> row_of(std::initializer_list<double> values)
{
    array<T, 2> x(shape_of_rank<2>{1, values.size()});
    std::transform(values.begin(), values.end(), x.data(), [](double v) { return static_cast<T>(v); });
    return x;
}

void check_contracts(const auto& attend, const verification_sizes& sizes)
{
    const verification report = verify(attend, sizes);
    CHECK_MESSAGE(bool(report), report.text());
}

/// Verifies the normalizer over scores per position, over scores per dimension, or over both.
void check_contracts_per_position(const auto& normalizer)
{
    const score::additive score{random({3, 4}, 11), random({5, 4}, 12), random({4}, 14, 2.0)};
    check_contracts(attention{score, normalizer, combine::weighted_sum{}}, {.query = 3, .width = 5});
}
void check_contracts_per_dimension(const auto& normalizer)
{
    const score::additive_per_dimension score{random({3, 4}, 11), random({5, 4}, 12), random({4, 5}, 13)};
    check_contracts(attention{score, normalizer, combine::elementwise_sum{}}, {.query = 3, .width = 5});
}
void check_contracts_of(const auto& normalizer)
{
    check_contracts_per_position(normalizer);
    check_contracts_per_dimension(normalizer);
}

}  // namespace support::normalizers
