// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <iosfwd>

#include "service.hpp"

/// `translate serve --stdin`: reads a line, writes its translation, in order, each as soon as it is ready.
namespace translation {

/// Ends with the input, or when `stopped` is true between two lines; lines already read are finished. At most as
/// many lines are processed as the queue of the service holds; then reading waits. Returns the number of lines that
/// could not be translated: each writes an empty line, and a message on standard error.
std::size_t serve_lines(service& with, std::istream& in, std::ostream& out, const std::function<bool()>& stopped);

}  // namespace translation
