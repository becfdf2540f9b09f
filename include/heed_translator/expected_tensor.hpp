// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <cstddef>
#include <limits>
#include <string>

namespace heed::translator {

/// A matrix whose size follows from the options of a model. The sizes in a file are checked before a model of these
/// sizes is constructed, so that an error names a tensor. All other tensors are limited by the count of numbers in the
/// file.
struct expected_tensor {
    std::string tensor;
    std::size_t rows, columns;
};

/// a · b, or the largest number on overflow, a size that no tensor has.
constexpr std::size_t times(std::size_t a, std::size_t b)
{
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
    return b != 0 && a > most / b ? most : a * b;
}

}  // namespace heed::translator
