// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <string>

#include <heed/core/function_ref.hpp>

/// The context of a failure in a template, without the macro's classes in each instantiation.
namespace support {

/// CAPTURE(what) around some checks.
inline void about(const std::string& what, heed::detail::function_ref<void> check)
{
    CAPTURE(what);
    check();
}

}  // namespace support
