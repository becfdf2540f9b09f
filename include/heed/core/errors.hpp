// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace heed {

/// Every error that heed throws. The message says what was wrong, where, and what would be right.
struct error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A tensor whose shape does not fit. Thrown before anything is written.
struct shape_error : error {
    using error::error;
};

/// "[2,3,4]": a shape as messages print it.
template <class Shape>
std::string shape_text(const Shape& shape)
{
    std::string text = "[";
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (axis > 0) text += ',';
        text += std::to_string(shape[axis]);
    }
    return text + "]";
}

/// Throws shape_error "<where>: <name> is [2,3] but must be [2,5] (<why>)" unless the shapes are equal.
template <std::size_t N>
void require_shape(std::string_view where, std::string_view name, const std::array<std::size_t, N>& is,
                   const std::array<std::size_t, N>& must, std::string_view why)
{
    if (is == must) return;
    throw shape_error(std::string(where) + ": " + std::string(name) + " is " + shape_text(is) + " but must be " +
                      shape_text(must) + " (" + std::string(why) + ")");
}

}  // namespace heed
