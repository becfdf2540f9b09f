// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <cstddef>
#include <string>

namespace heed::translator {

/// A matrix that a model must have if its options are true: the sizes in a file are checked before a model of these
/// sizes is made.
struct claim {
    std::string tensor;
    std::size_t rows, columns;
};

}  // namespace heed::translator
