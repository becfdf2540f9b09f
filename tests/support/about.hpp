// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <string>

#include <heed/core/function_ref.hpp>

/// Adds context to failures in a template, without instantiating the macro's classes each time.
namespace support {

/// CAPTURE(what) around some checks.
inline void about(const std::string& what, heed::detail::function_ref<void> check)
{
    CAPTURE(what);
    check();
}

}  // namespace support
