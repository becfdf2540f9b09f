// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

namespace heed::detail {

/// std::bit_cast, which Debian 12's Emscripten does not have: the same bits as a To.
template <class To, class From>
constexpr To bit_cast(const From& x)
{
    static_assert(sizeof(To) == sizeof(From));
    return __builtin_bit_cast(To, x);
}

}  // namespace heed::detail
