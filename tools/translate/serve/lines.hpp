// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <iosfwd>

#include "service.hpp"

/// `translate serve --stdin`: a line in, its translation out, in the same order, each as soon as it is ready.
namespace translation {

/// Ends with the input, or when `stopped` says so between two lines; then what was read is finished. At most as
/// many lines are in work as the service's queue holds; then reading waits. Returns the number of lines that could not
/// be translated: each gives an empty line, and a message on standard error.
std::size_t serve_lines(service& with, std::istream& in, std::ostream& out, const std::function<bool()>& stopped);

}  // namespace translation
