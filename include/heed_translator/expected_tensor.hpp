// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <cstddef>
#include <limits>
#include <string>

namespace heed::translator {

/// A matrix that a model must have if its options are true: the sizes in a file are checked before a model of these
/// sizes is made, so that an error names a tensor. What no claim covers is limited by the count of the file's numbers.
struct expected_tensor {
    std::string tensor;
    std::size_t rows, columns;
};

/// a · b, or the largest number if that is less: a size of no tensor.
constexpr std::size_t times(std::size_t a, std::size_t b)
{
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
    return b != 0 && a > most / b ? most : a * b;
}

}  // namespace heed::translator
